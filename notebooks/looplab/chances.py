"""The bench of chances: if each step comes through with a chance, how many runs come through whole?"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import ipywidgets as widgets
from matplotlib.figure import Figure

from looplab import plots, view
from looplab.evals import wilson
from looplab.limits import limit_row, range_html
from looplab.room import line, text, var
from looplab.view import Bench, Block, escape, guarded

STEPS, SEEDS = 40, 10**6  # the most that the fields hold
SHOWN = (1, 5, 10, 15, 20, 25, 30, 35, 40)
CHANCES = {"90%": 0.9, "95%": 0.95, "98%": 0.98, "99%": 0.99, "99.9%": 0.999}
HEAD = ["steps", "formula", "simulated", "interval", ""]


# --- State ------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def survivors(chance: float, runs: int, seed: int, steps: int = STEPS) -> tuple[int, ...]:
    """Simulate runs whose steps come through with a chance; return how many are whole after 0, 1, 2 … steps."""
    luck, whole = random.Random(seed), [runs] + [0] * steps
    for _ in range(runs):
        for step in range(1, steps + 1):
            if luck.random() >= chance:
                break
            whole[step] += 1
    return tuple(whole)


@dataclass(frozen=True)
class Point:
    """After so many steps: the part of runs that are whole by formula, and how many of how many were by simulation."""

    steps: int
    formula: float
    whole: int
    runs: int

    @property
    def interval(self) -> tuple[float, float]:
        """The rates with which the simulation agrees."""
        return wilson(self.whole, self.runs)

    @property
    def agrees(self) -> bool:
        """Whether the formula lies in the interval."""
        low, high = self.interval
        return low <= self.formula <= high


def points(chance: float, runs: int, seed: int) -> list[Point]:
    """Return formula and simulation after each number of steps."""
    return [Point(steps, chance**steps, whole, runs) for steps, whole in enumerate(survivors(chance, runs, seed))]


def percent(part: float) -> str:
    """Write a part as a percentage: 60%, 99.5%."""
    return f"{100 * part:.1f}".removesuffix(".0") + "%"


def chance_words(chance: float, point: Point) -> str:
    """Say what formula and simulation give, and whether they agree."""
    low, high = point.interval
    agree = "and the formula lies between" if point.agrees else "and the formula lies outside, as 1 in 20 times it will"
    return (f"{chance:g} to the power of {point.steps} is {point.formula:.0%}. Of {point.runs:,} simulated runs "
            f"{point.whole:,} came through whole: {percent(low)} to {percent(high)}, {agree}.")


def chance_table(made: list[Point], steps: int) -> list[list[str]]:
    """Write some of the points as a table of plain text, the chosen one among them."""
    rows = [made[n] for n in sorted({*SHOWN, steps})]
    return [HEAD, *([str(p.steps), percent(p.formula), percent(p.whole / p.runs),
                     f"{percent(p.interval[0])} to {percent(p.interval[1])}", "agrees" if p.agrees else "outside"]
                    for p in rows)]


# --- Drawing ----------------------------------------------------------------------------------------------------

WIDTH, HEIGHT = 584, 262
LEFT, RIGHT, TOP, FLOOR = 52, 566, 22, 228


def chance_svg(made: list[Point], steps: int) -> str:
    """Draw the formula as a curve, the simulation as points with their intervals, and the chosen number of steps."""

    def x(step: float) -> float:
        return LEFT + (RIGHT - LEFT) * step / STEPS

    def y(part: float) -> float:
        return FLOOR - (FLOOR - TOP) * part

    parts = []
    for tenth in range(0, 11, 2):
        parts += [line(LEFT, y(tenth / 10), RIGHT, y(tenth / 10), "line", 1),
                  text(LEFT - 8, y(tenth / 10) + 4, f"{10 * tenth}%", "end", "muted")]
    parts += [text(x(step), FLOOR + 18, step, "middle", "muted") for step in SHOWN]
    parts.append(text(LEFT - 8, FLOOR + 18, "step", "end", "muted"))
    parts.append(line(x(steps), TOP, x(steps), FLOOR, "here", 3))
    curve = "L".join(f"{x(p.steps):.1f} {y(p.formula):.1f}" for p in made)
    parts.append(f'<path d="M{curve}" stroke="{var("assistant")}" stroke-width="2" fill="none"/>')
    for p in (made[n] for n in sorted({*SHOWN, steps})):
        low, high = p.interval
        parts += [line(x(p.steps), y(high), x(p.steps), y(low), "tool" if p.agrees else "error", 2),
                  f'<circle cx="{x(p.steps):.1f}" cy="{y(p.whole / p.runs):.1f}" r="4" '
                  f'fill="{var("tool" if p.agrees else "error")}"/>']
    side = "end" if x(steps) > (LEFT + RIGHT) / 2 else "start"
    parts.append(text(x(steps) + (8 if side == "start" else -8), TOP - 6, f"{made[steps].formula:.0%} after {steps}",
                      side, bold=True))
    label = ", ".join(f"{percent(made[n].formula)} after {n}" for n in SHOWN)
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" class="ll-room"'
    return f'<svg {box} role="img" aria-label="Runs that come through: {escape(label)} steps.">{"".join(parts)}</svg>'


def chance_plot(chances: list[float], steps: list[int], runs: int, seed: int) -> plots.Plot:
    """Draw a curve for each chance, and the simulation as points with their intervals at some numbers of steps.

    Raises ValueError for no chance or more than there are colours, one not from 0 to 1, and steps not from 0 to 40.
    """
    if not 1 <= len(chances) <= len(plots.SERIES) or not all(0 <= chance <= 1 for chance in chances):
        raise ValueError(f"chance_plot takes one to {len(plots.SERIES)} chances, each from 0 to 1")
    if not set(steps) <= set(range(STEPS + 1)) or runs < 1:
        raise ValueError(f"chance_plot takes steps from 0 to {STEPS}, and 1 run or more")
    made = {chance: points(chance, runs, seed) for chance in chances}
    shown = {chance: [all_[n] for n in steps] for chance, all_ in made.items()}
    agree = sum(p.agrees for row in shown.values() for p in row)
    several = [f"{chance:g} to the power of {p.steps} is {p.formula:.0%}" for chance, row in shown.items()
               for p in row if p.steps in (10, 20)]
    rows: list[list[plots.Cell]] = [["steps", *(name for c in chances for name in (f"{c:g} by formula", "simulated"))]]
    rows += [[n, *(cell for c in chances for cell in (percent(made[c][n].formula), percent(made[c][n].whole / runs)))]
             for n in steps]

    def draw(figure: Figure) -> None:
        ax = figure.add_subplot()
        ax.set_title("Runs that come through whole, in percent")
        for (chance, all_), colour in zip(made.items(), plots.SERIES):
            ax.plot([p.steps for p in all_], [100 * p.formula for p in all_], color=colour, linestyle="-", marker="")
            row = shown[chance]
            rates = [p.whole / p.runs for p in row]
            errors = [[100 * (rate - p.interval[0]) for rate, p in zip(rates, row)],
                      [100 * (p.interval[1] - rate) for rate, p in zip(rates, row)]]
            ax.errorbar([p.steps for p in row], [100 * rate for rate in rates], errors, color=colour, linestyle="",
                        marker="o", markersize=4)
            ax.annotate(f"{chance:g}ⁿ", (STEPS, 100 * all_[-1].formula), (9, 0), textcoords="offset points",
                        color=colour, fontweight="bold", va="center", annotation_clip=False)
        ax.set_ylim(0, 105)
        ax.set_xlim(0, STEPS + 1)
        ax.set_xlabel("step", loc="left")

    sentence = f"{'; '.join(several)}. In {agree} of {len(steps) * len(chances)} places the simulation agrees."
    return plots.Plot("Runs that come through whole, in percent", sentence, rows, draw)


# --- HTML and widget --------------------------------------------------------------------------------------------


def chance_html(chance: float, made: list[Point], steps: int) -> str:
    """Return the sentence, the curve and the table."""
    keys = (f'<span class="ll-pair"><i class="ll-key" style="background:{var("assistant")}"></i>formula</span>'
            f'<span class="ll-pair"><i class="ll-key" style="background:{var("tool")}"></i>simulated, with its '
            "interval</span>")
    eyebrow = '<p class="ll-eyebrow">Runs that come through whole</p>'
    plot = f'{eyebrow}{chance_svg(made, steps)}<p class="ll-legend">{keys}</p>'
    rows = []
    for row in chance_table(made, steps)[1:]:
        cells = [f"<b>{escape(cell)}</b>" if row[0] == str(steps) else escape(cell) for cell in row]
        if row[-1] == "outside":
            cells[-1] = f"{view.mark('error')} {view.word('outside', 'error')}"
        rows.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    head = "".join(f"<th>{name}</th>" for name in HEAD)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    said = view.sentence(escape(chance_words(chance, made[steps])))
    return f'{said}<div class="ll-cols"><div class="ll-plot">{plot}</div><div class="ll-tab">{table}</div></div>'


class ChanceExplorer(Bench):
    """Choose the chance of a step, the number of steps, and how often and with which seed it is simulated."""

    def __init__(self, chance: str, steps: int, runs: int, seed: int) -> None:
        self.chance = view.choices("A step comes through in", list(CHANCES), "chance", chance)
        self.steps, row = limit_row("steps", steps, 1, STEPS, 1)
        self.runs = view.choices("Simulated runs", [100, 1000], "runs", runs)
        self.seed = view.field(widgets.BoundedIntText(seed, min=0, max=SEEDS, description="seed"), "seed", "ll-seed")
        self._view = view.area("", "view")
        limits = widgets.HBox([row])
        limits.add_class("ll-limits")
        often = widgets.HBox([self.runs, widgets.HBox([self.seed, view.area(range_html(0, SEEDS))])])
        often.add_class("ll-choices-row")
        super().__init__(self.chance, limits, often, self._view, hook="chances")
        for control in (self.chance, self.steps, self.runs, self.seed):
            control.observe(self._show, names="value")
        self._show()

    @guarded
    def _show(self, change: Any = None) -> None:
        chance = CHANCES[self.chance.value]
        self.points = points(chance, self.runs.value, self.seed.value)
        self._view.value = chance_html(chance, self.points, self.steps.value)

    def twin(self) -> list[Block]:
        """Return the sentence and the table."""
        return [chance_words(CHANCES[self.chance.value], self.points[self.steps.value]),
                chance_table(self.points, self.steps.value)]


def chance_explorer(chance: str = "95%", steps: int = 10, runs: int = 1000, seed: int = 7) -> ChanceExplorer:
    """Show how many runs come through whole if each step may fail, by formula and by simulation.

    Raises ValueError for a chance or a number of runs that is not among the choices, for steps not from 1 to 40, and
    for a seed not from 0 to a million.
    """
    in_range = steps in range(1, STEPS + 1) and seed in range(SEEDS + 1)
    if chance not in CHANCES or not in_range or runs not in (100, 1000):
        raise ValueError(
            f"chance must be one of {list(CHANCES)}, steps 1 to {STEPS}, runs 100 or 1000, seed 0 to {SEEDS:,}")
    return ChanceExplorer(chance, steps, runs, seed)
