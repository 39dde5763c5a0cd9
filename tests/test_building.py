"""Building writes notebooks in one form, or says in one sentence why not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from looplab.build import (METADATA, NOTEBOOKS, WIDGET_VIEW, BuildError, build, find_faults, find_notebooks, main,
                           to_normal_form)
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

ROOT = NOTEBOOKS.parent
EXAMPLE = ["""
from io import BytesIO

from IPython.display import display
from ipywidgets import HTML
from PIL import Image


def show_picture():
    png = BytesIO()
    Image.linear_gradient("L").save(png, "PNG")
    display({"image/png": png.getvalue(), "text/plain": "It grows lighter."}, raw=True)


class Twin(HTML):
    def _repr_mimebundle_(self, **kwargs):
        return super()._repr_mimebundle_(**kwargs) | {"text/html": "<b>at rest</b>", "text/plain": "at rest. " * 30}
""", "print('one')\nprint('two', flush=True)\nshow_picture()\nTwin()"]


def write_notebook(path: Path, *cells: NotebookNode) -> Path:
    """Write a notebook as it is, not in normal form."""
    path.write_text(json.dumps(new_notebook() | {"cells": cells}), encoding="utf-8")
    return path


def run_build(notebook: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Build a notebook, and return what is printed."""
    main([str(notebook)])
    return capsys.readouterr().out


def python(*arguments: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run Python in another process, which finds the project only as it is installed."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, encoding="utf-8", timeout=120)


def test_building_twice_gives_the_same_bytes_and_they_hold_no_widget_view(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells = [new_code_cell(source, id=f"c{i}") for i, source in enumerate(EXAMPLE)]
    fails = new_code_cell("1 / 0", id="fails", metadata={"tags": ["raises-exception"], "collapsed": True})
    notebook = write_notebook(tmp_path / "example.ipynb", *cells, fails)
    assert run_build(notebook, capsys) == f"{notebook}: written\n"
    first = notebook.read_bytes()
    assert run_build(notebook, capsys) == f"{notebook}: unchanged\n"
    assert notebook.read_bytes() == first and first.endswith(b"}\n") and not first.endswith(b"\n\n")

    built = json.loads(first)
    _, shows, fails = built["cells"]
    assert built["metadata"] == METADATA and [cell["execution_count"] for cell in built["cells"]] == [1, 2, 3]
    assert [sorted(output.get("data", output)) for output in shows["outputs"]] == [
        ["name", "output_type", "text"], ["image/png", "text/plain"], ["text/html", "text/plain"]]
    assert fails["metadata"] == {"tags": ["raises-exception"]}
    assert fails["outputs"][0]["traceback"] == ["ZeroDivisionError: division by zero"]


def test_a_cell_that_raises_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    cells = new_code_cell("x = 1", id="fine"), new_code_cell("1 / 0", id="bad")
    notebook = write_notebook(tmp_path / "bad.ipynb", *cells)
    before = notebook.read_bytes()
    run = python("-m", "looplab.build", notebook)
    assert (run.stdout, run.returncode) == (f"{notebook}: cell bad raises ZeroDivisionError: division by zero\n", 1)
    assert notebook.read_bytes() == before


def test_check_says_which_notebook_would_change_and_writes_nothing(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = tmp_path / "good.ipynb"
    good.write_text(to_normal_form(new_notebook(cells=[new_markdown_cell("# Good", id="title")])), encoding="utf-8")
    other = write_notebook(tmp_path / "other.ipynb", new_markdown_cell("# Other  ", id="title"))
    before = other.read_bytes()
    assert main(["--check", "--no-run", str(good), str(other)]) == 1
    assert capsys.readouterr().out == f"{good}: unchanged\n{other}: would change\n"
    assert other.read_bytes() == before


def test_a_file_that_is_no_notebook_is_refused_in_one_sentence(tmp_path: Path) -> None:
    broken = tmp_path / "broken.ipynb"
    for text in ("{", "[]", '{"cells": 1}'):
        broken.write_text(text, encoding="utf-8")
        with pytest.raises(BuildError, match=r"^this is not a notebook: .+$"):
            build(broken, run=False)


def test_a_missing_or_doubled_cell_id_is_refused_in_one_sentence(tmp_path: Path) -> None:
    a, b, again = (new_markdown_cell("text", id=cell_id) for cell_id in "aba")
    with pytest.raises(BuildError, match="^the id a stands twice; give cell 3 one of its own$"):
        build(write_notebook(tmp_path / "doubled.ipynb", a, b, again), run=False)
    del b["id"]
    with pytest.raises(BuildError, match="^cell 2 has no id; give it one by hand, for example c02$"):
        build(write_notebook(tmp_path / "missing.ipynb", a, b), run=False)


def test_a_widget_without_a_static_twin_is_a_fault() -> None:
    output = new_output("display_data", {WIDGET_VIEW: {}, "text/plain": "IntSlider(value=0)"})
    cell = new_code_cell("slider", id="slider", outputs=[output])
    assert list(find_faults(new_notebook(cells=[cell]))) == [
        "cell slider shows a widget that has no static twin in text/html and text/plain"]


def test_neighbouring_streams_become_one() -> None:
    outputs = [new_output("stream", name="stdout", text=text) for text in "abc"]
    outputs.insert(2, new_output("display_data", {"text/plain": "x"}))
    built = json.loads(to_normal_form(new_notebook(cells=[new_code_cell("", id="c1", outputs=outputs)])))
    assert [output.get("text") for output in built["cells"][0]["outputs"]] == [["ab"], None, ["c"]]


class Collected:
    """A plugin that keeps the names of the files in which pytest finds tests."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        self.names.add(item.path.name)


@pytest.fixture
def list_collected(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], set[str]]:
    """Give a function that returns which files in folder/notebooks pytest would run with the project's settings."""

    def collected(folder: Path) -> set[str]:
        found = Collected()
        monkeypatch.chdir(folder)
        pytest.main(["-c", str(ROOT / "pyproject.toml"), "--collect-only", "notebooks"], plugins=[found])
        return found.names

    return collected


def test_pytest_runs_every_notebook_and_nothing_of_the_bench(list_collected: Callable[[Path], set[str]]) -> None:
    assert list_collected(ROOT) == {path.name for path in find_notebooks()}


def test_pytest_leaves_a_readers_own_notebooks_alone(
        tmp_path: Path, list_collected: Callable[[Path], set[str]]) -> None:
    (tmp_path / "notebooks").mkdir()
    for name in ("my_loop.ipynb", "Untitled.ipynb", "Untitled1.ipynb", "01_ours.ipynb"):
        write_notebook(tmp_path / "notebooks" / name, new_code_cell("1", id="c1"))
    assert list_collected(tmp_path) == {"01_ours.ipynb"}


@pytest.mark.parametrize("folder", ["project", "notebooks", "elsewhere"])
def test_agentloop_and_looplab_are_imported_from_any_folder(folder: str, tmp_path: Path) -> None:
    cwd = {"project": ROOT, "notebooks": NOTEBOOKS, "elsewhere": tmp_path}[folder]
    imports = python("-c", "import agentloop, looplab; print(agentloop.__file__); print(looplab.__file__)", cwd=cwd)
    assert imports.stdout.splitlines() == [str(ROOT / "agentloop.py"), str(NOTEBOOKS / "looplab" / "__init__.py")]
