"""The benches of retries and repeats in a real browser: each is moved, and what it shows is read from the page."""

from __future__ import annotations

from typing import Any

import pytest

THEMES = pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])


def shows(page: Any, selector: str, text: str) -> None:
    """Wait until an element says `text`."""
    page.wait_for_function("([selector, text]) => document.querySelector(selector)?.textContent.includes(text)",
                           arg=[selector, text])


def choose(page: Any, hook: str, text: str) -> None:
    page.locator(f".t-{hook} label", has_text=text).last.click()


@THEMES
def test_the_line_of_time_follows_the_tool_the_waits_the_timeout_and_the_jitter(notebook: Any, dark: bool) -> None:
    page = notebook("from looplab import retry_timeline\nretry_timeline()", dark=dark)
    shows(page, ".t-retries .ll-say", "The tool gives a result at attempt 4, after 9.7 s.")
    page.locator(".t-jitter input").uncheck()
    shows(page, ".t-retries .ll-say", "after 9.0 s.")
    choose(page, "tool", "pays, and its answer is lost")
    shows(page, ".t-retries .ll-say", "The customer was paid 3 times.")
    choose(page, "waits", "never")
    shows(page, ".t-retries .ll-say", "The customer was paid once, and nobody knows.")
    choose(page, "tool", "needs 3 s")
    shows(page, ".t-retries .ll-observation", "no result within 2 s; the call may still be running")
    page.locator(".t-timeout .noUi-handle").focus()
    page.keyboard.press("ArrowRight")
    shows(page, ".t-retries .ll-say", "The tool gives a result at once, after 3.0 s.")


@THEMES
def test_the_repeat_bench_follows_the_key_the_limit_and_the_model(notebook: Any, dark: bool) -> None:
    page = notebook("from looplab import repeat_bench\nrepeat_bench()", dark=dark)
    shows(page, ".t-repeats .ll-say", "5 of 8 right; 2 missed, 1 false alarm.")
    choose(page, "key", "tool and arguments")
    shows(page, ".t-repeats .ll-say", "the same in tool and arguments: 4 of 8 right; 2 missed, 2 false alarms.")
    choose(page, "key", "all three, anywhere in the run")
    page.locator(".t-limit .noUi-handle").focus()
    page.keyboard.press("ArrowRight")
    shows(page, ".t-repeats .ll-say", "refuses the fourth call")
    choose(page, "model", "goes A-B-A-B")
    shows(page, ".t-repeats .ll-tab", "get_customer(name=\"Ada\")")
    assert page.locator(".t-repeats .ll-refused").count() == 1
