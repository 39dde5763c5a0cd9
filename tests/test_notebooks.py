"""The rules that every committed notebook keeps, solutions included.

A rule is a function that yields one sentence for each fault it finds in a notebook. Beside it stand changes that break
it, so that each rule is shown to find its fault and to be content with a good notebook.
"""

from __future__ import annotations

import ast
import builtins
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest
from looplab.build import NOTEBOOKS, find_faults, find_notebooks, to_normal_form
from looplab.weave import find_cells
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output, reads, writes

UNITS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
TAGS = {"agentloop", "demo", "draft", "whole", "exercise", "raises-exception", "predict", "setup"}


@dataclass(frozen=True)
class Book:
    """A notebook as it stands in its file."""

    path: Path
    text: str

    def __str__(self) -> str:
        return self.path.relative_to(NOTEBOOKS.parent).as_posix()

    @property
    def notebook(self) -> NotebookNode:
        return reads(self.text)

    def cells(self, kind: str) -> list[NotebookNode]:
        return [cell for cell in self.notebook.cells if cell.cell_type == kind]

    def bundles(self) -> Iterator[tuple[str, NotebookNode]]:
        """Yield each output that holds data by kind, and the id of its cell."""
        for cell in self.cells("code"):
            yield from ((cell.id, output.data) for output in cell.outputs if "data" in output)

    def markup(self) -> Iterator[tuple[str, str]]:
        """Yield each text that may hold pictures and links, and the id of its cell."""
        yield from ((cell.id, cell.source) for cell in self.cells("markdown"))
        yield from ((cell_id, data["text/html"]) for cell_id, data in self.bundles() if "text/html" in data)


Rule = Callable[[Book], Iterator[str]]
Change = Callable[[NotebookNode], object]
RULES: list[Rule] = []
BREAKS: list[tuple[Rule, Change]] = []
BOOKS = [Book(path, path.read_bytes().decode("utf-8")) for path in find_notebooks()]


def rule(*breaks: Change) -> Callable[[Rule], Rule]:
    """Register a rule with changes of a good notebook that break it."""

    def register(check: Rule) -> Rule:
        RULES.append(check)
        BREAKS.extend((check, change) for change in breaks)
        return check

    return register


def prose(source: str, cell_id: str = "new") -> Change:
    """Add a markdown cell."""
    return lambda notebook: notebook.cells.append(new_markdown_cell(source, id=cell_id))


def code(source: str, *tags: str, cell_id: str = "new", count: int | None = 2, **data: str) -> Change:
    """Add a code cell that has run; `data` is its output, kinds written like text_html."""

    def change(notebook: NotebookNode) -> None:
        cell = new_code_cell(source, id=cell_id, execution_count=count, metadata={"tags": list(tags)} if tags else {})
        if data:
            bundle = {kind.replace("_", "/", 1): value for kind, value in data.items()}
            cell.outputs = [new_output("display_data", bundle)]
        notebook.cells.append(cell)

    return change


def good_notebook() -> NotebookNode:
    """Return a notebook that keeps every rule."""
    notebook = new_notebook()
    prose("# 03 · Example\n\nSee [01](01_messages.ipynb).", "title")(notebook)
    shown = {"text_html": "<b>1</b>", "text_plain": "One."}
    code("from agentloop import validate_args", cell_id="imports", count=1, **shown)(notebook)
    return reads(to_normal_form(notebook))


def tree(cell: NotebookNode) -> ast.Module:
    """Parse a code cell, in which `await` may stand at the top."""
    return compile(cell.source, cell.id, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


# --- Form -----------------------------------------------------------------------------------------------------


@rule(
    lambda notebook: notebook.metadata.update(widgets={}),
    lambda notebook: notebook.metadata.kernelspec.update(name="x"),
    lambda notebook: notebook.cells[0].metadata.update(collapsed=True),
)
def it_is_in_normal_form_without_widget_state(book: Book) -> Iterator[str]:
    if book.text != to_normal_form(book.notebook):
        yield "is not as `python -m looplab.build` writes it"


@rule(code("x = 1", count=None), code("x = 1", count=3), code("", count=None))
def its_cells_were_run_in_order_and_counts_go_from_1_to_n(book: Book) -> Iterator[str]:
    counts = [cell.execution_count for cell in book.cells("code")]
    if counts != list(range(1, len(counts) + 1)):
        yield f"has the counts {counts}; run `python -m looplab.build`"


@rule(prose("x", "An-Id"), prose("x", "a" * 22), prose("x", "c0ffee12"), prose("x", "title"))
def its_cell_ids_are_short_words_given_by_hand(book: Book) -> Iterator[str]:
    ids = [cell.id for cell in book.notebook.cells]
    for cell_id in ids:
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]{1,20}", cell_id) or re.fullmatch(r"(?=.*\d)[0-9a-f]{8}", cell_id):
            yield f"has the id {cell_id!r}, which is not 2 to 21 of a-z, 0-9 and -, or was made up by a program"
        if ids.count(cell_id) > 1:
            yield f"has the id {cell_id} twice"


@rule(code("x = 1", "solved"), code("x = 1", "agentloop", "draft"))
def its_tags_are_known_and_agree(book: Book) -> Iterator[str]:
    for cell in book.notebook.cells:
        tags = set(cell.metadata.get("tags", []))
        if tags - TAGS or {"agentloop", "draft"} <= tags:
            yield f"cell {cell.id} has the tags {sorted(tags)}"


@rule(code("x = 1", text_plain="x" * 300_000))
def it_is_under_300_kb(book: Book) -> Iterator[str]:
    if (size := len(book.text.encode())) >= 300_000:
        yield f"has {size:,} bytes"


# --- Prose ----------------------------------------------------------------------------------------------------


@rule(
    prose("# Another"),
    lambda notebook: notebook.cells.pop(0),
    lambda notebook: notebook.cells.insert(0, notebook.cells.pop()),
)
def it_begins_with_its_one_h1(book: Book) -> Iterator[str]:
    titles = [cell.id for cell in book.cells("markdown") for line in cell.source.splitlines() if line.startswith("# ")]
    if titles != [book.notebook.cells[0].id]:
        yield f"has its H1 in the cells {titles}"


@rule(prose("word " * 121), prose(""))
def its_markdown_cells_have_1_to_120_words_beside_lists_tables_and_folded_answers(book: Book) -> Iterator[str]:
    for cell in book.cells("markdown"):
        unfolded = re.sub(r"<details>.*?</details>|```.*?```", "", cell.source, flags=re.DOTALL)
        lines = [line for line in unfolded.splitlines() if not re.match(r"\s*([*-] |\d+\. |\|)", line)]
        words = len(" ".join(lines).split())
        if not cell.source.strip() or words > 120:
            yield f"cell {cell.id} has {words} words"


MINUTES = re.compile(r"\*\*(\d+) minutes\.?\*\*")


@rule(prose("**5 minutes.** " + "Word. " * 10), prose("**5 minutes.** " + "Word.\n* Word.\n" * 1000))
def it_takes_about_the_minutes_that_it_says(book: Book) -> Iterator[str]:
    said = MINUTES.search(book.text)
    outputs = [output for cell in book.cells("code") for output in cell.outputs]
    read = [re.sub(r"<details>.*?</details>", "", cell.source, flags=re.DOTALL) for cell in book.cells("markdown")]
    read += [output.get("data", {}).get("text/plain", output.get("text", "")) for output in outputs]
    words = sum(bool(re.search(r"\w", word)) for text in read for word in text.split())
    lines = sum(bool(line.strip()) for cell in book.cells("code") for line in cell.source.splitlines())
    exercises = sum("exercise" in cell.metadata.get("tags", []) for cell in book.cells("code"))
    minutes = words / 220 + lines / 20 + exercises  # to read it all; to solve the exercises comes on top
    if said and abs(minutes - int(said[1])) > 4:
        yield f"says {said[1]} minutes and takes {minutes:.0f}"


@rule(
    prose("![](../agentloop.py)"),
    prose("![A cycle](../figures/none.svg)"),
    prose("![A cycle](https://x.org/a.png)"),
    prose('<img src="../agentloop.py">'),
    code("x = 1", text_html='<img src="//x.org/a.png" alt="A">', text_plain="A."),
)
def its_pictures_have_alt_text_and_are_files_of_the_project(book: Book) -> Iterator[str]:
    for cell_id, text in book.markup():
        pictures = re.findall(r"!\[(.*?)\]\((.*?)\)", text)
        for tag in re.findall(r"<img\b.*?>", text, re.DOTALL):
            pictures.append(tuple("".join(re.findall(rf'\b{key}="(.*?)"', tag)) for key in ("alt", "src")))
        for alt, source in pictures:
            if not alt.strip():
                yield f"cell {cell_id} shows {source} without alt text"
            if not source.startswith("data:") and not (book.path.parent / unquote(source)).is_file():
                yield f"cell {cell_id} shows {source}, which is not a file of the project"


@rule(prose("[next](99_none.ipynb)"), prose('<a href="../none.md">x</a>'))
def its_links_to_files_resolve(book: Book) -> Iterator[str]:
    for cell_id, text in book.markup():
        for target in re.findall(r"(?<!!)\[[^\]]*\]\((.*?)\)", text) + re.findall(r'\bhref="(.*?)"', text):
            file = unquote(target.partition("#")[0])
            if file and not re.match(r"https?:|mailto:", file) and not (book.path.parent / file).exists():
                yield f"cell {cell_id} links to {target}, which does not exist"


# --- Code -----------------------------------------------------------------------------------------------------


@rule(
    code("x = 1\n" * 26),
    code("x = 1\n" * 61, "agentloop"),
    code("x = 1\n" * 13, "draft"),
    code("x = 1\n" * 26, "draft", "whole"),
)
def its_code_cells_have_at_most_25_lines_agentloop_cells_60_and_drafts_12(book: Book) -> Iterator[str]:
    for cell in book.cells("code"):
        tags = cell.metadata.get("tags", [])
        most = 60 if "agentloop" in tags else 12 if "draft" in tags and "whole" not in tags else 25
        if (lines := len(cell.source.splitlines())) > most:
            yield f"cell {cell.id} has {lines} lines, more than {most}"


@rule(code("x = 1\n" * 25))
def two_in_three_of_its_code_cells_have_at_most_12_lines(book: Book) -> Iterator[str]:
    others = [cell for cell in book.cells("code") if "agentloop" not in cell.metadata.get("tags", [])]
    if sum(len(cell.source.splitlines()) > 12 for cell in others) > len(others) / 3:
        yield "has longer ones in more than a third"


@rule(code("name = input('Your name? ')"), code("import getpass"), code("!pip install x"), code("%pip install x"))
def its_code_is_plain_python_that_asks_for_no_input(book: Book) -> Iterator[str]:
    for cell in book.cells("code"):
        try:
            names = {getattr(node, key, "") for node in ast.walk(tree(cell)) for key in ("id", "name", "module")}
        except SyntaxError:
            yield f"cell {cell.id} is not plain Python"
            continue
        if asking := names & {"input", "getpass"}:
            yield f"cell {cell.id} uses {', '.join(asking)}, which waits for a person"


@cache
def homes() -> dict[str, int]:
    """Map each name of agentloop.py to the number of the notebook that builds it."""
    numbers: dict[str, int] = {}
    for cell in find_cells("agentloop"):
        for node in ast.parse(cell.source).body:
            for part in [node] if isinstance(node, UNITS) else ast.walk(node):
                name = getattr(part, "asname", None) or getattr(part, "name", None) or getattr(part, "id", None)
                if name and not isinstance(getattr(part, "ctx", None), ast.Load):
                    numbers.setdefault(name, int(cell.notebook.name[:2]))
    return numbers


@rule(
    code("from agentloop import run_agent"),
    code("from agentloop import ToolRegistry"),
    code("from agentloop import main"),
    code("import agentloop\n\nagentloop.run_agent"),
)
def it_takes_from_agentloop_only_what_earlier_notebooks_built(book: Book) -> Iterator[str]:
    number = int(book.path.name[:2])
    first_unbuilt = number + (book.path.parent.name == "solutions")  # a solution may use what its notebook built
    for cell in book.cells("code") if number else ():
        for node in ast.walk(tree(cell)):
            names = []
            if isinstance(node, ast.ImportFrom) and node.module == "agentloop":
                names = [alias.name for alias in node.names]
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "agentloop":
                names = [node.attr]
            for name in names:
                if homes().get(name, 99) >= first_unbuilt:
                    yield f"cell {cell.id} takes {name}, which no earlier notebook built"


@rule(code("def validate_args(args, schema):\n    return None"), code("class ToolCall:\n    pass", "predict"))
def it_does_not_paste_what_agentloop_holds(book: Book) -> Iterator[str]:
    for cell in book.cells("code"):
        if {"agentloop", "draft", "whole", "exercise"} & set(cell.metadata.get("tags", [])):
            continue
        for node in tree(cell).body:
            if isinstance(node, UNITS) and node.name in homes():
                yield f"cell {cell.id} defines {node.name} again; import it, or tag the cell draft"


def names_in(node: ast.AST) -> Iterator[tuple[str, bool]]:
    """Yield each name in a piece of code, and whether it is used or defined there."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            yield part.id, isinstance(part.ctx, ast.Load)
        elif isinstance(part, ast.alias):
            yield (part.asname or part.name).partition(".")[0], False
        else:  # an argument, a definition, what a pattern or an except binds
            yield from ((getattr(part, key), False) for key in ("arg", "name", "rest") if getattr(part, key, None))


@rule(code("def total(list):\n    return summed(list)"), code("say = lambda: print(undefined)"))
def its_code_uses_only_names_that_it_defines(book: Book) -> Iterator[str]:
    """A name that is missing can hide: a harness turns the NameError of a tool or a hook into an observation."""
    names = [(cell.id, *name) for cell in book.cells("code") for name in names_in(tree(cell))]
    known = {name for _, name, is_used in names if not is_used} | set(dir(builtins)) | {"__name__", "get_ipython"}
    for cell_id, name, is_used in names:
        if is_used and name not in known:
            yield f"cell {cell_id} uses {name}, which no cell defines"


# --- Outputs --------------------------------------------------------------------------------------------------


@rule(
    code("x = 1", text_plain="<object at 0x7f09838c7370>"),
    code("x = 1", text_plain="/home/me/agentloop.py"),
    code("x = 1", text_html="2026-11-29 10:12", text_plain="A."),
    code("x = 1", "raises-exception"),
    lambda notebook: notebook.cells[1].outputs.append(new_output("stream", name="stderr", text="warning")),
)
def its_outputs_hold_no_stderr_address_path_or_date_and_raise_as_tagged(book: Book) -> Iterator[str]:
    yield from find_faults(book.notebook)


@rule(
    code("x = 1", text_html="<p><svg></svg></p>", text_plain="A."),
    lambda notebook: notebook.cells[1].outputs[0].data.update({"image/svg+xml": "<svg/>"}),
)
def its_outputs_hold_no_svg_which_an_untrusted_notebook_does_not_show(book: Book) -> Iterator[str]:
    for cell_id, data in book.bundles():
        if "image/svg+xml" in data or "<svg" in data.get("text/html", ""):
            yield f"cell {cell_id} shows SVG; store a PNG, or link to a file"


@rule(
    code("x = 1", image_png="iVBO"),
    code("x = 1", image_png="iVBO", text_plain="tokens"),
    code("x = 1", image_png="iVBO", text_plain="<Figure size 640x480 with 1 Axes>"),
    code("x = 1", text_html="<b>1</b>"),
    code("x = 1", text_html="<b>1</b>", text_plain="<IPython.core.display.HTML object>"),
    code("x = 1", text_plain="HBox(children=(Button(),))"),
)
def its_outputs_say_in_plain_text_what_they_show(book: Book) -> Iterator[str]:
    for cell_id, data in book.bundles():
        text = data.get("text/plain", "")
        if not text.strip() or re.match(r"<(Figure|IPython)|(\w*Box|\w*Slider|Button|HTML|Output)\(", text):
            yield f"cell {cell_id} shows {', '.join(data)} with the text {text[:40]!r}"
        if "image/png" in data and not re.search(r"\w+ \w+.*\.(\s|$)", text):
            yield f"cell {cell_id} shows a picture without a sentence that says what it shows"


# --- The rules, tried -----------------------------------------------------------------------------------------


def test_there_are_notebooks() -> None:
    assert BOOKS


@pytest.mark.parametrize("check", RULES, ids=lambda check: check.__name__)
def test_every_notebook_keeps_the_rule_that(check: Rule) -> None:
    faults = [f"{book} {fault}" for book in BOOKS for fault in check(book)]
    assert not faults, "\n" + "\n".join(faults)


@pytest.mark.parametrize(("check", "change"), BREAKS, ids=[check.__name__ for check, _ in BREAKS])
def test_a_rule_finds_what_breaks_it(check: Rule, change: Change) -> None:
    path, notebook = NOTEBOOKS / "03_example.ipynb", good_notebook()
    assert list(check(Book(path, to_normal_form(notebook)))) == []
    change(notebook)
    assert list(check(Book(path, writes(notebook) + "\n")))


def test_a_cell_that_hangs_is_given_up_after_a_minute_on_every_machine() -> None:
    settings = tomllib.loads((NOTEBOOKS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    assert "--nbval-cell-timeout=60" in settings["tool"]["pytest"]["ini_options"]["addopts"].split()
