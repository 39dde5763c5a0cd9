"""How fast the loop player is: `python tests/benchmark_widgets.py` prints it; nothing passes or fails by time.

A key press is timed inside a real browser, from the key to the last change of the page and to the next picture that
the browser paints. Needs what tests/browser needs.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "browser"))

from agentloop import WEATHER_TASK, asks, call, run_agent, weather_world
from conftest import Desk, browser, jupyterlab
from looplab.narrator import as_html
from looplab.player import code_html, height_of, list_html, meter_html, play, state_at, values_html

PRESSES = 50
CELL = """
from agentloop import WEATHER_TASK, asks, call, weather_world
from looplab import play
endless = lambda messages, specs: asks(call("", "get_weather", city="Pune"))
player = play(WEATHER_TASK, endless, weather_world()[0], max_steps={steps}, token_budget=10**9)
player
"""
WATCH = """() => {
    const player = document.querySelector('.t-player');
    window.times = {};
    player.addEventListener('keydown', () => { times = {key: performance.now()}; }, true);
    new MutationObserver(() => {
        times.changed = performance.now();
        requestAnimationFrame(() => { times.painted = performance.now(); });
    }).observe(player, {subtree: true, childList: true, characterData: true, attributes: true});
}"""
QUIET = "times.painted > times.changed && performance.now() - times.changed > 150"


def endless(messages: list[Any], specs: list[Any]) -> Any:
    """Ask for the same tool for ever."""
    return asks(call("", "get_weather", city="Pune"))


def print_row(what: str, seconds: list[float]) -> None:
    print(f"{what:<58} median {statistics.median(seconds) * 1000:7.1f} ms   worst {max(seconds) * 1000:7.1f} ms")


def timed(work: Callable[[], Any]) -> float:
    """Return how many seconds a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def player_of(steps: int) -> Any:
    return play(WEATHER_TASK, endless, weather_world()[0], max_steps=steps, token_budget=10**9)


def measure_view() -> None:
    """Time the view functions alone, over the last frames of a run."""
    for messages in (10, 300):
        player = player_of((messages - 2) // 2)

        frames = range(max(0, len(player) - 200), len(player))
        print_row(f"view functions, {messages} messages", [timed(partial(view, player, frame)) for frame in frames])


def view(player: Any, frame: int) -> list[str]:
    """Make all the HTML of a frame."""
    state = state_at(player.recording, frame)
    return [code_html(player.rows, state), values_html(state, player.order), meter_html(state),
            list_html(state, height_of(player.rows)), as_html(state.sentence)]


def measure_recording() -> None:
    """Time a recorded run against a plain one."""
    for steps in (10, 100, 300):
        run = partial(run_agent, WEATHER_TASK, endless, weather_world()[0], max_steps=steps, token_budget=10**9)
        plain = min(timed(run) for _ in range(5))
        recorded = min(timed(partial(player_of, steps)) for _ in range(5))
        print(f"recording {steps:>3} steps: {recorded * 1000:7.1f} ms, plain run {plain * 1000:6.1f} ms, "
              f"{recorded / plain:.0f} times")


def measure_keys() -> None:
    """Time key presses in the browser: half of them Back from the end, half Next."""
    with tempfile.TemporaryDirectory() as home, jupyterlab(Path(home)) as lab, browser() as chromium:
        for messages in (10, 300):
            desk = Desk(lab, chromium, [])
            page = desk.open(CELL.format(steps=(messages - 2) // 2))
            page.click(".t-last")
            page.wait_for_selector(".ll-end")
            page.evaluate(WATCH)
            changed, painted = [], []
            for press in range(PRESSES):
                page.focus(".t-back" if press < PRESSES // 2 else ".t-next")
                page.keyboard.press("Enter")
                page.wait_for_function(QUIET)
                times = page.evaluate("times")
                changed.append((times["changed"] - times["key"]) / 1000)
                painted.append((times["painted"] - times["key"]) / 1000)
            print_row(f"key press to changed view, {messages} messages", changed)
            print_row(f"key press to painted view, {messages} messages", painted)
            desk.close()


if __name__ == "__main__":
    measure_view()
    measure_recording()
    measure_keys()
