"""The diff and test view in a real browser: it is stepped through from the keyboard, and read from the page."""

from __future__ import annotations

import pytest

THEMES = pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
VIEW = """from agentloop import ScriptedModel, ToolRegistry, run_agent, to_json
from looplab import project_view
from looplab.project import ADD, RIGHT_ADD, one_edit

tests = to_json({"passed": False, "tests": 2, "said": "AssertionError: " + "x" * 90})
gave = iter([to_json({"edited": "calculator.py"}), tests])
run = run_agent("Mend add.", ScriptedModel(one_edit("calculator.py", ADD, RIGHT_ADD)), ToolRegistry(),
                execute=lambda asked: next(gave))
project_view({"a run": run, "the same": run}, {"a run": False})"""


def shows(page, selector, text):
    """Wait until an element says `text`."""
    page.wait_for_function(
        "([selector, text]) => document.querySelector(selector)?.textContent.includes(text)", arg=[selector, text]
    )


@THEMES
def test_a_run_is_walked_from_the_keyboard(notebook, dark):
    page = notebook(VIEW, dark=dark)
    shows(page, ".t-say", "Step 1 of 3: the model asks for edit(")
    assert page.locator(".t-files .ll-now").count() == 2
    page.locator(".t-next").press("Enter")
    shows(page, ".t-say", "The tests do not pass.")
    shows(page, ".t-side", "2 tests ran: did not pass.")
    page.locator(".t-last").press("Space")
    shows(page, ".t-side", "The run stopped with done. The verifier: it did not succeed.")
    shows(page, ".t-position", "3 / 3")
    page.wait_for_selector(".t-last:disabled")
    page.locator(".t-choice label", has_text="the same").click()
    shows(page, ".t-position", "1 / 3")


@THEMES
def test_axe_finds_no_serious_fault(notebook, faults, dark):
    page = notebook(VIEW, dark=dark)
    shows(page, ".t-say", "Step 1 of 3")
    assert faults(page, ".t-project") == []
    page.locator(".t-last").click()
    shows(page, ".t-position", "3 / 3")
    assert faults(page, ".t-project") == []


@pytest.mark.parametrize("width", [700, 1280])
def test_the_view_is_not_wider_than_its_cell_and_keeps_its_height(notebook, width):
    page = notebook(VIEW, width=width)
    page.wait_for_selector(".ll-view")
    heights = set()
    for place in ("1 / 3", "2 / 3", "3 / 3"):
        shows(page, ".t-position", place)
        heights.add(page.evaluate("document.querySelector('.t-files').getBoundingClientRect().height"))
        assert page.evaluate("""() => {
            const bench = document.querySelector('.ll-view'), out = bench.closest('.jp-OutputArea-output')
            const right = out.getBoundingClientRect().right
            return [...bench.querySelectorAll('*')].filter(e => e.getBoundingClientRect().right > right + 1
                && !e.closest('.ll-lines')).map(e => e.className)
        }""") == []
        if place != "3 / 3":
            page.locator(".t-next").click()
    assert len(heights) == 1
