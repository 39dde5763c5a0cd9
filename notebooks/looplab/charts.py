"""What a reader has done in the bug clinic: a chart for each case, kept in a file beside the notebook."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from agentloop import Json
from looplab.keeping import keep_json
from looplab.view import plural

FILE = Path.cwd() / "my_clinic.json"  # the reader's own, where the notebook is; delete it to begin again
STEPS = ("diagnosed", "located", "caught")


@dataclass
class Chart:
    """One case as the reader left it. `diagnosed`, `located` and `caught` say how it was done, or are empty."""

    diagnosed: str = ""
    located: str = ""
    caught: str = ""
    choice: str = ""  # the diagnosis that was chosen last
    words: str = ""  # the reader's own diagnosis
    said: str = ""  # what was said of either
    wrong: int = 0  # diagnoses that were not it
    compared: bool = False  # ours was shown beside the reader's words
    weighing: bool = False  # and the reader has not said yet whether they agree
    hints: int = 0
    line: int = 0  # in the field
    asked: int = 0  # the line that was asked about last
    wrong_lines: int = 0
    test: str = ""  # the text of the last test that caught the fault
    verdict: str = ""  # what was said of the last test
    printed: str = ""  # what that test printed
    wrong_tests: int = 0
    ours: bool = False  # our test was shown

    @property
    def may_see_ours(self) -> bool:
        """Whether the reader has tried a test, so that ours may be shown."""
        return bool(self.caught or self.wrong_tests)


CHARTS: dict[int, Chart] = {}  # of this kernel; all benches share them
unsaved = False  # the file could not be written, so the charts live as long as the kernel


def open_charts() -> dict[int, Chart]:
    """Return the charts as the file has them now; without the file they begin anew."""
    if not unsaved:
        CHARTS.clear()
        CHARTS.update(read_charts())
    return CHARTS


def read_charts() -> dict[int, Chart]:
    """Return the charts in the file; one that cannot be read counts as none."""
    try:
        cases = json.loads(FILE.read_text(encoding="utf-8"))["cases"]
        return {int(number): chart_of(kept) for number, kept in cases.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def chart_of(kept: Json) -> Chart:
    """Return a chart that was kept; a field that is missing or of another type is empty."""
    empty: dict[str, Any] = asdict(Chart())
    return Chart(**{f.name: kept[f.name] for f in fields(Chart) if type(kept.get(f.name)) is type(empty[f.name])})


def keep_charts(number: int) -> None:
    """Write the charts to the file, whole or not at all; of the cases but this one, another notebook may know more."""
    global unsaved
    if not unsaved:
        CHARTS.update({case: chart for case, chart in read_charts().items() if case != number})
    try:
        keep_json(FILE, {"version": 1, "cases": {number: asdict(chart) for number, chart in CHARTS.items()}})
        unsaved = False
    except OSError:  # a folder that cannot be written is no reason to fail
        unsaved = True


def how(wrong: int, hints: int = 0, *first: str) -> str:
    """Say how a step was done: "at once", "after 2 wrong tries, with 1 hint"."""
    parts = [part for part in first if part]
    parts += [f"after {wrong} wrong {'try' if wrong == 1 else 'tries'}"] if wrong else []
    parts += [f"with {plural(hints, 'hint')}"] if hints else []
    return ", ".join(parts) or "at once"
