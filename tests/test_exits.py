"""Section 5: how a run ends, what it leaves behind, and how it goes on."""

from __future__ import annotations

import asyncio
import copy
import random
import sys
from dataclasses import dataclass

import pytest
from support import PLENTY, assert_closed, at_call, observations, raises, random_script, replies, run, takes, tool

import agentloop
from agentloop import (
    AgentResult,
    ModelReply,
    ScriptedModel,
    Stop,
    ToolCall,
    asks,
    call,
    continue_agent,
    count_tokens,
    final,
    run_agent,
)

WAITING = "waiting_for_approval"
INTERRUPTED = "ERROR: interrupted; it may have taken effect"
NOT_RUN = "ERROR: not run: the run ended before this call"
ANY = {"type": "object", "properties": {"x": {"type": "string"}}, "required": []}


def never(messages, specs):
    """A model that never finishes."""
    return asks(call("", "t", x=str(len(messages))))


def batch(*names):
    return asks(*(call(name, "t", x=name) for name in names))


def counting_tool():
    """Return a registry whose tool notes each run, and the notes."""
    ran = []
    return tool(lambda x="": ran.append(x) or x, ANY), ran


# --- Limits ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limits", [(0, 100), (-1, 100), (3, 0), (3, -5), (0, 0)])
def test_a_limit_below_1_is_a_value_error_before_anything_happens(limits):
    model, told = ScriptedModel([final("ok")]), []
    stopped = run(never, max_steps=1)
    for go in (
        lambda: run(model, max_steps=limits[0], token_budget=limits[1], watch=told.append),
        lambda: continue_agent(stopped, model, tool(lambda: 1), *limits, watch=told.append),
    ):
        with pytest.raises(ValueError, match="must be at least 1"):
            go()
    assert (model.seen, told) == ([], [])


@pytest.mark.parametrize("text", [None, 5, ["go"], {"content": "go"}, b"go"])
def test_task_and_system_must_be_text(text):
    for texts in ({"task": text}, {"task": "go", "system": text}):
        with pytest.raises(ValueError, match="must be text"):
            run_agent(**texts, model=ScriptedModel([]), registry=tool(lambda: 1))


@pytest.mark.parametrize("max_steps", [1, 2, 5, 50])
def test_max_steps_limits_model_calls_and_the_tools_of_the_last_step_still_run_once(max_steps):
    registry, ran = counting_tool()
    model = ScriptedModel([never] * (max_steps + 1))
    result = run(model, registry, max_steps=max_steps)
    assert (result.status, result.answer, result.steps, len(model.seen)) == ("step_limit", None, max_steps, max_steps)
    assert len(ran) == max_steps and result.messages[-1]["role"] == "tool"
    assert_closed(result.messages)


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_an_answer_on_the_last_allowed_step_is_done(steps):
    script = [never] * (steps - 1) + [final("ok")]
    assert run(ScriptedModel(script), max_steps=steps).status == "done"


def test_a_budget_too_small_for_the_first_prompt_stops_before_the_model_is_asked():
    model = ScriptedModel([final("ok")])
    result = run(model, token_budget=1)
    assert (result.status, result.answer, result.steps, result.tokens, model.seen) == ("token_budget", None, 0, 0, [])
    assert_closed(result.messages)


@pytest.mark.parametrize("text", ["ok", "word " * 400])
def test_the_budget_is_checked_before_each_call_so_the_last_reply_may_pass_it(text):
    script = [batch("a"), batch("b"), final(text)]
    registry, _ = counting_tool()
    full = run(ScriptedModel(script), registry)
    needed = full.tokens - count_tokens(full.messages[-1])
    for budget, status in [(full.tokens, "done"), (needed, "done"), (needed - 1, "token_budget")]:
        result = run(ScriptedModel(script), registry, token_budget=budget)
        assert (result.status, result.steps) == (status, 3 if status == "done" else 2)
        assert (result.answer is None) == (status == "token_budget")


@pytest.mark.parametrize("share", [2, 3, 10])
def test_a_budget_of_half_the_cost_stops_early_and_is_not_passed(share):
    registry, _ = counting_tool()
    cost = run(ScriptedModel([batch("a"), batch("b"), final("ok")]), registry).tokens
    result = run(ScriptedModel([batch("a"), batch("b"), final("ok")]), registry, token_budget=cost // share)
    assert (result.status, result.answer) == ("token_budget", None)
    assert result.tokens <= cost // share and result.steps < 3


@pytest.mark.parametrize("seed", range(20))
def test_a_budget_lowered_by_the_largest_reply_is_never_passed(seed):
    chance = random.Random(seed)
    script = random_script(chance)
    registry, _ = counting_tool()
    full = run(ScriptedModel(script), registry)
    largest = max(map(count_tokens, replies(full)))
    for budget in {full.tokens, full.tokens // 2, *(chance.randint(largest + 1, full.tokens) for _ in range(5))}:
        if budget > largest:
            assert run(ScriptedModel(script), registry, token_budget=budget - largest).tokens <= budget


# --- Stop -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize(
    ("status", "why"), [("repeated_call", "asked three times"), ("deadline", ""), ("mine", "é 東京")]
)
def test_a_stop_of_execute_ends_the_run_and_the_refused_call_says_why_and_the_rest_that_they_were_not_run(
    status, why, number
):
    registry, ran = counting_tool()
    model = ScriptedModel([batch("a", "b", "c"), final("never asked")])
    result = run(model, registry, execute=at_call(number, Stop(status, why), registry)[0])
    assert (result.status, result.answer, result.steps, len(model.seen)) == (status, None, 1, 1)
    assert observations(result) == ['"a"', '"b"', '"c"'][: number - 1] + [f"ERROR: {why or status}"] + [NOT_RUN] * (
        3 - number
    )
    assert len(ran) == number - 1
    assert_closed(result.messages)


@pytest.mark.parametrize("before", [0, 1, 2])
@pytest.mark.parametrize("status", ["cost_cap", "deadline", WAITING, "mine"])
def test_a_stop_of_the_model_ends_the_run_and_leaves_the_list_as_it_is(before, status):
    result = run(ScriptedModel([batch("a", "b")] * before + [raises(Stop(status, "enough"))]))
    assert (result.status, result.answer, result.steps) == (status, None, before)
    assert len(result.messages) == 2 + 3 * before
    assert_closed(result.messages)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_only_waiting_for_approval_leaves_calls_open_the_first_that_waits_and_all_after_it(number):
    registry, ran = counting_tool()
    told = []
    result = run(
        ScriptedModel([batch("a", "b", "c")]),
        registry,
        execute=at_call(number, Stop(WAITING), registry)[0],
        watch=told.append,
    )
    assert (result.status, result.answer) == (WAITING, None)
    assert observations(result) == ['"a"', '"b"', '"c"'][: number - 1]
    assert [c.id for c in agentloop.open_calls(result.messages)] == ["a", "b", "c"][number - 1 :]
    assert (ran, told) == (["a", "b", "c"][: number - 1], result.messages)


@pytest.mark.parametrize("status", ["", "done"])
def test_a_stop_cannot_say_that_the_run_is_done_or_has_not_begun(status):
    with pytest.raises(ValueError):
        Stop(status)


def test_a_stop_says_status_and_why_where_nothing_catches_it():
    assert (str(Stop("deadline", "too late")), str(Stop("deadline"))) == ("deadline: too late", "deadline")


# --- Exceptions and Ctrl-C ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ProviderDown(Exception):
    code: int


class Slotted(Exception):
    __slots__ = ("code",)


ERRORS = {
    "ValueError": ValueError("wrapper"),
    "ConnectionError": ConnectionError("503"),
    "frozen": ProviderDown(503),
    "with slots": Slotted("503"),
    "end of an iterator": StopIteration(),
    "group": ExceptionGroup("two", [ValueError("a")]),
    "Ctrl-C": KeyboardInterrupt(),
    "sys.exit": SystemExit(1),
    "end of a generator": GeneratorExit(),
    "cancelled": asyncio.CancelledError(),
}
every_error = pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)


def result_of(error, go):
    """Return the result attached to `error`, which `go` must let through as it is."""
    with pytest.raises(type(error)) as raised:
        go()
    assert raised.value is error
    result = error.result
    assert (result.status, result.answer, result.steps) == ("interrupted", None, len(replies(result)))
    assert_closed(result.messages)
    return result


@every_error
@pytest.mark.parametrize("before", [0, 1, 2])
def test_an_exception_of_the_model_passes_through_with_the_run_so_far(error, before):
    registry, _ = counting_tool()
    result = result_of(error, lambda: run(ScriptedModel([batch("a", "b")] * before + [raises(error)]), registry))
    assert (result.steps, observations(result)) == (before, ['"a"', '"b"'] * before)


@every_error
@pytest.mark.parametrize("number", [1, 2, 3])
def test_an_exception_of_execute_passes_through_and_only_the_call_that_ran_may_have_taken_effect(error, number):
    registry, ran = counting_tool()
    execute, _ = at_call(number, error, registry)
    result = result_of(error, lambda: run(ScriptedModel([batch("a", "b", "c")]), registry, execute=execute))
    assert observations(result) == ['"a"', '"b"', '"c"'][: number - 1] + [INTERRUPTED] + [NOT_RUN] * (3 - number)
    assert len(ran) == number - 1


@pytest.mark.parametrize("number", [1, 2, 3])
def test_ctrl_c_inside_a_tool_is_no_observation(number):
    def fn(x):
        if x == "abc"[number - 1]:
            raise ctrl_c
        return x

    ctrl_c = KeyboardInterrupt()
    result = result_of(ctrl_c, lambda: run(ScriptedModel([batch("a", "b", "c")]), tool(fn, takes(x="string"))))
    assert observations(result) == ['"a"', '"b"', '"c"'][: number - 1] + [INTERRUPTED] + [NOT_RUN] * (3 - number)


@every_error
@pytest.mark.parametrize("index", range(8))
def test_an_exception_of_watch_passes_through_with_the_message_it_was_told_in_the_list(error, index):
    told = []

    def watch(message):
        told.append(message)
        if len(told) == index + 1:
            raise error

    model = ScriptedModel([batch("a", "b"), batch("c"), final("ok")])
    result = result_of(error, lambda: run(model, watch=watch))
    assert told == result.messages  # each message once, the one that failed too
    assert len(model.seen) == result.steps


@every_error
@pytest.mark.parametrize("watch_error", [ValueError("watch"), KeyboardInterrupt(), Stop("watch")], ids=type)
@pytest.mark.parametrize("number", [1, 2])
def test_the_first_exception_goes_on_even_if_watch_raises_while_the_history_is_closed(error, watch_error, number):
    registry, _ = counting_tool()

    def watch(message):
        if message["content"].startswith("ERROR"):
            raise watch_error

    execute, _ = at_call(number, error, registry)
    result_of(error, lambda: run(ScriptedModel([batch("a", "b", "c")]), registry, execute=execute, watch=watch))


def test_an_exception_of_watch_while_a_stop_closes_the_history_leaves_it_closed():
    def watch(message):
        if message["content"].startswith("ERROR"):
            raise error

    error = ValueError("watch")
    execute = raises(Stop("deadline"))
    result = result_of(error, lambda: run(ScriptedModel([batch("a", "b", "c")]), execute=execute, watch=watch))
    assert observations(result) == ["ERROR: deadline", NOT_RUN, NOT_RUN]


def test_an_exception_that_passes_two_runs_has_the_result_of_the_outer_one():
    ctrl_c = KeyboardInterrupt()
    inner = tool(raises(ctrl_c))
    outer = tool(lambda: run_agent("inner task", ScriptedModel([asks(call("i", "t"))]), inner).answer)
    result = result_of(ctrl_c, lambda: run(ScriptedModel([asks(call("o", "t"))]), outer))
    assert [message["content"] for message in result.messages if message["role"] == "user"] == ["go"]


def interrupted_on_line(number):
    """Run with a KeyboardInterrupt on the line of the module that is the `number`th to run after the first model call.

    Return the run, and whether it got as far as that line.
    """
    registry, _ = counting_tool()
    passed = 0

    def trace(frame, event, arg):
        nonlocal passed
        if frame.f_code.co_filename != agentloop.__file__:
            return None
        passed += event == "line" and bool(model.seen)
        if passed == number:
            sys.settrace(None)
            raise KeyboardInterrupt
        return trace

    model = ScriptedModel([batch("a", "b"), batch("c", "d")])
    execute, _ = at_call(3, Stop("deadline"), registry)
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return run(model, registry, execute=execute, watch=lambda message: None), False
    except KeyboardInterrupt as ctrl_c:
        return ctrl_c.result, True
    finally:
        sys.settrace(before)


def test_ctrl_c_on_any_line_of_a_step_leaves_a_history_that_a_provider_would_accept():
    number, reached = 0, True
    while reached:
        number += 1
        result, reached = interrupted_on_line(number)
        assert result.status == ("interrupted" if reached else "deadline")
        assert_closed(result.messages)
    assert number > 100  # so many lines ran


# --- Going on -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", ["ok", ""])
def test_a_run_that_is_done_does_not_go_on(answer):
    done, model = run(ScriptedModel([final(answer)])), ScriptedModel([final("more")])
    with pytest.raises(ValueError, match="this run is done"):
        continue_agent(done, model, tool(lambda: 1), 8, 4000)
    assert model.seen == []


def stopped_by(reason, model, registry):
    """Stop the script's run after its first step, in one of the ways there are."""
    if reason == "step_limit":
        return run(model, registry, max_steps=1)
    if reason == "token_budget":
        return run(model, registry, token_budget=count_tokens(registry.specs()) + 60)
    if reason == "interrupted":
        return result_of(error := ConnectionError("503"), lambda: run(at_model_call(2, error, model), registry))
    if reason == WAITING:
        return run(model, registry, execute=at_call(1, Stop(WAITING), registry)[0])
    return run(at_model_call(2, Stop(reason), model), registry)


def at_model_call(number, error, model):
    """Return a model that raises `error` in place of its call of that number, and else asks `model`."""
    calls = iter(range(1, 99))
    return lambda messages, specs: raises(error)() if next(calls) == number else model(messages, specs)


REASONS = ["step_limit", "token_budget", "interrupted", WAITING, "deadline", "mine"]


@pytest.mark.parametrize("reason", REASONS)
def test_a_resumed_run_equals_an_uninterrupted_one_and_nothing_runs_twice(reason):
    script = [batch("a", "b"), batch("c"), final("ok")]
    registry, ran = counting_tool()
    whole = run(ScriptedModel(script), registry)
    ran.clear()
    model = ScriptedModel(script)
    stopped = stopped_by(reason, model, registry)
    assert (stopped.status, stopped.steps) == (reason, 1)
    before = copy.deepcopy(stopped)
    assert continue_agent(stopped, model, registry, 50, PLENTY) == whole
    assert stopped == before
    assert (ran, len(model.seen)) == (["a", "b", "c"], 3)


@pytest.mark.parametrize("seed", range(40))
def test_a_run_stopped_at_every_step_and_every_call_equals_an_uninterrupted_one(seed):
    """A chain of continues: the gate refuses each call once, and each step is a run of its own."""
    script = random_script(random.Random(seed))
    registry, ran = counting_tool()
    whole = run(ScriptedModel(script), registry)
    ran_whole = ran.copy()
    ran.clear()
    model, approved = ScriptedModel(script), set()

    def gate(call):
        if call.id not in approved:
            approved.add(call.id)
            raise Stop(WAITING)
        return registry(call)

    result, stops = run(model, registry, max_steps=1, execute=gate), 0
    while result.status != "done":
        assert stops < 50
        result = continue_agent(result, model, registry, result.steps + 1, PLENTY, execute=gate)
        stops += 1
    assert result == whole and ran == ran_whole
    model.assert_complete()


@pytest.mark.parametrize("limits", [(2, PLENTY), (50, 200)], ids=["steps", "tokens"])
def test_the_limits_hold_for_the_whole_run_and_not_for_each_part_of_it(limits):
    registry, _ = counting_tool()
    model = ScriptedModel([never] * 50)
    whole = run(never, registry, max_steps=limits[0], token_budget=limits[1])
    result = run(model, registry, max_steps=1)
    for _ in range(3):
        result = continue_agent(result, model, registry, *limits)
    assert result == whole and len(model.seen) == whole.steps


def test_approvals_give_no_fresh_budget():
    registry, ran = counting_tool()
    model = ScriptedModel([batch(name) for name in "abcdefghi"])
    result, waits = run(model, registry, max_steps=3, execute=raises(Stop(WAITING))), 0
    while result.status == WAITING:
        execute, waits = at_call(2, Stop(WAITING), registry)[0], waits + 1
        result = continue_agent(result, model, registry, 3, PLENTY, execute=execute)
    assert (result.status, result.steps, len(model.seen), ran, waits) == ("step_limit", 3, 3, ["a", "b", "c"], 3)


def test_a_run_that_still_waits_stays_as_it_was():
    gate = raises(Stop(WAITING))
    registry, ran = counting_tool()
    model = ScriptedModel([batch("a", "b")])
    result = run(model, registry, execute=gate)
    assert continue_agent(result, model, registry, 8, PLENTY, execute=gate) == result
    assert ran == []


def open_run(status, *answered):
    """Return a run that stopped inside a batch, as one that was read back after a crash."""
    calls = [{"id": i, "name": "t", "args": {"x": i}} for i in "abc"]
    calls.append({"id": "d", "name": "t", "args": "{cut", "error": "arguments are not valid JSON"})
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "go"}]
    messages.append({"role": "assistant", "content": "", "tool_calls": calls})
    messages += [{"role": "tool", "tool_call_id": i, "name": "t", "content": f'"{i}"'} for i in answered]
    return AgentResult(status, None, 1, 77, messages)


@pytest.mark.parametrize("answered", ["", "a", "ab", "abc"])
@pytest.mark.parametrize("status", [reason for reason in REASONS if reason != WAITING])
def test_an_open_call_of_an_interrupted_run_is_answered_and_not_run(status, answered):
    registry, ran = counting_tool()
    stopped, told = open_run(status, *answered), []
    result = continue_agent(stopped, ScriptedModel([final("ok")]), registry, 8, PLENTY, watch=told.append)
    assert observations(result) == [f'"{i}"' for i in answered] + [INTERRUPTED] * (4 - len(answered))
    assert (result.status, result.steps, ran) == ("done", 2, [])
    assert told == result.messages[len(stopped.messages) :]
    assert_closed(result.messages)


@pytest.mark.parametrize("answered", ["", "a", "ab", "abc"])
def test_calls_that_wait_for_approval_are_executed_in_order_and_those_with_a_result_are_not(answered):
    registry, ran = counting_tool()
    stopped, told = open_run(WAITING, *answered), []
    result = continue_agent(stopped, ScriptedModel([final("ok")]), registry, 8, PLENTY, watch=told.append)
    assert observations(result) == ['"a"', '"b"', '"c"', "ERROR: arguments are not valid JSON"]
    assert (result.status, "".join(ran)) == ("done", "abc"[len(answered) :])
    assert told == result.messages[len(stopped.messages) :]


@pytest.mark.parametrize("max_steps", [1, 2])
def test_approved_calls_run_even_if_no_step_is_left(max_steps):
    registry, ran = counting_tool()
    result = continue_agent(open_run(WAITING), ScriptedModel([batch("e")]), registry, max_steps, PLENTY)
    assert (result.status, result.steps) == ("step_limit", max_steps)
    assert ran == ["a", "b", "c", "e"][: 2 + max_steps]
    assert_closed(result.messages)


@pytest.mark.parametrize("reason", REASONS)
def test_going_on_changes_nothing_of_the_result_it_started_from(reason):
    registry, _ = counting_tool()
    stopped = stopped_by(reason, ScriptedModel([batch("a", "b")]), registry)
    before = copy.deepcopy(stopped)
    go_on = continue_agent(stopped, ScriptedModel([batch("c"), final("ok")]), registry, 50, PLENTY)
    assert stopped == before
    for message in go_on.messages:
        message["content"] = "edited"
    assert stopped == before


def test_steps_and_tokens_go_on_counting():
    model = ScriptedModel([ModelReply("ok", [], agentloop.Usage(20, 3))])
    result = continue_agent(open_run("interrupted"), model, tool(lambda: 1), 8, 4000)
    assert (result.steps, result.tokens) == (2, 77 + 23)


@every_error
def test_a_run_that_was_interrupted_twice_still_goes_on(error):
    registry, ran = counting_tool()
    script = [batch("a"), batch("b", "c"), ModelReply("", [ToolCall("d", "t", {"x": "d"})]), final("ok")]
    model = ScriptedModel(script)
    first = result_of(error, lambda: run(model, registry, execute=at_call(2, error, registry)[0]))
    second = result_of(
        error, lambda: continue_agent(first, model, registry, 8, PLENTY, execute=at_call(1, error, registry)[0])
    )
    result = continue_agent(second, model, registry, 8, PLENTY)
    assert (result.status, observations(result)) == ("done", ['"a"', INTERRUPTED, NOT_RUN, INTERRUPTED])
    assert ran == ["a"]
    assert_closed(result.messages)
