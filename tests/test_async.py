"""Section 13: the async loop does what the other does, at once where that is safe, and tells what happens."""

from __future__ import annotations

import asyncio
import json
import random
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import FrozenInstanceError, replace

import pytest
from looplab.coding import CODING_TASK, DIAGNOSIS, add_works, calculator_world, diagnoses
from looplab.endings import look_registry, reply_of, scripts
from looplab.judging import judge
from support import PLENTY, assert_closed, at_call, observations, raises, random_script, takes, tool

import agentloop
from agentloop import (
    INTERRUPTED,
    NOT_RUN,
    WAITING,
    MessageCompleted,
    RunEnded,
    SchemaError,
    ScriptedModel,
    Stop,
    ToolEnded,
    ToolFailure,
    ToolStarted,
    TurnCompleted,
    Usage,
    agent_events,
    asks,
    async_model,
    call,
    check_messages,
    continue_agent,
    continue_agent_async,
    decide,
    final,
    journal,
    open_calls,
    outcome,
    recover,
    require_approval,
    run_agent,
    run_agent_async,
    strict_execute,
)

TEXT = takes(x="string")
LIMITS = {"max_steps": 50, "token_budget": PLENTY}


def awaited(model):
    """Return a model that is awaited and gives the event loop a chance to do something else first."""

    async def ask(messages, specs):
        await asyncio.sleep(0)
        return model(messages, specs)

    return ask


def echo():
    """Return a registry with one tool, `t`, that returns its argument, and the log of what ran."""
    ran = []
    return tool(lambda x="": ran.append(x) or x, {"properties": TEXT["properties"]}), ran


def batch(*ids, name="t"):
    """Write a reply that asks for one call for each id, which is also its argument."""
    return asks(*(call(call_id, name, x=call_id) for call_id in ids))


def both_ways(replies, halt=None):
    """Run a script in both loops, each with a registry of its own; `halt` is the number of a call and what it raises.

    Returns what came of each: a result, and the type of the exception that carried it, or None.
    """
    ends = []
    for is_async in (False, True):
        registry, model = echo()[0], ScriptedModel(replies)
        limits = LIMITS | {"execute": at_call(*halt, registry)[0] if halt else None}
        try:
            if is_async:
                ends.append((asyncio.run(run_agent_async("go", awaited(model), registry, **limits)), None))
            else:
                ends.append((run_agent("go", model, registry, **limits), None))
        except BaseException as error:
            ends.append((error.result, type(error)))
    return ends


# --- The same as the other loop -------------------------------------------------------------------------------


@pytest.mark.parametrize("token_budget", [300, 500, 750, PLENTY])
def test_both_loops_give_equal_results_on_every_script_of_up_to_three_replies(token_budget):
    registry = look_registry(agentloop)

    async def compare():
        for kinds in scripts(3):
            replies = [reply_of(agentloop, kind) for kind in kinds]
            limits = {"max_steps": len(kinds), "token_budget": token_budget}
            result = await run_agent_async("Look.", awaited(ScriptedModel(replies)), registry, **limits)
            assert result == run_agent("Look.", ScriptedModel(replies), registry, **limits), kinds

    asyncio.run(compare())


@pytest.mark.parametrize("seed", range(20))
def test_both_loops_give_equal_results_on_odd_scripts(seed):
    script = random_script(random.Random(seed))
    script[-1] = replace(script[-1], usage=Usage(7, 5))
    plain, by_await = both_ways(script)
    assert plain == by_await and plain[0].status == "done"


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize(
    "error",
    [Stop("deadline", "late"), Stop("mine"), Stop(WAITING), ValueError("wrapper"), KeyboardInterrupt(), SystemExit(2)],
    ids=repr,
)
def test_both_loops_leave_equal_lists_wherever_a_call_ends_the_run(error, number):
    plain, by_await = both_ways([batch("a", "b", "c"), final("never")], halt=(number, error))
    assert plain == by_await and plain[0].status in ("interrupted", getattr(error, "status", ""))


@pytest.mark.parametrize("stop_reason", ["truncated", "refused", "empty_reply"])
def test_both_loops_end_at_a_reply_that_is_none_and_run_none_of_its_calls(stop_reason):
    cut_off = replace(batch("b"), content="I will", stop_reason=stop_reason)
    plain, by_await = both_ways([batch("a"), cut_off])
    assert plain == by_await and plain[0].status == stop_reason and observations(plain[0]) == ['"a"']


def test_the_async_loop_passes_all_stages_of_the_suite(tmp_path):
    facade = """
import asyncio, inspect, agentloop as ours
from agentloop import *
def run_agent(task, model, registry, system=inspect.signature(ours.run_agent).parameters["system"].default, **limits):
    return asyncio.run(ours.run_agent_async(task, ours.async_model(model), registry, system, **limits))
"""
    (tmp_path / "awaited.py").write_text(facade, encoding="utf-8")
    verdict = judge(tmp_path / "awaited.py")
    assert verdict.holds, verdict


@pytest.mark.parametrize("first_is_async", [True, False])
@pytest.mark.parametrize("max_steps", [1, 2])
def test_a_run_that_stopped_in_one_loop_goes_on_in_the_other_as_if_nothing_had_been(first_is_async, max_steps):
    script = [batch("a", "b"), batch("c"), final("ok")]
    whole, registry, model = run_agent("go", ScriptedModel(script), echo()[0]), echo()[0], ScriptedModel(script)

    async def go():
        if first_is_async:
            stopped = await run_agent_async("go", awaited(model), registry, max_steps=max_steps)
            return continue_agent(stopped, model, registry, 8, 4000)
        stopped = run_agent("go", model, registry, max_steps=max_steps)
        return await continue_agent_async(stopped, awaited(model), registry, 8, 4000)

    assert asyncio.run(go()) == whole


def test_only_calls_that_wait_for_approval_are_executed_when_a_run_goes_on():
    registry, ran = echo()
    model = ScriptedModel([batch("a", "b"), final("ok"), final("ok")])
    stopped = run_agent("go", model, registry, execute=at_call(2, Stop(WAITING), registry)[0])
    go_on = {status: replace(stopped, status=status) for status in (WAITING, "interrupted")}
    ends = {
        status: asyncio.run(continue_agent_async(result, awaited(model), registry, 8, 4000))
        for status, result in go_on.items()
    }
    assert observations(ends[WAITING]) == ['"a"', '"b"'] and ran == ["a", "b"]
    assert observations(ends["interrupted"]) == ['"a"', INTERRUPTED]


@pytest.mark.parametrize(
    "wrong", [{"max_steps": 0}, {"max_steps": -1}, {"token_budget": 0}, {"safe": "t"}, {"task": 1}, {"system": None}]
)
def test_what_a_caller_got_wrong_is_a_value_error_before_anything_happens(wrong):
    model, told = ScriptedModel([final("never")]), []
    arguments = {"task": "go", "model": awaited(model), "registry": tool(lambda: 1), "report": told.append} | wrong
    with pytest.raises(ValueError):
        asyncio.run(run_agent_async(**arguments))
    assert (model.seen, told) == ([], [])


def test_a_run_that_is_done_does_not_go_on():
    done = run_agent("go", ScriptedModel([final("ok")]), tool(lambda: 1))
    with pytest.raises(ValueError, match="done"):
        asyncio.run(continue_agent_async(done, awaited(ScriptedModel([])), tool(lambda: 1), 8, 4000))


@pytest.mark.parametrize("reply", [None, "text", {"role": "user", "content": "I am no reply"}])
def test_a_reply_that_is_no_assistant_message_is_a_value_error_with_the_run_so_far(reply):
    model = ScriptedModel([batch("a"), lambda messages, specs: reply])
    with pytest.raises(ValueError, match="must return a ModelReply") as raised:
        asyncio.run(run_agent_async("go", awaited(model), echo()[0]))
    assert raised.value.result.steps == 1 and observations(raised.value.result) == ['"a"']


def test_a_model_that_edits_what_it_is_shown_changes_its_own_copies():
    script = ScriptedModel([batch("a"), batch("b"), final("ok")])

    async def rude(messages, specs):
        reply = script(messages, specs)
        for message in [*messages, *specs]:
            message.clear()
        messages.clear()
        return reply

    result = asyncio.run(run_agent_async("go", rude, echo()[0]))
    assert result == run_agent("go", ScriptedModel([batch("a"), batch("b"), final("ok")]), echo()[0])


@pytest.mark.parametrize("value", [None, 7, b"text"])
def test_execute_must_return_text_in_both_loops(value):
    registry, script = echo()[0], [batch("a", "b")]

    def raised_by(go):
        with pytest.raises(ValueError, match="observation as text") as raised:
            go(lambda asked: value)
        return raised.value.result

    plain = raised_by(lambda execute: run_agent("go", ScriptedModel(script), registry, execute=execute))
    by_await = raised_by(lambda execute: asyncio.run(
        run_agent_async("go", awaited(ScriptedModel(script)), registry, execute=execute)))
    assert plain == by_await and observations(plain) == [INTERRUPTED, NOT_RUN]


def test_blocks_of_instructions_stand_before_the_task():
    model = ScriptedModel([final("ok")])
    blocks = ["Read before you speak.", "Change nothing."]
    asyncio.run(run_agent_async("go", awaited(model), tool(lambda: 1), "\n\n".join(blocks)))
    assert [m["role"] for m in model.seen[0]] == ["system", "user"]
    assert all(block in model.seen[0][0]["content"] for block in blocks)


@pytest.mark.parametrize("error", [ConnectionError("503"), KeyboardInterrupt(), Stop("cost_cap")], ids=repr)
def test_what_a_model_raises_in_its_thread_ends_the_run_as_in_the_other_loop(error):
    def runs(run, model):
        try:
            return run(model), None
        except BaseException as raised:
            return raised.result, raised

    def script():
        return ScriptedModel([batch("a"), raises(error)])

    plain = runs(lambda model: run_agent("go", model, echo()[0]), script())
    by_await = runs(lambda model: asyncio.run(run_agent_async("go", async_model(model), echo()[0])), script())
    assert plain == by_await and observations(plain[0]) == ['"a"']


@pytest.mark.parametrize("watch_error", [ValueError("watch"), Stop("watch"), GeneratorExit()], ids=type)
def test_the_first_exception_goes_on_even_if_watch_raises_while_the_history_is_closed(watch_error):
    def watch(message):
        if message["content"].startswith("ERROR"):
            raise watch_error

    model, error = awaited(ScriptedModel([batch("a", "b")])), ConnectionError("503")
    with pytest.raises(ConnectionError) as raised:
        asyncio.run(run_agent_async("go", model, echo()[0], execute=raises(error), watch=watch))
    assert raised.value is error and observations(error.result) == [INTERRUPTED, NOT_RUN]


@pytest.mark.parametrize("at_once", [False, True])
def test_where_watch_raises_before_a_call_this_loop_says_not_run_and_the_other_that_it_may_have_been(at_once):
    def watch(message):
        if message["role"] == "assistant":
            raise ValueError("watch")

    model, registry, safe = ScriptedModel([batch("a", "b")]), echo()[0], {"t"} if at_once else ()
    with pytest.raises(ValueError, match="watch") as plain:
        run_agent("go", ScriptedModel([batch("a", "b")]), registry, watch=watch)
    with pytest.raises(ValueError, match="watch") as by_await:
        asyncio.run(run_agent_async("go", awaited(model), registry, watch=watch, safe=safe))
    assert observations(plain.value.result) == [INTERRUPTED, NOT_RUN]
    assert observations(by_await.value.result) == [NOT_RUN, NOT_RUN]


def test_a_model_that_is_not_awaited_is_a_value_error_that_names_async_model():
    with pytest.raises(ValueError, match=r"must be awaited; async_model\(model\)") as raised:
        asyncio.run(run_agent_async("go", ScriptedModel([final("ok")]), tool(lambda: 1)))
    assert raised.value.result.steps == 0


@pytest.mark.parametrize("where", ["model", "execute"])
def test_the_end_of_an_iterator_does_not_hang_the_run(where):
    """In some versions asyncio waits for ever for a thread that raised StopIteration."""
    model = raises(StopIteration()) if where == "model" else ScriptedModel([batch("a")])
    execute = raises(StopIteration()) if where == "execute" else None
    with pytest.raises(RuntimeError) as raised:
        asyncio.run(asyncio.wait_for(run_agent_async("go", async_model(model), echo()[0], execute=execute), 30))
    assert_closed(raised.value.result.messages)


def test_an_outcome_is_the_result_or_the_very_exception():
    error = KeyboardInterrupt()
    assert outcome(divmod, 7, 2)() == (3, 1)
    with pytest.raises(KeyboardInterrupt) as raised:
        outcome(raises(error))()
    assert raised.value is error


def test_while_a_tool_or_a_model_works_in_its_thread_the_event_loop_does_other_things():
    asked, answered = threading.Event(), threading.Event()

    def wait(x=""):
        asked.set()
        return answered.wait(30)

    def model(messages, specs):
        wait()
        return batch("a") if len(messages) < 4 else final("ok")

    async def answer():
        while not answered.is_set():
            await asyncio.sleep(0)
            if asked.is_set():
                answered.set()

    async def both():
        return await asyncio.gather(run_agent_async("go", async_model(model), tool(wait, TEXT)), answer())

    assert observations(asyncio.run(both())[0]) == ["true"]


def test_an_async_function_is_no_tool_and_a_plain_one_around_it_is():
    async def fetch(x):
        await asyncio.sleep(0)
        return f"page {x}"

    with pytest.raises(SchemaError, match="async"):
        tool(fetch, TEXT)
    registry = tool(lambda x: asyncio.run(fetch(x)), TEXT)
    result = asyncio.run(run_agent_async("go", awaited(ScriptedModel([batch("a"), final("ok")])), registry))
    assert observations(result) == ['"page a"']


def test_importing_the_file_does_not_import_asyncio():
    code = "import sys, agentloop; print(sorted({'asyncio', 'concurrent.futures'} & set(sys.modules)))"
    root = agentloop.__file__.removesuffix("agentloop.py")
    run = subprocess.run([sys.executable, "-S", "-c", code], cwd=root, capture_output=True, encoding="utf-8")
    assert run.stdout.strip() == "[]", run.stderr


# --- At once, or in order -------------------------------------------------------------------------------------


@pytest.mark.parametrize("ids", [("a", "b"), ("a", "b", "c")])
def test_calls_run_at_once_if_every_one_of_them_is_safe(ids):
    together = threading.Barrier(len(ids))  # which none passes before all have come
    model = ScriptedModel([batch(*ids), final("ok")])
    meet = tool(lambda x: together.wait(30) < len(ids) and x, TEXT)
    result = asyncio.run(run_agent_async("go", awaited(model), meet, safe={"t"}))
    assert observations(result) == [f'"{call_id}"' for call_id in ids]


@pytest.mark.parametrize("safe", [(), ["other"], {"read"}])
def test_one_call_that_is_not_safe_lets_all_calls_of_its_reply_run_in_order(safe):
    begun, another = [], threading.Event()

    def fn(x):
        begun.append(x)
        if x == "a":
            another.wait(0.05)  # the others have the time to begin
            begun.append("a is back")
        another.set()

    registry = tool(fn, TEXT, "read")
    registry.register("edit", "A tool.", TEXT, fn)
    reply = asks(call("a", "read", x="a"), call("b", "edit", x="b"), call("c", "read", x="c"))
    asyncio.run(run_agent_async("go", awaited(ScriptedModel([reply, final("ok")])), registry, safe=safe))
    assert begun == ["a", "a is back", "b", "c"]


def test_observations_stand_in_the_order_asked_whichever_came_back_first():
    order, back = ["c", "a", "b"], []
    turns = {name: threading.Event() for name in order}
    turns["c"].set()

    def fn(x):
        assert turns[x].wait(30)
        back.append(x)
        for later in order[order.index(x) + 1 :][:1]:
            turns[later].set()
        return x

    model = ScriptedModel([batch("a", "b", "c"), final("ok")])
    result = asyncio.run(run_agent_async("go", awaited(model), tool(fn, TEXT), safe={"t"}))
    assert back == order and observations(result) == ['"a"', '"b"', '"c"']
    check_messages(result.messages)


@pytest.mark.parametrize("seed", range(10))
def test_calls_at_once_give_the_same_list_as_calls_in_order(seed):
    script = random_script(random.Random(seed))
    by_await = run_agent_async("go", awaited(ScriptedModel(script)), echo()[0], **LIMITS, safe={"t", "u"})
    assert asyncio.run(by_await) == run_agent("go", ScriptedModel(script), echo()[0], **LIMITS)


def test_a_safe_call_that_waits_for_approval_is_a_value_error_and_nothing_runs_twice():
    others, ran = threading.Event(), []
    registry = tool(lambda x: ran.append(x) or (x == "c" and others.set()) or x, TEXT, "look")
    registry.register("refund", "A tool.", TEXT, lambda x: ran.append(x))
    gate = require_approval(registry, registry.check, {"refund"})

    def execute(asked):
        assert asked.name == "look" or others.wait(30)  # so c has run before b waits
        return gate(asked)

    model = ScriptedModel([asks(call("a", "look", x="a"), call("b", "refund", x="b"), call("c", "look", x="c"))])
    run = run_agent_async("go", awaited(model), registry, execute=execute, safe={"look", "refund"})
    with pytest.raises(ValueError, match="refund waits for a person, so it cannot be among the safe tools") as raised:
        asyncio.run(run)
    stopped = raised.value.result
    said = observations(stopped)
    assert said[:2] == ['"a"', "ERROR: refund waits for a person to approve it"] and said[2] in ('"c"', INTERRUPTED)
    ended = asyncio.run(continue_agent_async(stopped, awaited(ScriptedModel([final("ok")])), registry, 8, 4000))
    assert sorted(ran) == ["a", "c"] and ended.status == "done"


def test_beside_a_call_that_waits_for_approval_safe_calls_run_once():
    registry, ran = echo()
    registry.register("refund", "A tool.", TEXT, lambda x: ran.append(x) or x)
    script = [asks(call("a", "t", x="a"), call("b", "refund", x="b"), call("c", "t", x="c")), final("ok")]
    model, risky = awaited(ScriptedModel(script)), {"refund"}

    async def go():
        gate = require_approval(registry, registry.check, risky)
        waits = await run_agent_async("go", model, registry, execute=gate, safe={"t"})
        yes = require_approval(registry, registry.check, risky, decide(waits, {"b": True}))
        return waits, await continue_agent_async(waits, model, registry, 8, 4000, execute=yes, safe={"t"})

    waits, ended = asyncio.run(go())
    assert waits.status == WAITING and observations(waits) == ['"a"']
    assert observations(ended) == ['"a"', '"b"', '"c"'] and ran == ["a", "b", "c"]


def test_a_stop_of_one_of_several_calls_at_once_keeps_what_the_others_returned():
    others = threading.Barrier(3)

    def execute(asked):
        others.wait(30)
        if asked.id == "b":
            back.wait(30)
            raise Stop("deadline", "too late")
        if asked.id == "c":
            back.set()
        return asked.id

    back = threading.Event()
    model = ScriptedModel([batch("a", "b", "c")])
    result = asyncio.run(run_agent_async("go", awaited(model), echo()[0], execute=execute, safe={"t"}))
    assert result.status == "deadline" and observations(result)[:2] == ["a", "ERROR: too late"]
    assert observations(result)[2] in ("c", INTERRUPTED)  # it may just have been on its way back
    check_messages(result.messages)


# --- Cancellation ---------------------------------------------------------------------------------------------


class Gate:
    """A tool's function that returns its argument, except for those that are held until they are let go."""

    def __init__(self, *held):
        self.held, self.ran = held, []
        self.inside = {x: threading.Event() for x in held}
        self.free = threading.Event()

    def __call__(self, x):
        if x in self.held:
            self.inside[x].set()
            assert self.free.wait(30)
        self.ran.append(x)
        return x

    async def cancelled(self, run, when=None):
        """Cancel a run once every held call is inside, and `when` is true; return the CancelledError."""
        task = asyncio.ensure_future(run)
        for inside in self.inside.values():
            await asyncio.to_thread(inside.wait, 30)
        while when and not when():
            await asyncio.sleep(0)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError as error:
            return error
        finally:
            self.free.set()


@pytest.mark.parametrize(
    ("held", "seen"),
    [
        ("a", [INTERRUPTED, NOT_RUN, NOT_RUN]),
        ("b", ['"a"', INTERRUPTED, NOT_RUN]),
        ("c", ['"a"', '"b"', INTERRUPTED]),
    ],
)
def test_cancelled_in_a_call_a_run_keeps_what_came_back_and_says_what_is_unknown_and_what_did_not_run(held, seen):
    gate, told = Gate(held), []
    run = run_agent_async("go", awaited(ScriptedModel([batch("a", "b", "c")])), tool(gate, TEXT), watch=told.append)
    result = asyncio.run(gate.cancelled(run)).result
    assert (result.status, result.answer, observations(result)) == ("interrupted", None, seen)
    assert told == result.messages
    check_messages(result.messages)


def test_cancelled_while_calls_run_at_once_a_run_keeps_those_that_came_back():
    gate = Gate("a", "c")
    run = run_agent_async("go", awaited(ScriptedModel([batch("a", "b", "c")])), tool(gate, TEXT), safe={"t"})
    result = asyncio.run(gate.cancelled(run, when=lambda: "b" in gate.ran)).result
    assert observations(result)[0] == observations(result)[2] == INTERRUPTED
    assert observations(result)[1] in ('"b"', INTERRUPTED)  # it may just have been on its way back
    check_messages(result.messages)


def test_cancelled_while_the_model_is_asked_a_run_has_all_that_was_before():
    asked = asyncio.Event()

    async def model(messages, specs):
        if len(messages) == 2:
            return batch("a", "b")
        asked.set()
        await asyncio.Event().wait()

    async def go():
        task = asyncio.ensure_future(run_agent_async("go", model, echo()[0]))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as raised:
            await task
        return raised.value.result

    result = asyncio.run(go())
    assert (result.status, result.steps, observations(result)) == ("interrupted", 1, ['"a"', '"b"'])


def test_a_timeout_around_a_run_has_the_run_in_its_cause():
    async def go():
        async with asyncio.timeout(0):
            await run_agent_async("go", awaited(ScriptedModel([final("ok")])), tool(lambda: 1))

    with pytest.raises(TimeoutError) as raised:
        asyncio.run(go())
    assert raised.value.__cause__.result.status == "interrupted"


def test_after_a_cancellation_the_run_goes_on_and_nothing_runs_twice():
    gate, model = Gate("b"), ScriptedModel([batch("a", "b", "c"), final("ok")])
    registry = tool(gate, TEXT)

    async def go():
        stopped = (await gate.cancelled(run_agent_async("go", awaited(model), registry))).result
        return await continue_agent_async(stopped, awaited(model), registry, 8, 4000)

    result = asyncio.run(go())
    assert result.status == "done" and gate.ran == ["a", "b"]
    assert observations(result) == ['"a"', INTERRUPTED, NOT_RUN]


def test_a_call_that_still_waits_for_a_thread_when_the_run_is_cancelled_never_begins():
    gate = Gate("a")

    async def go():
        pool = ThreadPoolExecutor(1)
        asyncio.get_running_loop().set_default_executor(pool)
        run = run_agent_async("go", awaited(ScriptedModel([batch("a", "b")])), tool(gate, TEXT), safe={"t"})
        task = asyncio.ensure_future(run)
        while not gate.inside["a"].is_set():
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as raised:
            await task
        await asyncio.sleep(0)
        gate.free.set()
        await asyncio.to_thread(id, "the one thread is free again, and would have come to b before this")
        return raised.value.result

    result = asyncio.run(go())
    assert observations(result) == [INTERRUPTED, INTERRUPTED] and gate.ran == ["a"]


def test_a_run_that_is_cancelled_before_it_began_has_no_result():
    async def go():
        task = asyncio.ensure_future(run_agent_async("go", awaited(ScriptedModel([])), tool(lambda: 1)))
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as raised:
            await task
        return vars(raised.value)

    assert "result" not in asyncio.run(go())


# --- Events ---------------------------------------------------------------------------------------------------

LETTERS = {MessageCompleted: "m", ToolStarted: "s", ToolEnded: "e", TurnCompleted: "t", RunEnded: "r"}
GRAMMAR = "mm(m(s*e*)*t)*r"  # system and task, then turns of a reply and its calls, then one end


def as_letters(events):
    return "".join(LETTERS[type(event)] for event in events)


def assert_grammar(events, result):
    """Assert that events obey the grammar, that each call starts at most once and then ends, and that none is lost."""
    assert re.fullmatch(GRAMMAR, as_letters(events)), as_letters(events)
    messages = [event.message for event in events if isinstance(event, (MessageCompleted, ToolEnded))]
    assert messages == result.messages and events[-1] == RunEnded(result)
    started = [event.call.id for event in events if isinstance(event, ToolStarted)]
    ended = [event.message["tool_call_id"] for event in events if isinstance(event, ToolEnded)]
    assert len(set(started)) == len(started) and set(started) <= set(ended)
    for position, event in enumerate(events):
        if isinstance(event, ToolEnded) and event.message["tool_call_id"] in started:
            assert event.message["tool_call_id"] in [e.call.id for e in events[:position] if isinstance(e, ToolStarted)]
    turns = [event.step for event in events if isinstance(event, TurnCompleted)]
    assert turns == list(range(1, result.steps + 1))


async def collected(*arguments, **options):
    return [event async for event in agent_events(run_agent_async, *arguments, **options)]


def test_the_events_of_every_script_of_up_to_three_replies_obey_the_grammar():
    registry = look_registry(agentloop)

    async def go():
        for kinds in scripts(3):
            model = awaited(ScriptedModel([reply_of(agentloop, kind) for kind in kinds]))
            events = await collected("Look.", model, registry, max_steps=len(kinds), safe={"look"})
            assert_grammar(events, events[-1].result)

    asyncio.run(go())


@pytest.mark.parametrize("safe", [(), {"t"}])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_call_that_was_not_run_ends_without_having_started(number, safe):
    registry = echo()[0]
    execute = at_call(number, Stop("deadline"), registry)[0]
    events = asyncio.run(collected("go", awaited(ScriptedModel([batch("a", "b", "c")])), registry, execute=execute))
    assert_grammar(events, events[-1].result)
    assert as_letters(events) == "mmm" + "se" * number + "e" * (3 - number) + "tr"


def test_calls_at_once_have_all_started_before_the_first_ends():
    model = awaited(ScriptedModel([batch("a", "b", "c"), final("ok")]))
    assert as_letters(asyncio.run(collected("go", model, echo()[0], safe={"t"}))) == "mmm" + "sss" + "eee" + "tmtr"
    model = awaited(ScriptedModel([batch("a", "b", "c"), final("ok")]))
    assert as_letters(asyncio.run(collected("go", model, echo()[0]))) == "mmm" + "sesese" + "tmtr"


def test_a_turn_whose_calls_wait_for_approval_is_not_completed():
    registry = echo()[0]
    execute = at_call(2, Stop(WAITING), registry)[0]
    events = asyncio.run(collected("go", awaited(ScriptedModel([batch("a", "b")])), registry, execute=execute))
    assert as_letters(events) == "mmm" + "se" + "s" + "r" and events[-1].result.status == WAITING


def test_a_run_that_goes_on_tells_only_what_is_new():
    registry = echo()[0]
    execute, _ = at_call(2, Stop(WAITING), registry)
    stopped = run_agent("go", ScriptedModel([batch("a", "b")]), registry, execute=execute)

    async def go(result):
        model = awaited(ScriptedModel([final("ok")]))
        return [e async for e in agent_events(continue_agent_async, result, model, registry, 8, 4000)]

    assert as_letters(asyncio.run(go(stopped))) == "setmtr"
    assert as_letters(asyncio.run(go(replace(stopped, status="interrupted")))) == "etmtr"


def test_what_is_told_was_stored_before(tmp_path):
    path, told = tmp_path / "run.jsonl", []

    def report(event):
        stored = recover(path).messages
        told.append(event)
        messages = [e.message for e in told if isinstance(e, (MessageCompleted, ToolEnded))]
        assert stored[: len(messages)] == messages
        if isinstance(event, ToolStarted):
            assert event.call in open_calls(stored)

    model = awaited(ScriptedModel([batch("a", "b"), batch("c"), final("ok")]))
    result = asyncio.run(run_agent_async("go", model, echo()[0], watch=journal(path), report=report, safe={"t"}))
    assert recover(path).messages == result.messages and as_letters(told) == "mmm" + "sseet" + "m" + "set" + "mt"


def test_whoever_edits_an_event_changes_no_run_and_no_event_can_be_rebound():
    def rude(event):
        with pytest.raises(FrozenInstanceError):
            event.message = event.call = None
        if isinstance(event, ToolStarted):
            event.call.args["x"] = "edited"
        elif isinstance(event, (MessageCompleted, ToolEnded)):
            event.message.update(content="edited", tool_calls=[], role="user")

    registry, ran = echo()
    script = [batch("a"), final("ok")]
    result = asyncio.run(run_agent_async("go", awaited(ScriptedModel(script)), registry, report=rude))
    assert result == run_agent("go", ScriptedModel(script), echo()[0]) and ran == ["a"]


@pytest.mark.parametrize("error", [ConnectionError("503"), ValueError("mine")], ids=repr)
def test_an_exception_of_the_run_goes_on_to_whoever_reads_its_events_after_the_last_of_them(error):
    model, told = awaited(ScriptedModel([batch("a"), raises(error)])), []

    async def go():
        async for event in agent_events(run_agent_async, "go", model, echo()[0]):
            told.append(event)

    with pytest.raises(type(error)) as raised:
        asyncio.run(go())
    assert raised.value is error and error.result.status == "interrupted" and as_letters(told) == "mmm" + "set"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(2)], ids=repr)
@pytest.mark.parametrize("where", ["model", "execute"])
def test_ctrl_c_in_a_run_goes_to_whoever_reads_its_events_and_the_event_loop_lives_on(where, error):
    model = async_model(raises(error)) if where == "model" else awaited(ScriptedModel([batch("a")]))
    execute = raises(error) if where == "execute" else None

    async def go():
        try:
            await collected("go", model, echo()[0], execute=execute)
        except BaseException as raised:
            await asyncio.sleep(0)  # the loop would have ended before this
            return raised

    try:
        raised = asyncio.run(go())
    except BaseException as ended:
        pytest.fail(f"the event loop was ended by {ended!r}")
    assert raised is error and raised.result.status == "interrupted"


@pytest.mark.parametrize("leave, asked", [("break", 1), ("aclose", 0)])
def test_a_break_alone_does_not_end_a_run_whose_events_are_held_and_aclose_does(leave, asked):
    model = ScriptedModel([final("late")])

    async def go():
        events = agent_events(run_agent_async, "go", awaited(model), tool(lambda: 1))
        async for _ in events:
            break
        if leave == "aclose":
            await events.aclose()
        for _ in range(9):
            await asyncio.sleep(0)
        await events.aclose()

    asyncio.run(go())
    assert len(model.seen) == asked


def test_a_limit_that_is_none_is_a_value_error_for_whoever_reads_the_events():
    with pytest.raises(ValueError, match="max_steps"):
        asyncio.run(collected("go", awaited(ScriptedModel([])), tool(lambda: 1), max_steps=0))


def test_whoever_leaves_early_ends_the_run_and_what_was_started_is_settled():
    gate, told = Gate("b"), []
    model = ScriptedModel([batch("a", "b", "c"), final("never asked")])

    async def go():
        run = agent_events(run_agent_async, "go", awaited(model), tool(gate, TEXT), watch=told.append)
        async with aclosing(run) as events:
            async for event in events:
                if isinstance(event, ToolStarted) and event.call.id == "b":
                    break
        gate.free.set()

    asyncio.run(go())
    assert [m["content"] for m in told[3:]] == ['"a"', INTERRUPTED, NOT_RUN] and len(model.seen) == 1
    check_messages(told)


def test_whoever_is_cancelled_while_reading_events_has_the_run_in_the_exception():
    gate = Gate("a")
    error = asyncio.run(gate.cancelled(collected("go", awaited(ScriptedModel([batch("a", "b")])), tool(gate, TEXT))))
    assert error.result.status == "interrupted" and observations(error.result) == [INTERRUPTED, NOT_RUN]


def test_a_front_end_that_fails_ends_the_run_and_its_exception_goes_on():
    error = ValueError("front end")
    with pytest.raises(ValueError) as raised:
        asyncio.run(run_agent_async("go", awaited(ScriptedModel([batch("a")])), echo()[0], report=raises(error)))
    assert raised.value is error and error.result.status == "interrupted"


@pytest.mark.parametrize("fails_at", ["a", "b"])
def test_a_front_end_that_fails_at_the_start_of_a_call_leaves_none_running(fails_at):
    registry, ran = echo()

    def report(event):
        if isinstance(event, ToolStarted) and event.call.id == fails_at:
            raise ValueError("front end")

    async def go():
        model = awaited(ScriptedModel([batch("a", "b", "c")]))
        with pytest.raises(ValueError, match="front end") as raised:
            await run_agent_async("go", model, registry, report=report, safe={"t"})
        await asyncio.sleep(0)
        await asyncio.to_thread(id, "a call that had been started would have come to a thread before this")
        return raised.value.result

    assert_closed(asyncio.run(go()).messages)
    assert ran == []


# --- Two kinds of failure -------------------------------------------------------------------------------------


def failing(error):
    """Return a registry whose tool raises, with S0's observation of every exception."""
    return tool(raises(error))


def test_a_failure_that_a_tool_expects_is_an_observation_and_a_bug_goes_on():
    script, bug = [asks(call("a", "t")), final("ok")], KeyError("text")
    expected = failing(ToolFailure("use read with path='calculator.py'"))
    result = run_agent("go", ScriptedModel(script), expected, execute=strict_execute(expected))
    assert observations(result) == ["ERROR: use read with path='calculator.py'"] and result.status == "done"
    with pytest.raises(KeyError) as raised:
        run_agent("go", ScriptedModel(script), failing(bug), execute=strict_execute(failing(bug)))
    assert raised.value is bug and observations(bug.result) == [INTERRUPTED]


def test_for_the_registry_itself_every_exception_is_an_observation():
    script = [asks(call("a", "t")), final("ok")]
    seen = {
        error: observations(run_agent("go", ScriptedModel(script), failing(error)))
        for error in (ToolFailure("use read"), KeyError("text"))
    }
    assert list(seen.values()) == [
        ["ERROR: t failed: ToolFailure: use read"],
        ["ERROR: t failed: KeyError: 'text'"],
    ]


def test_what_the_model_got_wrong_is_an_observation_under_both_policies():
    registry = tool(lambda x: x, TEXT)
    strict = strict_execute(registry)
    for asked in (call("a", "nope"), call("a", "t"), call("a", "t", x=1), call("a", "t", x="y")):
        assert strict(asked) == registry(asked)


@pytest.mark.parametrize("value", [{1, 2}, float("nan"), object()])
def test_a_result_that_is_no_json_is_a_bug(value):
    with pytest.raises(TypeError):
        strict_execute(tool(lambda: value))(call("a", "t"))


# --- The smallest coding agent --------------------------------------------------------------------------------


def code(world=calculator_world):
    """Run the coding agent in the async loop; return its result and its files."""
    registry, files = world()
    model = awaited(ScriptedModel(diagnoses()))
    return asyncio.run(run_agent_async(CODING_TASK, model, registry, execute=strict_execute(registry))), files


def test_the_agent_reads_a_wrong_path_is_told_the_right_one_and_names_the_fault_in_three_turns_and_two_calls():
    result, files = code()
    assert (result.status, result.answer, result.steps) == ("done", DIAGNOSIS, 3)
    assert observations(result) == ["ERROR: use read with path='calculator.py'", json.dumps(files["calculator.py"])]
    assert "No file has been changed." in DIAGNOSIS and files == calculator_world()[1]


def test_add_2_3_is_minus_1_as_the_task_and_the_diagnosis_say():
    names = {}
    exec(calculator_world()[1]["calculator.py"], names)
    assert names["add"](2, 3) == -1 and "add(2, 3) is -1" in DIAGNOSIS and "add(2, 3) returns -1" in CODING_TASK


def test_where_an_observation_differs_the_script_fails_and_prints_no_success():
    def other_world():
        registry, files = calculator_world()
        files["sum.py"] = "def add(a, b):\n    return a + b\n"
        return registry, files

    with pytest.raises(AssertionError, match="the script expected 'ERROR: use read'") as raised:
        code(world=other_world)
    assert raised.value.result.answer is None


def test_that_the_model_stopped_does_not_mean_that_the_task_succeeded():
    result, files = code()
    assert result.status == "done" and not add_works(files)
    files["calculator.py"] = files["calculator.py"].replace("a - b", "a + b")
    assert add_works(files)


def test_with_one_step_the_failed_read_is_kept_and_the_next_request_never_happens():
    model = ScriptedModel(diagnoses())
    registry, _ = calculator_world()
    run = run_agent_async(CODING_TASK, awaited(model), registry, max_steps=1, execute=strict_execute(registry))
    result = asyncio.run(run)
    assert (result.status, result.answer, len(model.seen)) == ("step_limit", None, 1)
    assert observations(result) == ["ERROR: use read with path='calculator.py'"]


def test_a_reply_that_breaks_off_in_its_stream_runs_nothing():
    """A model that streams hands over a whole reply or none, so half a call cannot run."""
    pieces = ['{"x": "delete eve', 'rything"}']

    async def stream(broken):
        for number, piece in enumerate(pieces):
            if broken and number == 1:
                raise ConnectionError("the stream broke off")
            yield piece

    def streaming(broken):
        async def model(messages, specs):
            if len(messages) > 2:
                return final("ok")
            text = "".join([piece async for piece in stream(broken)])
            return asks(call("a", "t", **json.loads(text)))

        return model

    registry, ran = echo()
    asyncio.run(run_agent_async("go", streaming(False), registry))
    assert ran == ["delete everything"]
    with pytest.raises(ConnectionError) as raised:
        asyncio.run(run_agent_async("go", streaming(True), registry))
    assert ran == ["delete everything"] and raised.value.result.steps == 0
