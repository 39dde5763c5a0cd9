"""The validator's bench: a schema and arguments, the verdict, and which check spoke first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import ipywidgets as widgets

from agentloop import SchemaError, check_schema, validate_args
from looplab import view
from looplab.checklist import Check, checks_html, checks_table
from looplab.typed import NotJson, read_json, trouble
from looplab.view import AS_TYPED, Bench, Block, Code, guarded

PROPERTIES = {"city": {"type": "string"}, "celsius": {"type": "number"}, "days": {"type": "integer"}}
TAGS = {"city": {"type": "string"}, "tags": {"type": "array"}}
UNITS = {"city": {"type": "string"}, "unit": {"type": "string", "enum": ["C", "F"]}}


def schema_text(properties: Any) -> str:
    """Write a schema that requires a city, one property a line."""
    lines = [f"    {json.dumps(name)}: {json.dumps(rule)}" for name, rule in properties.items()]
    inside = ",\n".join(lines)
    return f'{{\n  "type": "object",\n  "properties": {{\n{inside}\n  }},\n  "required": ["city"]\n}}'


# A name, the properties of the schema, the arguments.
PRESETS = {
    "fits": (PROPERTIES, '{"city": "Pune", "celsius": 30, "days": 3}'),
    "missing": (PROPERTIES, '{"celsius": 30}'),
    "text for number": (PROPERTIES, '{"city": "Pune", "celsius": "30"}'),
    "bool for number": (PROPERTIES, '{"city": "Pune", "celsius": true}'),
    "3.0 for integer": (PROPERTIES, '{"city": "Pune", "days": 3.0}'),
    "null": (PROPERTIES, '{"city": null}'),
    "extra": (PROPERTIES, '{"city": "Pune", "unit": "C"}'),
    "list": (PROPERTIES, '["Pune"]'),
    "JSON text": (PROPERTIES, '"{\\"city\\": \\"Pune\\"}"'),
    "three mistakes": (PROPERTIES, '{"unit": "C", "celsius": "30"}'),
    "array": (TAGS, '{"city": "Pune", "tags": ["hot"]}'),
    "enum": (UNITS, '{"city": "Pune", "unit": "K"}'),
}


# --- State ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judgement:
    """What was said about arguments: nothing, a sentence, or why no check was made; and the checks in order."""

    verdict: str | None
    checks: list[Check]
    by_schema: bool = False
    not_json: str = ""


def judge_args(schema: Any, args: Any) -> Judgement:
    """Ask check_schema and validate_args, and find which check their sentence came from."""
    try:
        check_schema(schema)
    except SchemaError as error:
        first = Check("Can the schema be checked?", "no", spoke=True)
        return Judgement(str(error), [first, *map(Check, later_questions())], by_schema=True)
    verdict = validate_args(args, schema)
    checks, spoke = [Check("Can the schema be checked?", "yes")], False
    for question, sentence in questions(schema, args):
        answer = "" if spoke else "no" if sentence == verdict else "yes"
        spoke = spoke or answer == "no"
        checks.append(Check(question, answer, answer == "no"))
    return Judgement(verdict, checks)


def questions(schema: Any, args: Any) -> Iterator[tuple[str, str]]:
    """Yield each check of these arguments as a question, with the sentence it would say, in the validator's order."""
    yield "Are the arguments a JSON object?", "arguments must be a JSON object"
    if not isinstance(args, dict):
        yield from ((question, "") for question in later_questions()[1:])
        return
    for name in schema.get("required", []):
        yield f"Is {name!r} there?", f"missing required argument {name!r}"
    for name in args:
        yield f"Is {name!r} in the schema?", f"unexpected argument {name!r}"
        if rule := schema.get("properties", {}).get(name):
            yield f"Is {name!r} of type {rule['type']}?", f"argument {name!r} must be of type {rule['type']}"


def later_questions() -> list[str]:
    """Return the questions in general, where there are no arguments that they could be about."""
    return ["Are the arguments a JSON object?", "Is every required argument there?",
            "Is each argument in the schema, and of its type?"]


def judge_texts(schema: str, args: str) -> Judgement:
    """Read both texts and judge the arguments; while one is not JSON yet, nothing is asked."""
    unread = ""
    values = []
    for name, text in (("schema", schema), ("arguments", args)):
        try:
            values.append(read_json(text))
        except NotJson:
            unread = unread or name
    if unread:
        return Judgement(None, [*map(Check, ["Can the schema be checked?", *later_questions()])], not_json=unread)
    return judge_args(*values)


def verdict_words(judgement: Judgement) -> tuple[str, str, str, str]:
    """Return the sentence: its first words, their colour, a text in code, and the rest."""
    if judgement.not_json:
        are = "is" if judgement.not_json == "schema" else "are"
        return "Nothing is checked yet.", "muted", "", f"The {judgement.not_json} {are} not JSON."
    if judgement.verdict is None:
        return "None.", "ink", "", "The validator has nothing to say, so the call may run."
    if judgement.by_schema:
        return "Refused at registration:", "error", judgement.verdict, ""
    spoke = [i for i, check in enumerate(judgement.checks, 1) if check.spoke]
    return "Refused:", "error", judgement.verdict, f"Check {spoke[0]} spoke first, so none after it was asked."


# --- HTML and widget -----------------------------------------------------------------------------------------


def verdict_html(judgement: Judgement) -> str:
    """Return the sentence of a judgement."""
    words, role, quoted, rest = verdict_words(judgement)
    flag = view.mark("error") if role == "error" else ""
    said = f" {view.code(quoted)}." if quoted else ""
    return view.sentence(f"{flag}{view.word(words, role)}{said} {view.escape(rest)}")


def json_note(text: str) -> str:
    """Return the line under a field of JSON: what keeps it from being read, or nothing."""
    try:
        read_json(text)
    except NotJson as problem:
        return trouble("Not JSON yet:", str(problem))
    return '<p class="ll-note"></p>'


class ValidatorBench(Bench):
    """Schema and arguments in two fields, and the checks beside them; `judgement` is what they say now."""

    def __init__(self) -> None:
        self._texts = {name: (schema_text(properties), args) for name, (properties, args) in PRESETS.items()}
        self.preset = view.choices("Try", [*PRESETS, AS_TYPED], "preset", "fits")
        self.schema = view.field(widgets.Textarea(description="Schema, as JSON", rows=9), "schema", "ll-json")
        self.args = view.field(widgets.Textarea(description="Arguments, as JSON", rows=2), "args", "ll-json")
        self._say, self._checks = view.area("", "say"), view.area("", "checks")
        self._schema_note, self._args_note = (view.area("", f"{name}-note", "ll-live") for name in ("schema", "args"))
        left = view.column("ll-seat-b", self.schema, self._schema_note, self.args, self._args_note)
        right = view.column("ll-seat-a", self._checks)
        super().__init__(self.preset, self._say, view.columns(left, right), hook="validator")
        self._filling = False
        self.preset.observe(self._take_preset, names="value")
        for field in (self.schema, self.args):
            field.observe(self._show, names="value")
        self._take_preset()

    @guarded
    def _take_preset(self, change: Any = None) -> None:
        if texts := self._texts.get(self.preset.value):
            self._filling = True  # the two fields change one after the other
            self.schema.value, self.args.value = texts
            self._filling = False
            self._show()

    @guarded
    def _show(self, change: Any = None) -> None:
        if self._filling:
            return
        typed = (self.schema.value, self.args.value)
        if typed not in self._texts.values():
            self._texts[AS_TYPED] = typed
        self.preset.value = next(name for name, texts in self._texts.items() if texts == typed)
        self.judgement = judge_texts(*typed)
        self._say.value = verdict_html(self.judgement)
        self._checks.value = f'<p class="ll-head">The checks, in their order</p>{checks_html(self.judgement.checks)}'
        for field, text, note in zip((self.schema, self.args), typed, (self._schema_note, self._args_note)):
            view.tell(field, note, json_note(text))

    def twin(self) -> list[Block]:
        """Return the two texts, the verdict and the checks."""
        words, _, quoted, rest = verdict_words(self.judgement)
        said = " ".join(filter(None, (words, quoted and f"{quoted}.", rest)))
        return [said, "Schema:", Code(self.schema.value), "Arguments:", Code(self.args.value),
                checks_table(self.judgement.checks)]


def validator_bench() -> ValidatorBench:
    """Show what the validator says to any arguments under any schema, with the classic mistakes to choose from."""
    return ValidatorBench()
