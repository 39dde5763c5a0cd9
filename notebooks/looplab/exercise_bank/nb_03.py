"""Exercises of notebook 03: what ran, a schema from a signature, a wrapper, two channels, a swallowed Ctrl-C.

No postponed annotations here: the functions below are read by their types.
"""

import sys
from types import FunctionType
from typing import Any

from agentloop import (
    WEATHER_TASK,
    Json,
    SchemaError,
    ScriptedModel,
    ToolRegistry,
    call,
    run_agent,
    weather_script,
    weather_world,
)
from looplab.cases import Case, Exercise, Raises, same_messages

RAN = Exercise(
    "03-ran",
    {"ran": list},
    [
        Case('"c1" in ran', "get_weather is registered, and its argument fits", True),
        Case('"c2" in ran', "town is not in the schema: the second gate speaks", False),
        Case('"c3" in ran', "to the second gate, True is no number", False),
        Case('"c4" in ran', "no tool has this name: the first gate speaks", False),
        Case('"c5" in ran', "every gate lets a text pass; the function finds out that there is no such city", True),
        Case('"c6" in ran', "30.5 is a number", True),
        Case("set(ran) <= {'c1', 'c2', 'c3', 'c4', 'c5', 'c6'}", "ids of these six calls, and nothing else", True),
    ],
    (
        "Go through the gates in their order: is the name registered, do the arguments fit? Only then the function "
        "runs.",
        "A function that raises did run. A call that was refused did not.",
        "Three of the six ran. One of them failed inside.",
    ),
)


# --- A schema from a signature -------------------------------------------------------------------------------


def get_weather(city: str) -> Json:
    return {"city": city, "celsius": 30}


def c_to_f(celsius: float) -> float:
    return celsius * 9 / 5 + 32


def book_room(city: str, nights: int, breakfast: bool = True) -> str:
    return f"{city}, {nights}"


def next_page(number: int = 0) -> int:
    return number + 1


def ping() -> str:
    return "pong"


def label(tags: list) -> str:  # type: ignore[type-arg]
    return str(tags)


def greet(name):  # type: ignore[no-untyped-def]
    return f"Hello {name}"


def schema_is(required: list[str], **types: str) -> Any:
    """Return a test for a schema; an empty part may be left out."""
    properties = {name: {"type": json_type} for name, json_type in types.items()}
    return lambda schema: (
        schema.get("type", "object") == "object"
        and schema.get("properties", {}) == properties
        and schema.get("required", []) == required
    )


def register_it(schema_of: Any, function: Any) -> ToolRegistry:
    """Return a registry that holds a function under the schema made from it."""
    registry = ToolRegistry()
    registry.register(function.__name__, "A tool.", schema_of(function), function)
    return registry


def refusal_of(schema_of: Any, function: Any) -> Any:
    """Return the text of the SchemaError for a function, or the schema where there is none."""
    try:
        return schema_of(function)
    except SchemaError as error:
        return str(error)


def refuses_tags(refusal: Any) -> bool | str:
    """Say whether a refusal says what is wrong and with which parameter, or tell that it does not name it."""
    if not isinstance(refusal, str) or "unsupported type" not in refusal:
        return False
    return "tags" in refusal or f"{refusal!r}: it does not name the parameter, tags"


SCHEMA = Exercise(
    "03-schema",
    {"schema_of": FunctionType},
    [
        Case(
            "schema_of(get_weather)",
            "one argument, city, a string; it is required",
            schema_is(["city"], city="string"),
            given="def get_weather(city: str)",
        ),
        Case(
            "schema_of(c_to_f)",
            "one argument, celsius, a number; it is required",
            schema_is(["celsius"], celsius="number"),
            given="def c_to_f(celsius: float)",
        ),
        Case(
            "schema_of(book_room)",
            "three arguments, a string, an integer and a boolean; only the first two are required",
            schema_is(["city", "nights"], city="string", nights="integer", breakfast="boolean"),
            given="def book_room(city: str, nights: int, breakfast: bool = True)",
        ),
        Case(
            "schema_of(next_page)",
            "number, an integer, not required: it has a default, and the default is 0",
            schema_is([], number="integer"),
            given="def next_page(number: int = 0)",
        ),
        Case("schema_of(ping)", "no arguments, none required", schema_is([]), given="def ping()"),
        Case(
            "refusal_of(schema_of, label)",
            "a SchemaError that says `unsupported type` and names the parameter: the validator cannot check a list",
            refuses_tags,
            given="def label(tags: list)",
        ),
        Case(
            "schema_of(greet)",
            "a SchemaError: this argument says no type, so nothing could be checked",
            Raises(SchemaError),
            given="def greet(name)",
        ),
        Case(
            'register_it(schema_of, book_room).execute("book_room", {"city": "Pune", "nights": 2})',
            "a registry that takes the schema and runs the call",
            '"Pune, 2"',
            given="book_room is registered under your schema and called with city Pune, 2 nights",
        ),
    ],
    (
        "For each parameter there are three questions: is its type in TYPES, which word is that in JSON, has it a "
        "default?",
        "parameter.annotation is the type, parameter.default is parameter.empty where there is no default. Compare "
        "with `is`: "
        "a default may be 0.",
        "In the loop: if parameter.annotation is not in TYPES, raise SchemaError(…), and let it say `unsupported type` "
        "and `name`. Else "
        'properties[name] = {"type": TYPES[parameter.annotation]}, and if parameter.default is parameter.empty, '
        'append name '
        "to required.",
    ),
    lambda: {
        "get_weather": get_weather,
        "c_to_f": c_to_f,
        "book_room": book_room,
        "next_page": next_page,
        "ping": ping,
        "label": label,
        "greet": greet,
        "register_it": register_it,
        "refusal_of": refusal_of,
    },
)


# --- A wrapper -----------------------------------------------------------------------------------------------


def log_of(logged: Any, *cities: str, layers: int = 1) -> list[Any]:
    """Return the outermost log after calls for these cities, with so many layers of the wrapper."""
    execute: Any = weather_world()[0]
    log: list[Any] = []
    for _ in range(layers):
        log = []
        execute = logged(execute, log)
    for number, city in enumerate(cities, 1):
        execute(call(f"c{number}", "get_weather", city=city))
    return log


def times_run(logged: Any) -> list[str]:
    """Return what really ran for one call through the wrapper."""
    registry, ran = weather_world()
    logged(registry, [])(call("c1", "get_weather", city="Pune"))
    return ran


def run_through(logged: Any) -> Any:
    """Run the weather task with the wrapper around the registry."""
    registry, _ = weather_world()
    return run_agent(WEATHER_TASK, ScriptedModel(weather_script()), registry, execute=logged(registry, []))


def pairs_are(*expected: tuple[str, str]) -> Any:
    """Return a test for a log; a pair may be a list, too."""
    return lambda log: [tuple(pair) for pair in log] == list(expected)


PUNE = ("get_weather", '{"city": "Pune", "celsius": 30}')
LOG = Exercise(
    "03-log",
    {"logged": FunctionType},
    [
        Case(
            'logged(registry, [])(call("c1", "get_weather", city="Pune"))',
            "the observation of the registry, unchanged",
            PUNE[1],
        ),
        Case(
            'log_of(logged, "Pune")',
            "a log with one pair: the tool's name and the observation",
            pairs_are(PUNE),
            given="the log after one call, get_weather for Pune",
        ),
        Case(
            'log_of(logged, "Pune", "Atlantis")',
            "two pairs: an observation that is an error is logged like any other",
            pairs_are(PUNE, ("get_weather", "ERROR: get_weather failed: KeyError: 'Atlantis'")),
            given="the log after two calls, get_weather for Pune and for Atlantis",
        ),
        Case(
            "times_run(logged)",
            "one execution: the call must not run twice",
            ["get_weather(Pune)"],
            given="what ran for one call, get_weather for Pune",
        ),
        Case(
            'log_of(logged, "Pune", layers=2)',
            "the same pair: what wraps an Execute is one, and can be wrapped again",
            pairs_are(PUNE),
            given="the outer log, if logged(…) is wrapped in logged(…)",
        ),
        Case(
            "run_through(logged)",
            "the same run as without the wrapper",
            lambda result: same_messages(run_through(lambda execute, log: execute).messages)(result),
            given="the weather task, run through logged(registry, log)",
        ),
    ],
    (
        "logged gets a function and returns one. What does an Execute take, and what does it return?",
        "Define a function inside that takes call: it asks execute once, keeps the observation in a name, logs, and "
        "returns it.",
        "def run(call): observation = execute(call); log.append((call.name, observation)); return observation. "
        "And logged returns run.",
    ),
    lambda: {"registry": weather_world()[0], "log_of": log_of, "times_run": times_run, "run_through": run_through},
)

CHANNELS = {
    "the model asks for a tool that is not registered": ("observation", "who can choose another name?"),
    "the tool finds no city of that name": ("observation", "who can try another city?"),
    "a tool calls sys.exit()": ("observation", "must the run end for that? The model can do without this tool"),
    "a tool returns a set": ("observation", "the tool did run. Who should not repeat it blindly?"),
    "a schema uses the type array": ("exception", "who wrote the schema, and when is it read?"),
    "the model's service is down": ("exception", "who would read a sentence about it?"),
    "a person presses Ctrl-C": ("exception", "who is above the model?"),
}
WHICH = Exercise(
    "03-which",
    {"channel": dict},
    [
        Case(f"channel[{what!r}]", f'"observation" or "exception": {question}', right)
        for what, (right, question) in CHANNELS.items()
    ],
    (
        "Did it come of a call that the model made, or of anything else?",
        "Ask of each: if the model read a sentence about it, could its next reply be better?",
        "Four are observations: those that begin with a call of the model.",
    ),
)


# --- Find the bug: a tool that swallows Ctrl-C ---------------------------------------------------------------


def raising(error: BaseException) -> Any:
    """Return a tool that raises."""

    def tool() -> None:
        raise error

    return tool


BUG = Exercise(
    "03-bug",
    {"run_tool": FunctionType},
    [
        Case('run_tool("ping", lambda: "pong", {})', "the result as JSON", '"pong"'),
        Case('run_tool("find_city", lambda: "Zürich", {})', "the result as JSON, every letter as it is", '"Zürich"'),
        Case(
            'run_tool("get_weather", raising(KeyError("Atlantis")), {})',
            "an observation that names the exception",
            "ERROR: get_weather failed: KeyError: 'Atlantis'",
            given='a tool that raises KeyError("Atlantis")',
        ),
        Case(
            'run_tool("wait", raising(KeyboardInterrupt()), {})',
            "no observation: Ctrl-C goes on to the person",
            Raises(KeyboardInterrupt),
            given="a tool that waits, and a person who presses Ctrl-C",
        ),
        Case(
            'run_tool("quit", lambda: exit(1), {})',
            "an observation: a tool must not take the harness with it",
            lambda text: isinstance(text, str) and text.startswith("ERROR: quit failed: SystemExit"),
            given="a tool that calls sys.exit(1)",
        ),
        Case(
            'run_tool("quit", raising(SystemExit()), {})',
            "an observation, even if there is no text in the exception",
            "ERROR: quit failed: SystemExit",
            given="a tool that calls sys.exit()",
        ),
    ],
    (
        "Which exceptions does BaseException catch that Exception does not?",
        "Of those, one belongs to the person: KeyboardInterrupt. Another one, SystemExit, must still be caught here.",
        "except (Exception, SystemExit) as error: catches what a tool may raise, and nothing that a person does. And "
        "json.dumps takes ensure_ascii=False.",
    ),
    lambda: {"raising": raising, "exit": sys.exit},
    shipped="""
def run_tool(name, fn, args):
    try:
        return json.dumps(fn(**args))
    except BaseException as error:
        return f"ERROR: {name} failed: {describe(error)}"
""",
)

EXERCISES = [RAN, SCHEMA, LOG, WHICH, BUG]
