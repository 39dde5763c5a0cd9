"""Section 4: what enters the message list, what is counted, and what nobody can change."""

from __future__ import annotations

import itertools
import json
import random
import sys

import pytest
from support import PLENTY, assert_closed, at_call, observations, random_script, replies, run, takes, tool

from agentloop import (
    ModelReply,
    ScriptedModel,
    Stop,
    ToolCall,
    ToolRegistry,
    Usage,
    asks,
    call,
    continue_agent,
    count_tokens,
    final,
    open_calls,
    run_agent,
)

ANY = {"type": "object", "properties": {"x": {"type": "string"}}, "required": []}


def echo(x=""):
    return x


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


# --- What a reply becomes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [None, "", "  \n", "86.0", "None", "東京 \ud83d"])
def test_the_content_of_a_reply_is_text_whatever_the_model_left_out(content):
    result = run(ScriptedModel([ModelReply(content, [call("a", "t")]), ModelReply(content)]))
    assert [message["content"] for message in replies(result)] == [content or ""] * 2
    assert (result.status, result.answer) == ("done", content or "")


@pytest.mark.parametrize("calls", [None, [], ()])
def test_a_reply_without_calls_is_the_final_answer_however_that_is_written(calls):
    result = run(ScriptedModel([ModelReply("86.0", calls)]))
    assert (result.status, result.answer, result.steps) == ("done", "86.0", 1)
    assert replies(result) == [{"role": "assistant", "content": "86.0", "tool_calls": []}]


def test_calls_may_come_as_any_iterable():
    result = run(ScriptedModel([ModelReply("", (call(i, "t") for i in "ab")), final("ok")]))
    assert observations(result) == ["1", "1"]


@pytest.mark.parametrize("text", ["Final answer: 4, but let me check.", "It is done.", "86.0"])
def test_text_beside_a_call_is_kept_and_never_mistaken_for_the_answer(text):
    result = run(ScriptedModel([asks(call("a", "t"), text=text), final("5")]))
    assert (result.answer, result.steps, replies(result)[0]["content"]) == ("5", 2, text)


NO_REPLIES = ["86.0", None, {"content": "86.0"}, 5, ["a"], ToolCall("a", "t", {}), ModelReply, final]
NO_CONTENTS = [b"86.0", ["86.0"], {"text": "86.0"}, 86.0]


@pytest.mark.parametrize("reply", NO_REPLIES + [ModelReply(content) for content in NO_CONTENTS])
def test_what_is_no_reply_is_a_value_error_and_no_step(reply):
    with pytest.raises(ValueError, match="the model must return a ModelReply") as failed:
        run(lambda messages, specs: reply)
    result = failed.value.result
    assert (result.status, result.steps, len(result.messages)) == ("interrupted", 0, 2)


ODD_REPLIES = {
    "usage as a dict": ModelReply("", [call("a", "t")], usage={"prompt": 1, "reply": 1}),
    "usage without numbers": ModelReply("", [call("a", "t")], usage=Usage(None, None)),
    "a call that is a dict": ModelReply("", [call("a", "t"), {"id": "b", "name": "t", "args": {}}]),
    "a call that is text": ModelReply("", ["t"]),
    "calls that are a number": ModelReply("", 5),
}


@pytest.mark.parametrize("odd", ODD_REPLIES.values(), ids=ODD_REPLIES)
def test_steps_counts_the_replies_in_the_list_even_if_the_last_one_was_broken(odd):
    with pytest.raises(Exception) as failed:
        run(ScriptedModel([asks(call("a", "t")), odd]))
    result = failed.value.result
    assert result.status == "interrupted" and result.steps == len(replies(result)) >= 1
    assert_closed(result.messages)


# --- Ids ------------------------------------------------------------------------------------------------------

ID_FAULTS = {
    "missing": [None, None],
    "empty": ["", ""],
    "doubled": ["a", "a", "a"],
    "numbers": [1, 1, 2.0],
    "not hashable": [["a"], {"a": 1}],
    "bytes and bools": [b"a", True, False],
    "one of ours given by the model later": ["", "call_1", "call_2", ""],
    "one of ours given by the model first": ["call_2", "", "call_1", ""],
    "mixed": ["a", "", "a", None, "b"],
}


@pytest.mark.parametrize("ids", ID_FAULTS.values(), ids=ID_FAULTS)
@pytest.mark.parametrize("together", [True, False], ids=["in one reply", "over the run"])
def test_ids_are_unique_text_and_results_keep_their_calls(ids, together):
    calls = [ToolCall(i, "t", {"x": str(n)}) for n, i in enumerate(ids)]
    script = [asks(*calls)] if together else [asks(one) for one in calls]
    result = run(ScriptedModel([*script, final("ok")]), tool(echo, ANY))
    assert_closed(result.messages)
    assert observations(result) == [f'"{n}"' for n in range(len(ids))]


def test_an_id_that_is_good_is_kept():
    first = asks(call("toolu_1", "t"), call("", "t"), call("toolu_2", "t"))
    result = run(ScriptedModel([first, asks(call("x y", "t")), final("ok")]))
    ids = [c["id"] for reply in replies(result) for c in reply["tool_calls"]]
    assert (ids[0], ids[2], ids[3]) == ("toolu_1", "toolu_2", "x y")


def test_ids_stay_unique_over_a_continued_run():
    script = [asks(call("a", "t"), call("", "t"))] * 3
    registry = tool(lambda: 1)
    result = run(ScriptedModel(script), registry, max_steps=1)
    assert_closed(continue_agent(result, ScriptedModel(script), registry, 3, PLENTY).messages)


# --- Calls that cannot run ------------------------------------------------------------------------------------


class Unprintable:
    def __repr__(self):
        raise RuntimeError("no text")


def circular():
    value = {}
    value["again"] = [value]
    return value


NOT_JSON = {
    "NaN": {"x": float("nan")},
    "infinity": {"x": [float("inf")]},
    "a set": {"x": {"a"}},
    "bytes": {"x": b"a"},
    "an object": {"x": object},
    "a number as key": {1: "a"},
    "a key deep inside": {"x": [{"y": {None: 1}}]},
    "nested too deeply": {"x": nested(5_000)},
    "nested deeper than copying can go": {"x": nested(600)},
    "a number too long to print": {"x": 10**5000},
    "unprintable": {"x": Unprintable()},
    "no object at all": {"a", "b"},
    "circular": circular(),
}


@pytest.mark.parametrize("args", NOT_JSON.values(), ids=NOT_JSON)
def test_arguments_that_are_not_json_enter_the_list_as_text_and_nothing_runs(args):
    ran = []
    script = [asks(ToolCall("a", "t", args), call("b", "t")), final("ok")]
    result = run(ScriptedModel(script), tool(lambda **kw: ran.append(kw)))
    record = replies(result)[0]["tool_calls"][0]
    assert isinstance(record["args"], str) and record["error"].startswith("arguments are not JSON: ")
    assert observations(result) == [f"ERROR: {record['error']}", "null"]
    assert (result.status, ran) == ("done", [{}])


@pytest.mark.parametrize("args", ["{bad json", None, [], ["x"], 5, True])
def test_arguments_that_are_json_but_no_object_are_refused_and_nothing_runs(args):
    ran = []
    result = run(ScriptedModel([asks(ToolCall("a", "t", args)), final("ok")]), tool(lambda: ran.append(1)))
    assert replies(result)[0]["tool_calls"] == [{"id": "a", "name": "t", "args": args}]
    assert (observations(result), ran) == (["ERROR: arguments must be a JSON object. t expects {}"], [])


@pytest.mark.parametrize(
    "name", [None, 5, True, ["t"], {"t": 1}, b"t", Unprintable(), 10**5000, nested(5_000)], ids=type
)
def test_a_name_that_is_no_text_enters_the_list_as_text_and_runs_no_tool(name):
    ran = []
    registry = ToolRegistry()
    for taken in ("None", "5", "True", "t"):
        registry.register(taken, "A tool.", {}, lambda: ran.append(1))
    result = run(ScriptedModel([asks(ToolCall("a", name, {})), final("ok")]), registry)
    message = result.messages[3]
    assert message["content"].startswith("ERROR: ") and isinstance(message["name"], str)
    assert (result.status, ran) == ("done", [])


@pytest.mark.parametrize("name", ["get_wether", "", "T", "t "])
def test_an_unknown_tool_is_answered_with_the_names_there_are_and_the_run_goes_on(name):
    result = run(ScriptedModel([asks(call("a", name, x="1")), final("sorry")]), tool(echo, ANY))
    assert observations(result) == [f"ERROR: unknown tool {name!r}. Available tools: ['t']"]
    assert (result.status, result.messages[3]["tool_call_id"]) == ("done", "a")


@pytest.mark.parametrize("own_execute", [True, False], ids=["execute", "registry"])
@pytest.mark.parametrize("args", [{}, {"x": "1"}, '{"x": ', None])
def test_a_call_that_could_not_be_decoded_runs_nothing_and_its_observation_is_its_error(args, own_execute):
    ran = []
    script = [asks(ToolCall("a", "t", args, error="cut off"), call("b", "t")), final("ok")]
    execute = (lambda c: f"{ran.append(c.id)}") if own_execute else None
    result = run(ScriptedModel(script), tool(lambda **kw: ran.append("b"), ANY), execute=execute)
    assert (len(observations(result)), observations(result)[0], ran) == (2, "ERROR: cut off", ["b"])
    assert replies(result)[0]["tool_calls"][0] == {"id": "a", "name": "t", "args": args, "error": "cut off"}


def test_the_error_of_an_adapter_may_be_the_exception_itself():
    result = run(ScriptedModel([asks(ToolCall("a", "t", {}, error=ValueError("cut off"))), final("ok")]))
    assert observations(result) == ["ERROR: cut off"]


@pytest.mark.parametrize(("name", "args"), [("t", {"x": {1}}), ("t", {1: 1}), (None, {}), (5, {"x": {1}})])
def test_the_error_of_an_adapter_stands_whatever_else_is_wrong_with_the_call(name, args):
    result = run(ScriptedModel([asks(ToolCall("a", name, args, error="cut off")), final("ok")]))
    assert observations(result) == ["ERROR: cut off"]


@pytest.mark.parametrize("error", [None, ""])
def test_the_key_error_stands_only_where_it_is_set(error):
    result = run(ScriptedModel([asks(ToolCall("a", "t", {}, error)), final("ok")]))
    assert replies(result)[0]["tool_calls"] == [{"id": "a", "name": "t", "args": {}}]
    assert observations(result) == ["1"]


# --- Replies that are none ------------------------------------------------------------------------------------


@pytest.mark.parametrize("stop_reason", ["truncated", "refused", "empty_reply", "content_review"])
@pytest.mark.parametrize("before", [0, 1], ids=["first reply", "second reply"])
def test_a_reply_with_a_stop_reason_keeps_its_text_counts_its_usage_and_runs_no_call(stop_reason, before):
    ran = []
    cut_off = ModelReply("It is 86", [call("z", "t"), ToolCall("", "t", {1: 1})], Usage(70, 5), stop_reason)
    script = [ModelReply("", [call("a", "t")], Usage(10, 5))] * before + [cut_off, final("never asked")]
    result = run(ScriptedModel(script), tool(lambda: ran.append(1)))
    assert (result.status, result.answer, result.steps) == (stop_reason, None, before + 1)
    assert result.tokens == 15 * before + 75
    assert result.messages[-1] == {"role": "assistant", "content": "It is 86", "tool_calls": []}
    assert len(ran) == before


def test_no_reply_can_say_by_itself_that_the_run_is_done():
    with pytest.raises(ValueError):
        run(ScriptedModel([ModelReply("half", [call("a", "t")], stop_reason="done")]))


@pytest.mark.parametrize("text", ["", "   \n"])
def test_an_empty_reply_without_a_stop_reason_is_done(text):
    result = run(ScriptedModel([final(text)]))
    assert (result.status, result.answer, result.steps) == ("done", text, 1)


# --- One result per call --------------------------------------------------------------------------------------


def test_each_call_of_a_reply_has_one_result_in_order_whatever_becomes_of_it():
    def fails_at_2(x):
        if x == 2:
            raise OSError("disk")
        return x

    calls = [call("a", "t", x=1), call("b", "t", x=2), call("c", "t", x="3"), call("d", "nope"), call("e", "t", x=3)]
    result = run(ScriptedModel([asks(*calls), final("ok")]), tool(fails_at_2, takes(x="integer")))
    assert [message["tool_call_id"] for message in result.messages[3:-1]] == list("abcde")
    assert [text.startswith("ERROR: ") for text in observations(result)] == [False, True, True, True, False]
    assert_closed(result.messages)


@pytest.mark.parametrize(("value", "text"), [(None, "null"), ("", '""'), ([], "[]"), (0, "0"), (False, "false")])
def test_a_tool_that_returns_nothing_still_has_a_result_with_text(value, text):
    assert observations(run(ScriptedModel([asks(call("a", "t")), final("ok")]), tool(lambda: value))) == [text]


@pytest.mark.parametrize("value", [None, 5, b"text", ["text"], {"content": "text"}])
def test_execute_must_return_text(value):
    script = ScriptedModel([asks(call("a", "t"), call("b", "t"))])
    with pytest.raises(ValueError, match="execute must return the observation as text") as failed:
        run(script, execute=lambda c: value)
    assert_closed(failed.value.result.messages)


def test_open_calls_are_those_of_the_last_reply_without_an_observation_as_copies():
    asked = [{"id": i, "name": "t", "args": {"x": [1]}} for i in "abc"]
    messages = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "", "tool_calls": asked}]
    assert [c.id for c in open_calls(messages)] == ["a", "b", "c"]
    messages.append({"role": "tool", "tool_call_id": "b", "name": "t", "content": "1"})
    assert open_calls(messages) == [ToolCall("a", "t", {"x": [1]}), ToolCall("c", "t", {"x": [1]})]
    open_calls(messages)[0].args["x"].append(2)
    assert asked[0]["args"] == {"x": [1]}
    messages.append({"role": "assistant", "content": "ok", "tool_calls": []})
    assert open_calls(messages) == open_calls([]) == open_calls(messages[:1]) == []


# --- Tokens ---------------------------------------------------------------------------------------------------


SIZES = [([], 1), ({}, 1), ("", 1), ("x" * 6, 2), ("日本" * 200, 100), ("\ud83d" * 10, 3), ("\n" * 10, 5)]


@pytest.mark.parametrize(("obj", "tokens"), SIZES)
def test_count_tokens_is_a_quarter_of_the_json_text_and_at_least_one(obj, tokens):
    assert count_tokens(obj) == tokens


def spend(result, specs):
    """Return prompt and reply tokens of each step by writing the whole list again, as the rule has it."""
    return [
        (count_tokens(specs) + count_tokens(result.messages[:i]), count_tokens(message))
        for i, message in enumerate(result.messages)
        if message["role"] == "assistant"
    ]


@pytest.mark.parametrize("seed", range(100))
def test_the_estimate_is_exactly_what_writing_the_whole_list_again_would_give(seed):
    chance = random.Random(seed)
    script, registry = random_script(chance), tool(echo, ANY)
    full = run(ScriptedModel(script), registry)
    steps = spend(full, registry.specs())
    assert (full.status, full.steps, full.tokens) == ("done", len(script), sum(map(sum, steps)))
    for budget in {full.tokens, full.tokens - 1, full.tokens // 2, chance.randint(1, full.tokens), 1}:
        allowed, spent = 0, 0
        while allowed < len(steps) and spent + steps[allowed][0] <= budget:
            spent, allowed = spent + sum(steps[allowed]), allowed + 1
        part = run(ScriptedModel(script), registry, token_budget=budget)
        status = "done" if allowed == len(steps) else "token_budget"
        assert (part.status, part.steps, part.tokens) == (status, allowed, spent)
        assert part.messages == full.messages[: len(part.messages)]


@pytest.mark.parametrize(("latin", "other"), [("ab", "日本"), ("ab", "éü"), ("abab", "🙂🙃")])
def test_the_estimate_counts_letters_and_not_their_escapes(latin, other):
    costs = [run_agent(text * 200, ScriptedModel([final("ok")]), ToolRegistry()).tokens for text in (latin, other)]
    assert costs[1] <= costs[0]


def test_usage_replaces_the_estimate_in_what_is_spent():
    script = [ModelReply("", [call("a", "t")], Usage(100, 20)), asks(call("b", "t")), ModelReply("ok", [], Usage(0, 0))]
    registry = tool(lambda: 1)
    result = run(ScriptedModel(script), registry)
    assert result.tokens == 120 + sum(spend(result, registry.specs())[1])


def test_the_next_check_of_the_budget_rests_on_what_usage_said():
    script = [ModelReply("", [call("a", "t")], Usage(900, 50)), final("ok")]
    registry = tool(lambda: 1)
    prompt = spend(run(ScriptedModel(script), registry), registry.specs())[1][0]
    assert run(ScriptedModel(script), registry, token_budget=950 + prompt).status == "done"
    assert run(ScriptedModel(script), registry, token_budget=950 + prompt - 1).status == "token_budget"


def work(steps, monkeypatch):
    """Return how many function calls a run makes, and how many characters of JSON it writes."""
    events, chars = 0, 0
    write = json.JSONEncoder.iterencode

    def counting_write(self, *args, **kwargs):
        nonlocal chars
        parts = list(write(self, *args, **kwargs))
        chars += sum(map(len, parts))
        return parts

    def count_event(frame, event, arg):
        nonlocal events
        events += event in ("call", "c_call")

    script = ScriptedModel([asks(call("", "t", x="same text"))] * steps)
    registry = tool(echo, ANY)
    with monkeypatch.context() as patch:
        patch.setattr(json.JSONEncoder, "iterencode", counting_write)
        sys.setprofile(count_event)
        try:
            run(script, registry, max_steps=steps, watch=lambda message: None)
        finally:
            sys.setprofile(None)
    return events, chars


def test_a_step_costs_the_same_however_long_the_list_is(monkeypatch):
    few, many, more = (work(steps, monkeypatch) for steps in (50, 100, 150))
    for a, b, c in zip(few, many, more):
        assert c - b <= 1.02 * (b - a)


# --- Nobody can change the run --------------------------------------------------------------------------------


def vandalise(value):
    """Edit everything that can be edited in a value."""
    if isinstance(value, dict):
        for key in list(value):
            vandalise(value[key])
            if not isinstance(value[key], (dict, list)):
                value[key] = "edited"
        value["extra"] = "edited"
    elif isinstance(value, list):
        for item in value:
            vandalise(item)
        value.append("edited")


def batch():
    return [asks(call("a", "t", x="1"), call("b", "t", x="2"), text="look"), asks(call("c", "t", x="3")), final("ok")]


def rude_model(script):
    steps = iter(script)

    def model(messages, specs):
        reply = next(steps)
        vandalise(messages)
        vandalise(specs)
        return reply

    return model


def rude_execute(call):
    text = json.dumps(call.args["x"])
    vandalise(call.args)
    return text


def emptying_model(script):
    steps = iter(script)
    return lambda messages, specs: (next(steps), messages.clear(), specs.clear())[0]


RUDE = {
    "the model": lambda script: {"model": rude_model(script)},
    "the model that empties its list": lambda script: {"model": emptying_model(script)},
    "execute": lambda script: {"execute": rude_execute},
    "watch": lambda script: {"watch": vandalise},
}


@pytest.mark.parametrize("rude", RUDE.values(), ids=RUDE)
def test_the_list_is_appended_to_and_never_edited_by_what_is_shown(rude):
    script, registry = batch(), tool(echo, ANY)
    specs = registry.specs()
    plain = run(ScriptedModel(batch()), registry)
    result = run(**{"model": ScriptedModel(script), "registry": registry} | rude(script))
    assert result == plain
    assert script == batch() and registry.specs() == specs


def test_a_tool_cannot_change_the_list_or_the_script():
    def rude(**args):
        text = args["x"]
        vandalise(args)
        return text

    script = batch()
    assert run(ScriptedModel(script), tool(rude, ANY)) == run(ScriptedModel(batch()), tool(echo, ANY))
    assert script == batch()


def test_the_model_is_given_a_new_list_each_time_and_no_message_of_the_result():
    given = []
    result = run(lambda messages, specs: given.append((messages, specs)) or batch()[len(given) - 1], tool(echo, ANY))
    lists = [messages for messages, _ in given] + [specs for _, specs in given]
    assert len({id(one) for one in lists}) == len(lists)
    own = {id(message) for message in result.messages}
    assert not any(id(message) in own for messages, _ in given for message in messages)


def test_editing_a_result_changes_no_registry_and_no_other_run():
    registry = tool(echo, ANY)
    first, second = (run(ScriptedModel(batch()), registry) for _ in range(2))
    vandalise(first.messages)
    assert second == run(ScriptedModel(batch()), registry)


def test_arguments_edited_by_their_author_after_the_reply_stay_as_they_were_asked():
    args = {"x": "1"}

    def later(messages, specs):
        args["x"] = "edited"
        return final("ok")

    result = run(ScriptedModel([asks(ToolCall("a", "t", args)), later]), tool(echo, ANY))
    assert replies(result)[0]["tool_calls"][0]["args"] == {"x": "1"}


# --- Watch ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("args", [{"x": "1"}, {"y": (1, 2)}, {"y": float("nan")}, {1: 1}, "text"], ids=repr)
def test_watch_is_told_each_message_once_as_it_stands_in_the_list(args):
    told = []
    script = [asks(ToolCall("", "t", args), call("b", "nope")), final("ok")]
    result = run(ScriptedModel(script), tool(echo, ANY), watch=told.append)
    assert told == result.messages
    assert [message["role"] for message in told] == ["system", "user", "assistant", "tool", "tool", "assistant"]
    assert json.dumps(told) == json.dumps(result.messages)


def test_watch_is_told_before_the_next_thing_happens():
    order = []

    def model(messages, specs):
        order.append("model")
        return batch()[order.count("model") - 1]

    run(model, execute=lambda c: order.append("execute") or "1", watch=lambda message: order.append(message["role"]))
    two, one, answer = "model assistant execute tool execute tool", "model assistant execute tool", "model assistant"
    assert order == f"system user {two} {one} {answer}".split()


def test_watch_and_execute_may_be_objects_that_are_empty():
    class Log(list):
        def __call__(self, *args):
            self.append(args)
            return "logged"

    watch, execute = Log(), Log()
    result = run(ScriptedModel([asks(call("a", "t")), final("ok")]), watch=watch, execute=execute)
    assert (len(watch), len(execute), observations(result)) == (len(result.messages), 1, ["logged"])


# --- Every small script ---------------------------------------------------------------------------------------

KINDS = {
    "text": final("It is 86.0 F."),
    "empty": final(""),
    "one call": asks(call("a", "t", x="1")),
    "two calls": asks(call("a", "t", x="1"), call("b", "t", x="2")),
    "text and call": asks(call("a", "t", x="1"), text="Let me look."),
    "unknown tool": asks(call("a", "nope")),
    "bad arguments": asks(call("a", "t", x=1)),
    "raising tool": asks(call("a", "t", x="raise"), call("", "t", x="2")),
    "undecodable call": asks(ToolCall("a", "t", {}, error="not JSON"), ToolCall(None, "t", {"x": {1}})),
    "truncated": ModelReply("It is 86", [call("a", "t", x="1")], stop_reason="truncated"),
}
EXITS = {"text": "done", "empty": "done", "truncated": "truncated"}
SCRIPTS = [script for length in (1, 2, 3) for script in itertools.product(KINDS, repeat=length)]


def raising_tool(x):
    if x == "raise":
        raise KeyError(x)
    return x


ALWAYS = {"done", "truncated", "step_limit"}


@pytest.mark.parametrize(("budget", "exits"), [(PLENTY, ALWAYS), (150, ALWAYS | {"token_budget"})])
def test_every_run_ends_by_exactly_one_exit_with_one_result_per_call(budget, exits):
    registry, seen = tool(raising_tool, takes(x="string")), set()
    for script in SCRIPTS:
        model = ScriptedModel([KINDS[kind] for kind in script])
        result = run(model, registry, max_steps=len(script), token_budget=budget)
        assert_closed(result.messages)
        assert 0 < result.steps == len(replies(result)) == len(model.seen) <= len(script)
        taken = [EXITS.get(kind) for kind in script[: result.steps]]
        next_prompt = count_tokens(registry.specs()) + count_tokens(result.messages)
        holds = {
            taken[-1]: taken[-1] is not None,
            "step_limit": taken[-1] is None and result.steps == len(script),
            "token_budget": taken[-1] is None and result.steps < len(script) and result.tokens + next_prompt > budget,
        }
        assert [status for status, true in holds.items() if true] == [result.status], script
        assert not any(taken[:-1]) and (result.answer is None) == (result.status != "done"), script
        seen.add(result.status)
    assert seen == exits


@pytest.mark.parametrize("at", [1, 2, 3], ids="at call {}".format)
@pytest.mark.parametrize("error", [Stop, KeyboardInterrupt, ValueError])
def test_every_run_that_is_stopped_from_outside_has_one_result_per_call_too(error, at):
    registry = tool(raising_tool, takes(x="string"))
    for script in SCRIPTS:
        execute, asked = at_call(at, error("deadline"), registry)
        model = ScriptedModel([KINDS[kind] for kind in script])
        try:
            result = run(model, registry, max_steps=len(script), execute=execute)
        except error as stopped:
            result = stopped.result
        assert_closed(result.messages)
        assert result.steps == len(replies(result))
        assert (result.status in ("deadline", "interrupted")) == (len(asked) == at), script
