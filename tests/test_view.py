"""The HTML that all widgets share, and the base of the widgets."""

from __future__ import annotations

import re

import pytest

from agentloop import ToolCall
from looplab import view

EVIL = '<img src=x onerror="alert(1)"><b>hi</b> a < b & c </pre>'
MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hot?"},
    {"role": "assistant", "content": "I look.",
     "tool_calls": [{"id": "c1", "name": "get_weather", "args": {"city": "Pune"}}]},
    {"role": "tool", "tool_call_id": "c1", "name": "get_weather", "content": "ERROR: no"},
    {"role": "assistant", "content": "", "tool_calls": []},
]
SPECS = [{"name": "ping", "description": "Say pong.", "parameters": {"type": "object"}}]


class Bench(view.Bench):
    blocks: list[view.Block] = ["It is 1 < 2.", ["one", "two"], [["step", "tokens"], ["1", "177"]], view.Code("a\n  b")]

    def twin(self):
        return self.blocks

    @view.guarded
    def press(self, problem=None):
        if problem:
            raise problem
        return "pressed"


def test_every_value_is_escaped():
    calls = [{"id": EVIL, "name": EVIL, "args": {EVIL: EVIL}}]
    message = {"role": EVIL, "tool_call_id": EVIL, "content": EVIL, "tool_calls": calls}
    spec = {"name": EVIL, "description": EVIL, "parameters": {EVIL: EVIL}}
    tool = {"role": "tool", "tool_call_id": EVIL, "content": f"ERROR: {EVIL}"}
    markup = "".join([
        view.message_list([message, tool], end=(EVIL, EVIL), label=EVIL), view.specs_html([spec]), view.note(EVIL),
        view.word(EVIL, EVIL), view.code(EVIL, EVIL), view.table([[EVIL], [EVIL]]), view.mark(EVIL),
        view.twin_html([EVIL, [EVIL], [[EVIL]], view.Code(EVIL)])])
    assert "<img" not in markup and "<b>hi" not in markup and '"alert' not in markup


def test_half_a_surrogate_pair_can_be_sent_to_the_browser():
    assert view.escape("\ud83d!").encode("utf-8") == b"\\ud83d!"


@pytest.mark.parametrize(("call", "text"), [
    (ToolCall("c1", "get_weather", {"city": "Pune", "n": 1}), 'get_weather(city="Pune", n=1)'),
    ({"id": "c1", "name": "ping", "args": {}}, "ping()"),
    ({"id": "c1", "name": "ping", "args": "not {json"}, 'ping("not {json")'),
    ({"id": "c1", "name": "ping", "args": {"x": {1}}}, "ping(x={1})"),
    ({"name": "ping", "args": {"x": object()}}, "ping(x=<object object>)"),
    ({}, "None(null)"),
])
def test_a_call_is_written_as_code_whatever_it_holds(call, text):
    assert view.call_text(call) == text


def test_a_list_has_a_head_before_each_step_a_light_on_new_messages_and_a_rule_beside_those_shown():
    markup = view.message_list(MESSAGES, new={4}, seen=3)
    assert re.findall(r"step \d", markup) == ["step 1", "step 2"]
    assert [m for m in re.findall(r'<li class="(ll-m[^"]*)"', markup)] == ["ll-m ll-seen"] * 3 + ["ll-m", "ll-m ll-new"]
    assert '<li class="ll-stephead ll-seen">step 1' in markup and '<li class="ll-stephead">step 2' in markup


def test_only_the_word_error_has_the_colour_of_an_error():
    assert '<b class="ll-error">ERROR:</b> no</code>' in view.message_row(MESSAGES[3])
    assert "tool<span" in view.message_row(MESSAGES[3])


def test_of_a_long_message_list_the_last_are_listed_and_how_many_came_before():
    whole = view.message_list(MESSAGES, new={4}, seen=3)
    assert view.message_list(MESSAGES, new={4}, seen=3, most=len(MESSAGES)) == whole
    first, *listed = view.message_list(MESSAGES, new={4}, seen=3, most=2).split("<li")[1:]
    assert first == f' class="ll-empty">{len(MESSAGES) - 2} earlier messages</li>'
    assert listed == whole.split("<li")[-len(listed):] and sum(' class="ll-m' in row for row in listed) == 2



def test_the_row_of_the_exit_is_no_message():
    markup = view.message_list(MESSAGES, end=("done", "after 2 steps"))
    assert markup.count('<li class="ll-m') == len(MESSAGES) + 1
    assert "<b>done</b> after 2 steps" in markup


@pytest.mark.parametrize("message", [
    {"role": "tool"}, {"role": None, "content": None}, {"role": "assistant", "content": 7, "tool_calls": "no list"},
    {"role": "assistant", "tool_calls": [1, None, ToolCall("a", "b", {})]},
])
def test_a_message_that_a_reader_built_wrongly_is_shown_all_the_same(message):
    assert view.message_row(message).startswith("<li")
    assert view.message_text(message)


def test_a_message_is_one_line_of_text_with_its_calls():
    assert [view.message_text(m) for m in MESSAGES] == [
        "system: Be brief.", "user: Hot?", 'assistant: I look. → get_weather(city="Pune") [c1]',
        "tool [c1]: ERROR: no", "assistant:"]


@pytest.mark.parametrize(("count", "said"), [(0, "No tool is shown"), (1, "1 tool is shown"), (2, "2 tools are shown")])
def test_specs_say_how_many_tools_are_shown(count, said):
    assert said in view.specs_html(SPECS * count)


@pytest.mark.parametrize(("arguments", "said"), [
    ((1, 8, 177, 4000, 207, True), "step 2 of 8; 177 of 4,000 tokens spent, next prompt about 207"),
    ((2, 8, 427, 600), "2 of 8 steps taken; 427 of 600 tokens spent"),
    ((1, None, 177, None), "1 step taken; 177 tokens spent"),
    ((0, None, None, None), "0 steps taken"),
])
def test_the_counters_are_one_sentence(arguments, said):
    assert view.meter_text(*arguments) == said


def parts(markup):
    return {name: tuple(float(n) for n in place) for name, *place in
            re.findall(r'll-b-(\w+)" style="left:([\d.]+)%(?:;width:([\d.]+)%)?', markup) if place[1]}


def test_the_bar_is_drawn_to_scale_and_what_passes_the_limit_has_its_own_part():
    bar = parts(view.meter(2, 8, 300, 500, 400, 1000))
    assert bar == {"track": (0, 50), "spent": (0, 30), "next": (30, 20), "over": (50, 20)}
    assert parts(view.meter(2, 8, 600, 500, 0, 1000)) == {"track": (0, 50), "spent": (0, 60)}


def test_steps_are_squares_up_to_twelve_and_then_words_only():
    assert view.meter(2, 12, 1, 2, under_way=True).count("<i class=\"ll-on\"") == 2
    assert view.meter(2, 12, 1, 2, under_way=True).count("ll-cur") == 1
    assert "<i" not in view.meter(2, 13, None, None)


def test_a_cut_text_is_one_line_of_at_most_its_width():
    assert view.cut("a\n  b", 9) == "a b"
    assert view.cut("x" * 20, 9) == "xxxxxxx …"


def test_a_twin_says_the_same_as_html_and_as_text():
    bundle = Bench()._repr_mimebundle_()
    assert bundle["text/html"] == (
        "<p>It is 1 &lt; 2.</p>\n<ol><li>one</li><li>two</li></ol>\n"
        "<table><thead><tr><th>step</th><th>tokens</th></tr></thead><tbody><tr><td>1</td><td>177</td></tr></tbody></table>\n"
        "<pre>a\n  b</pre>")
    assert bundle["text/plain"] == "It is 1 < 2.\n1. one\n2. two\nstep  tokens\n1     177\na\n  b"
    assert "application/vnd.jupyter.widget-view+json" in bundle


def test_an_exception_of_a_control_is_shown_as_one_sentence_and_goes_with_the_next_success():
    bench = Bench()
    assert bench.press(KeyError("<content>")) is None
    assert "That did not work: KeyError: &#x27;&lt;content&gt;&#x27;" in bench.error_box.value
    assert bench.error_box.layout.display == ""
    assert bench.press() == "pressed"
    assert (bench.error_box.value, bench.error_box.layout.display) == ("", "none")


def test_the_style_sheet_is_hidden_and_touches_nothing_but_our_widgets():
    assert view.style().layout.display == "none"
    rules = re.sub(r"/\*.*?\*/|@keyframes ll-\w+ \{[^{}]*\{[^{}]*\} \}", "", view.STYLE, flags=re.S)
    selectors = [s.strip() for group in re.findall(r"([^{}]+)\{", rules) for s in group.split(",") if "@" not in group]
    assert [s for s in selectors if not re.search(r"\.ll[-. ]|\.ll$", s)] == []


def test_a_label_a_button_and_a_row_of_controls_have_their_classes():
    pressed = []
    row = view.controls("Jump <here>", view.button("Go", "go", pressed.append, "ll-main"))
    label, go = row.children
    go.click()
    assert (pressed, row._dom_classes, go._dom_classes) == ([go], ("ll-ctl",), ("t-go", "ll-main"))
    assert "Jump &lt;here&gt;" in label.value
