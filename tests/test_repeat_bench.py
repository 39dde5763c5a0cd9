"""The bench of repeats: each model really runs under the guard that was chosen."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import ipywidgets
import pytest

import looplab
from agentloop import ScriptedModel, ToolCall, run_agent, stop_on_repeat
from looplab import repeats
from looplab.repeats import GUARDS, MODELS, GuardedRun, bench_html, calls_html, run_all, run_guarded, tally

OURS = "tool, arguments and result"
ANYWHERE = "all three, anywhere in the run"
EVIL = '<img src=x onerror="alert(1)"><b>hi</b>'


def verdicts(key: str, limit: int) -> dict[str, str]:
    return {run.model: run.verdict for run in run_all(key, limit)}


@pytest.mark.parametrize("model", MODELS)
def test_without_a_guard_a_stuck_model_meets_the_step_limit_and_the_others_are_done(model: str) -> None:
    stuck, script = MODELS[model]
    registry, _ = repeats.world()
    replies = [reply for reply, _ in zip(script(), range(repeats.MAX_STEPS))]
    result = run_agent("Go on.", ScriptedModel(replies), registry, max_steps=repeats.MAX_STEPS, token_budget=10**6)
    assert result.status == ("step_limit" if stuck else "done")


def test_our_guard_catches_the_same_call_in_any_order_of_arguments_and_lets_a_poll_be() -> None:
    found = verdicts(OURS, 3)
    assert found["asks the same again"] == found["turns its arguments round"] == "stopped it"
    assert found["polls a job"] == found["looks up five orders"] == found["reads the rules again"] == "let it be"


def test_our_guard_misses_turns_and_wandering_and_stops_a_poll_that_stands_still() -> None:
    for limit in range(2, 7):
        assert verdicts(OURS, limit)["goes A-B-A-B"] == verdicts(OURS, limit)["tries a new id each time"] == "missed it"
    assert verdicts(OURS, 3)["polls a slow job"] == "false alarm"
    assert verdicts(OURS, 5)["polls a slow job"] == "let it be"


@pytest.mark.parametrize("limit", [2, 3, 4])
def test_a_guard_without_the_result_stops_a_poll_that_makes_progress(limit: int) -> None:
    for key in ("tool", "tool and arguments"):
        assert verdicts(key, limit)["polls a job"] == "false alarm"


def test_only_the_tool_alone_catches_wandering_and_it_stops_who_looks_up_five_orders() -> None:
    assert [key for key in GUARDS if verdicts(key, 3)["tries a new id each time"] == "stopped it"] == ["tool"]
    assert verdicts("tool", 3)["looks up five orders"] == "false alarm"


def test_a_look_at_the_whole_run_catches_turns_and_stops_who_reads_the_rules_again() -> None:
    assert [key for key in GUARDS if verdicts(key, 3)["goes A-B-A-B"] == "stopped it"] == [ANYWHERE]
    assert verdicts(ANYWHERE, 3)["reads the rules again"] == "false alarm"


def test_no_key_and_no_limit_is_right_about_all() -> None:
    assert not any(all(run.is_right for run in run_all(key, limit)) for key, limit in product(GUARDS, range(2, 7)))


@pytest.mark.parametrize("limit", range(2, 7))
def test_a_guard_runs_one_call_less_than_its_limit(limit: int) -> None:
    for key in GUARDS:
        run = run_guarded("asks the same again", key, limit)
        assert (run.status, run.ran, len(run.calls)) == ("repeated_call", limit - 1, limit)


def test_the_guard_that_is_shown_as_ours_is_ours() -> None:
    assert GUARDS[OURS] is stop_on_repeat


def test_the_tally_counts_misses_and_false_alarms() -> None:
    assert tally(run_all(OURS, 3)) == "5 of 8 right; 2 missed, 1 false alarm."
    assert tally(run_all("tool", 3)) == "4 of 8 right; 1 missed, 3 false alarms."


def every(widget: Any, kind: Any) -> list[Any]:
    found = [widget] if isinstance(widget, kind) else []
    return found + [part for child in getattr(widget, "children", ()) for part in every(child, kind)]


def test_the_bench_follows_its_controls() -> None:
    bench = looplab.repeat_bench()
    bench.key.value, bench.limit.value, bench.model.value = ANYWHERE, 4, "goes A-B-A-B"
    shown = " ".join(area.value for area in every(bench, ipywidgets.HTML))
    assert bench.runs == run_all(ANYWHERE, 4) and tally(bench.runs) in shown
    assert "refuses the fourth call that is the same in all three, anywhere in the run: " in shown
    assert "A model that goes A-B-A-B, call by call" in shown and bench.error_box.value == ""


@pytest.mark.parametrize("wrong", [{"model": "sings"}, {"key": "luck"}, {"limit": 1}, {"limit": 7}])
def test_a_choice_that_is_none_is_a_value_error_that_names_those_there_are(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="limit 2 to 6"):
        looplab.repeat_bench(**wrong)


def test_the_static_twin_is_the_same_each_time_and_plain() -> None:
    first, second = (looplab.repeat_bench()._repr_mimebundle_() for _ in range(2))
    assert first["text/plain"] == second["text/plain"] and first["text/html"] == second["text/html"]
    assert not re.search("class=|style=|<svg", first["text/html"])
    assert "get_order gave the same result 2 times in a row, and was not run again" in first["text/plain"]


def test_every_control_has_a_name_and_no_slider_runs_while_it_is_dragged() -> None:
    bench = looplab.repeat_bench()
    controls = every(bench, (ipywidgets.RadioButtons, ipywidgets.BoundedIntText))
    assert len(controls) == 3 and all(control.description for control in controls)
    assert not any(slider.continuous_update for slider in every(bench, ipywidgets.IntSlider))


def test_only_a_call_that_was_refused_has_the_colour_of_an_exit() -> None:
    assert calls_html(run_guarded("asks the same again", OURS, 3)).count("ll-refused") == 1
    assert "ll-refused" not in calls_html(run_guarded("polls a job", OURS, 3))


def test_what_a_call_and_an_observation_hold_is_escaped() -> None:
    asked = vars(ToolCall("c1", EVIL, {EVIL: EVIL}))
    run = GuardedRun(EVIL, True, EVIL, 1, [(asked, EVIL)])
    shown = bench_html([run], EVIL, 3, EVIL)
    assert "<img" not in shown and "<b>hi" not in shown and "&lt;img" in shown
