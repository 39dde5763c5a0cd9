"""The tests run in processes side by side, and whatever becomes of them in any is told."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="here all runs in one process")
NBVAL = ["-p", "looplab.no_grammars", "-p", "nbval.plugin"]
PROJECT_SETTINGS = ["-c", str(Path(__file__).parent.parent / "pyproject.toml"), "--rootdir=."]
HOOK = "from side_by_side import pytest_runtestloop\n"
A_NOTEBOOK_IS_PYTHON = """
import pytest


class Code(pytest.Item):
    def runtest(self):
        exec(self.path.read_text(encoding="utf-8"), {})


class Notebook(pytest.File):
    def collect(self):
        yield Code.from_parent(self, name="two")


def pytest_collect_file(file_path, parent):
    if file_path.suffix == ".ipynb":
        return Notebook.from_parent(parent, path=file_path)
"""
NOTES_ITS_PROCESS = """
import os
import re
from pathlib import Path


def test_{0}():
    with Path("{0}.txt").open("a", encoding="utf-8") as file:
        file.write(f"{{os.getpid()}} ")
"""
DIES = "import os, signal\n\nos.kill(os.getpid(), signal.SIGKILL)\n"
SKIPS = "import pytest\n\npytest.skip('not here')\n"


def run_beside(folder: Path, hooks: str, *options: str) -> tuple[int, str]:
    """Run the tests of a folder in several processes; return the exit code of pytest and what it printed.

    Of the plugins that are installed it loads those in `options`.
    """
    (folder / "test_one.py").write_text(NOTES_ITS_PROCESS.format("one"), encoding="utf-8")
    (folder / "conftest.py").write_text(HOOK + hooks, encoding="utf-8")
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), environment.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, "."]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", timeout=120)
    return done.returncode, done.stdout


def run_python_beside(folder: Path, notebook: str, *options: str) -> tuple[int, str]:
    """Run a file of Python in the place of a notebook, which takes less time."""
    (folder / "two.ipynb").write_text(notebook, encoding="utf-8")
    return run_beside(folder, A_NOTEBOOK_IS_PYTHON, *options)


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


def test_each_test_runs_once_in_one_of_the_processes(tmp_path):
    names = [f"a{i}" for i in range(20)]
    for name in names:
        (tmp_path / f"test_{name}.py").write_text(NOTES_ITS_PROCESS.format(name), encoding="utf-8")
    note = NOTES_ITS_PROCESS.format("two") + "\n\ntest_two()\n"
    code, printed = run_python_beside(tmp_path, note)
    assert code == 0 and "22 passed" in printed
    ran = [(tmp_path / f"{name}.txt").read_text(encoding="utf-8").split() for name in [*names, "one", "two"]]
    assert {len(pids) for pids in ran} == {1}
    assert len({pid for pids in ran for pid in pids}) > 1


def test_a_failure_in_another_process_fails_the_run(tmp_path):
    code, printed = run_python_beside(tmp_path, "assert 1 + 1 == 3\n")
    assert code == 1 and "1 failed, 1 passed" in printed and "FAILED two.ipynb::two" in printed


def test_a_skip_in_another_process_is_told_with_its_reason(tmp_path):
    code, printed = run_python_beside(tmp_path, SKIPS, "-rs", "--junitxml=report.xml")
    assert code == 0 and "1 passed, 1 skipped" in printed and "not here" in printed
    assert "not here" in (tmp_path / "report.xml").read_text(encoding="utf-8")


def test_another_process_that_dies_fails_the_run(tmp_path):
    code, printed = run_python_beside(tmp_path, DIES)
    assert code == 1 and re.search("another process ended before (two.ipynb::two|test_one.py::test_one)", printed)
