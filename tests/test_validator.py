"""Section 2: arguments against a schema, and schemas that cannot be checked."""

from __future__ import annotations

import math
import random
import re

import pytest
from support import takes

from agentloop import JSON_TYPES, SchemaError, check_schema, validate_args

OPTIONAL = {"type": "object", "properties": {"x": {"type": "string"}}, "required": []}


# --- Values and types -----------------------------------------------------------------------------------------

FITS = {
    "string": ["", "text", "東京", "\ud83d", "5", "true"],
    "integer": [0, -1, 3, 10**30],
    "number": [0, -1, 3, 10**30, 0.0, -0.0, 3.0, 1e300],
    "boolean": [True, False],
}
NOT_FINITE = [math.nan, math.inf, -math.inf]
VALUES = [*FITS["string"], *FITS["number"], *FITS["boolean"], None, [], [1], {}, {"x": 1}, *NOT_FINITE]


@pytest.mark.parametrize("json_type", JSON_TYPES)
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_fits_its_own_json_type_and_no_other(json_type, value):
    fits = any(type(value) is type(fit) and value == fit for fit in FITS[json_type])
    problem = validate_args({"x": value}, takes(x=json_type))
    assert problem == (None if fits else f"argument 'x' must be of type {json_type}")


@pytest.mark.parametrize("json_type", ["integer", "number"])
@pytest.mark.parametrize("value", [True, False])
def test_a_bool_is_no_number(json_type, value):
    assert validate_args({"x": value}, takes(x=json_type)) == f"argument 'x' must be of type {json_type}"


@pytest.mark.parametrize("value", [0, 1, "true", "True", "", None])
def test_nothing_else_is_a_boolean(value):
    assert validate_args({"on": value}, takes(on="boolean")) == "argument 'on' must be of type boolean"


@pytest.mark.parametrize("value", [3.0, -0.0, 1e3, 3.5])
def test_a_float_is_no_integer_even_if_it_is_whole(value):
    assert validate_args({"n": value}, takes(n="integer")) == "argument 'n' must be of type integer"
    assert validate_args({"n": value}, takes(n="number")) is None


@pytest.mark.parametrize("value", NOT_FINITE)
def test_nan_and_infinity_are_no_numbers(value):
    assert validate_args({"n": value}, takes(n="number")) == "argument 'n' must be of type number"


@pytest.mark.parametrize("text", ["5", "5.0", "true", ""])
@pytest.mark.parametrize("json_type", ["integer", "number", "boolean"])
def test_a_value_sent_as_text_is_not_converted(text, json_type):
    assert validate_args({"count": text}, takes(count=json_type)) == f"argument 'count' must be of type {json_type}"


@pytest.mark.parametrize("json_type", JSON_TYPES)
@pytest.mark.parametrize("required", [True, False], ids=["required", "optional"])
def test_null_is_not_the_same_as_left_out(json_type, required):
    schema = takes(day=json_type) | ({} if required else {"required": []})
    assert validate_args({"day": None}, schema) == f"argument 'day' must be of type {json_type}"
    assert validate_args({}, schema) == ("missing required argument 'day'" if required else None)


# --- The object -----------------------------------------------------------------------------------------------


NO_OBJECTS = [
    '{"x": "Oslo"}',
    "",
    "{}",
    None,
    [],
    [["x", "Oslo"]],
    7,
    0,
    True,
    ("x",),
    {"x"},
    {1: "Oslo"},
    {"x": "", None: 1},
]


@pytest.mark.parametrize("args", NO_OBJECTS, ids=repr)
@pytest.mark.parametrize("schema", [takes(x="string"), OPTIONAL, {}], ids=["required", "optional", "empty"])
def test_arguments_that_are_no_object_are_refused(args, schema):
    assert validate_args(args, schema) == "arguments must be a JSON object"


@pytest.mark.parametrize("extra", ["X", "x ", "", "X\u0301", "self"], ids=repr)
def test_an_argument_that_is_not_in_the_schema_is_refused(extra):
    assert validate_args({"x": "Oslo", extra: "list"}, takes(x="string")) == f"unexpected argument {extra!r}"


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"properties": {}}, takes()])
def test_a_schema_without_arguments_takes_none(schema):
    assert validate_args({}, schema) is None
    assert validate_args({"x": 1}, schema) == "unexpected argument 'x'"


def test_the_first_problem_is_named_missing_ones_first_then_argument_by_argument():
    schema = takes(b="string", a="integer")
    assert validate_args({"z": 1}, schema) == "missing required argument 'b'"
    assert validate_args({"b": 1, "z": 1}, schema) == "missing required argument 'a'"
    assert validate_args({"z": 1, "b": 1, "a": "1"}, schema) == "unexpected argument 'z'"
    assert validate_args({"a": "1", "z": 1, "b": 1}, schema) == "argument 'a' must be of type integer"
    assert validate_args({"b": 1, "a": "1"}, schema) == "argument 'b' must be of type string"


def test_validation_agrees_with_a_plain_reading_of_the_rules():
    """Random schemas and arguments, against the rules written as one list of every problem there is."""

    def problems(args, schema):
        yield from (f"missing required argument {name!r}" for name in schema["required"] if name not in args)
        for name, value in args.items():
            if name not in schema["properties"]:
                yield f"unexpected argument {name!r}"
            elif not any(type(value) is type(fit) for fit in FITS[schema["properties"][name]["type"]]):
                yield f"argument {name!r} must be of type {schema['properties'][name]['type']}"

    chance = random.Random(1)
    finite = [value for value in VALUES if not (isinstance(value, float) and not math.isfinite(value))]
    outcomes = set()
    for _ in range(2000):
        types = {name: chance.choice(list(JSON_TYPES)) for name in chance.sample("abcd", chance.randint(0, 3))}
        schema = takes(**types) | {"required": [name for name in types if chance.random() < 0.5]}
        fitting = {name: chance.choice(FITS[json_type]) for name, json_type in types.items() if chance.random() < 0.9}
        args = fitting | {name: chance.choice(finite) for name in chance.sample("abcde", chance.randint(0, 1))}
        problem = validate_args(args, schema)
        assert problem == next(problems(args, schema), None), (args, schema)
        outcomes.add(problem and problem.split()[0])
    assert outcomes == {None, "missing", "unexpected", "argument"}


# --- Schemas that cannot be checked ---------------------------------------------------------------------------

UNCHECKABLE = {
    "a type list": {"type": ["string", "null"]},
    "a list of one": {"type": ["string"]},
    "no type": {"description": "a text"},
    "an empty rule": {},
    "null as type": {"type": None},
    "array": {"type": "array"},
    "object": {"type": "object"},
    "null": {"type": "null"},
    "a Python name": {"type": "str"},
    "a Python type": {"type": str},
    "upper case": {"type": "String"},
    "a rule that is text": "string",
    "a rule that is true": True,
    "no rule": None,
    "anyOf": {"anyOf": [{"type": "string"}]},
    "$ref": {"$ref": "#/definitions/x"},
}


@pytest.mark.parametrize("rule", UNCHECKABLE.values(), ids=UNCHECKABLE)
def test_a_type_that_cannot_be_checked_is_a_schema_error_that_names_the_argument_and_the_types(rule):
    with pytest.raises(SchemaError, match="argument 'q': unsupported type .*string.*integer.*number.*boolean"):
        check_schema({"type": "object", "properties": {"q": rule}})


KEYWORDS = [
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "nullable",
    "items",
    "not",
    "anyOf",
    "allOf",
    "oneOf",
    "if",
    "$defs",
    "$schema",
    "$ref",
    "minProperties",
    "patternProperties",
    "dependentRequired",
    "propertyNames",
    "examples",
    "deprecated",
    "strict",
    "Description",
]


@pytest.mark.parametrize("keyword", [*KEYWORDS, "", "properties", "required", "additionalProperties"])
@pytest.mark.parametrize("value", [True, 1, [], {}, ["C", "F"]], ids=repr)
def test_a_keyword_of_an_argument_that_would_not_be_checked_is_refused(keyword, value):
    with pytest.raises(SchemaError, match=re.escape(f"argument 'unit': unsupported {keyword} {value!r}")):
        check_schema({"type": "object", "properties": {"unit": {"type": "string", keyword: value}}})


@pytest.mark.parametrize("keyword", [*KEYWORDS, "", "Required"])
def test_a_keyword_of_the_object_that_would_not_be_checked_is_refused(keyword):
    with pytest.raises(SchemaError, match=re.escape(f"parameters: unsupported {keyword} []")):
        check_schema({"type": "object", keyword: []})


def test_describing_words_are_allowed():
    words = {"title": "City", "description": "Where", "default": "Pune"}
    check_schema({"type": "object", **words, "properties": {"x": {"type": "string", **words}}, "required": ["x"]})
    check_schema({"type": "object", "additionalProperties": False})


@pytest.mark.parametrize("value", [True, {}, {"type": "string"}, None, 1, 0, "false"], ids=repr)
def test_unknown_arguments_cannot_be_allowed(value):
    with pytest.raises(SchemaError, match="unsupported additionalProperties"):
        check_schema({"type": "object", "additionalProperties": value})


@pytest.mark.parametrize("name", ["y", "X", "", 1, None, ["x"], {"x": 1}], ids=repr)
def test_required_cannot_name_an_argument_that_is_not_in_properties(name):
    with pytest.raises(SchemaError, match="required names"):
        check_schema({"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x", name]})


BROKEN = {
    "no object": [None, [], "object", 5, True, ("type", "object")],
    "another type": [{"type": "string"}, {"type": "array"}, {"type": None}, {"type": ["object"]}, {"type": 1}],
    "properties that are no object": [{"properties": value} for value in ([], None, "x", ["x"], 1)],
    "required that is no list": [
        takes(x="string") | {"required": value} for value in ("x", True, None, {"x": 1}, ("x",))
    ],
}


@pytest.mark.parametrize("schema", [schema for siblings in BROKEN.values() for schema in siblings], ids=repr)
def test_a_schema_must_be_an_object_with_properties_and_required(schema):
    with pytest.raises(SchemaError, match="^(parameters|properties)"):
        check_schema(schema)


def test_a_schema_error_is_a_bad_value_and_also_caught_where_an_assert_was_expected():
    assert issubclass(SchemaError, ValueError) and issubclass(SchemaError, AssertionError)
