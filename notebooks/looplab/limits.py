"""Two sliders for the limits of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from looplab.view import area, field


class Limits(widgets.HBox):
    """Sliders for max_steps and token_budget; `on_change` is called when one was moved."""

    def __init__(self, on_change: Callable[[Any], Any], max_steps: int = 8, token_budget: int = 4000) -> None:
        self._steps, steps = limit_slider("max_steps", max_steps, 1, 12, 1)
        self._budget, budget = limit_slider("token_budget", token_budget, 200, 6000, 50)
        for slider in (self._steps, self._budget):
            slider.observe(on_change, names="value")
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


def limit_slider(name: str, value: int, low: int, high: int, step: int) -> tuple[widgets.IntSlider, widgets.HBox]:
    """Return a slider, and the row that shows it with its name and its value."""
    slider = widgets.IntSlider(value, low, high, step, description=name, readout=False, continuous_update=False)
    shown = area(f"{value:,}")
    slider.observe(lambda change: setattr(shown, "value", f"{change.new:,}"), names="value")
    row = widgets.HBox([field(slider, name.replace("_", "-")), shown])
    row.add_class("ll-limit")
    row.add_class("ll-ctl")
    return slider, row
