"""Options for the stages in tests/spec: which file they run against, how many of them, and a report of the outcome.

pytest tests/spec --impl path/to/mine.py --stage 3
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Generator
from json import dumps  # this very function, for the file under test may put another in its place
from pathlib import Path
from typing import Any

import pytest
from side_by_side import pytest_collection as pytest_collection  # a hook
from side_by_side import pytest_runtestloop as pytest_runtestloop  # a hook

STAGES = {1: "messages", 2: "validator", 3: "registry", 4: "loop", 5: "exits"}
PROJECT_FILE = Path(__file__).parent.parent / "agentloop.py"
SPELLINGS = {  # what the name of a test cannot say
    "ascii": "ASCII", "json": "JSON", "give none": "give None", "of none false or zero": "of None, False or zero",
    "Call with": "`call` with", "Call writes": "`call` writes", "empty args": "empty `args`", "and args": "and `args`",
    "Asks writes": "`asks` writes", "Final writes": "`final` writes", "called max steps": "called `max_steps`",
    "Specs of": "`specs` of", "Specs lists name description": "`specs` lists name, description",
    "the specs of": "the `specs` of", "out of execute": "out of `execute`", "an id a name": "an id, a name",
    "status answer steps tokens": "status, answer, steps, tokens", "model 2 then 4 then": "model 2, then 4, then",
}
requirements = pytest.StashKey[list[dict[str, Any]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("stages", "the stages in tests/spec")
    group.addoption("--impl", metavar="FILE", help="the file they run against; agentloop.py if none is given")
    group.addoption("--stage", metavar="N", type=int, choices=list(STAGES), help="run stages 1 to N; all if not given")
    group.addoption("--seconds", metavar="S", type=float, default=2, help="how long one piece of the file may run; 2")
    group.addoption("--report", metavar="FILE", help="write each requirement and its outcome to FILE, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[requirements] = []
    if config.option.impl:  # what a file leaves behind, as a coroutine or a thread that fails, is no error of the suite
        for kind in (pytest.PytestUnraisableExceptionWarning, pytest.PytestUnhandledThreadExceptionWarning):
            config.addinivalue_line("filterwarnings", f"ignore::pytest.{kind.__name__}")  # during a test
            warnings.simplefilter("ignore", kind)  # and at the end


def file_under_test(config: pytest.Config) -> Path:
    """Return the file that the stages run against."""
    return config.invocation_params.dir / (config.option.impl or PROJECT_FILE)


@pytest.fixture(scope="session")
def impl(pytestconfig: pytest.Config) -> Path:
    return file_under_test(pytestconfig)


def stage_of(item: pytest.Item) -> int:
    """Return the stage that a test belongs to, 0 if it belongs to none."""
    match = re.fullmatch(r"test_stage_(\d)_\w+\.py", item.path.name)
    return int(match[1]) if match else 0


def sentence_of(item: pytest.Item) -> str:
    """Return the requirement that a test proves: test_a_bool_is_never_a_number → A bool is never a number."""
    sentence = item.name.removeprefix("test_").replace("_", " ").capitalize()
    for plain, spelt in SPELLINGS.items():
        sentence = sentence.replace(plain, spelt)
    return sentence


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    last = config.option.stage or max(STAGES)
    later = [item for item in items if stage_of(item) > last]
    config.hook.pytest_deselected(items=later)
    items[:] = [item for item in items if stage_of(item) <= last]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    report = yield
    if (stage := stage_of(item)) and (report.when == "call" or not report.passed):
        message = str(getattr(call.excinfo.value, "msg", call.excinfo.value)) if call.excinfo else ""
        row = {"stage": stage, "sentence": sentence_of(item), "outcome": report.outcome, "message": message}
        item.config.stash[requirements].append(row)
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    if config.option.report:
        report = {"file": str(file_under_test(config)), "requirements": config.stash[requirements]}
        text = dumps(report, ensure_ascii=False, indent=1)
        (config.invocation_params.dir / config.option.report).write_text(text + "\n", encoding="utf-8")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    rows = config.stash[requirements]
    if not rows or not (config.option.impl or config.option.stage):
        return
    terminalreporter.section(f"requirements that {file_under_test(config).name} meets")
    for stage, title in STAGES.items():
        outcomes = [row["outcome"] for row in rows if row["stage"] == stage]
        if outcomes:
            terminalreporter.line(f"stage {stage} {title:<9} {outcomes.count('passed'):>3} of {len(outcomes)}")
