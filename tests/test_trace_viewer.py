"""The trace viewer, and the recorded runs: what it shows is what stands in the files, and the files are made anew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from looplab import recordings
from looplab.recordings import FOLDER, Clock, record_all
from looplab.viewer import seconds_text, step_words, steps_of, trace_viewer

from agentloop import ScriptedModel, Trace, asks, call, check_messages, final, rows_of, run_agent, weather_world

EVIL = '<img src=x onerror="alert(1)"><b>hi</b> a < b & c </pre>'
RUNS = ["run_a", "run_b", "run_c"]


def evil_trace(path: Path) -> Trace:
    """Return the trace of a run that is full of markup."""
    registry, _ = weather_world()
    trace = Trace(clock=Clock())
    model = trace.model(ScriptedModel([asks(call("c1", EVIL, **{EVIL: EVIL}), text=EVIL), final(EVIL)]))
    result = run_agent(EVIL, model, registry, execute=trace.execute(registry))
    trace.save(path, replace(result, status=EVIL))
    return Trace.load(path)


# --- The recordings ------------------------------------------------------------------------------------------


def test_the_command_writes_the_recorded_runs_byte_for_byte(tmp_path: Path) -> None:
    record_all(tmp_path)
    assert [path.name for path in sorted(FOLDER.glob("*.jsonl"))] == [f"{name}.jsonl" for name in RUNS]
    for path in FOLDER.glob("*.jsonl"):
        assert path.read_bytes() == (tmp_path / path.name).read_bytes(), path.name


def test_the_command_says_how_each_run_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(recordings, "record_all", lambda: record_all(tmp_path))
    assert recordings.main() == 0
    assert "notebooks/traces/run_c.jsonl: deadline after 2 steps" in capsys.readouterr().out


def test_each_stuck_run_ended_by_another_exit_and_left_a_list_that_a_provider_accepts() -> None:
    traces = [Trace.load(FOLDER / f"{name}.jsonl") for name in RUNS]
    assert [trace.status for trace in traces] == ["step_limit", "token_budget", "deadline"]
    for trace in traces:
        check_messages(trace.messages)


def test_the_cause_of_each_stuck_run_stands_in_its_trace() -> None:
    in_turn, long_result, slow = (steps_of(Trace.load(FOLDER / f"{name}.jsonl")) for name in RUNS)
    decisions = [step.rows[0][1] for step in in_turn]
    assert decisions[2:] == decisions[:-2] and decisions[0] != decisions[1]
    spent = [int(step.rows[0][3]) for step in long_result]
    assert spent[1] - spent[0] > 5 * spent[0]
    assert all(step.tool_seconds[0] > 10 * (step.model_seconds or 0) for step in slow)


def test_a_clock_moves_only_when_something_takes_time_on_it() -> None:
    clock = Clock()
    slow = clock.takes(1.5, max)
    assert (clock(), slow(1, 2), slow(3, 2), clock()) == (0.0, 2, 3, 3.0)


# --- The viewer ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RUNS)
def test_the_steps_of_a_trace_are_the_rows_of_its_table_and_all_messages_after_the_task(name: str) -> None:
    trace = Trace.load(FOLDER / f"{name}.jsonl")
    steps = steps_of(trace)
    assert [row for step in steps for row in step.rows] == rows_of(trace)
    assert [i for step in steps for i in range(step.start, step.stop)] == list(range(2, len(trace.messages)))


def test_the_sentence_of_a_step_says_who_took_how_long_and_what_for() -> None:
    trace = Trace.load(FOLDER / "run_c.jsonl")
    steps = steps_of(trace)
    said = "".join(step_words(steps[0], trace.messages, len(steps)))
    assert said == ('Step 1 of 2:  took 0.8 s and asked for get_order(order_id="A123").The tool took 31 s.')
    wrong = Trace.load(FOLDER / "run_a.jsonl")
    assert step_words(steps_of(wrong)[7], wrong.messages, 8)[3] == " took 0.02 s, 1 error."


def test_a_reply_without_observation_is_said_to_have_none() -> None:
    trace = Trace.load(FOLDER / "run_a.jsonl")
    trace.messages.pop()
    last = steps_of(trace)[-1]
    assert step_words(last, trace.messages, 8)[1].endswith("which has no observation.")


@pytest.mark.parametrize(("seconds", "text"), [(0.8, "0.8 s"), (31.0, "31 s"), (0.0, "0 s"), (1.234, "1.23 s")])
def test_seconds_are_written_with_at_most_two_decimals(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text


def test_the_buttons_move_within_the_run() -> None:
    viewer = trace_viewer(*(FOLDER / f"{name}.jsonl" for name in RUNS))
    assert viewer.step == 1 and viewer.buttons["First"].disabled and not viewer.buttons["Next"].disabled
    for button, step in (("Next", 2), ("Last", 8), ("Back", 7), ("First", 1)):
        viewer.buttons[button].click()
        assert viewer.step == step
    viewer.buttons["Last"].click()
    assert viewer.buttons["Next"].disabled
    viewer.choice.value = "run_c"
    assert viewer.step == 1 and len(viewer.steps) == 2


def test_the_last_step_shows_the_exit() -> None:
    viewer = trace_viewer(FOLDER / "run_c.jsonl")
    assert "deadline" not in viewer._list.value
    viewer.go_to(99)
    assert viewer.step == 2 and "<b>deadline</b>" in viewer._list.value


def test_the_twin_is_the_ending_and_the_table() -> None:
    bundle = trace_viewer(FOLDER / "run_c.jsonl")._repr_mimebundle_()
    assert "run_c: stopped at the deadline after 2 steps." in bundle["text/plain"]
    assert "31.000" in bundle["text/plain"] and "<td>31.000</td>" in bundle["text/html"]


def test_every_value_is_escaped(tmp_path: Path) -> None:
    viewer = trace_viewer(evil_trace(tmp_path / "evil.jsonl"), named=tmp_path / "evil.jsonl")
    assert not viewer.error_box.value
    for step in (1, 2):
        viewer.go_to(step)
        shown = viewer._say.value + viewer._table.value + viewer._list.value
        assert "<img" not in shown and "<b>hi" not in shown and "&lt;img" in shown
    assert "<img" not in viewer._repr_mimebundle_()["text/html"]


def test_a_trace_without_steps_is_shown_as_such() -> None:
    viewer = trace_viewer(Trace())
    assert "No step was recorded." in viewer._say.value and all(b.disabled for b in viewer.buttons.values())
    viewer.go_to(3)
    assert not viewer.error_box.value


def test_nothing_to_show_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="needs a trace"):
        trace_viewer()
    (tmp_path / "other.jsonl").write_text("{}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="other.jsonl is not a trace of agentloop"):
        trace_viewer(tmp_path / "other.jsonl")
