"""Run the tests in three processes side by side: one begins with the notebooks, and each takes the next file left.

That is one more than two cores need, for a process that waits for a notebook's kernel leaves its core free.
"""

from __future__ import annotations

import gc
import hashlib
import itertools
import json
import os
import signal
import sys
import tempfile
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

Items = Iterable[pytest.Item]
SLOW = ["interview", "clinic", "spec_suite", "plots", "exercises", "judging", "building", "async", "side_by_side"]


def groups_of(items: Items) -> list[list[pytest.Item]]:
    """Return tests in groups: those of a file, and those of the folder whose tests share a browser.

    What takes long comes first, so that the processes end at about the same time.
    """
    def group(item: pytest.Item) -> Path:
        return item.path.parent if item.path.parent.name == "browser" else item.path

    groups = [list(tests) for _, tests in itertools.groupby(items, group)]
    return sorted(groups, key=lambda tests: group(tests[0]).stem.removeprefix("test_") not in SLOW)


def claimed(groups: Iterable[list[pytest.Item]], folder: Path) -> Iterator[pytest.Item]:
    """Yield the tests of each group that no other process has claimed yet; a file in the folder is a claim."""
    for group in groups:
        try:
            (folder / hashlib.sha256(group[0].nodeid.encode()).hexdigest()).touch(exist_ok=False)
        except FileExistsError:
            continue
        yield from group


class Writer:
    """A plugin that writes each report to a file of JSON Lines, in place of the terminal."""

    def __init__(self, path: Path, config: pytest.Config) -> None:
        self.path, self.config = path, config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(data) + "\n")


def read_reports(path: Path, config: pytest.Config) -> Generator[pytest.TestReport, None, None]:
    """Yield the reports that a Writer wrote."""
    for line in path.read_text(encoding="utf-8").splitlines():
        report = config.hook.pytest_report_from_serializable(config=config, data=json.loads(line))
        if isinstance(report.longrepr, list):  # where and why a test was skipped; JSON knows no tuple
            report.longrepr = tuple(report.longrepr)
        yield report


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Spare the garbage collector the tests themselves: some thousands of them, which stay until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    config = session.config
    notebooks = [item for item in session.items if item.path.suffix == ".ipynb"]
    others = groups_of(item for item in session.items if item.path.suffix != ".ipynb")
    alone = not (notebooks and others) or session.testsfailed or config.option.collectonly or config.option.usepdb
    if alone or not hasattr(os, "fork"):
        return None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shares = [itertools.chain(notebooks, claimed(others, folder)), claimed(others, folder)]
        children = [start(session, share, folder / f"reports-{n}.jsonl") for n, share in enumerate(shares)]
        try:
            here = run(session, claimed(others, folder))
            for child in children:
                os.waitpid(child, 0)
        except BaseException:
            for child in children:
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGINT)
            raise
        ended = {item.nodeid for item in here}
        for report in itertools.chain(*(read_reports(path, config) for path in sorted(folder.glob("reports-*")))):
            ended |= {report.nodeid} if report.when == "teardown" else set()
            config.hook.pytest_runtest_logstart(nodeid=report.nodeid, location=report.location)
            config.hook.pytest_runtest_logreport(report=report)
        if not session.shouldstop and (lost := [item.nodeid for item in session.items if item.nodeid not in ended]):
            pytest.exit(f"another process ended before {lost[0]}", returncode=1)
    return True


def start(session: pytest.Session, items: Items, path: Path) -> int:
    """Run tests in a new process, which writes its reports to a file; return its id."""
    sys.stdout.flush()
    if child := os.fork():
        return child
    try:
        run_quietly(session.config, path)
        run(session, items)
    finally:
        os._exit(0)


def run(session: pytest.Session, items: Items) -> list[pytest.Item]:
    """Run tests as pytest does, and return them; each is told which comes next, for its fixtures to stay."""
    done = []
    for item, following in itertools.pairwise(itertools.chain(items, [None])):
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        done.append(item)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
    return done


def run_quietly(config: pytest.Config, path: Path) -> None:
    """Let this process report to a file, and capture output in files of its own."""
    capture = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    config.pluginmanager.unregister(name="terminalreporter")
    config.pluginmanager.register(Writer(path, config))
