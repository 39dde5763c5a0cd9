"""The bench of costs: what a run of so many steps costs, and what a cache and shorter results save."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import ipywidgets as widgets

from looplab import view
from looplab.costs import Bill, Prices, Shape, bill
from looplab.limits import limit_row
from looplab.room import line, rect, text, var
from looplab.view import Bench, Block, escape, guarded, plural

HEAD = ["a run", "sent", "cached", "written", "USD", "compared"]
STEPS, MOST = 40, 10**6  # what its fields hold


# --- State ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Costs:
    """A run and its prices; whether a cache is used, and to how many tokens results are cut, or None."""

    shape: Shape
    prices: Prices
    caching: bool = False
    cut_to: int | None = None

    @property
    def chosen(self) -> Bill:
        """What the run costs with the switches as they are."""
        return bill(self.shape_of(self.cut_to is not None).step_tokens(), self.prices, self.caching)

    def shape_of(self, trimmed: bool) -> Shape:
        """Return the shape of the run, with results cut or as they are."""
        longest = self.cut_to if trimmed and self.cut_to is not None else self.shape.result
        return replace(self.shape, result=min(self.shape.result, longest))

    def by_step(self, trimmed: bool, caching: bool) -> list[Bill]:
        """Return what each step costs."""
        return [bill([step], self.prices, caching) for step in self.shape_of(trimmed).step_tokens()]

    def variants(self, cut_to: int) -> dict[str, Bill]:
        """Return what the run costs as it is, with either help, and with both."""
        cut = replace(self, cut_to=cut_to)
        return {name: bill(cut.shape_of(trimmed).step_tokens(), self.prices, caching)
                for name, trimmed, caching in (("as it is", False, False), ("with a cache", False, True),
                                               ("with results cut", True, False), ("with both", True, True))}


def usd(amount: float) -> str:
    """Write an amount with three digits, or whole dollars where it is large: 0.149, 1,250."""
    return f"{amount:,.0f}" if amount >= 100 else f"{amount:.3g}" if amount >= 0.001 or not amount else f"{amount:.2g}"


def cost_words(costs: Costs) -> str:
    """Say what the run sends, writes and costs."""
    made, s = costs.chosen, "s" * (costs.shape.steps == 1)
    cached = f", {made.cached:,} of them from a cache," if costs.caching else ""
    return (f"{plural(costs.shape.steps, 'step')} send{s} {made.sent:,} input tokens{cached} and write{s} "
            f"{made.written:,}: {usd(made.prompt_usd)} + {usd(made.reply_usd)} = {usd(made.usd)} USD.")


def name_of(costs: Costs) -> str:
    """Return the name of the variant that the switches choose."""
    both = costs.caching, costs.cut_to is not None
    return {(False, False): "as it is", (True, False): "with a cache", (False, True): "with results cut"}.get(
        both, "with both")


def cost_table(costs: Costs, cut_to: int) -> list[list[str]]:
    """Write the four variants as a table of plain text."""
    variants = costs.variants(cut_to)
    first = variants["as it is"].usd
    return [HEAD, *([name, f"{made.sent:,}", f"{made.cached:,}", f"{made.written:,}", usd(made.usd),
                     f"{made.usd / first:.0%}" if first else "–"] for name, made in variants.items())]


def price_words(prices: Prices) -> str:
    """Say which prices are used, and of which day they are."""
    day = prices.as_of or "an unknown day"
    return (f"Prices as of {day}, in USD a million tokens: {prices.prompt:g} for what is sent, "
            f"{prices.reply:g} for what is written. A cache costs {prices.cached:g} of the first for what it holds, "
            f"{prices.to_cache:g} for what it is given.")


# --- Drawing ----------------------------------------------------------------------------------------------------

WIDTH, HEIGHT = 584, 240
LEFT, RIGHT, TOP, FLOOR = 62, 566, 16, 206


def cost_svg(costs: Costs) -> str:
    """Draw what each step costs; what is saved stands dashed above, and keeps the scale."""
    plain, made = costs.by_step(False, False), costs.by_step(costs.cut_to is not None, costs.caching)
    most = max(step.usd for step in [*plain, *made]) or 1
    slot = (RIGHT - LEFT) / len(made)

    def y(amount: float) -> float:
        return FLOOR - (FLOOR - TOP) * amount / most

    parts = ticks(most, y)
    for n, (before, step) in enumerate(zip(plain, made)):
        left, width = LEFT + n * slot + slot * .1, slot * .8
        cached = step.cached * costs.prices.cached * costs.prices.prompt / 1e6
        levels = [0, cached, step.prompt_usd, step.usd]
        if before.usd > step.usd:
            dashed = f'fill="none" stroke="{var("next")}" stroke-dasharray="4 3"'
            parts.append(rect(left, y(before.usd), width, y(step.usd) - y(before.usd), dashed))
        parts += [rect(left, y(high), width, y(low) - y(high), f'fill="{var(colour)}"')
                  for low, high, colour in zip(levels, levels[1:], ("edge", "spent", "assistant"))]
        if (n + 1) % (1 + len(made) // 13) == 0 or n == 0:
            parts.append(text(left + width / 2, FLOOR + 18, n + 1, "middle", "muted"))
    parts.append(text(LEFT - 8, FLOOR + 18, "step", "end", "muted"))
    label = f"What each step costs, in USD: the first {usd(made[0].usd)}, the last {usd(made[-1].usd)}."
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" class="ll-room"'
    return f'<svg {box} role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'


def ticks(most: float, y: Callable[[float], float]) -> list[str]:
    """Draw the amounts at the left, with a hairline each."""
    parts = []
    for part in range(4):
        amount = most * part / 3
        parts += [line(LEFT, y(amount), RIGHT, y(amount), "line", 1),
                  text(LEFT - 8, y(amount) + 4, usd(amount), "end", "muted")]
    return parts


# --- HTML and widget --------------------------------------------------------------------------------------------


def cost_html(costs: Costs, cut_to: int) -> str:
    """Return the sentence, the bars and the table of the variants; the chosen one is in bold."""
    keys = "".join(f'<span class="ll-pair"><i class="ll-key" style="background:{var(colour)}"></i>{name}</span>'
                   for colour, name in (("edge", "sent, from a cache"), ("spent", "sent"), ("assistant", "written")))
    plot = f'<p class="ll-eyebrow">USD, step by step</p>{cost_svg(costs)}<p class="ll-legend">{keys}</p>'
    rows = []
    for row in cost_table(costs, cut_to)[1:]:
        cells = [f"<b>{escape(cell)}</b>" if row[0] == name_of(costs) else escape(cell) for cell in row]
        rows.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    head = "".join(f"<th>{name}</th>" for name in HEAD)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    said = view.sentence(f"{view.word(plural(costs.shape.steps, 'step'), 'assistant')}"
                         f"{escape(cost_words(costs).removeprefix(plural(costs.shape.steps, 'step')))}")
    return (f'{said}<div class="ll-cols"><div class="ll-plot">{plot}</div>'
            f'<div class="ll-tab ll-named">{table}{view.note(price_words(costs.prices))}</div></div>')


class CostExplorer(Bench):
    """Set the shape of a run, the prices and two switches; `costs` is what they make."""

    def __init__(self, shape: Shape, prices: Prices, cut_to: int) -> None:
        self.steps, steps = limit_row("steps", shape.steps, 1, STEPS, 1)
        self.start = number("tokens at the start", shape.start, "start")
        self.written = number("written each step", shape.written, "written")
        self.result = number("result each step", shape.result, "result")
        self.prompt = number("USD, 1M sent", float(prices.prompt), "prompt-price")
        self.reply = number("USD, 1M written", float(prices.reply), "reply-price")
        self.cached = number("cached, part of it", float(prices.cached), "cached")
        self.to_cache = number("to the cache", float(prices.to_cache), "to-cache")
        self.as_of = view.field(widgets.Text(prices.as_of, description="prices as of"), "as-of")
        self.caching = view.switch("with a cache for what was sent before", "caching")
        self.trimming = view.switch("with results cut", "trimming")
        self.cut_to = number("cut results to", cut_to, "cut-to")
        self._view = view.area("", "view")
        limits = widgets.HBox([steps])
        limits.add_class("ll-limits")
        shapes = fields(self.start, self.written, self.result, self.cut_to)
        prices_row = fields(self.prompt, self.reply, self.cached, self.to_cache, self.as_of)
        held = view.area(f'<span class="ll-muted">Each number is from 0 to {MOST:,}.</span>')
        super().__init__(limits, shapes, prices_row, held, self.caching, self.trimming, self._view, hook="costs")
        for control in (self.steps, self.start, self.written, self.result, self.prompt, self.reply, self.cached,
                        self.to_cache, self.as_of, self.caching, self.trimming, self.cut_to):
            control.observe(self._show, names="value")
        self._show()

    @guarded
    def _show(self, change: Any = None) -> None:
        shape = Shape(self.steps.value, self.start.value, self.written.value, self.result.value)
        prices = Prices(self.prompt.value, self.reply.value, self.as_of.value, self.cached.value, self.to_cache.value)
        self.costs = Costs(shape, prices, self.caching.value, self.cut_to.value if self.trimming.value else None)
        self._view.value = cost_html(self.costs, self.cut_to.value)

    def twin(self) -> list[Block]:
        """Return the shape, the prices, what it costs, and the four variants."""
        shape = self.costs.shape
        run = (f"A run of {plural(shape.steps, 'step')}: {shape.start:,} tokens at the start; each step writes "
               f"{shape.written:,} and reads a result of {shape.result:,}, which can be cut to {self.cut_to.value:,}.")
        return [run, price_words(self.costs.prices), cost_words(self.costs), cost_table(self.costs, self.cut_to.value)]


def number(name: str, value: float, hook: str) -> Any:
    """Return a field for a number that is 0 or more, whole where `value` is whole."""
    kind = widgets.BoundedIntText if isinstance(value, int) else widgets.BoundedFloatText
    return view.field(kind(value, min=0, max=MOST, description=name), hook)


def fields(*parts: Any) -> widgets.HBox:
    """Lay fields in a row."""
    row = widgets.HBox(list(parts))
    row.add_class("ll-numbers")
    return row


def cost_explorer(prices: Prices, shape: Shape | None = None, cut_to: int = 200) -> CostExplorer:
    """Show what a run costs at these prices, step by step, and what a cache and shorter results save.

    Raises ValueError for what its fields cannot hold: more than 40 steps, or a number above a million.
    """
    shape = shape or Shape()
    held = (shape.start, shape.written, shape.result, cut_to, prices.prompt, prices.reply, prices.cached,
            prices.to_cache)
    if shape.steps > STEPS or not isinstance(cut_to, int) or cut_to < 0 or max(held) > MOST:
        raise ValueError(f"the explorer takes 1 to {STEPS} steps, and numbers from 0 to {MOST:,}")
    return CostExplorer(shape, prices, cut_to)
