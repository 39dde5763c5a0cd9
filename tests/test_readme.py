"""The README prints what really happens, and its commands are the ones that are tried."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from looplab.build import NOTEBOOKS

ROOT = NOTEBOOKS.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SH = re.findall(r"^```sh\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Run a command and return what it prints."""
    return subprocess.run(command, cwd=cwd, capture_output=True, encoding="utf-8", timeout=60, check=True).stdout


@pytest.mark.parametrize("options", [["-I", "-S"], ["-I", "-S", "-O"]], ids=["no packages", "no packages, -O"])
def test_the_demo_needs_no_install_and_prints_what_the_readme_shows(options: list[str], tmp_path: Path) -> None:
    shown = re.search(r"^```text\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert shown and run(sys.executable, *options, ROOT / "agentloop.py", cwd=tmp_path).strip() == shown[1].strip()


def test_the_readme_has_three_commands_first_the_demo_then_jupyterlab_then_the_tests() -> None:
    ends = ["agentloop.py", "notebooks/00_start_here.ipynb", "-m pytest"]
    assert len(SH) == len(ends)
    assert all(command.strip().endswith(end) for command, end in zip(SH, ends))


def test_both_commands_set_up_in_the_same_way_if_that_was_not_done() -> None:
    first, second = (command.rpartition(" && ")[0] for command in SH[1:])
    assert first == second and "-r requirements.txt" in first


@pytest.mark.skipif(not shutil.which("bash"), reason="CI runs in bash")
def test_ci_runs_the_commands_as_printed() -> None:
    assert run("bash", ".ci/run", "--list") == "".join(SH)


def test_the_map_names_exactly_the_notebooks_there_are_in_order() -> None:
    mapped = re.findall(r"^\| \[.*?\]\((notebooks/.*?)\) \|", README, re.MULTILINE)
    assert mapped == [f"notebooks/{path.name}" for path in sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))]


@pytest.mark.parametrize("path", [ROOT / "README.md", NOTEBOOKS / "00_start_here.ipynb"], ids=lambda path: path.stem)
def test_a_map_gives_the_minutes_that_each_notebook_says_itself(path: Path) -> None:
    rows = re.findall(r"\| \[(\d\d) .*?\| (\d+) \|", path.read_text(encoding="utf-8"))
    texts = {book.name[:2]: book.read_text(encoding="utf-8") for book in NOTEBOOKS.glob("*.ipynb")}
    assert rows and [row for row in rows if f"**{row[1]} minutes" not in texts[row[0]]] == []


def test_every_link_and_picture_of_the_readme_is_a_file_of_the_project() -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", README)
    assert targets and [target for target in targets if not (ROOT / target).exists()] == []


def test_the_five_packages_are_pinned() -> None:
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").split("\n")
    names = [line.partition("==")[0] for line in lines if re.fullmatch(r"[a-z]+==[\d.]+", line)]
    assert names == ["jupyterlab", "ipywidgets", "matplotlib", "nbval", "pytest"] and lines[5:] == ["-e .", ""]
