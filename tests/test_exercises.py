"""Each exercise is proved three ways: as shipped not solved, with the solution solved, with wrong answers told why."""

from __future__ import annotations

import itertools
import json
import linecache
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import agentloop
from looplab import exercises, sandbox
from looplab.exercise_bank import EXERCISES, NOTEBOOKS
from looplab.exercises import Review, check, hint, progress, review_answer, solution

FOLDER = Path(exercises.__file__).parents[1]
cell_numbers = itertools.count(1)


@pytest.fixture(scope="module", autouse=True)
def no_process_is_left() -> Iterator[None]:
    yield
    exercises.SANDBOX.close()


@pytest.fixture(autouse=True)
def a_fresh_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exercises, "PROGRESS", tmp_path / "progress.json")
    monkeypatch.setattr(exercises, "tried", set())
    monkeypatch.setattr(exercises, "hints_given", {})


def code_cells(path: Path) -> list[dict[str, Any]]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell | {"source": "".join(cell["source"])} for cell in cells if cell["cell_type"] == "code"]


def exercise_cells(name: str) -> list[dict[str, Any]]:
    return [cell for cell in code_cells(FOLDER / f"{name}.ipynb") if "exercise" in cell["metadata"].get("tags", [])]


def run_cell(source: str, names: dict[str, Any] | None = None) -> dict[str, Any]:
    """Run a cell as a notebook does, and return the names that it leaves; its source can be found afterwards."""
    file = f"<cell {next(cell_numbers)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names = vars(agentloop) | {"__name__": "__main__"} if names is None else names
    exec(compile(source, file, "exec", dont_inherit=True), names)
    return names


def review_cell(exercise_id: str, source: str) -> Review:
    """Return the review of what a cell defines under the names that the exercise wants."""
    names = run_cell(source)
    answers = [names[name] for name in EXERCISES[exercise_id].wants]
    return review_answer(exercise_id, answers if len(answers) > 1 else answers[0])


def solution_of(exercise_id: str) -> str:
    """Return the source of a solution, after the imports of its notebook."""
    notebook, source = exercises.find_solution(exercise_id)
    return (
        code_cells(exercises.SOLUTIONS / notebook)[0]["source"].replace("from looplab import check", "")
        + "\n\n"
        + source
    )


# --- As shipped ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_has_each_of_its_exercises_once_and_in_order(name: str) -> None:
    cells = exercise_cells(name)
    checked = [re.findall(r'^check\("([^"]+)"', cell["source"], re.MULTILINE) for cell in cells]
    assert checked == [[exercise.id] for exercise in NOTEBOOKS[name]]
    assert 3 <= len(cells) <= 5
    assert [cell["id"] for cell in cells] == [f"ex-{exercise.id}" for exercise in NOTEBOOKS[name]]
    assert sum(bool(exercise.shipped) for exercise in NOTEBOOKS[name]) == 1, "one exercise is to find the bug"


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_as_shipped_a_check_says_not_yet_in_one_line(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    cells = exercise_cells(name)
    for cell in cells:
        run_cell(cell["source"], vars(agentloop) | {"__name__": "__main__", "check": check})
        said = capsys.readouterr().out
        assert re.fullmatch(r"\d\d-[a-z-]+: not yet\. .+\n", said), said
    assert cells and not exercises.tried and not exercises.PROGRESS.exists()


# --- With the solution ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("exercise_id", EXERCISES)
def test_the_solution_solves_it(exercise_id: str) -> None:
    review = review_cell(exercise_id, solution_of(exercise_id))
    cases = len(EXERCISES[exercise_id].cases)
    assert review.solved and review.text.startswith(f"{exercise_id}: {cases} of {cases} cases hold."), review.text


def test_a_solution_says_the_same_as_its_notebook_shows() -> None:
    for name, bank in NOTEBOOKS.items():
        shown = "".join(
            "".join(output.get("text", ""))
            for cell in code_cells(exercises.SOLUTIONS / f"{name}.ipynb")
            for output in cell["outputs"]
        )
        for exercise in bank:
            assert f"{exercise.id}: {len(exercise.cases)} of {len(exercise.cases)} cases hold." in shown


# --- With wrong answers --------------------------------------------------------------------------------------


class Wrong(NamedTuple):
    """A wrong answer as an edit of the solution, a part of the case that is shown for it, and of what came back."""

    why: str
    old: str
    new: str
    shown: str
    came_back: str


def wrong_answers() -> dict[str, list[Wrong]]:
    """Read the wrong answers to each exercise."""
    text = (Path(__file__).parent / "fixtures/wrong_answers.txt").read_text(encoding="utf-8")
    found: dict[str, list[Wrong]] = {exercise_id: [] for exercise_id in EXERCISES}
    for part in text.split("\n=== ")[1:]:
        (head, *lines), line_of = part.splitlines(), dict[str, list[str]]()
        for line in filter(None, lines):
            sign, _, rest = line.partition(" ") if line[0] in "-+" else line.partition(": ")
            line_of.setdefault(sign, []).append(rest)
        exercise_id, _, why = head.partition(": ")
        parts = ["\n".join(line_of.get(sign, [])) for sign in ("-", "+", "shown", "came back")]
        found[exercise_id].append(Wrong(why, *parts))
    return found


WRONG = wrong_answers()


@pytest.mark.parametrize("exercise_id", EXERCISES)
def test_a_typical_wrong_answer_is_told_what_is_wrong_and_never_the_answer(exercise_id: str) -> None:
    right = solution_of(exercise_id)
    lines = [line.strip() for line in exercises.find_solution(exercise_id)[1].splitlines() if len(line.strip()) > 24]
    assert len(WRONG[exercise_id]) >= 3
    for wrong in WRONG[exercise_id]:
        assert wrong.shown and wrong.came_back, f"{wrong.why}: nothing is promised"
        assert right.count(wrong.old) == 1, f"{wrong.why}: the solution must hold this once: {wrong.old}"
        review = review_cell(exercise_id, right.replace(wrong.old, wrong.new))
        assert not review.solved and f"{review.held} of {review.cases} cases hold." in review.text, wrong.why
        first = review.text.partition("came back")
        assert wrong.shown in first[0] and wrong.came_back in first[2], f"{wrong.why}:\n{review.text}"
        assert "Traceback" not in review.text and len(review.text) < 2000
        assert not [line for line in lines if line in review.text], f"{wrong.why}: the answer is shown"
        assert review.text.endswith(f'hint("{exercise_id}") helps.')


def test_a_refusal_in_words_of_the_readers_own_solves_03_schema() -> None:
    source = solution_of("03-schema")
    ours = 'f"argument {name!r}: unsupported type {parameter.annotation!r}"'
    assert ours in source
    review = review_cell("03-schema", source.replace(ours, 'f"unsupported type for {name}"'))
    assert review.solved, review.text


def test_the_adapter_itself_solves_10_bug_although_its_replies_carry_usage() -> None:
    review = review_cell("10-bug", "def reads(response): return from_openai(response)")
    assert review.solved, review.text


# --- Answers that misbehave ----------------------------------------------------------------------------------

MISBEHAVING = {
    "it never ends": ("\n    while True: pass", "still running after 0.5 seconds and was stopped"),
    "it never ends and catches everything": (
        "\n    while True:\n        try:\n            print('x' * 999)\n        except BaseException: pass",
        "still running after 0.5 seconds and was stopped",
    ),
    "it prints endlessly": ("\n    while True: print('again')", "printed more than 10,000 characters"),
    "it calls sys.exit": ("import sys; sys.exit(2)", "it called sys.exit (line 1 of its cell)"),
    "it ends the process": ("import os; os._exit(0)", "ended the whole process"),
    "it raises": ("raise ValueError('no')", "it raised ValueError: no (line 1 of its cell)"),
    "it raises Ctrl-C": ("raise KeyboardInterrupt", "it raised KeyboardInterrupt"),
    "it calls itself endlessly": ("return is_final(reply)", "it raised RecursionError"),
    "it asks for input": ("return input('yes?')", "it raised EOFError"),
    "it redefines builtins": (
        "import builtins as b; b.len = b.print = b.isinstance = b.BaseException = None",
        "it redefined BaseException, isinstance, len, print:",
    ),
    "it adds a builtin": ("import builtins; builtins.more = 1", "it redefined more:"),
    "it takes a builtin away": ("import builtins; del builtins.len", "it redefined len:"),
    "its result cannot be written": (
        "return type('Odd', (), {'__repr__': lambda self: 1 / 0, '__eq__': lambda *a: 1 / 0})()",
        "Odd",
    ),
    "its result is endless": ("return 'x' * 10**6", "more characters"),
    "it closes the output": ("import sys; sys.stdout.close(); sys.stdout = None; return 7", "7"),
    "it reaches for the process's own output": ("import os; os.write(1, b'noise'); return 7", "7"),
}


@pytest.mark.parametrize("how", MISBEHAVING)
def test_an_answer_that_misbehaves_ends_in_a_sentence(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "SECONDS", 0.5 if "never ends" in how else sandbox.SECONDS)
    body, sentence = MISBEHAVING[how]
    text = review_cell("01-final", f"def is_final(reply): {body}").text
    assert sentence in text and "0 of 5 cases hold." in text, text
    assert "Traceback" not in text and len(text) < 2000


def test_code_that_fails_before_any_case_ends_in_a_sentence() -> None:
    cell = "registry = ToolRegistry()\ndef is_final(reply, specs=registry.specs()): return True"
    text = review_cell("01-final", cell).text
    assert "the cell as it is" in text and "it uses registry of the notebook (line 2 of its cell)" in text


def test_after_an_answer_that_misbehaved_the_next_is_checked_as_ever() -> None:
    assert not review_cell("01-final", "def is_final(reply): import os; os._exit(0)").solved
    assert not review_cell("01-final", "def is_final(reply): JSON_TYPES.clear()").solved
    assert review_cell("01-final", "def is_final(reply): return not reply.tool_calls").solved
    assert review_cell("02-integer", solution_of("02-integer")).solved


def test_checks_share_one_process_until_an_answer_changes_it() -> None:
    pid = "def is_final(reply): import os; return os.getpid()"
    first, second = (review_cell("01-final", pid).text for _ in range(2))
    assert first == second
    thread = "import threading, time; threading.Thread(target=time.sleep, args=[9]).start()"
    for change in ("JSON_TYPES['array'] = (list,)", thread):
        before = review_cell("01-final", pid).text
        review_cell("01-final", f"def is_final(reply): {change}")
        assert review_cell("01-final", pid).text != before, change


@pytest.mark.skipif(sys.platform != "linux", reason="only here the memory of a process can surely be limited")
def test_an_answer_that_fills_the_memory_ends_in_a_sentence() -> None:
    text = review_cell("01-final", "def is_final(reply): return bytearray(2**30)").text
    assert "it used up the memory that a check may have" in text


# --- What belongs to an answer -------------------------------------------------------------------------------

BELONGS = {
    "another function": "def asks_for(r): return len(r.tool_calls)\ndef is_final(reply): return asks_for(reply) == 0",
    "data": "LIMITS = {'calls': [0, 1.5, None, (True,)]}\ndef is_final(reply): return len(reply.tool_calls) == "
    "LIMITS['calls'][0]",
    "a module": "import operator as op\ndef is_final(reply): return op.not_(reply.tool_calls)",
    "an imported function": "from operator import not_ as no\ndef is_final(reply): return no(reply.tool_calls)",
    "a class": "class No:\n    @staticmethod\n    def calls(r): return not r.tool_calls\ndef is_final(reply): return "
    "No.calls(reply)",
    "a dataclass": "@dataclass\nclass Pair:\n    n: int\n    def twice(self): return 2 * self.n\n"
    "def is_final(reply): return Pair(len(reply.tool_calls)).twice() == 0",
    "a function inside": "def is_final(reply):\n    def inner(): return not reply.tool_calls\n    return inner()",
    "a function made by another": "def make(n):\n    def is_final(reply): return len(reply.tool_calls) == n\n"
    "    return is_final\nis_final = make(0)",
    "functions that call each other": "def even(n): return n == 0 or odd(n - 1)\ndef odd(n): return n != 0 and even(n "
    "- 1)\n"
    "def is_final(reply): return even(2 * len(reply.tool_calls)) and not reply.tool_calls",
    "a decorator": "def same(f): return f\n\n@same\ndef is_final(reply): return not reply.tool_calls",
    "a default": "NONE = []\ndef is_final(reply, none=NONE): return reply.tool_calls == none",
    "a name of agentloop's that means something else": "def describe(reply): return not reply.tool_calls\n"
    "def is_final(reply): return describe(reply)",
    "a type that cannot be evaluated": "def is_final(reply: 'Unknown') -> 'Callable[..., bool]':\n"
    "    found: Unknown = not reply.tool_calls\n    return found",
    "a type with three dots": "def is_final(reply):\n    found: tuple[bool, ...] = (not reply.tool_calls,)\n    "
    "return found[0]",
    "another name": "def my_own(reply): return not reply.tool_calls\nis_final = my_own",
}


@pytest.mark.parametrize("what", BELONGS)
def test_an_answer_takes_along_what_it_uses_of_the_notebook(what: str) -> None:
    review = review_cell("01-final", BELONGS[what])
    assert review.solved, review.text


def test_what_cannot_be_taken_along_is_named() -> None:
    text = review_cell("01-final", "registry = ToolRegistry()\ndef is_final(reply):\n    return registry.specs()").text
    assert "it uses registry of the notebook (line 3 of its cell); a check cannot take that along" in text


def test_a_builtin_that_the_notebook_redefined_is_named() -> None:
    text = review_cell("01-final", "len = 3\ndef is_final(reply): return len(reply.tool_calls) == 0").text
    assert "it raised TypeError" in text and "In this notebook len is no longer what Python means by it" in text


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (..., "not yet. Put your answer in the place of the three dots"),
        (True, "not yet. is_final must be a function, and this is a bool. Give its name alone, without brackets."),
        (None, "not yet. is_final must be a function, and this is a NoneType."),
        (ValueError, "not yet. is_final must be a function, and this is the class ValueError. Write it with def."),
        (len, "not yet. is_final must be a function"),
        (lambda reply: True, "this answer holds a lambda, which a check cannot take along. Write functions with def"),
    ],
)
def test_an_answer_of_another_kind_is_told_which_is_wanted(answer: Any, sentence: str) -> None:
    text = review_answer("01-final", answer).text
    assert sentence in text and "\n" not in text


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ([], "The answer is a list of 2: [lenient, follows_from]."),
        (print, "The answer is a list of 2: [lenient, follows_from]."),
        ([print, {}], "lenient must be a function"),
        ([..., {}], "the three dots are still there"),
        ([..., {"a": ..., "b": [...]}], "three dots in 3 places are still there"),
        ([run_cell, []], "follows_from must be a dict, and this is a list."),
    ],
)
def test_an_answer_of_several_parts_is_told_which_part_is_wrong(answer: Any, sentence: str) -> None:
    assert sentence in review_answer("02-integer", answer).text


def test_an_answer_whose_value_cannot_be_sent_is_refused_in_a_sentence() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert "which a check cannot take along" in review_answer("01-shapes", [object()]).text
    assert "a check cannot take along" in review_answer("01-shapes", endless).text
    exec("def is_final(reply): return True", names := {"__name__": "__main__"})
    assert "holds a function whose source is not at hand" in review_answer("01-final", names["is_final"]).text


def test_open_which_a_notebook_wraps_may_be_used_and_another_wrapped_builtin_is_named() -> None:
    wrap = "import functools, io\n{name} = functools.wraps({of})(lambda *args, **named: {of}(*args, **named))\n"
    body = "def is_final(reply):\n    {use}\n    return not reply.tool_calls"
    kept = wrap.format(name="open", of="io.open") + body.format(use="open(__import__('os').devnull).close()")
    assert review_cell("01-final", kept).solved
    left = wrap.format(name="size", of="len") + body.format(use="size([])")
    assert "it uses size of the notebook" in review_cell("01-final", left).text
    names = run_cell(wrap.format(name="size", of="len"))
    assert "holds a function whose source is not at hand" in review_answer("01-final", names["size"]).text


def test_an_exercise_that_is_not_there_is_told_with_those_that_are(capsys: pytest.CaptureFixture[str]) -> None:
    for ask in (lambda: check("02-emun", 1), lambda: hint("02-emun"), lambda: solution("02-emun")):
        ask()
        assert "There is no exercise '02-emun'. There are 02-sentences, 02-enum," in capsys.readouterr().out
    check("enum", 1)
    assert capsys.readouterr().out.endswith("There are those that progress() counts; their ids are like \"01-bug\".\n")


def test_what_an_answer_printed_is_shown_with_the_case() -> None:
    text = review_cell("01-final", "def is_final(reply):\n    print('seen', reply.content)\n    print('!')").text
    assert "  printed    seen It is 30 degrees.\n             !\n" in text


# --- Hints, solutions, progress ------------------------------------------------------------------------------


@pytest.mark.parametrize("exercise_id", EXERCISES)
def test_there_are_three_hints_and_the_last_is_said_again(exercise_id: str, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(4):
        hint(exercise_id)
    said = capsys.readouterr().out.splitlines()
    assert [line[:12] for line in said] == ["Hint 1 of 3.", "Hint 2 of 3.", "Hint 3 of 3.", "Hint 3 of 3."]
    assert len(set(said)) == 3 and said[2] == said[3] and all(20 < len(line) for line in said)


def test_a_solution_is_shown_only_after_a_try(capsys: pytest.CaptureFixture[str]) -> None:
    solution("01-final")
    check("01-final", ...)
    solution("01-final")
    assert "return not reply.tool_calls" not in (said := capsys.readouterr().out)
    assert said.count("Try it first") == 2
    check("01-final", run_cell("def is_final(reply): return True")["is_final"])
    capsys.readouterr()
    solution("01-final")
    said = capsys.readouterr().out
    assert "return not reply.tool_calls" in said and "notebooks/solutions/01_messages.ipynb" in said


def test_progress_counts_what_was_solved_and_is_forgotten_with_its_file(capsys: pytest.CaptureFixture[str]) -> None:
    progress()
    fresh = capsys.readouterr().out
    assert re.search(r"^01_messages +0 of 5  □□□□□$", fresh, re.MULTILINE) and f" 0 of {len(EXERCISES)}\n" in fresh
    check("01-final", run_cell("def is_final(reply): return True")["is_final"])
    assert not exercises.PROGRESS.exists()
    for _ in range(2):
        check("01-final", run_cell("def is_final(reply): return not reply.tool_calls")["is_final"])
    capsys.readouterr()
    progress()
    said = capsys.readouterr().out
    assert re.search(r"^01_messages +1 of 5  ■□□□□$", said, re.MULTILINE) and "delete that file" in said
    exercises.PROGRESS.unlink()
    progress()
    assert capsys.readouterr().out == fresh


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"solved": 7}', '{"solved": ["no-such"]}', '{"solved": null}'])
def test_a_progress_file_that_cannot_be_read_counts_as_none(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    exercises.PROGRESS.write_text(text, encoding="utf-8")
    progress()
    assert re.search(rf"^all +0 of {len(EXERCISES)}$", capsys.readouterr().out, re.MULTILINE)


def test_progress_sets_its_columns_by_the_longest_name(capsys: pytest.CaptureFixture[str]) -> None:
    progress()
    lines = capsys.readouterr().out.splitlines()
    assert len({re.search(r"\d+ of", line).start() for line in lines}) == 1  # type: ignore[union-attr]
    assert all(re.match(r"\w+ +\d+ of \d+", line) for line in lines)


def test_the_solutions_are_no_progress_of_the_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(exercises.SOLUTIONS)
    check("01-final", run_cell("def is_final(reply): return not reply.tool_calls")["is_final"])
    assert not exercises.PROGRESS.exists()
