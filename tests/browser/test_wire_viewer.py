"""The wire viewer in a real browser: it is moved with the keyboard, and what it lights is read from the page."""

from __future__ import annotations

import pytest

THEMES = pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
WIRE = """from agentloop import ScriptedModel, asks, call, run_agent, weather_world
from looplab import wire_viewer

registry, _ = weather_world()
both = asks(call("c1", "get_weather", city="Pune"), call("c2", "get_weather", city="Atlantis"), text="I look.")
wire_viewer(run_agent("How hot?", ScriptedModel([both]), registry, max_steps=1).messages, registry.specs())"""


def shows(page, selector, text):
    """Wait until an element, the first of several, says `text`."""
    page.wait_for_function(
        "([selector, text]) => document.querySelector(selector)?.textContent.includes(text)", arg=[selector, text]
    )


@THEMES
def test_a_message_is_lit_on_both_sides_and_nothing_moves(notebook, dark):
    page = notebook(WIRE, dark=dark)
    shows(page, ".t-say", "Message 3, tool, is a block tool_result in a turn of the user, beside 1 other message")
    height = page.locator(".t-wire").bounding_box()["height"]
    page.locator(".t-next").press("Enter")
    shows(page, ".t-say", "messages[2].content[1]")
    shows(page, ".t-ours .ll-now", '"tool_call_id": "c2"')
    shows(page, ".t-theirs .ll-now", '"tool_use_id": "c2"')
    page.locator(".t-provider label", has_text="OpenAI").click()
    shows(page, ".t-say", "messages[4]")
    shows(page, ".t-theirs .ll-now", '"role": "tool", "tool_call_id": "c2"')
    page.locator(".t-provider input").last.press("Space")
    shows(page, ".t-say", "[3].content, line 2")
    page.locator(".t-last").press("Space")
    shows(page, ".t-say", "The specs are lines of the system text")
    shows(page, ".t-position", "6 / 6")
    shows(page, ".t-ours .ll-now", "specs = [")
    page.wait_for_selector(".t-next:disabled")
    assert page.locator(".t-wire").bounding_box()["height"] == height


@THEMES
def test_axe_finds_no_serious_fault(notebook, faults, dark):
    assert faults(notebook(WIRE, dark=dark), ".t-wire") == []


@pytest.mark.parametrize("width", [700, 1280])
def test_it_is_no_wider_than_its_cell(notebook, width):
    page = notebook(WIRE, width=width)
    page.wait_for_selector(".ll-view")
    assert page.evaluate("""() => {
        const bench = document.querySelector('.ll-view'), out = bench.closest('.jp-OutputArea-output')
        const right = out.getBoundingClientRect().right
        return [...bench.querySelectorAll('*')].filter(e => e.getBoundingClientRect().right > right + 1
            && !e.closest('.ll-lines, .ll-note')).map(e => e.className)
    }""") == []
