"""The demo, and the module as a program."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support import run, takes, tool

import agentloop
from agentloop import ScriptedModel, ToolCall, asks, call, final, main, trace_rows, weather_script, weather_world


def python(*arguments):
    """Run Python on its own, and return what it prints."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8", timeout=60).stdout


@pytest.mark.parametrize("status", ["done", "step_limit", "token_budget", "truncated", "interrupted"])
def test_the_demo_runs_into_each_exit_of_the_loop(status, capsys):
    main()
    assert capsys.readouterr().out.count(f"exit {status},") == 1


def test_the_demo_prints_the_answer_and_no_line_wider_than_a_terminal(capsys):
    main()
    lines = capsys.readouterr().out.splitlines()
    assert any("It is 86.0 F in Pune." in line for line in lines)
    assert max(map(len, lines)) <= 80 and all(line.isascii() for line in lines)


def test_the_demo_prints_the_same_every_time(capsys):
    main()
    first = capsys.readouterr().out
    main()
    assert capsys.readouterr().out == first


@pytest.mark.parametrize("flags", [[], ["-O"], ["-OO"], ["-I", "-S"], ["-X", "warn_default_encoding"]], ids=" ".join)
def test_the_file_runs_as_a_program_under_any_flag_and_without_packages(flags, capsys):
    main()
    assert python("-W", "error", *flags, agentloop.__file__) == capsys.readouterr().out


def test_importing_prints_nothing_and_loads_the_standard_library_only():
    program = (
        "import sys; before = set(sys.modules); import agentloop; sys.stdout.flush();"
        "print(sorted({name.split('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)))"
    )
    assert python("-c", program) == "['agentloop']\n"


OPTIMISED = """
from agentloop import *
registry, ran = weather_world()
def attempt(go):
    try:
        print(go())
    except Exception as error:
        print(type(error).__name__, error)
rules = [{"type": "array"}, {"type": ["string"]}, {}, {"type": "string", "enum": []}]
for rule in rules:
    attempt(lambda: registry.register("t", "A tool.", {"properties": {"q": rule}}, lambda q="": q))
attempt(lambda: registry.register("a b", "A tool.", {}, print))
attempt(lambda: registry.register("t", "A tool.", {}, lambda q: q))
attempt(lambda: run_agent("go", ScriptedModel([]), registry))
attempt(lambda: run_agent("go", ScriptedModel([after("no", final("ok"))]), registry))
attempt(lambda: ScriptedModel([final("ok")]).assert_complete())
attempt(lambda: run_agent("go", ScriptedModel([final("ok")]), registry, max_steps=0))
attempt(lambda: run_agent("go", ScriptedModel(["text"]), registry))
attempt(lambda: Stop("done"))
done = run_agent("go", ScriptedModel([final("ok")]), registry)
attempt(lambda: continue_agent(done, ScriptedModel([]), registry, 8, 4000))
attempt(lambda: run_agent(WEATHER_TASK, ScriptedModel(weather_script()), registry))
"""


def test_python_without_asserts_changes_nothing():
    plain = python("-c", OPTIMISED)
    assert python("-O", "-c", OPTIMISED) == plain
    assert plain.count("Error ") == 13 and "It is 86.0 F in Pune." in plain


# --- The world and the table ----------------------------------------------------------------------------------


def test_the_weather_script_solves_the_weather_task_and_every_call_is_logged():
    registry, ran = weather_world()
    result = run(ScriptedModel(weather_script()), registry)
    assert (result.status, result.answer) == ("done", "It is 86.0 F in Pune.")
    assert ran == ["get_weather(Pune)", "c_to_f(30)"]


def test_two_weather_worlds_share_no_log():
    (first, ran), (_, other) = weather_world(), weather_world()
    first.execute("get_weather", {"city": "Delhi"})
    assert (ran, other) == (["get_weather(Delhi)"], [])


def test_the_descriptions_of_the_weather_tools_say_when_to_use_them():
    for spec in weather_world()[0].specs():
        assert "Use it when" in spec["description"]


def test_a_trace_has_one_row_for_each_step_and_ends_at_what_was_spent():
    registry, _ = weather_world()
    result = run(ScriptedModel(weather_script()), registry)
    rows = trace_rows(result, registry.specs())
    assert [row[0] for row in rows] == ["1", "2", "3"] and rows[-1][-1] == str(result.tokens)
    assert "get_weather" in rows[0][1] and rows[0][2] == '{"city": "Pune", "celsius": 30}'
    assert rows[-1][1:3] == ["It is 86.0 F in Pune.", ""]


@pytest.mark.parametrize("args", [{}, {"x": {1}}, "{cut", None, [1], {"x": "東京"}], ids=repr)
def test_a_trace_shows_every_call_and_every_observation_of_a_step(args):
    registry = tool(lambda x: x, takes(x="string"))
    result = run(ScriptedModel([asks(ToolCall("a", "t", args), call("b", "nope")), final("ok")]), registry)
    row = trace_rows(result, registry.specs())[0]
    assert row[1].startswith("t(") and " nope(" in row[1]
    assert "ERROR: unknown tool 'nope'" in row[2]
