"""The wire viewer: what it shows is what the adapters send, and each part is marked as of the message it is from."""

from __future__ import annotations

import ast
import re
from copy import deepcopy
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from looplab import wire as wire_module
from looplab.provider import as_anthropic, as_openai
from looplab.wire import (
    NAMES,
    PROVIDERS,
    ROWS,
    SPECS,
    WIDTH,
    Row,
    place_text,
    rows_of,
    show_request,
    wire,
    wire_viewer,
)

from agentloop import (
    Json,
    ModelReply,
    ScriptedModel,
    ToolCall,
    ToolRegistry,
    Usage,
    asks,
    call,
    final,
    run_agent,
    to_anthropic,
    to_openai,
    weather_world,
)

EVIL = '<img src=x onerror="alert(1)"><b>hi</b> a < b & c </pre>'
SPEC_LIST = weather_world()[0].specs()


def two_cities(*more: ModelReply) -> list[Json]:
    """Return the list of a run with two calls in one reply, one of which fails, without the last reply."""
    both = asks(call("c1", "get_weather", city="Pune"), call("c2", "get_weather", city="Atlantis"), text="I look.")
    script = [both, *more, asks(call("c3", "c_to_f", celsius=30)), final("86.0 F.")]
    return run_agent("How hot?", ScriptedModel(script), weather_world()[0]).messages[:-1]


def hurried() -> list[Json]:
    """Return a list in which the user speaks again, and a reply said nothing."""
    nothing = {"role": "assistant", "content": " ", "tool_calls": []}
    return [*two_cities(), {"role": "user", "content": "Go on.\nAnd hurry.\n"}, nothing, *two_cities()[1:2]]


def bad_reply() -> list[Json]:
    """Return a list that holds a call which could not be decoded."""
    broken = ModelReply("", [ToolCall("c9", "bad reply", "no JSON", "reply must be JSON")])  # type: ignore[arg-type]
    return two_cities(broken)


LISTS = {"two cities": two_cities(), "hurried": hurried(), "bad reply": bad_reply()}
everywhere = pytest.mark.parametrize("provider", PROVIDERS)
each_list = pytest.mark.parametrize("messages", LISTS.values(), ids=LISTS)


def texts_of(rows: list[Row], owner: int | None) -> list[str]:
    """Return the rows that belong to a message."""
    return [row.text for row in rows if row.owner == owner]


# --- Rows ----------------------------------------------------------------------------------------------------


@everywhere
@each_list
def test_the_rows_read_as_python_are_the_request(
    provider: str, messages: list[Json], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire_module, "WIDTH", 200)  # so that no text is longer than a row
    shown = "\n".join(row.text for row in wire(messages, [], provider).theirs)
    assert shown.startswith("messages = ") is (provider == "JSON text")
    assert ast.literal_eval(shown.removeprefix("messages = ")) == PROVIDERS[provider].request(messages, [])


@everywhere
def test_no_row_is_wider_than_its_place_and_none_is_empty(provider: str) -> None:
    messages = two_cities()
    messages[1]["content"] = "word " * 60 + "x" * 200
    wired = wire(messages, SPEC_LIST, provider)
    assert all(0 < len(row.text) <= WIDTH for row in [*wired.ours, *wired.theirs])
    assert sum(row.text.count("word") for row in wired.theirs) == 60


ODD: list[Any] = [{}, [], "", None, True, 1.5, {"a": []}, [[1], {"b": "c\nd"}], "é \"'\\ \x00", {"": 0}]


@pytest.mark.parametrize("value", ODD, ids=range(len(ODD)))
def test_any_json_value_is_printed_as_python_reads_it(value: Any) -> None:
    assert ast.literal_eval("".join(row.text.strip() for row in rows_of(value, {}))) == value


def test_a_text_in_quotes_needs_no_escapes_where_that_can_be() -> None:
    assert [row.text for row in rows_of(['{"a": 1}', "it's"], {})] == ["""['{"a": 1}', "it's"]"""]


def test_show_request_prints_the_rows(capsys: pytest.CaptureFixture[str]) -> None:
    show_request(PROVIDERS["OpenAI"].request(two_cities(), []))
    assert capsys.readouterr().out.startswith('{"messages": [\n  {"role": "system",')


# --- Whose is what -------------------------------------------------------------------------------------------


@everywhere
@each_list
def test_a_change_in_a_message_changes_only_what_is_marked_as_its_own(provider: str, messages: list[Json]) -> None:
    before = wire(messages, SPEC_LIST, provider)
    for i, message in enumerate(messages):
        if not message["content"].strip():
            continue
        changed = deepcopy(messages)
        changed[i]["content"] = message["content"].replace(message["content"].strip()[-1], "Ü")
        after = wire(changed, SPEC_LIST, provider)
        for old, new in ((before.ours, after.ours), (before.theirs, after.theirs)):
            assert texts_of(old, i) != texts_of(new, i), f"message {i}"
            assert [row for row in old if row.owner != i] == [row for row in new if row.owner != i], f"message {i}"


@everywhere
def test_a_change_in_the_specs_changes_only_what_is_marked_as_theirs(provider: str) -> None:
    changed = deepcopy(SPEC_LIST)
    changed[0]["description"] = "Ü"
    before, after = (wire(two_cities(), specs, provider).theirs for specs in (SPEC_LIST, changed))
    assert texts_of(before, SPECS) != texts_of(after, SPECS)
    assert [row for row in before if row.owner != SPECS] == [row for row in after if row.owner != SPECS]


@everywhere
@each_list
def test_every_message_has_a_place_where_its_content_stands_unless_it_says_nothing(
    provider: str, messages: list[Json]
) -> None:
    wired = wire(messages, SPEC_LIST, provider)
    request = PROVIDERS[provider].request(messages, SPEC_LIST)
    for i, message in enumerate(messages):
        places = wired.places.get(i, [])
        silent = message["role"] == "assistant" and not message["content"].strip() and not message["tool_calls"]
        assert bool(places) or silent
        if places and "line" not in place_text(places):
            path = re.sub(r"^(\w+)", r"['\1']", place_text(places)).replace(".content", "['content']")
            path = path.removeprefix("['messages']") if provider == "JSON text" else path
            found = repr(eval(f"request{path}", {"request": request}))
            assert all(line in found for line in message["content"].splitlines()), f"message {i} at {path}"


def test_what_the_adapter_adds_is_nobodys() -> None:
    messages = [*two_cities(), {"role": "assistant", "content": "86.0 F.", "tool_calls": []}]
    assert [row.owner for row in wire(messages, [], "Anthropic").theirs if "Go on." in row.text] == [None]


# --- What is said of it --------------------------------------------------------------------------------------


def test_what_is_said_of_each_kind_of_message_is_so() -> None:
    messages = two_cities()
    claude, gpt = (PROVIDERS[name].request(messages, SPEC_LIST) for name in ("Anthropic", "OpenAI"))
    text = PROVIDERS["JSON text"].request(messages, SPEC_LIST)
    assert "system" in claude and {m["role"] for m in claude["messages"]} == {"user", "assistant"}
    assert [b["type"] for b in claude["messages"][1]["content"]] == ["text", "tool_use", "tool_use"]
    assert [(b["type"], "is_error" in b) for b in claude["messages"][2]["content"]] == [
        ("tool_result", False),
        ("tool_result", True),
    ]
    assert set(claude["tools"][0]) == {"name", "description", "input_schema"}
    assert [m["role"] for m in gpt["messages"]] == [m["role"] for m in messages]
    assert set(gpt["messages"][3]) == set(gpt["messages"][4]) == {"role", "tool_call_id", "content"}
    assert isinstance(gpt["messages"][2]["tool_calls"][0]["function"]["arguments"], str)
    assert [turn["role"] for turn in text] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert messages[0]["content"] in text[0]["content"] and "get_weather" in text[0]["content"]


def test_the_sentence_says_what_becomes_of_the_chosen_message_and_where() -> None:
    viewer = wire_viewer(two_cities(), SPEC_LIST)
    said: dict[tuple[str, int], str] = {}
    for provider in PROVIDERS:
        viewer.provider.value = provider
        for chosen in (0, 2, 4, 5, SPECS):
            viewer.choose(chosen)
            said[provider, chosen] = str(viewer.twin()[0])
    assert said["Anthropic", 0] == "Anthropic: Message 0 is no message there but a field of its own: system."
    assert said["Anthropic", 4] == (
        "Anthropic: Message 4 is a block tool_result in a turn of the user, marked as an error, "
        "beside 1 other message: messages[2].content[1]."
    )
    assert said["OpenAI", 4].endswith("only its text says that it is an error: messages[4].")
    assert said["Anthropic", 2].endswith("with 3 blocks (text, tool_use, tool_use): messages[1].")
    assert said["Anthropic", 5].endswith("with 1 block (tool_use): messages[3].")
    assert said["OpenAI", 5].endswith("calls holds a function, with the arguments as JSON text: messages[5].")
    assert said["OpenAI", SPECS].endswith("are the tools; each stands under the key function: tools.")
    assert said["JSON text", 4].endswith("no role tool, beside 1 other message: messages[3].content, line 2.")
    assert said["JSON text", 0].endswith("before the rules and the tools: messages[0].content, line 1.")
    assert said["JSON text", SPECS].endswith("the model knows of no tools: messages[0].content, lines 6 to 7.")


def test_a_reply_without_a_call_is_said_to_be_none_that_holds_calls() -> None:
    viewer = wire_viewer([*two_cities(), {"role": "assistant", "content": "86.0 F.", "tool_calls": []}], SPEC_LIST)
    viewer.choose(7)
    assert viewer.twin()[0] == "Anthropic: Message 7 is a turn of the assistant with 1 block (text): messages[5]."
    viewer.provider.value = "OpenAI"
    assert viewer.twin()[0] == "OpenAI: Message 7 is a message, as it is here: messages[7]."


def test_the_rules_of_json_text_are_nobodys_and_the_lines_of_the_tools_are_the_specs() -> None:
    rows = wire(two_cities(), SPEC_LIST, "JSON text").theirs
    specs = " ".join(text.strip() for text in texts_of(rows, SPECS))
    assert specs.startswith("'get_weather: ") and "c_to_f: " in specs and "Reply with one" not in specs
    assert any("Reply with one JSON object" in text for text in texts_of(rows, None))
    without = wire([{"role": "user", "content": "go"}], [], "JSON text")
    assert SPECS not in without.places and any("Reply with" in text for text in texts_of(without.theirs, None))


def test_the_twin_cuts_a_message_between_two_words() -> None:
    messages = two_cities()
    messages[1]["content"] = "How hot is it in the large old city of Pune today?"
    table = wire_viewer(messages, SPEC_LIST).twin()[1]
    assert table[2][0] == "1 user: How hot is it in the large old …"
    messages[1]["content"] = "x" * 60
    assert wire_viewer(messages, SPEC_LIST).twin()[1][2][0].startswith("1 user:")


def test_a_message_that_is_left_out_is_said_to_be() -> None:
    viewer = wire_viewer(hurried(), SPEC_LIST)
    viewer.choose(8)
    assert viewer.twin()[0] == "Anthropic: Message 8 is left out, for it says nothing."


# --- The widget ----------------------------------------------------------------------------------------------


def lit(area: Any) -> list[str]:
    """Return the texts of the rows that are lit."""
    return re.findall(r'<li class="ll-now".*?</span><span>(.*?)</span></li>', area.value)


def test_the_chosen_message_is_lit_on_both_sides() -> None:
    viewer = wire_viewer(two_cities(), SPEC_LIST)
    assert viewer.chosen == 3 and len(lit(viewer._ours)) == len(lit(viewer._theirs)) == 2
    assert "tool_call_id" in lit(viewer._ours)[0] and "tool_result" in lit(viewer._theirs)[0]
    viewer.provider.value = "OpenAI"
    assert viewer.chosen == 3 and "tool_call_id" in lit(viewer._theirs)[0]


def test_each_message_begins_with_the_mark_of_its_role_on_both_sides() -> None:
    viewer = wire_viewer(two_cities(), SPEC_LIST)
    roles = ["system", "user", "assistant", "tool", "error", "assistant", "tool"]
    for area in (viewer._ours, viewer._theirs):
        assert re.findall(r'class="ll-mark ll-(\w+)"', area.value) == roles


def test_the_buttons_move_from_the_first_message_to_the_specs() -> None:
    viewer = wire_viewer(two_cities(), SPEC_LIST)
    steps = []
    for name in ("First", "Next", "Last", "Back"):
        viewer.buttons[name].click()
        steps.append(viewer.chosen)
    assert steps == [0, 1, SPECS, 6]
    viewer.choose(SPECS)
    assert viewer.buttons["Next"].disabled and not viewer.buttons["First"].disabled
    assert "8 / 8" in viewer._position.value
    viewer.choose(99)
    assert viewer.chosen == SPECS and "there is no message 99; the last is 6" in viewer.error_box.value


@everywhere
def test_of_a_long_list_the_page_with_the_chosen_message_is_shown(provider: str) -> None:
    script = [asks(call(f"c{n}", "get_weather", city="Pune")) for n in range(30)]
    result = run_agent("How hot?", ScriptedModel(script), weather_world()[0], max_steps=30, token_budget=10**6)
    viewer = wire_viewer(result.messages, SPEC_LIST)
    viewer.provider.value = provider
    for chosen in [*range(0, len(result.messages), 7), SPECS]:
        viewer.choose(chosen)
        for area in (viewer._ours, viewer._theirs):
            assert lit(area) and area.value.count("<li") <= ROWS
    assert "rows above" in viewer._ours.value and "below" not in viewer._ours.value


def test_the_twin_says_where_each_message_stands_with_every_provider() -> None:
    bundle = wire_viewer(two_cities(), SPEC_LIST)._repr_mimebundle_()
    rows = [re.split(r"\s{2,}", line) for line in bundle["text/plain"].splitlines()[1:]]
    assert rows[0] == ["our list", "Anthropic", "OpenAI", "JSON text"] and len(rows) == 9
    assert rows[4][1:] == ["messages[2].content[0]", "messages[3]", "messages[3].content, line 1"]
    assert "<td>messages[2].content[0]</td>" in bundle["text/html"] and "style" not in bundle["text/html"]


def evil_list() -> tuple[list[Json], list[Json]]:
    """Return a list and specs that are full of markup."""
    registry = ToolRegistry()
    parameters = {"type": "object", "properties": {EVIL: {"type": "string", "description": EVIL}}}
    registry.register("t", EVIL, parameters, lambda **args: EVIL)
    script = [asks(ToolCall(EVIL, EVIL, {EVIL: EVIL}), call("c2", "t", **{EVIL: EVIL}), text=EVIL)]
    return run_agent(EVIL, ScriptedModel(script), registry, EVIL, max_steps=1).messages, registry.specs()


@everywhere
def test_every_value_is_escaped(provider: str) -> None:
    viewer = wire_viewer(*evil_list())
    viewer.provider.value = provider
    for chosen in (0, 1, 2, 3, 4, SPECS):
        viewer.choose(chosen)
        assert not viewer.error_box.value
        shown = viewer._say.value + viewer._ours.value + viewer._theirs.value
        assert "<img" not in shown and "<b>hi" not in shown and "&lt;img" in shown
    assert "<img" not in viewer._repr_mimebundle_()["text/html"]


def test_a_list_without_specs_has_none_to_choose() -> None:
    viewer = wire_viewer(two_cities(), [])
    viewer.buttons["Last"].click()
    assert viewer.chosen == 6 and "7 / 7" in viewer._position.value


def test_half_an_emoji_is_shown_as_it_is_sent() -> None:
    messages = two_cities()
    messages[1]["content"] = "\ud83d"
    viewer = wire_viewer(messages, SPEC_LIST)
    assert not viewer.error_box.value
    viewer._theirs.value.encode("utf-8")
    viewer._ours.value.encode("utf-8")


@pytest.mark.parametrize("messages", [[], [{"role": "user"}], two_cities()[:4]])
def test_a_list_that_no_provider_would_accept_is_refused_in_a_sentence(messages: list[Json]) -> None:
    with pytest.raises(ValueError, match="message|task|observation"):
        wire_viewer(messages, SPEC_LIST)


@pytest.mark.parametrize(("messages", "specs", "kind"), [
    (None, SPEC_LIST, "NoneType"), (SimpleNamespace(messages=two_cities()), SPEC_LIST, "SimpleNamespace"),
    (two_cities(), ToolRegistry(), "ToolRegistry")])
def test_a_result_or_a_registry_in_the_place_of_a_list_is_a_sentence(messages: Any, specs: Any, kind: str) -> None:
    with pytest.raises(ValueError, match=rf"takes result.messages and registry.specs\(\), and not {kind}$"):
        wire_viewer(messages, specs)


def names_in(value: Any) -> set[str]:
    """Return each key in a value, alone and with what stands under it."""
    value = getattr(value, "__dict__", value)
    items = list(value.items()) if isinstance(value, dict) else []
    found = {name for key, item in items for name in (key, f"{key}: {item!r}", f"{key}: '{str(item)[:6]}…'")}
    parts = value if isinstance(value, list) else [item for _, item in items]
    return found.union(*map(names_in, parts))


def test_each_name_that_the_page_compares_is_a_key_or_a_key_with_its_value_on_that_wire():
    script = [asks(call("a", "get_weather", city="Atlantis")), final("ok")]
    registry = weather_world()[0]
    shown, specs = run_agent("go", ScriptedModel(script), registry).messages[:-1], registry.specs()
    replies = [ModelReply("It is", stop_reason=reason) for reason in ("truncated", "refused")]
    replies += [replace(reply, usage=Usage(10, 2)) for reply in script]
    anthropic = {"model": "m", "max_tokens": 1} | to_anthropic(shown, specs)
    openai = {"model": "m", "max_completion_tokens": 1} | to_openai(shown, specs)
    wires = [[shown, specs, replies], [anthropic, [as_anthropic(reply, anthropic) for reply in replies]],
             [openai, [as_openai(reply, openai) for reply in replies]]]
    for names, found in zip(zip(*[row[1:] for row in NAMES]), map(names_in, wires)):
        assert set(names) - found <= {"–"}
    assert not {"tool", "call", "is_error: False", "role: 'too'"} & names_in(wires)
