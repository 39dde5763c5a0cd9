"""The four runs and the five questions in a real browser: each is moved by keys, and read from the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

THEMES = pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])


def shows(page: Any, selector: str, text: str) -> None:
    """Wait until an element says `text`."""
    page.wait_for_function("([selector, text]) => document.querySelector(selector)?.textContent.includes(text)",
                           arg=[selector, text])


def choose(page: Any, hook: str, text: str) -> None:
    """Choose an option by the keyboard."""
    page.locator(f".t-{hook} label", has_text=text).last.locator("input").press("Space")


@THEMES
def test_an_exit_moves_with_the_limits_and_back(notebook: Any, dark: bool) -> None:
    page = notebook("from looplab import four_exits\nfour_exits()", dark=dark)
    shows(page, ".t-four-exits .ll-say", "Exit: repeated_call.")
    page.locator(".t-guard input").focus()
    page.keyboard.press("Space")
    shows(page, ".t-four-exits .ll-say", "Exit: step_limit.")
    choose(page, "run", "tight budget")
    shows(page, ".t-four-exits .ll-say", "Exit: token_budget.")
    page.locator(".t-token-budget-number input").fill("3000")
    page.keyboard.press("Enter")
    shows(page, ".t-four-exits .ll-say", "Exit: done.")
    assert page.locator(".t-four .ll-exit b, .t-four b.ll-exit").all_text_contents() == ["step_limit", "done"]
    page.locator(".t-again").press("Enter")
    shows(page, ".t-four-exits .ll-say", "Exit: token_budget.")


@THEMES
def test_the_first_answer_that_speaks_decides(notebook: Any, dark: bool) -> None:
    page = notebook("from looplab import need_an_agent\nneed_an_agent()", dark=dark)
    shows(page, ".t-need .ll-say", "Build a workflow.")
    choose(page, "question-2", "no")
    shows(page, ".t-need .ll-say", "Build an agent.")
    assert page.locator(".t-task input:checked").count() == 0
    choose(page, "task", "pay refunds")
    shows(page, ".t-need .ll-say", "Build no agent.")
    assert page.locator(".ll-spoke").count() == 1


@THEMES
def test_the_benches_have_no_serious_fault_of_access(notebook: Any, faults: Callable[..., Any], dark: bool) -> None:
    page = notebook("from looplab import four_exits, need_an_agent\nfour_exits()", "need_an_agent()", dark=dark)
    shows(page, ".t-need .ll-say", "Build a workflow.")
    assert faults(page, ".t-four-exits") + faults(page, ".t-need") == []
