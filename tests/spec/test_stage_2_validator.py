"""Stage 2: validate_args returns None, or one sentence that says what is wrong first."""

from __future__ import annotations

from typing import Any

from .candidate import Candidate
from .world import CELSIUS, CITY, NOTHING, Json

BOTH: Json = {
    "type": "object",
    "properties": {"celsius": {"type": "number"}, "city": {"type": "string"}},
    "required": ["city", "celsius"],
}
OPTIONAL: Json = {"type": "object", "properties": {"city": {"type": "string"}}}


def check_type(mine: Candidate, json_type: str, fitting: list[Any], others: list[Any]) -> None:
    """Expect that an argument of a type takes each of the fitting values, and refuses each of the others."""
    schema = {"type": "object", "properties": {"value": {"type": json_type}}, "required": ["value"]}
    for value in fitting:
        mine.use("validate_args", {"value": value}, schema).gives(None)
    for value in others:
        refusal = f"argument 'value' must be of type {json_type}"
        mine.use("validate_args", {"value": value}, schema).gives(refusal)


def test_the_file_has_the_names_of_stage_2(mine: Candidate) -> None:
    mine.require("validate_args")


def test_arguments_that_fit_give_none(mine: Candidate) -> None:
    mine.use("validate_args", {"city": "Pune"}, CITY).gives(None)
    mine.use("validate_args", {"city": "Pune", "celsius": 30}, BOTH).gives(None)


def test_arguments_that_are_no_object_are_refused(mine: Candidate) -> None:
    for args in ("Pune", ["Pune"], None, 5):
        mine.use("validate_args", args, CITY).gives("arguments must be a JSON object")


def test_a_missing_argument_is_named(mine: Candidate) -> None:
    mine.use("validate_args", {}, CITY).gives("missing required argument 'city'")


def test_missing_arguments_are_named_in_the_order_of_required(mine: Candidate) -> None:
    mine.use("validate_args", {}, BOTH).gives("missing required argument 'city'")
    mine.use("validate_args", {"city": "Pune"}, BOTH).gives("missing required argument 'celsius'")


def test_a_missing_argument_is_told_before_anything_else(mine: Candidate) -> None:
    mine.use("validate_args", {"unit": "C"}, CITY).gives("missing required argument 'city'")
    mine.use("validate_args", {"celsius": "hot"}, BOTH).gives("missing required argument 'city'")


def test_an_argument_that_is_not_in_the_schema_is_refused(mine: Candidate) -> None:
    mine.use("validate_args", {"city": "Pune", "unit": "C"}, CITY).gives("unexpected argument 'unit'")


def test_an_argument_of_the_wrong_type_is_refused(mine: Candidate) -> None:
    mine.use("validate_args", {"celsius": "30"}, CELSIUS).gives("argument 'celsius' must be of type number")


def test_the_first_fault_is_told_argument_by_argument(mine: Candidate) -> None:
    mine.use("validate_args", {"unit": "C", "city": 5}, CITY).gives("unexpected argument 'unit'")
    mine.use("validate_args", {"city": 5, "unit": "C"}, CITY).gives("argument 'city' must be of type string")


def test_an_argument_that_is_not_required_may_be_left_out(mine: Candidate) -> None:
    mine.use("validate_args", {}, OPTIONAL).gives(None)


def test_an_argument_that_is_not_required_is_checked_when_it_is_there(mine: Candidate) -> None:
    mine.use("validate_args", {"city": 5}, OPTIONAL).gives("argument 'city' must be of type string")


def test_a_schema_without_properties_takes_no_arguments(mine: Candidate) -> None:
    mine.use("validate_args", {}, NOTHING).gives(None)
    mine.use("validate_args", {"x": 1}, NOTHING).gives("unexpected argument 'x'")


def test_a_string_is_text(mine: Candidate) -> None:
    check_type(mine, "string", ["Pune", ""], [5, True, None, ["Pune"]])


def test_an_integer_is_a_whole_number(mine: Candidate) -> None:
    check_type(mine, "integer", [5, 0, -1], [2.5, "5", None])


def test_a_number_may_be_whole_or_not(mine: Candidate) -> None:
    check_type(mine, "number", [30, 30.5, 0], ["30", None, [30]])


def test_a_boolean_is_true_or_false(mine: Candidate) -> None:
    check_type(mine, "boolean", [True, False], [1, 0, "true", None])


def test_a_bool_is_never_a_number(mine: Candidate) -> None:
    check_type(mine, "number", [], [True, False])
    check_type(mine, "integer", [], [True, False])
