"""Run the notebooks and some slow tests beside the others, in a second process: together they take half as long."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

SLOW = {f"test_{name}.py"
        for name in ("building", "exercises", "judging", "player", "project", "side_by_side", "weaving")}


def is_beside(item: pytest.Item) -> bool:
    """Say whether a test belongs into the second process; the two share nothing, and take about as long.

    The tests of one folder share a browser, so they stay together.
    """
    return item.path.suffix == ".ipynb" or item.path.name in SLOW and item.path.parent.name != "browser"


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


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, Any, Any]:
    config = session.config
    beside = [item for item in session.items if is_beside(item)]
    others = [item for item in session.items if not is_beside(item)]
    alone = not (beside and others) or config.option.collectonly or config.option.usepdb
    if alone or not hasattr(os, "fork"):
        return (yield)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "reports.jsonl")
        path.touch()
        sys.stdout.flush()
        child = os.fork()
        session.items[:] = others if child else beside
        if not child:
            run_quietly(config, path)
            try:
                yield
            finally:
                os._exit(0)
        try:
            outcome = yield
            os.waitpid(child, 0)
        except BaseException:
            os.kill(child, signal.SIGINT)
            raise
        ended = set()
        for report in read_reports(path, config):
            ended |= {report.nodeid} if report.when == "teardown" else set()
            config.hook.pytest_runtest_logstart(nodeid=report.nodeid, location=report.location)
            config.hook.pytest_runtest_logreport(report=report)
        if not session.shouldstop and (lost := [item.nodeid for item in beside if item.nodeid not in ended]):
            pytest.exit(f"the second process ended before {lost[0]}", returncode=1)
        return outcome


def run_quietly(config: pytest.Config, path: Path) -> None:
    """Let this process report to a file, and capture output in files of its own."""
    capture = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    config.pluginmanager.unregister(name="terminalreporter")
    config.pluginmanager.register(Writer(path, config))
