"""Every notebook in JupyterLab: run from the top to the end, and all its widgets then used with the keyboard alone."""

import json
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ERRORS = """jupyterapp.shell.currentWidget.content.widgets
    .filter(cell => cell.model.type === 'code')
    .filter(cell => cell.model.outputs.toJSON().some(output => output.output_type === 'error'))
    .map(cell => cell.model.id)"""
CELLS = """jupyterapp.shell.currentWidget.content.widgets.map(cell =>
    [cell.model.id, cell.model.type, cell.model.sharedModel.getSource()].join(' '))"""
SELECTED = "jupyterapp.shell.currentWidget.content.activeCell.model.id"
CONTROLS = """() => {
    const views = [...document.querySelectorAll('.ll-view')].filter(view => !view.parentElement.closest('.ll-view'));
    window.controls = new Map();
    views.forEach((view, i) => [...view.querySelectorAll('button, input, textarea, select, summary, [tabindex="0"]')]
        .filter(part => !part.disabled && part.checkVisibility({visibilityProperty: true}))
        .forEach(part => {
            const kind = part.localName === 'input' ? part.type : part.role ?? part.localName;
            const hook = part.closest('[class*=" t-"]').className.match(/ t-([^ ]+)(?!.* t-)/)[1];
            const text = part.ariaLabel ?? (kind === 'summary' ? part.textContent.trim() : '');
            const name = [i + 1, hook, kind, text].join(' · ');
            if (!controls.has(name) || part.checked) controls.set(name, part); /* a row of options is one control */
        }));
    return [...controls.keys()];
}"""
REACHED = """() => {
    const row = document.activeElement.closest('.widget-radio-box');
    const parts = row ? [...row.querySelectorAll('input')] : [document.activeElement];
    return [...controls].filter(([name, part]) => parts.includes(part)).map(([name]) => name);
}"""
FOCUS = """name => {
    const part = controls.get(name);
    part.focus();
    if (part.role === 'region') part.scrollTop = -1e6; /* to its top, also where a list begins at its end */
    return {isWhole: part.readOnly || part.role === 'region' && part.scrollHeight <= part.clientHeight,
        isAtEnd: part.role === 'slider' ? part.ariaValueNow === part.ariaValueMax
            : part.localName === 'select' && part.selectedIndex === part.length - 1};
}"""
STATE = """window.stateOf = name => {
    const part = controls.get(name), view = part.closest('.ll-view');
    return !view ? 'gone' : [part.scrollTop, part.value, view.innerHTML,
        ...[...view.querySelectorAll('input')].map(input => input.checked)].join();
}"""
CHANGES = """async ([name, before]) => {
    for (let wait = 0; wait < 10_000 && stateOf(name) === before; wait += 20)
        await new Promise(go_on => setTimeout(go_on, 20));
    return stateOf(name) !== before;
}"""
SETTLED = """async () => {
    const kernel = jupyterapp.shell.currentWidget.sessionContext.session.kernel;
    for (let messages = 0; messages < 3; messages += 1)  /* a widget holds one back until the one before is done */
        await kernel.requestKernelInfo();
}"""
WORK = {"button": "Enter", "radio": "ArrowRight", "checkbox": "Space", "slider": "ArrowRight", "summary": "Enter",
        "select": "ArrowDown", "region": "ArrowDown"}  # in a field, a 0
HARM = ["d", "d", *"abxmyrcvzjko", "i", "i", "0", "0", "Shift+A", "Shift+M", "Shift+ArrowDown"]
MOVES = ["Enter", "ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"]


@pytest.fixture(scope="module", params=sorted((ROOT / "notebooks").glob("[0-9]*.ipynb")), ids=lambda path: path.stem)
def book(request, lab, desk):
    """Give the page of a notebook that has run, and the notebook."""
    folder = lab[2]
    for name in ("figures", "notebooks"):  # a notebook may read another
        if not (folder / name).exists():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("looplab", "solutions"))
    book = json.loads(request.param.read_text(encoding="utf-8"))
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    path = folder / "notebooks" / request.param.name
    path.write_text(json.dumps(book), encoding="utf-8")
    with desk() as made:
        yield made.open(path), book


def test_a_notebook_runs_to_its_end_and_only_the_cells_raise_that_say_so(book):
    page, written = book
    tags = {cell["id"]: cell["metadata"].get("tags", []) for cell in written["cells"]}
    assert page.evaluate(ERRORS) == [name for name in tags if "raises-exception" in tags[name]]


def test_tab_reaches_each_control_of_its_widgets_and_each_row_of_options_once(book):
    page, _ = book
    controls = page.evaluate(CONTROLS)
    page.evaluate("jupyterapp.shell.currentWidget.content.widgets[0].node.focus()")
    reached = []
    while page.evaluate("!!document.activeElement.closest('.jp-Notebook')"):
        page.keyboard.press("Tab")
        reached += page.evaluate(REACHED)
    assert sorted(reached) == sorted(controls)


@pytest.fixture(scope="module")
def kinds():
    """Give the kinds of controls at which every harmful key was tried; once in all notebooks is enough."""
    return set()


def test_each_control_does_its_work_by_a_key_and_no_key_reaches_the_notebook(book, kinds):
    page, _ = book
    cells, used, idle = page.evaluate(CELLS), set(), []
    while left := [name for name in page.evaluate(CONTROLS) if name not in used]:
        name, kind = left[0], left[0].split(" · ")[2]
        page.evaluate(FOCUS, name)
        selected = page.evaluate(SELECTED)
        if kind not in kinds:
            for key in HARM + MOVES[kind in ("button", "select"):]:
                page.keyboard.press(key)
            page.evaluate(SETTLED)
            assert page.evaluate(CELLS) == cells, f"a key harmed the notebook, at {name}"
            page.evaluate(CONTROLS)
        part = page.evaluate(FOCUS, name)
        before = page.evaluate(STATE, name)
        page.keyboard.press("ArrowLeft" if part["isAtEnd"] else WORK.get(kind, "0"))
        idle += [name] * (not part["isWhole"] and not page.evaluate(CHANGES, [name, before]))
        page.evaluate(SETTLED)
        assert (page.evaluate(CELLS), page.evaluate(SELECTED)) == (cells, selected), f"a key went on, at {name}"
        assert page.evaluate("!!document.activeElement.closest('.ll-view, summary')"), f"the focus is lost, at {name}"
        assert page.locator(".jp-Dialog").count() == 0, f"a key opened a dialog, at {name}"
        kinds.add(kind)
        used.add(name)
    assert idle == [], "no key works there"
