"""The notebooks run in a second process beside the other tests, and whatever becomes of them is told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="here all runs in one process")
NBVAL = ["-p", "looplab.no_grammars", "-p", "nbval.plugin"]
PROJECT_SETTINGS = ["-c", str(Path(__file__).parent.parent / "pyproject.toml"), "--rootdir=."]
NOTES_ITS_PROCESS = """
import os
from pathlib import Path


def test_{0}():
    Path("{0}.txt").write_text(str(os.getpid()), encoding="utf-8")
"""
DIES = """
import os
import signal


def test_two():
    os.kill(os.getpid(), signal.SIGKILL)
"""
SKIPS = "import pytest\n\ndef test_two(): pytest.skip('not here')\n"


def run_beside(folder: Path, beside: str, *options: str) -> tuple[int, str]:
    """Run a test, and beside it one in a file whose name puts it into the second process.

    Return the exit code of pytest and what it printed. Of the plugins that are installed it loads those in `options`.
    """
    (folder / "test_weaving.py").write_text(beside, encoding="utf-8")
    (folder / "test_one.py").write_text(NOTES_ITS_PROCESS.format("one"), encoding="utf-8")
    hook = "from side_by_side import pytest_runtestloop\n"
    (folder / "conftest.py").write_text(hook, encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, "."]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", timeout=120)
    return done.returncode, done.stdout


def write_notebook(path: Path, source: str, printed: str) -> None:
    """Write a notebook of one cell."""
    output = {"output_type": "stream", "name": "stdout", "text": printed}
    cell = {"cell_type": "code", "id": "c1", "metadata": {}, "source": source, "outputs": [output]}
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {"cells": [cell | {"execution_count": 1}], "metadata": {"kernelspec": kernel}}
    path.write_text(json.dumps(notebook | {"nbformat": 4, "nbformat_minor": 5}), encoding="utf-8")


def test_an_output_that_is_not_the_stored_one_fails_the_run(tmp_path):
    write_notebook(tmp_path / "holds.ipynb", "print(1)", "1\n")
    write_notebook(tmp_path / "differs.ipynb", "print(1)", "2\n")
    code, printed = run_beside(tmp_path, "", *NBVAL, *PROJECT_SETTINGS)
    assert code == 1 and "Cell outputs differ" in printed and "1 failed, 2 passed" in printed
    assert "FAILED differs.ipynb::Cell 0" in printed


def test_what_holds_in_the_second_process_counts_as_passed(tmp_path):
    code, printed = run_beside(tmp_path, NOTES_ITS_PROCESS.format("two"))
    assert code == 0 and "2 passed" in printed
    one, two = ((tmp_path / f"{name}.txt").read_text(encoding="utf-8") for name in ("one", "two"))
    assert one != two


def test_a_skip_in_the_second_process_is_told_with_its_reason(tmp_path):
    code, printed = run_beside(tmp_path, SKIPS, "-rs", "--junitxml=report.xml")
    assert code == 0 and "1 passed, 1 skipped" in printed and "not here" in printed
    assert "not here" in (tmp_path / "report.xml").read_text(encoding="utf-8")


def test_a_second_process_that_dies_fails_the_run(tmp_path):
    code, printed = run_beside(tmp_path, DIES)
    assert code == 1 and "the second process ended before test_weaving.py::test_two" in printed
