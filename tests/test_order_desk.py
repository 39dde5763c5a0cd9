"""The order desk of notebook 11: four runs side by side, the patterns on its page, and whether an agent is needed."""

from __future__ import annotations

import inspect
import io
import json
import re
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import ipywidgets
import pytest
from PIL import Image

import agentloop
import looplab
from agentloop import AgentResult, ScriptedModel, Usage, check_messages, final, run_agent
from looplab import desk_runs, need, plots, show
from looplab.build import NOTEBOOKS
from looplab.desk_runs import RUNS, Setting, run_at_desk, runs_html, runs_table
from looplab.need import QUESTIONS, TASKS, advise
from looplab.patterns import Meter
from looplab.worlds import CLAIM_TASK, ORDER_TASK, POLICIES, order_desk, recovers, schema, wanders

EVIL = '<img src=x onerror="alert(1)"><b>hi</b>'
CELLS = json.loads((NOTEBOOKS / "11_order_desk.ipynb").read_text(encoding="utf-8"))["cells"]
SOURCES = {cell["id"]: "".join(cell["source"]) for cell in CELLS}


def every(widget: Any, kind: Any) -> list[Any]:
    found = [widget] if isinstance(widget, kind) else []
    return found + [part for child in getattr(widget, "children", ()) for part in every(child, kind)]


def shown(widget: Any) -> str:
    return " ".join(area.value for area in every(widget, ipywidgets.HTML))


# --- Four runs -----------------------------------------------------------------------------------------------


def test_the_four_runs_end_by_four_exits() -> None:
    ends = {name: (run_at_desk(setting).status, run_at_desk(setting).outcome.result.steps) for name, setting in
            RUNS.items()}
    assert ends == {"recovers": ("done", 4), "repeats itself": ("repeated_call", 3), "wanders": ("step_limit", 4),
                    "tight budget": ("token_budget", 1)}
    assert [(setting.max_steps, setting.token_budget) for setting in RUNS.values()] == [
        (6, 3000), (6, 3000), (4, 3000), (6, 400)]
    assert run_at_desk(RUNS["recovers"]).outcome.result.answer == "Order A123 costs 5900.0 rupees with 18% GST."


def test_the_third_identical_call_is_not_run_and_without_the_guard_each_is() -> None:
    setting = RUNS["repeats itself"]
    assert run_at_desk(setting).ran == 2
    off = run_at_desk(replace(setting, guard=False))
    assert (off.status, off.ran) == ("step_limit", setting.max_steps)


@pytest.mark.parametrize("setting, status", [
    (Setting(recovers, 3, 3000), "step_limit"), (Setting(wanders, 12, 3000), "token_budget"),
    (Setting(recovers, 6, 6000), "done"), (Setting(recovers, 6, 200), "token_budget"),
])
def test_an_exit_moves_with_the_limits(setting: Setting, status: str) -> None:
    run = run_at_desk(setting)
    assert run.status == status
    check_messages(run.outcome.result.messages)


def test_the_table_tells_each_run_and_the_exit_that_it_had_first() -> None:
    moved = RUNS | {"tight budget": replace(RUNS["tight budget"], token_budget=3000)}
    rows = {row[0]: row for row in runs_table(moved)[1:]}
    assert list(rows) == list(RUNS)
    assert rows["tight budget"][2:4] == ["3,000", "done"] and rows["tight budget"][-1] == "token_budget"
    assert runs_html(moved, "wanders").count("<svg") == 1 and "<svg" not in runs_html(RUNS, "wanders")
    assert "<b>wanders</b>" in runs_html(moved, "wanders")


def test_the_bench_follows_its_controls_and_keeps_the_limits_of_each_run() -> None:
    bench = looplab.four_exits()
    assert bench.run.status == "repeated_call"
    bench.guard.value = False
    assert bench.run.status == "step_limit" and "Exit: step_limit." in shown(bench)
    bench.choice.value = "tight budget"
    assert (bench.limits.max_steps, bench.limits.token_budget, bench.guard.value) == (6, 400, True)
    bench.limits.move(6, 3000)
    assert bench.run.status == "done"
    bench.choice.value = "repeats itself"
    assert not bench.guard.value and bench.run.status == "step_limit"
    next(button for button in every(bench, ipywidgets.Button)).click()
    assert bench.settings == RUNS and bench.run.status == "repeated_call" and bench.guard.value
    assert bench.error_box.value == ""


def test_choosing_a_run_changes_no_limit() -> None:
    bench = looplab.four_exits("recovers")
    for name in [*RUNS, "recovers"]:
        bench.choice.value = name
    assert bench.settings == RUNS


def test_a_run_that_is_none_of_the_four_is_a_value_error_that_names_them() -> None:
    with pytest.raises(ValueError, match="run must be one of .*wanders"):
        looplab.four_exits("sings")


def test_the_twins_are_the_same_each_time_and_plain() -> None:
    for make in (looplab.four_exits, looplab.need_an_agent):
        first, second = (make()._repr_mimebundle_() for _ in range(2))
        assert first["text/plain"] == second["text/plain"] and first["text/html"] == second["text/html"]
        assert not re.search("class=|style=|<svg", first["text/html"])
    assert "get_order gave the same result 2 times" in looplab.four_exits()._repr_mimebundle_()["text/plain"]


def test_every_control_has_a_name_and_no_slider_runs_while_it_is_dragged() -> None:
    benches = [looplab.four_exits(), looplab.need_an_agent()]
    kinds = (ipywidgets.RadioButtons, ipywidgets.BoundedIntText, ipywidgets.Checkbox, ipywidgets.Button)
    controls = [control for bench in benches for control in every(bench, kinds)]
    assert len(controls) == 5 + 6 and all(control.description for control in controls)
    assert not any(slider.continuous_update for slider in every(benches[0], ipywidgets.IntSlider))


def test_a_name_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {EVIL: RUNS["wanders"]}
    monkeypatch.setattr(desk_runs, "RUNS", settings)
    assert "<img" not in runs_html(settings, EVIL) and "&lt;img" in runs_html(settings, EVIL)
    assert "<img" not in need.advice_html(need.Advice(EVIL, EVIL, 1, [EVIL]))


# --- The plot ------------------------------------------------------------------------------------------------


@cache
def rooms(*names: str) -> plots.Plot:
    runs = {name: (run_at_desk(RUNS[name]).outcome.result, RUNS[name].max_steps, RUNS[name].token_budget)
            for name in names}
    return plots.rooms(runs, order_desk()[0].specs())


def test_the_rooms_say_where_each_run_ended() -> None:
    plot = rooms(*RUNS)
    assert [row[0] for row in plot.rows[1:]] == list(RUNS)
    assert [row[-1] for row in plot.rows[1:]] == ["done", "repeated_call", "step_limit", "token_budget"]
    for name, row in zip(RUNS, plot.rows[1:]):
        result = run_at_desk(RUNS[name]).outcome.result
        assert row[3].endswith(f"{result.tokens:,}")
        assert f"{name} ends with {result.status} after {result.steps} step" in plot.sentence


@pytest.mark.parametrize("names, height", [(["wanders", "tight budget"], 286), (list(RUNS), 572)])
def test_the_rooms_are_drawn_on_paper_and_nothing_at_the_edge(names: list[str], height: int) -> None:
    plot = rooms(*names)
    image = Image.open(io.BytesIO(plot.png)).convert("RGB")
    assert image.size == (770, height)
    paper = Image.new("RGB", image.size, plots.PAPER)
    paper.paste(image.crop((6, 6, 764, height - 6)), (6, 6))
    assert paper.tobytes() == image.tobytes()


def test_a_run_that_took_no_step_has_a_room_too_with_the_same_bytes_each_time() -> None:
    nothing = AgentResult("token_budget", None, 0, 0, run_at_desk(RUNS["recovers"]).outcome.result.messages[:2])
    first, second = (plots.rooms({"none": (nothing, 6, 100)}, order_desk()[0].specs()) for _ in range(2))
    assert first.rows[1][3] == "–" and first.png == second.png


def test_more_than_four_rooms_or_none_are_refused() -> None:
    run = (run_at_desk(RUNS["recovers"]).outcome.result, 6, 3000)
    for runs in ({}, {name: run for name in "abcde"}):
        with pytest.raises(ValueError, match="one to four"):
            plots.rooms(runs, [])


# --- A trace that is whole -----------------------------------------------------------------------------------


def test_a_whole_trace_cuts_nothing_off(capsys: pytest.CaptureFixture[str]) -> None:
    registry, _ = order_desk()
    result = run_agent(ORDER_TASK, ScriptedModel(recovers()), registry)
    show.trace(result, registry)
    assert "more)" in capsys.readouterr().out
    show.trace(result, registry, whole=True)
    printed = capsys.readouterr().out
    observations = "".join(line[50:100] for line in printed.splitlines())
    assert "more)" not in printed
    for message in result.messages:
        if message["role"] == "tool":
            assert "".join(message["content"].split()) in "".join(observations.split())


def test_a_table_cuts_a_long_cell_or_lets_it_go_on_below(capsys: pytest.CaptureFixture[str]) -> None:
    show.table(["a", "n"], [["x" * 60, 1200]])
    cut = capsys.readouterr().out
    show.table(["a", "n"], [["word " * 20, 1200]], whole=True)
    whole = capsys.readouterr().out
    assert "(12 more)" in cut and "1,200" in cut
    assert whole.count("word") == 20 and "1,200" in whole.splitlines()[1] and len(whole.splitlines()) == 4


# --- What the page says --------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", ["parts", "long-head"])
def test_what_the_tables_of_the_harness_name_is_in_agentloop(table: str) -> None:
    names = re.findall(r"`([\w.]+)`", "".join(re.findall(r"^\| .*$", SOURCES[table], re.MULTILINE)))
    known = set(inspect.signature(run_agent).parameters) | {"register", "agentloop.py"}
    fields = {f"AgentResult.{name}" for name in AgentResult.__annotations__}
    assert len(names) > 10
    for name in set(names) - known - fields:
        found: Any = agentloop
        for part in name.split("."):
            found = getattr(found, part)


@cache
def names_of(*cells: str) -> dict[str, Any]:
    """Run cells of the notebook, after its imports, and return the names that they leave."""
    names: dict[str, Any] = {}
    for cell in ("imports", *cells):
        exec(compile(SOURCES[cell], cell, "exec"), names)
    return names


PLANS = ("attempt", "react", "plan", "plan-run", "surprised")


def plan(*steps: tuple[str, dict[str, Any], str]) -> agentloop.ModelReply:
    return final(json.dumps([{"tool": name, "args": args, "expects": expects} for name, args, expects in steps]))


LOOK = ("get_order", {"order_id": "A123"}, '"qty": 2')
SUM = ("calculator", {"expression": "2500 * 2 * 1.18"}, "")


def test_a_plan_asks_once_for_all_its_steps_and_a_step_costs_nothing() -> None:
    names, registry, meter = names_of(*PLANS), order_desk()[0], Meter()
    script = ScriptedModel([plan(LOOK, SUM), final("5900.0")])
    model = names["plan_and_execute"](meter.model(script), names["surprised"])
    one_step = run_agent(CLAIM_TASK, names["plan_and_execute"](ScriptedModel([plan(LOOK, SUM)]), names["surprised"]),
                         registry, max_steps=1)
    result = run_agent(CLAIM_TASK, model, registry, max_steps=2)
    assert (result.status, meter.calls) == ("step_limit", 1) and result.tokens == one_step.tokens


@pytest.mark.parametrize("off, plans", [("failed", 1), ("surprised", 2)])
def test_a_plan_is_made_anew_if_what_it_expects_is_not_seen(off: str, plans: int) -> None:
    names, registry = names_of(*PLANS), order_desk()[0]
    asked: list[int] = []

    def planner(messages: list[Any], specs: list[Any]) -> agentloop.ModelReply:
        asked.append(len(messages))
        return plan(("get_order", {"order_id": "A123"}, '"qty": 9'), SUM)

    run_agent(CLAIM_TASK, names["plan_and_execute"](planner, names[off]), registry, max_steps=2)
    assert len(asked) == plans


@pytest.mark.parametrize("cap", [1, 2, 3])
def test_reviews_are_capped_and_a_draft_that_is_not_approved_is_no_answer(cap: int) -> None:
    names, (registry, _) = names_of("reflect"), order_desk()
    registry.register("review", "Review.", schema(draft="string"), lambda draft: "No.")
    model = names["reflect"](lambda messages, specs: final("5000"), cap)
    result = run_agent(CLAIM_TASK, model, registry, max_steps=9)
    assert (result.status, result.answer, result.steps) == ("not_approved", None, cap)
    check_messages(result.messages)


def test_an_approved_draft_is_the_answer_word_for_word() -> None:
    names, (registry, _) = names_of("reflect"), order_desk()
    registry.register("review", "Review.", schema(draft="string"), lambda draft: "OK")
    result = run_agent(CLAIM_TASK, names["reflect"](ScriptedModel([final("You owe 5900.0.")])), registry)
    assert (result.status, result.answer, result.steps) == ("done", "You owe 5900.0.", 2)


def test_every_policy_can_be_quoted_and_no_two_share_a_topic() -> None:
    assert len(POLICIES) >= 3 and len(set(POLICIES.values())) == len(POLICIES)


# --- The meter -----------------------------------------------------------------------------------------------


def test_the_meter_counts_as_the_loop_does() -> None:
    meter, (registry, _) = Meter(), order_desk()
    result = run_agent(ORDER_TASK, meter.model(ScriptedModel(recovers())), registry)
    assert (meter.calls, meter.tokens) == (result.steps, result.tokens)


def test_the_meter_counts_what_is_asked_beside_a_loop() -> None:
    meter = Meter()
    ask = meter.ask(ScriptedModel([final("refund"), final("Yes.")]))
    assert [ask("What is it?"), ask("Really?")] == ["refund", "Yes."]
    assert meter.calls == 2 and meter.tokens > 0


def test_the_meter_counts_no_call_that_failed() -> None:
    meter = Meter()
    with pytest.raises(AssertionError, match="script ran out"):
        meter.ask(ScriptedModel([]))("What?")
    assert (meter.calls, meter.tokens) == (0, 0)


def test_a_step_with_usage_is_metered_by_the_estimate_all_the_same() -> None:
    meter = Meter()
    reply = agentloop.ModelReply("Hello.", usage=Usage(10**6, 10**6))
    meter.model(ScriptedModel([reply]))([{"role": "user", "content": "Hi"}], [])
    assert 0 < meter.tokens < 1000


# --- Do you need an agent? -----------------------------------------------------------------------------------

AGAINST = {
    "one prompt serves": ("yes no no no yes", "one prompt"),
    "the steps are known": ("no yes no no yes", "a workflow"),
    "mistakes are costly": ("no no yes no yes", "no agent"),
    "there is no time": ("no no no yes yes", "no agent"),
    "the result cannot be judged": ("no no no no no", "no agent"),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_each_question_can_decide_against_an_agent_by_itself(name: str) -> None:
    answers, build = AGAINST[name]
    advice = advise(answers.split())
    assert (advice.build, advice.also) == (build, []) and advice.decided_by == list(QUESTIONS).index(name) + 1


def test_an_agent_is_advised_only_where_nothing_speaks_against_it() -> None:
    advised = {answers: advise(list(answers)) for answers in product(["yes", "no"], repeat=5)}
    assert [answers for answers, advice in advised.items() if advice.build == "an agent"] == [
        ("no", "no", "no", "no", "yes")]
    for answers, advice in advised.items():
        against = [n for n, name in enumerate(QUESTIONS.values(), 1) if answers[n - 1] == name.speaks]
        assert advice.decided_by == (against or [0])[0] and len(advice.also) == max(0, len(against) - 1)


def test_the_list_holds_a_task_for_each_advice() -> None:
    assert {advise(answers.split()).build for answers in TASKS.values()} == {
        "one prompt", "a workflow", "no agent", "an agent"}


def test_the_list_follows_task_and_answers() -> None:
    bench = looplab.need_an_agent()
    assert bench.advice.build == "a workflow" and "a workflow." in shown(bench)
    bench.task.value = "find out why checkout is slow"
    assert bench.advice.build == "an agent" and "No answer speaks against an agent." in shown(bench)
    bench.answers[2].value = "yes"
    assert bench.task.value is None and bench.advice.build == "no agent"
    assert [n for n, choice in enumerate(bench.answers, 1) if "ll-spoke" in choice._dom_classes] == [3]
    bench.answers[4].value = "no"
    assert "Question 3 decides. Besides, the result cannot be judged." in shown(bench)
    assert "A task: your own." in bench._repr_mimebundle_()["text/plain"] and bench.error_box.value == ""


def test_a_task_that_is_not_in_the_list_is_a_value_error_that_names_those_there_are() -> None:
    with pytest.raises(ValueError, match="task must be one of .*checkout"):
        looplab.need_an_agent("sing")
