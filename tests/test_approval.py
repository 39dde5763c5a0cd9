"""Section 8: a person's yes or no, files that outlive a process, and a process that does not."""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import killed_run
import pytest
from support import PLENTY, observations, raises, random_script, run, takes, tool

import agentloop
from agentloop import (
    INTERRUPTED,
    NOT_RUN,
    REJECTED,
    WAITING,
    AgentResult,
    ModelReply,
    ScriptedModel,
    Stop,
    ToolCall,
    ToolRegistry,
    asks,
    call,
    check_messages,
    continue_agent,
    decide,
    final,
    journal,
    load_checkpoint,
    open_calls,
    recover,
    require_approval,
    run_agent,
    save_checkpoint,
    with_hooks,
)

EUR = takes(eur="integer")


def desk():
    """Return a registry with a harmless tool, `look`, and a risky one, `pay`, and the log of what ran."""
    ran = []
    registry = ToolRegistry()
    registry.register("look", "Look.", {}, lambda: ran.append("look") or "seen")
    registry.register("pay", "Pay.", EUR, lambda eur: ran.append(eur) or "paid")
    return registry, ran


def gated(registry, verdicts=None):
    return require_approval(registry, registry.check, {"pay"}, verdicts)


def ask_for(*replies_or_calls, **options):
    """Run a script of calls, and then "done", at the gate; return the result, the model, the registry and the log."""
    registry, ran = desk()
    script = [one if isinstance(one, ModelReply) else asks(one) for one in replies_or_calls]
    model = ScriptedModel([*script, final("done")])
    return run(model, registry, execute=gated(registry), **options), model, registry, ran


def go_on(result, decisions, model, registry, max_steps=50):
    """Go on with a run after these decisions, which went through a file on the way."""
    verdicts = json.loads(json.dumps(decide(result, decisions)))
    return continue_agent(result, model, registry, max_steps, PLENTY, execute=gated(registry, verdicts))


PAY = call("b", "pay", eur=5)


def run_python(program, *args, options=()):
    """Run a program in a new interpreter that imports the files under test, and return what it printed."""
    folders = [str(Path(module.__file__).parent) for module in (agentloop, killed_run)]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(folders)}
    command = [sys.executable, "-W", "error", *options, "-c", program, *args]
    ended = subprocess.run(command, env=env, capture_output=True, text=True, encoding="utf-8", timeout=120)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


# --- Waiting, yes and no --------------------------------------------------------------------------------------


def test_a_risky_call_is_not_run_and_the_run_waits_with_the_call_open():
    result, model, _, ran = ask_for(PAY)
    assert (result.status, result.answer, result.steps, ran) == (WAITING, None, 1, [])
    assert open_calls(result.messages) == [PAY] and result.messages[-1]["role"] == "assistant"


def test_a_yes_runs_the_call_once_and_neither_tool_nor_model_is_asked_twice():
    result, model, registry, ran = ask_for(asks(call("a", "look"), PAY))
    assert ran == ["look"] and observations(result) == ['"seen"']
    ended = go_on(result, {"b": True}, model, registry)
    assert (ended.status, ended.answer, ran) == ("done", "done", ["look", 5])
    assert len(model.seen) == 2 and observations(ended) == ['"seen"', '"paid"']
    check_messages(ended.messages)


def test_a_no_is_an_observation_and_the_model_picks_another_path():
    result, _, registry, ran = ask_for(PAY)
    other = ScriptedModel([asks(call("c", "look")), final("not paid")])
    ended = go_on(result, {"b": False}, other, registry)
    assert observations(ended) == ["ERROR: a person rejected this action", '"seen"']
    assert (ended.status, ended.answer, ran) == ("done", "not paid", ["look"])


@pytest.mark.parametrize(
    "said", [False, None, 1, 1.0, "yes", "true", "True", [True], {"approved": True}, object()], ids=repr
)
def test_only_true_approves(said):
    result, model, registry, ran = ask_for(PAY)
    assert observations(go_on(result, {"b": said}, model, registry)) == [REJECTED] and ran == []


@pytest.mark.parametrize("said", [1, "true", "yes", [True]], ids=repr)
def test_only_true_approves_in_verdicts_that_were_edited_too(said):
    result, model, registry, ran = ask_for(PAY)
    verdicts = dict.fromkeys(decide(result, {"b": True}), said)
    ended = continue_agent(result, model, registry, 9, PLENTY, execute=gated(registry, verdicts))
    assert observations(ended) == [REJECTED] and ran == []


def test_each_call_of_a_reply_has_one_observation_in_order_whatever_was_decided():
    calls = [call("a", "pay", eur=5), call("b", "look"), call("c", "pay", eur=6), call("d", "look")]
    for first in (True, False):
        for second in (True, False):
            result, model, registry, ran = ask_for(asks(*calls))
            assert ran == [] and len(open_calls(result.messages)) == 4
            ended = go_on(result, {"a": first, "c": second}, model, registry)
            seen = ['"paid"' if first else REJECTED, '"seen"', '"paid"' if second else REJECTED, '"seen"']
            assert observations(ended) == seen
            assert ran == [what for what in (5 if first else 0, "look", 6 if second else 0, "look") if what]
            check_messages(ended.messages)


def test_a_call_without_a_verdict_goes_on_waiting_and_what_came_before_it_is_not_run_again():
    result, model, registry, ran = ask_for(asks(call("a", "pay", eur=1), call("b", "look"), call("c", "pay", eur=2)))
    again = go_on(result, {}, model, registry)
    assert (again.status, again.messages, ran) == (WAITING, result.messages, [])
    half = go_on(again, {"a": True}, model, registry)
    assert (half.status, ran, [c.id for c in open_calls(half.messages)]) == (WAITING, [1, "look"], ["c"])
    ended = go_on(half, {"c": True}, model, registry)
    assert (ended.status, ran) == ("done", [1, "look", 2])


def test_the_last_of_several_can_be_decided_first_and_waits_for_its_turn():
    result, model, registry, ran = ask_for(asks(call("a", "pay", eur=1), call("c", "pay", eur=2)))
    later = decide(result, {"c": True})
    still = continue_agent(result, model, registry, 9, PLENTY, execute=gated(registry, later))
    assert (still.status, ran) == (WAITING, [])
    both = later | decide(still, {"a": False})
    assert continue_agent(still, model, registry, 9, PLENTY, execute=gated(registry, both)).status == "done"
    assert ran == [2]


BAD = {
    "wrong type": call("a", "pay", eur="five"),
    "missing": call("a", "pay"),
    "one too many": call("a", "pay", eur=5, to="me"),
    "unknown tool": call("a", "pya", eur=5),
    "not decoded": ToolCall("a", "pay", {"eur": 5}, "cut off"),
    "not JSON": ToolCall("a", "pay", {"eur": {1, 2}}),
    "no object": ToolCall("a", "pay", ["eur", 5]),
    "a name that is no text": ToolCall("a", ["pay"], {"eur": 5}),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_no_person_is_asked_about_a_call_that_cannot_run(bad):
    result, _, _, ran = ask_for(bad)
    assert (result.status, ran) == ("done", []) and observations(result)[0].startswith("ERROR: ")


def test_at_the_gate_itself_a_name_of_any_kind_is_no_risk():
    registry, ran = desk()
    for name in (["pay"], {"pay": 1}, None, 5):
        assert gated(registry)(ToolCall("a", name, {"eur": 5})).startswith("ERROR: unknown tool")
    assert ran == []


# --- What a verdict is bound to -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [call("b", "pay", eur=500), call("c", "pay", eur=5), call("b", "pay", eur=5.0), call("b", "pay2", eur=5)],
    ids=["other arguments", "another id", "another number", "another tool"],
)
def test_a_yes_to_one_call_is_none_to_another(other):
    result, _, registry, ran = ask_for(PAY)
    registry.register("pay2", "Pay too.", takes(eur="number"), lambda eur: ran.append(eur))
    gate = require_approval(registry, lambda name, args: None, {"pay", "pay2"}, decide(result, {"b": True}))
    with pytest.raises(Stop) as caught:
        gate(other)
    assert caught.value.status == WAITING and ran == []
    assert gate(PAY) == '"paid"'


def test_a_verdict_does_not_depend_on_the_order_of_arguments():
    registry = tool(lambda a, b: a + b, takes(a="integer", b="integer"), "add")
    gate = lambda verdicts: require_approval(registry, registry.check, ["add"], verdicts)  # noqa: E731
    result = run(ScriptedModel([asks(call("x", "add", a=1, b=2))]), registry, execute=gate(None))
    assert gate(decide(result, {"x": True}))(call("x", "add", b=2, a=1)) == "3"


def test_an_edited_checkpoint_is_not_covered_by_the_yes_that_was_given():
    result, model, registry, ran = ask_for(PAY)
    verdicts = decide(result, {"b": True})
    result.messages[-1]["tool_calls"][0]["args"]["eur"] = 500
    ended = continue_agent(result, model, registry, 9, PLENTY, execute=gated(registry, verdicts))
    assert (ended.status, ran) == (WAITING, [])


def test_a_hook_that_changes_an_approved_call_leaves_it_waiting_and_is_warned_of():
    result, model, registry, ran = ask_for(PAY)
    raised = with_hooks(gated(registry, decide(result, {"b": True})), lambda asked: ToolCall("b", "pay", {"eur": 500}))
    with pytest.warns(UserWarning, match="the verdict on 'b' is for other arguments than pay has now"):
        ended = continue_agent(result, model, registry, 9, PLENTY, execute=raised)
    assert ended.status == WAITING and ran == []


def test_verdicts_are_plain_json_with_odd_ids_too():
    odd = 'é 🙂 \ud83d "quoted" \n'
    result, model, registry, ran = ask_for(call(odd, "pay", eur=5))
    verdicts = decide(result, {odd: True})
    assert json.loads(json.dumps(verdicts)) == verdicts and list(verdicts.values()) == [True]
    assert go_on(result, {odd: True}, model, registry).status == "done" and ran == [5]


def test_a_bare_answer_by_id_is_no_verdict():
    result, model, registry, ran = ask_for(PAY)
    ended = continue_agent(result, model, registry, 9, PLENTY, execute=gated(registry, {"b": True}))
    assert (ended.status, ran) == (WAITING, [])


def test_editing_the_verdicts_later_opens_no_gate():
    result, model, registry, ran = ask_for(PAY)
    verdicts = {}
    gate = gated(registry, verdicts)
    verdicts.update(decide(result, {"b": True}))
    assert continue_agent(result, model, registry, 9, PLENTY, execute=gate).status == WAITING and ran == []


def test_a_decision_on_a_call_that_does_not_wait_is_a_value_error_that_names_those_that_do():
    result, model, registry, _ = ask_for(asks(call("a", "look"), PAY, call("c", "pay", eur=6)))
    for wrong in ("a", "z", "", None, 5):
        with pytest.raises(ValueError, match="waits for approval; those that wait are \\['b', 'c'\\]"):
            decide(result, {"b": True, wrong: True})


def test_only_a_run_that_waits_can_be_decided():
    waiting, model, registry, _ = ask_for(PAY)
    for status in ("interrupted", "step_limit", "deadline", ""):
        with pytest.raises(ValueError, match="no call 'b' waits for approval"):
            decide(replace(waiting, status=status), {"b": True})
    ended = go_on(waiting, {"b": True}, model, registry)
    with pytest.raises(ValueError, match="no call 'b' waits"):
        decide(ended, {"b": True})


def test_one_text_is_no_collection_of_names():
    registry, _ = desk()
    with pytest.raises(ValueError, match="collection of tool names"):
        require_approval(registry, registry.check, "pay")


def test_the_names_of_risky_tools_may_come_from_any_collection():
    for risky in ({"pay"}, ["pay"], ("pay",), iter(["pay"]), {"pay": "why"}):
        registry, ran = desk()
        gate = require_approval(registry, registry.check, risky)
        for _ in range(2):
            with pytest.raises(Stop):
                gate(PAY)
        assert gate(call("a", "look")) == '"seen"' and ran == ["look"]


# --- One run, one budget --------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_steps", [1, 2, 3, 5])
def test_approvals_give_no_fresh_steps(max_steps):
    result, model, registry, ran = ask_for(*(call(f"c{i}", "pay", eur=i) for i in range(9)), max_steps=max_steps)
    tokens = [result.tokens]
    while result.status == WAITING:
        (waiting,) = open_calls(result.messages)
        result = go_on(result, {waiting.id: True}, model, registry, max_steps)
        tokens.append(result.tokens)
    assert (result.status, result.steps, len(model.seen)) == ("step_limit", max_steps, max_steps)
    assert ran == list(range(max_steps)) and tokens[0] > 0 and tokens == sorted(tokens)


def test_a_run_with_pauses_equals_one_without_message_for_message():
    script = [asks(call("a", "look"), PAY), asks(call("c", "pay", eur=6), call("d", "look")), final("done")]
    registry, _ = desk()
    at_once = run(ScriptedModel(script), registry)
    paused, model, registry, _ = ask_for(*script[:2])
    while paused.status == WAITING:
        paused = go_on(paused, {c.id: True for c in open_calls(paused.messages) if c.name == "pay"}, model, registry)
    assert paused == at_once


# --- What a provider accepts ----------------------------------------------------------------------------------


def message(role, content="", **more):
    return {"role": role, "content": content, **more}


def reply(*ids, text=""):
    return message("assistant", text, tool_calls=[{"id": i, "name": "t", "args": {}} for i in ids])


def observed(call_id, content="1"):
    return message("tool", content, tool_call_id=call_id, name="t")


HEAD = [message("system", "s"), message("user", "go")]
GOOD = {
    "the head alone": HEAD,
    "without a system message": HEAD[1:],
    "an instruction before the task": [HEAD[0], message("user", "Be brief."), HEAD[1], reply()],
    "an answer": [*HEAD, reply(text="ok")],
    "a call": [*HEAD, reply("a"), observed("a")],
    "three calls": [*HEAD, reply("a", "b", "c"), observed("a"), observed("b"), observed("c"), reply()],
    "two replies in a row": [*HEAD, reply(), reply(text="ok")],
    "a question between steps": [*HEAD, reply("a"), observed("a"), message("user", "And?"), reply("b"), observed("b")],
    "a call with an error": [
        *HEAD,
        message("assistant", tool_calls=[{"id": "a", "name": "t", "args": "{", "error": "cut"}]),
        observed("a"),
    ],
}
FAULTS = {
    "nothing": ([], "there is no task"),
    "no task": (HEAD[:1], "there is no task"),
    "a reply first": ([reply()], "message 0 is a reply before any task"),
    "a reply before the task": ([HEAD[0], reply(), HEAD[1]], "message 1 is a reply before any task"),
    "a second system message": ([*HEAD, HEAD[0]], "message 2 is a system message and not the first"),
    "a call without its observation": ([*HEAD, reply("a")], "the call 'a' has no observation"),
    "the second call without its observation": (
        [*HEAD, reply("a", "b"), observed("a")],
        "the call 'b' has no observation",
    ),
    "a reply before an observation": (
        [*HEAD, reply("a"), reply()],
        "message 3 comes before the observation of the call 'a'",
    ),
    "a question before an observation": (
        [*HEAD, reply("a"), HEAD[1]],
        "message 3 comes before the observation of the call 'a'",
    ),
    "the wrong order": (
        [*HEAD, reply("a", "b"), observed("b"), observed("a")],
        "message 3 is the observation of 'b', which is not",
    ),
    "an observation without a call": ([*HEAD, observed("a")], "message 2 is the observation of 'a', which is not"),
    "an observation twice": ([*HEAD, reply("a"), observed("a"), observed("a")], "message 4 is the observation of 'a'"),
    "an observation of another call": ([*HEAD, reply("a"), observed("b")], "message 3 is the observation of 'b'"),
    "an id twice in a reply": (
        [*HEAD, reply("a", "a"), observed("a"), observed("a")],
        "message 2 asks for a call whose id",
    ),
    "an id twice in a run": (
        [*HEAD, reply("a"), observed("a"), reply("a"), observed("a")],
        "message 4 asks for a call whose id",
    ),
    "an empty id": ([*HEAD, reply(""), observed("")], "message 2 asks for a call whose id is empty or was taken"),
}
SHAPELESS = [
    None,
    5,
    "text",
    [],
    {},
    {"role": "user"},
    message("user", None),
    message("user", ["text"]),
    message("robot", "x"),
    message(None, "x"),
    message([], "x"),
    message("assistant", "x"),
    message("assistant", None, tool_calls=[]),
    message("assistant", "x", tool_calls={}),
    message("assistant", "x", tool_calls=[None]),
    message("assistant", "x", tool_calls=[{"id": "a", "name": "t"}]),
    message("assistant", "x", tool_calls=[{"id": 5, "name": "t", "args": {}}]),
    message("tool", "x"),
    message("tool", "x", tool_call_id="a"),
    message("assistant", "x", tool_calls=[{"id": "a", "name": "t", "args": {}, "type": "function"}]),
    message("assistant", "x", tool_calls=[{"id": "a", "name": "t", "args": {}, "error": None}]),
    message("tool", {"ok": 1}, tool_call_id="a", name="t"),
    message("tool", "x", tool_call_id=None, name="t"),
]


@pytest.mark.parametrize("messages", GOOD.values(), ids=GOOD)
def test_what_a_provider_accepts_passes(messages):
    assert check_messages(messages) is None


@pytest.mark.parametrize("messages, sentence", FAULTS.values(), ids=FAULTS)
def test_what_a_provider_refuses_is_named_with_its_first_message_at_fault(messages, sentence):
    with pytest.raises(ValueError, match=f"^{sentence}"):
        check_messages(messages)


@pytest.mark.parametrize("shapeless", SHAPELESS, ids=lambda value: json.dumps(value)[:60])
def test_what_has_not_the_shape_of_a_message_is_named(shapeless):
    with pytest.raises(ValueError, match="^message 2 has not the shape of a message$"):
        check_messages([*HEAD, shapeless])


def test_a_run_that_waits_passes_once_it_has_gone_on():
    result, model, registry, _ = ask_for(asks(call("a", "look"), PAY))
    with pytest.raises(ValueError, match="the call 'b' has no observation"):
        check_messages(result.messages)
    check_messages(go_on(result, {"b": False}, model, registry).messages)


@pytest.mark.parametrize("seed", range(10))
def test_dropping_doubling_or_swapping_messages_of_a_good_list_is_found(seed):
    chance = random.Random(seed)
    messages = run(
        ScriptedModel([*random_script(chance)[:-1], asks(call("", "t"), call("", "t")), final("ok")])
    ).messages
    check_messages(messages)
    for i in range(2, len(messages) - 1):
        with pytest.raises(ValueError):
            check_messages(messages[:i] + messages[i + 1 :])
        if messages[i]["role"] == "tool" or messages[i]["tool_calls"]:
            with pytest.raises(ValueError):
                check_messages([*messages[: i + 1], *messages[i:]])
            with pytest.raises(ValueError):
                check_messages([*messages[:i], messages[i + 1], messages[i], *messages[i + 2 :]])


# --- Checkpoints ----------------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.json"


def files(path):
    return sorted(file.name for file in path.parent.iterdir())


@pytest.mark.parametrize("seed", range(10))
def test_a_checkpoint_gives_back_the_run_as_it_was(seed, path):
    for max_steps in (1, 2, 50):
        result = run(ScriptedModel(random_script(random.Random(seed))), max_steps=max_steps)
        save_checkpoint(path, result)
        assert load_checkpoint(path) == result and files(path) == ["run.json"]
        assert load_checkpoint(str(path)) == result


@pytest.mark.parametrize("max_steps", range(1, 5))
def test_a_run_that_goes_on_from_a_checkpoint_equals_an_uninterrupted_one_message_for_message(max_steps, path):
    script = [
        asks(call("a", "look"), PAY),
        asks(call("", "look")),
        asks(call("a", "look"), text="é 🙂 \ud83d"),
        final("done"),
    ]
    whole = run(ScriptedModel(script), desk()[0])
    registry, _ = desk()
    save_checkpoint(path, run(ScriptedModel(script), registry, max_steps=max_steps))
    halted = load_checkpoint(path)
    if halted.status != "done":
        halted = continue_agent(halted, ScriptedModel(script[max_steps:]), registry, 50, PLENTY)
    assert halted == whole


FIRST = """
import sys, pathlib
from agentloop import *
from killed_run import bank
registry = bank(pathlib.Path(sys.argv[1]).parent)
model = ScriptedModel([asks(call("a", "balance"), call("b", "pay", eur=5))])
result = run_agent("Pay 5.", model, registry, execute=require_approval(registry, registry.check, {"pay"}))
save_checkpoint(sys.argv[1], result)
"""
SECOND = """
import sys, pathlib
from agentloop import *
from killed_run import bank
registry, waiting = bank(pathlib.Path(sys.argv[1]).parent), load_checkpoint(sys.argv[1])
gate = require_approval(registry, registry.check, {"pay"}, decide(waiting, {"b": sys.argv[2] == "yes"}))
model = ScriptedModel([after(sys.argv[3], final("told"))])
save_checkpoint(sys.argv[1], continue_agent(waiting, model, registry, 8, 4000, execute=gate))
"""


@pytest.mark.parametrize("said, observed, paid", [("yes", '{"paid": 5}', [5]), ("no", REJECTED, [])])
def test_a_call_that_waits_is_decided_later_and_in_another_process(said, observed, paid, path):
    run_python(FIRST, str(path))
    assert (load_checkpoint(path).status, killed_run.payments(path.parent)) == (WAITING, [])
    run_python(SECOND, str(path), said, observed)
    ended = load_checkpoint(path)
    assert (ended.status, ended.answer, ended.steps) == ("done", "told", 2)
    assert observations(ended) == ['"enough"', observed] and killed_run.payments(path.parent) == paid


@pytest.mark.parametrize("status", ["interrupted", "step_limit", "deadline"])
def test_a_loaded_run_that_stops_between_call_and_result_is_reported_as_unknown_and_runs_nothing_again(status, path):
    ran = []
    registry = tool(lambda x: ran.append(x) or x, takes(x="integer"))
    asked = [{"id": c, "name": "t", "args": {"x": n}} for n, c in enumerate("abc", start=1)]
    messages = [*HEAD, message("assistant", tool_calls=asked), observed("a")]
    save_checkpoint(path, AgentResult(status, None, 1, 100, messages))
    ended = continue_agent(load_checkpoint(path), ScriptedModel([final("ok")]), registry, 9, PLENTY)
    assert ran == [] and observations(ended) == ["1", INTERRUPTED, INTERRUPTED]
    check_messages(ended.messages)


class Unwritable:
    pass


@pytest.mark.parametrize("content", [Unwritable(), {1, 2}, float("nan"), b"bytes"], ids=repr)
def test_a_run_that_cannot_be_written_leaves_the_last_good_checkpoint_and_nothing_beside_it(content, path):
    good = run(ScriptedModel([final("ok")]))
    save_checkpoint(path, good)
    with pytest.raises((TypeError, ValueError)):
        save_checkpoint(path, replace(good, messages=[*good.messages, message("user", content)]))
    assert load_checkpoint(path) == good and files(path) == ["run.json"]


def test_a_disk_that_is_full_leaves_the_last_good_checkpoint_and_nothing_beside_it(path, monkeypatch):
    good = run(ScriptedModel([final("ok")]))
    save_checkpoint(path, good)
    for step in ("fsync", "replace"):
        with monkeypatch.context() as patched, pytest.raises(OSError, match="full"):
            patched.setattr(os, step, raises(OSError("full")))
            save_checkpoint(path, run(ScriptedModel([final("other")])))
        assert load_checkpoint(path) == good and files(path) == ["run.json"]


def test_threads_that_save_into_one_file_leave_one_of_their_runs_whole(path):
    runs = [run(ScriptedModel([final(text * 5000)])) for text in "abcd"]
    threads = [threading.Thread(target=lambda one=one: [save_checkpoint(path, one) for _ in range(20)]) for one in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert load_checkpoint(path) in runs and files(path) == ["run.json"]


FOREIGN = {
    "nothing": b"",
    "a blank": b"\n",
    "text": b"hello",
    "another object": b'{"hello": 1}\n',
    "a list": b"[1, 2]\n",
    "null": b"null\n",
    "a number": b"5",
    "bytes that are no text": b"\x00\xff\xfe\x9d",
    "brackets without end": b"[" * 100_000,
    "a number without end": b"9" * 100_000,
    "a script": b"print('hello')\n",
}


def write_one(kind, path):
    """Write a file of the kind, and return what reads it."""
    result = run(ScriptedModel([asks(call("a", "t"), text="x" * 50), final("ok")]))
    if kind == "checkpoint":
        save_checkpoint(path, result)
        return load_checkpoint
    if kind == "trace":
        agentloop.Trace().save(path, result)
        return agentloop.Trace.load
    write = journal(path)
    for one in result.messages:
        write(one)
    return recover


KINDS = ["checkpoint", "trace", "journal"]


def refused(read, path, why=None):
    """Assert that a file is refused in one sentence that names it."""
    with pytest.raises(ValueError, match=why) as caught:
        read(path)
    assert type(caught.value) is ValueError and path.name in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("kind", KINDS)
def test_a_foreign_file_is_refused_in_one_sentence_that_names_it(kind, content, path):
    read = write_one(kind, path)
    path.write_bytes(content)
    refused(read, path, f"is not a {kind} of agentloop")
    if kind == "journal":
        with pytest.raises(ValueError, match="is not a journal"):
            journal(path)
        assert path.read_bytes() == content


@pytest.mark.parametrize("kind, other", list(itertools.permutations(KINDS, 2)))
def test_a_file_of_another_kind_is_refused(kind, other, path):
    read = write_one(kind, path)
    path.unlink()
    write_one(other, path)
    refused(read, path, f"is not a {kind} of agentloop")


@pytest.mark.parametrize("version", [0, 2, "1", None, [], 1.5], ids=repr)
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_another_version_is_refused(kind, version, path):
    read = write_one(kind, path)
    header, rest = path.read_text(encoding="utf-8").split("\n", 1)
    path.write_text(json.dumps(json.loads(header) | {"version": version}) + "\n" + rest, encoding="utf-8", newline="\n")
    refused(read, path, "version 1")


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_was_cut_anywhere_is_refused_and_a_journal_only_where_no_crash_could_have_cut_it(kind, path):
    read = write_one(kind, path)
    whole = path.read_bytes()
    header, result = whole.index(b"\n"), read(path)
    for size in range(len(whole) - 1):
        path.write_bytes(whole[:size])
        if kind == "journal" and size >= header:
            kept = read(path).messages
            assert kept == result.messages[: len(kept)]
            assert len(kept) >= whole[:size].count(b"\n") - 1
        else:
            refused(read, path)


@pytest.mark.parametrize("bad", [*SHAPELESS, float("nan")], ids=lambda value: json.dumps(value)[:60])
@pytest.mark.parametrize("kind", KINDS)
def test_a_line_that_is_no_message_is_refused_with_its_number(kind, bad, path):
    read = write_one(kind, path)
    lines = path.read_text(encoding="utf-8").split("\n")
    for position in (1, 3, len(lines) - 2):
        damaged = [*lines[:position], json.dumps(bad), *lines[position + 1 :]]
        path.write_text("\n".join(damaged), encoding="utf-8", newline="\n")
        refused(read, path, f"line {position + 1} is no message")


@pytest.mark.parametrize("kind", ["checkpoint", "trace"])
@pytest.mark.parametrize("field", ["status", "steps", "tokens", "messages"])
def test_a_header_that_lost_a_field_or_what_it_says_is_refused(kind, field, path):
    read = write_one(kind, path)
    header, rest = path.read_text(encoding="utf-8").split("\n", 1)
    fields = json.loads(header)
    others = {key: value for key, value in fields.items() if key != field}
    for damaged in [others | {field: wrong} for wrong in ([5], None, {}, 5.5)] + [others] * (field != "messages"):
        path.write_text(json.dumps(damaged) + "\n" + rest, encoding="utf-8", newline="\n")
        refused(read, path, "is broken")


def test_a_missing_file_is_an_error_of_the_system_that_names_it(path):
    for read in (load_checkpoint, agentloop.Trace.load, recover):
        with pytest.raises(FileNotFoundError, match="run.json"):
            read(path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_is_ascii_with_line_feeds_and_holds_half_emojis(kind, path):
    odd = "caf\udce9 \ud83d thé \u201d 東京 🙂 \u2028 \r\n \x00"
    registry = tool(lambda: f"byte \udcff {odd}")
    result = run_agent(odd, ScriptedModel([asks(call(odd, "t"), text=odd), final(odd)]), registry, watch=journal(path))
    if kind == "checkpoint":
        save_checkpoint(path, result)
        assert load_checkpoint(path) == result
    elif kind == "trace":
        agentloop.Trace().save(path, result)
        assert agentloop.Trace.load(path).messages == result.messages
    assert kind != "journal" or recover(path).messages == result.messages
    assert path.read_bytes().isascii() and b"\r" not in path.read_bytes() and path.read_bytes().endswith(b"}\n")


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_an_editor_saved_with_other_line_ends_is_read(kind, path):
    read = write_one(kind, path)
    before = read(path)
    for lines in (path.read_bytes().replace(b"\n", b"\r\n"), path.read_bytes().rstrip(b"\r\n")):
        path.write_bytes(lines)
        assert read(path).messages == before.messages


def test_no_file_is_opened_in_the_encoding_of_the_machine(tmp_path):
    program = """
import sys
from agentloop import *
registry = ToolRegistry()
registry.register("t", "T.", {}, lambda: "東京")
path, trace = sys.argv[1], Trace()
model = ScriptedModel([asks(call("a", "t")), final("thé \\u201d")])
wrapped = {"execute": trace.execute(registry), "watch": journal(path + ".journal")}
result = run_agent("thé", trace.model(model), registry, **wrapped)
save_checkpoint(path, result)
trace.save(path + ".trace", result, redact_secrets)
assert load_checkpoint(path) == result
assert Trace.load(path + ".trace").messages == recover(path + ".journal").messages == result.messages
journal(path + ".journal")
"""
    run_python(program, str(tmp_path / "run"), options=["-X", "warn_default_encoding"])


# --- The journal ----------------------------------------------------------------------------------------------


def test_each_message_is_in_the_file_before_anything_else_happens(path):
    write, seen = journal(path), []

    def watch(one):
        write(one)
        seen.append(one)
        assert recover(path).messages == seen

    def model(messages, specs):
        assert recover(path).messages == messages
        return asks(call("", "t"), call("", "t")) if len(messages) < 9 else final("ok")

    registry = tool(lambda: recover(path).messages[-1]["role"])
    result = run(model, registry, watch=watch)
    assert seen == result.messages and '"assistant"' in observations(result)[0]


@pytest.mark.parametrize("seed", range(10))
def test_a_journal_gives_back_the_messages_and_the_steps_as_an_interrupted_run(seed, path):
    result = run(ScriptedModel(random_script(random.Random(seed))), watch=journal(path))
    crashed = recover(path)
    assert (crashed.status, crashed.answer) == ("interrupted", None)
    assert (crashed.messages, crashed.steps) == (result.messages, result.steps)


def test_a_recovered_run_counts_the_tokens_of_its_messages_and_not_those_of_the_specs(path):
    script = [asks(call("a", "t"), call("b", "t")), asks(call("c", "t")), final("ok")]
    registry = tool(lambda: "x" * 100)
    result = run(ScriptedModel(script), registry, watch=journal(path))
    assert recover(path).tokens == result.tokens - 3 * agentloop.count_tokens(registry.specs())


def test_a_journal_of_nothing_is_a_run_that_has_done_nothing(path):
    journal(path)
    assert recover(path) == AgentResult("interrupted", None, 0, 0, [])


def test_a_run_that_goes_on_is_written_into_the_same_journal(path):
    registry, _ = desk()
    script = [asks(call("a", "look")), asks(PAY), final("done")]
    first = run(ScriptedModel(script), registry, execute=gated(registry), watch=journal(path))
    assert (first.status, recover(path).messages) == (WAITING, first.messages)
    approved = gated(registry, decide(first, {"b": True}))
    ended = continue_agent(first, ScriptedModel(script[2:]), registry, 9, PLENTY, execute=approved, watch=journal(path))
    assert recover(path).messages == ended.messages and ended.status == "done"


def test_an_interrupted_run_is_in_the_journal_with_the_call_that_was_running(path):
    with pytest.raises(KeyboardInterrupt) as caught:
        run(
            ScriptedModel([asks(call("a", "t"), call("b", "t"))]),
            tool(raises(KeyboardInterrupt())),
            watch=journal(path),
        )
    assert recover(path).messages == caught.value.result.messages
    assert observations(recover(path)) == [INTERRUPTED, NOT_RUN]


def test_a_journal_cut_at_any_byte_loses_only_the_line_that_was_cut_and_the_next_line_is_not_glued_to_it(path):
    model = ScriptedModel([asks(call("a", "t"), text="é 🙂"), final("ok")])
    run(model, watch=journal(path))
    whole, messages = path.read_bytes(), recover(path).messages
    ends = [i for i, byte in enumerate(whole) if byte == ord("\n")]
    for size in [i for i in range(ends[0] + 1, len(whole) + 1) if i % 11 == 0 or {i - 2, i - 1, i} & set(ends)]:
        path.write_bytes(whole[:size])
        kept = messages[: sum(end <= size for end in ends[1:])]  # a line is whole without its line feed, too
        assert recover(path).messages == kept
        write = journal(path)
        assert recover(path).messages == kept
        extra = messages[len(kept)] if len(kept) < len(messages) else {"role": "user", "content": "More."}
        write(extra)
        assert recover(path).messages == [*kept, extra] and files(path) == ["run.json"]


def test_a_broken_line_that_no_crash_left_is_refused_and_the_file_stays(path):
    run(ScriptedModel([asks(call("a", "t")), final("ok")]), watch=journal(path))
    whole = path.read_bytes()
    for damaged in (whole + b'{"role": "assi\n', whole.replace(b'"role": "tool"', b'"role": "too'), whole + b"\n\n"):
        path.write_bytes(damaged)
        for read in (recover, journal):
            refused(read, path, "is broken: line")
        assert path.read_bytes() == damaged


def test_a_file_holds_one_run(path):
    run(ScriptedModel([final("ok")]), watch=(write := journal(path)))
    before = recover(path)
    for watch in (write, journal(path)):
        model = ScriptedModel([])
        with pytest.raises(ValueError, match="run.json holds another run") as caught:
            run(model, watch=watch)
        assert model.seen == [] and recover(path) == before
        assert caught.value.result.status == "interrupted"


def at(messages, position, one):
    """Return a copy of a list with another message at a position."""
    return [*messages[:position], one, *messages[position + 1 :]]


OTHERS = {
    "a reply while a call is open": (3, reply(text="Hi.")),
    "the observation of another call": (3, {"role": "tool", "tool_call_id": "z", "name": "t", "content": "1"}),
    "an id that was taken": (4, reply(call("a", "t"))),
    "a second system message": (4, {"role": "system", "content": "s"}),
    "no message": (4, {"role": "robot", "content": "x"}),
}


@pytest.mark.parametrize(("position", "one"), OTHERS.values(), ids=OTHERS)
def test_a_journal_refuses_a_message_that_cannot_come_next_and_keeps_what_it_has(path, position, one):
    messages = run(ScriptedModel([asks(call("a", "t")), final("ok")])).messages
    for again in (False, True):
        path.unlink(missing_ok=True)
        write = journal(path)
        for i, message in enumerate(at(messages, position, one)[: position + 1]):
            write = journal(path) if again else write
            if i < position:
                write(message)
        with pytest.raises(ValueError, match="run.json holds another run: the next message "):
            write(one)
        assert recover(path).messages == messages[:position]


def test_a_journal_that_begins_in_mid_run_takes_what_came_before_first(path):
    registry, ran = desk()
    script = ScriptedModel([asks(call("a", "look")), asks(call("b", "pay", eur=5))])
    waiting = run(script, registry, execute=gated(registry))
    model, go_on_gate = ScriptedModel([final("ok")]), gated(registry, decide(waiting, {"b": True}))
    write = journal(path)
    for message in waiting.messages:
        write(message)
    ended = continue_agent(waiting, model, registry, 9, PLENTY, execute=go_on_gate, watch=write)
    assert recover(path).messages == ended.messages and check_messages(ended.messages) is None


def test_a_risky_name_that_is_no_tool_is_refused_for_its_calls_would_run_unasked():
    registry, _ = desk()
    with pytest.raises(ValueError, match="risky names 'pya', which is no tool"):
        require_approval(registry, registry.check, {"pay", "pya"})


@pytest.mark.parametrize("sizes", [{"steps": -1}, {"tokens": -5}, {"steps": True}, {"tokens": 1.5}, {"steps": "2"}])
def test_a_checkpoint_with_impossible_sizes_is_refused(path, sizes):
    save_checkpoint(path, run(ScriptedModel([final("ok")])))
    header, *lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([json.dumps(json.loads(header) | sizes), *lines]) + "\n", encoding="utf-8")
    refused(load_checkpoint, path, "is broken: line 1")


def test_a_run_that_died_before_its_first_reply_is_begun_anew_in_the_same_file(path):
    for head in (HEAD, HEAD[:1], []):
        write = journal(path)
        for one in head:
            write(one)
        assert recover(path).steps == 0
        result = run(ScriptedModel([final("ok")]), watch=journal(path))
        assert recover(path).messages == result.messages
        path.unlink()


def test_a_tool_that_changes_the_folder_does_not_move_the_journal(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    registry = tool(lambda: os.chdir("elsewhere"))
    result = run(ScriptedModel([asks(call("a", "t")), final("ok")]), registry, watch=journal("run.json"))
    assert recover(tmp_path / "run.json").messages == result.messages
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_message_that_could_not_be_written_leaves_a_cut_line_at_most_and_nothing_follows_it(path, monkeypatch):
    registry, _ = desk()
    script = [asks(call("a", "look"), call("b", "look")), asks(call("c", "look"), call("d", "look")), final("ok")]
    write, recorded = journal(path), []

    def watch(one):
        if one.get("tool_call_id") == "c":
            with path.open("a", encoding="utf-8", newline="\n") as file, monkeypatch.context() as patched:
                patched.setattr(agentloop, "open", raises(OSError("disk full")), raising=False)
                file.write(json.dumps(one)[:20])
                write(one)
        write(one)
        recorded.append(one)

    with pytest.raises(OSError, match="disk full") as caught:
        run(ScriptedModel(script), registry, watch=watch)
    assert observations(caught.value.result) == ['"seen"', '"seen"', '"seen"', INTERRUPTED]
    assert recover(path).messages == recorded
    with pytest.raises(ValueError, match="run.json misses a message, which no other can follow"):
        write(caught.value.result.messages[-1])
    ended = continue_agent(recover(path), ScriptedModel(script[2:]), registry, 9, PLENTY, watch=journal(path))
    assert (
        observations(ended) == ['"seen"', '"seen"', INTERRUPTED, INTERRUPTED]
        and recover(path).messages == ended.messages
    )
    check_messages(ended.messages)


def test_a_journal_that_cannot_be_written_interrupts_the_run_with_its_messages_kept(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    registry = tool(lambda: [file.unlink() for file in folder.iterdir()] and folder.rmdir())
    with pytest.raises(OSError) as caught:
        run(ScriptedModel([asks(call("a", "t"), call("b", "t"))]), registry, watch=journal(folder / "run.json"))
    assert observations(caught.value.result) == ["null", INTERRUPTED]
    check_messages(caught.value.result.messages)


# --- A process that is killed ---------------------------------------------------------------------------------

POINTS = 53


def script_of_kills(folder, *point):
    """Run killed_run.py in a folder, and return how many processes were killed."""
    program = "import sys, killed_run; killed_run.main(*sys.argv[1:])"
    return int(run_python(program, str(folder), *point))


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """Return a folder with a folder for each point at which a process was killed, and one for the run that ended."""
    folder = tmp_path_factory.mktemp("killed")
    assert script_of_kills(folder) == POINTS
    return folder


def read_told(folder):
    file = folder / "told"
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def test_a_run_that_is_not_killed_pays_each_amount_once(killed):
    folder = killed / str(POINTS + 1)
    assert killed_run.payments(folder) == [1, 2, 3, 4, 5]
    assert recover(folder / "run.jsonl").messages == read_told(folder)
    check_messages(read_told(folder))


@pytest.mark.parametrize("point", range(1, POINTS + 1))
def test_killed_at_any_point_a_run_loses_no_message_repeats_no_write_and_reports_what_is_unknown(point, killed):
    folder, whole = killed / str(point), read_told(killed / str(POINTS + 1))
    crashed = recover(folder / "run.jsonl")
    assert crashed.messages == read_told(folder) == whole[: len(crashed.messages)]
    open_ids = [c.id for c in open_calls(crashed.messages)]
    result = killed_run.go(folder)
    for one, other in zip(result.messages, whole, strict=True):
        unknown = one.get("tool_call_id") in open_ids
        assert one == (other | {"content": INTERRUPTED} if unknown else other)
    assert (result.messages == whole) == (not open_ids)
    paid = killed_run.payments(folder)
    known = [json.loads(m["content"])["paid"] for m in result.messages if m["content"].startswith('{"paid"')]
    assert paid == sorted(set(paid)) and set(known) <= set(paid)
    check_messages(result.messages)
    assert recover(folder / "run.jsonl").messages == result.messages
    assert {file.name for file in folder.iterdir()} <= {"run.jsonl", "told", "paid"}


def test_the_points_include_payments_that_were_made_and_never_recorded(killed):
    def lost(point):
        known = [m["content"] for m in read_told(killed / str(point)) if m["content"].startswith('{"paid"')]
        return len(killed_run.payments(killed / str(point))) - len(known)

    assert [lost(point) for point in range(1, POINTS + 1)].count(
        1
    ) == 5 * 3  # returning, about to be recorded, half recorded


@pytest.mark.parametrize("point", [8, 9, 12, 20])
def test_killed_again_and_again_a_run_still_ends_and_pays_nothing_twice(point, tmp_path, killed):
    assert script_of_kills(tmp_path, str(point)) > 53 // (2 * point)
    result, whole = recover(tmp_path / "run.jsonl"), read_told(killed / str(POINTS + 1))
    paid = killed_run.payments(tmp_path)
    assert paid == sorted(set(paid))
    assert result.messages[-1] == whole[-1] and len(result.messages) == len(whole)
    assert all(
        one in (other, other | {"content": INTERRUPTED}) for one, other in zip(result.messages, whole, strict=True)
    )
    check_messages(result.messages)
