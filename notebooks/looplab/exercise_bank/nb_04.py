"""Exercises of notebook 04: what a model is shown, results in the wrong order, a complete list, a lost reply."""

from __future__ import annotations

import json
from types import FunctionType
from typing import Any

from agentloop import (
    WEATHER_TASK,
    AgentResult,
    Json,
    ModelReply,
    asks,
    call,
    final,
    run_agent,
    weather_script,
    weather_world,
)
from looplab.cases import Case, Exercise, Patient, same_messages

SHOWN = Exercise(
    "04-shown",
    {"shown": FunctionType},
    [
        Case(
            "shown([1, 1, 0])",
            "the three numbers of the weather task: each reply adds one message, each call one more",
            [2, 4, 6],
        ),
        Case("shown([0])", "one model call, shown the system message and the task", [2]),
        Case("shown([2, 0])", "two numbers: the second is shown the reply and both observations", [2, 5]),
        Case("shown([3, 1, 0])", "three numbers", [2, 6, 8]),
        Case("shown([1, 1, 1, 1, 1])", "five numbers, for a model that never finishes", [2, 4, 6, 8, 10]),
    ],
    (
        "Before the first call the list holds two messages. What is appended between one call and the next?",
        "A reply with n calls adds 1 + n messages. The number is noted before they are added.",
        "length = 2; for each n: append length to the result, then add 1 + n to length.",
    ),
)


# --- Results in the wrong order ------------------------------------------------------------------------------


def two_results() -> list[Json]:
    """Return a list that ends with the observations of two calls: a is Pune, b is Delhi."""
    both = asks(call("a", "get_weather", city="Pune"), call("b", "get_weather", city="Delhi"))
    return run_agent("Which is warmer, Pune or Delhi?", Patient([both]), weather_world()[0], max_steps=1).messages


def by_id(messages: list[Json]) -> str:
    """Say which city is warmer, by the id of the call that each observation answers."""
    celsius = {m["tool_call_id"]: json.loads(m["content"])["celsius"] for m in messages if m["role"] == "tool"}
    return "Pune" if celsius["a"] > celsius["b"] else "Delhi"


def by_place(messages: list[Json]) -> str:
    """Say which city is warmer, by the order of the observations."""
    first, second = [json.loads(m["content"])["celsius"] for m in messages if m["role"] == "tool"]
    return "Pune" if first > second else "Delhi"


def given_after(swap: Any) -> list[Json]:
    """Return the list that was given to a swap, after it."""
    messages = two_results()
    swap(messages)
    return messages


def swapped_places() -> list[Json]:
    """Return the two results in the other order."""
    *before, first, second = two_results()
    return [*before, second, first]


def swapped_ids() -> list[Json]:
    """Return the two results with each other's ids."""
    *before, first, second = two_results()
    first["tool_call_id"], second["tool_call_id"] = "b", "a"
    return [*before, first, second]


SAYS = {
    "by_id after swap_places": by_id(swapped_places()),
    "by_id after swap_ids": by_id(swapped_ids()),
    "by_place after swap_places": by_place(swapped_places()),
    "by_place after swap_ids": by_place(swapped_ids()),
}
ORDER = Exercise(
    "04-order",
    {"swap_places": FunctionType, "swap_ids": FunctionType, "says": dict},
    [
        Case(
            "swap_places(two_results())",
            "the observation of b before that of a, each with its own id",
            same_messages(swapped_places()),
            given="a list that ends with the observations a (30) and b (35)",
        ),
        Case(
            "given_after(swap_places)",
            "the list that was given, as it was: messages are never edited",
            same_messages(two_results()),
            given="the list that swap_places was given, afterwards",
        ),
        Case(
            "swap_ids(two_results())",
            "30 first and 35 second, as before, but under each other's id",
            same_messages(swapped_ids()),
            given="a list that ends with the observations a (30) and b (35)",
        ),
        Case(
            "given_after(swap_ids)",
            "the list that was given, as it was: messages are never edited",
            same_messages(two_results()),
            given="the list that swap_ids was given, afterwards",
        ),
        *(
            Case(
                f"says[{who!r}]",
                f'"Pune" or "Delhi": what {who.split()[0]} says of the list that {who.split()[2]} returns',
                city,
            )
            for who, city in SAYS.items()
        ),
    ],
    (
        "*before, first, second = messages takes a list apart without changing it.",
        'A dict with one other value: first | {"tool_call_id": "b"}. It is a new dict; first stays as it is.',
        "swap_places returns [*before, second, first]. swap_ids returns [*before, first with the id of second, second "
        "with "
        "the id of first]. For the predictions: a reader by id is wrong only if ids lie, a reader by place only if "
        "places do.",
    ),
    lambda: {"two_results": two_results, "given_after": given_after},
)


# --- A complete list -----------------------------------------------------------------------------------------


def chat(*parts: str) -> list[Json]:
    """Return a message list: "asks a b" is a reply with two calls, "a" the observation of a, "answers" a last reply."""
    messages: list[Json] = [{"role": "system", "content": "Use the tools."}, {"role": "user", "content": "Compare."}]
    for part in parts:
        verb, *ids = part.split()
        if verb in ("asks", "answers"):
            calls = [{"id": i, "name": "get_weather", "args": {"city": "Pune"}} for i in ids]
            messages.append({"role": "assistant", "content": "" if ids else "Done.", "tool_calls": calls})
        else:
            messages.append({"role": "tool", "tool_call_id": verb, "name": "get_weather", "content": "30"})
    return messages


def in_words(part: str) -> str:
    """Say what a part of `chat` is."""
    verb, *ids = part.split()
    if verb == "answers":
        return "a reply without calls"
    return f"a reply that asks for {' and '.join(ids)}" if verb == "asks" else f"the observation of {verb}"


def case_of(parts: list[str], expected: str, holds: bool) -> Case:
    given = f"a list with, after the task: {', '.join(map(in_words, parts))}"
    return Case(f"is_complete(chat(*{parts}))", expected, holds, given)


COMPLETE = Exercise(
    "04-complete",
    {"is_complete": FunctionType},
    [
        case_of(["asks a b", "a", "b", "answers"], "True: each call has its observation, in order", True),
        case_of(["answers"], "True: nothing was asked for", True),
        case_of(["asks a", "a", "asks b c", "b", "c"], "True: it may end with observations", True),
        case_of(["asks a b", "a", "answers"], "False: b has no observation", False),
        case_of(["asks a b", "a"], "False: b has no observation, and the list ends", False),
        case_of(["asks a b", "a", "a"], "False: two observations, but both are for a", False),
        case_of(["asks a", "a", "a", "answers"], "False: a is answered twice", False),
        case_of(["asks a b", "b", "a", "answers"], "False: the observations are not in the order of the calls", False),
        case_of(["asks a", "answers", "a"], "False: the observation comes after the next reply", False),
        case_of(["asks a", "asks b", "b", "answers"], "False: a, of an earlier reply, has no observation", False),
        case_of(["a", "answers"], "False: an observation of a call that nobody made", False),
    ],
    (
        "Go through the list once, and remember which ids are waited for. What may come while the list of them is not "
        "empty?",
        "A tool message must carry the first id that is waited for, and takes it away. Any other message may come "
        "only if "
        "none is waited for.",
        "waiting = []. For a tool message: False if waiting is empty or waiting.pop(0) is not its id. For any other: "
        "False if "
        'waiting is not empty, else waiting becomes the ids in message.get("tool_calls", []). At the end: not waiting.',
    ),
    lambda: {"chat": chat},
)


# --- Find the bug: the answer is not in the list -------------------------------------------------------------


def run_loop(loop: Any, *replies: ModelReply, task: str = WEATHER_TASK) -> Any:
    """Run a reader's loop on a script in the weather world."""
    return loop(task, Patient(replies), weather_world()[0])


def expected_messages(*replies: ModelReply, task: str = WEATHER_TASK) -> list[Json]:
    """Return the messages of the reference on the same script."""
    return run_agent(task, Patient(replies), weather_world()[0]).messages


def two_cities() -> list[ModelReply]:
    """Return a script with two calls in one reply."""
    both = asks(call("a", "get_weather", city="Pune"), call("b", "get_weather", city="Delhi"), text="Both at once.")
    return [both, final("Delhi is warmer, by 5 degrees.")]


def ending(result: AgentResult) -> tuple[str, str | None]:
    """Return status and answer of a run."""
    return result.status, result.answer


BUG = Exercise(
    "04-bug",
    {"run_task": FunctionType},
    [
        Case(
            "ending(run_loop(run_task, *weather_script()))",
            "status done, and the answer of the last reply",
            ("done", "It is 86.0 F in Pune."),
            given="the weather task: how the run ends",
        ),
        Case(
            "run_loop(run_task, *weather_script())",
            "seven messages; the last one is the reply that answers",
            same_messages(expected_messages(*weather_script())),
            given="the weather task: its messages",
        ),
        Case(
            'run_loop(run_task, final("Hello."))',
            "three messages: system, user, and the reply",
            same_messages(expected_messages(final("Hello."))),
            given="a model that answers at once: its messages",
        ),
        Case(
            "run_loop(run_task, *two_cities())",
            "six messages: each of two calls has its observation",
            same_messages(expected_messages(*two_cities())),
            given="two calls in one reply: its messages",
        ),
    ],
    (
        "Read the list of a run from its end. Which reply of the model is not in it?",
        "Every reply is appended, the last one too. When does this loop append, and when does it return?",
        "Move the line that appends the reply above the `if not calls`. Nothing else changes.",
    ),
    lambda: {"run_loop": run_loop, "ending": ending, "two_cities": two_cities},
    shipped="""
def run_task(task, model, registry, system="Use the tools to answer the user."):
    messages = [{"role": "system", "content": system}, {"role": "user", "content": task}]
    while True:
        reply = model(messages, registry.specs())
        calls = [{"id": c.id, "name": c.name, "args": c.args} for c in reply.tool_calls]
        if not calls:
            return AgentResult("done", reply.content, 0, 0, messages)
        messages.append({"role": "assistant", "content": reply.content, "tool_calls": calls})
        for c in reply.tool_calls:
            content = registry.execute(c.name, c.args)
            messages.append({"role": "tool", "tool_call_id": c.id, "name": c.name, "content": content})
""",
)

EXERCISES = [SHOWN, ORDER, COMPLETE, BUG]
