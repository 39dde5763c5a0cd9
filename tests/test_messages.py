"""Section 1: the data, and scripted models."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import FrozenInstanceError

import pytest
from support import observations, run, takes, tool

import agentloop
from agentloop import ModelReply, ScriptedModel, ToolCall, Usage, after, asks, call, continue_agent, final


@pytest.mark.parametrize("name", ["self", "name", "args", "call_id", "fn", "text", "registry", "messages", "class"])
def test_an_argument_may_have_any_name(name):
    assert call("c1", "greet", **{name: "Ada"}) == ToolCall("c1", "greet", {name: "Ada"})


@pytest.mark.parametrize("data", [ToolCall("a", "t", {}), Usage(1, 2), ModelReply("hi")])
def test_the_data_is_frozen(data):
    with pytest.raises(FrozenInstanceError):
        setattr(data, next(iter(vars(data))), "other")


def test_two_replies_share_no_list_of_calls():
    assert ModelReply().tool_calls is not ModelReply().tool_calls


def test_asks_keeps_the_order_of_the_calls_and_the_text_beside_them():
    reply = asks(call("a", "t"), call("b", "t"), text="Two at once.")
    assert ([c.id for c in reply.tool_calls], reply.content) == (["a", "b"], "Two at once.")


def test_final_asks_for_nothing():
    assert final("86.0") == ModelReply("86.0", [])


# --- Scripts --------------------------------------------------------------------------------------------------


def test_a_step_may_be_a_function_of_messages_and_specs():
    model = ScriptedModel([lambda messages, specs: final(f"{messages[-1]['content']} {specs[0]['name']}")])
    assert run(model, tool(lambda: 1, name="ping")).answer == "go ping"


def test_a_script_may_be_any_iterable():
    assert run(ScriptedModel(final(text) for text in ["one"])).answer == "one"


@pytest.mark.parametrize("expected", ["first", "second", "third"])
def test_after_replies_if_any_message_since_the_last_reply_contains_the_text(expected):
    batch = asks(call("a", "t", x="first"), call("b", "t", x="second"), call("c", "t", x="third"))
    model = ScriptedModel([batch, after(expected, final("seen"))])
    assert run(model, tool(lambda x: x, takes(x="string"))).answer == "seen"


@pytest.mark.parametrize("expected", ["go", "Use the tools"])
def test_after_reads_the_task_and_the_system_text_before_the_first_reply(expected):
    assert run(ScriptedModel([after(expected, final("seen"))])).answer == "seen"


@pytest.mark.parametrize("expected", ["go", "first", "Let me look", "never said"])
def test_after_raises_where_the_text_did_not_come_since_the_last_reply(expected):
    one, two = asks(call("a", "t", x="first"), text="Let me look."), asks(call("b", "t", x="second"))
    model = ScriptedModel([one, two, after(expected, final("a success that did not happen"))])
    with pytest.raises(AssertionError, match="the script expected") as failed:
        run(model, tool(lambda x: x, takes(x="string")))
    assert expected in str(failed.value) and "second" in str(failed.value)
    assert failed.value.result.answer is None


@pytest.mark.parametrize("used", [0, 1, 2])
def test_assert_complete_raises_if_replies_were_not_used(used):
    model = ScriptedModel([final("one"), final("two"), final("three")])
    for _ in range(used):
        run(model)
    with pytest.raises(AssertionError, match=f"{3 - used} replies were not used"):
        model.assert_complete()


def test_assert_complete_is_silent_when_each_reply_was_used():
    model = ScriptedModel([final("one")])
    run(model)
    model.assert_complete()
    ScriptedModel([]).assert_complete()


@pytest.mark.parametrize("length", [0, 1, 3])
def test_a_script_that_ran_out_says_at_which_call(length):
    model = ScriptedModel([asks(call("", "t"))] * length)
    with pytest.raises(AssertionError, match="script ran out") as failed:
        run(model)
    assert str(length + 1) in str(failed.value)


def test_a_reply_of_a_module_that_was_loaded_again_still_runs():
    spec = importlib.util.spec_from_file_location("agentloop", agentloop.__file__)
    other = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "agentloop", other)
        spec.loader.exec_module(other)
    assert other.ModelReply is not ModelReply
    script = [other.asks(other.call("a", "t")), other.after("1", other.final("old")), lambda m, s: other.final("new")]
    assert run(ScriptedModel(script)).answer == "old"
    assert run(other.ScriptedModel([asks(call("a", "t")), after("1", final("mixed"))])).answer == "mixed"


# --- seen -----------------------------------------------------------------------------------------------------


def shown_to(model):
    """Wrap a model so that it notes, by itself, a copy of what it is shown."""
    notes = []

    def noting(messages, specs):
        notes.append([dict(message) for message in messages])
        return model(messages, specs)

    return noting, notes


def test_seen_holds_the_list_at_every_call():
    model = ScriptedModel([asks(call("a", "t")), asks(call("b", "t"), call("c", "t")), final("ok")])
    noting, notes = shown_to(model)
    result = run(noting)
    assert model.seen == notes
    assert [len(messages) for messages in model.seen] == [2, 4, 7]
    assert model.seen[-1] == result.messages[:-1]


@pytest.mark.parametrize("first", [[final("ok")], [asks(call("a", "t")), final("ok")]], ids=["one step", "two steps"])
@pytest.mark.parametrize("second", [[final("ok")], [asks(call("b", "t")), final("end")]], ids=["one step", "two steps"])
def test_seen_goes_on_over_two_runs_with_one_model(first, second):
    model = ScriptedModel([*first, *second])
    noting, notes = shown_to(model)
    run(noting)
    run(noting)
    assert model.seen == notes
    assert [len(messages) for messages in model.seen] == [2, 4][: len(first)] + [2, 4][: len(second)]


def test_seen_goes_on_over_a_continued_run():
    model = ScriptedModel([asks(call("a", "t")), asks(call("b", "t")), final("ok")])
    noting, notes = shown_to(model)
    registry = tool(lambda: 1)
    result = run(noting, registry, max_steps=1)
    result = continue_agent(result, noting, registry, 2, 4000)
    continue_agent(result, noting, registry, 3, 4000)
    assert model.seen == notes
    assert [len(messages) for messages in model.seen] == [2, 4, 6]


def test_seen_holds_what_a_call_was_shown_and_not_what_a_rude_step_made_of_it():
    def rude(messages, specs):
        messages.pop(0)
        messages[0]["content"] = "edited"
        messages.append({"role": "user", "content": "extra"})
        return asks(call("b", "t"))

    model = ScriptedModel([asks(call("a", "t")), rude, final("ok")])
    result = run(model)
    assert [len(messages) for messages in model.seen] == [2, 4, 6]
    assert model.seen[-1] == result.messages[:-1]


def test_seen_starts_again_where_a_list_was_cut_or_changed():
    model = ScriptedModel([final("ok")] * 4)
    lists = [[{"role": "user", "content": text} for text in texts] for texts in ("ab", "abc", "b", "xyz")]
    for messages in lists:
        model(messages, [])
    assert model.seen == lists


def test_editing_seen_changes_neither_the_run_nor_the_script():
    script = [asks(call("a", "t", x="1"), text="look"), final("ok")]
    model = ScriptedModel(script)
    result = run(model, tool(lambda x: x, takes(x="string")))
    for messages in model.seen:
        for message in messages:
            message.clear()
        messages.clear()
    assert [message["role"] for message in result.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert script == [asks(call("a", "t", x="1"), text="look"), final("ok")]


def test_editing_a_result_changes_no_script():
    model = ScriptedModel([asks(call("a", "t", x="1")), final("ok")] * 2)
    registry = tool(lambda x: x, takes(x="string"))
    first = run(model, registry)
    first.messages[2]["tool_calls"][0]["args"]["x"] = "edited"
    first.messages.clear()
    assert observations(run(model, registry)) == ['"1"']
