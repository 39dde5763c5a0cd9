"""The bench of the exits: a scripted model, two limits, and the run as a staircase in the room that they make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agentloop import WEATHER_TASK, AgentResult, Json, run_agent, weather_world
from looplab import view
from looplab.limits import Limits
from looplab.room import room_svg
from looplab.scripts import SCRIPTS, scripted
from looplab.spend import Step, exit_reason, next_prompt, steps_of
from looplab.view import Bench, Block, call_text, code, escape, guarded

HEAD = ["step", "prompt", "reply", "spent", "the reply asks for"]


# --- State ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """A finished run under two limits; `refused` is the prompt that the budget did not let through."""

    result: AgentResult
    specs: list[Json]
    max_steps: int
    token_budget: int

    @property
    def steps(self) -> list[Step]:
        """The steps of the run with their tokens."""
        return steps_of(self.result.messages, self.specs)

    @property
    def refused(self) -> int:
        """The tokens of the prompt that was not sent, or 0."""
        return next_prompt(self.result.messages, self.specs) if self.result.status == "token_budget" else 0

    @property
    def reason(self) -> str:
        """Why the run ended."""
        return exit_reason(self.result, self.specs, self.max_steps, self.token_budget)


def run_script(name: str, max_steps: int, token_budget: int) -> Outcome:
    """Run a named model on the weather task, for real."""
    registry, _ = weather_world()
    model = scripted(name, max_steps)
    result = run_agent(WEATHER_TASK, model, registry, max_steps=max_steps, token_budget=token_budget)
    return Outcome(result, registry.specs(), max_steps, token_budget)


def asked(step: Step) -> list[str]:
    """Write what a reply asks for, one call a line, or its text where it asks for nothing."""
    return [call_text(call) for call in step.message["tool_calls"]] or [f"“{step.message['content']}”"]


def outcome_table(outcome: Outcome) -> list[list[str]]:
    """Write the steps of a run as a table of plain text."""
    rows = [[str(n), f"{s.prompt:,}", f"{s.reply:,}", f"{s.spent:,}", " → ".join([" and ".join(asked(s)), *errors(s)])]
            for n, s in enumerate(outcome.steps, 1)]
    if outcome.refused:
        total = outcome.result.tokens + outcome.refused
        rows.append(["–", f"{outcome.refused:,}", "–", f"{total:,}", "not sent"])
    return [HEAD, *rows]


def errors(step: Step) -> list[str]:
    """Return the observations of a step that are errors."""
    return [text for text in step.observations if text.startswith("ERROR: ")]


# --- HTML and widget -----------------------------------------------------------------------------------------


def steps_html(outcome: Outcome) -> str:
    """Return the table of the steps: what each reply asks for, an error beneath, and the prompt that was not sent."""
    rows = []
    for n, step in enumerate(outcome.steps, 1):
        calls = step.message["tool_calls"]
        lines = [f"<div>{code(text, 'assistant') if calls else escape(text)}</div>" for text in asked(step)]
        lines += [f'<div class="ll-wrap">{view.mark("error")} {code(text)}</div>' for text in errors(step)]
        rows.append(f"<tr>{cells(n, step.prompt, step.reply, step.spent)}<td>{''.join(lines)}</td></tr>")
    if outcome.refused:
        total = outcome.result.tokens + outcome.refused
        rows.append(f'<tr class="ll-refused">{cells("–", outcome.refused, "–", total)}<td>not sent</td></tr>')
    head = "".join(f"<th>{name}</th>" for name in HEAD)
    return f'<div class="ll-steps"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def cells(*values: Any) -> str:
    """Return cells of a table, numbers with a comma at the thousands."""
    return "".join(f"<td>{value:,}</td>" if isinstance(value, int) else f"<td>{value}</td>" for value in values)


def outcome_html(outcome: Outcome) -> str:
    """Return the sentence, the room and the table of a run."""
    status = outcome.result.status
    said = f"{view.mark('exit')}{view.word(f'Exit: {status}.', 'exit')} {escape(outcome.reason)}"
    spent = [(s.prompt, s.reply) for s in outcome.steps]
    room = room_svg(spent, outcome.refused, outcome.max_steps, outcome.token_budget, status)
    keys = "".join(f'<span class="ll-pair"><i class="ll-key ll-key-{part}"></i>{name}</span>'
                   for part, name in (("spent", "prompt"), ("reply", "reply"), ("before", "spent before")))
    plot = f'<p class="ll-eyebrow">Tokens spent, step by step</p>{room}<p class="ll-legend">{keys}</p>'
    return (f'{view.sentence(said)}<div class="ll-cols"><div class="ll-plot">{plot}</div>'
            f'<div class="ll-tab">{steps_html(outcome)}</div></div>')


class ExitsBench(Bench):
    """Choose a model and move the limits; `outcome` is the run they make."""

    def __init__(self, model: str, max_steps: int, token_budget: int) -> None:
        self.choice = view.choices("A model that", list(SCRIPTS), "choice", model)
        self.limits = Limits(self._show, max_steps, token_budget)
        self._view = view.area("", "view")
        self.choice.observe(self._show, names="value")
        super().__init__(self.choice, self.limits, self._view, hook="exits")
        self._show()

    @guarded
    def _show(self, change: Any = None) -> None:
        self.outcome = run_script(self.choice.value, self.limits.max_steps, self.limits.token_budget)
        self._view.value = outcome_html(self.outcome)

    def twin(self) -> list[Block]:
        """Return the model and the limits, the exit and the steps."""
        limits = f"max_steps={self.limits.max_steps}, token_budget={self.limits.token_budget:,}"
        return [f"A model that {self.choice.value}; {limits}.",
                f"Exit: {self.outcome.result.status}. {self.outcome.reason}", outcome_table(self.outcome)]


def exits_bench(model: str = "never finishes", max_steps: int = 5, token_budget: int = 2000) -> ExitsBench:
    """Run scripted models under limits that can be moved, and show where and why each run ends.

    Raises ValueError for a model that is not among the choices, and for a limit outside its range.
    """
    if model not in SCRIPTS:
        raise ValueError(f"model must be one of {list(SCRIPTS)}")
    return ExitsBench(model, max_steps, token_budget)
