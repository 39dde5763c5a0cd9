"""Four runs at the order desk, side by side: each with limits that can be moved, and the exit that they make."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

from agentloop import ModelReply, ScriptedModel, run_agent, stop_on_repeat
from looplab import view
from looplab.exits import Outcome, outcome_html, outcome_table
from looplab.limits import Limits
from looplab.view import Bench, Block, escape, guarded
from looplab.worlds import ORDER_TASK, order_desk, recovers, repeats_itself, wanders

HEAD = ["run", "max_steps", "token_budget", "exit", "steps", "tokens", "calls that ran", "exit at first"]


@dataclass(frozen=True)
class Setting:
    """What a run is made of: a model, two limits, and whether the third identical call ends it."""

    model: Callable[[], Iterable[ModelReply]]
    max_steps: int
    token_budget: int
    guard: bool = True


RUNS = {
    "recovers": Setting(recovers, 6, 3000),
    "repeats itself": Setting(repeats_itself, 6, 3000),
    "wanders": Setting(wanders, 4, 3000),
    "tight budget": Setting(recovers, 6, 400),
}


# --- State ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DeskRun:
    """A finished run at the order desk, and how many calls really ran."""

    outcome: Outcome
    ran: int

    @property
    def status(self) -> str:
        """How the run ended."""
        return self.outcome.result.status


@cache
def run_at_desk(setting: Setting) -> DeskRun:
    """Run a setting on ORDER_TASK, for real."""
    registry, ran = order_desk()
    limits = {"max_steps": setting.max_steps, "token_budget": setting.token_budget}
    model = ScriptedModel(islice(setting.model(), setting.max_steps))
    execute = stop_on_repeat(registry) if setting.guard else registry
    result = run_agent(ORDER_TASK, model, registry, execute=execute, **limits)
    return DeskRun(Outcome(result, registry.specs(), **limits), len(ran))


def runs_table(settings: dict[str, Setting]) -> list[list[str]]:
    """Write the runs side by side as a table of plain text."""
    rows = [HEAD]
    for name, setting in settings.items():
        run, first = run_at_desk(setting), run_at_desk(RUNS[name])
        result = run.outcome.result
        rows.append([name, str(setting.max_steps), f"{setting.token_budget:,}", run.status, str(result.steps),
                     f"{result.tokens:,}", str(run.ran), first.status])
    return rows


# --- HTML and widget -----------------------------------------------------------------------------------------


def runs_html(settings: dict[str, Setting], chosen: str) -> str:
    """Return the table of the runs; the chosen one is bold, and an exit that has moved has the mark of an exit."""
    rows = []
    for name, *cells in runs_table(settings)[1:]:
        cells = [escape(cell) for cell in cells]
        if cells[2] != cells[-1]:
            cells[2] = f"{view.mark('exit')} {view.word(cells[2], 'exit')}"
        first = f"<b>{escape(name)}</b>" if name == chosen else escape(name)
        rows.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in [first, *cells])}</tr>")
    head = "".join(f"<th>{name}</th>" for name in HEAD)
    return (f'<div class="ll-words ll-four"><table><thead><tr>{head}</tr></thead>'
            f"<tbody>{''.join(rows)}</tbody></table></div>")


class FourExits(Bench):
    """Choose one of four runs and move its limits; `settings` are those of all four."""

    def __init__(self, run: str) -> None:
        self.settings = dict(RUNS)
        self._filling = False
        self.choice = view.choices("Run", list(RUNS), "run", run)
        self.limits = Limits(self._moved, RUNS[run].max_steps, RUNS[run].token_budget)
        self.guard = view.switch("stop at the third identical call", "guard")
        self.guard.value = True
        self._view, self._table = view.area("", "view"), view.area("", "four")
        again = view.button("Limits as they were", "again", self._again)
        super().__init__(self.choice, self.limits, view.controls(self.guard, again), self._view, self._table,
                         hook="four-exits")
        self.choice.observe(self._chosen, names="value")
        self.guard.observe(self._moved, names="value")
        self._show()

    @guarded
    def _chosen(self, change: Any = None) -> None:
        setting = self.settings[self.choice.value]
        self._filling = True  # three controls change, and none of them was moved by the reader
        self.limits.move(setting.max_steps, setting.token_budget)
        self.guard.value = setting.guard
        self._filling = False
        self._show()

    @guarded
    def _moved(self, change: Any = None) -> None:
        if not self._filling:
            model, limits = RUNS[self.choice.value].model, self.limits
            self.settings[self.choice.value] = Setting(model, limits.max_steps, limits.token_budget, self.guard.value)
            self._show()

    def _again(self, button: Any) -> None:
        self.settings = dict(RUNS)
        self._chosen()

    @guarded
    def _show(self) -> None:
        self.run = run_at_desk(self.settings[self.choice.value])
        self._view.value = outcome_html(self.run.outcome)
        self._table.value = runs_html(self.settings, self.choice.value)

    def twin(self) -> list[Block]:
        """Return the four runs side by side, and the steps of the chosen one."""
        outcome = self.run.outcome
        said = f"The run that is chosen: {self.choice.value}. Exit: {self.run.status}. {outcome.reason}"
        return ["Four runs at the order desk.", runs_table(self.settings), said, outcome_table(outcome)]


def four_exits(run: str = "repeats itself") -> FourExits:
    """Show four runs at the order desk, and where each ends when its limits are moved.

    Raises ValueError for a run that is none of the four.
    """
    if run not in RUNS:
        raise ValueError(f"run must be one of {list(RUNS)}")
    return FourExits(run)
