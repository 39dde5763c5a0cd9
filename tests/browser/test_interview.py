"""Mock interview and bug clinic in a real browser, with the keyboard, in both themes."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLAIN = (ROOT / "tests/fixtures/plain.py").read_text(encoding="utf-8")
ROOM = """from pathlib import Path
from looplab import mock_interview

interview = mock_interview(45, seed=1, folder=Path("."))
interview"""
INTERVIEW = [ROOM, "interview.rubric()", "interview.ask_aloud()", "interview.result()"]
CLINIC = ["from looplab import bug_clinic\nclinic = bug_clinic(2)\nclinic",
          "def test(agentloop):\n    assert ...\n\n\nclinic.judge(test)"]
themes = pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])


def press(page, hook):
    """Move the focus to the button of that name, and press it."""
    page.locator(f"button.t-{hook}").press("Enter")


def choose(page, hook, text):
    """Move the focus to one of the choices of that name, and choose it."""
    page.locator(f".t-{hook} label", has_text=text).locator("input").press("Space")


def wait_for(page, hook, text):
    page.wait_for_function("([hook, text]) => document.querySelector('.t-' + hook).textContent.includes(text)",
                           arg=[hook, text])


@pytest.fixture
def folder(lab):
    """The folder of the notebook, where nothing is left of another reader."""
    for left in lab[2].glob("my_*"):
        left.unlink()
    return lab[2]


@themes
def test_an_interview_is_played_from_the_first_part_to_the_saved_page(notebook, folder, dark):
    page = notebook(*INTERVIEW, dark=dark)
    assert page.locator(".t-clock").inner_text() == "45:00 paused"
    press(page, "start")
    page.wait_for_function("/44:5\\d running/.test(document.querySelector('.t-clock').textContent)")
    press(page, "start")
    wait_for(page, "clock", "paused")
    press(page, "file")
    wait_for(page, "say", "my_interview.py is blank.")
    press(page, "next")
    wait_for(page, "asked", "1. Shapes")
    press(page, "checks")
    wait_for(page, "report", "I see nothing of this yet.")
    (folder / "my_interview.py").write_text(PLAIN, encoding="utf-8")
    press(page, "checks")
    wait_for(page, "report", "16 of 16")
    choose(page, "tick-5", "weak")
    wait_for(page, "page", "One of the two limits")
    press(page, "more")
    wait_for(page, "answer", "What is wrong, where, and what was expected")
    press(page, "save")
    wait_for(page, "saved", "my_interview_result.html")
    assert "05_exits.ipynb" in (folder / "my_interview_result.html").read_text(encoding="utf-8")


def test_a_double_click_is_one_wish_and_the_focus_comes_back_after_the_checks(notebook, folder):
    page = notebook(ROOM)
    page.locator("button.t-start").dblclick()
    page.wait_for_function("/running/.test(document.querySelector('.t-clock').textContent)")
    page.locator("button.t-next").dblclick()
    wait_for(page, "asked", "1. Shapes")
    press(page, "checks")
    wait_for(page, "report", "There is no file my_interview.py yet")
    page.wait_for_function("document.activeElement.matches('button.t-checks:enabled')")
    assert "running" in page.locator(".t-clock").inner_text()
    assert "2. Validator" not in page.locator(".t-asked").inner_text()


def test_beside_an_open_file_the_brief_wraps_and_only_code_scrolls_sideways(notebook, folder):
    page = notebook(*INTERVIEW, width=720)
    (folder / "my_interview.py").write_text(PLAIN, encoding="utf-8")
    for number in range(1, 7):
        press(page, "next")
        wait_for(page, "asked", f"{number}. ")
    press(page, "checks")
    wait_for(page, "headline", "110 hold")
    wide = """() => [...document.querySelectorAll('.ll-view, .ll-view *')].filter(
        e => e.tagName !== 'PRE' && e.clientWidth && e.scrollWidth > e.clientWidth + 1).map(e => e.className)"""
    assert page.evaluate(wide) == []
    code = "() => Math.max(...[...document.querySelectorAll('.ll-asked pre')].map(e => e.scrollWidth - e.clientWidth))"
    page.evaluate("document.querySelectorAll('.ll-asked details').forEach(fold => fold.open = true)")
    assert page.evaluate(code) > 0 and page.evaluate(wide) == []


@themes
def test_a_case_is_diagnosed_and_located(notebook, folder, dark):
    page = notebook(*CLINIC, dark=dark)
    wait_for(page, "verdict", "Case 2: not yet.")
    choose(page, "case", "3")
    wait_for(page, "say", "Case 3.")
    press(page, "hint")
    wait_for(page, "hints", "Hint 1 of 3. Look at the ids")
    choose(page, "options", "Observations stand under the ids of other calls.")
    press(page, "diagnose")
    wait_for(page, "diagnosis", "Right.")
    number = page.locator(".t-listing li", has_text="zip(calls, reversed(calls))").locator("span").first.inner_text()
    page.locator(".t-line input").fill(number)
    press(page, "locate")
    wait_for(page, "found", "That is it")
    wait_for(page, "progress", "This case: diagnosed and located.")
    wait_for(page, "table", "with 1 hint")
    assert page.locator(".t-listing .ll-now").count() == 3
    at = "document.querySelector('.t-listing .ll-at').getBoundingClientRect()"
    region = "document.querySelector('.t-listing .ll-lines').getBoundingClientRect()"
    page.wait_for_function(f"() => {at}.top > {region}.top && {at}.bottom < {region}.bottom")
    whole = "region => [...region.querySelectorAll('li')].some(row => row.offsetTop - region.scrollTop === %s)"
    assert page.locator(".t-listing .ll-lines").evaluate(whole % "region.offsetTop")  # no line is cut at the top
    choose(page, "case", "5")
    wait_for(page, "say", "Case 5.")
    assert page.locator(".t-run .ll-msgs").evaluate("region => region.scrollTop") == 0  # it begins with its first row
    assert page.locator(".t-words textarea").input_value() == "" and not page.locator(".t-listing .ll-now").count()
    choose(page, "case", "3")
    wait_for(page, "say", "Case 3.")
    page.wait_for_function("number => document.querySelector('.t-line input').value === number", arg=number)
    wait_for(page, "progress", "This case: diagnosed and located.")


@themes
def test_the_benches_can_be_used_by_everybody(notebook, folder, faults, dark):
    page = notebook(*INTERVIEW, CLINIC[0], dark=dark)
    benches = ("interview", "rubric", "aloud", "result", "clinic")
    assert [fault for bench in benches for fault in faults(page, f".t-{bench}")] == []
