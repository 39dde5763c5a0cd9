"""Section 10: the adapters, with clients that need no network; tests/test_wire.py has those of the providers."""

from __future__ import annotations

import json
import re
from itertools import product
from traceback import walk_tb
from types import SimpleNamespace
from typing import Any

import pytest
from adapter_cases import ANTHROPIC, JSON_TEXT, OPENAI, AdapterCases, Link, ToolCallingCases, model_of
from looplab.provider import (
    BusyError,
    Provider,
    Refusal,
    StatusError,
    anthropic_refusal,
    as_objects,
    client_of,
    in_order,
    openai_refusal,
)
from looplab.small_model import recording
from support import observations, replies, run, takes, tool

from agentloop import (
    BAD_REPLY,
    JSON_RULES,
    OPENAI_ID,
    Json,
    ModelReply,
    ToolCall,
    Usage,
    accepted,
    anthropic_model,
    check_messages,
    continue_agent,
    explain,
    final,
    from_anthropic,
    from_json_text,
    from_openai,
    json_text_model,
    load_checkpoint,
    openai_model,
    quoted_key,
    save_checkpoint,
    sendable,
    to_anthropic,
    to_json_text,
    to_openai,
    weather_script,
    weather_world,
    with_retries,
)

TEXT = takes(q="string")
FENCE = "`" * 3


def link_of(kind: str) -> Link:
    provider = Provider(in_order([]))
    return Link(kind, provider, model_of(kind, client_of(provider)))


class TestJsonText(AdapterCases):
    @pytest.fixture
    def link(self) -> Link:
        return link_of(JSON_TEXT)


class TestAdapters(ToolCallingCases):
    @pytest.fixture(params=[ANTHROPIC, OPENAI])
    def link(self, request: pytest.FixtureRequest) -> Link:
        return link_of(request.param)


# --- Both ways to the providers -------------------------------------------------------------------------------


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def asked(*calls: Json, text: str = "") -> Json:
    return {"role": "assistant", "content": text, "tool_calls": list(calls)}


def one(call_id: str, name: str = "t", args: Any = None, **rest: Any) -> Json:
    return {"id": call_id, "name": name, "args": {} if args is None else args, **rest}


def result_of(call_id: str, content: str, name: str = "t") -> Json:
    return {"role": "tool", "tool_call_id": call_id, "name": name, "content": content}


SYSTEM = {"role": "system", "content": "s"}


def anthropic_answer(content: list[Json], stop_reason: str = "end_turn", **usage: Any) -> Any:
    """Return a response of Anthropic's client."""
    used = {"input_tokens": 10, "output_tokens": 2} | usage
    return as_objects({"content": content, "stop_reason": stop_reason, "usage": used})


def openai_answer(*calls: Json, content: str | None = None, finish: str = "tool_calls", **rest: Any) -> Any:
    """Return a response of OpenAI's client; a call is given by its function and perhaps its id."""
    tool_calls = [{"id": "c1", "type": "function"} | asked for asked in calls]
    message = {"role": "assistant", "content": content, "tool_calls": tool_calls} | rest
    return as_objects({"choices": [{"finish_reason": finish, "message": message}]})


def function(arguments: Any, name: str = "t") -> Json:
    return {"function": {"name": name, "arguments": arguments}}


def test_the_system_text_goes_apart_and_all_results_of_a_reply_travel_in_one_message():
    messages = [SYSTEM, user("go"), asked(one("a"), one("b")), result_of("a", "1"), result_of("b", "ERROR: no")]
    request = to_anthropic(messages, [])
    assert list(request) == ["system", "messages"] and request["system"] == "s"
    assert [turn["role"] for turn in request["messages"]] == ["user", "assistant", "user"]
    assert request["messages"][2]["content"] == [
        {"type": "tool_result", "tool_use_id": "a", "content": "1"},
        {"type": "tool_result", "tool_use_id": "b", "content": "ERROR: no", "is_error": True},
    ]


def test_a_result_that_only_quotes_an_error_is_none():
    messages = [user("go"), asked(one("a")), result_of("a", '"ERROR: of the tool\'s own words"')]
    assert "is_error" not in to_anthropic(messages, [])["messages"][2]["content"][0]


def test_text_comes_after_the_results():
    messages = [user("go"), asked(one("a")), result_of("a", "1"), user("and hurry")]
    turns = to_anthropic(messages, [])["messages"]
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]
    assert [block["type"] for block in turns[2]["content"]] == ["tool_result", "text"]


@pytest.mark.parametrize("blank", ["", "  \n"])
def test_blank_text_is_left_out_and_so_is_a_reply_that_has_nothing_else(blank):
    messages = [user("go"), asked(one("a"), text=blank), result_of("a", "1"), asked(text=blank), user(blank)]
    turns = to_anthropic(messages, [])["messages"]
    assert [[block["type"] for block in turn["content"]] for turn in turns] == [["text"], ["tool_use"], ["tool_result"]]
    assert [message["role"] for message in to_openai(messages, [])["messages"]] == ["user", "assistant", "tool", "user"]
    assert "system" not in to_anthropic([{"role": "system", "content": blank}, user("go")], [])


def test_a_list_that_ends_with_a_reply_gets_a_last_word_from_the_user():
    turns = to_anthropic([user("go"), asked(text="It is")], [])["messages"]
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]


def test_tools_go_out_as_each_provider_wants_them_and_no_empty_list_of_them():
    registry = tool(lambda: 1, {"type": "object"}, name="ping")
    parameters = {"type": "object", "properties": {}}
    assert to_anthropic([user("go")], registry.specs())["tools"] == [
        {"name": "ping", "description": "A tool.", "input_schema": {"type": "object"}}
    ]
    assert to_openai([user("go")], registry.specs())["tools"] == [
        {"type": "function", "function": {"name": "ping", "description": "A tool.", "parameters": parameters}}
    ]
    assert "tools" not in to_anthropic([user("go")], []) and "tools" not in to_openai([user("go")], [])


def test_openai_gets_arguments_as_json_text_no_null_and_no_empty_list_of_calls():
    messages = [SYSTEM, user("go"), asked(one("c1", args={"city": "Malmö"})), result_of("c1", "null"), asked(text="ok")]
    sent = to_openai(messages, [])["messages"]
    assert sent == [
        SYSTEM,
        user("go"),
        {"role": "assistant", "content": "", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "t", "arguments": '{"city": "Malmö"}'}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "null"},
        {"role": "assistant", "content": "ok"},
    ]


def test_arguments_survive_the_way_out_and_back():
    args = {"city": "Malmö", "n": [1, None]}
    sent = to_openai([user("go"), asked(one("a", args=args))], [])["messages"][1]["tool_calls"]
    assert from_openai(openai_answer(*sent)).tool_calls == [ToolCall("a", "t", args)]


@pytest.mark.parametrize("arguments", ['"hello"', "5", '["Pune"]', "true", '"{city: 1}"'])
def test_arguments_that_are_json_but_no_object_are_told_so(arguments):
    script = iter([from_openai(openai_answer(function(arguments))), final("ok")])
    said = observations(run(lambda messages, specs: next(script), tool(lambda q: q, TEXT)))
    assert said == ['ERROR: arguments must be a JSON object. t expects {"q": {"type": "string"}}']


@pytest.mark.parametrize("args", ["{city: 'Oslo'}", ["Oslo"], 7, None])
def test_a_call_whose_arguments_were_no_object_goes_out_with_none(args):
    messages = [user("go"), asked({"id": "a", "name": "t", "args": args}), result_of("a", "ERROR: arguments")]
    assert to_anthropic(messages, [])["messages"][1]["content"][0]["input"] == {}
    assert to_openai(messages, [])["messages"][1]["tool_calls"][0]["function"]["arguments"] == "{}"


def texts(letters: str, most: int) -> list[str]:
    """Return all texts of up to `most` of these letters, and what becomes of each, which is a text too."""
    made = ["".join(text) for size in range(most + 1) for text in product(letters, repeat=size)]
    return list(dict.fromkeys([*made, *map(accepted, made), *(accepted(text, OPENAI_ID) for text in made)]))


@pytest.mark.parametrize("pattern", ["[a-zA-Z0-9_-]{1,64}", OPENAI_ID])
def test_names_and_ids_that_differ_stay_different_in_what_is_sent(pattern):
    several = texts("a2e_.", 4) + texts("é:\n\ud800", 3)
    several += ["x" * size for size in range(5, 100)] + [f"{'x' * 70}{letter}" for letter in "._-"]
    assert len(set(several)) > 1000
    sent = [accepted(text, pattern) for text in several]
    assert len(set(sent)) == len(set(several))
    assert all(re.fullmatch(pattern, text) for text in sent)
    for text, there in zip(several, sent):
        assert there == text or re.search("__[0-9a-f]{16}$", there) and len(there) <= 40


@pytest.mark.parametrize("name", ["get_weather", "t", "c_to_f", "get_face_id", "a_2eb", "w" * 64, "a__b-c"])
def test_a_name_that_can_be_registered_goes_out_as_it_is(name):
    registry = tool(lambda: 1, name=name)
    messages = [user("go"), asked(one("a", name)), result_of("a", "1", name)]
    for request in (to_anthropic(messages, registry.specs()), to_openai(messages, registry.specs())):
        assert json.dumps(request).count(f'"name": "{name}"') == 2


@pytest.mark.parametrize("ids", [
    ("t:0", "t.0"), ("a.b", "a_2eb"), ("x" * 70 + "1", "x" * 70 + "2"), ("a\ud800", "a\ud801"), ("a?", "a\ud801")])
def test_two_calls_of_a_reply_keep_their_own_results_whatever_their_ids(ids):
    messages = [user("go"), asked(*map(one, ids)), *(result_of(call_id, call_id) for call_id in ids)]
    asking = {"model": "m", "max_tokens": 1} | to_anthropic(messages, [])
    assert anthropic_refusal(asking) is None
    sent = [block["id"] for block in asking["messages"][1]["content"]]
    assert [block["tool_use_id"] for block in asking["messages"][2]["content"]] == sent
    asking = {"model": "m"} | to_openai(messages, [])
    assert openai_refusal(asking) is None
    assert [message["content"] for message in asking["messages"][2:]] == sendable(list(ids))
    sent = [call["id"] for call in asking["messages"][1]["tool_calls"]]
    assert [message["tool_call_id"] for message in asking["messages"][2:]] == sent and len(set(sent)) == 2


def test_the_ids_of_a_recorded_server_are_too_long_for_openai_and_go_out_short():
    recorded = recording("server", "pune")
    ids = {call["id"] for reply in replies(recorded) for call in reply["tool_calls"]}
    assert min(map(len, ids)) > 40
    asking = {"model": "m"} | to_openai(recorded.messages, [])
    assert openai_refusal(asking) is None
    sent = {call["id"] for message in asking["messages"] for call in message.get("tool_calls", [])}
    assert len(sent) == len(ids) and max(map(len, sent)) == 40


def test_openai_is_sent_short_ids_as_they_are():
    messages = [user("go"), asked(one("functions.t:0")), result_of("functions.t:0", "1")]
    assert to_openai(messages, [])["messages"][1]["tool_calls"][0]["id"] == "functions.t:0"


def test_what_goes_out_is_a_copy():
    messages, specs = [user("go"), asked(one("a", args={"q": [1]})), result_of("a", "1")], tool(lambda: 1).specs()
    before = json.dumps([messages, specs])
    for request in (to_anthropic(messages, specs), to_openai(messages, specs)):
        request["tools"][0].clear()
        for message in request["messages"]:
            message.clear()
    to_anthropic(messages, specs)["messages"][1]["content"][0]["input"]["q"].append(2)
    assert json.dumps([messages, specs]) == before


@pytest.mark.parametrize("arguments", ["", "   ", None, "null", "{}", '""', '"null"', {}])
def test_no_arguments_are_an_empty_object(arguments):
    assert from_openai(openai_answer(function(arguments))).tool_calls == [ToolCall("c1", "t", {})]
    block = {"type": "tool_use", "id": "c1", "name": "t", "input": arguments}
    assert from_anthropic(anthropic_answer([block])).tool_calls == [ToolCall("c1", "t", {})]


def test_arguments_that_are_missing_are_an_empty_object():
    assert from_openai(openai_answer({"function": {"name": "t"}})).tool_calls == [ToolCall("c1", "t", {})]


def test_arguments_that_were_encoded_twice_are_decoded_twice_and_not_more_often():
    twice = json.dumps(json.dumps({"city": "Malmö"}))
    assert from_openai(openai_answer(function(twice))).tool_calls[0].args == {"city": "Malmö"}
    assert from_openai(openai_answer(function(json.dumps(twice)))).tool_calls[0].args == json.dumps({"city": "Malmö"})


def test_a_call_that_cannot_be_decoded_is_observed_and_the_good_ones_beside_it_run():
    calls = [function("{city: 'Oslo'}"), function('{"city": "Oslo"}'), function('["Oslo"]'), function('{"city": NaN}')]
    script = iter([from_openai(openai_answer(*calls)), final("ok")])
    ran: list[str] = []
    registry = tool(lambda city: ran.append(city) or city, takes(city="string"))
    result = run(lambda messages, specs: next(script), registry)
    assert ran == ["Oslo"] and result.answer == "ok"
    assert observations(result)[:3] == [
        "ERROR: arguments are not JSON: {city: 'Oslo'}",
        '"Oslo"',
        'ERROR: arguments must be a JSON object. t expects {"city": {"type": "string"}}',
    ]
    assert observations(result)[3].startswith("ERROR: arguments are not JSON")
    assert openai_refusal({"model": "m"} | to_openai(result.messages, [])) is None
    assert anthropic_refusal({"model": "m", "max_tokens": 1} | to_anthropic(result.messages, [])) is None


def test_raw_arguments_are_shortened_in_the_observation_and_whole_in_the_list():
    raw = "{city: " + "x" * 5000
    bad = from_openai(openai_answer(function(raw))).tool_calls[0]
    assert bad.args == raw and bad.error == f"arguments are not JSON: {raw[:200]}…"


def test_calls_alone_decide_where_the_stop_reason_says_otherwise():
    assert from_openai(openai_answer(content="hm", finish="tool_calls")) == ModelReply("hm")
    assert from_openai(openai_answer(function("{}"), finish="stop")).tool_calls == [ToolCall("c1", "t", {})]
    block = {"type": "tool_use", "id": "a", "name": "t", "input": {}}
    assert len(from_anthropic(anthropic_answer([block], "end_turn")).tool_calls) == 1
    assert from_anthropic(anthropic_answer([{"type": "text", "text": "hm"}], "tool_use")).stop_reason == ""


@pytest.mark.parametrize(("theirs", "ours"), [
    ("end_turn", ""), ("tool_use", ""), ("stop_sequence", ""), ("pause_turn", ""), ("a_new_one", ""), (None, ""),
    (["refusal"], ""), ({}, ""),
    ("max_tokens", "truncated"), ("model_context_window_exceeded", "truncated"), ("refusal", "refused"),
])
def test_stop_reasons_of_anthropic_are_read(theirs, ours):
    assert from_anthropic(anthropic_answer([{"type": "text", "text": "hm"}], theirs)).stop_reason == ours


@pytest.mark.parametrize(("theirs", "ours"), [
    ("stop", ""), ("tool_calls", ""), ("function_call", ""), (None, ""),
    ("length", "truncated"), ("content_filter", "refused"), ("a_new_one", ""),
    ("abort", "truncated"), ("error", "truncated"), ("model_length", "truncated"),
    ("insufficient_system_resource", "truncated"), (["length"], ""), ({}, ""),
])
def test_stop_reasons_of_openai_and_of_compatible_servers_are_read(theirs, ours):
    assert from_openai(openai_answer(content="hm", finish=theirs)).stop_reason == ours


@pytest.mark.parametrize("finish", ["abort", "error", "model_length", "insufficient_system_resource"])
def test_the_calls_of_a_reply_that_a_server_gave_up_never_run(finish):
    ran: list[str] = []
    reply = from_openai(openai_answer(function('{"q": "x"}'), finish=finish))
    result = run(lambda messages, specs: reply, tool(lambda q: ran.append(q), TEXT))
    assert (result.status, result.answer, ran) == ("truncated", None, [])


def test_a_refusal_beside_no_content_is_a_refused_reply_with_its_text():
    refused = openai_answer(finish="stop", refusal="I will not.")
    assert from_openai(refused) == ModelReply("I will not.", stop_reason="refused")


@pytest.mark.parametrize("refusal", [["I will not."], True, 7, {}])
def test_a_refusal_that_is_no_text_is_none(refusal):
    assert from_openai(openai_answer(content="It is 86.", finish="stop", refusal=refusal)) == ModelReply("It is 86.")


def test_text_blocks_are_joined_and_others_are_not_kept():
    blocks = [{"type": "thinking", "thinking": "…", "signature": "s"}, {"type": "text", "text": "It is "},
              {"type": "text", "text": "86."}]
    assert from_anthropic(anthropic_answer(blocks)).content == "It is 86."


def test_tokens_of_the_cache_count_as_prompt():
    cached = anthropic_answer([], cache_read_input_tokens=500, cache_creation_input_tokens=None)
    assert from_anthropic(cached).usage == Usage(510, 2)
    assert from_anthropic(anthropic_answer([], cache_creation_input_tokens=30)).usage == Usage(40, 2)


@pytest.mark.parametrize("usage", [None, {}, {"input_tokens": None, "output_tokens": None}])
def test_an_answer_of_anthropics_kind_without_usage_leaves_the_estimate(usage):
    answer = anthropic_answer([{"type": "text", "text": "hm"}])
    answer.usage = as_objects(usage)
    assert from_anthropic(answer) == ModelReply("hm")
    del answer.usage
    assert from_anthropic(answer) == ModelReply("hm")


@pytest.mark.parametrize("usage", [None, {"prompt_tokens": None, "completion_tokens": None},
                                   {"prompt_tokens": 0, "completion_tokens": 0}])
def test_a_server_that_counts_no_tokens_leaves_the_estimate(usage):
    answer = openai_answer(content="hm")
    answer.usage = as_objects(usage)
    assert from_openai(answer).usage is None


@pytest.mark.parametrize("usage", [
    {"prompt_tokens": "5", "completion_tokens": 2}, {"prompt_tokens": 5, "completion_tokens": "2"},
    {"prompt_tokens": 5.5, "completion_tokens": 2}, {"prompt_tokens": [5]}, "5",
    {"prompt_tokens": 5, "completion_tokens": -1}, {"prompt_tokens": -1, "completion_tokens": -1},
])
def test_tokens_that_are_no_whole_numbers_are_not_counted(usage):
    answer = openai_answer(content="hm")
    answer.usage = as_objects(usage)
    assert from_openai(answer).usage in (None, Usage(5, 0))


@pytest.mark.parametrize("response", [
    SimpleNamespace(), SimpleNamespace(choices=None), SimpleNamespace(choices=[]), SimpleNamespace(choices=[None]),
    SimpleNamespace(choices=[SimpleNamespace(message=None)]), "<html>Sign in</html>", None,
    SimpleNamespace(choices=None, error={"message": "insufficient credits"}),
    *(SimpleNamespace(content=[block], choices=[block], stop_reason=None) for block in (None, "hm", {"text": "hm"})),
])
@pytest.mark.parametrize(("read", "part"), [(from_openai, "choices"), (from_anthropic, "content")])
def test_an_answer_without_a_reply_is_a_sentence_that_shows_what_came(read, part, response):
    said = f"the server sent no {part}, so there is no reply; check base_url, and what it did send: "
    with pytest.raises(ValueError, match=said) as caught:
        read(response)
    assert str(caught.value).endswith(repr(getattr(response, "error", response))[:200])


def test_a_text_of_null_says_nothing_and_a_content_of_null_is_no_reply():
    assert from_anthropic(anthropic_answer([{"type": "text", "text": None}])).stop_reason == "empty_reply"
    with pytest.raises(ValueError, match="the server sent no content"):
        from_anthropic(SimpleNamespace(content=None, stop_reason="end_turn"))


@pytest.mark.parametrize("make", [anthropic_model, openai_model])
def test_an_answer_that_must_be_awaited_is_a_sentence(make):
    async def create(**request: Any) -> None:
        """Answer as an async client does."""

    asked = SimpleNamespace(create=create)
    model = make(SimpleNamespace(messages=asked, chat=SimpleNamespace(completions=asked)), "m")
    with pytest.raises(ValueError, match="must be awaited; take the client without Async in its name"):
        model([user("go")], [])


@pytest.mark.parametrize("make", [anthropic_model, openai_model])
def test_a_class_in_the_place_of_a_client_is_a_sentence_when_the_model_is_made(make):
    with pytest.raises(ValueError, match=r"^SimpleNamespace is a class, and not yet a client; .*SimpleNamespace\(\)$"):
        make(SimpleNamespace, "m")


@pytest.mark.parametrize(("make", "client", "part"), [
    (anthropic_model, SimpleNamespace(chat=None), "messages"), (openai_model, SimpleNamespace(messages=None), "chat")])
def test_a_client_of_the_other_kind_is_a_sentence_when_the_model_is_made(make, client, part):
    with pytest.raises(ValueError, match=f"SimpleNamespace has no '{part}'; anthropic_model takes Anthropic's clients"):
        make(client, "m")


@pytest.mark.parametrize("make", [anthropic_model, openai_model])
def test_thinking_may_only_be_disabled_for_its_blocks_are_not_kept(make):
    client = client_of(Provider(in_order([final("ok")])))
    for told in ({"type": "enabled", "budget_tokens": 1024}, {"type": "adaptive"}):
        for options in ({"thinking": told}, {"extra_body": {"thinking": told}}):
            with pytest.raises(ValueError, match="thoughts must be sent back, and are not kept"):
                make(client, "m", **options)
    for options in ({"thinking": {"type": "disabled"}}, {"thinking": None}, {"extra_body": None}):
        assert make(client, "m", **options) is not None
    assert make(client, "m", thinking={"type": "disabled"})([user("go")], []).content == "ok"


def test_a_compatible_server_may_leave_out_everything_but_the_choice():
    bare = as_objects({"choices": [{"message": {"tool_calls": [{"function": {"name": "t"}}]}}]})
    assert from_openai(bare) == ModelReply("", [ToolCall(None, "t", {})])


@pytest.mark.parametrize("parts", [
    [{"type": "text", "text": "It is "}, {"type": "text", "text": "86."}],
    as_objects([{"type": "text", "text": "It is 86."}, {"type": "image"}]),
    [None, {"text": "It is 86."}, {"text": None}],
])
def test_a_content_that_is_a_list_of_parts_is_its_text(parts):
    answer = openai_answer(finish="stop")
    answer.choices[0].message.content = parts
    assert from_openai(answer) == ModelReply("It is 86.")


def test_a_call_without_a_function_is_an_unknown_tool_and_the_run_goes_on():
    script = iter([from_openai(openai_answer({"function": None}, {})), final("ok")])
    result = run(lambda messages, specs: next(script))
    assert result.answer == "ok"
    assert [text.partition(".")[0] for text in observations(result)] == ["ERROR: unknown tool ''"] * 2
    assert anthropic_refusal({"model": "m", "max_tokens": 1} | to_anthropic(result.messages, [])) is None
    assert openai_refusal({"model": "m"} | to_openai(result.messages, [])) is None


OPEN_CALL = [SYSTEM, user("go"), asked(one("a"))]


@pytest.mark.parametrize("kind", [ANTHROPIC, OPENAI, JSON_TEXT])
def test_a_list_that_a_provider_would_refuse_is_a_sentence_before_anything_is_sent(kind):
    link = link_of(kind)
    with pytest.raises(ValueError, match="the call 'a' has no observation"):
        link.model(OPEN_CALL, [])
    assert link.provider.requests == []


@pytest.mark.parametrize("kind", [ANTHROPIC, OPENAI, JSON_TEXT])
@pytest.mark.parametrize("blank", ["", " \n"])
def test_a_blank_task_is_the_same_sentence_for_every_model_before_anything_is_sent(kind, blank):
    link = link_of(kind)
    with pytest.raises(ValueError, match="the task is blank, so there is nothing to send"):
        link.run([final("ok")], task=blank)
    assert link.provider.requests == []


@pytest.mark.parametrize("kind", [ANTHROPIC, OPENAI, JSON_TEXT])
def test_a_task_that_is_blank_is_not_made_good_by_a_later_message_of_the_user(kind):
    link = link_of(kind)
    messages = [SYSTEM, user(""), asked(one("a")), result_of("a", "1"), user("go")]
    with pytest.raises(ValueError, match="the task is blank"):
        link.model(messages, [])
    link.provider.answer = in_order([final("ok")])
    assert link.model([SYSTEM, user(""), user("go"), *messages[2:]], []).content == "ok"


def test_options_go_to_the_api_as_they_are():
    given: list[Json] = []
    create = lambda **request: given.append(request) or anthropic_answer([])  # noqa: E731
    client = SimpleNamespace(messages=SimpleNamespace(create=create))
    anthropic_model(client, "m", max_tokens=7, temperature=0)([user("go")], [])
    assert {key: given[0][key] for key in ("model", "max_tokens", "temperature")} == {
        "model": "m", "max_tokens": 7, "temperature": 0}
    create = lambda **request: given.append(request) or openai_answer(content="hm")  # noqa: E731
    client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))
    openai_model(client, "m", max_completion_tokens=7)([user("go")], [])
    assert (given[1]["model"], given[1]["max_completion_tokens"]) == ("m", 7)


@pytest.mark.parametrize("make", [anthropic_model, openai_model])
@pytest.mark.parametrize("name", ["api_key", "auth_token", "aws_access_key", "aws_secret_key", "aws_session_token"])
def test_a_key_that_cannot_be_sent_is_refused_before_an_error_can_quote_it(make, name):
    for key in ("sk-secret\n", " sk-secret", "sk-\nsecret", "sk-\tsecret", "sk-se cret", "sk-secret\x7f", "sk-sécret"):
        with pytest.raises(ValueError, match=f"the client's {name} holds white space") as caught:
            make(SimpleNamespace(**{name: key}), "m")
        assert "sk-" not in str(caught.value)
    for key in ("sk-secret_0+/=", "", None, lambda: "a token that is made when it is needed"):
        make(SimpleNamespace(messages=None, chat=None, **{name: key}), "m")


@pytest.mark.parametrize("make", [anthropic_model, openai_model])
def test_a_header_that_cannot_be_sent_is_refused_before_an_error_can_quote_it(make):
    for value in ("secret\n", " secret", "se\ncret", "sécret", "Bearer "):
        with pytest.raises(ValueError, match="the client's header 'x-token' holds what cannot be sent") as caught:
            make(SimpleNamespace(default_headers={"accept": "text", "x-token": value}), "m")
        assert "cret" not in str(caught.value)
    headers = {"a": "", "b": "x", "c": "Client/1.0 (any one)", "d": object()}
    make(SimpleNamespace(messages=None, chat=None, default_headers=headers), "m")


SECRET_KEY = "zq-secret/0123+456="


class AnswerError(Exception):
    """An answer of a provider, as its client raises it: made from more than a text."""

    def __init__(self, message: str, *, status_code: int, body: object = None) -> None:
        super().__init__(message)
        self.status_code, self.body = status_code, body


class Request:
    """A request, which does not show its headers when it is printed."""

    def __init__(self, headers: dict[str, str]) -> None:
        self.headers = headers


def about(error: BaseException, header: str = "Authorization", value: str = f"Bearer {SECRET_KEY}") -> BaseException:
    """Return an exception with the request that it is about, whose header holds a key."""
    vars(error)["request"] = Request({"accept": "text", header: value})
    return error


def noted(error: BaseException, note: str) -> BaseException:
    """Return an exception with a note."""
    error.add_note(note)
    return error


def caused(error: BaseException, by: BaseException, hidden: bool = False) -> BaseException:
    """Return an exception with a cause, or, hidden, with a context that no traceback shows."""
    error.__cause__, error.__context__, error.__suppress_context__ = None if hidden else by, by, True
    return error


def model_that_raises(kind: str, error: BaseException) -> Any:
    """Return the model of an adapter whose client raises an exception."""

    def create(**request: Any) -> Any:
        raise error

    asked = SimpleNamespace(create=create)
    return model_of(kind, SimpleNamespace(messages=asked, chat=SimpleNamespace(completions=asked)))


def chain_of(error: BaseException) -> list[BaseException]:
    """Return an exception and all that it came from."""
    origins = [chain_of(origin) for origin in (error.__cause__, error.__context__) if origin]
    return [error, *sum(origins, [])]


ILLEGAL = f"Illegal header value b'Bearer {SECRET_KEY}\\n'"
QUOTING = {
    "its text": lambda: about(ConnectionError(f"no way for {SECRET_KEY}")),
    "its cause": lambda: caused(about(ConnectionError("Connection error.")), OSError(SECRET_KEY)),
    "its context": lambda: caused(about(ConnectionError("Connection error.")), OSError(SECRET_KEY), hidden=True),
    "a note": lambda: noted(about(ConnectionError("no")), f"sent: {SECRET_KEY}"),
    "an attribute": lambda: about(AnswerError("no", status_code=401, body={"error": f"{SECRET_KEY} is no key"})),
    "one of a group": lambda: about(ExceptionGroup("no", [OSError(SECRET_KEY)])),
    "another header": lambda: about(OSError("zq-token-123 is old"), "X-Amz-Security-Token", "zq-token-123"),
    "the client, of a header": lambda: caused(ConnectionError("Connection error."), ValueError(ILLEGAL)),
    "http.client, of a header": lambda: ValueError(ILLEGAL.replace("Illegal", "Invalid")),
    "requests, of a header": lambda: ValueError(f"Invalid leading whitespace in header value: '{SECRET_KEY}'"),
    "Python, of a header": lambda: UnicodeEncodeError("ascii", f"Bearer {SECRET_KEY}é", 26, 27, "not in range"),
}


@pytest.mark.parametrize("kind", [ANTHROPIC, OPENAI, JSON_TEXT])
@pytest.mark.parametrize("quoting", list(QUOTING))
def test_an_exception_that_quotes_a_key_is_not_shown_wherever_it_does(kind, quoting):
    error = QUOTING[quoting]()
    status = " (status 401)" if isinstance(error, AnswerError) else ""
    unsendable = ": it holds white space, or a letter outside ASCII"
    with pytest.raises(Exception, match="because it quotes a key") as caught:
        run(model_that_raises(kind, error))
    assert str(caught.value).startswith(f"{type(error).__name__}{status} is not shown, because it quotes a key")
    assert (unsendable in str(caught.value)) is (", of a header" in quoting)
    assert vars(caught.value)["result"].status == "interrupted"
    for link in chain_of(caught.value):
        shown = f"{link!r} {link} {link.args} {vars(link)}"
        assert SECRET_KEY not in shown and "zq-" not in shown


@pytest.mark.parametrize("key", [
    *("pa$$w0rd!2024#Tr0ub4&dor", "user:pass:word:secret", "a,b;c d,e f,g h", 'ab"cd\\efgh', "it's_a_\"key\""),
    "development",  # so a sentence with that word is hidden too
])
@pytest.mark.parametrize("scheme", ["", "Bearer "])
def test_a_key_is_compared_whole_whatever_its_letters(key, scheme):
    for said in (f"invalid key {key}", {"message": f"no {key}!"}, repr({"message": key})):
        assert quoted_key(about(OSError(said), "x-api-key", scheme + key)) == "a key"


SIGNED = "AWS4-HMAC-SHA256 Credential=AKIA/us-east-1/aws4_request, SignedHeaders=content-type;x-amz-date, Signature=01"


@pytest.mark.parametrize("said", ["content-type must be JSON", "x-amz-date is too old", "AWS4-HMAC-SHA256 is wanted"])
def test_the_names_of_signed_headers_are_no_key(said):
    assert quoted_key(about(OSError(said), value=SIGNED)) == ""


@pytest.mark.parametrize("make", [anthropic_model, openai_model])
def test_an_answer_of_200_that_quotes_the_key_of_the_client_is_not_shown(make):
    asked = SimpleNamespace(create=lambda **request: SimpleNamespace(error={"message": f"{SECRET_KEY} is no key"}))
    client = SimpleNamespace(api_key=SECRET_KEY, messages=asked, chat=SimpleNamespace(completions=asked))
    with pytest.raises(ValueError, match="is not shown, because it quotes a key") as caught:
        make(client, "m")([user("go")], [])
    assert all(SECRET_KEY not in f"{link!r} {link}" for link in chain_of(caught.value))


@pytest.mark.parametrize("make", [anthropic_model, openai_model])
@pytest.mark.parametrize("said", ["no", f"{SECRET_KEY} is no key"])
def test_a_traceback_that_prints_locals_finds_no_key_in_those_of_an_adapter(make, said):
    class Client:
        """A client that does not show its key when it is printed."""

        api_key = SECRET_KEY

        def __init__(self, asked: Any) -> None:
            self.messages, self.chat = asked, SimpleNamespace(completions=asked)

    def create(**request: Any) -> Any:
        raise ConnectionError(said)

    with pytest.raises((ConnectionError, ValueError)) as caught:
        make(Client(SimpleNamespace(create=create)), "m")([user("go")], [])
    frames = [frame for frame, _ in walk_tb(caught.value.__traceback__) if frame.f_code.co_filename.endswith("loop.py")]
    assert frames and all(SECRET_KEY not in repr(frame.f_locals) for frame in frames)


@pytest.mark.parametrize("kind", [ANTHROPIC, OPENAI, JSON_TEXT])
def test_an_answer_that_quotes_a_key_keeps_its_type_and_its_status_and_is_asked_again(kind):
    model = model_that_raises(kind, about(AnswerError(f"too many requests for {SECRET_KEY}", status_code=429)))
    slept: list[float] = []
    with pytest.raises(AnswerError, match="quotes a key") as caught:
        run(with_retries(model, on=(AnswerError,), waits=(1, 2), sleep=slept.append, jitter=lambda: 0))
    assert caught.value.status_code == 429 and slept == [1, 2] and SECRET_KEY not in str(chain_of(caught.value))


@pytest.mark.parametrize("kind", [ANTHROPIC, OPENAI, JSON_TEXT])
@pytest.mark.parametrize("error", [
    about(AnswerError("Incorrect API key provided: zq-se***456=", status_code=401, body={"error": "no such key"})),
    caused(about(AnswerError("overloaded", status_code=529)), OSError("Connection refused")),
    about(OSError("there is no model none, and none like it"), value="Bearer none"),
    about(OSError("the header is text"), "accept-language", "the header is text"),
    UnicodeEncodeError("utf-8", "caf\udce9", 3, 4, "surrogates not allowed"),
    ValueError("invalid header value for anthropic-beta"),
])
def test_an_exception_that_quotes_no_key_passes_as_it_is(kind, error):
    before = error.args, error.__cause__, error.__suppress_context__
    with pytest.raises(type(error)) as caught:
        model_that_raises(kind, error)([user("go")], [])
    assert caught.value is error and (error.args, error.__cause__, error.__suppress_context__) == before


@pytest.mark.parametrize("kind", [ANTHROPIC, OPENAI])
def test_an_exception_whose_parts_cannot_be_looked_at_passes_as_it_is(kind):
    class Odd(Exception):
        @property
        def request(self):
            raise RuntimeError("The .request property has not been set.")

        def __str__(self):
            raise KeyError("no text")

    with pytest.raises(Odd):
        model_that_raises(kind, Odd())([user("go")], [])


@pytest.mark.parametrize("kind", [ANTHROPIC, OPENAI, JSON_TEXT])
def test_a_busy_provider_is_asked_again_and_one_that_refuses_is_not(kind):
    link = link_of(kind)
    slept: list[float] = []
    patient = with_retries(link.model, on=(BusyError,), sleep=slept.append, jitter=lambda: 0)
    link.provider.answer = in_order([Refusal(429), Refusal(529), Refusal(503), *weather_script()])
    registry, ran = weather_world()
    assert run(patient, registry, max_steps=3).answer == "It is 86.0 F in Pune."
    assert slept == [1, 2, 4] and ran == ["get_weather(Pune)", "c_to_f(30)"]
    link.provider.answer = in_order([Refusal(400, "bad"), *weather_script()])
    with pytest.raises(StatusError, match="400: bad"):
        run(patient, registry)
    assert slept == [1, 2, 4]


@pytest.mark.parametrize("kind", [ANTHROPIC, OPENAI, JSON_TEXT])
def test_a_400_is_never_asked_again_whatever_is_said_to_be_worth_a_retry(kind):
    link = link_of(kind)
    slept: list[float] = []
    patient = with_retries(link.model, on=(Exception,), sleep=slept.append, jitter=float)
    link.provider.answer = in_order([Refusal(404), *weather_script()])
    assert run(patient, weather_world()[0]).status == "done" and slept == [1]
    link.provider.answer = in_order([Refusal(400), *weather_script()])
    with pytest.raises(StatusError, match="^400"):
        run(patient)
    assert slept == [1]


# --- JSON text ------------------------------------------------------------------------------------------------


def in_turn(*texts: str | None) -> tuple[Any, list[list[Json]]]:
    """Return a `complete` that writes these texts, and what it is shown."""
    shown: list[list[Json]] = []
    steps = iter(texts)

    def complete(messages: list[Json]) -> Any:
        shown.append(messages)
        return next(steps)

    return complete, shown


ACT = '{"tool": "t", "args": {"q": "x"}}'


@pytest.mark.parametrize("text", [
    ACT,
    f"{FENCE}json\n{ACT}\n{FENCE}",
    f"{FENCE}\n{ACT}",
    f"Sure, I will look.\n{ACT}",
    f"The call: {ACT}",
    f"{{city}} is not needed. {ACT}",
    f"{ACT}\n\nReferences: [1] and {{see docs}}",
    f'{ACT}\n{{"tool": "u", "args": {{}}}}',
    f"{ACT}\nObservation: 7",
    '{"tool": "t", "args": "{\\"q\\": \\"x\\"}"}',
    '{"tool": "t", "args": {"q": "x"}, "final": null}',
    f'I will call "t": {ACT}',
    f"[note] {ACT}",
    f"{{x}} is a set, and [1] a reference. {ACT}",
    f'<think>Perhaps {{"final": "5"}}, or [{{"x": 1}}].</think>\n{ACT}',
    f'Perhaps {{"final": "5"}}.</think> {ACT}',
    f'Perhaps {{x}}, or [1, 2].</think> {ACT}',
    f'  <think>\n</think>\n{FENCE}json\n{ACT}\n{FENCE}',
])
def test_the_first_object_in_a_text_is_the_call(text):
    reply = from_json_text(text)
    assert [(c.name, c.args, c.error) for c in reply.tool_calls] == [("t", {"q": "x"}, None)]
    assert reply.stop_reason == ""


@pytest.mark.parametrize(("text", "answer"), [
    ('{"final": "It is 5."}', "It is 5."),
    (f'{FENCE}json\n{{"final": "It is 5."}}\n{FENCE}', "It is 5."),
    ('So: {"final": "It is 5."} Bye.', "It is 5."),
    ('The answer is "five": {"final": "It is 5."}', "It is 5."),
    (f'<think>I could ask: {ACT}</think>{{"final": "It is 5."}}', "It is 5."),
    ('{"final": 42}', "42"),
    ('{"final": ["a", "é"]}', '["a", "é"]'),
    ('{"tool": null, "args": null, "final": "It is 5."}', "It is 5."),
    ('{"tool": "", "final": "It is 5."}', "It is 5."),
    ('{"final": "Close it with </think>."}', "Close it with </think>."),
    ('<think>Hm.</think> {"final": "Not <think>, but </think>."}', "Not <think>, but </think>."),
])
def test_an_object_with_final_is_the_answer(text, answer):
    assert from_json_text(text) == ModelReply(answer)


def test_an_object_with_both_keys_acts_and_keeps_the_text():
    both = '{"tool": "t", "args": {"q": "x"}, "final": "It is 5."}'
    assert from_json_text(both) == ModelReply("It is 5.", [ToolCall("", "t", {"q": "x"})])
    assert from_json_text(f"I look. {both}").content == "I look.\nIt is 5."


def test_what_stands_in_think_tags_is_not_kept():
    assert from_json_text(f"<think>{{city}}</think> I will look. {ACT}").content == "I will look."
    assert from_json_text(f"Perhaps {{x}}.</think> I will look. {ACT}").content == "I will look."


AROUND = {
    "a list": ["[%s]", '["never", %s]', "[1, %s]", "[%s, %s]", "Options: [\n %s", '["a"] or [%s]', '[{"a": 1}, %s]'],
    "an object": ['{"plan": %s}', "{'plan': %s}", "{plan: %s}", "{x] %s}", '{"a": "x" %s}'],
    "an object that was cut off": [
        '{"plan": ["look", %s], "but only after a person agr', '{"never": ["look", %s], "why": "beca', '{"steps": [%s',
        '{"a": "}", "b": %s', '{"a": "}}]", "b": [%s', '{"plan": %s, "x', "{ %s", 'So: {"a": "</think>", "b": %s, "x',
    ],
    "a text": ['"never %s"', '{"final": "never %s'],
}


@pytest.mark.parametrize("around", [text for texts in AROUND.values() for text in texts])
@pytest.mark.parametrize("before", ["", "Sure. ", f"{FENCE}json\n", "[note] ", "<think>[</think>"])
def test_a_call_inside_anything_else_never_runs(before, around):
    escape = json.dumps if around in AROUND["a text"] else lambda text: f'"{text}"'
    text = before + around.replace("%s", escape(ACT)[1:-1])
    assert [c.error for c in from_json_text(text).tool_calls] == [BAD_REPLY]


@pytest.mark.parametrize("text", [
    '{"tool": "cleanup", "arguments": {"dry_run": true}}', '{"tool": "cleanup", "dry_run": true}',
    '{"tool": "cleanup", "args": {"dry_run": true}, "why": "it is late"}', '{"final": "ok", "sure": false}',
])
def test_an_object_with_any_other_key_runs_nothing_and_the_model_is_told(text):
    ran: list[bool] = []
    schema = {"type": "object", "properties": {"dry_run": {"type": "boolean"}}}
    registry = tool(lambda dry_run=False: ran.append(dry_run), schema, name="cleanup")
    complete, _ = in_turn(text, '{"final": "ok"}')
    assert observations(run(json_text_model(complete), registry)) == [f"ERROR: {BAD_REPLY}"] and ran == []


def test_prose_before_the_object_is_kept_as_the_text_of_the_reply():
    assert from_json_text(f"I will look.\n{FENCE}json\n{ACT}\n{FENCE}").content == "I will look."


@pytest.mark.parametrize("text", [
    "", "   ", "It is 5.", "null", "42", '"final"', "[]", "{}", '{"answer": 5}', '{"args": {"q": "x"}}', '{"tool": 5}',
    '{"final": null}', '{"tool": "t", "args": {"q": "x"', f"[{ACT}, {ACT}]", f"{FENCE}json\n[\n  {ACT}\n]\n{FENCE}",
    f"<think>I could ask: {ACT}", f"<think>{ACT}</think>",
    f'{{"tool": "u", "args": {ACT}, "x', f'{{"steps": [{ACT}', "{" * 3000, "[" * 100_000, '{"a":' * 100_000,
])
def test_anything_else_becomes_an_observation_and_the_run_goes_on(text):
    complete, shown = in_turn(text, '{"final": "ok"}')
    ran: list[str] = []
    result = run(json_text_model(complete), tool(lambda q: ran.append(q), TEXT))
    assert (result.status, result.answer, ran) == ("done", "ok", [])
    assert observations(result) == ['ERROR: reply must be JSON with "tool" and "args", or with "final".']
    assert replies(result)[0]["tool_calls"][0]["args"] == text
    said = [message["content"] for message in shown[1][1:]]
    assert said == (["go", text, f"ERROR: {BAD_REPLY}"] if text.strip() else [f"go\nERROR: {BAD_REPLY}"])


def test_a_call_that_names_no_arguments_has_none_and_validation_decides():
    complete, _ = in_turn('{"tool": "t"}', '{"final": "ok"}')
    result = run(json_text_model(complete), tool(lambda q: q, TEXT))
    assert observations(result) == ["ERROR: missing required argument 'q'. t expects {\"q\": {\"type\": \"string\"}}"]


def test_nothing_at_all_counts_as_a_bad_reply():
    complete, _ = in_turn(None, '{"final": "ok"}')
    assert observations(run(json_text_model(complete))) == [f"ERROR: {BAD_REPLY}"]


@pytest.mark.parametrize("written", [SimpleNamespace(choices=[]), {"final": "ok"}, b"ok", 5, ["ok"], 0, False])
def test_a_complete_that_returns_no_text_is_a_sentence_that_shows_what_came(written):
    with pytest.raises(ValueError, match="^the server sent no text, so there is no reply; .*: ") as caught:
        run(json_text_model(lambda messages: written))
    assert str(caught.value).endswith(repr(written)) and vars(caught.value)["result"].status == "interrupted"


def test_a_complete_that_must_be_awaited_is_a_sentence():
    async def complete(messages: list[Json]) -> str:
        return ACT

    with pytest.raises(ValueError, match="must be awaited"):
        run(json_text_model(complete))


def test_the_tools_stand_in_the_system_text_and_the_list_holds_system_user_and_assistant_only():
    complete, shown = in_turn(ACT, "hm", '{"final": "ok"}')
    registry = tool(lambda q: q.upper(), TEXT)
    run(json_text_model(complete), registry)
    system, *turns = shown[-1]
    assert system == {"role": "system", "content": "\n".join([
        "Use the tools to answer the user.", JSON_RULES,
        't: A tool. Its args: {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}'])}
    assert [(turn["role"], turn["content"]) for turn in turns] == [
        ("user", "go"), ("assistant", ACT), ("user", '"X"'), ("assistant", "hm"), ("user", f"ERROR: {BAD_REPLY}")]
    assert all(set(message) == {"role", "content"} for message in shown[-1])


def test_a_list_of_any_other_model_can_be_shown_as_json_text():
    messages = [user("go"), asked(one("a"), one("b", args={"q": "x"}), text="Two."), result_of("a", "1"),
                result_of("b", "2"), asked(text="ok"), user("and?"), user(" ")]
    system, *turns = to_json_text(messages, [])
    assert system["role"] == "system" and JSON_RULES in system["content"]
    assert [turn["content"] for turn in turns] == [
        "go", f'Two.\n{{"tool": "t", "args": {{}}}}\n{ACT}', "1\n2", '{"final": "ok"}', "and?"]


def test_a_complete_that_returns_text_alone_loses_the_stop_reason_and_the_usage():
    whole = from_json_text('{"tool": "get_weather", "args": {"city": "Pune"}}')
    cut = from_json_text('{"tool": "get_weather", "args": {"ci')
    assert whole.usage is None and not whole.stop_reason and not whole.tool_calls[0].error
    assert cut.usage is None and not cut.stop_reason and cut.tool_calls[0].error == BAD_REPLY


def test_json_text_never_sees_the_client_so_only_its_errors_are_looked_at():
    model = model_that_raises(JSON_TEXT, ValueError(ILLEGAL))  # made without a word
    with pytest.raises(ValueError, match="quotes a key that cannot be sent"):
        model([user("go")], [])


def test_max_bad_replies_in_a_row_end_the_run_and_all_of_them_are_in_the_list():
    complete, shown = in_turn("a", "b", ACT, "c", "d", "e", "f")
    result = run(json_text_model(complete, max_bad=3), tool(lambda q: q, TEXT))
    assert (result.status, result.answer, result.steps, len(shown)) == ("bad_reply", None, 6, 6)
    assert [reply["tool_calls"][0]["args"] for reply in replies(result)] == ["a", "b", {"q": "x"}, "c", "d", "e"]
    assert explain(result) == "stopped by bad replies after 6 steps"
    check_messages(result.messages)
    assert run(json_text_model(lambda messages: "no", max_bad=1)).steps == 1
    with pytest.raises(ValueError, match="max_bad must be at least 1"):
        json_text_model(complete, max_bad=0)


def test_bad_replies_in_a_row_are_counted_over_a_checkpoint_and_not_over_two_runs(tmp_path):
    complete, _ = in_turn("a", "b", "c", "d")
    model = json_text_model(complete, max_bad=2)
    save_checkpoint(tmp_path / "run.jsonl", run(model, max_steps=1))
    result = continue_agent(load_checkpoint(tmp_path / "run.jsonl"), model, tool(lambda: 1), 9, 10**9)
    assert (result.status, result.steps) == ("bad_reply", 2)
    assert run(model).steps == 2


def test_a_run_that_ended_with_bad_replies_goes_on_after_a_message_of_the_user():
    complete, shown = in_turn("a", "b", "c", "d", '{"final": "ok"}')
    model = json_text_model(complete, max_bad=2)
    stopped = run(model)
    assert continue_agent(stopped, model, tool(lambda: 1), 9, 10**9).status == "bad_reply" and len(shown) == 2
    stopped.messages.append(user("Write JSON and nothing else."))
    again = continue_agent(stopped, model, tool(lambda: 1), 9, 10**9)
    assert (again.status, again.steps, len(shown)) == ("bad_reply", 4, 4)
    again.messages.append(user("Write JSON and nothing else."))
    assert continue_agent(again, model, tool(lambda: 1), 9, 10**9).answer == "ok"


def test_a_run_with_bad_replies_is_accepted_by_every_provider():
    complete, _ = in_turn("hm", '{"final": "ok"}')
    messages = run(json_text_model(complete)).messages
    specs = weather_world()[0].specs()
    assert anthropic_refusal({"model": "m", "max_tokens": 1} | to_anthropic(messages, specs)) is None
    assert openai_refusal({"model": "m"} | to_openai(messages, specs)) is None
