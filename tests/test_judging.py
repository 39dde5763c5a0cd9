"""A file of the reader's own is judged: a row for each requirement, and the first that does not hold is explained."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from spec.candidate import Trial
from spec.play import Play

from looplab import judging
from looplab.judging import Verdict, judge, main

ROOT = Path(__file__).parent.parent
PLAIN = (ROOT / "tests/fixtures/plain.py").read_text(encoding="utf-8")


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where the reader's file stands, in the folder that the notebook runs in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "my_agentloop.py"


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Verdict:
    """Return the verdict on a plain solution that lets unknown arguments through."""
    old = """return f"unexpected argument '{name}'\""""
    assert PLAIN.count(old) == 1
    file = tmp_path_factory.mktemp("faulty") / "my_agentloop.py"
    file.write_text(PLAIN.replace(old, "continue"), encoding="utf-8")
    return judge(file, stage=3)


def test_a_file_that_is_not_there_yet_is_told_in_one_friendly_line(mine: Path) -> None:
    for stage, stages in ((1, "stage 1"), (2, "stages 1 and 2"), (5, "stages 1 to 5")):
        said = f"There is no file my_agentloop.py here yet. Write {stages} into it, and judge it again."
        assert repr(judge("my_agentloop.py", stage=stage)) == said
    assert not judge("my_agentloop.py").holds


def test_a_right_file_is_told_how_many_requirements_hold(mine: Path) -> None:
    mine.write_text(PLAIN, encoding="utf-8")
    verdict = judge("my_agentloop.py")
    assert verdict.holds and len({stage for stage, *_ in verdict.rows}) == 5
    count = len(verdict.rows)
    assert verdict.said == f"my_agentloop.py, stages 1 to 5: {count} of {count} requirements hold."
    assert "does not hold" not in repr(verdict)


def test_a_later_stage_is_not_asked_for(mine: Path) -> None:
    mine.write_text(PLAIN[: PLAIN.index("class ToolRegistry")], encoding="utf-8")
    verdict = judge("my_agentloop.py", stage=2)
    assert verdict.holds and {stage for stage, *_ in verdict.rows} == {"1 messages", "2 validator"}
    assert not judge("my_agentloop.py", stage=3).holds


def test_each_requirement_has_a_row_and_the_first_that_does_not_hold_is_explained(faulty: Verdict) -> None:
    outcomes = {sentence: outcome for _, outcome, sentence in faulty.rows}
    failed = [sentence for sentence, outcome in outcomes.items() if outcome == "does not hold"]
    assert not faulty.holds and failed[0] == "An argument that is not in the schema is refused"
    assert outcomes["A bool is never a number"] == "holds"
    held = list(outcomes.values()).count("holds")
    lines = repr(faulty).splitlines()
    assert lines[0] == f"my_agentloop.py, stages 1 to 3: {held} of {len(faulty.rows)} requirements hold."
    assert lines[1] == f"The first that does not hold: {failed[0]}."
    why = [line.partition(":")[0] for line in lines[2:5]]
    assert why == ["tried", "expected", "came back"]
    assert len(lines) == 6 + len(faulty.rows)


def test_the_table_says_the_same_as_the_text(faulty: Verdict) -> None:
    html = faulty._repr_html_()
    assert html.count("<tr>") == len(faulty.rows) + 1
    for _, _, sentence in faulty.rows:
        assert sentence in html and sentence in repr(faulty)
    assert "<pre>tried:" in html and "style" not in html and "class=" not in html


def test_a_call_in_a_message_that_is_no_dict_is_told_in_three_lines() -> None:
    made = SimpleNamespace(messages=[{"role": "assistant", "tool_calls": [SimpleNamespace(id="c1")]}])
    run = Play(Trial("run_agent(...)", made, None), [], [], [])
    run.holds({"role": "assistant"})
    with pytest.raises(pytest.fail.Exception) as failed:
        run.holds({"role": "assistant", "tool_calls": [{"id": "c1"}]})
    assert str(failed.value).splitlines() == [
        "tried:     run_agent(...)", "expected:  message 1, tool_calls[0]: a plain dict with id, name, args",
        "came back: tool_calls[0] is a SimpleNamespace"]


def test_a_requirement_is_spelt_with_commas_and_exact_names(faulty: Verdict) -> None:
    sentences = {sentence for _, _, sentence in faulty.rows}
    assert {"A result of None, False or zero is a result too", "`asks` writes a reply with its calls in order",
            "A result keeps letters that are not ASCII", "Success is the result as JSON"} <= sentences
    assert not [one for one in sentences if re.search(r"\b(json|ascii|give none|empty args)\b", one)]


def test_what_each_failure_was_told_is_kept_with_its_stage(faulty: Verdict) -> None:
    failed = [(stage, sentence) for stage, outcome, sentence in faulty.rows if outcome == "does not hold"]
    assert list(faulty.told) == failed and len({stage for stage, _ in failed}) > 1
    assert [failed[0][1], faulty.told[failed[0]]] == faulty.first


def test_two_verdicts_on_one_file_are_the_same(mine: Path, faulty: Verdict) -> None:
    mine.write_text(PLAIN.replace("""return f"unexpected argument '{name}'\"""", "continue"), encoding="utf-8")
    assert repr(judge(mine, stage=3)) == repr(faulty)


@pytest.mark.parametrize(("text", "sentence"), [
    ("", "The first that does not hold: The file has the names of stage 1."),
    ("x = (", "SyntaxError"),
    ("import no_such_module", "ModuleNotFoundError"),
    ("raise SystemExit(3)", "it called sys.exit (line 1)"),
    ("import os\nos._exit(0)", "my_agentloop.py could not be judged: it ended Python in the middle of the checks, "
                               "as os._exit does."),
    ("\0\0", "my_agentloop.py holds null bytes, as a file in UTF-16 does: save it as UTF-8."),
])
def test_a_file_that_cannot_be_used_is_told_why(text: str, sentence: str, mine: Path) -> None:
    mine.write_text(text, encoding="utf-8")
    verdict = judge("my_agentloop.py", stage=1)
    assert not verdict.holds and sentence in repr(verdict) and "Traceback" not in repr(verdict)


@pytest.mark.parametrize(("message", "why"), [
    ("importing my_agentloop.py: it raised SyntaxError: '(' was never closed (my_agentloop.py, line 26)",
     "SyntaxError, line 26"),
    ("importing my_agentloop.py: it raised NameError: name 'x: y' is not defined (line 3)", "NameError, line 3"),
    ("importing my_agentloop.py: it raised ValueError: null bytes", "ValueError"),
    ("importing my_agentloop.py: it called sys.exit (line 2)", "it called sys.exit, line 2"),
    ("importing my_agentloop.py: it was still running after 2 seconds and was stopped",
     "it was still running after 2 seconds and was stopped"),
    ("tried:     importing it\nexpected:  a result\ncame back: it raised NameError: x (line 3)", ""),
])
def test_why_a_file_does_not_load_is_its_kind_and_line_whatever_python_says(message: str, why: str) -> None:
    assert judging.why_not_loaded(message) == why


@pytest.mark.parametrize(("message", "words"), [
    ("importing my_agentloop.py: it raised SyntaxError: expected ':' (my_agentloop.py, line 26)", "expected ':'"),
    ("importing my agent loop.py: it raised KeyError: 'x (line 2)' (line 3)", "'x (line 2)'"),
    ("importing my_agentloop.py: it raised ValueError: two\nlines", "two\nlines"),
    ("importing my_agentloop.py: it raised ValueError: ", ""),
    ("importing my_agentloop.py: it called sys.exit (line 2)", ""),
    ("tried:     importing it\nexpected:  a result\ncame back: it raised NameError: x (line 3)", ""),
])
def test_what_python_says_of_a_file_that_does_not_load_is_told_without_the_place(message: str, words: str) -> None:
    assert judging.python_says(message) == words


@pytest.mark.parametrize(("words", "why"), [
    ("", "it ended Python in the middle of the checks, as os._exit does"),
    ("Traceback (most recent call last):\n  File \"conftest.py\", line 76\nTypeError: it is broken.\n",
     "it changed something that the checks need themselves: TypeError: it is broken"),
])
def test_why_the_suite_ended_too_early_is_one_sentence(words: str, why: str) -> None:
    assert judging.why_it_ended(words) == why


def test_a_notebook_is_no_file_to_judge_and_is_told_what_to_do(mine: Path) -> None:
    shutil.copy(ROOT / "notebooks/05_exits.ipynb", "my_notebook.ipynb")
    verdict = judge("my_notebook.ipynb", stage=1)
    assert not verdict.holds and verdict.first[1] == (
        "my_notebook.ipynb is a notebook: put its code into a file that ends in .py, as %%writefile does")


def test_only_a_file_that_does_not_load_is_said_not_to(mine: Path, faulty: Verdict) -> None:
    mine.write_text("\n\nx = (", encoding="utf-8")
    assert judge(mine, stage=1).not_loaded == "SyntaxError, line 3"
    assert faulty.first and faulty.not_loaded == ""


def test_a_suite_that_does_not_end_is_stopped(mine: Path) -> None:
    mine.write_text("while True:\n    try:\n        while True: pass\n    except BaseException: pass", encoding="utf-8")
    said = "my_agentloop.py could not be judged: the suite was still running after 0.5 seconds and was stopped."
    assert repr(judge("my_agentloop.py", stage=1, seconds=0.5)) == said


def test_a_thread_that_a_file_leaves_behind_keeps_no_report_back(mine: Path) -> None:
    pool = "from concurrent.futures import ThreadPoolExecutor\nfrom threading import Event\n"
    mine.write_text(f"{PLAIN}\n{pool}ThreadPoolExecutor().submit(Event().wait)\n", encoding="utf-8")
    assert judge("my_agentloop.py", stage=1, seconds=20).holds


def test_a_file_that_puts_another_function_into_the_standard_library_is_judged_all_the_same(mine: Path) -> None:
    mine.write_text(f"{PLAIN}\njson.dumps = lambda *given, **named: '{{}}'\n", encoding="utf-8")
    verdict = judge("my_agentloop.py", stage=3)
    assert verdict.first[0] == "Success is the result as JSON" and verdict.first[1].endswith("came back: `{}`")


def test_a_suite_that_is_not_there_is_told(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine.write_text(PLAIN, encoding="utf-8")
    monkeypatch.setattr(judging, "SPEC", judging.ROOT / "no/suite")
    assert "The suite is missing" in repr(judge("my_agentloop.py"))


def test_what_pytest_is_told_elsewhere_does_not_reach_the_suite(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine.write_text(PLAIN, encoding="utf-8")
    (mine.parent / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n", encoding="utf-8")
    monkeypatch.setenv("PYTEST_ADDOPTS", "--no-such-option")
    assert judge("my_agentloop.py", stage=1).holds


@pytest.mark.parametrize("file", [None, 3, ".", ["my_agentloop.py"]])
def test_what_is_no_path_of_a_file_is_a_value_error(file: object) -> None:
    with pytest.raises(ValueError, match="give the path of a file, such as"):
        judge(file)  # type: ignore[arg-type]


@pytest.mark.parametrize("stage", [0, 6, "3", True])
def test_a_stage_that_there_is_not_is_a_value_error(stage: int) -> None:
    with pytest.raises(ValueError, match="the stages are 1, 2, 3, 4, 5"):
        judge("my_agentloop.py", stage=stage)


def test_a_shell_judges_a_file_with_one_line(mine: Path) -> None:
    mine.write_text(PLAIN, encoding="utf-8")
    command = [sys.executable, "-m", "looplab.judging", "my_agentloop.py", "--stage", "1"]
    run = subprocess.run(command, cwd=mine.parent, capture_output=True, text=True, encoding="utf-8", timeout=60)
    assert run.returncode == 0 and run.stdout.startswith("my_agentloop.py, stage 1: "), run.stdout + run.stderr


def test_a_shell_is_told_by_the_exit_code(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["my_agentloop.py", "--stage", "2"]) == 1
    assert "There is no file" in capsys.readouterr().out
    mine.write_text(PLAIN, encoding="utf-8")
    assert main(["my_agentloop.py", "--stage", "2"]) == 0
    for refused in (["my_agentloop.py", "--stage", "7"], ["."]):
        with pytest.raises(SystemExit):
            main(refused)
    assert capsys.readouterr().err.endswith("error: . is a folder: give the path of a file, such as my_agentloop.py\n")
