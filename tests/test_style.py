"""How the source is written."""

from __future__ import annotations

import ast
import io
import json
import re
import sys
import tokenize
from pathlib import Path

import pytest

import agentloop

ROOT = Path(agentloop.__file__).parent
SOURCE = Path(agentloop.__file__).read_text(encoding="utf-8")
TREE = ast.parse(SOURCE)
DOCUMENTED = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
CORE = re.split(r"\n# --- (?:6|The demo)", SOURCE)[0]
PYTHON_FILES = [Path(agentloop.__file__), *sorted(ROOT.glob("tests/**/*.py")), *sorted(ROOT.glob("notebooks/**/*.py"))]
NOTEBOOKS = sorted(path for path in ROOT.glob("notebooks/**/*.ipynb") if ".ipynb_checkpoints" not in path.parts)


def test_annotations_are_not_evaluated_so_an_older_python_fails_in_words_and_not_on_a_type():
    first = next(node for node in TREE.body if isinstance(node, ast.ImportFrom))
    assert (first.module, first.names[0].name) == ("__future__", "annotations")


def test_no_rule_rests_on_an_assert_statement():
    assert [node.lineno for node in ast.walk(TREE) if isinstance(node, ast.Assert)] == []


def test_only_the_standard_library_is_imported():
    names = {alias.name for node in ast.walk(TREE) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in ast.walk(TREE) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} <= set(sys.stdlib_module_names)


def public_names():
    """Return the docstring of each public function, class and method of the module by its name."""
    docs = {}
    for node in TREE.body:
        if isinstance(node, DOCUMENTED):
            docs[node.name] = ast.get_docstring(node)
        for inner in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(inner, ast.FunctionDef) and not inner.name.startswith("__"):
                docs[f"{node.name}.{inner.name}"] = ast.get_docstring(inner)
    return docs


@pytest.mark.parametrize("name", public_names())
def test_every_public_name_has_a_docstring_that_begins_with_one_sentence(name):
    first = (public_names()[name] or "").partition("\n")[0]
    assert re.fullmatch(r"[A-Z].*[.]", first)
    assert not re.search(r"[a-z`)][.] [A-Z]", first), "more than one sentence"


def test_the_module_says_what_it_is_in_one_sentence():
    assert re.fullmatch(r"agentloop: .*[.]", agentloop.__doc__.partition("\n")[0])


def code_lines(source):
    """Return the numbers of the lines that hold code: no docstrings, no comments, no blank lines."""
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING):
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | DOCUMENTED) and ast.get_docstring(node):
            lines.difference_update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return lines


def test_the_core_does_not_grow():
    assert len(code_lines(CORE)) <= 305


def test_the_loop_and_one_round_of_it_do_not_grow():
    loop = next(node for node in TREE.body if isinstance(node, ast.FunctionDef) and node.name == "continue_agent")
    one_round = next(node for node in ast.walk(loop) if isinstance(node, ast.While))
    lines = code_lines(SOURCE)
    assert len(lines & set(range(loop.lineno, loop.end_lineno + 1))) <= 35
    assert len(lines & set(range(one_round.body[0].lineno, one_round.end_lineno + 1))) <= 12


def test_no_line_is_wider_than_120_characters():
    assert [line for line in SOURCE.splitlines() if len(line) > 120] == []


def names_no_encoding(source):
    """Yield the line of each open, read_text and write_text that leaves the encoding to the machine."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            function, named = ast.unparse(node.func), any(keyword.arg == "encoding" for keyword in node.keywords)
            mode = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
            path_open = function.endswith(".open") and len(mode) == len(node.args)
            opens = function == "open" or path_open or function.endswith((".read_text", ".write_text"))
            if opens and not named and not {"rb", "wb", "ab", "xb"} & set(mode):
                yield node.lineno


def code_cells(notebook):
    """Yield the source of each code cell that is Python."""
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code" and not source.lstrip().startswith(("%", "!")):
            yield source


def test_no_file_holds_the_marks_of_a_merge():
    written = [*PYTHON_FILES, *NOTEBOOKS, *(ROOT / "notebooks/looplab").glob("*.[cj]s*"), *ROOT.glob("*.md")]
    marks = re.compile(r"^ *\"?(<{7}|>{7}) ", re.MULTILINE)
    assert [path.name for path in written if marks.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("path", PYTHON_FILES + NOTEBOOKS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_file_is_opened_with_an_encoding_that_is_named(path):
    sources = code_cells(path) if path.suffix == ".ipynb" else [path.read_text(encoding="utf-8")]
    assert [line for source in sources for line in names_no_encoding(source)] == []


@pytest.mark.parametrize("source", ["open('a')", "path.read_text()", "path.write_text(text)", "path.open('w')"])
def test_the_check_of_encodings_sees_a_file_that_names_none(source):
    assert list(names_no_encoding(source)) == [1]
    assert list(names_no_encoding(f"{source[:-1]}, encoding='utf-8')".replace("(,", "("))) == []
    assert list(names_no_encoding("open('a', 'rb'); path.read_bytes()")) == []
