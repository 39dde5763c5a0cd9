"""The loop player in a real JupyterLab: stepped by keyboard, in both themes, wide and narrow."""

from __future__ import annotations

from typing import Any

import pytest

LOOP = '''from agentloop import *
from looplab import play

def run_agent(task, model, registry, system="Use the tools to answer the user.", max_steps=8, token_budget=4000):
    messages = [{"role": "system", "content": system}, {"role": "user", "content": task}]
    specs, spent = registry.specs(), 0
    for step in range(1, max_steps + 1):
        prompt = count_tokens(specs) + count_tokens(messages)
        if spent + prompt > token_budget:
            return AgentResult("token_budget", None, step - 1, spent, messages)
        reply = model(messages, specs)
        message = {"role": "assistant", "content": reply.content,
                   "tool_calls": [{"id": c.id, "name": c.name, "args": c.args} for c in reply.tool_calls]}
        messages.append(message)
        spent += prompt + count_tokens(message)
        if not reply.tool_calls:
            return AgentResult("done", reply.content, step, spent, messages)
        for call in reply.tool_calls:
            observation = registry.execute(call.name, call.args)
            messages.append({"role": "tool", "tool_call_id": call.id, "name": call.name, "content": observation})
    return AgentResult("step_limit", None, max_steps, spent, messages)
'''
PLAY = '''script = [asks(call("c1", "get_weather", place="Pune")), *weather_script()]
player = play(WEATHER_TASK, ScriptedModel(script), weather_world()[0], run_agent, token_budget=900)
player
'''
PARTS = ".t-player, .t-player .ll-say, .t-player .ll-lines, .t-player .ll-msgs, .t-player .ll-vars, .t-player .ll-meter"
PLACES = f"""[...document.querySelectorAll({PARTS!r})].map(part => {{
    const box = part.getBoundingClientRect();
    const top = document.querySelector('.t-player').getBoundingClientRect().top;
    return [box.left, box.top - top, box.width, box.height].join(' ');
}})"""


def arrive(page: Any, frame: int) -> None:
    """Wait until the player shows a frame; the first is 1."""
    page.wait_for_selector(f".t-player .ll-position:text-matches('^{frame} /')")


def said(page: Any) -> str:
    """Return the sentence."""
    return str(page.inner_text(".t-player .ll-say")).strip()


def lit(page: Any) -> list[str]:
    """Return the numbers of the lit lines."""
    return page.locator(".t-player .ll-now > span:first-child").all_inner_texts()


def focused(page: Any) -> str:
    """Return the text, or else the role, of what has the focus."""
    return str(page.evaluate("(({textContent, role}) => textContent.trim() || role)(document.activeElement)"))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_is_stepped_with_the_keyboard_alone(notebook: Any, dark: bool) -> None:
    page = notebook(LOOP, PLAY, dark=dark)
    arrive(page, 6)
    assert said(page).startswith("The model is shown 2 messages and replies with 1 call: get_weather(place=")
    assert lit(page) == ["8"] and page.locator(".t-player .ll-m.ll-seen").count() == 2

    colours = page.evaluate("""[getComputedStyle(document.querySelector('.ll-say .ll-assistant')).color,
                                getComputedStyle(document.querySelector('.ll-now')).backgroundColor]""")
    assert colours == (["rgb(88, 171, 246)", "rgb(56, 49, 26)"] if dark else ["rgb(11, 98, 196)", "rgb(255, 243, 196)"])

    page.focus(".t-first")
    page.keyboard.press("Enter")
    arrive(page, 1)
    page.wait_for_function("document.activeElement.textContent === 'Play'")  # First and Back lead nowhere now
    page.keyboard.press("Tab")
    assert focused(page) == "Next"
    page.keyboard.press("Enter")
    arrive(page, 2)
    page.keyboard.press("Space")
    arrive(page, 3)
    assert (said(page), lit(page)) == ("The loop begins step 1 of 8.", ["4"])
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    assert focused(page) == "Back"
    page.keyboard.press("Enter")
    arrive(page, 2)

    for _ in range(4):
        page.keyboard.press("Tab")
    assert focused(page) == "slider"
    page.keyboard.press("ArrowRight")
    arrive(page, 3)
    page.keyboard.press("ArrowLeft")
    arrive(page, 2)

    page.keyboard.press("Tab")
    for name, frame, sentence in [
            ("model call", 6, "The model is shown 2 messages"),
            ("tool call", 12, "The tool did not run: the call lacks"),
            ("error", 13, "The error goes back to the model as the observation of c1."),
            ("exit", 42, "Exit: token_budget. 728 tokens are spent and the next prompt needs about")]:
        assert focused(page) == name
        page.keyboard.press("Enter")
        arrive(page, frame)
        assert said(page).startswith(sentence)
        page.keyboard.press("Tab")
    last = page.locator(".t-player .ll-m").last.inner_text()
    assert " ".join(last.split()) == "exit token_budget after 3 steps, 728 tokens"
    dead = [name for name in ("first", "back", "play", "next", "last") if page.is_disabled(f".t-{name}")]
    assert dead == ["play", "next", "last"]

    page.focus(".t-back")
    page.keyboard.press("a")
    assert page.locator(".jp-Cell").count() == 2
    page.keyboard.press("Escape")  # the keys are JupyterLab's again
    page.keyboard.press("a")
    page.wait_for_function("document.querySelectorAll('.jp-Cell').length === 3")


def test_nothing_moves_from_frame_to_frame(notebook: Any) -> None:
    page = notebook(LOOP, PLAY)
    frames = int(page.inner_text(".ll-position").split("/")[1])
    for width in (1280, 700):
        page.set_viewport_size({"width": width, "height": 1000})
        page.click(".t-first")
        arrive(page, 1)
        places = set()
        for frame in range(2, frames + 1):
            page.click(".t-next")
            arrive(page, frame)
            places.add(tuple(page.evaluate(PLACES)))
        assert len(places) == 1
        assert page.locator(".ll-lines").evaluate("code => code.scrollWidth <= code.clientWidth")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_no_serious_fault(notebook: Any, faults: Any, dark: bool) -> None:
    page = notebook(LOOP, PLAY, dark=dark)
    assert faults(page, ".t-player") == []
    page.click(".t-jump-error")
    page.click(".t-player .ll-specs summary")
    arrive(page, 13)
    assert faults(page, ".t-player") == []
    page.click(".t-last")
    arrive(page, 42)
    assert faults(page, ".t-player") == []


def test_play_errors_and_evil_text(notebook: Any) -> None:
    evil = "<img src=x onerror=alert(1)><script>alert(2)</script><b>hi</b>"
    page = notebook(
        LOOP, PLAY, "import looplab.player\nlooplab.player.SECONDS = 0.02",
        f"evil = {evil!r}\nscript = [asks(call(evil, evil, q=evil), text=evil), final(evil)]\n"
        "play(evil, ScriptedModel(script), weather_world()[0])",
        "endless = lambda messages, specs: asks(call('', 'get_weather', city='Pune'))\n"
        "long = play(WEATHER_TASK, endless, weather_world()[0], max_steps=30, token_budget=10**6)\nlong")
    moving, odd, long = (page.locator(".t-player").nth(i) for i in range(3))
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))

    width = moving.locator(".t-play").bounding_box()["width"]
    moving.locator(".t-play").click()
    moving.locator(".t-play:has-text('Pause')").wait_for()
    assert moving.locator(".t-play").bounding_box()["width"] == width
    moving.locator(".ll-end").wait_for()
    moving.locator(".t-play:has-text('Play')").wait_for()

    odd.locator(".t-last").click()
    odd.locator(".ll-end").wait_for()
    assert evil in odd.locator(".ll-msgs").inner_text()
    assert odd.locator("img, script").count() == 0 and dialogs == []

    long.locator(".ll-specs summary").click()
    long.locator(".t-last").click()
    long.locator(".ll-end").wait_for()
    box, end = long.locator(".ll-msgs").bounding_box(), long.locator(".ll-end").bounding_box()
    assert end["y"] + end["height"] <= box["y"] + box["height"]
    assert long.locator(".ll-msgs").evaluate("list => list.scrollHeight > list.clientHeight")
    assert long.locator(".ll-specs").get_attribute("open") is not None

    run_cell(page, "long.recording.versions[0][0] = None")
    long.locator(".t-back").click()
    long.locator(".t-error [role=alert]").wait_for()
    assert long.locator(".t-error").inner_text().strip().startswith("That did not work: AttributeError: ")


def run_cell(page: Any, source: str) -> None:
    """Run code in the notebook's kernel."""
    page.evaluate("""async source => {
        const kernel = jupyterapp.shell.currentWidget.sessionContext.session.kernel;
        await kernel.requestExecute({code: source}).done;
    }""", source)
