"""The transcript reader in a real browser: claims are gone through, a conclusion is chosen and typed."""

from __future__ import annotations

import pytest

THEMES = pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
READER = """from agentloop import ScriptedModel, run_agent
from looplab import transcript_reader
from looplab.worlds import CHECKOUT_TASK, checkout_world, investigates

run = run_agent(CHECKOUT_TASK, ScriptedModel(investigates()), checkout_world()[0])
transcript_reader(run.messages, {"another version": run.answer.replace("v841", "v842")})"""


def shows(page, selector, text):
    """Wait until an element says `text`."""
    page.wait_for_function(
        "([selector, text]) => document.querySelector(selector)?.textContent.includes(text)", arg=[selector, text]
    )


@THEMES
def test_a_claim_lights_up_the_result_it_comes_from_and_an_invention_lights_up_none(notebook, dark):
    page = notebook(READER, dark=dark)
    shows(page, ".t-say", "v841 comes from list_deploys, turn 2.")
    for _ in range(3):
        page.locator(".t-next").press("Enter")
    shows(page, ".t-position", "4 / 11")
    shows(page, ".t-say", "Five minutes follows from 02:00 - 01:55 = 5, turns 1 and 2.")
    assert page.locator(".t-list .ll-new").count() == 2 and page.locator(".t-table tr[aria-current]").count() == 1
    height = page.locator(".t-reader").bounding_box()["height"]
    page.locator(".t-choice label", has_text="another version").click()
    shows(page, ".t-say", "v842 stands in no result.")
    assert page.locator(".t-list .ll-new").count() == 0
    page.locator(".t-unproven").press("Space")
    shows(page, ".t-position", "10 / 11")
    assert page.locator(".t-reader").bounding_box()["height"] == height
    page.locator(".t-text textarea").fill("p99 was <b>7</b> ms")
    shows(page, ".t-table", "Proven: 0 of 1 claim.")
    shows(page, ".t-say", "7 stands in no result.")


@THEMES
def test_axe_finds_no_serious_fault(notebook, faults, dark):
    page = notebook(READER, dark=dark)
    page.locator(".t-next").click()
    shows(page, ".t-position", "2 / 11")
    assert faults(page, ".t-reader") == []
