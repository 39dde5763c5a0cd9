"""The event timeline: lanes and sentences follow the events, whichever module built their types."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import ipywidgets
import looplab
import pytest
from looplab import timeline
from looplab.coding import CODING_TASK, calculator_world, diagnoses
from looplab.timeline import Lane, event_words, lanes_of, messages_of, run_words, timeline_svg

from agentloop import (
    Stop,
    ToolCall,
    agent_events,
    asks,
    call,
    continue_agent_async,
    final,
    run_agent_async,
    strict_execute,
)

EVIL = '<img src=x onerror="alert(1)"><b>hi</b>'


def read(call_id: str, path: str = "calculator.py") -> ToolCall:
    return call(call_id, "read", path=path)


def told(*replies: Any, stop_at: str = "", safe: bool = False) -> list[Any]:
    """Return the events of a run in the world of the calculator; `stop_at` is the id of a call that is refused."""
    registry, _ = calculator_world()
    strict, script = strict_execute(registry), iter(replies)

    def execute(asked: ToolCall) -> str:
        if asked.id == stop_at:
            raise Stop("deadline")
        return strict(asked)

    async def model(messages: Any, specs: Any) -> Any:
        step = next(script)
        return step(messages, specs) if callable(step) else step

    async def collect() -> list[Any]:
        names = {"read"} if safe else set[str]()
        events = agent_events(run_agent_async, CODING_TASK, model, registry, execute=execute, safe=names)
        return [event async for event in events]

    return asyncio.run(collect())


THREE = (asks(read("r1"), read("r2", "sum.py"), read("r3")), final("Seen."))
RUNS = {
    "diagnosis": told(*diagnoses()),
    "at once": told(*THREE, safe=True),
    "in order": told(*THREE),
    "stopped": told(*THREE, stop_at="r2"),
    "no call": told(final("Hello.")),
}


# --- State ---------------------------------------------------------------------------------------------------


def states(events: list[Any]) -> dict[str, str]:
    return {lane.call_id: lane.state for lane in lanes_of(events)}


def test_a_lane_waits_runs_and_ends_with_a_result_an_error_or_unrun() -> None:
    assert [states(RUNS["diagnosis"][:n]).get("r1") for n in range(2, 6)] == [None, "waits", "runs", "error"]
    assert states(RUNS["diagnosis"]) == {"r1": "error", "r2": "result"}
    assert states(RUNS["stopped"]) == {"r1": "result", "r2": "error", "r3": "not run"}


def test_lanes_overlap_where_calls_ran_at_once_and_follow_each_other_where_they_did_not() -> None:
    spans = {name: [(lane.started, lane.ended) for lane in lanes_of(RUNS[name])] for name in ("at once", "in order")}
    assert spans == {"at once": [(4, 7), (5, 8), (6, 9)], "in order": [(4, 5), (6, 7), (8, 9)]}


def test_a_run_that_went_on_has_lanes_for_calls_whose_reply_was_told_before() -> None:
    async def go_on() -> list[Any]:
        registry, _ = calculator_world()
        stopped = RUNS["stopped"][-1].result
        open_again = type(stopped)("waiting_for_approval", None, 1, 0, stopped.messages[:-1])

        async def model(messages: Any, specs: Any) -> Any:
            return final("ok")

        return [e async for e in agent_events(continue_agent_async, open_again, model, registry, 8, 4000)]

    assert lanes_of(asyncio.run(go_on()))[0] == Lane(
        "r3", 'read(path="calculator.py")', 1, 2, '"def add(a, b):\\n    return a - b\\n"')


@pytest.mark.parametrize("name", RUNS)
def test_the_messages_are_those_of_the_result(name: str) -> None:
    assert messages_of(RUNS[name]) == RUNS[name][-1].result.messages


def test_each_event_has_its_sentence() -> None:
    said = ["".join(event_words(RUNS["at once"], n)[::2]) for n in range(1, 14)]
    assert said[2:6] == [
        "The model asks for 3 calls; the reply stands in the list, whole.",
        'The tool starts r1: read(path="calculator.py").',
        'The tool starts r2: read(path="sum.py"), while r1 runs.',
        'The tool starts r3: read(path="calculator.py"), while r1 and r2 run.',
    ]
    assert said[7] == "The tool returns an error for r2: use read with path='calculator.py'"
    assert said[9].startswith("Turn 1 is complete") and said[-1] == "Exit: done. The run took 2 turns."
    assert event_words(RUNS["stopped"], 8)[::2] == ("The harness", " did not run r3, and says so in its place.")


def test_a_run_is_one_sentence() -> None:
    assert run_words(RUNS["stopped"]) == "10 events, 3 calls: r1 from 4 to 5, r2 from 6 to 7; not run: r3."
    assert run_words(RUNS["no call"]) == "5 events, 0 calls."
    assert run_words(RUNS["at once"][:4]) == "4 events, 3 calls: r1 from 4 to the end; not run: r2, r3."


def test_events_are_known_by_the_name_of_their_type() -> None:
    @dataclass(frozen=True)
    class ToolStarted:
        call: ToolCall

    assert states([ToolStarted(read("r9"))]) == {"r9": "runs"}
    assert event_words([EVIL], 1) == ("str", "user", " is an event of your own.")


# --- Drawing -------------------------------------------------------------------------------------------------


def bars(events: list[Any], now: int) -> list[ElementTree.Element]:
    drawing = ElementTree.fromstring(timeline_svg(events, now))
    return [part for part in drawing if part.get("height") == "14.0"]


@pytest.mark.parametrize("name", RUNS)
def test_the_drawing_has_a_bar_for_each_call_that_has_begun_and_stays_in_its_frame(name: str) -> None:
    events = RUNS[name]
    for now in range(1, len(events) + 1):
        drawn = bars(events, now)
        assert len(drawn) == sum(lane.state != "waits" for lane in lanes_of(events[:now]))
        for bar in drawn:
            left, width = float(bar.get("x", "")), float(bar.get("width", ""))
            assert timeline.LEFT <= left and width > 0 and left + width <= timeline.WIDTH


def test_a_result_is_filled_an_error_hollow_and_what_is_under_way_dashed() -> None:
    assert [bar.get("fill") for bar in bars(RUNS["diagnosis"], 13)] == ["var(--ll-bg)", "var(--ll-tool)"]
    running, = bars(RUNS["diagnosis"], 4)
    assert running.get("stroke-dasharray") and running.get("stroke") == "var(--ll-tool)"


def test_the_frame_stays_the_same_while_one_steps_through_a_run() -> None:
    boxes = {re.search('viewBox="([^"]*)"', timeline_svg(RUNS["at once"], now))[1] for now in range(1, 14)}  # type: ignore[index]
    assert len(boxes) == 1


def test_the_drawing_says_its_numbers_to_who_does_not_see_it() -> None:
    drawing = ElementTree.fromstring(timeline_svg(RUNS["diagnosis"], 13))
    assert drawing.get("aria-label") == "13 events, 2 calls: r1 from 4 to 5, r2 from 8 to 9."


# --- The bench -----------------------------------------------------------------------------------------------


def every(widget: Any, kind: Any) -> list[Any]:
    found = [widget] if isinstance(widget, kind) else []
    return found + [part for child in getattr(widget, "children", ()) for part in every(child, kind)]


def test_the_buttons_move_through_the_events_and_the_list_grows_with_them() -> None:
    bench = looplab.event_timeline(in_order=RUNS["in order"], at_once=RUNS["at once"])
    assert bench.number == 13 and bench.buttons["Next"].disabled and "<b>done</b>" in bench._list.value
    for button, number in (("First", 1), ("Next", 2), ("Last", 13), ("Back", 12)):
        bench.buttons[button].click()
        assert bench.number == number
    sizes = []
    for number in range(1, 14):
        bench.go_to(number)
        sizes.append(bench._list.value.count('<li class="ll-m'))
    assert all(before <= after for before, after in pairwise(sizes)) and sizes[0] == 1 and not bench.error_box.value
    bench.choice.value = "at once"
    assert bench.events == RUNS["at once"] and bench.number == 13


def test_every_value_is_escaped() -> None:
    async def model(messages: Any, specs: Any) -> Any:
        return asks(call(EVIL, EVIL, **{EVIL: EVIL}), text=EVIL) if len(messages) < 3 else final(EVIL)

    async def collect() -> list[Any]:
        registry, _ = calculator_world()
        return [event async for event in agent_events(run_agent_async, EVIL, model, registry, EVIL)]

    bench = looplab.event_timeline(evil=asyncio.run(collect()))
    for number in range(1, len(bench.events) + 1):
        bench.go_to(number)
        shown = " ".join(area.value for area in every(bench, ipywidgets.HTML)[1:])
        assert "<img" not in shown and "<b>hi" not in shown and "&lt;img" in shown
    assert "<img" not in bench._repr_mimebundle_()["text/html"] and not bench.error_box.value


def test_the_static_twin_is_the_same_each_time_and_plain() -> None:
    first, second = (looplab.event_timeline(RUNS["at once"])._repr_mimebundle_() for _ in range(2))
    assert first["text/plain"] == second["text/plain"] and first["text/html"] == second["text/html"]
    assert not re.search("class=|style=|<svg", first["text/html"])
    assert "run 1: 13 events, 3 calls: r1 from 4 to 7" in first["text/plain"]


@pytest.mark.parametrize("runs", [(), ([],)])
def test_nothing_to_show_is_refused_in_a_sentence(runs: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match="needs the events of a run"):
        looplab.event_timeline(*runs)
