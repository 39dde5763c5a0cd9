"""Section 9: what a trace holds, how it is replayed and compared, what it hides, and what it says of a run."""

from __future__ import annotations

import json
import random
import re
from copy import deepcopy
from itertools import count

import pytest
from support import PLENTY, observations, random_script, run, takes, tool

from agentloop import (
    VOLATILE,
    AgentResult,
    ModelReply,
    ScriptedModel,
    ToolCall,
    ToolRegistry,
    Trace,
    Usage,
    asks,
    call,
    check_messages,
    continue_agent,
    explain,
    final,
    first_difference,
    redact_message,
    redact_secrets,
    replay,
    rows_of,
    require_approval,
    run_agent,
    trim_result,
    weather_script,
    weather_world,
)

TEXT = takes(q="string")


def ticks(*seconds):
    """Return a clock that is read twice around each thing, which takes these seconds in turn, the last for ever."""
    now = 0.0
    taken = iter(seconds)
    last = 0.0

    def clock():
        nonlocal now, last
        reading = next(counter)
        if reading % 2:
            last = next(taken, last)
            now += last
        return now

    counter = count()
    return clock


def traced(model, registry=None, clock=None, **options):
    """Run a model with a trace around it and around the registry; return both."""
    registry = registry or tool(lambda q: q.upper(), TEXT)
    trace = Trace(clock or ticks(1))
    return trace, run(trace.model(model), registry, execute=trace.execute(registry), **options)


SCRIPT = [asks(call("a", "t", q="x"), call("b", "t", q="y"), text="Two."), asks(call("c", "t", q="z")), final("ok")]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trace.jsonl"


# --- Recording ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_a_trace_changes_nothing_in_a_run(seed):
    registry = tool(lambda **args: args, {"properties": {"x": {"type": "string"}}})
    for max_steps in (1, 50):
        script = random_script(random.Random(seed))
        trace, result = traced(ScriptedModel(script), registry, max_steps=max_steps)
        assert result == run(ScriptedModel(script), registry, max_steps=max_steps)


def test_a_trace_holds_output_results_usage_and_the_seconds_of_each_reply_and_each_call(path):
    script = [
        ModelReply("Two.", SCRIPT[0].tool_calls, Usage(100, 20)),
        SCRIPT[1],
        ModelReply("ok", usage=Usage(300, 5)),
    ]
    trace, result = traced(ScriptedModel(script), clock=ticks(1.5, 0.25, 0.5, 2, 0.125, 3))
    trace.save(path, result)
    header, *lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert header["agentloop"] == "trace" and header["version"] == 1
    assert (header["status"], header["steps"], header["tokens"]) == ("done", 3, result.tokens)
    assert header["specs"] == tool(lambda q: q, TEXT).specs()
    noted = [{key: line.pop(key) for key in ("seconds", "usage") if key in line} for line in lines]
    assert lines == result.messages
    assert noted == [
        {},
        {},
        {"seconds": 1.5, "usage": {"prompt": 100, "reply": 20}},
        {"seconds": 0.25},
        {"seconds": 0.5},
        {"seconds": 2},
        {"seconds": 0.125},
        {"seconds": 3, "usage": {"prompt": 300, "reply": 5}},
    ]


def test_a_trace_that_was_saved_and_loaded_is_the_same(path):
    trace, result = traced(ScriptedModel(SCRIPT))
    trace.save(path, result)
    loaded = Trace.load(path)
    assert (loaded.status, loaded.steps, loaded.messages, loaded.specs) == ("done", 3, result.messages, trace.specs)
    assert rows_of(loaded) == rows_of(trace) and loaded.table() == trace.table()
    again = path.with_name("again.jsonl")
    loaded.save(again, result)
    assert again.read_bytes() == path.read_bytes()


def test_what_took_no_part_in_the_run_has_no_seconds(path):
    def broken(messages, specs):
        raise ConnectionError

    registry = tool(lambda q: q, TEXT)
    trace = Trace(ticks(1))
    asked = asks(call("a", "t", q="x"), ToolCall("b", "t", {}, "cut"), call("c", "t", q="z"))
    with pytest.raises(ConnectionError) as caught:
        run(trace.model(ScriptedModel([asked, broken])), registry, execute=trace.execute(registry))
    trace.save(path, caught.value.result)
    assert [row[-1] for row in rows_of(Trace.load(path))] == ["1.000", "", "1.000"]
    assert Trace.load(path).status == "interrupted"


def test_editing_a_trace_or_the_result_later_does_not_edit_the_other(path):
    trace, result = traced(ScriptedModel(SCRIPT))
    trace.save(path, result)
    before = deepcopy(result.messages)
    trace.messages.clear()
    assert result.messages == before
    trace.save(path, result)
    result.messages.clear()
    assert trace.messages == before


def test_a_loaded_trace_notes_how_the_run_goes_on(path):
    registry = tool(lambda q: q.upper(), TEXT)
    whole, result = traced(ScriptedModel(SCRIPT), registry)
    whole.save(path, result)
    halting, halted = traced(ScriptedModel(SCRIPT), registry, max_steps=1)
    halting.save(path, halted)
    later = Trace.load(path)
    ended = continue_agent(
        halted, later.model(ScriptedModel(SCRIPT[1:])), registry, 9, PLENTY, execute=later.execute(registry)
    )
    later.save(path, ended)
    assert ended == result
    assert [row[:4] for row in rows_of(Trace.load(path))] == [row[:4] for row in rows_of(whole)]
    assert all(row[4] or not row[0] for row in rows_of(Trace.load(path)))


# --- The table ------------------------------------------------------------------------------------------------


def test_the_table_shows_step_decision_observation_tokens_so_far_and_seconds(path):
    registry, _ = weather_world()
    trace = Trace(ticks(1, 0.25, 2, 0.5, 3))
    result = run_agent(
        "How hot is Pune?", trace.model(ScriptedModel(weather_script())), registry, execute=trace.execute(registry)
    )
    trace.save(path, result)
    assert Trace.load(path).table() == (
        "step  decision                              observation                           tokens  model s   tool s\n"
        '   1  get_weather({"city": "Pune"})         {"city": "Pune", "celsius": 30}          174    1.000    0.250\n'
        '   2  c_to_f({"celsius": 30})               86.0                                     404    2.000    0.500\n'
        "   3  It is 86.0 F in Pune.                                                          672    3.000"
    )


def test_each_call_of_a_reply_has_a_line_and_what_they_share_stands_once(path):
    trace, result = traced(ScriptedModel(SCRIPT))
    trace.save(path, result)
    assert [[row[0], row[1], row[2], row[4], row[5]] for row in rows_of(trace)] == [
        ["1", 't({"q": "x"})', '"X"', "1.000", "1.000"],
        ["", 't({"q": "y"})', '"Y"', "", "1.000"],
        ["2", 't({"q": "z"})', '"Z"', "1.000", "1.000"],
        ["3", "ok", "", "1.000", ""],
    ]


@pytest.mark.parametrize("seed", range(10))
def test_the_tokens_so_far_end_at_what_the_run_spent_with_or_without_usage(seed, path):
    chance = random.Random(seed)
    script = [
        ModelReply(reply.content, reply.tool_calls, chance.choice([None, Usage(chance.randint(0, 999), 7)]))
        for reply in random_script(chance)
    ]
    for max_steps in range(1, len(script) + 1):
        trace, result = traced(ScriptedModel(script), max_steps=max_steps)
        trace.save(path, result)
        assert [row[3] for row in rows_of(Trace.load(path)) if row[0]][-1] == str(result.tokens)


def test_a_call_that_waits_has_a_line_without_an_observation(path):
    registry = tool(lambda q: q, TEXT)
    trace = Trace(ticks(1))
    gate = require_approval(registry, registry.check, {"t"})
    result = run(trace.model(ScriptedModel(SCRIPT)), registry, execute=trace.execute(gate))
    trace.save(path, result)
    assert [row[1:3] for row in rows_of(trace)] == [['t({"q": "x"})', ""], ['t({"q": "y"})', ""]]


def test_the_table_is_text_of_even_lines_whatever_the_run_says(path):
    odd = "line\n\ttwo \u2028 \r" + "é🙂" * 100
    trace, result = traced(ScriptedModel([asks(call("a", "t", q=odd)), final(odd)]))
    trace.save(path, result)
    lines = trace.table().split("\n")
    assert len(lines) == 3 and len(trace.table().splitlines()) == 3 and all(len(line) <= 120 for line in lines)
    assert lines[1].count("…") == 2


def test_a_trace_of_nothing_is_a_table_of_heads():
    assert Trace().table().split() == ["step", "decision", "observation", "tokens", "model", "s", "tool", "s"]


# --- Replay ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_a_replay_of_the_same_world_gives_the_same_messages(seed):
    registry = tool(lambda **args: args, {"properties": {"x": {"type": "string"}}})
    recorded = run(ScriptedModel(random_script(random.Random(seed))), registry)
    assert run(replay(recorded.messages), registry) == recorded


def test_a_replay_from_a_file_gives_the_same_messages(path):
    trace, result = traced(ScriptedModel(SCRIPT))
    trace.save(path, result)
    again = run(replay(Trace.load(path).messages), tool(lambda q: q.upper(), TEXT))
    assert again.messages == result.messages


RECORDED = run(ScriptedModel(SCRIPT), tool(lambda q: q.upper(), TEXT))


def replayed(registry=None, **options):
    """Replay RECORDED in another world, and return what the replay says."""
    with pytest.raises(AssertionError) as caught:
        run_agent(
            **{
                "task": "go",
                "registry": registry or tool(lambda q: q.upper(), TEXT),
                "model": replay(RECORDED.messages),
            }
            | options
        )
    return str(caught.value), caught.value.result


def test_a_replay_that_goes_another_way_names_the_first_message_that_differs_and_the_field():
    said, result = replayed(tool(lambda q: "no" if q == "y" else q.upper(), TEXT))
    assert (
        said
        == 'the run is not the recorded one: message 4 (tool) differs in content: "Y" in the first, "no" in the second'
    )
    assert result.messages[:4] == RECORDED.messages[:4] and result.steps == 1


def test_a_replay_sees_another_task_another_system_message_and_another_tool():
    assert "message 1 (user) differs in content" in replayed(task="stay")[0]
    assert "message 0 (system) differs in content" in replayed(system="Be brief.")[0]
    assert "message 3 (tool) differs in content" in replayed(tool(lambda q: q, TEXT, "u"))[0]


def test_a_replay_ends_where_the_recording_ends():
    halted = run(ScriptedModel(SCRIPT), tool(lambda q: q.upper(), TEXT), max_steps=1)
    with pytest.raises(AssertionError, match="the recording has no reply after message 4"):
        run(replay(halted.messages), tool(lambda q: q.upper(), TEXT))
    assert run(replay(halted.messages), tool(lambda q: q.upper(), TEXT), max_steps=1) == halted


def test_a_replay_serves_one_run_after_another_and_any_part_of_one():
    registry, model = tool(lambda q: q.upper(), TEXT), replay(RECORDED.messages)
    for _ in range(2):
        assert run(model, registry) == RECORDED
    halted = run(model, registry, max_steps=1)
    assert continue_agent(halted, model, registry, 9, PLENTY) == RECORDED


def test_a_recording_is_copied_and_neither_its_edits_nor_the_models_reach_a_replay():
    messages = deepcopy(RECORDED.messages)
    model = replay(messages)
    messages[2]["tool_calls"].clear()
    reply = model(RECORDED.messages[:2], [])
    reply.tool_calls[0].args["q"] = "edited"
    assert model(RECORDED.messages[:2], []).tool_calls[0].args == {"q": "x"}


def test_a_time_in_a_result_can_be_declared_volatile():
    times = count()
    registry = tool(lambda: {"at": next(times), "celsius": 30})
    recorded = run(ScriptedModel([asks(call("a", "t")), final("ok")]), registry)
    with pytest.raises(AssertionError, match="differs in content.at: 0 in the first, 1 in the second"):
        run(replay(recorded.messages), registry)
    assert run(replay(recorded.messages, (*VOLATILE, "content.at")), registry).answer == "ok"


def test_a_fork_runs_on_from_a_changed_result():
    registry, ran = weather_world()
    recorded = run_agent("How hot is Pune?", ScriptedModel(weather_script()), registry)
    changed = deepcopy(recorded.messages[:4])
    changed[3]["content"] = "ERROR: no signal"
    fork = AgentResult("interrupted", None, 1, 0, changed)
    ended = continue_agent(fork, ScriptedModel([final("I do not know.")]), registry, 9, 9999)
    assert (ended.answer, ended.messages[3]["content"]) == ("I do not know.", "ERROR: no signal")
    assert first_difference(recorded.messages, ended.messages).startswith("message 3 (tool) differs in content")
    check_messages(ended.messages)


def test_a_long_replay_compares_each_message_once():
    steps = 400
    registry = tool(lambda q: q, TEXT)
    recorded = run(ScriptedModel([asks(call("", "t", q=str(i))) for i in range(steps)]), registry, max_steps=steps)
    seen = Counting(recorded.messages)
    assert run(replay(recorded.messages, seen), registry, max_steps=steps) == recorded
    assert seen.asked < 30 * len(recorded.messages)


class Counting(tuple):
    """The volatile paths, which count how often they are looked at."""

    asked = 0

    def __new__(cls, messages):
        return super().__new__(cls, VOLATILE)

    def __contains__(self, path):
        self.asked += 1
        return super().__contains__(path)


# --- The first difference -------------------------------------------------------------------------------------


def result_of(content, call_id="a"):
    """Return a run of one call that came back with this content."""
    asked = {"id": call_id, "name": "t", "args": {"q": "x"}}
    return [
        *RECORDED.messages[:2],
        {"role": "assistant", "content": "", "tool_calls": [asked]},
        {"role": "tool", "tool_call_id": call_id, "name": "t", "content": content},
    ]


def edited(messages, position, *path, to):
    """Return a copy of a list with one field changed."""
    copy = deepcopy(messages)
    place = copy[position]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return copy


def test_a_run_differs_from_itself_in_nothing():
    for messages in ([], RECORDED.messages, result_of("ERROR: no"), result_of('{"a": [1, {"b": null}]}')):
        assert first_difference(messages, deepcopy(messages)) is None


def test_the_ids_of_calls_may_differ_and_no_other_id():
    assert first_difference(result_of("1", "a"), result_of("1", "b")) is None
    for here, there in (
        (edited(result_of("1"), 2, "tool_calls", 0, "args", to={"id": 1}), "tool_calls.args.id"),
        (result_of('{"id": 1}'), "content.id"),
        (result_of('{"tool_call_id": 1}'), "content.tool_call_id"),
    ):
        other = json.loads(json.dumps(here).replace("1", "2"))
        assert f"differs in {there}: 1 in the first, 2 in the second" in first_difference(here, other)


FIELDS = {
    "system": (
        (0, "content"),
        "Be brief.",
        'message 0 (system) differs in content: "Use the tools to answer the user." in the first, "Be brief." in',
    ),
    "role": ((1, "role"), "system", 'message 1 (user) differs in role: "user" in the first, "system" in the second'),
    "text": (
        (2, "content"),
        "Three.",
        'message 2 (assistant) differs in content: "Two." in the first, "Three." in the second',
    ),
    "tool": (
        (2, "tool_calls", 1, "name"),
        "u",
        'message 2 (assistant) differs in tool_calls.name: "t" in the first, "u" in the second',
    ),
    "argument": (
        (2, "tool_calls", 0, "args", "q"),
        5,
        'message 2 (assistant) differs in tool_calls.args.q: "x" in the first, 5 in the second',
    ),
    "one more": (
        (2, "tool_calls", 0, "args", "n"),
        1,
        "message 2 (assistant) differs in tool_calls.args.n: nothing in the first, 1 in the second",
    ),
    "one call": ((2, "tool_calls"), [], "message 2 (assistant) differs in tool_calls: {"),
    "result": (
        (3, "content"),
        '{"a": 1}',
        'message 3 (tool) differs in content: "X" in the first, {"a": 1} in the second',
    ),
    "name": ((3, "name"), "u", 'message 3 (tool) differs in name: "t" in the first, "u" in the second'),
}


@pytest.mark.parametrize("place, to, sentence", FIELDS.values(), ids=FIELDS)
def test_the_first_message_that_differs_is_named_with_its_field_and_both_values(place, to, sentence):
    assert first_difference(RECORDED.messages, edited(RECORDED.messages, *place, to=to)).startswith(sentence)


@pytest.mark.parametrize(
    "old, new",
    [(1, True), (0, False), (1, 1.0), (1, "1"), (None, False), ([], {}), ([1, 2], [2, 1]), ({}, None), ("", None)],
    ids=repr,
)
def test_values_that_json_tells_apart_differ(old, new):
    for one, other in ((old, new), (new, old)):
        assert "differs in content.a" in first_difference(
            result_of(json.dumps({"a": one})), result_of(json.dumps({"a": other}))
        )
        assert "tool_calls.args" in first_difference(
            *(edited(result_of("1"), 2, "tool_calls", 0, "args", "q", to=v) for v in (one, other))
        )


def test_a_field_inside_a_result_is_named_by_its_path():
    old = {"orders": [{"id": "A1", "at": 1}, {"id": "A2", "at": 2, "rows": [1, 2]}]}
    new = edited([old], 0, "orders", 1, "rows", 1, to=3)[0]
    found = first_difference(result_of(json.dumps(old)), result_of(json.dumps(new)))
    assert found == "message 3 (tool) differs in content.orders.rows: 2 in the first, 3 in the second"
    assert (
        first_difference(result_of(json.dumps(old)), result_of(json.dumps(new)), (*VOLATILE, "content.orders.rows"))
        is None
    )


def test_a_longer_run_differs_in_its_first_extra_message():
    for n in range(len(RECORDED.messages)):
        role = RECORDED.messages[n]["role"]
        assert (
            first_difference(RECORDED.messages, RECORDED.messages[:n]) == f"message {n} ({role}) is only in the first"
        )
        assert (
            first_difference(RECORDED.messages[:n], RECORDED.messages) == f"message {n} ({role}) is only in the second"
        )


def test_a_long_value_is_shown_by_its_beginning():
    found = first_difference(result_of("x" * 5000), result_of("x" * 5000 + "y" + "\ud83d"))
    assert len(found) < 250


# --- What is not written --------------------------------------------------------------------------------------

SECRET = "zq-SECRET-1"
NAMES = [
    "key",
    "api_key",
    "API_KEY",
    "apiKey",
    "x-api-key",
    "apikeys",
    "token",
    "access_token",
    "accessToken",
    "TOKEN",
    "secret",
    "client_secret",
    "clientSecretValue",
    "password",
    "db_password",
    "passwords",
    "passwd",
    "passphrase",
    "Authorization",
    "authorization",
    "credential",
    "credentials",
    "set-cookie",
    "key2",
    "signing key",
    "token_id",
]
HARMLESS = [
    "keyboard",
    "keyword",
    "keywords",
    "tokenizer",
    "secretary",
    "cookiecutter",
    "q",
    "city",
    "order_id",
    "name",
    "id",
    "",
    "Keyboard",
    "authorizations_list_",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_field_with_a_secret_name_is_redacted_whatever_it_holds(name):
    for value in (SECRET, 1234, ["a", "b"], {"value": SECRET}, 0.5, ""):
        assert redact_secrets(name, value) == "(redacted)"


@pytest.mark.parametrize("name", HARMLESS[:-1])
def test_a_field_with_another_name_is_left(name):
    assert redact_secrets(name, SECRET) == SECRET


@pytest.mark.parametrize("value", [True, False, None])
def test_whether_there_is_a_secret_is_none(value):
    assert redact_secrets("password", value) is value


PLACES = {
    "an argument": ({"api_key": SECRET}, {"rows": 3}),
    "an argument inside": ({"options": {"auth": [{"apiToken": SECRET}]}}, {"rows": 3}),
    "a result": ({}, {"token": SECRET, "rows": 3}),
    "inside a result": ({}, [{"user": {"password": SECRET}}, {"clientSecret": [SECRET, {"x": SECRET}]}]),
    "a result that was cut": ({}, {"token": SECRET, "rows": ["x" * 50] * 100}),
    "at the end of one that was cut": ({}, {"rows": ["x" * 50] * 100, "token": SECRET}),
    "JSON in a text": (
        {"body": json.dumps({"password": SECRET, "n": 1})},
        {"log": f'sent {{"access_token":"{SECRET}"}}'},
    ),
    "arguments that were not decoded": ('{"api_key": "' + SECRET + '", "q": "keybo', {"rows": 3}),
    "arguments that are a list": ([{"api_key": SECRET}], {"rows": 3}),
}


@pytest.mark.parametrize("args, answer", PLACES.values(), ids=PLACES)
def test_a_secret_field_is_not_written_wherever_it_stands_and_the_run_is_untouched(args, answer, path):
    registry = ToolRegistry()
    registry.register("t", "A tool.", {}, lambda: answer)
    execute = trim_result(lambda asked: registry.execute("t", {}), 500)
    asked = ToolCall("a", "t", args, "cut" if isinstance(args, str) else None)
    trace = Trace(ticks(1))
    model = ScriptedModel([ModelReply("", [asked, call("b", "t", q="keyboard")]), final("ok")])
    result = run(trace.model(model), registry, execute=trace.execute(execute))
    before = deepcopy(result.messages)
    trace.save(path, result, redact_secrets)
    written = path.read_text(encoding="utf-8")
    assert SECRET not in written and "keyboard" in written and "(redacted)" in written
    assert result.messages == before == trace.messages and SECRET in json.dumps(before)
    loaded = Trace.load(path)
    check_messages(loaded.messages)
    assert first_difference(loaded.messages, result.messages) is not None


def test_a_result_goes_by_the_name_of_its_tool_and_the_arguments_do_not(path):
    registry = tool(lambda q: SECRET, TEXT, "get_token")
    trace, result = traced(ScriptedModel([asks(call("a", "get_token", q="for ada")), final("ok")]), registry)
    trace.save(path, result, redact_secrets)
    assert SECRET not in path.read_text(encoding="utf-8") and "for ada" in path.read_text(encoding="utf-8")
    assert observations(Trace.load(path)) == ['"(redacted)"']


def test_redact_sees_every_field_of_arguments_and_results_by_name_and_what_it_returns_is_written(path):
    seen = []

    def redact(name, value):
        seen.append((name, value))
        return value if isinstance(value, (dict, list)) else f"<{name}>"

    registry = tool(
        lambda **args: {"a": 1, "b": [2, {"c": None}]},
        {"properties": {"q": {"type": "string"}, "n": {"type": "integer"}}},
    )
    trace, result = traced(ScriptedModel([asks(call("a", "t", q="x", n=1)), final("ok")]), registry)
    trace.save(path, result, redact)
    assert seen == [
        ("q", "x"),
        ("n", 1),
        ("t", {"a": 1, "b": [2, {"c": None}]}),
        ("a", 1),
        ("b", [2, {"c": None}]),
        ("b", 2),
        ("b", {"c": None}),
        ("c", None),
    ]
    loaded = Trace.load(path).messages
    assert loaded[2]["tool_calls"][0]["args"] == {"q": "<q>", "n": "<n>"}
    assert json.loads(loaded[3]["content"]) == {"a": "<a>", "b": ["<b>", {"c": "<c>"}]}
    assert [message["content"] for message in (loaded[0], loaded[1], loaded[4])] == [
        "Use the tools to answer the user.",
        "go",
        "ok",
    ]


def test_a_redact_that_edits_what_it_is_given_edits_a_copy(path):
    def rude(name, value):
        if isinstance(value, dict):
            value.clear()
        return value

    trace, result = traced(
        ScriptedModel([asks(call("a", "t", q="x")), final("ok")]), tool(lambda q: {"a": {"b": 1}}, TEXT)
    )
    trace.save(path, result, rude)
    assert observations(result) == ['{"a": {"b": 1}}'] == observations(trace) != observations(Trace.load(path))


def test_a_redact_that_fails_or_returns_no_json_leaves_the_file_as_it_was(path):
    trace, result = traced(ScriptedModel(SCRIPT))
    trace.save(path, result)
    before = path.read_bytes()
    for redact in (lambda name, value: {1, 2}, lambda name, value: 1 / 0, lambda name, value: float("nan")):
        with pytest.raises((TypeError, ValueError, ZeroDivisionError)):
            trace.save(path, result, redact)
        assert path.read_bytes() == before and len(list(path.parent.iterdir())) == 1


def test_an_error_that_names_the_arguments_of_a_tool_is_left_readable(path):
    registry = tool(lambda api_key: 1, takes(api_key="string"))
    trace, result = traced(ScriptedModel([asks(call("a", "t")), final("ok")]), registry)
    trace.save(path, result, redact_secrets)
    assert observations(Trace.load(path)) == observations(result)


# --- Why a run ended ------------------------------------------------------------------------------------------

GOALS = {
    "order found": lambda result: any('"item"' in seen for seen in observations(result)),
    "refund issued": lambda result: any('"refund_id"' in seen for seen in observations(result)),
}


def stopped(status, steps=12, *contents):
    seen = [
        {"role": "tool", "tool_call_id": str(i), "name": "t", "content": content} for i, content in enumerate(contents)
    ]
    return AgentResult(status, None, steps, 100, seen)


@pytest.mark.parametrize(
    "status, steps, sentence",
    [
        ("step_limit", 12, "stopped at the step limit after 12 steps"),
        ("step_limit", 1, "stopped at the step limit after 1 step"),
        ("token_budget", 0, "stopped at the token budget after 0 steps"),
        ("repeated_call", 3, "stopped at a repeated call after 3 steps"),
        ("deadline", 2, "stopped at the deadline after 2 steps"),
        ("cost_cap", 2, "stopped at the cost cap after 2 steps"),
        ("interrupted", 2, "interrupted after 2 steps"),
        ("waiting_for_approval", 2, "waiting for approval after 2 steps"),
        ("truncated", 2, "stopped by a reply that was cut off after 2 steps"),
        ("refused", 2, "stopped by a refusal after 2 steps"),
        ("empty_reply", 2, "stopped by an empty reply after 2 steps"),
        ("bad_reply", 4, "stopped by bad replies after 4 steps"),
        ("done", 4, "answered after 4 steps"),
        ("sunday", 4, "stopped with sunday after 4 steps"),
    ],
)
def test_a_run_says_why_it_ended_and_after_how_many_steps(status, steps, sentence):
    assert explain(stopped(status, steps)) == explain(stopped(status, steps), {}) == sentence


def test_a_run_says_what_it_reached_and_what_not():
    found = stopped("step_limit", 12, '{"item": "keyboard"}')
    assert explain(found, GOALS) == "stopped at the step limit after 12 steps: order found, refund not issued"
    assert (
        explain(stopped("deadline", 1), GOALS)
        == "stopped at the deadline after 1 step: order not found, refund not issued"
    )
    both = stopped("done", 3, '{"item": "keyboard"}', '{"refund_id": "R1"}')
    assert explain(both, GOALS) == "answered after 3 steps: order found, refund issued"
    assert explain(found, {"refunded": lambda result: None}) == "stopped at the step limit after 12 steps: not refunded"


def test_a_trace_says_it_of_its_run(path):
    trace, result = traced(ScriptedModel(SCRIPT), max_steps=2)
    trace.save(path, result)
    goals = {"letter seen": lambda run: '"Z"' in observations(run)}
    for one in (result, trace, Trace.load(path)):
        assert explain(one, goals) == "stopped at the step limit after 2 steps: letter seen"


def test_done_says_only_that_the_model_stopped():
    result = run(ScriptedModel([final("The refund was issued.")]))
    assert explain(result, GOALS) == "answered after 1 step: order not found, refund not issued"


def test_a_goal_that_cannot_be_checked_is_the_callers_error():
    with pytest.raises(ZeroDivisionError):
        explain(stopped("done"), {"order found": lambda result: 1 / 0})


@pytest.mark.parametrize("volatile", ["content", "content.at", ""])
def test_volatile_paths_are_a_collection_and_not_one_text(volatile):
    with pytest.raises(ValueError, match="volatile must be a collection"):
        first_difference([], [], volatile)


@pytest.mark.parametrize("name", ["pwd", "auth", "bearer", "user_pwd"])
def test_short_names_of_secrets_are_secret_too(name):
    assert redact_secrets(name, "zq-1") == "(redacted)" and redact_secrets("author", "Ada") == "Ada"


def test_the_error_of_a_call_is_redacted_like_its_observation():
    asked = {"id": "a", "name": "t", "args": "{", "error": 'cannot decode {"api_key": "zq-1", '}
    message = {"role": "assistant", "content": "", "tool_calls": [asked]}
    assert "zq-1" not in str(redact_message(message, redact_secrets)) and "zq-1" in asked["error"]


TEXTS = {
    "as Python writes it": "{'password': 'zq-1', \"q\": \"Ada's\"}",
    "in both quotes": "'token': \"zq-1\", \"q\": 'Ada\\'s'",
    "cut off": '{"q": "Ada\'s", "pwd": "zq-1',
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_fields_in_text_that_is_no_json_are_redacted_in_either_quotes(text):
    message = {"role": "tool", "tool_call_id": "a", "name": "t", "content": text}
    assert redact_message(message, redact_secrets)["content"] == text.replace("zq-1", "(redacted)")


@pytest.mark.parametrize(("a", "b"), [("x" * 90 + "A", "x" * 90 + "B"), ("x" * 90, "x" * 91), (list(range(99)), 5)])
def test_what_differs_is_in_what_is_shown_of_two_long_values(a, b):
    said = first_difference([{"role": "user", "content": a}], [{"role": "user", "content": b}])
    was, now = re.fullmatch("message 0 .* differs in content: (.*) in the first, (.*) in the second", said).groups()
    assert was != now and max(len(was), len(now)) <= 61
