"""The explorers of costs and chances and the bar of an eval in a real browser: moved, and read from the page."""

from __future__ import annotations

from typing import Any

import pytest

THEMES = pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
COSTS = """from looplab import cost_explorer
from looplab.costs import Prices
cost_explorer(Prices(3, 15, as_of="2026-11-01"))"""
CHANCES = "from looplab import chance_explorer\nchance_explorer()"
BAR = ("from looplab import progress_bar\nbar = progress_bar(16)\nbar",
       "from looplab.eval_models import sloppy\nfrom looplab.evals import TASKS, evaluate\n"
       "scores = evaluate(TASKS, sloppy, watch=bar)")


def shows(page: Any, selector: str, text: str) -> None:
    """Wait until an element says `text`."""
    page.wait_for_function("([selector, text]) => document.querySelector(selector)?.textContent.includes(text)",
                           arg=[selector, text])


def type_into(page: Any, hook: str, text: str) -> None:
    field = page.locator(f".t-{hook} input")
    field.fill(text)
    field.press("Enter")


@THEMES
def test_the_cost_explorer_follows_its_slider_its_switches_and_its_prices(notebook: Any, dark: bool) -> None:
    page = notebook(COSTS, dark=dark)
    shows(page, ".t-costs .ll-say", "10 steps send 49,750 input tokens and write 1,500: 0.149 + 0.0225 = 0.172 USD.")
    page.locator(".t-costs .t-steps .noUi-handle").focus()
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    shows(page, ".t-costs .ll-say", "20 steps send 174,500 input tokens")
    page.locator(".t-caching input").check()
    shows(page, ".t-costs .ll-say", "158,650 of them from a cache, and write 3,000")
    page.locator(".t-trimming input").check()
    shows(page, ".t-costs .ll-tab tr:last-child b", "with both")
    type_into(page, "reply-price", "30")
    type_into(page, "as-of", "2027-01-01")
    shows(page, ".t-costs .ll-note", "Prices as of 2027-01-01, in USD a million tokens: 3 for what is sent, 30")
    assert page.locator(".t-costs svg.ll-room rect").count() > 40


@THEMES
def test_the_chance_explorer_follows_its_chance_its_slider_and_its_seed(notebook: Any, dark: bool) -> None:
    page = notebook(CHANCES, dark=dark)
    shows(page, ".t-chances .ll-say", "0.95 to the power of 10 is 60%. Of 1,000 simulated runs 602")
    page.locator(".t-chance label", has_text="99%").first.click()
    shows(page, ".t-chances .ll-say", "0.99 to the power of 10 is 90%.")
    type_into(page, "seed", "8")
    shows(page, ".t-chances .ll-say", "0.99 to the power of 10 is 90%. Of 1,000 simulated runs 904")
    page.locator(".t-chances .t-steps .noUi-handle").focus()
    page.keyboard.press("ArrowRight")
    shows(page, ".t-chances .ll-say", "0.99 to the power of 11 is 90%.")


def test_the_bar_moves_while_the_cell_below_it_runs(notebook: Any) -> None:
    page = notebook(*BAR)
    shows(page, ".t-progress .ll-say", "16 of 16 tasks have run, 7 right.")
    assert page.locator(".t-progress .ll-pips .ll-on").count() == 7
    assert page.locator(".t-progress .ll-pips .ll-error").count() == 9


@THEMES
def test_the_explorers_have_no_serious_fault_of_access(notebook: Any, faults: Any, dark: bool) -> None:
    page = notebook(COSTS, CHANCES, *BAR, dark=dark)
    for hook in (".t-costs", ".t-chances", ".t-progress"):
        assert faults(page, hook) == []
