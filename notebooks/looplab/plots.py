"""Plots of token spend: a picture, one computed sentence, and a small table of what was drawn.

`lines` and `bars` draw any numbers; the functions below them take runs. Each returns a Plot, and a cell that ends with
one shows it.
"""

from __future__ import annotations

import base64
import functools
import io
import json
import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, zip_longest
from typing import Any

import matplotlib
import numpy as np
from cycler import cycler
from IPython.display import display
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator
from PIL import Image

from agentloop import (AgentResult, Json, ScriptedModel, ToolRegistry, asks, call, count_tokens, encode, final,
                       run_agent)
from looplab.view import STYLE, cut, plural, twin_html

PALETTE = dict(re.findall(r"--ll-([a-z-]+): (#[0-9A-F]{6})", STYLE[: STYLE.index("}")]))  # the light theme's
PAPER = "#FAFAF8"
INK, MUTED, HAIR, EDGE = (PALETTE[name] for name in ("ink", "muted", "line", "edge"))
MODEL, EXIT, SPENT, TRACK = (PALETTE[name] for name in ("assistant", "exit", "spent", "track"))
SERIES = [MODEL, PALETTE["tool"], PALETTE["error"], SPENT]
RC: Any = {
    "figure.figsize": (7, 3), "figure.dpi": 110, "savefig.dpi": 110, "figure.constrained_layout.use": True,
    "figure.constrained_layout.w_pad": .12, "figure.constrained_layout.h_pad": .12,
    "figure.facecolor": PAPER, "savefig.facecolor": PAPER, "axes.facecolor": PAPER,
    "font.family": "DejaVu Sans", "font.size": 9.5, "axes.titlesize": 10.5, "axes.titleweight": "bold",
    "axes.titlelocation": "left", "axes.titlepad": 10, "text.color": INK, "axes.labelcolor": MUTED,
    "xtick.color": MUTED, "ytick.color": MUTED, "axes.edgecolor": EDGE, "axes.spines.top": False,
    "axes.spines.right": False, "axes.spines.left": False, "axes.grid": True, "axes.grid.axis": "y",
    "axes.axisbelow": True, "grid.color": HAIR, "grid.linewidth": .8, "xtick.major.size": 0, "ytick.major.size": 0,
    "xtick.major.pad": 6, "ytick.major.pad": 6, "lines.linewidth": 2, "lines.markersize": 5.5, "legend.frameon": False,
    "text.parse_math": False,
    "axes.prop_cycle": cycler(color=SERIES, linestyle=["-", "--", "-.", ":"], marker=list("Ds^o")),
}
WIDE = .84  # of a bar, where a step is 1

Numbers = Sequence[float]
Cell = float | str


# --- Runs as numbers -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """The tokens of one step by the loop's estimate; `spent` includes the step."""

    number: int
    prompt: int
    reply: int
    spent: int


def steps_of(result: AgentResult, specs: list[Json]) -> list[Step]:
    """Return the tokens of each step of a run, counted from its message list as the loop counts them."""
    steps: list[Step] = []
    for i, message in enumerate(result.messages):
        if message["role"] == "assistant":
            prompt, reply = count_tokens(specs) + count_tokens(result.messages[:i]), count_tokens(message)
            spent = steps[-1].spent if steps else 0
            steps.append(Step(len(steps) + 1, prompt, reply, spent + prompt + reply))
    return steps


def fixed_run(start: int = 1000, more: int = 500, steps: int = 8) -> tuple[AgentResult, list[Json]]:
    """Run the loop with messages of a fixed size; return the result and the specs.

    The first prompt has exactly `start` tokens, and each step adds exactly `more`. Raises ValueError for less than
    the messages need without any filling.
    """
    registry = ToolRegistry()
    registry.register("read", "Read the next page.", {"type": "object"}, lambda: page)
    script = [asks(call(f"c{step:05}", "read")) for step in range(1, steps)] + [final("Read.")]
    page = ""
    empty = run_agent("Read it.", ScriptedModel([script[0], final("")]), registry, "", 2, 10**9).messages
    sizes = [len(json.dumps(message)) + len(", ") for message in empty]
    free_at_start = 4 * (start - count_tokens(registry.specs())) - sum(sizes[:2])
    free_in_a_step = 4 * more - sum(sizes[2:4])
    if steps < 1 or free_at_start < 0 or free_in_a_step < 0:
        raise ValueError(f"a fixed run needs a step, and more tokens than start={start}, more={more}")
    system, page = "." * free_at_start, "." * free_in_a_step
    result = run_agent("Read it.", ScriptedModel(script), registry, system, steps, 10**9)
    return result, registry.specs()


# --- The plot and its words ----------------------------------------------------------------------------------


class Plot:
    """A drawn plot: its title, one sentence that says what it shows, and its data as a table.

    The first row of the table is its head. `draw` is called with an empty figure, when the picture is first asked for.
    """

    def __init__(self, title: str, sentence: str, rows: Sequence[Sequence[Cell]],
                 draw: Callable[[Figure], None]) -> None:
        self.title, self.sentence = one_line(title), one_line(sentence)
        self.rows = [[show(cell) for cell in row] for row in rows]
        self._draw = draw

    @functools.cached_property
    def png(self) -> bytes:
        """The picture."""
        return _png(self._draw)

    @property
    def text(self) -> str:
        """The plot in words: title, sentence, table."""
        widths = [max(len(cell) for cell in column) for column in zip(*self.rows)]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in self.rows]
        return "\n".join([f"{self.title}. {self.sentence}", *lines])

    @property
    def html(self) -> str:
        """What stands under the picture: the sentence and the table, without style or class."""
        return twin_html([self.sentence, self.rows])

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"image/png": base64.b64encode(self.png).decode("ascii"), "text/plain": self.text}

    def _ipython_display_(self) -> None:
        display(self._repr_mimebundle_(), raw=True)  # two outputs, for HTML would be shown in place of the picture
        display({"text/html": self.html, "text/plain": self.sentence}, raw=True)


def _png(draw: Callable[[Figure], None]) -> bytes:
    with matplotlib.rc_context(RC), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")  # a letter that the font lacks is drawn as a box
        figure = Figure(layout=ConstrainedLayoutEngine(rect=(0, 0, .98, 1)))
        draw(figure)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
    return _with_few_colours(np.asarray(canvas.buffer_rgba())[..., :3].astype(np.int32))


def _with_few_colours(pixels: Any) -> bytes:
    """Write a PNG of the 256 most frequent colours: a third of the bytes, and a notebook keeps them all."""
    codes = pixels @ np.array([1 << 16, 1 << 8, 1], np.int32)
    colours, places, counts = np.unique(codes, return_inverse=True, return_counts=True)
    rgb = np.stack([colours >> 16, colours >> 8 & 255, colours & 255], axis=1)
    palette = rgb[np.argsort(-counts, kind="stable")[:256]]
    nearest = np.argmin(((rgb[:, None] - palette) ** 2).sum(axis=2), axis=1).astype(np.uint8)
    image = Image.frombytes("P", pixels.shape[1::-1], nearest[places].tobytes())
    image.putpalette(palette.astype(np.uint8).tobytes())
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()


def show(cell: Cell) -> str:
    """Write a number with commas between thousands, and at most one decimal; a text on one line."""
    if isinstance(cell, str):
        return one_line(cell)
    return f"{cell:,.1f}".removesuffix(".0")


def one_line(text: Any) -> str:
    """Return `text` on one line that any font and file can hold."""
    return " ".join(str(text).encode("utf-8", "backslashreplace").decode("utf-8").split())


def short(text: Any, width: int = 32) -> str:
    """Return `text` as a label of a picture, cut to `width` characters."""
    return cut(one_line(text), width)


# --- Drawing -------------------------------------------------------------------------------------------------


def lines(title: str, x: Numbers, series: Mapping[str, Numbers], sentence: str, *, x_name: str = "step",
          limits: Mapping[str, float] | None = None, walls: Mapping[str, float] | None = None) -> Plot:
    """Draw one to four lines, each with its name and last number at its end.

    A line may be shorter than `x`. `limits` are drawn across at a height, `walls` upright at an x. Raises ValueError
    for no line or more than four, and for a line that is empty or longer than `x`.
    """
    _check(x, series)

    def draw(figure: Figure) -> None:
        ax = _axes(figure, title)
        _draw_lines(ax, x, series)
        _finish(ax, x, x_name, limits or {}, walls or {})

    return Plot(title, sentence, _rows(x_name, x, series), draw)


def bars(title: str, x: Numbers, parts: Mapping[str, Numbers], sentence: str, *, x_name: str = "step",
         limits: Mapping[str, float] | None = None, walls: Mapping[str, float] | None = None) -> Plot:
    """Draw stacked bars of one to four parts, the first at the bottom, with the sum above each bar.

    The other arguments are those of `lines`; a wall stands after the bar of its x.
    """
    _check(x, parts)

    def draw(figure: Figure) -> None:
        ax = _axes(figure, title)
        _draw_bars(ax, x, parts)
        _finish(ax, x, x_name, limits or {}, walls or {}, half=.5)

    return Plot(title, sentence, _rows(x_name, x, parts), draw)


def _check(x: Numbers, series: Mapping[str, Numbers]) -> None:
    if not 1 <= len(series) <= 4:
        raise ValueError(f"a plot has one to four lines or parts, not {len(series)}")
    for name, values in series.items():
        if not 1 <= len(values) <= len(x):
            raise ValueError(f"{name!r} has {plural(len(values), 'value')} for {len(x)} places")


def _rows(x_name: str, x: Numbers, series: Mapping[str, Numbers]) -> list[list[Cell]]:
    """Return the table of a plot: every place up to twelve, else evenly chosen ones and the last."""

    def at(values: Numbers, i: int) -> Cell:
        return values[i] if i < len(values) else "–"

    rows = [[x[i], *(at(values, i) for values in series.values())] for i in _chosen(len(x))]
    return [[x_name, *series], *rows]


def _chosen(count: int) -> list[int]:
    return sorted(range(count - 1, -1, -(1 + count // 13)))


def _axes(figure: Figure, title: str, place: int = 111) -> Axes:
    ax = figure.add_subplot(place)
    ax.set_title(short(title, 80))
    return ax


def _draw_lines(ax: Axes, x: Numbers, series: Mapping[str, Numbers]) -> None:
    for values in series.values():
        ax.plot(x[: len(values)], values, markevery=_chosen(len(values)), clip_on=False)
    ends = [(values[-1], x[len(values) - 1], name, colour)
            for (name, values), colour in zip(series.items(), SERIES)]
    top = max(max(values) for values in series.values())
    height = -top
    for value, place, name, colour in sorted(ends):
        below, beside = height, max(height + .09 * top, value)  # so that no label lies on the one below
        label = f"{short(name)}: {show(value)}" if name else show(value)
        heights = np.arange(beside, below + .08 * top, -.009 * top)
        height = next((at for at in heights if _is_free(x, series, place, at, label)), beside)
        if height < beside:  # another line passes through the place beside the end
            end = place + .02 * np.ptp(x)
            ax.plot([place, end], [value, height], color=colour, linewidth=.8, linestyle="-", marker="")
        _write(ax, label, place, height, 9, 0, colour, va="center", fontweight="bold")


def _is_free(x: Numbers, series: Mapping[str, Numbers], place: float, height: float, label: str) -> bool:
    """Say whether no line passes through a label that begins right of a place, at a height."""
    covered = np.linspace(place, place + .0175 * len(label) * np.ptp(x), 40)[1:]  # by letters of the usual width
    half = .057 * max(max(values) for values in series.values())
    lines_there = [np.interp(covered, x[: len(values)], values, right=math.inf) for values in series.values()]
    return all((abs(line - height) >= half).all() for line in lines_there)


def _draw_bars(ax: Axes, x: Numbers, parts: Mapping[str, Numbers], unsent: bool = False) -> None:
    fills = [TRACK, SPENT, MODEL] if len(parts) == 3 else [SPENT, MODEL, TRACK, EDGE]
    sums: list[float] = []
    for values, fill in zip(parts.values(), fills):
        sums += [0] * (len(values) - len(sums))
        ax.bar(x[: len(values)], values, WIDE, sums[: len(values)], color=fill)
        sums = [total + value for total, value in zip_longest(sums, values, fillvalue=0)]
    for i in _chosen(len(sums)):
        _write(ax, show(sums[i]), x[i], sums[i], 0, 5, INK, ha="center")
    keys = [Patch(color=fill, label=short(name)) for name, fill in zip(parts, fills)]
    keys += [Patch(fill=False, edgecolor=EXIT, linestyle="--", label="not sent")] if unsent else []
    ax.legend(handles=keys, loc="upper right", bbox_to_anchor=(1, 0), ncols=len(keys), borderpad=0, handlelength=1,
              handleheight=.8, handletextpad=.5, columnspacing=1.4, borderaxespad=2.35)


def _finish(ax: Axes, x: Numbers, x_name: str, limits: Mapping[str, float], walls: Mapping[str, float],
            half: float = 0) -> None:
    """Set the axes, from 0, with thousands and whole steps, and draw limits and walls; `half` is half a bar's place."""
    ends = [*x, *walls.values()]
    room = half or .02 * (max(ends) - min(ends)) or 1
    left, right, top = min(ends) - room, max(ends) + room, 1.08 * max([ax.dataLim.y1, *limits.values()])
    right = max(right, left + 10 * half)  # so that a few bars are not as wide as a page
    ax.set_xlim(left, right)
    ax.set_ylim(0, top)
    ax.set_xlabel(short(x_name), loc="left")
    ax.xaxis.set_major_locator(FixedLocator(x) if len(x) <= 12 else MaxNLocator(integer=True))
    ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: show(value)))
    full = ax.dataLim.x1 > (left + right) / 2  # then the upper left is free, else the upper right
    for name, value in limits.items():
        ax.axhline(value, color=EXIT, zorder=1.5, clip_on=False)
        x_at, side, gap = (left, "left", 0) if full else (right, "right", -4)
        _write(ax, f"{short(name)} {show(value)}", x_at, value, gap, 5, EXIT, ha=side)
    for name, value in walls.items():
        ax.axvline(value + half, color=EXIT, zorder=1.5, clip_on=False)
        _write(ax, f"{short(name)} {show(value)}", value + half, top, 6, 0, EXIT, va="top")


def _write(ax: Axes, text: str, x: float, y: float, right: float, up: float, colour: str, **style: Any) -> None:
    """Write `text` some points away from (x, y), on paper that hides the hairlines behind it."""
    ground = {"facecolor": PAPER, "edgecolor": "none", "pad": .8}
    ax.annotate(text, (x, y), (right, up), textcoords="offset points", color=colour, bbox=ground, **style)


def _flag(ax: Axes, status: str, x: float, y: float, right: float, up: float, **style: Any) -> None:
    _write(ax, f"⚑ {short(status)}", x, y, right, up, EXIT, fontweight="bold", **style)


def _flag_step(ax: Axes, status: str, step: int, y: float, up: float, steps: int, side: str = "center",
               letter: float = .018) -> None:
    """Write a flag over one of the steps of a plot, or to a side of its bar, where it would not leave the axes.

    `letter` is how wide a letter is, as a part of the axes.
    """
    wide = letter * steps * (len(short(status)) + 2)
    if step < .5 + (wide / 2 if side == "center" else wide - WIDE / 2):
        side = "left"
    elif step > steps + .5 - wide / 2:
        side = "right"
    edge = {"left": -WIDE / 2, "center": 0, "right": WIDE / 2}[side]
    _flag(ax, status, step + edge, y, 0, up, ha=side)


# --- Plots of runs -------------------------------------------------------------------------------------------


def spend_by_step(result: AgentResult, specs: list[Json], *, token_budget: int | None = None,
                  max_steps: int | None = None) -> Plot:
    """Draw what each step of a run added to what was spent before, the limits, and the exit.

    A prompt that the budget kept from being sent stands dashed behind the last step.
    """
    steps = steps_of(result, specs)
    spent = steps[-1].spent if steps else 0
    unsent = count_tokens(specs) + count_tokens(result.messages) if result.status == "token_budget" else 0
    limits = {"token_budget": token_budget} if token_budget else {}
    walls = {"max_steps": max_steps} if max_steps else {}
    title = "Tokens spent, step by step"
    rows: list[list[Cell]] = [["step", "prompt", "reply", "spent"]]
    rows += [[steps[i].number, steps[i].prompt, steps[i].reply, steps[i].spent] for i in _chosen(len(steps))]
    rows += [["not sent", unsent, "–", spent + unsent]] if unsent else []

    def draw(figure: Figure) -> None:
        ax = _axes(figure, title)
        places, last = range(1, max(len(steps) + bool(unsent), max_steps or 1) + 1), len(steps)
        before = [step.spent - step.reply - step.prompt for step in steps]
        parts = {"spent before": before, "prompt": [s.prompt for s in steps], "reply": [s.reply for s in steps]}
        _draw_bars(ax, places, parts, unsent=bool(unsent))
        if unsent:
            ax.bar(last + 1, spent, WIDE, color=TRACK)
            ax.bar(last + 1, unsent, WIDE, spent, fill=False, edgecolor=EXIT, linestyle="--", linewidth=1.5)
            _flag_step(ax, result.status, last + 1, spent + unsent, 6, max(len(places), 5), "right")
        elif result.status == "step_limit" and max_steps:
            _flag(ax, result.status, max_steps + .5, spent, 6, 0, va="center")
        else:
            _flag_step(ax, result.status, last, spent, 20, max(len(places), 5))
        ax.update_datalim([(1, 1.12 * (spent + unsent))])  # room for the flag
        _finish(ax, places, "step", limits, walls, half=.5)

    said = [f"{plural(len(steps), 'step')} spent {_of(spent, token_budget)} tokens"]
    if len(steps) > 1:
        said.append(f"the first prompt has {steps[0].prompt:,}, the last {steps[-1].prompt:,}")
    if unsent:
        said.append(f"the next one needs about {unsent:,}")
    return Plot(title, f"{'; '.join(said)}. Exit: {result.status}.", rows, draw)


def _of(spent: int, budget: int | None) -> str:
    return f"{spent:,} of {budget:,}" if budget else f"{spent:,}"


def rooms(runs: Mapping[str, tuple[AgentResult, int, int]], specs: list[Json]) -> Plot:
    """Draw one to four runs side by side, each as a staircase of tokens in the room that its two limits make.

    A run comes with its max_steps, the wall at the right, and its token_budget, the ceiling; the one that ended it is
    thick. A prompt that was not sent stands dashed. Raises ValueError for no run or more than four.
    """
    _check(range(10**6), {name: [0] for name in runs})
    title = "Tokens spent, step by step"
    spent = {name: [step.spent for step in steps_of(result, specs)] for name, (result, _, _) in runs.items()}

    def draw(figure: Figure) -> None:
        figure.set_size_inches(7, 2.6 * -(-len(runs) // 2))
        for place, (name, (result, max_steps, token_budget)) in enumerate(runs.items(), 1):
            ax = figure.add_subplot(-(-len(runs) // 2), min(2, len(runs)), place)
            ax.set_title(short(name))
            unsent = count_tokens(specs) + count_tokens(result.messages) if result.status == "token_budget" else 0
            _draw_room(ax, result.status, spent[name], unsent, max_steps, token_budget, .018 * min(2, len(runs)))

    rows: list[list[Cell]] = [["run", "max_steps", "token_budget", "spent after each step", "exit"]]
    rows += [[name, max_steps, token_budget, ", ".join(map(show, spent[name])) or "–", result.status]
             for name, (result, max_steps, token_budget) in runs.items()]
    ends = [f"{name} ends with {result.status} after {plural(result.steps, 'step')} and {result.tokens:,} tokens"
            for name, (result, _, _) in runs.items()]
    return Plot(title, f"{'; '.join(ends)}.", rows, draw)


def _draw_room(ax: Axes, status: str, spent: Sequence[int], unsent: int, max_steps: int, token_budget: int,
               letter: float) -> None:
    """Draw a run that has spent these tokens after each step, between the floor, the ceiling and the wall."""
    edges, last = [step + .5 for step in range(len(spent) + 1)], spent[-1] if spent else 0
    top = 1.14 * max(token_budget, last + unsent)
    if spent:
        ax.stairs(spent, edges, fill=True, color=TRACK)
        ax.stairs(spent, edges, baseline=0, color=MODEL, linewidth=2)
    if unsent:
        ax.bar(len(spent) + 1, last + unsent, 1, fill=False, edgecolor=EXIT, linestyle="--", linewidth=1.25)
    wall, ceiling = (2.5 if status == exit_ else 1.25 for exit_ in ("step_limit", "token_budget"))
    ax.axvline(max_steps + .5, ymax=token_budget / top, color=EXIT, linewidth=wall, clip_on=False)
    ax.plot([.5, max_steps + .5], [token_budget] * 2, color=EXIT, linewidth=ceiling, linestyle="-", marker="")
    place, side = (max_steps + .5, "right") if unsent else (.5, "left")  # clear of the dashed prompt
    _write(ax, f"{show(token_budget)} tokens, {plural(max_steps, 'step')}", place, token_budget, 0, 5, EXIT, ha=side)
    for step, tokens in enumerate(spent, 1):
        _write(ax, show(tokens), step, tokens, 0, 4, INK, ha="center", fontsize=8.5)
    if unsent:
        _flag(ax, status, len(spent) + 1.5, token_budget, 6, -6, va="top")  # under the ceiling, whose name is above it
    elif status == "step_limit":
        _flag(ax, status, max_steps + .5, (last + token_budget) / 2, -6, 0, ha="right", va="center")
    else:
        _flag_step(ax, status, len(spent) or 1, last, 20, max_steps, letter=letter)
    ax.set_xlim(.4, max_steps + .6)
    ax.set_ylim(0, top)
    ax.xaxis.set_major_locator(FixedLocator(range(1, max_steps + 1)))
    ax.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: show(value)))


def spend_of_runs(results: Sequence[AgentResult], specs: list[Json]) -> Plot:
    """Draw runs of growing length side by side: the tokens of each step on average, and of the whole run.

    Raises ValueError for fewer than two runs, and for runs that are not in the order of their steps.
    """
    steps = [result.steps for result in results]
    if len(steps) < 2 or steps != sorted(set(steps)) or not steps[0]:
        raise ValueError("spend_of_runs takes two or more runs, each with more steps than the one before")
    spent = [steps_of(result, specs)[-1].spent for result in results]
    each = [round(tokens / count) for tokens, count in zip(spent, steps)]
    (few, many), (little, much) = steps[-2:], spent[-2:]
    sentence = (f"{show(many / few)} times the steps cost {show(much / little)} times the tokens: "
                f"{plural(few, 'step')} {little:,}, {plural(many, 'step')} {much:,}.")

    def draw(figure: Figure) -> None:
        for place, name, values in [(121, "Tokens for each step", each), (122, "Tokens of the run", spent)]:
            ax = _axes(figure, name, place)
            _draw_lines(ax, steps, {"": values})
            _finish(ax, steps, "steps of the run", {}, {})

    rows: list[Sequence[Cell]] = [["steps", "tokens for each step", "tokens of the run"], *zip(steps, each, spent)]
    return Plot("Tokens for each step, and of the whole run", sentence, rows, draw)


def measured(results: Sequence[AgentResult]) -> Plot:
    """Draw how many characters of messages are written as JSON to estimate the prompts of runs of growing length.

    A loop that measures the whole list at each step is beside one that measures each message once. Raises ValueError
    for no run, and for runs that are not in the order of their steps.
    """
    steps = [result.steps for result in results]
    if not steps or steps != sorted(set(steps)):
        raise ValueError("measured takes one or more runs, each with more steps than the one before")
    again = [sum(len(encode(result.messages[:i])) for i, message in enumerate(result.messages)
                 if message["role"] == "assistant") for result in results]
    once = [sum(len(encode(message)) for message in result.messages) for result in results]
    sentence = (f"In {plural(steps[-1], 'step')} each message once is {once[-1]:,} characters, "
                f"the whole list each step {again[-1]:,}: {show(again[-1] / once[-1])} times.")
    series = {"whole list each step": again, "each message once": once}
    return lines("Characters measured to estimate the prompts", steps, series, sentence, x_name="steps of the run")


def worked_example(prompts: Sequence[int], *, token_budget: int | None = None) -> Plot:
    """Draw the input tokens of a run, added up, beside what they were if the list did not grow.

    Raises ValueError for no prompts.
    """
    if not prompts:
        raise ValueError("worked_example takes the prompts of one or more steps")
    sent, flat = list(accumulate(prompts)), [prompts[0] * step for step in range(1, len(prompts) + 1)]
    series = {"whole list each step": sent, "if the list did not grow": flat}
    sentence = (f"{plural(len(prompts), 'step')} send {sent[-1]:,} input tokens, not {flat[-1]:,}: "
                f"{show(sent[-1] / flat[-1])} times.")
    limits = {"token_budget": token_budget} if token_budget else {}
    return lines("Input tokens sent, added up", range(1, len(sent) + 1), series, sentence, limits=limits)
