"""The model's seat in a real browser: played with the keyboard alone, in both themes."""

from __future__ import annotations

import pytest

CELL = "from agentloop import WEATHER_TASK, weather_world\nfrom looplab import you_are_the_model\n"
SEAT = CELL + "seat = you_are_the_model(WEATHER_TASK, weather_world{limits})\nseat"


def tab_to(page, hook):
    """Press Tab until the focus is in the element of that name."""
    for _ in range(80):
        if page.evaluate("hook => document.activeElement?.closest('.t-' + hook) !== null", hook):
            return
        page.keyboard.press("Tab")
    pytest.fail(f"Tab does not reach {hook}")


def write(page, hook, text):
    tab_to(page, hook)
    page.keyboard.type(text)


def reply(page, text="", tool="", args=""):
    """Write a reply and send it, from the field of the text, where the focus stands; only keys are pressed."""
    before = page.locator(".t-seat .ll-m").count()
    for hook, value in (("text", text), ("tool", tool), ("args", args)):
        if value:
            write(page, hook, value)
    page.wait_for_function("!document.querySelector('.t-send').disabled")
    page.wait_for_function(SHOWN, arg=tool)
    tab_to(page, "send")
    page.keyboard.press("Enter")
    page.wait_for_function("n => document.querySelectorAll('.t-seat .ll-m').length > n", arg=before)


# The forecast speaks of what was typed: a call, or a text alone.
SHOWN = """tool => document.querySelector('.t-forecast').textContent.includes(
    tool ? 'asks for 1 call' : 'asks for no call')"""


def say(page):
    return page.locator(".t-say").inner_text()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_seat_is_played_to_done_with_the_keyboard_alone(notebook, dark):
    page = notebook(SEAT.format(limits=""), dark=dark)
    assert say(page).startswith("You are the model.")
    tab_to(page, "text")
    reply(page, "I will look up Pune first.", "get_weather", '{"city": "Pune"}')
    assert "Your call ran" in say(page)
    assert page.locator(".t-seat .ll-new").inner_text().split("\n")[-1] == '{"city": "Pune", "celsius": 30}'
    reply(page, tool="c_to_f", args='{"celsius": "30"}')
    assert "Your call did not run" in say(page)
    assert "ERROR: argument 'celsius' must be of type number" in page.locator(".t-seat .ll-new").inner_text()
    reply(page, tool="c_to_f", args='{"celsius": 30}')
    reply(page, "It is 86.0 F in Pune.")
    assert say(page).startswith("Exit: done.")
    assert page.locator(".t-seat .ll-end").inner_text().split() == ["exit", "done"]
    page.wait_for_selector(".t-send:disabled")
    page.wait_for_selector(".t-text textarea:disabled")


def test_the_seat_is_played_to_step_limit_and_back_with_the_keyboard_alone(notebook):
    page = notebook(SEAT.format(limits=", max_steps=2"))
    tab_to(page, "text")
    reply(page, tool="get_forecast", args="{}")
    assert "ERROR: unknown tool 'get_forecast'" in page.locator(".t-seat .ll-new").inner_text()
    reply(page, tool="get_weather", args='{"city": "Pune"}')
    assert say(page).startswith("Exit: step_limit.")
    tab_to(page, "undo")
    page.keyboard.press("Space")
    page.wait_for_function("document.querySelector('.t-say').textContent.includes('You are the model.')")
    assert page.locator(".t-seat .ll-m").count() == 4
    assert page.locator(".t-remove-1").count() == 1, "the reply is back in the form"


def test_several_calls_are_added_removed_and_sent_with_the_keyboard_alone(notebook):
    page = notebook(SEAT.format(limits=""))
    tab_to(page, "tool")
    for n, city in enumerate(("Pune", "Delhi", "Atlantis"), 1):
        write(page, "tool", "get_weather")
        write(page, "args", f'{{"city": "{city}"}}')
        page.wait_for_function("!document.querySelector('.t-add-call').disabled")
        if n > 1:
            tab_to(page, "add-call")
        page.keyboard.press("Enter")  # in the field of the arguments, or on the button
        page.wait_for_selector(f".t-remove-{n}")
        page.wait_for_function("document.activeElement.closest('.t-tool')")
    tab_to(page, "remove-3")
    page.keyboard.press("Enter")
    page.wait_for_selector(".t-remove-3", state="detached")
    page.wait_for_function("document.activeElement.closest('.t-tool')")
    tab_to(page, "send")
    for _ in range(3):
        page.keyboard.press("Enter")
    page.wait_for_function("document.querySelectorAll('.t-seat .ll-new').length === 2")
    page.wait_for_function("document.activeElement.closest('.t-text')")
    assert "2 of your 2 calls ran" in say(page)
    assert page.locator(".t-seat .ll-bad").count() == 0


def test_what_is_not_json_yet_is_kept_and_told_and_cannot_be_sent(notebook):
    page = notebook(SEAT.format(limits=""))
    tab_to(page, "tool")
    write(page, "tool", "c_to_f")
    write(page, "args", '{"celsius": 30')
    page.wait_for_function("document.querySelector('.t-note').textContent.includes('Not JSON yet')")
    assert page.locator(".t-args input").input_value() == '{"celsius": 30'
    page.wait_for_selector(".t-send:disabled")
    page.keyboard.type("}")
    page.wait_for_function("document.querySelector('.t-note').textContent.includes('Reads as c_to_f(celsius=30).')")
    page.wait_for_selector(".t-send:enabled")


def test_a_reply_that_is_cut_off_ends_the_run_with_the_keyboard_alone(notebook):
    page = notebook(SEAT.format(limits=""))
    tab_to(page, "text")
    write(page, "text", "It is 8")
    tab_to(page, "stop-reason")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.querySelector('.t-forecast').textContent.includes('truncated')")
    tab_to(page, "send")
    page.keyboard.press("Enter")
    page.wait_for_function("document.querySelector('.t-say').textContent.includes('Exit: truncated.')")


def test_the_switch_shows_what_the_harness_knows(notebook):
    page = notebook(SEAT.format(limits=""))
    assert page.locator(".t-behind").inner_text() == ""
    tab_to(page, "harness")
    page.keyboard.press("Space")
    page.wait_for_selector(".t-behind dl")
    assert "1 of 8" in page.locator(".t-behind").inner_text()


def test_what_was_played_is_code_in_a_field_that_runs_in_the_next_cell(notebook):
    run_script = "names = {}\nexec(seat.script, names)\nprint(seat.result.status, list(names)[1:])"
    page = notebook(SEAT.format(limits=""), run_script)
    tab_to(page, "text")
    reply(page, "First.", "get_weather", '{"city": "Pune"}')
    tab_to(page, "script")
    page.keyboard.press("Enter")
    page.wait_for_selector(".t-script-code textarea:visible")
    code = page.locator(".t-script-code textarea").input_value()
    assert "asks(call('c1', 'get_weather', city='Pune'), text='First.')," in code
    page.evaluate("jupyterapp.shell.currentWidget.content.activeCellIndex = 1")
    page.evaluate("jupyterapp.commands.execute('notebook:run-cell')")
    page.wait_for_function("document.body.textContent.includes(\"your_turn ['agentloop', 'ScriptedModel', 'asks'\")")


def test_nothing_of_the_seat_moves_when_a_reply_is_sent(notebook):
    page = notebook(SEAT.format(limits=""), height=1200)
    places = """() => ['.t-text', '.t-send', '.t-specs', '.t-harness'].map(
        name => Math.round(document.querySelector('.t-seat ' + name).getBoundingClientRect().top))"""
    tab_to(page, "text")
    before = page.evaluate(places)
    for number in range(4):
        reply(page, "Again, and at some length, so that the list of messages grows.", "get_weather", '{"city": "Pune"}')
        assert page.evaluate(places) == before, f"after reply {number + 1}"


def test_one_turn_ends_in_a_sentence_and_begins_again(notebook):
    page = notebook(SEAT.format(limits=", turns=1"))
    tab_to(page, "text")
    reply(page, tool="get_weather", args='{"city": "Atlantis"}')
    assert say(page).startswith("That was one turn. Your call ran and failed")
    page.wait_for_function("document.activeElement.closest('.t-harness')")
    page.keyboard.press("Enter")  # a second press harms nothing
    tab_to(page, "undo")
    assert page.locator(".t-seat .ll-m").count() == 4
    page.keyboard.press("Enter")
    page.wait_for_function("document.querySelectorAll('.t-seat .ll-m').length === 2")
    page.wait_for_function("document.activeElement.closest('.t-text')")
    page.wait_for_selector(".t-seat .ll-say >> text=back in the form: change it, or send it again.")
    assert page.locator(".t-remove-1").count() == 1
