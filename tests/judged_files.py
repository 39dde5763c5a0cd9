"""Run the stages in tests/spec on many files, in few processes: each of them loads pytest once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

SPEC = Path(__file__).parent / "spec"
OPTIONS = ["-o", "addopts=", "-p", "no:nbval", "-p", "no:cacheprovider", "-q", str(SPEC)]
JUDGE_ALL = """
import gc, json, sys, pytest
gc.freeze()  # pytest collects several times for each file
options, jobs = json.loads(sys.argv[1])
for file, stage, report in jobs:
    pytest.main([*options, "--impl", file, "--stage", str(stage), "--report", report])
"""

NOT_NEEDED = "logging doctest junitxml pastebin faulthandler setuponly setupplan unittest debugging stepwise"
WITHOUT = [part for name in NOT_NEEDED.split() for part in ("-p", f"no:{name}")]
JUDGE_ONE_AFTER_ANOTHER = """
import gc, json, os, sys, pytest
gc.freeze()
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
options = json.loads(sys.argv[1])
for line in sys.stdin:
    file, stage, report = json.loads(line)
    pytest.main([*options, "--impl", file, "--stage", str(stage), "--report", report])
    print("judged", file=answers, flush=True)
"""

Row = dict[str, Any]
Judge = Callable[[str], list[Row]]


def judge_files(
    folder: Path, files: Mapping[str, tuple[str | None, int]], processes: int = 1, *options: str
) -> Judge:
    """Judge files in a folder, given by name as a text and the last stage to run; None for a file that is not there.

    Return a function that gives the rows of a file by its name, one for each requirement.
    """
    jobs = []
    for name, (text, stage) in files.items():
        if text is not None:
            (folder / f"{name}.py").write_text(text, encoding="utf-8")
        jobs.append((f"{name}.py", stage, f"{name}.json"))
    options = (*OPTIONS, *WITHOUT, "--assert=plain", *options)
    with (folder / "output.txt").open("w", encoding="utf-8") as output:
        running = [
            subprocess.Popen(
                [sys.executable, "-c", JUDGE_ALL, json.dumps((options, jobs[first::processes]))],
                cwd=folder,
                env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
                stdout=output,
                stderr=output,
            )
            for first in range(processes)
        ]
        for process in running:
            process.wait(timeout=120)

    def rows_of(name: str) -> list[Row]:
        rows: list[Row] = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))["requirements"]
        return rows

    return rows_of


class OneProcess:
    """A process that loads pytest once and judges file after file; what it said of a text is said again."""

    def __init__(self, folder: Path) -> None:
        self._report, self._said = folder / "report.json", dict[tuple[bytes, int], str]()
        self._process = subprocess.Popen(
            [sys.executable, "-c", JUDGE_ONE_AFTER_ANOTHER, json.dumps([*OPTIONS, *WITHOUT, "--assert=plain"])],
            env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, encoding="utf-8",
        )

    def judge(self, path: Path, stage: int) -> dict[str, Any]:
        """Return the suite's report on a file that neither ends its process nor runs for ever."""
        asked = path.read_bytes(), stage
        if asked not in self._said:
            assert self._process.stdin and self._process.stdout
            self._process.stdin.write(json.dumps([str(path), stage, str(self._report)]) + "\n")
            self._process.stdin.flush()
            assert self._process.stdout.readline() == "judged\n", "the process of the suite ended"
            self._said[asked] = self._report.read_text(encoding="utf-8")
            self._report.unlink()
        report: dict[str, Any] = json.loads(self._said[asked])
        return report

    def close(self) -> None:
        """End the process."""
        self._process.communicate()
