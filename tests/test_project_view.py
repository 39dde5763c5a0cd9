"""The diff and test view: its frames are what the run did, and it shows them escaped, step by step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from looplab.diffs import diff_of, ending, frames_of, project_view, sentence_html, outcome_words, what_came
from looplab.project import ADD, CALCULATOR, FILES, PROJECT_TASK, RIGHT_ADD, files_after, mends
from looplab.view import Bench

from agentloop import AgentResult, ScriptedModel, ToolRegistry, asks, call, final, run_agent, to_json

EVIL = '<img src=x onerror="alert(1)"><b>hi</b> a < b & c </pre>'
FAILS = to_json({"passed": False, "tests": 2, "said": "AssertionError: -1 != 5"})
PASSES = to_json({"passed": True, "tests": 2, "said": ""})
TWICE = "ERROR: edit failed: ValueError: old is 2 times in calculator.py, in the lines 5, 9; add to old"
MENDED = ['["calculator.py", "test_calculator.py"]', to_json(CALCULATOR), FAILS, TWICE, '{"edited": "calculator.py"}',
          PASSES]


def run_with(replies: Any, *observations: str, max_steps: int = 8) -> AgentResult:
    """Return a run whose calls get these observations, without a project."""
    given = iter(observations)
    return run_agent(PROJECT_TASK, ScriptedModel(replies), ToolRegistry(), max_steps=max_steps, token_budget=10**6,
                     execute=lambda asked: next(given))


def mended() -> AgentResult:
    """Return the run of the model that mends add."""
    return run_with(mends(), *MENDED)


# --- State ---------------------------------------------------------------------------------------------------


def test_there_is_a_frame_for_each_call_and_one_for_the_answer() -> None:
    frames = frames_of(mended().messages)
    assert [(frame.step, frame.asked and frame.asked["name"]) for frame in frames] == [
        (1, "list"), (2, "read"), (2, "run_tests"), (3, "edit"), (4, "edit"), (4, "run_tests"), (5, None)]
    assert [frame.observation for frame in frames] == [*MENDED, None]


def test_the_files_change_with_an_edit_that_was_made_and_with_no_other_call() -> None:
    frames = frames_of(mended().messages)
    assert [frame.files == FILES for frame in frames] == [True] * 4 + [False] * 3
    assert frames[-1].files == files_after(mended().messages)
    assert frames[-1].files["calculator.py"] == CALCULATOR.replace(ADD, RIGHT_ADD)


def test_what_the_tests_said_is_stale_from_an_edit_to_the_next_run_of_them() -> None:
    frames = frames_of(mended().messages)
    assert [frame.stale for frame in frames] == [False] * 4 + [True, False, False]
    assert outcome_words(frames[0]) == "They have not run yet."
    assert outcome_words(frames[2]) == "2 tests ran: did not pass."
    assert outcome_words(frames[4]) == "2 tests ran: did not pass, but a file was changed since."
    assert outcome_words(frames[5]) == "2 tests ran: passed."


def test_each_call_is_said_to_have_been_answered_as_it_was() -> None:
    came = ["".join(what_came(frame)) for frame in frames_of(mended().messages)[:-1]]
    assert came == ["The tool answered.", "The tool answered.", "The tests do not pass.",
                    "The tool answered with an error.", "The tool changed the file.", "The tests pass."]


def test_a_call_without_observation_has_none_and_changed_nothing() -> None:
    result = mended()
    frames = frames_of(result.messages[:-3])  # the crash came before the observation of the edit
    assert "".join(what_came(frames[-1])) == "It has no observation." and frames[-1].files == FILES


def test_a_result_of_run_tests_that_was_cut_off_is_no_result() -> None:
    frames = frames_of(run_with([asks(call("t1", "run_tests")), final("")], PASSES[:20]).messages)
    assert frames[0].tests is None and "".join(what_came(frames[0])) == "The tool answered."


def test_the_diff_keeps_every_line_of_both_and_says_whose_it_is() -> None:
    now = files_after(mended().messages)
    lines = diff_of(FILES, now)
    for path in FILES:
        assert [text for at, sign, text in lines if at == path and sign != "+"] == FILES[path].splitlines()
        assert [text for at, sign, text in lines if at == path and sign != "-"] == now[path].splitlines()
    assert [sign + text for _, sign, text in lines if sign != " "] == ["-    return a - b", "+    return a + b"]


def test_an_edit_of_another_file_is_left_out() -> None:
    made = call("e1", "edit", path="other.py", old="a", new="b")
    assert frames_of(run_with([asks(made), final("")], '{"edited": "other.py"}').messages)[-1].files == FILES


@pytest.mark.parametrize(
    ("verified", "said"),
    [(None, ""), (True, " The verifier: it succeeded."), (False, " The verifier: it did not succeed.")],
)
def test_done_is_not_taken_for_success(verified: bool | None, said: str) -> None:
    assert ending(mended(), verified) == f"The run stopped with done.{said}"


# --- The widget ----------------------------------------------------------------------------------------------


def test_the_buttons_move_within_the_run() -> None:
    view = project_view({"mends add": mended(), "stops": run_with(mends(), *MENDED, max_steps=1)})
    assert isinstance(view, Bench) and view.place == 1 and view.buttons["First"].disabled
    for button, place in (("Next", 2), ("Last", 7), ("Back", 6), ("First", 1)):
        view.buttons[button].click()
        assert view.place == place
    view.buttons["Last"].click()
    assert view.buttons["Next"].disabled and "7 / 7" in view._position.value
    view.choice.value = "stops"
    assert view.place == 1 and len(view.frames) == 1 and "step_limit" in view._side.value


def test_the_lines_that_the_current_call_changed_are_lit_and_no_other() -> None:
    view = project_view({"mends add": mended()})
    lit = []
    for place in range(1, 8):
        view.go_to(place)
        lit.append(view._diff.value.count('class="ll-now"'))
    assert lit == [0, 0, 0, 0, 2, 0, 0] and "-     return a - b" in view._diff.value


def test_the_end_is_shown_at_the_last_frame_and_not_before() -> None:
    view = project_view({"mends add": mended()}, {"mends add": False})
    shown = []
    for place in (6, 7):
        view.go_to(place)
        shown.append("The verifier: it did not succeed." in view._side.value)
    assert shown == [False, True] and "asks for nothing more: add(2, 3) is 5 now" in view._say.value


def test_the_twin_is_the_calls_the_tests_the_ending_and_the_diff() -> None:
    bundle = project_view({"mends add": mended(), "b": mended()}, {"mends add": True})._repr_mimebundle_()
    for text in ("One of 2 runs: mends add, b.", "The verifier: it succeeded.", "2 tests ran: passed.",
                 "-    return a - b", "+    return a + b"):
        assert text in bundle["text/plain"] and text in bundle["text/html"]
    assert "4     run_tests()" in bundle["text/plain"] and "<td>run_tests()</td>" in bundle["text/html"]
    assert "class=" not in bundle["text/html"] and "style=" not in bundle["text/html"]


def test_every_value_is_escaped() -> None:
    files = {EVIL: f"{EVIL}\n"}
    made = call(EVIL, "edit", path=EVIL, old="hi", new=f"hi {EVIL}")
    tests = to_json({"passed": False, "tests": 1, "said": EVIL})
    run = run_with([asks(made, text=EVIL), asks(call("t", "run_tests")), final(EVIL)], EVIL, tests)
    view = project_view({EVIL: replace(run, status=EVIL), "b": run}, files=files)
    view.choice.value = EVIL
    assert not view.error_box.value
    for place in (1, 2, 3):
        view.go_to(place)
        shown = view._say.value + view._diff.value + view._side.value
        assert "<img" not in shown and "<b>hi" not in shown and "&lt;img" in shown
    assert "<img" not in view._repr_mimebundle_()["text/html"]


def test_a_run_that_did_not_ask_is_shown_as_such_and_no_run_is_refused() -> None:
    view = project_view({"empty": AgentResult("token_budget", None, 0, 0, [])})
    assert "The model was not asked yet." in view._say.value and all(b.disabled for b in view.buttons.values())
    assert "empty: The run stopped with token_budget." in view._repr_mimebundle_()["text/plain"]
    with pytest.raises(ValueError, match="project_view needs a run"):
        project_view({})


def test_the_sentence_fits_two_lines() -> None:
    made = call("e1", "edit", path="calculator.py", old="x" * 500, new="y" * 500)
    frame = frames_of(run_with([asks(made), final("z" * 500)], '{"edited": "calculator.py"}').messages)
    assert len(sentence_html(frame[0], 2)) < 300 and len(sentence_html(frame[1], 2)) < 300
