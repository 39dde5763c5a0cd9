"""Where the focus is in a widget: no key and no click takes it away from the reader."""

from __future__ import annotations

PLAYER = """from agentloop import WEATHER_TASK, ScriptedModel, weather_script, weather_world
from looplab import play
play(WEATHER_TASK, ScriptedModel(weather_script()), weather_world()[0])"""
PREDICT = """from looplab import predict
predict('How many replies?', ['two', 'four'], lambda: 'thr' + 'ee', 'So.')"""
CALL = "from looplab import call_bench\ncall_bench()"
EXITS = "from looplab import exits_bench\nexits_bench()"
FOCUS = "document.activeElement.matches('.ll-view') ? 'the view' : document.activeElement.textContent.trim()"


def focus_comes_to(page, text):
    """Wait until the focus is on what says `text`, or in the view itself."""
    page.wait_for_function(f"text => ({FOCUS}) === text", arg=text)


def test_a_control_that_is_switched_off_leaves_the_focus_to_the_nearest_one(notebook):
    page = notebook(PLAYER, PREDICT)
    for pressed, heir in (("last", "Back"), ("first", "Play"), ("jump-exit", ""), ("first", "Play")):
        page.locator(f".t-{pressed}:enabled").press("Enter")
        focus_comes_to(page, heir)
    page.locator(".t-option-1").press("Enter")
    focus_comes_to(page, "the view")
    page.keyboard.press("x")
    page.keyboard.press("Escape")
    page.wait_for_function("document.activeElement.matches('.jp-Cell')")
    assert page.locator(".jp-Cell").count() == 2


def test_a_click_on_what_takes_no_focus_leaves_the_keys_to_the_widget(notebook):
    page = notebook(CALL, PLAYER)
    page.locator(".t-args input").fill("{")
    page.wait_for_selector(".t-run:disabled")
    page.locator(".t-run").click(force=True)
    for part in (".t-call .ll-say", ".t-call .ll-head >> nth=0"):
        page.locator(part).click()
        focus_comes_to(page, "the view")
        page.keyboard.type("xdd")
    page.locator(".t-last").click()
    focus_comes_to(page, "Back")
    page.locator(".t-last").click(force=True)
    page.keyboard.press("ArrowUp")
    assert page.evaluate("jupyterapp.shell.currentWidget.content.activeCellIndex") == 1
    assert page.locator(".jp-Cell").count() == 2
    words = page.locator(".t-call .ll-say").bounding_box()
    page.mouse.move(words["x"] + 1, words["y"] + 13)
    page.mouse.down()
    page.mouse.move(words["x"] + 200, words["y"] + 13)
    page.mouse.up()
    assert page.evaluate("getSelection().toString()").startswith("Not run yet.")


def test_escape_leads_from_every_field_to_the_cell(notebook):
    page = notebook("from looplab import script_builder\nscript_builder()")
    page.locator(".t-script").click()
    page.wait_for_selector(".t-script-code textarea:visible")
    fields = page.locator(".t-builder").locator("input, textarea")
    for number in range(fields.count()):
        fields.nth(number).press("Escape")
        assert page.evaluate("document.activeElement.matches('.jp-Cell')"), fields.nth(number).inner_html()


def test_after_a_press_the_sentence_is_in_view_where_the_columns_are_stacked(notebook):
    page = notebook("from looplab import you_are_the_model\nyou_are_the_model()", width=960, height=800)
    page.locator(".t-tool input").fill("get_weather")
    page.locator(".t-args input").fill('{"city": "Pune"}')
    page.locator(".t-text textarea").fill("I look.")  # last: with half a call, a text cannot be sent
    page.locator(".t-send:enabled").press("Enter")
    page.wait_for_function("""() => {
        const view = document.querySelector('.jp-WindowedPanel-outer').getBoundingClientRect();
        return ['.ll-say', '.ll-new', '.t-text'].map(part => document.querySelector('.t-seat ' + part))
            .every(part => part?.getBoundingClientRect().top >= view.top - 1
                && part.getBoundingClientRect().bottom <= view.bottom);
    }""")


SAYS = """[...document.querySelectorAll('.ll-view, .t-first, .ll-view .widget-html')]
    .map(part => getComputedStyle(part, '::before').content)"""


def test_a_widget_whose_kernel_has_ended_says_so_and_shows_no_broken_chains(notebook):
    page = notebook(PLAYER)
    assert set(page.evaluate(SAYS)) == {"none"}
    page.evaluate("jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    page.wait_for_selector(".t-first.jupyter-widgets-disconnected")
    view, *parts = page.evaluate(SAYS)
    assert "Run the cells again" in view and set(parts) == {"none"}


NAMES = """[...document.querySelectorAll('.ll-view [role="radiogroup"], .ll-view [role="slider"]')]
    .map(part => part.role + ' ' + part.ariaLabel)"""
WRONG = "[...document.querySelectorAll('[aria-invalid=\"true\"]')].map(part => part.closest('.t-args') !== null)"


def test_what_a_screen_reader_is_told(notebook):
    page = notebook(EXITS, CALL)
    assert page.evaluate(NAMES) == ["radiogroup A model that", "slider max_steps", "slider token_budget",
                                    "radiogroup Try"]
    assert page.evaluate(WRONG) == []
    page.locator(".t-args input").fill("{")
    page.wait_for_selector(".t-note[aria-live='polite'] .ll-bad")
    assert page.evaluate(WRONG) == [True]
    assert page.locator(".ll-view [title='null']:visible").count() == 0


TOP = "document.querySelector('.jp-WindowedPanel-outer').scrollTop"


def test_keys_in_a_widget_do_not_scroll_the_notebook_and_lists_still_scroll(notebook):
    page = notebook(PLAYER, EXITS, height=600)
    page.locator(".t-player .ll-lines").focus()
    page.evaluate(f"{TOP} = 200")
    for part in (".t-player .ll-msgs", ".t-player .noUi-handle", ".t-first", ".t-exits input >> nth=0"):
        page.locator(part).focus()
        before = page.evaluate(TOP)
        for key in ("PageDown", "End", "Space", "PageUp", "Home", "ArrowDown", "ArrowUp"):
            page.keyboard.press(key)
        assert page.evaluate(f"new Promise(done => setTimeout(() => done({TOP}), 200))") == before, part
