"""The benches in a real browser: each is moved, and what it shows is read from the page."""

from __future__ import annotations

import pytest

THEMES = pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])


def shows(page, selector, text):
    """Wait until an element says `text`."""
    page.wait_for_function("([selector, text]) => document.querySelector(selector)?.textContent.includes(text)",
                           arg=[selector, text])


def choose(page, hook, text):
    page.locator(f".t-{hook} label").get_by_text(text, exact=True).click()


def colour(page, selector):
    return page.locator(selector).first.evaluate("e => getComputedStyle(e).color")


COLOURS = {  # of the words of the exit, the model, the tools and an error, in light and dark
    "exit": ("rgb(116, 38, 107)", "rgb(238, 183, 225)"),
    "assistant": ("rgb(11, 98, 196)", "rgb(88, 171, 246)"),
    "tool": ("rgb(10, 117, 88)", "rgb(54, 217, 171)"),
    "error": ("rgb(160, 59, 0)", "rgb(246, 138, 82)"),
}


@THEMES
def test_the_validator_bench_follows_its_presets_and_its_fields(notebook, dark):
    page = notebook("from looplab import validator_bench\nvalidator_bench()", dark=dark)
    shows(page, ".t-say", "None.")
    choose(page, "preset", "three mistakes")
    shows(page, ".t-say", "Refused: missing required argument 'city'. Check 3 spoke first")
    assert page.locator(".t-checks li.ll-here").inner_text().split("\n")[0] == "Is 'city' there?"
    assert page.locator(".t-checks li", has_text="not reached").count() == 3
    assert colour(page, ".t-say b") == COLOURS["error"][dark]
    page.locator(".t-args textarea").fill('{"city": "Pune", "celsius": true}')
    shows(page, ".t-say", "argument 'celsius' must be of type number")
    page.locator(".t-args textarea").fill("{'city': 'Pune'}")
    shows(page, ".t-args-note", "Not JSON yet: text stands in double quotes")
    assert page.locator(".t-args textarea").input_value() == "{'city': 'Pune'}"
    shows(page, ".t-say", "Nothing is checked yet.")


def test_the_presets_are_walked_with_the_keyboard(notebook):
    page = notebook("from looplab import validator_bench\nvalidator_bench()")
    page.locator(".t-preset input").first.focus()
    for sentence in ("missing required argument 'city'", "argument 'celsius' must be of type number"):
        page.keyboard.press("Tab")
        page.keyboard.press("Space")
        shows(page, ".t-say", sentence)


@THEMES
def test_the_call_bench_says_which_gate_and_the_observation(notebook, dark):
    page = notebook("from looplab import call_bench\ncall_bench()", dark=dark)
    shows(page, ".t-gates", '{"city": "Pune", "celsius": 30}')
    assert colour(page, ".t-say b") == COLOURS["tool"][dark]
    page.locator(".t-tool input").fill("get_forecast")
    page.wait_for_function("document.querySelector('.t-note').textContent.includes('get_forecast')")
    page.locator(".t-run").press("Enter")
    shows(page, ".t-say", "at the first gate: the function did not run.")
    shows(page, ".ll-observation", "ERROR: unknown tool 'get_forecast'. Available tools: ['c_to_f', 'get_weather']")
    choose(page, "preset", "raises")
    shows(page, ".ll-observation", "ERROR: get_weather failed: KeyError: 'Atlantis'")
    assert "the run" in page.locator(".t-gates li.ll-here").inner_text().lower()


@THEMES
def test_the_script_builder_runs_what_is_composed(notebook, dark):
    page = notebook("from looplab import script_builder\nscript_builder()", dark=dark, height=1200)
    shows(page, ".t-say", "Exit: done.")
    page.locator(".t-remove-reply-3").click()
    shows(page, ".t-say", "The script ran out: it has 2 replies, and the loop asks for one more.")
    page.locator(".t-text textarea").fill("86.")
    shows(page, ".t-forecast", "asks for no call")
    page.locator(".t-add-reply").press("Enter")
    shows(page, ".t-messages", "86.")
    shows(page, ".t-say", "Exit: done.")
    assert colour(page, ".t-say b") == COLOURS["exit"][dark]
    page.locator(".t-max-steps .noUi-handle").press("Home")
    shows(page, ".t-say", "Exit: step_limit.")
    page.locator(".t-script").press("Enter")
    page.wait_for_selector(".t-script-code textarea:visible")
    assert "max_steps=1" in page.locator(".t-script-code textarea").input_value()


@THEMES
def test_the_exits_bench_redraws_the_room_and_keeps_its_height(notebook, dark):
    page = notebook("from looplab import exits_bench\nexits_bench()", dark=dark)
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
    shows(page, ".t-view", "Exit: done.")
    assert page.evaluate(height) == before
    assert colour(page, ".t-view .ll-say b") == COLOURS["exit"][dark]
    assert colour(page, ".t-view td code") == COLOURS["assistant"][dark]


def test_a_model_is_chosen_with_the_keyboard(notebook):
    page = notebook("from looplab import exits_bench\nexits_bench()")
    page.locator(".t-choice input").first.focus()
    page.keyboard.press("Space")
    shows(page, ".t-view", "The third reply asks for no tool")
    assert page.locator(".t-choice label", has_text="finishes").first.locator("input").is_checked()


@THEMES
def test_a_prediction_shows_the_truth_after_the_guess(notebook, dark):
    question = "predict('How many replies?', ['two', 'four'], lambda: 'thr' + 'ee', 'So.')"
    page = notebook(f"from looplab import predict\n{question}", dark=dark)
    assert "three" not in page.locator(".t-predict").inner_html()
    page.locator(".t-option-2").press("Enter")
    shows(page, ".t-truth", "Not so. You guessed four; the run says three. So.")
    assert page.locator(".t-option-1").is_disabled()


def test_a_budget_is_typed_to_the_token(notebook):
    page = notebook("from looplab import exits_bench\nexits_bench('finishes')")
    page.locator(".t-token-budget-number input").fill("411")
    page.keyboard.press("Enter")
    shows(page, ".t-view", "411 tokens are spent and the next prompt needs about 254: together 665")


BENCHES = {
    "seat": "import agentloop\nfrom looplab import you_are_the_model\n"
            "you_are_the_model(agentloop.WEATHER_TASK, agentloop.weather_world)",
    "validator": "from looplab import validator_bench\nvalidator_bench()",
    "call": "from looplab import call_bench\ncall_bench()",
    "builder": "from looplab import script_builder\nscript_builder()",
    "exits": "from looplab import exits_bench\nexits_bench()",
    "predict": "from looplab import predict\npredict('How many?', [2, 3], lambda: 3)",
}
USED = {
    "seat": [".t-harness input", ".t-script"],
    "validator": [".t-preset label >> nth=9"],
    "call": [".t-preset label >> nth=1"],
    "builder": [".t-remove-reply-3", ".t-script"],
    "exits": [".t-choice label >> nth=5"],
    "predict": [".t-option-1"],
}


@THEMES
@pytest.mark.parametrize("bench", BENCHES)
def test_axe_finds_no_serious_fault(notebook, faults, bench, dark):
    page = notebook(BENCHES[bench], dark=dark)
    assert faults(page, f".t-{bench}") == []
    for control in USED[bench]:
        if page.locator(control).is_enabled():
            page.locator(control).click()
    page.wait_for_function("jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'idle'")
    assert faults(page, f".t-{bench}") == []


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


@pytest.mark.parametrize("width", [700, 1280])
@pytest.mark.parametrize("bench", BENCHES)
def test_no_bench_is_wider_than_its_cell(notebook, bench, width):
    page = notebook(BENCHES[bench], width=width)
    page.wait_for_selector(".ll-view")
    assert page.evaluate("""() => {
        const bench = document.querySelector('.ll-view')
        const right = bench.closest('.jp-OutputArea-output').getBoundingClientRect().right
        return [...bench.querySelectorAll('*')].filter(e => e.getBoundingClientRect().right > right + 1
            && !e.closest('.ll-tab, .ll-msgs, .ll-callrow, .ll-note')).map(e => e.className)
    }""") == []
