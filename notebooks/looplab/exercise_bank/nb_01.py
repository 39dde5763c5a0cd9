"""Exercises of notebook 01: what is a final answer, the shapes of messages, scripts, and a record that is a copy."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from agentloop import AgentResult, Json, ModelReply, ScriptedModel, ToolRegistry, final, run_agent
from looplab.cases import Case, Exercise, Raises


def play(replies: Any, **celsius: int) -> AgentResult:
    """Run a script in a world of these cities, or of Pune and Delhi."""
    cities = celsius or {"Pune": 30, "Delhi": 35}

    def get_weather(city: str) -> Json:
        return {"city": city, "celsius": cities[city]}

    registry = ToolRegistry()
    city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    registry.register("get_weather", "Temperature of a city, in Celsius.", city, get_weather)
    return run_agent("How hot is it?", ScriptedModel(replies), registry)


def observations(result: AgentResult) -> list[str]:
    """Return what the tools answered."""
    return [message["content"] for message in result.messages if message["role"] == "tool"]


IS_FINAL = Exercise(
    "01-final",
    {"is_final": FunctionType},
    [
        Case('is_final(final("It is 30 degrees."))', "True: it asks for nothing", True),
        Case('is_final(asks(call("c1", "get_weather", city="Pune")))', "False: it asks for a tool", False),
        Case(
            'is_final(asks(call("c1", "get_weather", city="Pune"), text="Final answer: let me check."))',
            "False: it asks for a tool, whatever its text says",
            False,
        ),
        Case('is_final(final(""))', "True: it asks for nothing, even without a text", True),
        Case(
            'is_final(asks(call("a", "get_weather", city="Pune"), call("b", "get_weather", city="Delhi")))',
            "False: it asks for two tools",
            False,
        ),
    ],
    (
        "Read the rule that stands before the class ModelReply. Does it speak of the text?",
        "Only the list of calls decides. The text plays no part, empty or not.",
        "An empty list is false in Python. Return whether the list of calls is empty, with `not`.",
    ),
)

SHAPES = Exercise(
    "01-shapes",
    {"messages": list},
    [
        Case("len(messages)", "two messages: one for the reply, one for what the tool returned", 2),
        Case("[type(message) is dict for message in messages]", "plain dicts, both of them", [True, True]),
        Case('messages[0]["role"]', "the role of the model", "assistant"),
        Case('messages[0]["content"]', "the text that stands beside the call", "Now I convert it."),
        Case(
            'messages[0]["tool_calls"]',
            "a list with one call, a plain dict: its id, its name, its arguments",
            [{"id": "c2", "name": "c_to_f", "args": {"celsius": 30}}],
        ),
        Case('messages[1]["role"]', "the role of what a tool returned", "tool"),
        Case('messages[1]["tool_call_id"]', "the id of the call that it answers", "c2"),
        Case('messages[1]["name"]', "the name of the tool", "c_to_f"),
        Case('messages[1]["content"]', "the number as text, for every content is text", "86.0"),
        Case(
            "[sorted(message) for message in messages]",
            "the keys of these two shapes, and no others",
            [["content", "role", "tool_calls"], ["content", "name", "role", "tool_call_id"]],
        ),
    ],
    (
        "The cell after *The message list* has all four shapes. You need the last two.",
        "The reply's message has role, content and tool_calls; the tool's has role, tool_call_id, name and content.",
        'The first begins {"role": "assistant", "content": "Now I convert it.", "tool_calls": [ and holds the call as '
        'a '
        'dict with id, name and args. The second ends "content": "86.0"}.',
    ),
)

TWO_CALLS = Exercise(
    "01-two-calls",
    {"two_cities": FunctionType},
    [
        Case("type(two_cities())", "a list of replies; the check makes the model from it", lambda kind: kind is list),
        Case("len(two_cities())", "two replies: one that asks, one that answers", 2),
        Case("len(two_cities()[0].tool_calls)", "two calls in the first reply", 2),
        Case(
            "sorted(c.args['city'] for c in two_cities()[0].tool_calls)",
            "Pune and Delhi, in the argument city",
            ["Delhi", "Pune"],
        ),
        Case("len({c.id for c in two_cities()[0].tool_calls})", "two different ids", 2),
        Case(
            "observations(play(two_cities()))",
            "a run in which both tools answer with a temperature",
            lambda texts: sorted(texts) == ['{"city": "Delhi", "celsius": 35}', '{"city": "Pune", "celsius": 30}'],
            given="the script, run where get_weather knows Pune (30) and Delhi (35): its observations",
        ),
        Case(
            "play(two_cities()).answer",
            "a run that ends with a final answer, which names the warmer city",
            lambda answer: "Delhi" in (answer or ""),
            given="the script, run where get_weather knows Pune (30) and Delhi (35): its answer",
        ),
    ],
    (
        "A script is a list of replies. How many times is the model asked here, if it asks for both cities at once?",
        "asks takes any number of calls: asks(call(…), call(…)). The tool is called get_weather, its argument city.",
        'Return [asks(call("a", "get_weather", city="Pune"), …the same for Delhi under another id…), final(…)].',
    ),
    lambda: {"play": play, "observations": observations},
)

GUARD = Exercise(
    "01-guard",
    {"careful": FunctionType},
    [
        Case(
            "play(careful(), Pune=30).answer",
            "the answer, for the tool says 30",
            "It is 30 degrees in Pune.",
            given="the script, run where get_weather knows only Pune (30): its answer",
        ),
        Case(
            "play(careful(), Delhi=35).answer",
            "a script that fails loudly: get_weather knows no Pune here",
            Raises(AssertionError),
            given="the script, run where get_weather knows only Delhi (35): its answer",
        ),
        Case(
            "play(careful(), Pune=12).answer",
            "a script that fails loudly: the tool says 12, and the answer says 30",
            Raises(AssertionError),
            given="the script, run where get_weather knows only Pune (12): its answer",
        ),
        Case("len(careful())", "two replies: the call, and the guarded answer", 2),
    ],
    (
        "One of the words for scripts writes a step that waits for a text. Which?",
        "The text that you wait for must be in the observation you hope for, and in no other: not in an error either.",
        'The second step is after(…, final("It is 30 degrees in Pune.")). Wait for the number.',
    ),
    lambda: {"play": play},
)


# --- Find the bug: a record that is no copy -------------------------------------------------------------------


def chat(text: str = "Hello") -> list[Json]:
    """Return a list with a user's message, and a reply that asks for a tool."""
    calls = [{"id": "c1", "name": "get_weather", "args": {"city": "Pune"}}]
    return [{"role": "user", "content": text}, {"role": "assistant", "content": "", "tool_calls": calls}]


def lengths_kept(recorder: Any) -> list[int]:
    """Show a recorded model one message, then two; return how many were recorded each time."""
    model, messages = recorder(lambda messages, specs: final("ok")), chat()[:1]
    model(messages, [])
    messages.append({"role": "user", "content": "Again"})
    model(messages, [])
    return [len(shown) for shown in model.seen]


def kept_after_edit(recorder: Any) -> Any:
    """Edit a message after it was shown; return what is recorded of it."""
    model, messages = recorder(lambda messages, specs: final("ok")), chat()
    model(messages, [])
    messages[0]["content"] = "edited"
    return model.seen[0][0]


def kept_after_deep_edit(recorder: Any) -> Any:
    """Edit the arguments of a call after it was shown; return what is recorded of them."""
    model, messages = recorder(lambda messages, specs: final("ok")), chat()
    model(messages, [])
    messages[1]["tool_calls"][0]["args"]["city"] = "edited"
    return model.seen[0][1]["tool_calls"][0]["args"]


def kept_of_a_rude_model(recorder: Any) -> Any:
    """Record a model that edits what it is given; return what is recorded of it."""

    def rude(messages: list[Json], specs: list[Json]) -> ModelReply:
        messages[0]["content"] = "edited"
        return final("ok")

    model = recorder(rude)
    model(chat(), [])
    return model.seen[0][0]


HELLO = {"role": "user", "content": "Hello"}
BUG = Exercise(
    "01-bug",
    {"recorder": FunctionType},
    [
        Case(
            "lengths_kept(recorder)",
            "1 message recorded, then 2",
            [1, 2],
            given="a model that is shown 1 message, then the same list with 2",
        ),
        Case(
            "kept_after_edit(recorder)",
            "the message as the model was shown it",
            HELLO,
            given='a model is shown "Hello"; after that the message is changed to "edited"',
        ),
        Case(
            "kept_after_deep_edit(recorder)",
            "the arguments as the model was shown them",
            {"city": "Pune"},
            given='a model is shown a call with city "Pune"; after that the city is changed to "edited"',
        ),
        Case(
            "kept_of_a_rude_model(recorder)",
            "the message as the model was shown it, before the model edited it",
            HELLO,
            given='a model is shown "Hello", and changes the message itself to "edited"',
        ),
        Case('recorder(ScriptedModel([final("one")]))([], []).content', "the reply of the model, unchanged", "one"),
    ],
    (
        "list(messages) makes a new list. Are the messages in it new, too?",
        "The new list holds the same dicts as the old one. Section 1 of the file begins with the import that you need.",
        "deepcopy(messages) copies the list and everything in it. Keep that copy, and give the model the list.",
    ),
    lambda: {
        "lengths_kept": lengths_kept,
        "kept_after_edit": kept_after_edit,
        "kept_after_deep_edit": kept_after_deep_edit,
        "kept_of_a_rude_model": kept_of_a_rude_model,
    },
    shipped="""
def recorder(model):
    def recording(messages, specs):
        recording.seen.append(list(messages))
        return model(messages, specs)

    recording.seen = []
    return recording
""",
)

EXERCISES = [IS_FINAL, SHAPES, TWO_CALLS, GUARD, BUG]
