"""The notebooks are the source of agentloop.py: their cells join to it, and each notebook leaves a working file."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest
from judged_files import Judge, judge_files
from looplab import weave
from looplab.weave import AGENTLOOP, Cell, explain_difference, find_cells

ROOT = AGENTLOOP.parent
PLAIN = (ROOT / "tests/fixtures/plain.py").read_text(encoding="utf-8")
CELLS = find_cells("agentloop")
BUILDING = sorted({cell.notebook for cell in CELLS})


def write_notebook(path: Path, sources: dict[str, str], *more_tags: str) -> Path:
    """Write a notebook of cells tagged agentloop, by id, which is all that weaving reads."""
    cells: list[dict[str, Any]] = [{"cell_type": "markdown", "id": "title", "metadata": {}, "source": ["# Title"]}]
    for cell_id, source in sources.items():
        metadata = {"tags": ["agentloop", *more_tags]}
        cells.append({"cell_type": "code", "id": cell_id, "metadata": metadata, "source": source.splitlines(True)})
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    return path


def test_agentloop_py_is_the_joined_agentloop_cells_byte_for_byte() -> None:
    difference = explain_difference(CELLS, AGENTLOOP.read_bytes().decode("utf-8"))
    assert not difference, difference


def test_the_file_begins_in_01_with_its_docstring_and_the_future_import() -> None:
    file = ast.parse(weave.weave(CELLS))
    assert CELLS[0].notebook.name == "01_messages.ipynb"
    assert ast.get_docstring(file) and ast.unparse(file.body[1]) == "from __future__ import annotations"


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: f"{cell.notebook.stem}-{cell.id}")
def test_an_agentloop_cell_holds_whole_top_level_units(cell: Cell) -> None:
    compile(cell.source, str(cell), "exec")
    assert cell.source == cell.source.strip(), f"{cell} begins or ends with an empty line or a space"
    assert "draft" not in cell.tags, f"{cell} cannot be both: a draft is what agentloop.py does not keep"


def defined_names(cells: list[Cell]) -> set[str]:
    """Return the functions and classes that cells define."""
    units = ast.parse(weave.weave(cells)).body
    return {unit.name for unit in units if isinstance(unit, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))}


def file_as_of(notebook: Path) -> str:
    """Return what the cells up to a notebook join to, with some of its drafts.

    Drafts that are whole take part, and those of a name that a later notebook builds, like run_agent in 04.
    """
    so_far = [cell for cell in CELLS if cell.notebook <= notebook]
    to_come = defined_names(CELLS) - defined_names(so_far)
    drafts = [cell for cell in find_cells("draft") if cell.notebook == notebook]
    drafts = [cell for cell in drafts if "whole" in cell.tags or defined_names([cell]) & to_come]
    return weave.weave(so_far + drafts)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    """Return what the suite says of the file as of each notebook."""
    files = {notebook.stem: (file_as_of(notebook), min(int(notebook.name[:2]), 5)) for notebook in BUILDING}
    return judge_files(tmp_path_factory.mktemp("so_far"), files)


@pytest.mark.parametrize("notebook", BUILDING, ids=lambda notebook: notebook.stem)
def test_the_file_as_of_a_notebook_passes_that_stage(notebook: Path, judged: Judge) -> None:
    rows = judged(notebook.stem)
    assert {row["stage"] for row in rows} == set(range(1, min(int(notebook.name[:2]), 5) + 1))
    assert [row for row in rows if row["outcome"] != "passed"] == []


def test_the_interview_loop_of_00_and_05_is_the_plain_solution_that_passes_all_stages() -> None:
    shown = find_cells("whole")
    assert [cell.notebook.name[:2] for cell in shown] == ["00", "05"]
    for cell in shown:
        assert cell.source.startswith("def run_agent(") and len(cell.source.splitlines()) == 25
        assert f"\n\n{cell.source}\n" in PLAIN


def test_the_diff_in_05_goes_from_the_interview_loop_to_the_reference() -> None:
    text = (ROOT / "notebooks/05_exits.ipynb").read_text(encoding="utf-8")
    [source] = ["".join(cell["source"]) for cell in json.loads(text)["cells"] if "```diff\n" in cell["source"]]
    diff = source.split("```diff\n")[1].split("\n```")[0].split("\n")
    reference = next(cell.source for cell in CELLS if cell.id == "continue-agent")
    for line in diff:
        sign, code, comment = re.fullmatch(r"([+-]) (.*?)(?: +# (.*))?", line).groups()
        assert bool(comment) == (sign == "+"), f"{line}: what comes in has its reason beside it"
        parts = re.findall(r"[\w.]+\(|except \w+", code) if sign == "+" else [code.partition("...")[0]]
        assert parts and all(part in (reference if sign == "+" else PLAIN) for part in parts), line
    reasons = " ".join(diff)
    for reason in ("own copies", "fresh ids", "Ctrl-C", "Stop", "`watch`", "can go on", "measured once"):
        assert reason in reasons


def test_cells_of_the_demo_come_last_wherever_they_stand(tmp_path: Path) -> None:
    write_notebook(tmp_path / "01_one.ipynb", {"world": "a = 1"}, "demo")
    write_notebook(tmp_path / "02_two.ipynb", {"tool": "b = 2"})
    write_notebook(tmp_path / "03_three.ipynb", {"main": "c = 3"}, "demo")
    assert weave.weave(find_cells("agentloop", tmp_path)) == "b = 2\n\n\na = 1\n\n\nc = 3\n"


def test_a_difference_names_notebook_and_cell_and_says_what_to_do(tmp_path: Path) -> None:
    write_notebook(tmp_path / "01_one.ipynb", {"first": "a = 1", "second": "b = 2\nc = 3"})
    write_notebook(tmp_path / "02_two.ipynb", {"third": "d = 4", "fourth": "e = 5"})
    cells = find_cells("agentloop", tmp_path)
    text = weave.weave(cells)
    assert text == "a = 1\n\n\nb = 2\nc = 3\n\n\nd = 4\n\n\ne = 5\n"
    assert explain_difference(cells, text) == ""
    difference = explain_difference(cells, text.replace("c = 3", "c = 30").replace("e = 5\n", ""))
    named = [line.strip() for line in difference.splitlines() if line.startswith("  notebooks/")]
    assert named == ["notebooks/01_one.ipynb, cell second", "notebooks/02_two.ipynb, cell fourth"]
    assert "-c = 30\n+c = 3\n" in difference
    assert difference.endswith("edit the cell and run `python -m looplab.weave`.")


@pytest.mark.parametrize("change", ["\n", " ", "x"])
def test_one_more_byte_at_either_end_is_a_difference(change: str, tmp_path: Path) -> None:
    write_notebook(tmp_path / "01_one.ipynb", {"first": "a = 1"})
    cells = find_cells("agentloop", tmp_path)
    assert explain_difference(cells, "a = 1\n" + change) and explain_difference(cells, change + "a = 1\n")
    assert explain_difference(cells, "a = 1")


def test_weaving_writes_the_file_that_the_cells_join_to(tmp_path: Path) -> None:
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "agentloop.py").write_text("old", encoding="utf-8")
    write_notebook(tmp_path / "notebooks" / "01_one.ipynb", {"first": "a = 1", "second": "é = 2"})
    assert weave.main(tmp_path / "notebooks") == 0
    assert (tmp_path / "agentloop.py").read_bytes() == "a = 1\n\n\né = 2\n".encode()


def test_weaving_leaves_the_file_if_a_cell_is_not_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "agentloop.py").write_text("old", encoding="utf-8")
    write_notebook(tmp_path / "notebooks" / "01_one.ipynb", {"good": "a = 1", "half": "def half():"})
    assert weave.main(tmp_path / "notebooks") == 1
    assert "notebooks/01_one.ipynb, cell half: line 1 is not Python" in capsys.readouterr().out
    assert (tmp_path / "agentloop.py").read_text(encoding="utf-8") == "old"
