"""You are the model: the loop is run with the reader's replies, and nothing else happens."""

from __future__ import annotations

import itertools
import re

import pytest

from agentloop import (
    WEATHER_TASK, ModelReply, ScriptedModel, ToolCall, ToolRegistry, asks, call, final, run_agent, weather_script,
    weather_world,
)
from looplab import you_are_the_model
from looplab.reply_form import Draft, draft_of, fields_note, forecast, sample_args
from looplab.seat import Game, fate_of_calls, game_script, harness_facts, play_on, what_happened
from looplab.signatures import signature
from looplab.typed import NotJson

EVIL = '<img src=x onerror="alert(1)"><b>hi</b> a < b & c </pre>'


def game(*replies, **limits):
    return Game(WEATHER_TASK, weather_world, replies=replies, **limits)


def run_code(code):
    """Run the code of a script and return the result of its run."""
    names: dict = {}
    exec(compile(code, "script", "exec"), names)
    return names["result"]


# --- The game ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", range(3))
def test_the_reader_is_given_what_a_model_is_given(given):
    script = weather_script()
    model = ScriptedModel(script)
    run_agent(WEATHER_TASK, model, weather_world()[0])
    position = play_on(game(*script[:given]))
    assert position.result.messages == model.seen[given]
    assert position.specs == weather_world()[0].specs()
    assert position.waits


WRONG = call("c1", "c_to_f", celsius="30")
ENDS = {
    "done": game(final("It is hot.")),
    "step_limit": game(asks(WRONG), asks(WRONG), max_steps=2),
    "token_budget": game(asks(WRONG), token_budget=200),
    "truncated": game(ModelReply("It is", stop_reason="truncated")),
    "refused": game(ModelReply("No.", stop_reason="refused")),
    "empty_reply": game(ModelReply(stop_reason="empty_reply")),
}


@pytest.mark.parametrize("status", ENDS)
def test_the_game_ends_by_each_exit_of_the_loop(status):
    position = play_on(ENDS[status])
    assert (position.result.status, position.over, position.waits) == (status, True, False)
    words, role, reason = what_happened(position)
    assert (words, role) == (f"Exit: {status}.", "exit")
    assert str(position.result.tokens) in reason


def test_a_budget_that_no_prompt_fits_ends_the_game_before_it_begins():
    assert play_on(game(token_budget=100)).result.status == "token_budget"


OBSERVATIONS = {
    "an unknown tool": (call("c1", "get_forecast"), "unknown tool 'get_forecast'"),
    "a missing argument": (call("c1", "get_weather"), "missing required argument 'city'"),
    "arguments that are no object": (ToolCall("c1", "get_weather", "Pune"), "arguments must be a JSON object"),
    "a function that raises": (call("c1", "get_weather", city="Atlantis"), "get_weather failed: KeyError: 'Atlantis'"),
}


@pytest.mark.parametrize("kind", OBSERVATIONS)
def test_nonsense_comes_back_as_an_observation(kind):
    nonsense, said = OBSERVATIONS[kind]
    position = play_on(game(asks(nonsense)))
    assert said in position.result.messages[-1]["content"]
    assert (position.news, position.waits) == ([3], True)


def test_what_ran_is_what_the_world_says_ran():
    registry, ran = weather_world()
    replies = (asks(call("c1", "get_weather", city="Pune"), WRONG, call("c3", "nothing")),)
    position = play_on(Game(WEATHER_TASK, registry, replies=replies))
    assert ran == ["get_weather(Pune)"]
    assert [did for _, did in position.executed] == [True, False, False]
    assert harness_facts(position)["what ran"] == 'get_weather(city="Pune")'
    assert fate_of_calls(position) == "1 of your 3 calls ran"


FATES = [
    ([call("c1", "get_weather", city="Pune")], "Your call ran"),
    ([call("c1", "get_weather", city="Atlantis")], "Your call ran and failed"),
    ([WRONG], "Your call did not run"),
    ([WRONG, call("c2", "nothing")], "None of your 2 calls ran"),
    ([call("c1", "get_weather", city="Pune"), call("c2", "get_weather", city="Delhi")], "2 of your 2 calls ran"),
]


@pytest.mark.parametrize(("calls", "fate"), FATES)
def test_the_sentence_says_how_many_calls_ran(calls, fate):
    assert fate_of_calls(play_on(game(asks(*calls)))) == fate


def test_only_the_observations_since_the_last_reply_are_new():
    position = play_on(game(asks(WRONG), asks(call("c2", "get_weather", city="Pune"), call("c3", "nothing"))))
    assert position.news == [5, 6]
    assert play_on(game()).news == []


def test_the_harness_knows_the_step_the_budget_and_the_next_prompt():
    facts = harness_facts(play_on(game(*weather_script()[:2])))
    assert facts["step"] == "3 of 8"
    assert facts["spent"] == "411 of 4,000 tokens; this prompt about 254"
    assert facts["what did not"] == ""


def test_one_turn_ends_after_one_reply_though_the_run_does_not():
    position = play_on(game(asks(WRONG), turns=1))
    assert not position.waits and not position.over
    assert what_happened(position)[0] == "That was one turn."


@pytest.mark.parametrize("world", [weather_world, lambda: weather_world()[0], weather_world()[0]])
def test_a_world_is_a_registry_or_a_function_that_makes_one_alone_or_first_of_a_tuple(world):
    assert play_on(Game(WEATHER_TASK, world, replies=tuple(weather_script()))).result.status == "done"


@pytest.mark.parametrize("limits", [{"max_steps": 0}, {"token_budget": 0}, {"turns": 0}])
def test_limits_and_turns_below_one_are_refused_with_a_sentence(limits):
    with pytest.raises(ValueError, match="must be at least 1"):
        you_are_the_model(WEATHER_TASK, weather_world, **limits)


# --- The script ----------------------------------------------------------------------------------------------

REPLIES = [
    final("It is 86.0 F in Pune."),
    ModelReply("It is 8", stop_reason="truncated"),
    asks(call("", "get_weather", city="Pune"), text='He said "hot",\nthen it\'s 30 °C \\ done'),
    asks(call("", "get_weather", city="Pune"), call("", "get_weather", city="Delhi"), call("", "c_to_f", celsius=1.5)),
    asks(ToolCall("", "get_weather", ["Pune", None, True])),
    asks(ToolCall("", "no tool", {"class": 1, "a b": {"deep": [1.5]}})),
    asks(call("", "get_forecast", name="x", call_id=2)),
    asks(ToolCall("", "final(", {"ﬁ": "a ligature"})),
]


def with_ids(replies):
    """Number the calls of a game, as the seat does."""
    numbers = itertools.count(1)
    return [ModelReply(reply.content, [ToolCall(f"c{next(numbers)}", c.name, c.args) for c in reply.tool_calls],
                       stop_reason=reply.stop_reason) for reply in replies]


@pytest.mark.parametrize("limits", [{}, {"max_steps": 1}, {"token_budget": 500}])
@pytest.mark.parametrize("length", [1, 2])
def test_the_saved_script_runs_and_gives_the_same_messages(length, limits):
    for replies in itertools.product(REPLIES, repeat=length):
        position = play_on(game(*with_ids(replies), **limits))
        result = run_code(game_script(position))
        assert result.messages == position.result.messages
        assert result.tokens == position.result.tokens
        assert result.status == (position.result.status if position.over else "step_limit")


def test_a_script_checks_how_the_run_ends():
    code = game_script(play_on(game(*weather_script())))
    assert "assert result.status == 'done'" in code
    with pytest.raises(AssertionError):
        run_code(code.replace("final('It is 86.0 F in Pune.')", "asks(call('c9', 'get_weather'))")
                 .replace("max_steps=8", "max_steps=3"))


def test_a_script_imports_only_what_it_uses():
    code = game_script(play_on(game(final("Hot."))))
    assert code.startswith("import agentloop\nfrom agentloop import ScriptedModel, final, weather_world\n")


def test_a_script_that_runs_in_a_cell_leaves_a_loop_of_the_readers_own_in_place():
    names = {"run_agent": own_world}
    exec(compile(game_script(play_on(game(*weather_script()))), "script", "exec"), names)
    assert names["run_agent"] is own_world and names["result"].status == "done"


def own_world():
    registry = ToolRegistry()
    registry.register("ping", "Say pong.", {}, lambda: "pong")
    return registry


def test_a_script_in_a_world_of_the_readers_own_makes_it_anew():
    position = play_on(Game("go", own_world, replies=(asks(call("c1", "ping")),)))
    assert run_code(game_script(position)).messages == position.result.messages


def test_a_script_for_a_registry_that_has_no_name_is_run_where_it_is_known():
    position = play_on(Game("go", own_world(), replies=(asks(call("c1", "ping")),)))
    names = {"registry": own_world()}
    exec(compile(game_script(position), "script", "exec"), names)
    assert names["result"].messages == position.result.messages


def test_without_a_reply_there_is_no_script_yet():
    assert game_script(play_on(game())) == "# no reply yet"


# --- The draft -----------------------------------------------------------------------------------------------


def test_a_call_in_the_fields_is_part_of_the_reply():
    draft = Draft("First.", (("get_weather", {"city": "Pune"}),), "c_to_f", '{"celsius": 30}')
    expected = [ToolCall("c4", "get_weather", {"city": "Pune"}), ToolCall("c5", "c_to_f", {"celsius": 30})]
    assert draft.reply(first_id=4) == ModelReply("First.", expected)


def test_a_call_that_is_half_written_is_not_sent():
    assert not Draft().is_ready
    for draft in (Draft(tool="c_to_f"), Draft(args="{}"), Draft(tool="c_to_f", args='{"celsius": 30')):
        assert not draft.is_ready
        with pytest.raises(ValueError, match="."):
            draft.reply()
    with pytest.raises(NotJson):
        Draft(tool="c_to_f", args="{").reply()


def test_a_reply_and_its_draft_say_the_same():
    reply = asks(call("c1", "get_weather", city="Pune"), text="First.")
    assert draft_of(reply).reply() == reply


FORECASTS = [
    (Draft("It is hot."), "asks for no call, so it is the answer and ends the run: done."),
    (Draft(), "Nothing is written yet"),
    (Draft("", (("a", {}), ("b", {}))), "asks for 2 calls, so the run goes on"),
    (Draft(tool="c_to_f", args="{}"), "asks for 1 call, so the run goes on"),
    (Draft(tool="c_to_f", args="{"), "A call is not finished"),
    (Draft("", (("a", {}),), stop_reason="refused"), "its calls do not run, and the run ends: refused."),
]


@pytest.mark.parametrize(("draft", "said"), FORECASTS)
def test_one_sentence_says_what_sending_will_do(draft, said):
    assert said in re.sub("<[^>]*>", "", forecast(draft))


def test_the_line_under_the_fields_says_how_the_call_reads():
    assert "c_to_f(celsius=30)" in fields_note(Draft(tool="c_to_f", args='{"celsius": 30}'))
    assert "Not JSON yet:" in fields_note(Draft(tool="c_to_f", args='{"celsius": 30'))


@pytest.mark.parametrize(("draft", "said"), [
    (Draft(tool="c"), "No arguments yet:"), (Draft(args="{}"), "No tool yet:"),
])
def test_an_empty_field_of_a_call_is_told_and_is_no_mistake(draft, said):
    note = fields_note(draft)
    assert said in note and "ll-bad" not in note
    seat = you_are_the_model()
    seat.form.tool.value, seat.form.args.value = draft.tool, draft.args
    assert seat.send_button.disabled and "ll-invalid" not in seat.form.args._dom_classes
    seat.form.args.value = "{"
    assert "ll-invalid" in seat.form.args._dom_classes


def test_an_empty_field_shows_arguments_of_the_right_shape():
    get_weather, c_to_f = weather_world()[0].specs()
    assert (sample_args(get_weather), sample_args(c_to_f)) == ('{"city": "…"}', '{"celsius": 0}')
    assert sample_args(None) == "{}"


def test_a_signature_puts_brackets_around_what_may_be_left_out():
    spec = {"name": "f", "description": "", "parameters": {"required": ["a"], "properties": {
        "a": {"type": "string"}, "b": {"type": "integer"}}}}
    assert signature(spec) == "f(a: string, [b: integer])"


# --- The widget ----------------------------------------------------------------------------------------------


def reply_in(seat, text="", tool="", args=""):
    """Write a reply into the form and press the button."""
    seat.form.text.value, seat.form.tool.value, seat.form.args.value = text, tool, args
    seat.send_button.click()


def test_a_game_is_played_to_its_end_with_the_form():
    seat = you_are_the_model(WEATHER_TASK, weather_world)
    reply_in(seat, "I will look up Pune first.", "get_weather", '{"city": "Pune"}')
    reply_in(seat, tool="c_to_f", args='{"celsius": 30}')
    reply_in(seat, "It is 86.0 F in Pune.")
    assert (seat.result.status, seat.result.answer) == ("done", "It is 86.0 F in Pune.")
    assert seat.result.messages == run_agent(WEATHER_TASK, ScriptedModel(weather_script()), weather_world()[0]).messages
    assert run_code(seat.script).messages == seat.result.messages
    assert seat.send_button.disabled and seat.form.text.disabled


def test_undo_takes_the_last_reply_back_into_the_form():
    seat = you_are_the_model(WEATHER_TASK, weather_world)
    before = seat.result
    reply_in(seat, "First.", "get_weather", '{"city": "Pune"}')
    seat.undo_button.click()
    assert seat.result == before
    assert seat.form.draft == Draft("First.", (("get_weather", {"city": "Pune"}),))
    assert seat.undo_button.disabled


def test_a_double_click_sends_one_reply_and_takes_one_back():
    seat = you_are_the_model(WEATHER_TASK, weather_world)
    reply_in(seat, tool="get_weather", args='{"city": "Pune"}')
    seat.send()
    assert len(seat.game.replies) == 1
    seat.undo()
    seat.undo()
    assert (seat.game.replies, seat.error_box.value) == ((), "")


def test_a_text_of_blanks_alone_is_no_reply():
    seat = you_are_the_model(WEATHER_TASK, weather_world)
    seat.form.text.value = " \n"
    assert seat.send_button.disabled and seat.form.draft == Draft()


def test_undo_leaves_alone_what_is_being_written():
    seat = you_are_the_model(WEATHER_TASK, weather_world)
    reply_in(seat, tool="get_weather", args='{"city": "Pune"}')
    seat.form.text.value = "something new"
    seat.undo_button.click()
    assert seat.form.draft == Draft("something new") and "is undone, and kept for Redo" in seat._say.value
    seat.redo_button.click()
    assert seat.form.draft == Draft("something new")
    assert seat.game.replies[0].tool_calls == [ToolCall("c1", "get_weather", {"city": "Pune"})]


def test_replies_that_were_undone_can_be_given_again_one_after_the_other():
    seat = you_are_the_model(WEATHER_TASK, weather_world)
    for text, city in (("First.", "Pune"), ("Second.", "Delhi"), ("Third.", "Atlantis")):
        reply_in(seat, text, "get_weather", f'{{"city": "{city}"}}')
    played = seat.result
    for text in ("Third.", "Second.", "First."):
        seat.undo_button.click()
        assert seat.form.draft.text == text
    for _ in range(3):
        seat.redo_button.click()
    assert seat.result == played and seat.form.draft == Draft() and seat.redo_button.disabled


def test_a_reply_that_was_undone_and_sent_again_is_not_left_for_redo():
    seat = you_are_the_model(WEATHER_TASK, weather_world)
    reply_in(seat, tool="get_weather", args='{"city": "Pune"}')
    seat.undo_button.click()
    seat.send_button.click()
    assert len(seat.game.replies) == 1 and seat.redo_button.disabled


def test_calls_are_added_and_removed_one_by_one():
    seat = you_are_the_model(WEATHER_TASK, weather_world)
    for city in ("Pune", "Delhi"):
        seat.form.tool.value, seat.form.args.value = "get_weather", f'{{"city": "{city}"}}'
        seat.form.add.click()
    assert seat.form.draft.calls == (("get_weather", {"city": "Pune"}), ("get_weather", {"city": "Delhi"}))
    assert (seat.form.tool.value, seat.form.args.value) == ("", "")
    gone = seat.form._rows.children[0].children[1].children[0]
    for _ in range(2):  # a double click
        gone.click()
    assert seat.form.draft.calls == (("get_weather", {"city": "Delhi"}),)
    last = seat.form._rows.children[0].children[1].children[0]
    seat.send_button.click()
    last.click()
    assert len(seat.game.replies) == 1 and "That did not work" not in seat.form._note.value


def test_no_half_filled_form_is_told_of():
    seat = you_are_the_model(WEATHER_TASK, weather_world)
    seat.form.tool.value, seat.form.args.value = "get_weather", '{"city": "Pune"}'
    told, could_send = [], []
    seat.form._note.observe(lambda change: told.append(change["new"]), "value")
    seat.send_button.observe(lambda change: could_send.append(not change["new"]), "disabled")
    seat.form.add.click()
    assert len(told) == 1 and "No call begun." in told[0] and could_send == []
    seat.send_button.click()
    seat.undo_button.click()
    assert [text for text in told if "yet" in text] == [] and could_send == [False, True]


def test_bad_json_keeps_what_was_typed_and_cannot_be_sent():
    seat = you_are_the_model(WEATHER_TASK, weather_world)
    reply_in(seat, "text", "c_to_f", '{"celsius": 30')
    assert seat.form.draft == Draft("text", (), "c_to_f", '{"celsius": 30')
    assert seat.send_button.disabled and seat.form.add.disabled
    seat.send()  # as a click that was under way would
    assert seat.game.replies == () and "Not JSON" not in seat.error_box.value and seat.error_box.value


def test_begin_again_brings_the_reply_of_one_turn_back_into_the_form():
    seat = you_are_the_model(WEATHER_TASK, weather_world, turns=1)
    reply_in(seat, tool="get_weather", args='{"city": "Pune"}')
    assert seat.undo_button.description == "Begin again" and seat.form.text.disabled
    seat.undo_button.click()
    assert seat.game.replies == () and not seat.form.text.disabled
    assert seat.form.draft == Draft("", (("get_weather", {"city": "Pune"}),))
    assert "is undone, and back in the form" in seat._say.value


def test_a_world_that_breaks_is_shown_as_a_sentence_and_the_game_stays():
    worlds = iter([weather_world()[0]])
    seat = you_are_the_model(WEATHER_TASK, lambda: next(worlds))
    reply_in(seat, "hello")
    assert "That did not work: StopIteration" in seat.error_box.value
    assert seat.game.replies == () and seat.form.text.value == "hello"


def test_every_value_in_the_view_is_escaped():
    registry = ToolRegistry()
    schema = {"properties": {"q": {"type": "string", "description": EVIL}}, "required": ["q"]}
    registry.register("t", EVIL, schema, lambda q: q)
    seat = you_are_the_model(EVIL, registry)
    seat.switch.value = True
    for tool, args in (("t", '{"q": "<b>hi</b>"}'), (EVIL, '{"<b>hi</b>": "<img>"}')):
        seat.form.tool.value, seat.form.args.value = tool, args
        seat.form.add.click()
    reply_in(seat, EVIL, "<img>", '{"<b>hi</b>": "<img>"}')
    html = " ".join(area.value for area in every_area(seat))
    assert "<img" not in html and "<b>hi" not in html and "&lt;img" in html


def every_area(widget):
    """Yield each widgets.HTML in a widget."""
    if type(widget).__name__ == "HTML":
        yield widget
    for child in getattr(widget, "children", ()):
        yield from every_area(child)


def test_the_harness_is_not_shown_unless_it_is_asked_for():
    seat = you_are_the_model(WEATHER_TASK, weather_world)
    assert not any("4,000" in area.value for area in every_area(seat))
    seat.switch.value = True
    assert any("0 of 4,000 tokens" in area.value for area in every_area(seat))


def test_the_static_twin_says_what_the_reader_is_given():
    bundles = [you_are_the_model(WEATHER_TASK, weather_world)._repr_mimebundle_() for _ in range(2)]
    twins = [(bundle["text/html"], bundle["text/plain"]) for bundle in bundles]
    assert twins[0] == twins[1]
    for twin in twins[0]:
        assert "You are the model." in twin and "How hot is Pune in Fahrenheit?" in twin and "c_to_f" in twin
    assert "class=" not in twins[0][0] and "style" not in twins[0][0]
