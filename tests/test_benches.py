"""The benches: what each shows is what the validator, the registry or the loop really did."""

from __future__ import annotations

import itertools
import json
import re
import xml.etree.ElementTree as ElementTree

import ipywidgets
import pytest

import looplab
from agentloop import (
    WEATHER_TASK, SchemaError, ScriptedModel, ToolRegistry, asks, call, check_schema, final, validate_args,
    weather_script, weather_world,
)
from looplab import exits, gates, room, validator
from looplab.builder import RAN_OUT, Script, perform, performance_words, script_code
from looplab.checklist import Check, checks_html
from looplab.prediction import compare
from looplab.recordings import FOLDER
from looplab.scripts import SCRIPTS
from looplab.typed import NotJson, read_json
from looplab.view import AS_TYPED

EVIL = '<img src=x onerror="alert(1)"><b>hi</b> a < b & c </pre>'


def every(widget, kind):
    """Yield each widget of a kind in a widget."""
    if isinstance(widget, kind):
        yield widget
    for child in getattr(widget, "children", ()):
        yield from every(child, kind)


def html_of(widget):
    """Return all HTML that a widget shows."""
    return " ".join(area.value for area in every(widget, ipywidgets.HTML))


def run_code(code):
    """Run the code of a script and return the result of its run."""
    names: dict = {}
    exec(compile(code, "script", "exec"), names)
    return names["result"]


# --- JSON that a person types --------------------------------------------------------------------------------

NOT_JSON = {
    "": "nothing is typed. An object without members is written `{}`.",
    "   ": "nothing is typed. An object without members is written `{}`.",
    '{"celsius": 30': "a `}` or `,` is missing at the end.",
    '["a", {"b": 1}': "a `]` or `,` is missing at the end.",
    '{"celsius":': "it breaks off; the end must be `}`.",
    '{"city": "Pun': 'a `"` is missing at the end of a text.',
    '{"city": "Pune\\"}': 'a `"` is missing at the end of a text.',
    "{'city': 'Pune'}": 'text stands in double quotes, as in `"Pune"`.',
    "{city: 1}": 'text stands in double quotes, as in `"Pune"`.',
    '{"ok": True}': "JSON writes `true`, `false` and `null`.",
    '{"x": NaN}': "`NaN` and `Infinity` are not JSON.",
    '{"a": 1,}': "there is a comma too many before `}`.",
    '{"a": 1 "b": 2}': "it cannot be read from character 9 on.",
    "{} {}": "it is whole before character 4, and nothing may follow.",
    '{"type": "object"} trailing': "it is whole before character 20, and nothing may follow.",
    '{"x": 1e999}': "JSON has no such number, character or depth.",
    '{"x": "\\ud83d"}': "JSON has no such number, character or depth.",
    "[" * 100_000: "it breaks off; the end must be `]`.",
    "[" * 200 + "]" * 200: "JSON has no such number, character or depth.",
    "[" * 100_000 + "]" * 100_000: "JSON has no such number, character or depth.",
}


@pytest.mark.parametrize("text", NOT_JSON, ids=range(len(NOT_JSON)))
def test_what_is_not_json_yet_is_said_in_our_own_words(text):
    with pytest.raises(NotJson) as problem:
        read_json(text)
    assert str(problem.value) == NOT_JSON[text]


@pytest.mark.parametrize("text", ['{"a": [1, -2.5e3, true, null, "\\u00e9 \'x\' {"]}', '"text"', "30", " {} "])
def test_what_is_json_is_read(text):
    assert read_json(text) == json.loads(text)


def test_each_beginning_of_a_text_is_json_or_has_a_sentence():
    text = '{"city": "P\\"une", "days": [1, -2.5e+3, true, false, null], "x": {"y": {}}}'
    for end in range(len(text)):
        with pytest.raises(NotJson, match=r"\.$"):
            read_json(text[:end])


# --- Validator bench -----------------------------------------------------------------------------------------

SCHEMA = {"properties": validator.PROPERTIES, "required": ["city", "celsius"]}
VALUES = ["Pune", 30, 3.0, True, None, [1]]


def every_args():
    """Yield objects with each choice of names and values, in both orders, and what is no object."""
    yield from ([], "text", None, 1)
    for size in range(4):
        for names in itertools.permutations(["city", "celsius", "unit"], size):
            for values in itertools.product(VALUES, repeat=size):
                yield dict(zip(names, values))


def test_the_check_that_spoke_is_the_one_whose_sentence_the_validator_says():
    for args in every_args():
        judgement = validator.judge_args(SCHEMA, args)
        verdict = validate_args(args, SCHEMA)
        answers = [check.answer for check in judgement.checks]
        assert judgement.verdict == verdict
        assert [check.spoke for check in judgement.checks].count(True) == (verdict is not None)
        if verdict is None:
            assert set(answers) == {"yes"}
        else:
            first = answers.index("no")
            assert judgement.checks[first].spoke
            assert set(answers[:first]) == {"yes"} and set(answers[first + 1 :]) <= {""}


VERDICTS = {
    "fits": None,
    "missing": "missing required argument 'city'",
    "text for number": "argument 'celsius' must be of type number",
    "bool for number": "argument 'celsius' must be of type number",
    "3.0 for integer": "argument 'days' must be of type integer",
    "null": "argument 'city' must be of type string",
    "extra": "unexpected argument 'unit'",
    "list": "arguments must be a JSON object",
    "JSON text": "arguments must be a JSON object",
    "three mistakes": "missing required argument 'city'",
}


@pytest.mark.parametrize("name", VERDICTS)
def test_each_classic_mistake_meets_its_sentence(name):
    properties, args = validator.PRESETS[name]
    assert validator.judge_texts(validator.schema_text(properties), args).verdict == VERDICTS[name]


@pytest.mark.parametrize("name", validator.PRESETS.keys() - VERDICTS.keys())
def test_a_schema_that_cannot_be_checked_is_refused_before_any_argument(name):
    properties, args = validator.PRESETS[name]
    judgement = validator.judge_texts(validator.schema_text(properties), args)
    with pytest.raises(SchemaError) as refusal:
        check_schema(json.loads(validator.schema_text(properties)))
    assert (judgement.verdict, judgement.by_schema) == (str(refusal.value), True)
    assert [check.spoke for check in judgement.checks] == [True, False, False, False]


def test_a_schema_that_is_no_object_is_refused_too():
    assert validator.judge_texts("[1]", "{}").by_schema


def test_the_validator_bench_shows_each_preset_and_follows_the_fields():
    bench = looplab.validator_bench()
    for name in validator.PRESETS:
        bench.preset.value = name
        assert bench.preset.value == name
        assert bench.error_box.value == ""
    bench.preset.value = "fits"
    bench.args.value = '{"celsius": 30}'
    assert bench.preset.value == "missing"
    bench.args.value = '{"celsius": 31}'
    assert bench.preset.value == AS_TYPED
    assert "missing required argument &#x27;city&#x27;" in html_of(bench)
    for name, args in (("array", validator.PRESETS["array"][1]), (AS_TYPED, '{"celsius": 31}')):
        bench.preset.value = name
        assert bench.args.value == args


def test_the_validator_bench_keeps_bad_json_and_checks_nothing():
    bench = looplab.validator_bench()
    bench.args.value = '{"city": '
    assert bench.args.value == '{"city": ' and "Not JSON yet:" in html_of(bench)
    assert bench.judgement.not_json == "arguments"
    assert {check.answer for check in bench.judgement.checks} == {""}
    bench.schema.value = "{"
    assert bench.judgement.not_json == "schema"


# --- Call bench ----------------------------------------------------------------------------------------------

GATES = {
    "runs": None,
    "unknown tool": 1,
    "missing argument": 2,
    "text for number": 2,
    "unexpected argument": 2,
    "no object": 2,
    "raises": 3,
    "two mistakes": 1,
}


@pytest.mark.parametrize("name", gates.PRESETS)
def test_each_call_meets_its_gate_and_the_world_says_whether_it_ran(name):
    tool, text = gates.PRESETS[name]
    registry, ran = weather_world()
    tried = gates.try_call(registry, tool, json.loads(text))
    assert tried.stopped_at == GATES[name]
    assert tried.ran == bool(ran)
    assert tried.observation == weather_world()[0].execute(tool, json.loads(text))
    assert [gate.spoke for gate in tried.gates] == [n == tried.stopped_at for n in (1, 2, 3)]


def test_a_result_that_is_not_json_stops_at_the_third_gate():
    registry = ToolRegistry()
    registry.register("tags", "Tags.", {}, lambda: {1})
    assert gates.try_call(registry, "tags", {}).stopped_at == 3


def test_a_result_that_reads_like_an_error_is_none():
    registry = ToolRegistry()
    registry.register("log", "Log.", {}, lambda: "ERROR: in the log")
    assert gates.try_call(registry, "log", {}).stopped_at is None


def test_a_call_runs_once_each_time_the_button_is_pressed_and_not_while_it_is_typed():
    registry, ran = weather_world()
    bench = looplab.call_bench(registry)
    assert ran == ["get_weather(Pune)"]
    bench.args.value = '{"city": "Delhi"}'
    assert len(ran) == 1
    bench.run_button.click()
    bench.run_button.click()
    assert ran == ["get_weather(Pune)", "get_weather(Delhi)", "get_weather(Delhi)"]
    assert "let it through. Tried 2 times." in html_of(bench), "a press that changes nothing else is seen"
    bench.args.value = '{"city": '
    bench.run()
    assert len(ran) == 3 and bench.error_box.value == ""


def test_an_example_is_let_go_when_the_call_is_edited_and_can_be_chosen_again():
    registry, ran = weather_world()
    bench = looplab.call_bench(registry)
    bench.args.value = '{"city": "Delhi"}'
    assert bench.preset.value == AS_TYPED and "Not run yet." in html_of(bench)
    bench.preset.value = "runs"
    assert bench.args.value == '{"city": "Pune"}' and ran == ["get_weather(Pune)", "get_weather(Pune)"]
    bench.preset.value = AS_TYPED
    assert bench.args.value == '{"city": "Delhi"}' and len(ran) == 2, "what was typed is back, and did not run"


def test_a_call_that_is_not_json_is_kept_and_cannot_run():
    bench = looplab.call_bench()
    bench.args.value = '{"city": '
    assert bench.run_button.disabled and bench.args.value == '{"city": '
    assert "Not JSON yet:" in html_of(bench)


def test_the_call_bench_shows_a_registry_of_the_readers_own():
    registry = ToolRegistry()
    registry.register("ping", "Say pong.", {}, lambda: "pong")
    bench = looplab.call_bench(registry)
    assert (bench.tried.observation, bench.error_box.value) == ('"pong"', "")
    assert "Say pong." in html_of(bench)


def test_a_registry_without_tools_is_refused_with_a_sentence():
    with pytest.raises(ValueError, match="the registry has no tool that could be called: register one first"):
        looplab.call_bench(ToolRegistry())


# --- Script builder ------------------------------------------------------------------------------------------


def test_a_composed_script_runs_and_its_code_gives_the_same_messages():
    bench = looplab.script_builder([])
    drafts = [("get_weather", '{"city": "Pune"}', "First."), ("c_to_f", '{"celsius": 30}', ""), ("", "", "86.0")]
    for tool, args, text in drafts:
        bench.form.text.value, bench.form.tool.value, bench.form.args.value = text, tool, args
        bench.add_button.click()
    result = bench.performance.result
    assert (result.status, result.answer) == ("done", "86.0")
    assert run_code(bench.code) == result


@pytest.mark.parametrize("used", range(4))
@pytest.mark.parametrize(("max_steps", "token_budget"), [(8, 4000), (1, 4000), (8, 300)])
def test_the_code_of_any_script_gives_the_messages_of_its_run(used, max_steps, token_budget):
    script = Script(tuple(weather_script()[:used]), max_steps, token_budget)
    performance = perform(script)
    if used:
        assert run_code(script_code(performance)).messages == performance.result.messages


def test_a_script_that_is_too_short_is_a_sentence_and_its_messages_are_kept():
    performance = perform(Script((asks(call("c1", "get_weather", city="Pune")),)))
    assert performance.result.status == RAN_OUT
    assert performance_words(performance)[2] == "it has 1 reply, and the loop asks for one more. Add a reply."
    assert [message["role"] for message in performance.result.messages] == ["system", "user", "assistant", "tool"]


def test_replies_that_were_not_asked_for_are_counted():
    performance = perform(Script((final("Hot."), final("Hotter."))))
    assert performance.unused == 1
    assert performance_words(performance)[2].endswith("Replies that were not asked for: 1.")


def test_replies_are_removed_one_by_one_and_ids_stay_unique():
    bench = looplab.script_builder()
    gone = bench._rows.children[0].children[1].children[0]
    for _ in range(2):  # a double click
        gone.click()
    assert len(bench.script.replies) == 2
    bench.form.tool.value, bench.form.args.value = "c_to_f", '{"celsius": 1}'
    bench.add_button.click()
    assert [c.id for reply in bench.script.replies for c in reply.tool_calls] == ["c2", "c3"]
    bench.clear_button.click()
    assert bench.script.replies == () and bench.performance.result.status == RAN_OUT
    assert bench.code == "# no reply yet" and bench.error_box.value == ""
    for count in (3, 4):
        bench.back_button.click()
        assert len(bench.script.replies) == count
    assert [c.id for reply in bench.script.replies for c in reply.tool_calls] == ["c1", "c2", "c3"]
    assert bench.back_button.disabled and bench.add_button.disabled, "nothing is written"


def test_the_builder_runs_anew_when_a_limit_moves():
    bench = looplab.script_builder()
    bench.limits.children[0].children[0].value = 1
    assert bench.performance.result.status == "step_limit"


# --- Exits bench ---------------------------------------------------------------------------------------------

ENDS = {
    "finishes": "done",
    "asks for two tools": "done",
    "never finishes": "step_limit",
    "repeats itself": "step_limit",
    "writes text first": "done",
    "makes a tool raise": "done",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_each_scripted_model_ends_as_its_name_says(name):
    outcome = exits.run_script(name, 12, 10**6)
    assert outcome.result.status == ENDS[name]


def test_the_scripted_models_do_what_their_names_say():
    def asked(name):
        return [step.message for step in exits.run_script(name, 4, 10**6).steps]

    assert [len(m["tool_calls"]) for m in asked("asks for two tools")] == [2, 0]
    assert len({json.dumps(m["tool_calls"][0]["args"]) for m in asked("repeats itself")}) == 1
    assert len({json.dumps(m["tool_calls"][0]["args"]) for m in asked("never finishes")}) == 2
    assert all(m["content"] for m in asked("writes text first"))
    assert exits.errors(exits.run_script("makes a tool raise", 4, 10**6).steps[0]) == [
        "ERROR: get_weather failed: KeyError: 'Atlantis'"]


def every_outcome():
    """Yield the run of each model under limits from one end of the sliders to the other."""
    for name in SCRIPTS:
        for max_steps in (1, 2, 5, 12):
            for token_budget in (200, 400, 700, 1000, 2000, 6000):
                yield exits.run_script(name, max_steps, token_budget)


def test_the_steps_add_up_to_what_the_loop_spent():
    for outcome in every_outcome():
        result = outcome.result
        assert sum(step.prompt + step.reply for step in outcome.steps) == result.tokens
        assert [step.spent for step in outcome.steps][-1:] == [result.tokens]
        assert len(outcome.steps) == result.steps
        assert bool(outcome.refused) == (result.status == "token_budget")
        assert not outcome.refused or result.tokens + outcome.refused > outcome.token_budget


def test_the_reason_of_each_exit_holds_its_numbers():
    for outcome in every_outcome():
        result, numbers = outcome.result, [int(n.replace(",", "")) for n in re.findall(r"\d[\d,]*", outcome.reason)]
        assert result.tokens in numbers and outcome.token_budget in numbers
        if result.status == "token_budget":
            assert result.tokens + outcome.refused in numbers
        else:
            assert outcome.max_steps in numbers


def test_a_last_reply_that_passes_the_budget_is_told():
    outcome = exits.run_script("finishes", 5, 670)
    assert (outcome.result.status, outcome.result.tokens) == ("done", 683)
    assert "683 tokens, more than the budget of 670, are spent" in outcome.reason


def drawing(outcome):
    """Return the element of a run's plot."""
    steps = [(step.prompt, step.reply) for step in outcome.steps]
    return ElementTree.fromstring(
        room.room_svg(steps, outcome.refused, outcome.max_steps, outcome.token_budget, outcome.result.status))


def test_the_room_holds_all_that_is_drawn_and_keeps_its_size():
    for outcome in every_outcome():
        svg = drawing(outcome)
        assert svg.get("viewBox") == f"0 0 {room.WIDTH} {room.HEIGHT}"
        for box in svg.iter("rect"):
            x, y, width, height = (float(box.get(key)) for key in ("x", "y", "width", "height"))
            assert room.LEFT <= x and x + width <= room.RIGHT + 0.1 and width > 0
            assert room.TOP - 0.1 <= y and y + height <= room.FLOOR + 0.1 and height >= 0
        for words in svg.iter("text"):
            assert 0 <= float(words.get("x")) <= room.WIDTH and 10 <= float(words.get("y")) <= room.HEIGHT


def test_no_number_and_no_word_lies_on_the_ceiling():
    for outcome in every_outcome():
        svg = drawing(outcome)
        ceiling = float(next(svg.iter("rect")).get("y"))
        for words in svg.iter("text"):
            x, y = float(words.get("x")), float(words.get("y"))
            assert not (room.LEFT < x <= room.RIGHT and y - 9 < ceiling < y + 1), (words.text, outcome)


def test_the_limit_that_ended_the_run_is_the_thick_one():
    for outcome in every_outcome():
        thick = [path for path in drawing(outcome).iter("path") if path.get("stroke-width") == "2.5"]
        flat = {path.get("d").split("L")[0].split()[1] == path.get("d").split()[-1] for path in thick}
        assert flat == {"token_budget": {True}, "step_limit": {False}, "done": set()}[outcome.result.status]


def test_the_plot_says_its_numbers_to_who_does_not_see_it():
    outcome = exits.run_script("never finishes", 5, 2000)
    assert drawing(outcome).get("aria-label") == (
        "Tokens spent after each of 5 steps: 170, 399, 686, 1,032, 1,435. Budget 2,000, max_steps 5. Exit: step_limit.")


@pytest.mark.parametrize("budget", [200, 499, 500, 501, 1000, 6000, 12_345])
def test_the_ticks_are_round_and_at_most_five(budget):
    step = room.tick_step(budget)
    assert budget / step <= 5 and re.fullmatch("(1|2|25|5)0*", str(step))


def test_the_exits_bench_follows_its_controls():
    bench = looplab.exits_bench()
    bench.choice.value = "finishes"
    assert bench.outcome.result.status == "done"
    bench.limits.children[0].children[0].value = 2
    assert bench.outcome.result.status == "step_limit"
    bench.limits.children[1].children[0].value = 200
    assert bench.outcome.result.status == "token_budget"
    assert bench.error_box.value == "" and "Exit: token_budget." in html_of(bench)
    bench.limits.children[1].children[1].value = 411  # typed, to the token
    assert bench.limits.children[1].children[0].value == bench.outcome.token_budget == 411


@pytest.mark.parametrize(("wrong", "said"), [
    ({"model": "sings"}, "model must be one of .*'never finishes'"),
    ({"max_steps": 13}, "max_steps must be from 1 to 12 here"),
    ({"token_budget": 199}, "token_budget must be from 200 to 6,000 here"),
])
def test_what_the_controls_of_the_exits_bench_cannot_hold_is_refused_and_not_changed(wrong, said):
    with pytest.raises(ValueError, match=said):
        looplab.exits_bench(**wrong)


# --- Predict, then run ---------------------------------------------------------------------------------------


def state_of(widget):
    """Return everything of a widget that is sent to the browser, as text."""
    return " ".join(str(part.get_state()) for part in every(widget, ipywidgets.Widget))


def test_the_answer_is_neither_computed_nor_sent_before_a_guess():
    asked = []

    def run():
        asked.append("run")
        return "step_limit"

    widget = looplab.predict("How does it end?", ["done", "an error"], run, why="Because it never stops.")
    assert asked == [] and "step_limit" not in state_of(widget) and "Because" not in state_of(widget)
    widget.buttons[0].click()
    assert asked == ["run"]
    assert "You guessed done; the run says step_limit. Because it never stops." in html_of(widget)


def test_a_guess_that_the_run_agrees_with_is_called_right_and_one_guess_is_all():
    widget = looplab.predict("How many?", [2, 3], 3)
    assert "3" not in re.sub("<[^>]*>", "", widget.children[-1].value)
    widget.buttons[1].click()
    assert "<b>Right.</b> You guessed 3, and so says the run." in html_of(widget)
    assert all(button.disabled for button in widget.buttons)


def test_a_guess_and_the_truth_are_compared_as_they_are_written():
    assert compare("3", 3)[0] and not compare(True, 1)[0]


def test_a_run_that_fails_is_a_sentence_and_can_be_tried_again():
    widget = looplab.predict("How many?", [2, 3], lambda: 1 / 0)
    widget.buttons[0].click()
    assert "The run could not be made: ZeroDivisionError: division by zero" in html_of(widget)
    assert widget.guess is None and not widget.buttons[0].disabled


@pytest.mark.parametrize(("options", "answer"), [([1, 2], 3), ([1], 1), ([1, 1], 1)])
def test_a_prediction_needs_different_options_and_an_answer_among_them(options, answer):
    with pytest.raises(ValueError, match="option"):
        looplab.predict("How many?", options, answer)


def test_the_twin_of_a_prediction_shows_the_options_and_not_the_answer():
    widget = looplab.predict("How many?", ["two", "three"], lambda: "three", why="Because.")
    for twin in (widget._repr_mimebundle_()[kind] for kind in ("text/html", "text/plain")):
        assert "How many?" in twin and "two" in twin and "Because" not in twin


# --- All of them ---------------------------------------------------------------------------------------------

BENCHES = {
    "validator": looplab.validator_bench,
    "call": looplab.call_bench,
    "builder": looplab.script_builder,
    "exits": looplab.exits_bench,
    "predict": lambda: looplab.predict("How many?", [2, 3], lambda: 3),
    "seat": lambda: looplab.you_are_the_model(WEATHER_TASK, weather_world),
}


@pytest.mark.parametrize("name", BENCHES)
def test_the_static_twin_is_the_same_at_each_run_and_plain(name):
    twins = [(bundle["text/html"], bundle["text/plain"])
             for bundle in (BENCHES[name]()._repr_mimebundle_() for _ in range(2))]
    assert twins[0] == twins[1]
    assert not re.search("class=|style=|<svg", twins[0][0])
    assert not re.search("0x[0-9a-f]{6}", twins[0][1])


@pytest.mark.parametrize("name", BENCHES)
def test_what_is_asked_of_the_package_is_a_function_also_the_second_time(name):
    public = {"call": "call_bench", "builder": "script_builder", "predict": "predict", "seat": "you_are_the_model"}
    assert type(getattr(looplab, public.get(name, f"{name}_bench"))).__name__ == "function"


@pytest.mark.parametrize("name", BENCHES)
def test_no_slider_runs_an_agent_while_it_is_dragged(name):
    assert not any(slider.continuous_update for slider in every(BENCHES[name](), ipywidgets.IntSlider))


WALKED = {
    "approval": looplab.approval_bench,
    "builder": looplab.script_builder,
    "player": lambda: looplab.play(WEATHER_TASK, ScriptedModel(weather_script()), weather_world()[0]),
    "seat": BENCHES["seat"],
    "trace": lambda: looplab.trace_viewer(*FOLDER.glob("run_*.jsonl")),
    "wire": lambda: looplab.wire_viewer([{"role": "user", "content": "Hi"}] * 3, []),
}


@pytest.mark.parametrize("name", WALKED)
def test_what_can_be_pressed_is_settled_before_the_sentence_is_said(name):
    bench, changed = WALKED[name](), []
    for button in every(bench, ipywidgets.Button):
        button.observe(lambda change: changed.append("button"), "disabled")
    for area in every(bench, ipywidgets.HTML):
        area.observe(lambda change: changed.extend(re.findall("role=.status", change.new)), "value")
    for field in every(bench, (ipywidgets.Text, ipywidgets.Textarea)):
        field.value = field.value or "Pune"
    for button in every(bench, ipywidgets.Button):
        for _ in range(0 if button.description == "Play" else 3):
            changed.clear()
            button.click()
            assert changed == sorted(changed), button.description


@pytest.mark.parametrize("name", BENCHES)
def test_every_field_and_button_has_a_name(name):
    kinds = (ipywidgets.Text, ipywidgets.Textarea, ipywidgets.BoundedIntText, ipywidgets.RadioButtons,
             ipywidgets.Button, ipywidgets.Checkbox)
    assert all(widget.description for widget in every(BENCHES[name](), kinds))


def test_what_is_typed_into_the_benches_is_escaped():
    call_bench = looplab.call_bench()
    call_bench.tool.value, call_bench.args.value = EVIL, json.dumps({EVIL: EVIL})
    call_bench.run_button.click()
    validator_bench = looplab.validator_bench()
    validator_bench.args.value = json.dumps({"city": "Pune", EVIL: EVIL})
    builder = looplab.script_builder([])
    builder.form.text.value, builder.form.tool.value, builder.form.args.value = EVIL, EVIL, json.dumps(EVIL)
    builder.form.add.click()
    builder.add_button.click()
    prediction = looplab.predict(EVIL, [EVIL, "no"], lambda: EVIL, why=EVIL)
    prediction.buttons[1].click()
    for bench in (call_bench, validator_bench, builder, prediction):
        shown = html_of(bench)
        assert "<img" not in shown and "<b>hi" not in shown and "&lt;img" in shown
        assert bench.error_box.value == ""


def test_checks_that_were_not_reached_say_so():
    html = checks_html([Check("One?", "yes"), Check("Two?", "no", spoke=True), Check("Three?")])
    assert html.count("ll-here") == 1 and html.count("not reached") == 1
