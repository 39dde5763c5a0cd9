"""The approval bench and the trace viewer in a real browser: each is moved, and what it shows is read from the page."""

from __future__ import annotations

import pytest

THEMES = pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
APPROVAL = "from looplab import approval_bench\napproval_bench()"
TRACES = (
    "from looplab import trace_viewer\nfrom looplab.recordings import FOLDER\n"
    "trace_viewer(*sorted(FOLDER.glob('*.jsonl')))"
)


def shows(page, selector, text):
    """Wait until an element says `text`."""
    page.wait_for_function(
        "([selector, text]) => document.querySelector(selector)?.textContent.includes(text)", arg=[selector, text]
    )


@THEMES
def test_a_person_decides_with_buttons(notebook, dark):
    page = notebook(APPROVAL, dark=dark)
    shows(page, ".t-say", "The gate holds issue_refund")
    page.locator(".t-change").click()
    shows(page, ".t-say", "but the file holds issue_refund(order_id=\"A123\", amount=50000), and that waits.")
    page.locator(".t-back").press("Enter")
    shows(page, ".t-say", "The gate holds issue_refund")
    page.locator(".t-approve").press("Space")
    shows(page, ".t-say", "A person said yes to")
    shows(page, ".t-list", "5000 rupees were paid back.")
    page.wait_for_selector(".t-approve:disabled")
    assert page.locator(".t-waiting").inner_text().startswith("Nobody")
    page.locator(".t-preset label", has_text="two refunds").click()
    shows(page, ".t-waiting", "amount=2500")
    page.locator(".t-reject").click()
    shows(page, ".t-say", "A person said no to")
    shows(page, ".t-list", "ERROR: a person rejected this action")


@THEMES
def test_a_recorded_run_is_walked_step_by_step(notebook, dark):
    page = notebook(TRACES, dark=dark)
    shows(page, ".t-say", "Step 1 of 8: the model took 0.8 s and asked for get_order")
    page.locator(".t-last").click()
    shows(page, ".t-list", "step_limit")
    page.wait_for_selector(".t-next:disabled")
    page.locator(".t-preset label, .t-choice label", has_text="run_c").click()
    shows(page, ".t-say", "The tool took 31 s.")
    assert page.locator(".t-table tr[aria-current]").count() == 1
    page.locator(".t-next").press("Enter")
    shows(page, ".t-position", "2 / 2")


BENCHES = {"approval": (APPROVAL, ".t-approve"), "trace": (TRACES, ".t-last")}


@THEMES
@pytest.mark.parametrize("bench", BENCHES)
def test_axe_finds_no_serious_fault(notebook, faults, bench, dark):
    code, control = BENCHES[bench]
    page = notebook(code, dark=dark)
    assert faults(page, f".t-{bench}") == []
    page.locator(control).click()
    page.wait_for_function("jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'idle'")
    assert faults(page, f".t-{bench}") == []


@pytest.mark.parametrize("width", [700, 1280])
@pytest.mark.parametrize("bench", BENCHES)
def test_no_bench_is_wider_than_its_cell(notebook, bench, width):
    page = notebook(BENCHES[bench][0], width=width)
    page.wait_for_selector(".ll-view")
    assert page.evaluate("""() => {
        const bench = document.querySelector('.ll-view'), out = bench.closest('.jp-OutputArea-output')
        const right = out.getBoundingClientRect().right
        return [...bench.querySelectorAll('*')].filter(e => e.getBoundingClientRect().right > right + 1
            && !e.closest('.ll-tab, .ll-msgs, .ll-callrow, .ll-note')).map(e => e.className)
    }""") == []
