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
    options = (*OPTIONS, "--assert=plain", *options)
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
