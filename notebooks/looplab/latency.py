"""The checkout incident as a plot: p99 by hour, and above it what each turn of a run looked at, and when that was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from matplotlib.ticker import FuncFormatter

from agentloop import Json, decoded
from looplab import plots
from looplab.evidence import turn_of
from looplab.view import plural

NOON = 12 * 60
NOUNS = {"query_metrics": "hour", "list_deploys": "deploy", "search_logs": "log line"}


@dataclass(frozen=True)
class Look:
    """Something that happened in the night, and the call that brought it into the run."""

    turn: int
    tool: str
    at: str
    what: str
    p99: float | None = None

    @property
    def hour(self) -> float:
        """Its place on an axis that runs over midnight: 01:30 is 25.5."""
        hours, minutes = map(int, self.at.split(":")[:2])
        return hours + minutes / 60 + 24 * (60 * hours + minutes < NOON)


def looks_of(messages: list[Json]) -> list[Look]:
    """Return what the results of a run show, call by call."""
    return [look for position, message in enumerate(messages) if message["role"] == "tool"
            for look in looks_in(message["name"], decoded(message["content"]) or {}, turn_of(messages, position))]


def looks_in(tool: str, result: Any, turn: int) -> Iterator[Look]:
    """Yield what one result shows; a result of another tool, or an error, shows nothing."""
    if tool == "query_metrics":
        yield from (Look(turn, tool, hour, "p99", ms) for hour, ms in result.get("p99_ms", {}).items())
    if tool == "list_deploys":
        yield from (Look(turn, tool, deploy["at"], deploy["version"]) for deploy in result.get("deploys", []))
    if tool == "search_logs":
        yield from (Look(turn, tool, line.split()[0], "log line") for line in result.get("hits", []))


def sentence_of(looks: list[Look]) -> str:
    """Say where p99 rose most, what was deployed last before that, and what each turn looked at."""
    hours = [look for look in looks if look.p99 is not None]
    if len(hours) < 2:
        raise ValueError("a latency plot needs the p99 of two hours or more")
    before, rise = max(pairwise(hours), key=lambda pair: (pair[1].p99 or 0) - (pair[0].p99 or 0))
    low, high = before.p99 or 0, rise.p99 or 0
    said = f"At {rise.at} p99 rose from {low:,} to {high:,} ms"
    said += f", {high / low:.0f} times as much" if low else ""
    earlier = [look for look in looks if look.tool == "list_deploys" and look.hour <= rise.hour]
    last = max(earlier, key=lambda look: look.hour, default=None)
    said += f"; the last deploy before was {last.what} at {last.at}" if last else ""
    looked: dict[int, list[str]] = {}
    for (turn, tool), lane in lanes_of(looks).items():
        looked.setdefault(turn, []).append(plural(len(lane), NOUNS[tool]))
    turns = ", ".join(f"turn {turn} at {' and '.join(found)}" for turn, found in looked.items())
    return f"{said}. {turns.replace('turn', 'Turn', 1).replace(' at', ' looked at', 1)}."


def lanes_of(looks: list[Look]) -> dict[tuple[int, str], list[Look]]:
    """Return the looks of each call, in the order of the calls."""
    lanes: dict[tuple[int, str], list[Look]] = {}
    for look in looks:
        lanes.setdefault((look.turn, look.tool), []).append(look)
    return lanes


def latency_plot(messages: list[Json]) -> plots.Plot:
    """Draw the p99 that a run saw, by hour, and above it a lane for each call with what it looked at.

    Raises ValueError for a run that did not ask for the p99 of two hours.
    """
    looks = looks_of(messages)
    sentence, title = sentence_of(looks), "p99 of checkout by hour, in ms, and what each call looked at"
    rows: list[list[plots.Cell]] = [["at", "what", "p99 in ms", "seen in turn"]]
    lines = [look for look in looks if look.tool == "search_logs"]
    for look in sorted([look for look in looks if look not in lines[1:]], key=lambda look: (look.hour, look.at)):
        what = plural(len(lines), "log line") if look in lines else look.what
        rows.append([look.at, what, "" if look.p99 is None else look.p99, look.turn])
    return plots.Plot(title, sentence, rows, lambda figure: draw_night(figure, title, looks))


def draw_night(figure: Any, title: str, looks: list[Look]) -> None:
    """Draw the lanes over the bars, on one axis of time."""
    lanes, hours = lanes_of(looks), [look for look in looks if look.p99 is not None]
    top, below = figure.subplots(2, 1, sharex=True, height_ratios=[len(lanes), 5])
    top.set_title(title)
    green = plots.PALETTE["tool"]
    for row, lane in enumerate(lanes.values()):
        if lane[0].p99 is not None:  # a metric covers its hour, the others are moments
            places = [lane[0].hour, lane[-1].hour + 1]
            top.plot(places, [row] * 2, color=green, linestyle="-", marker="|", markersize=8, linewidth=2.5)
            continue
        top.plot([look.hour for look in lane], [row] * len(lane), color=green, linestyle="", marker="s")
        names = {look.what: look.hour for look in lane}
        for name, place in names.items():
            label = plural(len(lane), name) if name == "log line" else name
            top.annotate(label, (place, row), (8, 0), textcoords="offset points", color=green, va="center")
    top.set_yticks(range(len(lanes)), [f"turn {turn} · {tool}" for turn, tool in lanes])
    top.set_ylim(len(lanes) - .4, -.6)
    top.grid(False)
    top.spines.bottom.set_visible(False)
    for place in (look.hour for look in looks if look.tool == "list_deploys"):
        for ax in (top, below):
            ax.axvline(place, color=plots.EDGE, linestyle=":", linewidth=1.2, zorder=.5)
    bars = below.bar([look.hour + .5 for look in hours], [look.p99 for look in hours], .84, color=plots.SPENT)
    below.bar_label(bars, [f"{look.p99:,}" for look in hours], padding=2, color=plots.INK, fontsize=8.5)
    first, last = (int(end(look.hour for look in looks)) for end in (min, max))
    ticks = range(first, last + 2, 1 if last - first < 8 else 2)
    below.set_xticks(ticks, [f"{hour % 24:02}:00" for hour in ticks])
    below.set_xlim(first - .2, last + 1.4)
    below.set_ylim(0, 1.2 * max(look.p99 for look in hours if look.p99 is not None))
    below.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
