"""The limits of a run, each as a slider and as a number that can be typed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from looplab.view import area, field


class Limits(widgets.HBox):
    """max_steps and token_budget; `on_change` is called when one has changed."""

    def __init__(self, on_change: Callable[[Any], Any], max_steps: int = 8, token_budget: int = 4000) -> None:
        self._steps, steps = limit_row("max_steps", max_steps, 1, 12, 1)
        self._budget, budget = limit_row("token_budget", token_budget, 200, 6000, 50)
        for number in (self._steps, self._budget):
            number.observe(on_change, names="value")
        super().__init__([steps, budget])
        self.add_class("ll-limits")

    @property
    def max_steps(self) -> int:
        """How many steps a run may take."""
        return int(self._steps.value)

    @property
    def token_budget(self) -> int:
        """How many tokens a run may spend."""
        return int(self._budget.value)

    def move(self, max_steps: int, token_budget: int) -> None:
        """Set both limits."""
        self._steps.value, self._budget.value = max_steps, token_budget


def limit_row(name: str, value: int, low: int, high: int, step: int) -> tuple[widgets.BoundedIntText, widgets.HBox]:
    """Return a field for a limit, and the row that holds it and a slider for the same number.

    Raises ValueError for a value outside the range.
    """
    if not low <= value <= high:
        raise ValueError(f"{name} must be from {low:,} to {high:,} here")
    hook = name.replace("_", "-")
    slider = widgets.IntSlider(value, low, high, step, readout=False, continuous_update=False, tooltip="")
    number = field(widgets.BoundedIntText(value, min=low, max=high, step=step, description=name), f"{hook}-number")
    widgets.link((slider, "value"), (number, "value"))
    row = widgets.HBox([slider, number, area(range_html(low, high))])
    slider.add_class(f"t-{hook}")
    row.add_class("ll-limit")
    return number, row


def range_html(low: int, high: int) -> str:
    """Return the range of a field for a number, to stand beside it: what lies outside is set to the nearer end."""
    return f'<span class="ll-muted">{low:,} to {high:,}</span>'
