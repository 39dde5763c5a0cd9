"""Judge a file of the reader's own: the tests in tests/spec run on it, and say which requirements hold.

    python -m looplab.judging my_agentloop.py --stage 3
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentloop import Json

ROOT = Path(__file__).parents[2]
SPEC = ROOT / "tests/spec"
STAGES = {1: "messages", 2: "validator", 3: "registry", 4: "loop", 5: "exits"}
SECONDS = 60.0
RUN = "import os, sys, pytest; os._exit(pytest.main(sys.argv[1:]))"  # Python waits for the threads of a pool for ever
WORDS = {"passed": "holds", "failed": "does not hold", "skipped": "not tried"}


@dataclass(frozen=True)
class Verdict:
    """What the suite says of a file: one sentence, a row for each requirement, and the first that does not hold.

    `not_loaded` says why there is no module to judge, or is empty. `told` holds the message of each requirement that
    does not hold, by its stage and sentence. A verdict shows itself, in a notebook as a table.
    """

    said: str
    rows: list[list[str]] = field(default_factory=list)
    first: list[str] = field(default_factory=list)
    not_loaded: str = ""
    told: dict[tuple[str, str], str] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Whether every requirement holds."""
        return bool(self.rows) and all(outcome == WORDS["passed"] for _, outcome, _ in self.rows)

    def blocks(self) -> list[Any]:
        """Return the verdict as blocks of plain words."""
        from looplab.view import Code  # it brings the widgets along, which a shell can do without

        table = [["stage", "outcome", "requirement"], *self.rows]
        why = [f"The first that does not hold: {self.first[0]}.", Code(self.first[1])] if self.first else []
        return [self.said, *why, *([table] if self.rows else [])]

    def __repr__(self) -> str:
        from looplab.view import twin_text

        return twin_text(self.blocks())

    def _repr_html_(self) -> str:
        from looplab.view import twin_html

        return twin_html(self.blocks())


def judge(file: str | Path, stage: int = 5, seconds: float = SECONDS) -> Verdict:
    """Run the suite on a file, stages 1 to `stage`, in a process that is ended after some seconds.

    Raises ValueError for a stage that there is not, and for what is no path of a file.
    """
    if isinstance(stage, bool) or stage not in STAGES:
        raise ValueError(f"the stages are {', '.join(map(str, STAGES))}")
    if not isinstance(file, str | Path) or Path(file).is_dir():
        raise ValueError(f'give the path of a file, such as "my_agentloop.py", not {file!r}')
    path = Path(file)
    if not path.is_file():
        stages = stages_up_to(stage)
        return Verdict(f"There is no file {path.name} here yet. Write {stages} into it, and judge it again.")
    if b"\0" in path.read_bytes():
        why = "it is not saved as UTF-8"
        return Verdict(f"{path.name} holds null bytes, as a file in UTF-16 does: save it as UTF-8.", not_loaded=why)
    if not SPEC.is_dir():
        return Verdict(f"The suite is missing: there is no folder {SPEC.relative_to(ROOT)} beside the notebooks.")
    report, problem = run_suite(path.resolve(), stage, seconds)
    if report is None:
        return Verdict(f"{path.name} could not be judged: {problem}.", not_loaded=problem)
    return verdict_of(path.name, stage, report)


def run_suite(path: Path, stage: int, seconds: float) -> tuple[Json | None, str]:
    """Return the suite's report on a file, or None and what kept it from writing one."""
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder, "report.json")
        options = "-q -p no:cacheprovider -o addopts= --assert=plain"  # the suite has no assert that is to be explained
        command = [sys.executable, "-c", RUN, str(SPEC), *options.split()]
        command += [f"--report={written}", f"--impl={path}", f"--stage={stage}"]
        environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
        environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            run = subprocess.run(command, cwd=ROOT, env=environment, timeout=seconds, capture_output=True)
        except subprocess.TimeoutExpired:
            return None, f"the suite was still running after {seconds:g} seconds and was stopped"
        if written.exists():
            return json.loads(written.read_text(encoding="utf-8")), ""
        return None, why_it_ended(run.stderr.decode("utf-8", "replace"))


def why_it_ended(words: str) -> str:
    """Say why the process of the suite ended too early, by what it wrote last."""
    if "Traceback" not in words:
        return "it ended Python in the middle of the checks, as os._exit does"
    return f"it changed something that the checks need themselves: {words.strip().splitlines()[-1].rstrip('.')}"


def stages_up_to(stage: int) -> str:
    """Name the stages from 1 on."""
    return {1: "stage 1", 2: "stages 1 and 2"}.get(stage, f"stages 1 to {stage}")


def verdict_of(name: str, stage: int, report: Json) -> Verdict:
    """Return the verdict for a report."""
    requirements = report["requirements"]
    rows = [[f"{r['stage']} {STAGES[r['stage']]}", WORDS[r["outcome"]], r["sentence"]] for r in requirements]
    held = [r["outcome"] for r in requirements].count("passed")
    told = {(stage, sentence): r["message"] for (stage, _, sentence), r in zip(rows, requirements)
            if r["outcome"] == "failed"}
    first = next(([sentence, message] for (_, sentence), message in told.items()), [])
    said = f"{name}, {stages_up_to(stage)}: {held} of {len(rows)} requirements hold."
    return Verdict(said, rows, first, why_not_loaded(first[1]) if first else "", told)


def why_not_loaded(message: str) -> str:
    """Say why a file does not load, by kind and line, in words that no version of Python changes; "" if it does."""
    loading, _, why = message.partition(": ")
    if not loading.startswith("importing "):
        return ""
    kind, line = re.match(r"it raised (\w+)", why), re.search(r"line (\d+)\)$", why)
    what = kind[1] if kind else why.partition(" (line ")[0]
    return f"{what}, line {line[1]}" if line else what


def python_says(message: str) -> str:
    """Return an exception's own words from the message of a file that does not load; "" if there are none.

    They differ from one version of Python to the next: they are for a person to read, and nothing to compare.
    """
    said = re.match(r"importing .+?: it raised \w+: (.*)", message, re.DOTALL)
    return re.sub(r"( \([^()]*line \d+\))+$", "", said[1]).strip() if said else ""


def main(arguments: list[str] | None = None) -> int:
    """Judge a file from a shell; return 0 if every requirement holds, else 1."""
    description = "Judge a file by the tests in tests/spec."
    parser = argparse.ArgumentParser(prog="python -m looplab.judging", description=description)
    parser.add_argument("file", help="the file, such as my_agentloop.py")
    parser.add_argument("--stage", type=int, default=5, choices=list(STAGES), help="judge stages 1 to N, or all")
    options = parser.parse_args(arguments)
    if Path(options.file).is_dir():
        parser.error(f"{options.file} is a folder: give the path of a file, such as my_agentloop.py")
    verdict = judge(options.file, options.stage)
    print(verdict)
    return 0 if verdict.holds else 1


if __name__ == "__main__":
    sys.exit(main())
