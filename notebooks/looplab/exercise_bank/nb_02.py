"""Exercises of notebook 02: the sentences, enum, 3.0 for an integer, and a missing argument that is not missing."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from agentloop import Json
from looplab.cases import Case, Exercise

def sentence_is(expected: str) -> Callable[[Any], bool | str]:
    """Return a test for a sentence; it tells where only the quotes around a name or the full stop are wrong."""

    def test(sentence: Any) -> bool | str:
        def bare(text: str) -> str:
            return text.strip(" .").replace("'", "").replace('"', "").replace("`", "")

        if sentence == expected or not isinstance(sentence, str) or bare(sentence) != bare(expected):
            return bool(sentence == expected)
        if "'" in expected and sentence.count("'") != 2:
            return f"{sentence!r}: the right words, but the name of an argument stands in single quotes"
        return f"{sentence!r}: the right words, but with a dot, a space or a quote too many"

    return test


SENTENCES = Exercise(
    "02-sentences",
    {"sentences": list},
    [
        Case("len(sentences)", "one sentence for each of the four", 4),
        Case(
            "sentences[0]",
            "the sentence about a type: 2.0 is no integer here",
            sentence_is("argument 'nights' must be of type integer"),
            given='the sentence for {"city": "Pune", "nights": 2.0}',
        ),
        Case(
            "sentences[1]",
            "one sentence, about the check that comes first: what is required and not there",
            sentence_is("missing required argument 'city'"),
            given='the sentence for {"nights": 2, "days": 1}',
        ),
        Case(
            "sentences[2]",
            "the sentence about an argument that is not in the schema",
            sentence_is("unexpected argument 'unit'"),
            given='the sentence for {"city": "Pune", "nights": 2, "unit": "EUR"}',
        ),
        Case(
            "sentences[3]",
            "the sentence about what arguments must be at all",
            sentence_is("arguments must be a JSON object"),
            given='the sentence for ["Pune", 2]',
        ),
    ],
    (
        "Four sentences stand in validate_args. Each of these four arguments meets another one.",
        "The checks come in this order: an object, nothing missing, then argument by argument: known, and of the "
        "right type.",
        "In this order: a wrong type (nights), a missing city, an unexpected unit, no JSON object. The words are "
        "those of "
        "validate_args, names in single quotes, no full stop.",
    ),
)


def room_schema() -> Json:
    """Return a schema with two enums, one of them optional."""
    currency, beds = {"type": "string", "enum": ["EUR", "USD"]}, {"type": "integer", "enum": [1, 2]}
    properties = {"city": {"type": "string"}, "currency": currency, "beds": beds}
    return {"type": "object", "properties": properties, "required": ["city"]}


ENUM = Exercise(
    "02-enum",
    {"validate_enum": FunctionType},
    [
        Case(
            'validate_enum({"city": "Pune", "currency": "EUR"}, schema)',
            "None: EUR is on the list, and city has no list",
            None,
        ),
        Case(
            'validate_enum({"city": "Pune", "currency": "INR"}, schema)',
            "the sentence that names the argument and its list, written as JSON",
            """argument 'currency' must be one of ["EUR", "USD"]""",
        ),
        Case(
            'validate_enum({"city": "Pune", "beds": 3}, schema)',
            "the sentence for beds, whose list holds numbers",
            "argument 'beds' must be one of [1, 2]",
        ),
        Case('validate_enum({"city": "Pune"}, schema)', "None: currency and beds are not required", None),
        Case(
            'validate_enum({"currency": "EUR"}, schema)',
            "the sentence about the missing city, as before",
            "missing required argument 'city'",
        ),
        Case(
            'validate_enum({"city": "Pune", "currency": 7}, schema)',
            "the sentence about the type, which is checked first",
            "argument 'currency' must be of type string",
        ),
        Case(
            'validate_enum({"city": "Pune", "unit": "C"}, schema)',
            "the sentence about an unexpected argument, as before",
            "unexpected argument 'unit'",
        ),
        Case(
            'validate_enum({"city": "Delhi"}, {"properties": {"city": {"type": "string"}}})',
            "None: this schema has no enum at all",
            None,
        ),
        Case(
            'validate_enum(["Pune"], schema)',
            "the sentence about what is no object, as before",
            "arguments must be a JSON object",
        ),
    ],
    (
        "validate_args already says all but one thing. Ask it first, and go on only if it has nothing to say.",
        'Then go through args.items(). An enum stands in schema["properties"][name], and often there is none: use '
        '.get.',
        "After `if problem := validate_args(args, schema): return problem`, loop over the arguments; where rule has "
        "an enum "
        'and the value is not in it, return the sentence with json.dumps(rule["enum"]). At the end return None.',
    ),
    lambda: {"schema": room_schema()},
)

CHOICES = {
    "range(n) in a tool may fail on what passed": "lenient",
    "a model that writes 3.0 needs one more step": "strict",
    "a schema means the same here as in other validators": "lenient",
    "every integer that passed is an int in Python": "strict",
}
REASONS = {
    "range(n) in a tool may fail on what passed": "the rule that lets 3.0 through as it is, a float",
    "a model that writes 3.0 needs one more step": "the rule that refuses 3.0, so that the call must be repaired",
    "a schema means the same here as in other validators": "the rule of JSON Schema itself",
    "every integer that passed is an int in Python": "the rule that asks for the Python type int",
}
INTEGER = Exercise(
    "02-integer",
    {"lenient": FunctionType, "follows_from": dict},
    [
        Case("lenient(3)", "True: an integer", True),
        Case("lenient(3.0)", "True: its value is whole", True),
        Case("lenient(3.5)", "False: its value is not whole", False),
        Case("lenient(True)", "False: a bool is no number, whole or not", False),
        Case('lenient("3")', "False: text is no number", False),
        Case('lenient(float("nan"))', "False: NaN is not JSON", False),
        Case('lenient(float("inf"))', "False: infinity is not JSON", False),
        Case("lenient(-2.0)", "True: below zero it is the same", True),
        *(
            Case(f"follows_from[{text!r}]", f'{REASONS[text]}: "strict" or "lenient"', rule)
            for text, rule in CHOICES.items()
        ),
    ],
    (
        "has_type already knows bools, text, NaN and infinity. Start from it, and ask what else the lenient rule lets "
        "in.",
        "The lenient rule lets in what has the type number and is whole. int(value) cuts off what stands behind the "
        "point.",
        'Return has_type(value, "number") and value == int(value). For the four consequences, ask of each: '
        "is this so because 3.0 is let in, or because it is kept out?",
    ),
)

BUG = Exercise(
    "02-bug",
    {"find_missing": FunctionType},
    [
        Case('find_missing({"city": "Pune", "nights": 2}, schema)', "None: both are there", None),
        Case('find_missing({"city": "Pune", "nights": 0}, schema)', "None: nights is there, and it is 0", None),
        Case('find_missing({"city": "", "nights": 1}, schema)', "None: city is there, and it is an empty text", None),
        Case(
            'find_missing({"city": False, "nights": 1}, schema)',
            "None: city is there; that it is no text is for the check of types to say",
            None,
        ),
        Case(
            'find_missing({"city": None, "nights": 1}, schema)',
            "None: city is there; null, too, is for the check of types",
            None,
        ),
        Case(
            'find_missing({"city": "Pune"}, schema)', "the sentence about nights", "missing required argument 'nights'"
        ),
        Case(
            "find_missing({}, schema)",
            "the sentence about city, the first in required",
            "missing required argument 'city'",
        ),
    ],
    (
        'What does args.get("nights") give for 0 nights, and what does `not` make of it?',
        "Missing means that the name is not there. It says nothing about the value.",
        "Ask `name not in args`, and leave the value alone.",
    ),
    lambda: {
        "schema": {
            "properties": {"city": {"type": "string"}, "nights": {"type": "integer"}},
            "required": ["city", "nights"],
        }
    },
    shipped="""
def find_missing(args, schema):
    for name in schema.get("required", []):
        if not args.get(name):
            return f"missing required argument {name!r}"
    return None
""",
)

EXERCISES = [SENTENCES, ENUM, INTEGER, BUG]
