"""Section 3: what may be registered, and what a call comes back with."""

from __future__ import annotations

import asyncio
import datetime
import decimal
import functools
import inspect
import json
import sys

import pytest
from support import raises, takes, tool

from agentloop import SchemaError, Stop, ToolRegistry, call, weather_world

CITY = takes(city="string")


def loads_strict(text):
    """Read JSON as RFC 8259 has it, without NaN and Infinity."""
    return json.loads(text, parse_constant=raises(ValueError("not JSON")))


# --- Names ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["get_weather", "get-weather", "T1", "a", "_", "0", "a" * 64])
def test_a_name_that_every_provider_takes_is_registered(name):
    assert tool(lambda: 1, name=name).execute(name, {}) == "1"


BAD_TEXTS = ["", " ", "a" * 65, "get.weather", "get weather", "tool/1", "a:b", "t\n", "\nt", "a\x00"]
BEYOND_ASCII = ["wetter_für", "t\u0660", "東京", "t\ud83d"]


@pytest.mark.parametrize("name", [*BAD_TEXTS, *BEYOND_ASCII, None, 5, True, b"t", ["t"], ("t",)], ids=repr)
def test_a_name_that_a_provider_would_refuse_is_refused(name):
    with pytest.raises(SchemaError, match="^tool .*(1 to 64|must be text)"):
        tool(lambda: 1, name=name)


def test_a_name_that_is_taken_is_refused_and_the_first_tool_stays():
    registry = tool(lambda: "first", {"description": "one"})
    with pytest.raises(SchemaError, match="tool 't': the name must not be taken"):
        registry.register("t", "Another.", CITY, lambda city: "second")
    assert registry.execute("t", {}) == '"first"'
    assert registry.specs()[0]["parameters"]["description"] == "one"


# --- Schemas --------------------------------------------------------------------------------------------------

FAULTY = {
    "unsupported type": {"properties": {"q": {"type": "array"}}},
    "type list": {"properties": {"q": {"type": ["string", "null"]}}},
    "no type": {"properties": {"q": {}}},
    "unsupported keyword": {"properties": {"q": {"type": "string", "enum": ["C"]}}},
    "keyword of the object": {"anyOf": []},
    "unknown required": {"required": ["q"]},
    "not an object": [],
    "a default that is not JSON": {"properties": {"q": {"type": "string", "default": {1, 2}}}},
    "a default that is NaN": {"properties": {"q": {"type": "number", "default": float("nan")}}},
    "a description that is not JSON": {"description": b"text"},
    "an argument whose name is no text": {"properties": {1: {"type": "string"}}},
}


@pytest.mark.parametrize("schema", FAULTY.values(), ids=FAULTY)
def test_a_schema_that_cannot_be_checked_or_shown_is_refused_with_the_name_of_its_tool(schema):
    registry = ToolRegistry()
    with pytest.raises(SchemaError, match="tool 'lookup'"):
        registry.register("lookup", "Look it up.", schema, lambda **kw: 1)
    assert registry.specs() == []
    assert registry.execute("lookup", {}) == "ERROR: unknown tool 'lookup'. Available tools: []"


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"properties": {}}, takes()])
def test_a_tool_without_arguments_is_shown_as_an_object_and_runs(schema):
    registry = tool(lambda: "pong", schema)
    assert registry.specs()[0]["parameters"]["type"] == "object"
    assert registry.execute("t", {}) == '"pong"'
    assert registry.execute("t", {"x": 1}) == "ERROR: unexpected argument 'x'. t expects {}"


def test_specs_are_copies_and_editing_them_or_the_schema_changes_no_registry():
    schema = takes(city="string")
    registry = tool(lambda city: city, schema)
    before = registry.specs()
    schema["properties"]["city"]["type"] = "integer"
    schema["required"].clear()
    for spec in registry.specs():
        spec["parameters"]["properties"].clear()
        spec.clear()
    registry.specs().clear()
    assert registry.specs() == before
    assert before == [{"name": "t", "description": "A tool.", "parameters": CITY}]
    assert registry.execute("t", {}).startswith("ERROR: missing required argument 'city'")


# --- Functions ------------------------------------------------------------------------------------------------


async def fetch():
    return "page"


async def pages():
    yield "page"


def lines():
    yield "page"


class AsyncCallable:
    async def __call__(self):
        return "page"

    async def method(self):
        return "page"

    @staticmethod
    async def static():
        return "page"

    @classmethod
    async def of_class(cls):
        return "page"


def wrapped(fn):
    """Wrap as decorators do: the outside is a plain function, the inside is not."""

    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return fn(*args, **kwargs)

    return wrapper


ASYNC = {
    "async def": fetch,
    "async generator": pages,
    "callable object": AsyncCallable(),
    "method": AsyncCallable().method,
    "static method": AsyncCallable.static,
    "class method": AsyncCallable.of_class,
    "partial": functools.partial(fetch),
    "partial of a partial": functools.partial(functools.partial(fetch)),
    "partial of a generator": functools.partial(pages),
    "partial of a callable object": functools.partial(AsyncCallable()),
    "wrapped": wrapped(fetch),
    "wrapped twice": wrapped(wrapped(fetch)),
    "wrapped callable object": wrapped(AsyncCallable()),
    "wrapped partial": wrapped(functools.partial(fetch)),
    "partial of a wrapped one": functools.partial(wrapped(fetch)),
    "cached": functools.lru_cache(fetch),
    "generator": lines,
    "partial of a plain generator": functools.partial(lines),
    "wrapped generator": wrapped(lines),
}


@pytest.mark.parametrize("fn", ASYNC.values(), ids=ASYNC)
def test_an_async_or_generator_function_is_refused_for_its_body_would_never_run(fn):
    with pytest.raises(SchemaError, match="tool 't': fn must be plain, not async"):
        tool(fn)


@pytest.mark.parametrize("fn", [None, "get_weather", 5, [], {"city": "Pune"}, object()], ids=type)
def test_what_cannot_be_called_is_refused(fn):
    with pytest.raises(SchemaError, match="tool 't': .* is not a callable object"):
        tool(fn)


class Weather:
    def __call__(self, city):
        return city

    def look_up(self, city):
        return city


TAKES_CITY = {
    "by name": lambda city: city,
    "with a default": lambda city="Pune": city,
    "by name only": lambda *, city: city,
    "with a default for the rest": lambda city, unit="C": city,
    "any argument": lambda **anything: anything["city"],
    "method": Weather().look_up,
    "callable object": Weather(),
    "partial": functools.partial(lambda unit, city: city, "C"),
    "wrapped": wrapped(lambda city: city),
    "cached": functools.lru_cache(lambda city: city),
}


@pytest.mark.parametrize("fn", TAKES_CITY.values(), ids=TAKES_CITY)
def test_a_function_that_takes_the_arguments_by_name_is_registered_and_runs(fn):
    assert tool(fn, CITY).execute("t", {"city": "Pune"}) == '"Pune"'


def by_position(city, /):
    return city


MISFITS = {
    "another name": lambda town: town,
    "no argument": lambda: 1,
    "one more required": lambda city, unit: city,
    "by position": by_position,
    "any position": lambda *args: args,
    "method of a class": Weather.look_up,
    "partial that gave it by position": functools.partial(lambda city: city, "Pune"),
    "wrapped misfit": wrapped(lambda town: town),
}


@pytest.mark.parametrize("fn", MISFITS.values(), ids=MISFITS)
def test_a_function_that_cannot_take_the_arguments_by_name_is_refused(fn):
    with pytest.raises(SchemaError, match="tool 't': .*(argument|positional)"):
        tool(fn, CITY)


def test_a_function_must_take_its_optional_arguments_too():
    schema = {"properties": {"city": {"type": "string"}, "unit": {"type": "string"}}, "required": ["city"]}
    with pytest.raises(SchemaError, match="'unit'"):
        tool(lambda city: city, schema)
    assert tool(lambda city, unit="C": city + unit, schema).execute("t", {"city": "Pune"}) == '"PuneC"'


def test_a_function_must_do_without_its_optional_arguments():
    optional = CITY | {"required": []}
    with pytest.raises(SchemaError, match="'city'"):
        tool(lambda city: city, optional)
    assert tool(lambda city="Pune": city, optional).execute("t", {}) == '"Pune"'


def test_a_built_in_that_does_not_say_what_it_takes_is_refused():
    with pytest.raises(ValueError):
        inspect.signature(dict)
    with pytest.raises(SchemaError, match="tool 't': no signature found"):
        tool(dict, CITY)
    assert tool(lambda **args: dict(**args), CITY).execute("t", {"city": "Pune"}) == '{"city": "Pune"}'


def test_arguments_may_have_any_name():
    names = [
        "self",
        "name",
        "args",
        "fn",
        "call_id",
        "registry",
        "tool",
        "schema",
        "messages",
        "kwargs",
        "cls",
        "value",
        "call",
        "class",
        "東京",
    ]
    registry = tool(lambda **kw: sorted(kw), takes(**dict.fromkeys(names, "string")))
    assert json.loads(registry.execute("t", dict.fromkeys(names, "x"))) == sorted(names)


# --- Calls that cannot run ------------------------------------------------------------------------------------


class Unprintable:
    def __repr__(self):
        raise RuntimeError("no text")


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


NO_NAMES = ["", "T", "t ", "東京", "\ud83d", None, 5, True, b"t", ["t"], {"t": 1}, {"t"}, ("t",), call("a", "t")]
UNPRINTABLE = {"too long": 10**5000, "nested too deeply": nested(100_000), "fails": Unprintable()}
unprintable = [pytest.param(value, id=name) for name, value in UNPRINTABLE.items()]


@pytest.mark.parametrize("name", [*NO_NAMES, *unprintable])
def test_a_name_that_is_not_registered_cannot_run(name):
    ran = []
    registry = tool(lambda: ran.append(1))
    assert registry.execute(name, {}).startswith("ERROR: unknown tool ")
    assert registry.execute(name, {}).endswith(". Available tools: ['t']")
    assert ran == []


@pytest.mark.parametrize("args", ['{"city": "Oslo"}', "", None, [], 7, True, [["city", "Oslo"]], ("city",)], ids=repr)
def test_arguments_that_are_no_object_are_an_observation_and_nothing_runs(args):
    ran = []
    registry = tool(lambda city: ran.append(city), CITY)
    expected = 'ERROR: arguments must be a JSON object. t expects {"city": {"type": "string"}}'
    assert (registry.execute("t", args), ran) == (expected, [])


@pytest.mark.parametrize("key", [1, None, ("a",), pytest.param(10**5000, id="too long"), Unprintable()])
def test_an_argument_whose_name_is_no_text_is_an_observation_and_nothing_runs(key):
    ran = []
    registry = tool(lambda **kw: ran.append(kw))
    assert registry.execute("t", {key: 1}) == "ERROR: arguments must be a JSON object. t expects {}"
    assert ran == []


def test_a_refused_call_shows_what_was_expected_in_the_words_of_the_schema():
    rule = {"type": "string", "description": "ville, p. ex. Orléans, 東京"}
    answer = tool(lambda q: q, {"properties": {"q": rule}, "required": ["q"]}).execute("t", {})
    expected = '{"q": {"type": "string", "description": "ville, p. ex. Orléans, 東京"}}'
    assert answer == f"ERROR: missing required argument 'q'. t expects {expected}"


@pytest.mark.parametrize("name", ["t", "T", None])
@pytest.mark.parametrize("args", [{"city": "Pune"}, {}, {"city": 1}, {"city": "Pune", "x": 1}, None], ids=repr)
def test_check_says_what_execute_would_and_runs_nothing(name, args):
    ran = []
    registry = tool(lambda city: ran.append(city), CITY)
    problem = registry.check(name, args)
    assert ran == []
    assert problem == (None if (name, args) == ("t", {"city": "Pune"}) else registry.execute(name, args))


def test_a_registry_runs_a_call_by_its_name_and_arguments():
    registry, ran = weather_world()
    assert registry(call("c1", "get_weather", city="Pune")) == '{"city": "Pune", "celsius": 30}'
    assert registry(call("c1", "get_wether")).endswith("'get_wether'. Available tools: ['c_to_f', 'get_weather']")
    assert ran == ["get_weather(Pune)"]


# --- Tools that fail ------------------------------------------------------------------------------------------


class WithoutText(Exception):
    def __str__(self):
        raise RuntimeError("no text either")


class TextIsNoText(Exception):
    def __str__(self):
        return 5  # noqa: PLE0307


FAILURES = {
    "with text": (ValueError("only EUR"), "ValueError: only EUR"),
    "a key": (KeyError("Oslo"), "KeyError: 'Oslo'"),
    "without text": (ValueError(), "ValueError"),
    "with empty text": (ValueError(""), "ValueError"),
    "whose text fails": (WithoutText("x"), "WithoutText"),
    "whose text is no text": (TextIsNoText("x"), "TextIsNoText"),
    "an assertion": (AssertionError(), "AssertionError"),
    "out of memory": (MemoryError(), "MemoryError"),
    "too deep": (RecursionError("too deep"), "RecursionError: too deep"),
    "end of an iterator": (StopIteration(), "StopIteration"),
    "a group": (ExceptionGroup("two", [ValueError("a"), KeyError("b")]), "ExceptionGroup: two (2 sub-exceptions)"),
    "sys.exit()": (SystemExit(), "SystemExit"),
    "sys.exit(1)": (SystemExit(1), "SystemExit: 1"),
    "sys.exit with text": (SystemExit("bye"), "SystemExit: bye"),
    "the end of a generator": (GeneratorExit(), "GeneratorExit"),
    "a Stop": (Stop("deadline", "too late"), "Stop: deadline: too late"),
}


@pytest.mark.parametrize(("error", "text"), FAILURES.values(), ids=FAILURES)
def test_a_tool_that_fails_is_an_observation_with_type_and_text(error, text):
    assert tool(raises(error)).execute("t", {}) == f"ERROR: t failed: {text}"


def test_a_tool_that_leaves_the_process_or_recurses_for_ever_is_an_observation():
    def recurse():
        return recurse()

    assert tool(lambda: sys.exit(1)).execute("t", {}) == "ERROR: t failed: SystemExit: 1"
    assert tool(recurse).execute("t", {}).startswith("ERROR: t failed: RecursionError")


@pytest.mark.parametrize("error", [KeyboardInterrupt, asyncio.CancelledError, type("Preempted", (BaseException,), {})])
def test_a_person_or_a_scheduler_that_stops_us_passes_through(error):
    with pytest.raises(error):
        tool(raises(error())).execute("t", {})


# --- Results --------------------------------------------------------------------------------------------------

RESULTS = {
    "nothing": (None, "null"),
    "empty text": ("", '""'),
    "text": ("pong", '"pong"'),
    "text that looks like an error": ("ERROR: no", '"ERROR: no"'),
    "a number": (86.0, "86.0"),
    "a bool": (True, "true"),
    "an object": ({"city": "Pune", "celsius": 30}, '{"city": "Pune", "celsius": 30}'),
    "lists": ([1, [2, {"a": []}]], '[1, [2, {"a": []}]]'),
    "a tuple": ((1, 2), "[1, 2]"),
    "text beyond ASCII": ({"city": "東京", "note": "30 °C 🙂"}, '{"city": "東京", "note": "30 °C 🙂"}'),
    "half an emoji": ("byte \udcff \ud83d", '"byte \udcff \ud83d"'),
    "fifty levels": (nested(50), "[" * 51 + "]" * 51),
}


@pytest.mark.parametrize(("result", "text"), RESULTS.values(), ids=RESULTS)
def test_a_result_is_written_as_json_with_every_letter_as_it_is(result, text):
    observation = tool(lambda: result).execute("t", {})
    assert observation == text
    assert loads_strict(observation) == (list(result) if isinstance(result, tuple) else result)


def circular():
    value = {}
    value["again"] = [value]
    return value


class FailsWhenRead(dict):
    def values(self):
        raise RuntimeError("the connection is closed")

    items = __iter__ = values


NOT_JSON = {
    "a date": datetime.date(2024, 5, 1),
    "a decimal": decimal.Decimal("1.10"),
    "bytes": b"text",
    "a set": {"a"},
    "an object": object(),
    "a generator": (i for i in "ab"),
    "a type": int,
    "a complex number": 1j,
    "an exception": ValueError("returned"),
    "NaN": float("nan"),
    "infinity": float("inf"),
    "minus infinity": float("-inf"),
    "a number as key": {1: "a"},
    "a bool as key": {True: "a"},
    "null as key": {None: "a"},
    "a tuple as key": {(1, 2): "a"},
    "circular": circular(),
    "nested too deeply": nested(100_000),
    "a number too long to print": 10**5000,
    "unprintable": Unprintable(),
    "fails when read": FailsWhenRead(a=1),
}
INSIDE = {
    "alone": lambda value: value,
    "in an object": lambda value: {"ok": 1, "it": value},
    "deep inside": lambda value: [{"a": (1, [value])}],
}


@pytest.mark.parametrize("place", INSIDE.values(), ids=INSIDE)
@pytest.mark.parametrize("value", NOT_JSON.values(), ids=NOT_JSON)
def test_a_result_that_is_not_json_says_that_the_tool_did_run(value, place):
    ran = []
    observation = tool(lambda: ran.append(1) or place(value)).execute("t", {})
    assert observation.startswith("ERROR: t ran, but its result is not JSON: ")
    assert observation.endswith("; do not repeat it blindly")
    assert ran == [1]


@pytest.mark.parametrize(
    "wrap", [lambda v: [v], lambda v: {"a": v}, lambda v: (v,)], ids=["lists", "objects", "tuples"]
)
def test_json_may_be_nested_100_levels_deep_and_no_deeper(wrap):
    value = 1
    for _ in range(100):
        value = wrap(value)
    assert not tool(lambda: value).execute("t", {}).startswith("ERROR")
    assert "levels at most 100" in tool(lambda: wrap(value)).execute("t", {})


def test_what_a_tool_prints_is_no_part_of_the_observation(capsys):
    def chatty():
        print("loading...")
        print("careful", file=sys.stderr)
        return 7

    assert tool(chatty).execute("t", {}) == "7"
    assert capsys.readouterr() == ("loading...\n", "careful\n")


@pytest.mark.parametrize("description", [None, 5, b"text", ["text"]])
def test_a_description_that_is_no_text_is_refused(description):
    with pytest.raises(SchemaError, match="description must be text"):
        ToolRegistry().register("t", description, {}, lambda: 1)
