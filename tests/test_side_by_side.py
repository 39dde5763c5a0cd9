"""The notebooks run in a second process beside the other tests, and whatever becomes of them is told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="here all runs in one process")
DIES = "import os, signal; os.kill(os.getppid(), signal.SIGKILL)"  # the second process, which is the kernel's parent


def run_beside(folder: Path, source: str, printed: str) -> tuple[int, str]:
    """Run a test and a notebook of one cell; return the exit code of pytest and what it printed."""
    outputs = [{"output_type": "stream", "name": "stdout", "text": printed}] if printed else []
    cell = {"cell_type": "code", "id": "c1", "metadata": {}, "source": source, "outputs": outputs, "execution_count": 1}
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {"cells": [cell], "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    (folder / "a.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    (folder / "test_one.py").write_text("def test_one(): pass\n", encoding="utf-8")
    hook = "from side_by_side import pytest_runtestloop\n"
    (folder / "conftest.py").write_text(hook, encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    command = [sys.executable, "-m", "pytest", "-q", "--nbval", "--nbval-current-env", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", timeout=120)
    return done.returncode, done.stdout


def test_a_notebook_that_differs_fails_the_run(tmp_path):
    code, printed = run_beside(tmp_path, "print(1)", "2\n")
    assert code == 1 and "Cell outputs differ" in printed and "1 failed, 1 passed" in printed


def test_a_notebook_that_holds_counts_as_passed(tmp_path):
    code, printed = run_beside(tmp_path, "print(1)", "1\n")
    assert code == 0 and "2 passed" in printed


def test_a_second_process_that_dies_fails_the_run(tmp_path):
    code, printed = run_beside(tmp_path, DIES, "")
    assert code == 1 and "the second process ended before a.ipynb::Cell 0" in printed
