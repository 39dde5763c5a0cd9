"""The provider on this machine: it answers in three wire formats, and refuses what the providers refuse."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import closing
from copy import deepcopy
from functools import reduce
from http.client import HTTPConnection
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from looplab.provider import (
    CLIENTS,
    KEY,
    Provider,
    Refusal,
    anthropic_refusal,
    by_turn,
    client_of,
    handler_of,
    in_order,
    main,
    openai_refusal,
    programs,
    serving,
)

from agentloop import JSON_RULES, ModelReply, Usage, asks, call, final, weather_script

BEARER = {"authorization": f"Bearer {KEY}"}
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(call_id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "get_weather", "input": {"city": "Pune"}}


def result(call_id: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": "30"}


ANTHROPIC: dict[str, Any] = {
    "model": "a-model",
    "max_tokens": 100,
    "system": "Be brief.",
    "messages": [
        {"role": "user", "content": "Which is hotter?"},
        {"role": "assistant", "content": [text("I look."), use("a"), use("b")]},
        {"role": "user", "content": [result("a"), result("b") | {"is_error": True}, text("Hurry.")]},
    ],
    "tools": [{"name": "get_weather", "description": "Weather.", "input_schema": CITY}],
}


def asked(call_id: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Pune"}'}}


OPENAI: dict[str, Any] = {
    "model": "a-model",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Which is hotter?"},
        {"role": "assistant", "content": "", "tool_calls": [asked("a"), asked("b")]},
        {"role": "tool", "tool_call_id": "a", "content": "30"},
        {"role": "tool", "tool_call_id": "b", "content": "35"},
    ],
    "tools": [{"type": "function", "function": {"name": "get_weather", "description": "Weather.", "parameters": CITY}}],
}
GONE = object()


def changed(request: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return a copy of a request with the value at a path like messages.1.content replaced, or gone."""
    copy = deepcopy(request)
    *parents, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    parent = reduce(lambda value, step: value[step], parents, copy)
    if value is GONE:
        del parent[last]
    else:
        parent[last] = value
    return copy


def test_good_requests_are_not_refused():
    assert anthropic_refusal(ANTHROPIC) is None and openai_refusal(OPENAI) is None
    assert anthropic_refusal(changed(ANTHROPIC, "tools", [])) is None


@pytest.mark.parametrize(("path", "value", "fault"), [
    ("model", GONE, "model: field required"),
    ("max_tokens", GONE, "max_tokens: field required"),
    ("max_tokens", 0, "max_tokens"),
    ("stream", True, "stream"),
    ("system", "", "system: text content blocks must be non-empty"),
    ("messages", [], "at least one message"),
    ("messages", GONE, "at least one message"),
    ("messages.0", "go", "unexpected role None"),
    ("messages.0.role", "system", "unexpected role 'system'"),
    ("messages.0.role", "tool", "unexpected role 'tool'"),
    ("messages.0.role", "assistant", 'first message must use the "user" role'),
    ("messages.0.content", "", "text content blocks must be non-empty"),
    ("messages.0.content", " \n", "non-whitespace"),
    ("messages.0.content", [], "non-empty content"),
    ("messages.0.content", None, "non-empty content"),
    ("messages.0.content", [use("c")], "no content block that a message of role 'user' can hold"),
    ("messages.0.content", [result("c")], "unexpected `tool_use_id` found in `tool_result` blocks: c"),
    ("messages.1.content", [result("a")], "no content block that a message of role 'assistant' can hold"),
    ("messages.1.content.0.text", "", "text content blocks must be non-empty"),
    ("messages.1.content.0.type", "picture", "no content block"),
    ("messages.1.content.1.id", "a:0", "tool_use.id: string should match pattern"),
    ("messages.1.content.1.name", "get weather", "tool_use.name: string should match pattern"),
    ("messages.1.content.1.name", "w" * 65, "tool_use.name: string should match pattern"),
    ("messages.1.content.1.input", '{"city": "Pune"}', "tool_use.input: input should be an object"),
    ("messages.1.content.2.id", "a", "`tool_use` ids must be unique"),
    ("messages.2", GONE, "`tool_use` ids were found without `tool_result` blocks immediately after: a, b."),
    ("messages.2.content.1", GONE, "without `tool_result` blocks immediately after: b"),
    ("messages.2.content", [text("Hurry."), result("a"), result("b")], "without `tool_result` blocks"),
    ("messages.2.content", [result("a"), text("Hurry."), result("b")], "without `tool_result` blocks"),
    ("messages.2.content.0.tool_use_id", "z", "without `tool_result` blocks immediately after: a"),
    ("messages.2.content.2", result("z"), "unexpected `tool_use_id` found in `tool_result` blocks: z"),
    ("messages.2.content.2", result("a"), "each `tool_use` must have a single result"),
    ("messages.2.content.0.content", None, "tool_result: content should be a string"),
    ("tools", {}, "tools: must be a list"),
    ("tools.0.name", "get.weather", "tools.0.name"),
    ("tools.0.name", "", "tools.0.name"),
    ("tools.0.name", GONE, "tools.0.name"),
    ("tools.0.description", None, "tools.0.description"),
    ("tools.0.input_schema", {"properties": {}}, "input_schema.type: must be 'object'"),
    ("tools.0.input_schema", GONE, "input_schema.type: must be 'object'"),
    ("tools.0.input_schema.properties", [], "properties: must be an object"),
    ("tools.0.input_schema.properties.city", {}, "properties.city.type: field required"),
    *(("tools.0.input_schema.properties", {name: {"type": "string"}}, "properties: Property keys should match pattern")
      for name in ("", "the city", "größe", "filter[city]", "c" * 65, "city\n")),
    ("tools", ANTHROPIC["tools"] * 2, "tool names must be unique"),
])
def test_anthropic_refuses(path, value, fault):
    assert fault in (anthropic_refusal(changed(ANTHROPIC, path, value)) or "nothing")


def test_anthropic_refuses_results_that_are_split_over_messages():
    split = changed(ANTHROPIC, "messages.2.content", [result("a")])
    split["messages"].append({"role": "user", "content": [result("b")]})
    assert "without `tool_result` blocks immediately after: b" in anthropic_refusal(split)


def test_anthropic_refuses_roles_that_do_not_alternate_and_a_last_word_of_the_assistant():
    twice = changed(ANTHROPIC, "messages", [ANTHROPIC["messages"][0]] * 2)
    assert "roles must alternate" in anthropic_refusal(twice)
    said = changed(ANTHROPIC, "messages", [*ANTHROPIC["messages"], {"role": "assistant", "content": "30"}])
    assert "must end with a user message" in anthropic_refusal(said)


def test_anthropic_refuses_an_id_that_an_earlier_reply_used():
    again = changed(ANTHROPIC, "messages", [*ANTHROPIC["messages"], *ANTHROPIC["messages"][1:]])
    assert "messages.3: `tool_use` ids must be unique" in anthropic_refusal(again)


THOUGHT = {"type": "thinking", "thinking": "Both.", "signature": "s"}
REDACTED = {"type": "redacted_thinking", "data": "d"}


@pytest.mark.parametrize("told", [{"type": "enabled", "budget_tokens": 1024}, {"type": "adaptive"}])
def test_anthropic_refuses_results_without_the_thoughts_that_led_to_the_calls(told):
    lost = ANTHROPIC | {"thinking": told}
    assert "messages.1.content.0.type: Expected `thinking`" in anthropic_refusal(lost)
    assert anthropic_refusal(ANTHROPIC | {"thinking": {"type": "disabled"}}) is None
    assert anthropic_refusal(changed(lost, "messages", lost["messages"][:1])) is None
    for thought in (THOUGHT, REDACTED):
        assert anthropic_refusal(changed(lost, "messages.1.content.0", thought)) is None
        assert "role 'user'" in anthropic_refusal(changed(lost, "messages.0.content", [thought]))
    answered = [*lost["messages"], {"role": "assistant", "content": "30"}, {"role": "user", "content": "Thanks."}]
    assert anthropic_refusal(changed(lost, "messages", answered)) is None


@pytest.mark.parametrize(("path", "value", "fault"), [
    ("model", "", "you must provide a model"),
    ("stream", True, "stream"),
    ("messages", [], "minimum length 1"),
    ("messages", GONE, "minimum length 1"),
    ("messages.1.role", "robot", "messages[1].role': 'robot'"),
    ("messages.1.content", None, "expected a string, got null"),
    ("messages.2.content", None, "expected a string, got null"),
    ("messages.2.tool_calls", [], "minimum length 1"),
    ("messages.1.tool_calls", [asked("c")], "in a reply"),
    ("messages.2.tool_calls.0.function.name", "get.weather", "function.name': string does not match pattern"),
    ("messages.2.tool_calls.0.function.arguments", {"city": "Pune"}, "expected an id, the type"),
    ("messages.2.tool_calls.0.function.arguments", "{city}", "expected the JSON text of an object"),
    ("messages.2.tool_calls.0.function.arguments", "[]", "expected the JSON text of an object"),
    ("messages.2.tool_calls.0.id", None, "expected an id"),
    ("messages.2.tool_calls.0.id", "a" * 41, "string too long. Expected a string with maximum length 40"),
    ("messages.2.tool_calls.1.id", "a", "duplicate id 'a'"),
    ("messages.2", {"role": "assistant", "content": ""}, "must have content or tool_calls"),
    ("messages.2", GONE, "must be a response to a preceding message"),
    ("messages.3", GONE, "did not have response messages: a"),
    ("messages.4", GONE, "did not have response messages: b"),
    ("messages.4", {"role": "user", "content": "Hurry."}, "did not have response messages: b"),
    ("messages.4.tool_call_id", "z", "must be a response to a preceding message"),
    ("messages.4.tool_call_id", "a", "must be a response to a preceding message"),
    ("tools", [], "Invalid 'tools'"),
    ("tools.0", OPENAI["tools"][0]["function"], "tools[0].function.name"),
    ("tools.0.function.name", "get weather", "tools[0].function.name"),
    ("tools.0.function.parameters.type", GONE, "type: must be 'object'"),
    ("tools.0.function.parameters.properties", GONE, "object schema missing properties"),
    ("tools.0.function.parameters.properties.city", {}, "properties.city.type: field required"),
    ("tools", OPENAI["tools"] * 2, "tool names must be unique"),
])
def test_openai_refuses(path, value, fault):
    assert fault in (openai_refusal(changed(OPENAI, path, value)) or "nothing")


@pytest.mark.parametrize("request_", [ANTHROPIC, OPENAI], ids=["anthropic", "openai"])
def test_a_request_of_any_other_shape_is_refused_in_words_and_never_an_error_of_ours(request_):
    def paths(value, path=()):
        yield path
        keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
        for key in keys:
            yield from paths(value[key], (*path, str(key)))

    refusal = anthropic_refusal if request_ is ANTHROPIC else openai_refusal
    for path in filter(None, paths(request_)):
        for odd in (None, 7, "", [], {}, [None], [{}], {"x": None}, GONE):
            found = refusal(changed(request_, ".".join(path), odd))
            assert found is None or re.search(r"\w", found)


# --- Over HTTP ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def served():
    provider = Provider(in_order([]))
    with serving(provider) as url:
        yield provider, url


def post(url: str, body: Any, headers: dict[str, str] = BEARER) -> tuple[int, Any]:
    """Return the status and the decoded body that answer a request."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode("utf-8")
    request = urllib.request.Request(url, data, headers | {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def test_a_client_that_has_gone_is_no_error_of_the_server():
    body, lines = json.dumps(OPENAI).encode("utf-8"), []
    head = f"POST /v1/chat/completions HTTP/1.1\r\nauthorization: Bearer {KEY}\r\ncontent-length: {len(body)}\r\n\r\n"

    def leave(_):
        client.close()
        return final("It is late.")

    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closing is told at once
        client.sendall(head.encode("ascii") + body)
        connection, address = listener.accept()
        with connection:
            handler_of(Provider(leave), lines.append)(connection, address, None)
    assert lines == ["POST /v1/chat/completions 200"]


REPLY = ModelReply("I look.", [call("a", "get_weather", city="Malmö")], Usage(100, 20))


def test_anthropic_is_answered_in_its_format(served):
    provider, url = served
    provider.answer = in_order([REPLY])
    status, body = post(f"{url}/v1/messages", ANTHROPIC, {"x-api-key": KEY})
    assert status == 200 and body["stop_reason"] == "tool_use" and body["role"] == "assistant"
    assert body["content"] == [
        text("I look."), {"type": "tool_use", "id": "a", "name": "get_weather", "input": {"city": "Malmö"}}]
    assert body["usage"] == {"input_tokens": 100, "output_tokens": 20}


def test_bedrock_is_answered_in_the_same_format_with_the_model_in_the_address(served):
    provider, url = served
    provider.answer = in_order([REPLY])
    body = {key: value for key, value in ANTHROPIC.items() if key != "model"}
    versioned = body | {"anthropic_version": "bedrock-2023-05-31"}
    status, answer = post(f"{url}/model/anthropic.a-model-v1%3A0/invoke", versioned)
    assert status == 200 and answer["content"][0] == text("I look.")
    status, answer = post(f"{url}/model/a-model/invoke", body)
    assert status == 400 and answer == {"message": "anthropic_version: field required"}


def test_openai_is_answered_in_its_format(served):
    provider, url = served
    provider.answer = in_order([REPLY, final("30")])
    status, body = post(f"{url}/v1/chat/completions", OPENAI)
    choice = body["choices"][0]
    assert status == 200 and choice["finish_reason"] == "tool_calls" and choice["message"]["content"] == "I look."
    function = choice["message"]["tool_calls"][0]["function"]
    assert function["name"] == "get_weather" and json.loads(function["arguments"]) == {"city": "Malmö"}
    assert body["usage"] == {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    message = post(f"{url}/v1/chat/completions", OPENAI)[1]["choices"][0]["message"]
    assert message["content"] == "30" and "tool_calls" not in message


@pytest.mark.parametrize(("reply", "anthropic", "openai"), [
    (final("ok"), "end_turn", "stop"),
    (ModelReply("It", stop_reason="truncated"), "max_tokens", "length"),
    (ModelReply("No", stop_reason="refused"), "refusal", "content_filter"),
])
def test_stop_reasons_are_written_in_each_providers_words(served, reply, anthropic, openai):
    provider, url = served
    provider.answer = in_order([reply, reply])
    assert post(f"{url}/v1/messages", ANTHROPIC)[1]["stop_reason"] == anthropic
    assert post(f"{url}/v1/chat/completions", OPENAI)[1]["choices"][0]["finish_reason"] == openai


def test_without_usage_in_the_script_what_was_sent_is_counted(served):
    provider, url = served
    provider.answer = lambda body: final("30")
    answers = [post(f"{url}/v1/messages", changed(ANTHROPIC, "system", "s" * n))[1] for n in (1, 400)]
    small, large = (answer["usage"] for answer in answers)
    assert large["input_tokens"] - small["input_tokens"] in (99, 100) and small["output_tokens"] == 1


def test_a_request_for_json_text_is_answered_in_json_text(served):
    provider, url = served
    provider.answer = in_order([REPLY, final("30")])
    request = {"model": "m", "messages": [{"role": "user", "content": f"{JSON_RULES}\nget_weather"}]}
    said = [post(f"{url}/v1/chat/completions", request)[1]["choices"][0]["message"]["content"] for _ in range(2)]
    assert said[0].startswith('I look.\n{"tool": "get_weather", "args": ') and json.loads(said[1]) == {"final": "30"}


@pytest.mark.parametrize(("status", "kind"), [
    (400, "invalid_request_error"), (401, "authentication_error"), (429, "rate_limit_error"),
    (500, "api_error"), (529, "overloaded_error"),
])
def test_errors_have_the_shape_of_anthropics(served, status, kind):
    provider, url = served
    provider.answer = in_order([Refusal(status, "so it is")])
    answer = post(f"{url}/v1/messages", ANTHROPIC)
    assert answer == (status, {"type": "error", "error": {"type": kind, "message": "so it is"},
                               "request_id": "req_loopback"})


@pytest.mark.parametrize(("status", "kind", "code"), [
    (400, "invalid_request_error", None), (429, "invalid_request_error", "rate_limit_exceeded"),
    (503, "server_error", None),
])
def test_errors_have_the_shape_of_openais(served, status, kind, code):
    provider, url = served
    provider.answer = in_order([Refusal(status, "so it is")])
    answer = post(f"{url}/v1/chat/completions", OPENAI)
    assert answer == (status, {"error": {"message": "so it is", "type": kind, "param": None, "code": code}})


@pytest.mark.parametrize(("path", "status"), [
    ("/v1/messages", 401), ("/model/m/invoke", 403), ("/v1/chat/completions", 401),
])
@pytest.mark.parametrize("headers", [{}, {"x-api-key": "sk-wrong"}, {"authorization": "Bearer sk-wrong"}])
def test_a_wrong_key_is_refused_and_not_repeated(served, path, status, headers):
    _, url = served
    answer = post(url + path, {}, headers)
    assert answer[0] == status and "the key is not valid" in str(answer[1]) and "sk-wrong" not in str(answer[1])


def test_what_is_no_request_is_refused_in_words(served):
    _, url = served
    assert post(f"{url}/v1/chat/completions", b"{")[0] == 400
    assert post(f"{url}/v1/chat/completions", b"[" * 100_000)[0] == 400
    assert "not a JSON object" in str(post(f"{url}/v1/messages", [1]))
    assert post(f"{url}/v1/models", OPENAI)[0] == 404
    assert post(f"{url}/v1/messages", changed(ANTHROPIC, "max_tokens", 0))[0] == 400


@pytest.mark.parametrize("length", ["many", "-1", "", None])
def test_a_request_whose_length_is_no_number_is_refused_in_words(served, length):
    _, url = served
    connection = HTTPConnection(url.removeprefix("http://"), timeout=20)
    with closing(connection):
        connection.putrequest("POST", "/v1/messages")
        for name, value in (BEARER | ({} if length is None else {"content-length": length})).items():
            connection.putheader(name, value)
        connection.endheaders()
        with connection.getresponse() as response:
            assert response.status == 400 and b"not a JSON object" in response.read()


def test_it_remembers_what_it_was_sent(served):
    provider, url = served
    provider.requests.clear()
    provider.answer = in_order([final("30")])
    post(f"{url}/v1/messages", ANTHROPIC)
    assert provider.requests == [ANTHROPIC]


def test_a_script_that_ran_out_says_so():
    status, body = Provider(in_order([])).handle("/v1/messages", BEARER, ANTHROPIC)
    assert status == 500 and body["error"]["message"] == "the script ran out"
    status, body = Provider(by_turn([final("30")])).handle("/v1/messages", BEARER, ANTHROPIC)
    assert status == 500 and body["error"]["message"] == "the script ran out"


def test_by_turn_a_script_can_be_run_again_and_again():
    provider = Provider(by_turn([asks(call("a", "t")), final("30")]))
    first = changed(ANTHROPIC, "messages", ANTHROPIC["messages"][:1])
    for request, said in ((ANTHROPIC, "30"), (first, "tool_use"), (ANTHROPIC, "30"), (first, "tool_use")):
        assert said in json.dumps(provider.handle("/v1/messages", BEARER, request)[1])


def test_the_client_without_a_network_raises_what_is_refused_and_has_attributes():
    client = client_of(Provider(by_turn(weather_script())))
    first = changed(ANTHROPIC, "messages", ANTHROPIC["messages"][:1])
    assert client.messages.create(**first).content[1].input == {"city": "Pune"}
    with pytest.raises(Exception, match="400: max_tokens"):
        client.messages.create(**changed(first, "max_tokens", GONE))
    with pytest.raises(Exception, match="401: the key is not valid"):
        client_of(Provider(in_order([])), key="sk-wrong").messages.create(**first)


@pytest.mark.skipif(os.name == "nt", reason="there a process is not sent Ctrl-C")
def test_the_command_serves_the_weather_task_and_prints_programs_to_paste():
    folder = Path(__file__).parents[1]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), str(folder / "notebooks")])}
    command = [sys.executable, "-m", "looplab.provider", "--port", "0", "--first", "429,529"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, encoding="utf-8") as process:
        try:
            printed = "".join(takewhile(lambda line: line != "The requests:\n", process.stdout))
            assert "one script, the weather task, whatever it is asked" in printed
            assert "takes any name of a model" in printed
            url = re.search(r"http://127\.0\.0\.1:\d+", printed)[0]
            assert "".join(programs(url)) in printed and len(programs(url)) == len(CLIENTS) == 5
            first = changed(OPENAI, "messages", OPENAI["messages"][:2])
            said = [post(f"{url}/v1/chat/completions?key=zq-secret", first) for _ in range(3)]
            assert [status for status, _ in said] == [429, 529, 200] and "I will look up Pune" in json.dumps(said[2])
            requests = [process.stdout.readline() for _ in range(3)]
            assert [line.partition(":")[0].strip() for line in requests] == [
                f"POST /v1/chat/completions {status}" for status in (429, 529, 200)]
            assert requests[1].endswith(": overloaded; try again later\n")
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0
        finally:
            process.kill()


@pytest.mark.parametrize("text", ["", "many", "429,", "200", "600", "-429"])
def test_a_first_status_that_is_none_of_an_error_is_a_sentence(capsys, text):
    assert main([f"--first={text}"]) == 1
    assert capsys.readouterr().out.startswith("--first takes statuses from 400 to 599, like 429,529")


@pytest.mark.parametrize(("path", "limit", "status", "reason"), [
    ("/v1/messages", "max_tokens", "max_tokens", "end_turn"),
    ("/v1/chat/completions", "max_tokens", "length", "stop"),
    ("/v1/chat/completions", "max_completion_tokens", "length", "stop"),
])
def test_a_reply_longer_than_the_limit_is_cut_with_the_stop_reason_of_the_format(served, path, limit, status, reason):
    provider, url = served
    provider.answer = lambda body: final("It is 86.0 F in Pune.")
    request = ANTHROPIC if path == "/v1/messages" else OPENAI
    cut, whole = (json.dumps(post(url + path, changed(request, limit, n))[1]) for n in (2, 20))
    assert '"It is 86"' in cut and f'_reason": "{status}"' in cut
    assert re.search(r'(output|completion)_tokens": 2\b', cut)
    assert '"It is 86.0 F in Pune."' in whole and f'_reason": "{reason}"' in whole


def test_of_a_reply_that_is_cut_the_calls_that_are_whole_stay(served):
    provider, url = served
    provider.answer = lambda body: asks(call("c1", "t", x=1), call("c2", "t", y="z" * 400), text="I look.")
    answer = post(f"{url}/v1/messages", changed(ANTHROPIC, "max_tokens", 60))[1]
    assert [block["type"] for block in answer["content"]] == ["text", "tool_use"]
    assert answer["stop_reason"] == "max_tokens" and answer["usage"]["output_tokens"] <= 60


def test_a_reply_in_json_text_is_cut_as_text(served):
    provider, url = served
    provider.answer = lambda body: final("It is 86.0 F in Pune.")
    request = {"model": "m", "max_tokens": 3, "messages": [{"role": "user", "content": JSON_RULES}]}
    choice = post(f"{url}/v1/chat/completions", request)[1]["choices"][0]
    assert choice["message"]["content"] == '{"final": "I' and choice["finish_reason"] == "length"


def test_a_limit_that_is_no_number_is_refused():
    for limit in ("many", 0, True):
        assert "max_completion_tokens" in openai_refusal(changed(OPENAI, "max_completion_tokens", limit))
    assert openai_refusal(changed(OPENAI, "max_tokens", None)) is None


@pytest.mark.parametrize("path", ["/v1/v1/messages", "/messages", "/chat/completions", "/v1/responses", "/v1/models"])
def test_a_wrong_address_says_which_there_are(served, path):
    _, url = served
    status, answer = post(url + path, OPENAI)
    assert status == 404 and (answer.get("type") == "error") is path.endswith("/messages")
    said = answer["error"]["message"]
    assert all(part in said for part in ("/v1/messages", "/v1/chat/completions", "base_url", "AnthropicBedrock"))


def test_a_browser_is_told_in_a_plain_sentence_what_it_is(served):
    _, url = served
    with urllib.request.urlopen(f"{url}/") as answer:
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert answer.read().decode("utf-8").startswith("A provider on this machine. It plays one script")
    with pytest.raises(urllib.error.HTTPError, match="404") as caught:
        urllib.request.urlopen(f"{url}/v1/models")
    with caught.value as answer:
        assert "/v1/messages" in answer.read().decode("utf-8")


def test_each_request_is_told_by_its_method_path_and_status_and_what_is_wrong_and_without_the_key():
    told: list[str] = []
    with serving(Provider(by_turn([final("30")])), log=told.append) as url:
        post(f"{url}/v1/messages?beta=true", changed(ANTHROPIC, "messages", ANTHROPIC["messages"][:1]))
        post(f"{url}/v1/messages", {}, {"x-api-key": "zq-secret"})
        post(f"{url}/nowhere?key=zq-secret", {})
        post(f"{url}/v1/messages", changed(ANTHROPIC, "messages.0.role", "é\n"))
        post(f"{url}/model/m/invoke", {})
        urllib.request.urlopen(f"{url}/").close()
    assert told.pop(2).startswith("POST /nowhere 404: there is nothing at this address, but at these: /v1/messages")
    assert told == [
        "POST /v1/messages 200", "POST /v1/messages 401: the key is not valid",
        "POST /v1/messages 400: messages.0: unexpected role '?\\n'; the system text has a parameter of its own",
        "POST /model/m/invoke 400: anthropic_version: field required", "GET / 200"]


def test_a_port_that_is_taken_is_a_sentence(capsys):
    with serving(Provider(in_order([]))) as url:
        assert main(["--port", url.rpartition(":")[2]]) == 1
    assert capsys.readouterr().out.startswith("Port ")


def test_a_port_that_there_is_not_is_a_sentence(capsys):
    assert main(["--port", "99999"]) == 1
    assert capsys.readouterr().out.startswith("There is no port 99999; the largest is 65535.")
