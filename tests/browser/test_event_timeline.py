"""The event timeline in a real browser: one steps through a run, and reads what it told from the page."""

from __future__ import annotations

import pytest

THEMES = pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
TIMELINE = """
from agentloop import agent_events, asks, async_model, call, final, run_agent_async, ScriptedModel, strict_execute
from looplab import event_timeline
from looplab.coding import CODING_TASK, calculator_world

registry, _ = calculator_world()
paths = {"r1": "calculator.py", "r2": "sum.py"}
script = [asks(*(call(name, "read", path=path) for name, path in paths.items())), final("Seen.")]
runs = {}
for name, safe in (("at once", {"read"}), ("in order", ())):
    events = agent_events(run_agent_async, CODING_TASK, async_model(ScriptedModel(script)), registry,
                          execute=strict_execute(registry), safe=safe)
    runs[name] = [event async for event in events]
event_timeline(**runs)
"""


def shows(page, selector, text):
    """Wait until an element says `text`."""
    page.wait_for_function(
        "([selector, text]) => document.querySelector(selector)?.textContent.includes(text)", arg=[selector, text]
    )


@THEMES
def test_a_run_is_walked_event_by_event(notebook, dark):
    page = notebook(TIMELINE, dark=dark)
    shows(page, ".t-say", "Exit: done. The run took 2 turns.")
    page.wait_for_selector(".t-next:disabled")
    page.locator(".t-first").click()
    shows(page, ".t-say", "The system message stands in the list")
    for number in range(2, 6):
        page.locator(".t-next").press("Enter")
        shows(page, ".t-position", f"{number} / 11")
    shows(page, ".t-say", 'The tool starts r2: read(path="sum.py"), while r1 runs.')
    page.locator(".t-choice label", has_text="in order").click()
    shows(page, ".t-list", "done")
    page.locator(".t-back").press("Space")
    shows(page, ".t-say", "Turn 2 is complete")


@THEMES
def test_axe_finds_no_serious_fault(notebook, faults, dark):
    page = notebook(TIMELINE, dark=dark)
    shows(page, ".t-say", "Exit: done.")
    assert faults(page, ".t-timeline") == []


@pytest.mark.parametrize("width", [700, 1280])
def test_the_timeline_is_not_wider_than_its_cell(notebook, width):
    page = notebook(TIMELINE, width=width)
    page.wait_for_selector(".ll-view")
    assert page.evaluate("""() => {
        const bench = document.querySelector('.ll-view'), out = bench.closest('.jp-OutputArea-output')
        const right = out.getBoundingClientRect().right
        return [...bench.querySelectorAll('*')].filter(e => e.getBoundingClientRect().right > right + 1
            && !e.closest('.ll-tab, .ll-msgs, .ll-note')).map(e => e.className)
    }""") == []
