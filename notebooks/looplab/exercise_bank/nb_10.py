"""Exercises of notebook 10: fold results, decode arguments, a provider's words, and a reply that was cut off."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from agentloop import AgentResult, Json, ModelReply, ToolRegistry, asks, call, final, run_agent, written
from looplab.cases import Case, Exercise, Patient, cut
from looplab.provider import as_objects, as_openai
from looplab.worlds import schema

# --- Fold the results ----------------------------------------------------------------------------------------


def observed(call_id: str, content: str) -> Json:
    """Return an observation."""
    return {"role": "tool", "tool_call_id": call_id, "name": "get_weather", "content": content}


def said(text: str) -> Json:
    """Return a message of the user."""
    return {"role": "user", "content": text}


def turn(*blocks: Json) -> Json:
    """Return a message of the user that holds blocks."""
    return {"role": "user", "content": list(blocks)}


def result_block(call_id: str, content: str, **more: Any) -> Json:
    """Return the block of a result."""
    return {"type": "tool_result", "tool_use_id": call_id, "content": content} | more


def same_turn(*blocks: Json) -> Callable[[Any], bool | str]:
    """Return a test for a message of the user with these blocks; it names a key that a block should not have."""

    def test(value: Any) -> bool | str:
        mine = value.get("content") if isinstance(value, dict) else None
        for i, (block, ours) in enumerate(zip(mine, blocks) if isinstance(mine, list) else [], start=1):
            if isinstance(block, dict) and block.get("type") == ours["type"] and (more := set(block) - set(ours)):
                return f"block {i} has a key {min(map(str, more))} that it must not have, in {cut(written(value))}"
        return bool(value == turn(*blocks))

    return test


HURRY = {"type": "text", "text": "And hurry."}
FOLD = Exercise(
    "10-fold",
    {"user_turn": FunctionType},
    [
        Case('user_turn([observed("c1", "30")])', "one message with one block", same_turn(result_block("c1", "30"))),
        Case(
            'user_turn([observed("c1", "30"), observed("c2", "35")])',
            "one message with two blocks, in order",
            same_turn(result_block("c1", "30"), result_block("c2", "35")),
        ),
        Case(
            'user_turn([observed("c1", "30"), observed("c2", "ERROR: no")])',
            "is_error in the second block, and only there",
            same_turn(result_block("c1", "30"), result_block("c2", "ERROR: no", is_error=True)),
        ),
        Case(
            'user_turn([observed("c1", "No ERROR: was found.")])',
            "no is_error: an error begins with ERROR: ",
            same_turn(result_block("c1", "No ERROR: was found.")),
        ),
        Case(
            'user_turn([observed("c1", "30"), said("And hurry.")])',
            "the text of the user behind the result",
            same_turn(result_block("c1", "30"), HURRY),
        ),
        Case(
            'user_turn([said("And hurry."), observed("c1", "30"), observed("c2", "35")])',
            "results first, whoever spoke first",
            same_turn(result_block("c1", "30"), result_block("c2", "35"), HURRY),
        ),
        Case(
            'user_turn([observed("c1", "30"), said("  \\n")])',
            "no block for a blank text",
            same_turn(result_block("c1", "30")),
        ),
    ],
    (
        "Go through the messages twice: once for the observations, once for what the user said.",
        'An observation has the role tool. Make its block, and add is_error if its content starts with "ERROR:".',
        'results = [… for m in messages if m["role"] == "tool"]; texts = [… for m in messages if m["role"] == "user" '
        'and m["content"].strip()]; return {"role": "user", "content": results + texts}.',
    ),
    lambda: {"observed": observed, "said": said},
)


# --- Decode without crashing ---------------------------------------------------------------------------------


def is_told(raw: str) -> Any:
    """Return a test of the pair that tells that `raw` is not JSON."""

    def test(value: Any) -> bool | str:
        if not isinstance(value, tuple) or len(value) != 2:
            return f"no pair, but {value!r}"
        args, problem = value
        return args == raw and isinstance(problem, str) and problem.startswith("arguments are not JSON")

    return test


DECODE = Exercise(
    "10-decode",
    {"decode_args": FunctionType},
    [
        Case("""decode_args('{"city": "Pune"}')""", "the arguments, and None", ({"city": "Pune"}, None)),
        Case('decode_args("")', "no arguments, which are {}", ({}, None)),
        Case("decode_args(None)", "no arguments, which are {}", ({}, None)),
        Case('decode_args(" \\n")', "no arguments, which are {}", ({}, None)),
        Case(
            """decode_args('"{\\\\"city\\\\": \\\\"Pune\\\\"}"')""",
            "text inside text: decoded twice",
            ({"city": "Pune"}, None),
        ),
        Case('decode_args({"city": "Pune"})', "as it is: this server decodes by itself", ({"city": "Pune"}, None)),
        Case(
            """decode_args("{city: 'Pune'}")""",
            "the text as it was, and a sentence that begins: arguments are not JSON",
            is_told("{city: 'Pune'}"),
        ),
        Case(
            """decode_args('["Pune"]')""",
            "the list, and None: it is JSON, and the registry says what is wrong with it",
            (["Pune"], None),
        ),
        Case(
            'decode_args("[" * 100_000)',
            "the text as it was, and the sentence",
            is_told("[" * 100_000),
            given="a hundred thousand opening brackets",
        ),
    ],
    (
        "There are three kinds of raw: None, text, and what is decoded already. Which of them can fail?",
        "Only text, and json.loads raises ValueError for it, or RecursionError if it is nested too deep. Decode it in "
        "a loop that runs twice, as long as it is text.",
        "args = raw; for _ in range(2): if it is text and not blank, try args = json.loads(args), and in except "
        '(ValueError, RecursionError) return raw, "arguments are not JSON: …". Then None and blank text are {}.',
    ),
)


# --- A new provider ------------------------------------------------------------------------------------------

def same_reply(expected: ModelReply) -> Callable[[Any], bool | str]:
    """Return a test for a reply, whatever its usage; it names the first part that differs."""

    def test(value: Any) -> bool | str:
        if not isinstance(value, ModelReply):
            return f"no ModelReply, but {cut(written(value))}"
        for part in ("content", "tool_calls", "stop_reason"):
            mine, ours = getattr(value, part), getattr(expected, part)
            if mine != ours:
                return f"a reply whose {part} is {cut(written(mine))}, where {written(ours)} was expected"
        return True

    return test


PING = call("c1", "send_mail", text="Dear customer, we")
STOP = Exercise(
    "10-stop",
    {"read": FunctionType},
    [
        Case('read("done", "Hello.", [])', "a reply with the text", same_reply(final("Hello."))),
        Case('read("wants_tools", "", [ping])', "a reply with the call", same_reply(asks(PING))),
        Case('read("out_of_room", "I wri", [ping]).stop_reason', "truncated", "truncated"),
        Case('read("declined", "I will not.", []).stop_reason', "refused", "refused"),
        Case('read("out_of_room", "I wri", []).content', "the text is kept", "I wri"),
        Case('read("done", "", [ping])', "the call: calls decide", same_reply(asks(PING))),
        Case('read("wants_tools", "Hm.", [])', "the text: calls decide", same_reply(final("Hm."))),
        Case('read("done", " ", []).stop_reason', "empty_reply: neither text nor call", "empty_reply"),
        Case('read("out_of_room", "", []).stop_reason', "truncated: that is why there is nothing", "truncated"),
        Case(
            'read("paused", "Hello.", [])',
            "a reply: an unknown word decides nothing",
            same_reply(final("Hello.")),
        ),
    ],
    (
        "Two of the four words say that it is no reply. For the rest, unknown words included, look at text and calls.",
        'A dict from word to stop reason, and .get(said, …): what stands in place of the dots is "empty_reply" if '
        'there is neither text nor call, else "".',
        'empty = "" if text.strip() or calls else "empty_reply"; return ModelReply(text, calls, '
        'stop_reason={"out_of_room": "truncated", "declined": "refused"}.get(said, empty)).',
    ),
    lambda: {"ping": PING},
)


# --- Find the bug: half a mail -------------------------------------------------------------------------------


def answered(reply: ModelReply, finish_reason: str = "") -> Any:
    """Return a response in OpenAI's format, with another finish reason where one is given."""
    body = as_openai(reply, {"model": "any"})
    choice = body["choices"][0]
    choice["finish_reason"] = finish_reason or choice["finish_reason"]
    choice["message"].setdefault("tool_calls", None)  # as the client has it
    return as_objects(body)


def post_office() -> tuple[ToolRegistry, list[str]]:
    """Return a registry that sends mail, and the mails that were sent."""
    sent: list[str] = []

    def send_mail(text: str) -> str:
        sent.append(text)
        return "sent"

    registry = ToolRegistry()
    registry.register("send_mail", "Send a mail.", schema(text="string"), send_mail)
    return registry, sent


def run_of(reads: Any, reply: ModelReply) -> tuple[AgentResult, list[str]]:
    """Run one reply through `reads`; return the result, and the mails that were sent."""
    registry, sent = post_office()
    script = [lambda messages, specs: reads(answered(reply)), final("The mail is sent.")]
    return run_agent("Write to the customer.", Patient(script), registry), sent


HALF = ModelReply("I will write to her.", [PING], stop_reason="truncated")
FILTERED = ModelReply("I will write to her.", [PING], stop_reason="refused")
WHOLE = asks(PING, text="I will write to her.")
BUG = Exercise(
    "10-bug",
    {"reads": FunctionType},
    [
        Case('reads(answered(final("Hello.")))', "a reply with the text", same_reply(final("Hello."))),
        Case(
            "reads(answered(whole))",
            "the text and the call",
            same_reply(WHOLE),
            given="a whole reply with a text and a call",
        ),
        Case(
            "run_of(reads, half)[1]",
            "no mail",
            [],
            given="the mails of a run whose reply was cut off inside a call",
        ),
        Case(
            "run_of(reads, half)[0].status",
            "how a run ends whose reply was cut off",
            "truncated",
            given="the exit of that run",
        ),
        Case("reads(answered(half)).content", "the text is kept", "I will write to her.", given="that reply's text"),
        Case(
            "run_of(reads, filtered)[0].status",
            "how a run ends whose reply was filtered",
            "refused",
            given="the exit of a run whose reply the filter stopped inside a call",
        ),
        Case(
            "len(reads(answered(whole, 'stop')).tool_calls)",
            "1: this server says stop beside a whole call",
            1,
        ),
        Case('reads(answered(final(""))).stop_reason', "empty_reply", "empty_reply"),
        Case('reads(answered(ModelReply("Hel", stop_reason="truncated"))).stop_reason', "truncated", "truncated"),
    ],
    (
        "In which order does it ask? Follow a reply that has a call and was cut off in it.",
        "The question about calls comes first, so the finish reason is never looked at. Which of the two must be asked "
        "first?",
        "Move the two questions about finish_reason above the one about calls.",
    ),
    lambda: {
        "answered": answered,
        "run_of": run_of,
        "half": HALF,
        "filtered": FILTERED,
        "whole": WHOLE,
    },
    shipped="""
def reads(response):
    choice = response.choices[0]
    text = choice.message.content or ""
    calls = [read_call(c.id, c.function.name, c.function.arguments) for c in choice.message.tool_calls or []]
    if calls:
        return ModelReply(text, calls)
    if choice.finish_reason == "length":
        return ModelReply(text, stop_reason="truncated")
    if choice.finish_reason == "content_filter":
        return ModelReply(text, stop_reason="refused")
    return ModelReply(text) if text.strip() else ModelReply(stop_reason="empty_reply")
""",
)

EXERCISES = [FOLD, DECODE, STOP, BUG]
