"""The trace viewer: recorded runs, step by step, with the seconds and the tokens of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentloop import AgentResult, Json, Trace, explain, rows_of
from looplab import view
from looplab.view import Bench, Block, call_text, code, escape, guarded, plural

HEAD = ["step", "decision", "observation", "tokens", "model s", "tool s"]
WIDTH = 44  # characters of a decision or an observation in the twin

Source = Trace | str | Path


# --- State ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """One step of a trace: the rows of its table, where its messages begin and end, and the seconds they took."""

    number: int
    rows: list[list[str]]
    start: int
    stop: int
    model_seconds: float | None
    tool_seconds: list[float]


def steps_of(trace: Trace) -> list[Step]:
    """Return the steps of a trace: each a reply and its observations."""
    starts = [i for i, message in enumerate(trace.messages) if message["role"] == "assistant"]
    rows: list[list[list[str]]] = []
    for row in rows_of(trace):
        rows = [*rows, [row]] if row[0] else [*rows[:-1], [*rows[-1], row]]
    steps = []
    for number, (start, stop) in enumerate(zip(starts, [*starts[1:], len(trace.messages)]), 1):
        seconds = [trace.note(i).get("seconds") for i in range(start + 1, stop)]
        model = trace.note(start).get("seconds")
        steps.append(Step(number, rows[number - 1], start, stop, model, [s for s in seconds if s is not None]))
    return steps


def as_trace(source: Source) -> Trace:
    """Return a trace, read from its file where a path is given."""
    return source if isinstance(source, Trace) else Trace.load(source)


def ending(trace: Trace) -> str:
    """Say how a recorded run ended, in words."""
    steps = sum(message["role"] == "assistant" for message in trace.messages)
    return explain(AgentResult(trace.status, None, steps, 0, trace.messages))


def seconds_text(seconds: float) -> str:
    """Write seconds with at most two decimals: "0.8 s", "31 s"."""
    return f"{seconds:.2f}".rstrip("0").rstrip(".") + " s"


def step_words(step: Step, messages: list[Json], count: int) -> tuple[str, str, str, str]:
    """Say what a step did: its place, what the model did, who came next, and what that did."""
    reply, results = messages[step.start], messages[step.start + 1 : step.stop]
    took = f" took {seconds_text(step.model_seconds)} and" if step.model_seconds is not None else ""
    asked = ", ".join(map(call_text, reply["tool_calls"]))
    errors = sum(message["content"].startswith("ERROR: ") for message in results)
    place = f"Step {step.number} of {count}: "
    if not asked:
        return place, f"{took} answered: {view.cut(reply['content'], 60)}", "", ""
    model = f"{took} asked for {view.cut(asked, 60)}"
    if not results:
        return place, f"{model}, which has no observation.", "", ""
    took = f" took {seconds_text(sum(step.tool_seconds))}" if step.tool_seconds else " answered"
    failed = f", {plural(errors, 'error')}" if errors else ""
    return place, f"{model}.", f"The {'tool' if len(results) == 1 else 'tools'}", f"{took}{failed}."


# --- HTML and widget -----------------------------------------------------------------------------------------


def words_html(words: tuple[str, str, str, str]) -> str:
    """Return the sentence of a step."""
    place, model, who, tool = words
    after = f" {view.word(who, 'tool')}{escape(tool)}" if who else ""
    return view.sentence(f"{escape(place)}{view.word('the model', 'assistant')}{escape(model)}{after}")


def rows_html(steps: list[Step], current: int) -> str:
    """Return the table of a trace, with the rows of the current step lit."""
    lines = []
    for step in steps:
        lit = ' style="background:var(--ll-here-band)" aria-current="step"' if step.number == current else ""
        for number, decision, observed, *numbers in step.rows:
            cells = "".join(f"<td>{escape(cell)}</td>" for cell in (number, *numbers))
            error = view.mark("error") + " " if observed.startswith("ERROR: ") else ""
            seen = f"<div>{code(view.cut(decision, 2 * WIDTH), 'assistant')}</div>"
            seen += f"<div>{error}{code(view.cut(observed, 2 * WIDTH))}</div>" if observed else ""
            lines.append(f"<tr{lit}>{cells}<td>{seen}</td></tr>")
    head = "".join(f"<th>{name}</th>" for name in (HEAD[0], *HEAD[3:], "decision and observation"))
    table = f'<table><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table>'
    return f'<div class="ll-steps ll-tab" tabindex="0" role="region" aria-label="steps of the trace">{table}</div>'


class TraceViewer(Bench):
    """Step through a recorded run; `step` is the number of the current one."""

    def __init__(self, traces: Mapping[str, Source]) -> None:
        if not traces:
            raise ValueError("trace_viewer needs a trace, or the path of one")
        self._traces = {name: as_trace(source) for name, source in traces.items()}
        self.choice = view.choices("Run", list(traces), "choice", next(iter(traces)))
        self.buttons = {
            "First": view.button("First", "first", lambda _: self.go_to(1)),
            "Back": view.button("Back", "back", lambda _: self.go_to(self.step - 1)),
            "Next": view.button("Next", "next", lambda _: self.go_to(self.step + 1)),
            "Last": view.button("Last", "last", lambda _: self.go_to(len(self.steps))),
        }
        self._position = view.area("", "position")
        self._say, self._table, self._list = view.area("", "say"), view.area("", "table"), view.area("", "list")
        columns = view.columns(view.column("ll-seat-a", self._table), view.column("ll-seat-b", self._list))
        super().__init__(self.choice, view.controls(*self.buttons.values(), self._position), self._say, columns,
                         hook="trace")
        self.choice.layout.display = "" if len(traces) > 1 else "none"
        self.choice.observe(self._choose, names="value")
        self._choose()

    @guarded
    def _choose(self, change: Any = None) -> None:
        self.trace = self._traces[self.choice.value]
        self.steps = steps_of(self.trace)
        self._show(1)

    @guarded
    def go_to(self, step: int) -> None:
        """Show a step, by its number from 1 on."""
        self._show(step)

    def _show(self, step: int) -> None:
        self.step = min(max(step, 1), max(len(self.steps), 1))
        view.switch_ends(self.buttons, self.step <= 1, self.step >= len(self.steps))
        self._position.value = f'<span class="ll-position">{self.step if self.steps else 0} / {len(self.steps)}</span>'
        messages, is_last = self.trace.messages, self.step >= len(self.steps)
        if not self.steps:
            self._say.value, self._table.value = view.sentence("No step was recorded."), ""
            self._list.value = view.message_list(messages)
            return
        now = self.steps[self.step - 1]
        self._say.value = words_html(step_words(now, messages, len(self.steps)))
        self._table.value = rows_html(self.steps, self.step)
        end = (self.trace.status, "") if is_last else None
        shown = messages[: now.stop]
        self._list.value = view.message_list(shown, range(now.start, now.stop), end=end, height=380)

    def twin(self) -> list[Block]:
        """Return how the run ended, and its table."""
        rows = [[number, view.cut(decision, WIDTH), view.cut(observed, WIDTH), *numbers]
                for step in self.steps for number, decision, observed, *numbers in step.rows]
        several = [f"One of {len(self._traces)} runs: {', '.join(self._traces)}."] * (len(self._traces) > 1)
        return [*several, f"{self.choice.value}: {ending(self.trace)}.", [HEAD, *rows]]


def trace_viewer(*traces: Source, **named: Source) -> TraceViewer:
    """Step through recorded runs: traces or paths of their files, the latter by their name where none is given."""
    names = [Path(source).stem if not isinstance(source, Trace) else f"run {i}" for i, source in enumerate(traces, 1)]
    return TraceViewer(dict(zip(names, traces)) | named)
