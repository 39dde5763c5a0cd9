"""Which tests of the project fail on which fault of the clinic.

    python -m looplab.matrix [FAULT ...]

Runs the stages in tests/spec and the tests of the core on each broken loop, prints how many fail, and which one is
the first. Exits with 1 if a fault fails no test, or two fail the same ones. It takes some minutes.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
TESTS = ["tests/spec", *(f"tests/test_{name}.py" for name in ("messages", "validator", "registry", "loop", "exits"))]
SECONDS = 3  # for one test; some would never end on a loop that does not
OPTIONS = ["-p", "no:cacheprovider", "-o", "addopts=", "-q", "--tb=no", "--no-header", "--assert=plain"]


def failing_each(jobs: Sequence[tuple[str, Sequence[str]]]) -> list[set[str]]:
    """Return, for each text of a loop and some tests, the ids of the tests that fail on it."""
    with tempfile.TemporaryDirectory() as folder:
        asked, told = Path(folder, "jobs.json"), Path(folder, "failed.json")
        asked.write_text(json.dumps([[text, list(tests)] for text, tests in jobs]), encoding="utf-8")
        environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"} | {
            "PYTHONPATH": os.pathsep.join([folder, str(ROOT / "notebooks")]), "PYTHONSAFEPATH": "1",
            "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        command = [sys.executable, "-c", "from looplab.matrix import work; work()", folder]
        done = subprocess.run(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        if not told.exists():
            raise RuntimeError(f"pytest did not end by itself:\n{done.stdout.decode('utf-8', 'replace')[-4000:]}")
        return [set(failed) for failed in json.loads(told.read_text(encoding="utf-8"))]


def main(names: list[str]) -> int:
    """Print the matrix; return 1 if a fault is not caught, or two are caught by the same tests."""
    from looplab.faults import FAULTS, broken_text, our_text

    known = failing_each([(our_text(), TESTS)])[0]  # what fails without a fault tells nothing
    print(f"{len(known)} tests fail without a fault")
    found: dict[frozenset[str], list[str]] = {}
    for fault in FAULTS:
        if names and fault.name not in names:
            continue
        failed = failing_each([(broken_text(fault), TESTS)])[0] - known
        found.setdefault(frozenset(failed), []).append(fault.name)
        print(f"{fault.number:>2} {fault.name:<27}{len(failed):>4} fail  {min(failed, default='')}", flush=True)
    alike = [same for same in found.values() if len(same) > 1]
    print(f"not caught: {found.get(frozenset(), 'none')}; caught by the same tests: {alike or 'none'}")
    return int(bool(alike) or frozenset() in found)


# --- In the other process ------------------------------------------------------------------------------------


class TooLong(BaseException):
    """Ends a test that does not end by itself."""


class Notes:
    """Notes which tests fail, and ends those that take too long where the system can."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, Any, Any]:
        def stop(*_: Any) -> None:
            raise TooLong

        if hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, stop)
            signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            return (yield)
        finally:
            if hasattr(signal, "setitimer"):
                signal.setitimer(signal.ITIMER_REAL, 0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)


def work() -> None:
    """Do the jobs in the folder that is the first argument: each loop is imported anew, as are the tests."""
    gc.freeze()  # pytest collects several times in each session
    folder = Path(sys.argv[1])
    loop, failed = folder / "agentloop.py", []
    for text, tests in json.loads((folder / "jobs.json").read_text(encoding="utf-8")):
        loop.write_text(text, encoding="utf-8")
        importlib.invalidate_caches()
        for name, module in list(sys.modules.items()):
            if name == "agentloop" or str(ROOT / "tests") in str(getattr(module, "__file__", "")):
                del sys.modules[name]
        notes = Notes()
        pytest.main([*tests, f"--impl={loop}", *OPTIONS], plugins=[notes])
        failed.append(notes.failed)
    (folder / "failed.json").write_text(json.dumps(failed), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m looplab.matrix", description="Which tests fail on which fault.")
    parser.add_argument("faults", nargs="*", help="names of faults; all if none is given")
    sys.exit(main(parser.parse_args().faults))
