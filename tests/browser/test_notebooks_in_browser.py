"""Every notebook in JupyterLab, run from the top to the end."""

import json
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ERRORS = """jupyterapp.shell.currentWidget.content.widgets
    .filter(cell => cell.model.type === 'code')
    .filter(cell => cell.model.outputs.toJSON().some(output => output.output_type === 'error'))
    .map(cell => cell.model.id)"""


@pytest.mark.parametrize("source", sorted((ROOT / "notebooks").glob("[0-9]*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_runs_to_its_end_and_only_the_cells_raise_that_say_so(notebook, lab, source):
    folder = lab[2]
    for name in ("figures", "notebooks/traces"):
        shutil.copytree(ROOT / name, folder / name, dirs_exist_ok=True)
    book = json.loads(source.read_text(encoding="utf-8"))
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    for cell in code:
        cell["outputs"], cell["execution_count"] = [], None
    path = folder / "notebooks" / source.name
    path.write_text(json.dumps(book), encoding="utf-8")
    page = notebook(path)
    raising = [cell["id"] for cell in code if "raises-exception" in cell["metadata"].get("tags", [])]
    assert page.evaluate(ERRORS) == raising
