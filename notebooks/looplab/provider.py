"""A provider on this machine: it answers in the wire formats of Anthropic, Bedrock and OpenAI, from a script.

    python -m looplab.provider

plays one script, the weather task, whatever it is asked and as often as it is asked, and takes any name of a model.
With --first 429,529 it refuses the first two requests so. What the providers are known to refuse of messages and
tools, it refuses, with their status codes and the shape of their errors, often in their words; where one server
accepts what another does not, or reports differ, it goes with the stricter one. It counts tokens as agentloop
estimates them, and not as a tokenizer does, and cuts a reply at the limit that was asked for. It shares no code with
the adapters in agentloop.py, so that it can judge what they send.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import zip_longest
from types import SimpleNamespace
from typing import Any

from agentloop import JSON_RULES, Json, ModelReply, Usage, count_tokens, weather_script

KEY = "loopback-key"  # the one it accepts
PORT = 8010


@dataclass(frozen=True)
class Refusal:
    """An answer that is an error: its HTTP status, and what it says."""

    status: int
    message: str = ""


Answer = ModelReply | Refusal | Json | str
"""What a script holds: a reply to write in the format asked for, an error, a whole body, or the text of a reply."""


# --- What is refused ------------------------------------------------------------------------------------------

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
ARGUMENT = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
ID = re.compile(r"[a-zA-Z0-9_-]+")
MOST = 40  # letters of an id, with OpenAI
LETTERS = 4  # of a token, as agentloop counts
LIMITS = ("max_tokens", "max_completion_tokens")  # the names of the limit of a reply


def is_text(value: Any) -> bool:
    """Say whether a value is text that is not blank."""
    return isinstance(value, str) and bool(value.strip())


def is_name(value: Any, pattern: re.Pattern[str] = NAME) -> bool:
    """Say whether a value is text in the letters that providers accept."""
    return isinstance(value, str) and bool(pattern.fullmatch(value))


def schema_faults(where: str, schema: Any) -> Iterator[str]:
    """Yield what is wrong with the schema of a tool's arguments."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        yield f"{where}.type: must be 'object'"
    elif not isinstance(schema.get("properties", {}), dict):
        yield f"{where}.properties: must be an object"
    else:
        for name, rule in schema.get("properties", {}).items():
            if not isinstance(rule, dict) or not isinstance(rule.get("type"), str):
                yield f"{where}.properties.{name}.type: field required"


def tool_faults(where: str, tool: Any, schema_key: str, names: set[str]) -> Iterator[str]:
    """Yield what is wrong with a tool; `names` are those of the tools before it."""
    name = tool.get("name") if isinstance(tool, dict) else None
    if not isinstance(name, str) or not is_name(name):
        yield f"{where}.name: string does not match pattern '^[a-zA-Z0-9_-]{{1,64}}$'"
    elif name in names:
        yield f"{where}.name: tool names must be unique"
    elif not isinstance(tool.get("description", ""), str):
        yield f"{where}.description: must be a string"
    else:
        names.add(name)
        yield from schema_faults(f"{where}.{schema_key}", tool.get(schema_key))


def block_faults(where: str, role: str, block: Any) -> Iterator[str]:
    """Yield what is wrong with a content block of Anthropic's."""
    match block:
        case {"type": "text", "text": str(text)}:
            if not text.strip():
                yield f"{where}: text content blocks must be non-empty and contain non-whitespace text"
        case {"type": "tool_use", "id": call_id, "name": name, "input": asked} if role == "assistant":
            if not is_name(call_id, ID):
                yield f"{where}.tool_use.id: string should match pattern '^[a-zA-Z0-9_-]+$'"
            if not is_name(name):
                yield f"{where}.tool_use.name: string should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'"
            if not isinstance(asked, dict):
                yield f"{where}.tool_use.input: input should be an object"
        case {"type": "thinking", "thinking": str(), "signature": str()} if role == "assistant":
            pass
        case {"type": "redacted_thinking", "data": str()} if role == "assistant":
            pass
        case {"type": "tool_result", "tool_use_id": str(), **rest} if role == "user":
            if not isinstance(rest.get("content", ""), str) or not isinstance(rest.get("is_error", False), bool):
                yield f"{where}.tool_result: content should be a string, and is_error a boolean"
        case _:
            yield f"{where}: no content block that a message of role {role!r} can hold"


def blocks_of(message: Json, kind: str) -> list[Json]:
    """Return the content blocks of one type in a message that has been checked."""
    content = message["content"]
    return [] if isinstance(content, str) else [block for block in content if block["type"] == kind]


def leading_results(message: Json) -> list[str]:
    """Return the ids of the results with which a message begins, up to the first block that is none."""
    ids: list[str] = []
    for block in message["content"] if isinstance(message["content"], list) else []:
        if block["type"] != "tool_result":
            break
        ids.append(block["tool_use_id"])
    return ids


def pair_faults(messages: list[Json]) -> Iterator[str]:
    """Yield where a call of Anthropic's has not its one result at the beginning of the next message."""
    taken: set[str] = set()
    nothing: Json = {"role": "user", "content": ""}
    for i, (message, following) in enumerate(zip_longest([nothing, *messages], messages, fillvalue=nothing), start=-1):
        asked = [block["id"] for block in blocks_of(message, "tool_use")]
        if len(set(asked)) < len(asked) or not taken.isdisjoint(asked):
            yield f"messages.{i}: `tool_use` ids must be unique"
        taken.update(asked)
        answered = leading_results(following)
        if missing := [call_id for call_id in asked if call_id not in answered]:
            yield f"messages.{i}: `tool_use` ids were found without `tool_result` blocks immediately after: " \
                  f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the " \
                  "next message."
        results = [block["tool_use_id"] for block in blocks_of(following, "tool_result")]
        if unknown := [call_id for call_id in results if call_id not in asked]:
            yield f"messages.{i + 1}: unexpected `tool_use_id` found in `tool_result` blocks: {unknown[0]}. " \
                  "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
        if len(set(results)) < len(results):
            yield f"messages.{i + 1}: each `tool_use` must have a single result"


def thinking_faults(body: Json) -> Iterator[str]:
    """Yield where a model that thinks is given results without the thoughts that led to their calls."""
    thinking, messages = body.get("thinking"), body["messages"]
    if isinstance(thinking, dict) and thinking.get("type") != "disabled" and len(messages) > 1:
        first = messages[-2]["content"][0]["type"] if blocks_of(messages[-2], "tool_use") else "thinking"
        if first not in ("thinking", "redacted_thinking"):
            yield f"messages.{len(messages) - 2}.content.0.type: Expected `thinking` or `redacted_thinking`, but " \
                  f"found `{first}`. When `thinking` is enabled, the thinking blocks must come back with a tool " \
                  "result. To avoid this, disable `thinking`."


def anthropic_faults(body: Json) -> Iterator[str]:
    """Yield what is wrong with a request for Anthropic's Messages API, in the order in which it is looked at."""
    if not is_text(body.get("model")):
        yield "model: field required"
    if type(body.get("max_tokens")) is not int or body["max_tokens"] < 1:
        yield "max_tokens: field required, an integer of at least 1"
    if body.get("stream"):
        yield "stream: this server answers whole"
    if "system" in body and not is_text(body["system"]):
        yield "system: text content blocks must be non-empty"
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        yield "messages: at least one message is required"
        return
    for i, message in enumerate(messages):
        role = message.get("role") if isinstance(message, dict) else None
        if role not in ("user", "assistant"):
            yield f"messages.{i}: unexpected role {role!r}; the system text has a parameter of its own"
            return
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not isinstance(blocks, list) or not blocks:
            yield f"messages.{i}: all messages must have non-empty content"
            return
        for j, block in enumerate(blocks):
            yield from block_faults(f"messages.{i}.content.{j}", role, block)
    if messages[0]["role"] != "user":
        yield "messages: first message must use the \"user\" role"
    yield from pair_faults(messages)
    for before, message in zip(messages, messages[1:]):
        if before["role"] == message["role"]:
            yield f"messages: roles must alternate, but there are multiple {message['role']!r} roles in a row"
    if messages[-1]["role"] == "assistant":
        yield "messages: the conversation must end with a user message"
    yield from thinking_faults(body)
    tools = body.get("tools", [])
    if not isinstance(tools, list):
        yield "tools: must be a list"
        return
    names: set[str] = set()
    for i, tool in enumerate(tools):
        yield from tool_faults(f"tools.{i}", tool, "input_schema", names)
        if not all(is_name(name, ARGUMENT) for name in tool["input_schema"].get("properties", {})):
            yield f"tools.{i}.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{{1,64}}$'"


def bedrock_faults(body: Json) -> Iterator[str]:
    """Yield what is wrong with a request for Bedrock, where the model stands in the address."""
    if not is_text(body.get("anthropic_version")):
        yield "anthropic_version: field required"
    yield from anthropic_faults(body)


def openai_call_faults(where: str, call: Any) -> Iterator[str]:
    """Yield what is wrong with a call in a message of OpenAI's."""
    match call:
        case {"id": str(call_id), "type": "function", "function": {"name": name, "arguments": str(arguments)}}:
            if len(call_id) > MOST:
                yield f"Invalid '{where}.id': string too long. Expected a string with maximum length {MOST}, but got " \
                      f"a string with length {len(call_id)} instead."
            if not is_name(name):
                yield f"Invalid '{where}.function.name': string does not match pattern '^[a-zA-Z0-9_-]+$'."
            try:
                decoded = json.loads(arguments)
            except (ValueError, RecursionError):
                decoded = None
            if not isinstance(decoded, dict):  # OpenAI's own server takes any text; compatible ones do not
                yield f"Invalid '{where}.function.arguments': expected the JSON text of an object."
        case _:
            yield f"Invalid '{where}': expected an id, the type 'function', and a function with name and arguments."


def openai_message_faults(where: str, message: Any) -> Iterator[str]:
    """Yield what is wrong with a message of OpenAI's."""
    role = message.get("role") if isinstance(message, dict) else None
    if role not in ("system", "developer", "user", "assistant", "tool"):
        yield f"Invalid value for '{where}.role': {role!r}."
        return
    calls = message.get("tool_calls", []) if role == "assistant" else []
    if "tool_calls" in message and (role != "assistant" or not isinstance(calls, list) or not calls):
        yield f"Invalid '{where}.tool_calls': expected an array with minimum length 1, in a reply."
        return
    if not isinstance(message.get("content"), str):  # OpenAI's own server takes null beside calls; others do not
        yield f"Invalid value for '{where}.content': expected a string, got null."
    if role == "assistant" and not calls and not message.get("content"):
        yield f"Invalid '{where}': a reply must have content or tool_calls."
    for j, call in enumerate(calls):
        yield from openai_call_faults(f"{where}.tool_calls[{j}]", call)


def openai_faults(body: Json) -> Iterator[str]:
    """Yield what is wrong with a request for OpenAI's Chat Completions API, in the order in which it is looked at."""
    if not is_text(body.get("model")):
        yield "you must provide a model parameter"
    for name in LIMITS:
        if body.get(name) is not None and (type(body[name]) is not int or body[name] < 1):
            yield f"Invalid '{name}': expected an integer of at least 1."
    if body.get("stream"):
        yield "Invalid value for 'stream': this server answers whole."
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        yield "Invalid 'messages': expected an array with minimum length 1."
        return
    due: list[str] = []
    taken: set[str] = set()
    for i, message in enumerate(messages):
        yield from openai_message_faults(f"messages[{i}]", message)
        if message["role"] != "tool" and due:
            break
        if message["role"] == "tool":
            if message.get("tool_call_id") not in due:
                yield f"Invalid parameter 'messages[{i}]': messages with role 'tool' must be a response to a " \
                      "preceding message with 'tool_calls'."
                return
            due.remove(message["tool_call_id"])
        for call in message.get("tool_calls", []):
            if call["id"] in taken:
                yield f"Invalid 'messages[{i}].tool_calls': duplicate id {call['id']!r}."
            taken.add(call["id"])
            due.append(call["id"])
    if due:
        yield "An assistant message with 'tool_calls' must be followed by tool messages responding to each " \
              f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(due)}"
    if "tools" in body and (not isinstance(body["tools"], list) or not body["tools"]):
        yield "Invalid 'tools': expected an array with minimum length 1."
        return
    names: set[str] = set()
    for i, tool in enumerate(body.get("tools", [])):
        function = tool.get("function", {}) if isinstance(tool, dict) and tool.get("type") == "function" else {}
        yield from tool_faults(f"tools[{i}].function", function, "parameters", names)
        if "properties" not in function["parameters"]:
            yield f"Invalid schema for function {function['name']!r}: object schema missing properties."


def anthropic_refusal(request: Json) -> str | None:
    """Return the first thing for which a request for Anthropic's Messages API is refused, or None."""
    return next(anthropic_faults(request), None)


def openai_refusal(request: Json) -> str | None:
    """Return the first thing for which a request for OpenAI's Chat Completions API is refused, or None."""
    return next(openai_faults(request), None)


# --- The three wire formats -----------------------------------------------------------------------------------


def usage_of(reply: ModelReply, body: Json) -> Usage:
    """Return a reply's usage, or a count of what was really sent and written."""
    sent = {key: body[key] for key in ("system", "messages", "tools") if key in body}
    written = [reply.content, *({"name": call.name, "args": call.args} for call in reply.tool_calls)]
    return reply.usage or Usage(count_tokens(sent), count_tokens(written))


def as_anthropic(reply: ModelReply, body: Json) -> Json:
    """Write a reply as Anthropic's Messages API does."""
    content: list[Json] = [{"type": "text", "text": reply.content}] if reply.content else []
    content += [{"type": "tool_use", "id": c.id, "name": c.name, "input": c.args} for c in reply.tool_calls]
    reason = {"truncated": "max_tokens", "refused": "refusal"}.get(reply.stop_reason)
    usage = usage_of(reply, body)
    return {
        "id": "msg_loopback",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": content,
        "stop_reason": reason or ("tool_use" if reply.tool_calls else "end_turn"),
        "stop_sequence": None,
        "usage": {"input_tokens": usage.prompt, "output_tokens": usage.reply},
    }


def as_openai(reply: ModelReply, body: Json) -> Json:
    """Write a reply as OpenAI's Chat Completions API does: no text is null, and arguments are JSON text."""
    message: Json = {"role": "assistant", "content": reply.content or None, "refusal": None}
    if reply.tool_calls:
        message["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": json.dumps(c.args)}}
            for c in reply.tool_calls
        ]
    reason = {"truncated": "length", "refused": "content_filter"}.get(reply.stop_reason)
    reason = reason or ("tool_calls" if reply.tool_calls else "stop")
    usage = usage_of(reply, body)
    tokens = {"prompt_tokens": usage.prompt, "completion_tokens": usage.reply}
    return {
        "id": "chatcmpl-loopback",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": reason, "logprobs": None}],
        "usage": tokens | {"total_tokens": usage.prompt + usage.reply},
    }


def cut_off(reply: ModelReply, body: Json) -> ModelReply:
    """Return a reply as far as the request's limit lets it come; of the calls, those that are whole by then.

    The providers send the beginning of a call too. A reply of the script that is no whole one stays as it is.
    """
    limit = next((body[name] for name in LIMITS if body.get(name) is not None), None)
    if limit is None or reply.stop_reason:
        return reply
    calls = list(reply.tool_calls)
    while calls and usage_of(ModelReply(reply.content, calls), body).reply > limit:
        calls.pop()
    text = reply.content[: limit * LETTERS]
    whole = text == reply.content and len(calls) == len(reply.tool_calls)
    if whole:
        return reply
    return ModelReply(text, calls, Usage(usage_of(reply, body).prompt, limit), "truncated")


def as_json_text(reply: ModelReply) -> str | Refusal:
    """Write a reply as a model does that was asked for JSON text; several calls it cannot make."""
    if not reply.tool_calls:
        return json.dumps({"final": reply.content})
    if len(reply.tool_calls) > 1:
        return Refusal(400, f"JSON text makes one call in a reply; the script's makes {len(reply.tool_calls)}")
    call = reply.tool_calls[0]
    return f"{reply.content}\n{json.dumps({'tool': call.name, 'args': call.args})}".strip()


def anthropic_error(refusal: Refusal) -> Json:
    """Write an error as Anthropic's API does."""
    kinds = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error", 529: "overloaded_error"}
    kind = kinds.get(refusal.status, "invalid_request_error" if refusal.status < 500 else "api_error")
    return {"type": "error", "error": {"type": kind, "message": refusal.message}, "request_id": "req_loopback"}


def openai_error(refusal: Refusal) -> Json:
    """Write an error as OpenAI's API does."""
    codes = {401: "invalid_api_key", 429: "rate_limit_exceeded"}
    kind = "invalid_request_error" if refusal.status < 500 else "server_error"
    return {"error": {"message": refusal.message, "type": kind, "param": None, "code": codes.get(refusal.status)}}


def bedrock_error(refusal: Refusal) -> Json:
    """Write an error as Bedrock does."""
    return {"message": refusal.message}


@dataclass(frozen=True)
class Format:
    """A wire format: how a request is judged, and how a reply and an error are written."""

    faults: Callable[[Json], Iterator[str]]
    reply: Callable[[ModelReply, Json], Json]
    error: Callable[[Refusal], Json]


ANTHROPIC = Format(anthropic_faults, as_anthropic, anthropic_error)
BEDROCK = Format(bedrock_faults, as_anthropic, bedrock_error)
OPENAI = Format(openai_faults, as_openai, openai_error)


# --- The provider ---------------------------------------------------------------------------------------------

SAID = {
    401: "the key is not valid",
    404: "there is nothing at this address, but at these: /v1/messages for Anthropic's clients, whose base_url does "
         "not end in /v1; /v1/chat/completions for OpenAI's, whose base_url does; and /model/NAME/invoke for "
         "AnthropicBedrock",
    429: "too many requests; try again later",
    503: "overloaded; try again later",
    529: "overloaded; try again later",
}


def in_order(script: Iterable[Answer]) -> Callable[[Json], Answer]:
    """Return what answers each request with the next step of a script."""
    steps = iter(script)
    return lambda body: next(steps, Refusal(500, "the script ran out"))


def by_turn(script: list[ModelReply]) -> Callable[[Json], Answer]:
    """Return what answers by the number of replies that a request holds, so that a script can be run again."""

    def answer(body: Json) -> Answer:
        turn = sum(message["role"] == "assistant" for message in body["messages"])
        return script[turn] if turn < len(script) else Refusal(500, "the script ran out")

    return answer


def after_refusals(statuses: Iterable[int], answer: Callable[[Json], Answer]) -> Callable[[Json], Answer]:
    """Return what refuses the first requests, one for each of `statuses`, and answers those that follow."""
    left = iter(statuses)

    def refuse_or_answer(body: Json) -> Answer:
        status = next(left, None)
        return answer(body) if status is None else Refusal(status)

    return refuse_or_answer


class Provider:
    """What stands at the other end of the wire: it refuses a request, or answers it from a script.

    `answer(body)` gives the answer to a request that is not refused. `requests` holds the body of each that came.
    """

    def __init__(self, answer: Callable[[Json], Answer]) -> None:
        self.answer, self.requests = answer, list[Json]()

    def handle(self, path: str, headers: Mapping[str, str], body: Any) -> tuple[int, Json]:
        """Return the status and the body that answer a request."""
        path = path.partition("?")[0]
        wire, body = format_of(path, body)
        self.requests.append(body)
        refusal = refuse(wire, path, headers, body)
        answer = refusal or self.answer(body)
        if isinstance(answer, ModelReply) and JSON_RULES in json_text_of(body):
            answer = as_json_text(answer)
        if isinstance(answer, Refusal):
            return answer.status, wire.error(replace(answer, message=answer.message or SAID.get(answer.status, "no")))
        if isinstance(answer, str):
            answer = ModelReply(answer)
        return 200, wire.reply(cut_off(answer, body), body) if isinstance(answer, ModelReply) else answer


def json_text_of(body: Json) -> str:
    """Return the first message of a request, which holds the rules where a reply in JSON text is wanted."""
    first = body["messages"][0]["content"]
    return first if isinstance(first, str) else ""


def format_of(path: str, body: Any) -> tuple[Format, Any]:
    """Return the format that is spoken at an address, and the body with the model that Bedrock has in the address."""
    if found := re.fullmatch("/model/([^/]+)/invoke", path):
        return BEDROCK, {"model": found[1]} | body if isinstance(body, dict) else body
    return (ANTHROPIC if path.endswith("/messages") else OPENAI), body


def refuse(wire: Format, path: str, headers: Mapping[str, str], body: Any) -> Refusal | None:
    """Return the error that answers a request, if it is refused."""
    if wire is not BEDROCK and path not in ("/v1/messages", "/v1/chat/completions"):
        return Refusal(404)
    if KEY not in (headers.get("x-api-key"), headers.get("authorization", "").removeprefix("Bearer ")):
        return Refusal(403 if wire is BEDROCK else 401, SAID[401])
    if not isinstance(body, dict):
        return Refusal(400, "the request body is not a JSON object")
    fault = next(wire.faults(body), None)
    return Refusal(400, fault) if fault else None


class StatusError(Exception):
    """An answer with an error status, as the client without a network raises it."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status_code = status


class BusyError(StatusError):
    """An error that may pass: a rate limit, or an overload."""


def as_objects(value: Any) -> Any:
    """Return a decoded answer with attributes for keys, as the providers' clients do; arguments stay a dict."""
    if isinstance(value, list):
        return [as_objects(item) for item in value]
    if isinstance(value, dict):
        asked = ("input", "arguments")
        return SimpleNamespace(**{key: item if key in asked else as_objects(item) for key, item in value.items()})
    return value


def client_of(provider: Provider, key: str = KEY) -> Any:
    """Return a client without a network: it has of the providers' clients what the adapters use."""

    def create_at(path: str) -> Callable[..., Any]:
        def create(**request: Any) -> Any:
            headers = {"authorization": f"Bearer {key}"}
            status, body = provider.handle(path, headers, json.loads(json.dumps(request)))
            if status == 200:
                return as_objects(body)
            raise (BusyError if status in (429, 503, 529) else StatusError)(status, body["error"]["message"])

        return create

    completions = SimpleNamespace(create=create_at("/v1/chat/completions"))
    messages = SimpleNamespace(create=create_at("/v1/messages"))
    return SimpleNamespace(messages=messages, chat=SimpleNamespace(completions=completions))


# --- The server -----------------------------------------------------------------------------------------------


def handler_of(provider: Provider, log: Callable[[str], object]) -> type[BaseHTTPRequestHandler]:
    """Return what answers HTTP requests for a provider, and tells `log` of each its method, path, status and fault."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # or each answer waits until its headers were confirmed

        def handle(self) -> None:
            with suppress(ConnectionError):  # the client may have gone, as after a time limit of its own
                super().handle()

        def do_GET(self) -> None:
            if self.path == "/":
                self.send(200, WELCOME.encode("utf-8"), "text/plain; charset=utf-8")
            else:
                self.send_json(404, OPENAI.error(Refusal(404, SAID[404])))

        def do_POST(self) -> None:
            length = self.headers.get("content-length", "")
            text = self.rfile.read(int(length) if length.isdecimal() else 0)
            try:
                body = json.loads(text.decode("utf-8"))
            except (ValueError, RecursionError):
                body = None
            self.send_json(*provider.handle(self.path, {k.lower(): v for k, v in self.headers.items()}, body))

        def send_json(self, status: int, answer: Json) -> None:
            wrong = f": {answer.get('error', answer)['message']}" if status >= 400 else ""
            self.send(status, json.dumps(answer).encode("utf-8"), "application/json", wrong)

        def send(self, status: int, data: bytes, kind: str, wrong: str = "") -> None:
            line = f"{self.command} {self.path.partition('?')[0]} {status}{wrong}"
            log(re.sub("[^ -~]", "?", line))  # before the answer, so that the lines are in order
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Leave the lines to `log`."""

    return Handler


def nothing(line: str) -> None:
    """Let a line go."""


@contextmanager
def serving(provider: Provider, port: int = 0, log: Callable[[str], object] = nothing) -> Iterator[str]:
    """Serve a provider on this machine, at a free port if none is given, and yield its address."""
    with ThreadingHTTPServer(("127.0.0.1", port), handler_of(provider, log)) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


WELCOME = "A provider on this machine. It plays one script, the weather task, whatever it is asked.\n"
LINES = """A provider on this machine, until Ctrl-C. It plays one script, the weather task, whatever it is asked,
and takes any name of a model. A program for each kind of client, whole:
{programs}
The requests:"""
PROGRAM = """
# {title}
from {package} import {client}

from agentloop import WEATHER_TASK, {adapter}, run_agent, weather_world

client = {client}(base_url="{url}", api_key="{key}", max_retries=0{more})
{model}
print(run_agent(WEATHER_TASK, model, weather_world()[0]).answer)
"""
COMPLETE = """complete = lambda messages: client.chat.completions.create(
    model="any", messages=messages).choices[0].message.content
model = json_text_model(complete)"""
CLIENTS = {
    "Anthropic": ("anthropic", "Anthropic", "anthropic_model", ""),
    "Bedrock": ("anthropic", "AnthropicBedrockMantle", "anthropic_model", ""),
    "Bedrock, the older way": ("anthropic", "AnthropicBedrock", "anthropic_model", ', aws_region="us-east-1"'),
    "OpenAI": ("openai", "OpenAI", "openai_model", ""),
    "JSON text": ("openai", "OpenAI", "json_text_model", ""),
}


def programs(url: str) -> list[str]:
    """Return a program for each kind of client, which runs the weather task with the provider at an address."""
    texts = []
    for title, (package, client, adapter, more) in CLIENTS.items():
        address = f"{url}/v1" if package == "openai" else url
        model = COMPLETE if title == "JSON text" else f'model = {adapter}(client, "any")'
        texts.append(PROGRAM.format(title=title, package=package, client=client, adapter=adapter, more=more,
                                    url=address, key=KEY, model=model))
    return texts


def read_statuses(text: str) -> list[int]:
    """Return the statuses in a text like 429,529; raise ValueError if one is no status of an error."""
    statuses = [int(part) if part.strip().isdecimal() else 0 for part in text.split(",")]
    if not all(400 <= status <= 599 for status in statuses):
        raise ValueError(f"--first takes statuses from 400 to 599, like 429,529, and not {text!r}.")
    return statuses


def tell(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Serve the weather task until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m looplab.provider", description=WELCOME)
    parser.add_argument("--port", type=int, default=PORT, help=f"{PORT} if not given; 0 for a free one")
    parser.add_argument("--first", metavar="429,529", help="the statuses with which the first requests are refused")
    asked = parser.parse_args(arguments)
    port = asked.port
    if not 0 <= port <= 65535:
        print(f"There is no port {port}; the largest is 65535. Another one: python -m looplab.provider --port 0")
        return 1
    try:
        statuses = read_statuses(asked.first) if asked.first is not None else []
    except ValueError as error:
        print(error)
        return 1
    try:
        with serving(Provider(after_refusals(statuses, by_turn(weather_script()))), port, tell) as url:
            tell(LINES.format(programs="".join(programs(url))))
            threading.Event().wait()
    except KeyboardInterrupt:
        return 0
    except OSError as error:
        print(f"Port {port} cannot be used ({error.strerror}). Another one: python -m looplab.provider --port 0")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
