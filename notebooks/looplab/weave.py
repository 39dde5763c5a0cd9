"""Join the cells tagged agentloop into agentloop.py, those of the demo last. One direction: notebooks are the source.

    python -m looplab.weave
"""

import ast
import difflib
import json
import sys
from dataclasses import dataclass
from pathlib import Path

NOTEBOOKS = Path(__file__).parents[1]
AGENTLOOP = NOTEBOOKS.parent / "agentloop.py"
ADVICE = "The notebooks are the source: edit the cell and run `python -m looplab.weave`."


@dataclass(frozen=True)
class Cell:
    """A code cell, and where it stands."""

    notebook: Path
    id: str
    tags: tuple[str, ...]
    source: str

    def __str__(self) -> str:
        return f"notebooks/{self.notebook.name}, cell {self.id}"


def read_cells(notebook: Path) -> list[Cell]:
    """List the code cells of a notebook in order."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [Cell(notebook, cell["id"], tuple(cell["metadata"].get("tags", [])), "".join(cell["source"]))
            for cell in cells if cell["cell_type"] == "code"]


def find_cells(tag: str, folder: Path = NOTEBOOKS) -> list[Cell]:
    """List the cells with a tag over all numbered notebooks in order, and after them those tagged demo too."""
    notebooks = sorted(folder.glob("[0-9][0-9]_*.ipynb"))
    cells = [cell for notebook in notebooks for cell in read_cells(notebook) if tag in cell.tags]
    return sorted(cells, key=lambda cell: "demo" in cell.tags)


def weave(cells: list[Cell]) -> str:
    """Join cells with two blank lines, as PEP 8 asks between top-level units."""
    return "\n\n\n".join(cell.source for cell in cells) + "\n"


def explain_difference(cells: list[Cell], text: str) -> str:
    """Return "" if `text` is what the cells join to, else which cells differ, the diff, and what to do."""
    old, new = text.splitlines(keepends=True), weave(cells).splitlines(keepends=True)
    owners = [cell for cell in cells for _ in range(cell.source.count("\n") + 3)]
    changes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    changed_lines = [range(first, max(end, first + 1)) for kind, _, _, first, end in changes if kind != "equal"]
    if not changed_lines:
        return ""
    diff = difflib.unified_diff(old, new, "agentloop.py", "the cells, joined")
    named = "\n  ".join(dict.fromkeys(str(owners[line]) for lines in changed_lines for line in lines))
    return f"agentloop.py is not what the cells join to. They differ in\n  {named}\n{''.join(diff)}{ADVICE}"


def main(folder: Path = NOTEBOOKS) -> int:
    """Write agentloop.py, beside `folder`, from the cells; return 1, and leave the file, if a cell is not whole."""
    cells = find_cells("agentloop", folder)
    for cell in cells:
        try:
            ast.parse(cell.source)
        except SyntaxError as error:
            print(f"{cell}: line {error.lineno} is not Python: {error.msg}. agentloop.py was left as it is.")
            return 1
    (folder.parent / "agentloop.py").write_text(weave(cells), encoding="utf-8", newline="\n")
    print(f"agentloop.py was written from {len(cells)} cells")
    return 0


if __name__ == "__main__":
    sys.exit(main())
