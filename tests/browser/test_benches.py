"""The benches in a real browser: each is moved, and what it shows is read from the page."""

from __future__ import annotations

import pytest

BENCHES = {
    "seat": "from looplab import you_are_the_model\nyou_are_the_model()",
    "validator": "from looplab import validator_bench\nvalidator_bench()",
    "call": "from looplab import call_bench\ncall_bench()",
    "builder": "from looplab import script_builder\nscript_builder()",
    "exits": "from looplab import exits_bench\nexits_bench()",
    "predict": "from looplab import predict\n"
               "predict('How many replies?', ['two', 'four'], lambda: 'thr' + 'ee', 'So.')",
}


def shows(page, selector, text):
    """Wait until an element says `text`."""
    page.wait_for_function("([selector, text]) => document.querySelector(selector)?.textContent.includes(text)",
                           arg=[selector, text])


def choose(page, hook, text):
    """Click one of a row of choices."""
    page.locator(f".t-{hook} label").get_by_text(text, exact=True).click()


def test_the_validator_bench_follows_its_examples_and_its_fields(notebook):
    page = notebook(BENCHES["validator"])
    shows(page, ".t-say", "None.")
    choose(page, "preset", "three mistakes")
    shows(page, ".t-say", "Refused: missing required argument 'city'. Check 3 spoke first")
    assert page.locator(".t-checks li.ll-here").inner_text().split("\n")[0] == "Is 'city' there?"
    assert page.locator(".t-checks li", has_text="not reached").count() == 3
    page.locator(".t-args textarea").fill('{"city": "Pune", "celsius": true}')
    shows(page, ".t-say", "argument 'celsius' must be of type number")
    page.locator(".t-args textarea").fill("{'city': 'Pune'}")
    shows(page, ".t-args-note", "Not JSON yet: text stands in double quotes")
    assert page.locator(".t-args textarea").input_value() == "{'city': 'Pune'}"
    shows(page, ".t-say", "Nothing is checked yet.")
    page.locator(".t-preset input").first.focus()
    for sentence in ("missing required argument 'city'", "argument 'celsius' must be of type number"):
        page.keyboard.press("ArrowRight")
        shows(page, ".t-say", sentence)


def test_the_call_bench_says_which_gate_and_the_observation(notebook):
    page = notebook(BENCHES["call"])
    shows(page, ".t-gates", '{"city": "Pune", "celsius": 30}')
    page.locator(".t-tool input").fill("get_forecast")
    shows(page, ".t-note", "get_forecast")
    page.locator(".t-args input").press("Enter")
    shows(page, ".t-say", "at the first gate: the function did not run.")
    page.locator(".t-run").press("Enter")
    shows(page, ".t-say", "Tried 2 times.")
    shows(page, ".t-say", "at the first gate: the function did not run.")
    shows(page, ".ll-observation", "ERROR: unknown tool 'get_forecast'. Available tools: ['c_to_f', 'get_weather']")
    choose(page, "preset", "raises")
    shows(page, ".ll-observation", "ERROR: get_weather failed: KeyError: 'Atlantis'")
    assert page.locator(".t-gates li.ll-here").inner_text().startswith("The run")


def test_the_script_builder_runs_what_is_composed(notebook):
    page = notebook(BENCHES["builder"], height=1200)
    shows(page, ".t-say", "Exit: done.")
    page.locator(".t-remove-reply-3").click()
    shows(page, ".t-say", "The script ran out: it has 2 replies, and the loop asks for one more.")
    page.locator(".t-text textarea").fill("86.")
    shows(page, ".t-forecast", "asks for no call")
    page.locator(".t-add-reply").press("Enter")
    shows(page, ".t-messages", "86.")
    shows(page, ".t-say", "Exit: done.")
    page.locator(".t-max-steps .noUi-handle").press("Home")
    shows(page, ".t-say", "Exit: step_limit.")
    page.locator(".t-script").press("Enter")
    page.wait_for_selector(".t-script-code textarea:visible")
    assert "max_steps=1" in page.locator(".t-script-code textarea").input_value()


def test_the_exits_bench_redraws_the_room_and_keeps_its_height(notebook):
    page = notebook(BENCHES["exits"])
    shows(page, ".t-view", "Exit: step_limit.")
    height = "() => document.querySelector('.t-exits').getBoundingClientRect().height"
    before = page.evaluate(height)
    page.locator(".t-token-budget .noUi-handle").press("Home")
    shows(page, ".t-view", "Exit: token_budget.")
    shows(page, ".t-view tr.ll-refused", "not sent")
    assert page.evaluate(height) == before
    page.locator(".t-max-steps .noUi-handle").press("End")
    page.locator(".t-token-budget .noUi-handle").press("End")
    shows(page, ".t-view", "and 12 are allowed")
    assert page.locator(".t-view tbody tr").count() == 12
    assert page.evaluate(height) == before
    choose(page, "choice", "makes a tool raise")
    shows(page, ".t-view", "ERROR: get_weather failed: KeyError: 'Atlantis'")
    assert page.evaluate(height) == before
    page.locator(".t-choice input").first.focus()
    page.keyboard.press("Space")
    shows(page, ".t-view", "The third reply asks for no tool")
    page.locator(".t-token-budget-number input").fill("411")
    page.keyboard.press("Enter")
    shows(page, ".t-view", "411 tokens are spent and the next prompt needs about 254: together 665")


RING = "[getComputedStyle(document.activeElement).outlineStyle, getComputedStyle(document.activeElement).outlineWidth]"


def test_a_field_that_has_the_focus_shows_it_and_a_filled_button_stays_legible_under_the_mouse(notebook):
    page = notebook(BENCHES["builder"], BENCHES["exits"])
    for control in (".t-builder .t-text textarea", ".t-builder .t-args input", ".t-exits .t-max-steps-number input"):
        page.locator(control).focus()
        assert page.evaluate(RING) == ["solid", "2px"], control
    page.locator(".t-text textarea").fill("86.")
    page.locator(".t-add-reply:enabled").hover()
    shown = "e => [getComputedStyle(e).color, getComputedStyle(e).backgroundColor]"
    assert page.locator(".t-add-reply").evaluate(shown) == ["rgb(255, 255, 255)", "rgb(31, 31, 31)"]


def test_a_prediction_shows_the_truth_after_the_guess(notebook):
    page = notebook(BENCHES["predict"])
    assert "three" not in page.locator(".t-predict").inner_html()
    page.locator(".t-option-2").press("Enter")
    shows(page, ".t-truth", "Not so. You guessed four; the run says three. So.")
    page.wait_for_selector(".t-option-1:disabled")


EVIL = '<img src=x onerror="document.title = 1">'


def test_markup_that_is_typed_stays_text(notebook):
    page = notebook("from looplab import script_builder, predict\nscript_builder([])",
                    f"predict({EVIL!r}, [{EVIL!r}, 'no'], lambda: {EVIL!r}, {EVIL!r})")
    page.locator(".t-text textarea").fill(EVIL)
    page.locator(".t-tool input").fill(EVIL)
    page.locator(".t-args input").fill('{"<img src=y>": "<img src=z>"}')
    shows(page, ".t-forecast", "asks for 1 call")
    page.locator(".t-add-reply").click()
    shows(page, ".t-messages", EVIL)
    page.locator(".t-option-1").click()
    shows(page, ".t-truth", "Right.")
    assert page.locator(".t-builder img, .t-predict img").count() == 0


COLOURS = {  # of words in the exit's, the model's, the tools' and the error's colour, in light and in dark
    ".t-exits .ll-say b": ("rgb(116, 38, 107)", "rgb(238, 183, 225)"),
    ".t-exits td code": ("rgb(11, 98, 196)", "rgb(88, 171, 246)"),
    ".t-seat .ll-say b": ("rgb(11, 98, 196)", "rgb(88, 171, 246)"),
    ".t-call .ll-say b": ("rgb(10, 117, 88)", "rgb(54, 217, 171)"),
    ".t-validator .ll-say b": ("rgb(160, 59, 0)", "rgb(246, 138, 82)"),
}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_each_role_has_its_colour_and_no_bench_is_wider_than_its_cell(notebook, dark):
    page = notebook(*BENCHES.values(), dark=dark)
    page.locator(".t-validator .t-preset label").get_by_text("missing", exact=True).click()
    shows(page, ".t-validator .t-say", "Refused:")
    for selector, colours in COLOURS.items():
        assert page.locator(selector).first.evaluate("e => getComputedStyle(e).color") == colours[dark], selector
    for width in (1280, 700):
        page.set_viewport_size({"width": width, "height": 1000})
        assert page.evaluate(TOO_WIDE) == []


# What scrolls or is cut by itself may be wider.
TOO_WIDE = """() => [...document.querySelectorAll('.ll-view')].flatMap(bench => {
    const right = bench.closest('.jp-OutputArea-output').getBoundingClientRect().right
    return [...bench.querySelectorAll('*')].filter(e => e.getBoundingClientRect().right > right + 1
        && !e.closest('.ll-tab, .ll-msgs, .ll-callrow, .ll-note')).map(e => e.className)
})"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_no_serious_fault(notebook, faults, dark):
    page = notebook(*BENCHES.values(), dark=dark)
    for bench in BENCHES:
        assert faults(page, f".t-{bench}") == []
    for control in (".t-seat .t-harness input", ".t-validator .t-preset label >> nth=9", ".t-exits label >> nth=5",
                    ".t-call .t-preset label >> nth=1", ".t-builder .t-remove-reply-3", ".t-builder .t-script",
                    ".t-option-1"):
        page.locator(control).click()
    shows(page, ".t-truth", "You guessed two")
    for bench in BENCHES:
        assert faults(page, f".t-{bench}") == []
