"""The recordings of a small real model: each says how it was made, and runs again as it was."""

from __future__ import annotations

import pytest
from looplab.small_model import TASKS, WAYS, answer_of, how_recorded, is_right, path_of, recording, run_again

from agentloop import check_messages, stop_on_repeat

each_run = pytest.mark.parametrize(("way", "task"), [(way, task) for way in WAYS for task in TASKS])


@each_run
def test_a_recording_says_with_which_model_prompt_and_settings_and_when_it_was_made(way, task):
    how, trace = how_recorded(way, task), recording(way, task)
    assert how["model"].startswith("SmolLM2-135M") and how["settings"]["temperature"] == 0
    assert (how["task"], how["system"], how["through"]) == (TASKS[task][0], WAYS[way].system, WAYS[way].through)
    assert how["date"] == "2026-11-29" and trace.messages[:2] == [
        {"role": "system", "content": how["system"]},
        {"role": "user", "content": how["task"]},
    ]


@each_run
def test_a_recorded_run_keeps_its_calls_and_results_together_and_is_small(way, task):
    check_messages(recording(way, task).messages)
    assert path_of(way, task).stat().st_size < 10_000


@each_run
def test_the_recorded_replies_run_again_to_the_same_messages(way, task):
    trace = recording(way, task)
    again = run_again(way, task, WAYS[way].around)
    assert (again.status, again.steps, again.messages) == (trace.status, trace.steps, trace.messages)


def test_a_guard_that_stops_ends_the_runs_that_repeat_themselves_and_no_other():
    repeating = {task for task in TASKS if run_again("one example", task, stop_on_repeat).status == "repeated_call"}
    assert repeating == {"delhi", "atlantis", "order"}
    assert {recording("one example", task).status for task in repeating} == {"step_limit"}


def test_a_run_that_is_done_can_be_wrong():
    done = [(way, task) for way in WAYS for task in TASKS if recording(way, task).status == "done"]
    assert done and not any(is_right(recording(way, task), task) for way, task in done)
    assert all(answer_of(recording(way, task)) for way, task in done)


@pytest.mark.parametrize(("way", "task"), [("nothing", "pune"), ("tell", "nothing")])
def test_an_unknown_recording_is_a_sentence(way, task):
    with pytest.raises(ValueError, match="the ways are no example, one example"):
        recording(way, task)
