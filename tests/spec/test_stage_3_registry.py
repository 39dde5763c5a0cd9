"""Stage 3: the registry refuses what it cannot check, lists its tools, and runs a call without ever raising."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .candidate import Candidate, Trial
from .world import TOOLS, WEATHER, Json, build_registry, execute

CITY_EXPECTED = 'get_weather expects {"city": {"type": "string"}}'
CELSIUS_EXPECTED = 'c_to_f expects {"celsius": {"type": "number"}}'


def check_refused(mine: Candidate, name: Any, args: Any, observation: str, tools: Sequence[str] = WEATHER) -> None:
    """Expect this observation, and that no function ran."""
    trial, ran = execute(mine, name, args, tools)
    trial.gives(observation)
    trial.expect(not ran, "no function is run", f"{', '.join(ran)} ran")


def run_tool(mine: Candidate, what_it_does: str, fn: Callable[[], Any]) -> Trial:
    """Register one tool without arguments, named `tool`, and execute it."""

    def act() -> Any:
        registry = mine.ToolRegistry()
        registry.register("tool", "A tool.", {"type": "object"}, fn)
        return registry.execute("tool", {})

    return mine.attempt(f"execute('tool', {{}}) of a tool that {what_it_does}", act)


def register_typed(mine: Candidate, json_type: str) -> tuple[Trial, list[Any]]:
    """Try to register a tool whose argument has this type; return what came of it, and the registry."""
    parameters = {"type": "object", "properties": {"values": {"type": json_type}}}
    registries: list[Any] = []

    def act() -> Any:
        registries.append(mine.ToolRegistry())
        return registries[0].register("add_up", "Add up.", parameters, lambda values=(): sum(values))

    return mine.attempt(f"register('add_up', 'Add up.', {parameters}, a function)", act), registries


def raises(error: Exception) -> Callable[[], Any]:
    """Return a function that raises."""

    def fn() -> Any:
        raise error

    return fn


def test_the_file_has_the_names_of_stage_3(mine: Candidate) -> None:
    mine.require("ToolRegistry")


def test_a_schema_with_an_unsupported_type_is_refused_at_registration(mine: Candidate) -> None:
    register_typed(mine, "array")[0].raises("unsupported type 'array'")


def test_a_tool_that_was_refused_is_not_listed(mine: Candidate) -> None:
    _, registries = register_typed(mine, "array")
    mine.attempt("specs() after a tool was refused", lambda: registries[0].specs()).gives([])


def test_all_four_types_can_be_registered(mine: Candidate) -> None:
    for json_type in ("string", "integer", "number", "boolean"):
        register_typed(mine, json_type)[0].returned("no exception")


def test_specs_lists_name_description_and_parameters_of_each_tool(mine: Candidate) -> None:
    def list_specs() -> list[Json]:
        return sorted(build_registry(mine, WEATHER, []).specs(), key=lambda spec: spec["name"])

    expected = [{"name": name, "description": TOOLS[name][0], "parameters": TOOLS[name][1]} for name in sorted(WEATHER)]
    mine.attempt("specs() of a registry with get_weather and c_to_f", list_specs).gives(expected)


def test_specs_of_an_empty_registry_is_an_empty_list(mine: Candidate) -> None:
    mine.attempt("ToolRegistry().specs()", lambda: mine.ToolRegistry().specs()).gives([])


def test_two_registries_do_not_share_their_tools(mine: Candidate) -> None:
    def act() -> Any:
        build_registry(mine, WEATHER, [])
        return mine.ToolRegistry().specs()

    mine.attempt("specs() of a new registry, after two tools were registered with another one", act).gives([])


def test_success_is_the_result_as_json(mine: Candidate) -> None:
    execute(mine, "get_weather", {"city": "Pune"})[0].gives('{"city": "Pune", "celsius": 30}')
    execute(mine, "c_to_f", {"celsius": 30})[0].gives("86.0")


def test_a_result_keeps_letters_that_are_not_ascii(mine: Candidate) -> None:
    run_tool(mine, "returns 'Zürich'", lambda: "Zürich").gives('"Zürich"')


def test_a_result_of_none_false_or_zero_is_a_result_too(mine: Candidate) -> None:
    run_tool(mine, "returns None", lambda: None).gives("null")
    run_tool(mine, "returns False", lambda: False).gives("false")
    run_tool(mine, "returns 0", lambda: 0).gives("0")


def test_a_call_runs_its_function_once(mine: Candidate) -> None:
    trial, ran = execute(mine, "get_weather", {"city": "Pune"})
    trial.expect(ran == ["get_weather"], "get_weather runs once", f"it ran {len(ran)} times")


def test_an_unknown_tool_is_answered_with_the_names_that_exist(mine: Candidate) -> None:
    names = "Available tools: ['c_to_f', 'get_weather']"
    check_refused(mine, "get_forecast", {"city": "Pune"}, f"ERROR: unknown tool 'get_forecast'. {names}")


def test_the_name_is_checked_before_the_arguments(mine: Candidate) -> None:
    names = "Available tools: ['c_to_f', 'get_weather']"
    check_refused(mine, "get_forecast", "Pune", f"ERROR: unknown tool 'get_forecast'. {names}")


def test_a_name_that_was_not_registered_cannot_run(mine: Candidate) -> None:
    for name in ("print", "specs", "__init__", "run_agent", ""):
        check_refused(mine, name, {}, f"ERROR: unknown tool '{name}'. Available tools: []", tools=())


def test_a_missing_argument_runs_nothing_and_tells_what_the_tool_expects(mine: Candidate) -> None:
    check_refused(mine, "get_weather", {}, f"ERROR: missing required argument 'city'. {CITY_EXPECTED}")


def test_an_argument_of_the_wrong_type_runs_nothing(mine: Candidate) -> None:
    refusal = f"ERROR: argument 'celsius' must be of type number. {CELSIUS_EXPECTED}"
    check_refused(mine, "c_to_f", {"celsius": "30"}, refusal)
    check_refused(mine, "c_to_f", {"celsius": True}, refusal)


def test_an_unexpected_argument_runs_nothing(mine: Candidate) -> None:
    refusal = f"ERROR: unexpected argument 'unit'. {CITY_EXPECTED}"
    check_refused(mine, "get_weather", {"city": "Pune", "unit": "C"}, refusal)


def test_arguments_that_are_no_object_run_nothing(mine: Candidate) -> None:
    refusal = f"ERROR: arguments must be a JSON object. {CITY_EXPECTED}"
    check_refused(mine, "get_weather", "Pune", refusal)
    check_refused(mine, "get_weather", None, refusal)


def test_what_a_tool_expects_is_all_of_its_properties(mine: Candidate) -> None:
    properties = {"a": {"type": "integer"}, "b": {"type": "boolean", "description": "Yes or no."}}
    parameters = {"type": "object", "properties": properties, "required": ["a"]}

    def act() -> Any:
        registry = mine.ToolRegistry()
        registry.register("tool", "A tool.", parameters, lambda a, b=False: a)
        return registry.execute("tool", {})

    expected = '{"a": {"type": "integer"}, "b": {"type": "boolean", "description": "Yes or no."}}'
    trial = mine.attempt(f"execute('tool', {{}}) of a tool with {parameters}", act)
    trial.gives(f"ERROR: missing required argument 'a'. tool expects {expected}")


def test_a_tool_that_raises_becomes_an_observation(mine: Candidate) -> None:
    execute(mine, "get_weather", {"city": "Atlantis"})[0].gives("ERROR: get_weather failed: KeyError: 'Atlantis'")


def test_no_exception_of_a_tool_gets_out_of_execute(mine: Candidate) -> None:
    run_tool(mine, "raises TypeError('no')", raises(TypeError("no"))).gives("ERROR: tool failed: TypeError: no")
    run_tool(mine, "raises ValueError('no')", raises(ValueError("no"))).gives("ERROR: tool failed: ValueError: no")
    run_tool(mine, "raises OSError('no')", raises(OSError("no"))).gives("ERROR: tool failed: OSError: no")


def test_a_result_that_is_not_json_does_not_get_out_as_an_exception(mine: Candidate) -> None:
    trial = run_tool(mine, "returns object()", lambda: object())
    trial.is_a(str)


def test_a_tool_without_arguments_runs(mine: Candidate) -> None:
    execute(mine, "ping", {}, tools=("ping",))[0].gives('"pong"')


def test_a_tool_without_arguments_refuses_an_extra_one(mine: Candidate) -> None:
    check_refused(mine, "ping", {"x": 1}, "ERROR: unexpected argument 'x'. ping expects {}", tools=("ping",))
