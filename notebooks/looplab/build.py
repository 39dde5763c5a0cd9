"""Run the notebooks and write them in one normal form, so that two runs give the same bytes.

    python -m looplab.build [--check] [--no-run] [notebooks/02_validator.ipynb ...]

Normal form: metadata that says no more than the kernel, cells with their tags, outputs without widget views,
tracebacks of one line. A notebook with a fault is named in one sentence and left as it is.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from looplab import no_grammars as no_grammars  # before what it makes quick to import
from nbclient import NotebookClient
from nbclient.exceptions import CellControlSignal, CellExecutionError, DeadKernelError
from nbformat import NotebookNode, ValidationError, validate
from nbformat.v4 import reads, writes

NOTEBOOKS = Path(__file__).parents[1]
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
UNSTABLE = {
    "an address": re.compile(r"\b0x[0-9a-fA-F]{6,}"),
    "an absolute path": re.compile(r"(?<![\w.])/(?:home|mnt|opt|private|root|tmp|usr|var|Users)/|\b[A-Z]:\\Users"),
    "a date and a time": re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d"),
}


class BuildError(ValueError):
    """A notebook that cannot be built; the text is one sentence that says where and why."""


def find_notebooks() -> list[Path]:
    """List the notebooks and their solutions in order; a reader's own my_* and Untitled* are none of them."""
    found = [*sorted(NOTEBOOKS.glob("*.ipynb")), *sorted(NOTEBOOKS.glob("solutions/*.ipynb"))]
    return [path for path in found if not path.name.startswith(("my_", "Untitled"))]


def read_notebook(path: Path) -> NotebookNode:
    """Read a notebook as it is; raise BuildError unless every cell has an id of its own, given by hand."""
    try:
        notebook = reads(path.read_text(encoding="utf-8"))  # the plain reader: nbformat.read makes up missing ids
        ids = [cell.get("id") for cell in notebook.cells]
    except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
        raise BuildError(f"this is not a notebook: {error!r}") from None
    for position, cell_id in enumerate(ids, start=1):
        if not cell_id:
            raise BuildError(f"cell {position} has no id; give it one by hand, for example c{position:02}")
        if ids.index(cell_id) < position - 1:
            raise BuildError(f"the id {cell_id} stands twice; give cell {position} one of its own")
    return notebook


def run_notebook(notebook: NotebookNode, path: Path) -> None:
    """Run all cells in a new kernel, in the notebook's folder, and keep their outputs.

    Raises BuildError if a cell raises that is not tagged raises-exception.
    """
    folder = {"metadata": {"path": str(path.resolve().parent)}}
    client = NotebookClient(notebook, timeout=60, kernel_name="python3", record_timing=False, resources=folder,
                            extra_arguments=["--log-level=ERROR"])
    for cell in code_cells(notebook):
        cell.outputs, cell.execution_count = [], None
    try:
        client.execute()
    except (CellControlSignal, DeadKernelError) as error:
        last = next((cell for cell in reversed(code_cells(notebook)) if cell.execution_count), notebook.cells[0])
        what = f"{error.ename}: {error.evalue}" if isinstance(error, CellExecutionError) else type(error).__name__
        raise BuildError(f"cell {last.id} raises {what}") from None


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """List the code cells in order."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def find_faults(notebook: NotebookNode) -> Iterator[str]:
    """Yield one sentence for each output that must not be stored."""
    for cell in code_cells(notebook):
        raises = any(output.output_type == "error" for output in cell.outputs)
        if raises != ("raises-exception" in cell.metadata.get("tags", [])):
            yield f"cell {cell.id} {'raises' if raises else 'does not raise'}, against its tags"
        for output in cell.outputs:
            data = output.get("data", {})
            if output.get("name") == "stderr":
                yield f"cell {cell.id} writes to stderr: {output.text.strip()}"
            if WIDGET_VIEW in data and not ("text/html" in data and len(data.get("text/plain", "")) > 60):
                yield f"cell {cell.id} shows a widget that has no static twin in text/html and text/plain"
            for text in texts(output):
                for name, pattern in UNSTABLE.items():
                    if found := pattern.search(text):
                        yield f"cell {cell.id} shows {name}: {text[found.start():][:40]!r}"


def texts(output: NotebookNode) -> list[str]:
    """List what an output says in words."""
    words = [text for kind, text in output.get("data", {}).items() if kind.startswith("text/")]
    return words + [output[key] for key in ("text", "evalue") if key in output]


def to_normal_form(notebook: NotebookNode) -> str:
    """Return the text of the notebook's file in normal form."""
    notebook.metadata = METADATA
    notebook.nbformat_minor = 5
    for cell in notebook.cells:
        cell.source = cell.source.rstrip()
        cell.metadata = {key: value for key, value in cell.metadata.items() if key in ("tags", "nbgrader")}
    for cell in code_cells(notebook):
        cell.outputs = list(normal_outputs(cell.outputs))
    validate(notebook)
    return writes(notebook).rstrip("\n") + "\n"


def normal_outputs(outputs: list[NotebookNode]) -> Iterator[NotebookNode]:
    """Yield the outputs with neighbouring streams joined, widget views dropped and tracebacks cut to one line."""
    stream = None
    for output in outputs:
        if stream and output.get("name") == stream.name:
            stream.text += output.text
            continue
        stream = output if output.output_type == "stream" else None
        if output.output_type == "error":
            output.traceback = [f"{output.ename}: {output.evalue}"]
        if "data" in output:
            output.data.pop(WIDGET_VIEW, None)
            output.metadata = {kind: value for kind, value in output.metadata.items() if kind in output.data}
        yield output


def build(path: Path, run: bool = True) -> str:
    """Return the text of a notebook's file in normal form, run anew unless `run` is False.

    Raises BuildError for a notebook that must not be stored so.
    """
    notebook = read_notebook(path)
    if run:
        run_notebook(notebook, path)
    if faults := list(find_faults(notebook)):
        raise BuildError("; ".join(faults))
    try:
        return to_normal_form(notebook)
    except ValidationError as error:
        raise BuildError(f"this is not a notebook: {error.message}") from None


def main(arguments: list[str] | None = None) -> int:
    """Build the notebooks named on the command line, or all; return 1 if one has a fault or would change."""
    parser = argparse.ArgumentParser(prog="python -m looplab.build", description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=Path, help="by default all, solutions included")
    parser.add_argument("--check", action="store_true", help="say which would change, and write nothing")
    parser.add_argument("--no-run", action="store_true", help="keep the outputs; only bring them into normal form")
    options = parser.parse_args(arguments)
    failed = False
    for path in options.notebooks or find_notebooks():
        try:
            text = build(path, run=not options.no_run)
        except BuildError as error:
            print(f"{path}: {error}")
            failed = True
            continue
        changed = text.encode() != path.read_bytes()
        if changed and not options.check:
            path.write_text(text, encoding="utf-8", newline="\n")
        failed |= changed and options.check
        print(f"{path}: {('would change' if options.check else 'written') if changed else 'unchanged'}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
