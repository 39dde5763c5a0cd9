"""The bench of retries: what it shows is what with_retries and the registry really did, in a time of its own."""

from __future__ import annotations

import re
import time
import xml.etree.ElementTree as ElementTree
from itertools import product
from typing import Any

import ipywidgets
import pytest

import looplab
from looplab import retries
from looplab.retries import TOOLS, WAITS, Attempt, Timeline, timeline_html, timeline_svg, timeline_words, try_call

BACKOFF = "after 1, 2 and 4 s"
EVIL = '<img src=x onerror="alert(1)"><b>hi</b>'


def spans(made: Timeline) -> list[tuple[float, float]]:
    return [(attempt.start, attempt.end) for attempt in made.attempts]


def test_a_busy_service_is_outlived_by_growing_waits_and_not_by_tries_at_once() -> None:
    made = try_call("is busy for 5 s", BACKOFF, jitter=False, timeout=2)
    assert spans(made) == [(0, 0.5), (1.5, 2), (4, 4.5), (8.5, 9)]
    assert made.waits == [1, 2, 4] and made.observation == '{"city": "Pune", "celsius": 30}'
    made = try_call("is busy for 5 s", "after 0, 0 and 0 s", jitter=False, timeout=2)
    assert len(made.attempts) == 4 and made.observation.startswith("ERROR: get_weather failed: ConnectionError")


def test_without_retries_there_is_one_attempt_whatever_the_tool() -> None:
    assert {len(try_call(tool, "never", True, 2).attempts) for tool in TOOLS} == {1}


def test_a_timeout_ends_each_attempt_and_one_that_is_too_short_ends_all_of_them() -> None:
    made = try_call("needs 3 s", BACKOFF, jitter=False, timeout=2)
    assert [end - start for start, end in spans(made)] == [2] * 4
    assert "no result within 2 s; the call may still be running" in made.observation
    assert spans(try_call("needs 3 s", BACKOFF, jitter=False, timeout=3)) == [(0, 3)]
    assert spans(try_call("hangs once", BACKOFF, jitter=False, timeout=6)) == [(0, 6), (7, 7.5)]


def test_what_no_second_try_mends_is_not_tried_again() -> None:
    made = try_call("knows no such city", BACKOFF, jitter=True, timeout=2)
    assert len(made.attempts) == 1 and "does not try again" in timeline_words(made)[2]


@pytest.mark.parametrize(("waits", "paid"), [("never", 1), ("after 0, 0 and 0 s", 3), (BACKOFF, 3)])
def test_a_write_whose_answer_is_lost_pays_at_each_attempt(waits: str, paid: int) -> None:
    made = try_call("pays, and its answer is lost", waits, jitter=True, timeout=2)
    assert made.effects == len(made.attempts) == paid
    said = timeline_words(made)[2]
    assert ("paid once, and nobody knows" in said) == (paid == 1) and ("paid 3 times" in said) == (paid == 3)


def test_jitter_makes_each_wait_longer_by_less_than_a_second() -> None:
    plain, jittered = (try_call("is down", BACKOFF, jitter, timeout=2).waits for jitter in (False, True))
    assert all(0 < late - early < 1 for early, late in zip(plain, jittered))


def test_nobody_waits_while_it_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail("it slept"))
    assert try_call("is down", BACKOFF, jitter=True, timeout=6).seconds > 9


def drawing(made: Timeline) -> ElementTree.Element:
    return ElementTree.fromstring(timeline_svg(made))


@pytest.mark.parametrize(("tool", "waits", "timeout"), list(product(TOOLS, WAITS, (1, 3, 6))))
def test_the_drawing_has_a_bar_for_each_attempt_in_its_place_and_stays_within_its_frame(
    tool: str, waits: str, timeout: int
) -> None:
    made = try_call(tool, waits, jitter=True, timeout=timeout)
    bars = [part for part in drawing(made).iter() if part.get("height") == "16.0"]
    assert len(bars) == len(made.attempts)
    lefts = [float(bar.get("x", "")) for bar in bars]
    assert lefts == sorted(lefts) and all(retries.LEFT <= left for left in lefts)
    assert all(left + float(bar.get("width", "")) <= retries.WIDTH for left, bar in zip(lefts, bars))
    assert sum('fill="var(--ll-tool)"' in ElementTree.tostring(bar, "unicode") for bar in bars) == (
        0 if made.observation.startswith("ERROR: ") else 1)


def test_the_drawing_says_its_numbers_to_who_does_not_see_it() -> None:
    assert drawing(try_call("hangs once", BACKOFF, False, 2)).get("aria-label") == (
        "2 attempts on a line of time: 0.0 to 2.0 s, failed; 3.0 to 3.5 s, a result.")


def every(widget: Any, kind: Any) -> list[Any]:
    found = [widget] if isinstance(widget, kind) else []
    return found + [part for child in getattr(widget, "children", ()) for part in every(child, kind)]


def test_the_bench_follows_its_controls() -> None:
    bench = looplab.retry_timeline()
    bench.tool.value = "hangs once"
    assert len(bench.made.attempts) == 2
    bench.waits.value = "never"
    assert len(bench.made.attempts) == 1
    bench.timeout.value = 5
    assert bench.made.seconds == 5
    bench.waits.value, bench.jitter.value = BACKOFF, False
    assert bench.made.waits == [1]
    shown = " ".join(area.value for area in every(bench, ipywidgets.HTML))
    assert "gives a result at attempt 2, after 6.5 s" in shown and bench.error_box.value == ""


def test_a_choice_that_is_none_is_a_value_error_that_names_those_there_are() -> None:
    for wrong in ({"tool": "sings"}, {"waits": "for ever"}):
        with pytest.raises(ValueError, match="is busy for 5 s"):
            looplab.retry_timeline(**wrong)


def test_the_static_twin_is_the_same_each_time_and_plain() -> None:
    first, second = (looplab.retry_timeline("is down")._repr_mimebundle_() for _ in range(2))
    assert first["text/plain"] == second["text/plain"] and first["text/html"] == second["text/html"]
    assert not re.search("class=|style=|<svg", first["text/html"])
    assert "ERROR: get_weather failed: ConnectionError: connection refused" in first["text/plain"]


def test_every_control_has_a_name_and_no_slider_runs_while_it_is_dragged() -> None:
    bench = looplab.retry_timeline()
    controls = every(bench, (ipywidgets.RadioButtons, ipywidgets.BoundedIntText, ipywidgets.Checkbox))
    assert len(controls) == 4 and all(control.description for control in controls)
    assert not any(slider.continuous_update for slider in every(bench, ipywidgets.IntSlider))


def test_what_a_tool_says_is_escaped() -> None:
    made = Timeline("is down", [Attempt(0, 1, f"ConnectionError: {EVIL}")], f"ERROR: {EVIL}", 0)
    assert "<img" not in timeline_html(made) and "<b>hi" not in timeline_html(made) and "&lt;img" in timeline_html(made)
