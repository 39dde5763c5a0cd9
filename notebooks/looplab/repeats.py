"""The bench of repeats: what a guard calls a repeat, how many it allows, what it misses and where it cries wolf."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count, cycle
from typing import Any

import ipywidgets as widgets

from agentloop import (
    Execute, Json, ModelReply, ScriptedModel, Stop, ToolCall, ToolRegistry, asks, call, call_key, final, run_agent,
    stop_on_repeat,
)
from looplab import view
from looplab.limits import limit_row
from looplab.spend import ORDINALS
from looplab.view import Bench, Block, call_text, code, escape, guarded

MAX_STEPS = 10
HEAD = ["A model that", "it is", "the run ends with", "calls run", "the guard"]
CALLS_HEAD = ["step", "call", "observation"]


# --- Models, and the world they work in ----------------------------------------------------------------------


def world() -> tuple[ToolRegistry, list[str]]:
    """Return a registry of six tools, and the log of every call that really ran."""
    ran: list[str] = []
    quick, slow = (iter(states) for states in (
        ["queued", "40% done", "80% done", "finished"], ["queued", "running", "running", "running", "finished"]))

    def tool(name: str, result: Callable[[Any], Any], /, **types: str) -> None:
        def fn(**args: Any) -> Any:
            ran.append(call_text(ToolCall("", name, args)))
            return result(args)

        properties = {arg: {"type": json_type} for arg, json_type in types.items()}
        registry.register(name, "A tool of this bench.", {"type": "object", "properties": properties}, fn)

    registry = ToolRegistry()
    tool("get_order", look_up, order_id="string", detail="boolean")
    tool("get_customer", lambda args: {"order_id": "A123"}, name="string")
    tool("job_status", lambda args: next({"quick": quick, "slow": slow}[args["job"]]), job="string")
    tool("read_rules", lambda args: "One parcel for each address.")
    tool("pack", lambda args: f"parcel {args['n']} is packed", n="integer")
    return registry, ran


def look_up(args: Json) -> Json:
    """Return an order; there are some whose id begins with A."""
    if not args["order_id"].startswith("A"):
        raise LookupError(f"no order with id {args['order_id']}; ids look like A123")
    return {"item": "keyboard", "customer": "Ada"}


def endless(*asked: Callable[[int], ToolCall]) -> Iterator[ModelReply]:
    """A model that makes these calls in turn and never answers."""
    for n, make in zip(count(1), cycle(asked)):
        yield asks(make(n))


def ending(*asked: ToolCall) -> list[ModelReply]:
    """A model that makes these calls and answers."""
    return [*map(asks, asked), final("Done.")]


def poll(job: str, times: int) -> list[ModelReply]:
    """A model that asks for the state of a job until it is finished."""
    return ending(*(call(f"c{n}", "job_status", job=job) for n in range(times)))


def order(n: int, order_id: str = "Z999", **more: Any) -> ToolCall:
    """Write a call that looks up an order."""
    return call(f"c{n}", "get_order", order_id=order_id, **more)


def reads_again() -> list[ModelReply]:
    """A model that packs three parcels and reads the rules before each."""
    steps = [(call(f"r{n}", "read_rules"), call(f"p{n}", "pack", n=n)) for n in (1, 2, 3)]
    return ending(*(asked for step in steps for asked in step))


MODELS: dict[str, tuple[bool, Callable[[], Iterable[ModelReply]]]] = {
    "asks the same again": (True, lambda: endless(order)),
    "turns its arguments round": (True, lambda: endless(
        lambda n: ToolCall(f"c{n}", "get_order", {"order_id": "Z999", "detail": True}),
        lambda n: ToolCall(f"c{n}", "get_order", {"detail": True, "order_id": "Z999"}))),
    "goes A-B-A-B": (True, lambda: endless(
        lambda n: order(n, "A123"), lambda n: call(f"c{n}", "get_customer", name="Ada"))),
    "tries a new id each time": (True, lambda: endless(lambda n: order(n, f"Z{n:03}"))),
    "polls a job": (False, lambda: poll("quick", 4)),
    "polls a slow job": (False, lambda: poll("slow", 5)),
    "looks up five orders": (False, lambda: ending(*(order(n, f"A{n:03}") for n in range(1, 6)))),
    "reads the rules again": (False, reads_again),
}


# --- Guards --------------------------------------------------------------------------------------------------


def stop_on_same(execute: Execute, limit: int, key: Callable[[ToolCall], str]) -> Execute:
    """Wrap `execute` so that the `limit`th call in a row with the same key ends the run."""
    last, times = "", 0

    def watchful(call: ToolCall) -> str:
        nonlocal last, times
        times = times + 1 if key(call) == last else 1
        last = key(call)
        if times == limit:
            raise Stop("repeated_call", f"{call.name} was asked for {limit} times in a row")
        return execute(call)

    return watchful


def stop_on_seen(execute: Execute, limit: int) -> Execute:
    """Wrap `execute` so that a call that gave the same result `limit` - 1 times, anywhere in the run, ends it."""
    seen: dict[str, list[str]] = {}

    def watchful(call: ToolCall) -> str:
        results = seen.setdefault(call_key(call), [])
        if len(results) == limit - 1 and len(set(results)) == 1:
            raise Stop("repeated_call", f"{call.name} gave the same result {limit - 1} times")
        results.append(execute(call))
        del results[: -(limit - 1)]
        return results[-1]

    return watchful


GUARDS: dict[str, Callable[[Execute, int], Execute]] = {
    "tool": lambda execute, limit: stop_on_same(execute, limit, lambda call: call.name),
    "tool and arguments": lambda execute, limit: stop_on_same(execute, limit, call_key),
    "tool, arguments and result": stop_on_repeat,
    "all three, anywhere in the run": stop_on_seen,
}


# --- State ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GuardedRun:
    """A run of one model under a guard: whether it is stuck, how the run ended, what ran, and each call it made."""

    model: str
    stuck: bool
    status: str
    ran: int
    calls: list[tuple[Json, str]]

    @property
    def verdict(self) -> str:
        """What the guard made of it."""
        stopped = self.status == "repeated_call"
        if stopped == self.stuck:
            return "stopped it" if stopped else "let it be"
        return "missed it" if self.stuck else "false alarm"

    @property
    def is_right(self) -> bool:
        """Whether it stopped what is stuck, and let be what is not."""
        return self.stuck == (self.status == "repeated_call")


@cache
def run_guarded(model: str, key: str, limit: int) -> GuardedRun:
    """Run a model under a guard, for real."""
    stuck, script = MODELS[model]
    registry, ran = world()
    replies = [reply for reply, _ in zip(script(), range(MAX_STEPS))]
    result = run_agent("Go on.", ScriptedModel(replies), registry, max_steps=MAX_STEPS, token_budget=10**6,
                       execute=GUARDS[key](registry, limit))
    asked = [c for message in result.messages for c in message.get("tool_calls", [])]
    told = [message["content"] for message in result.messages if message["role"] == "tool"]
    return GuardedRun(model, stuck, result.status, len(ran), list(zip(asked, told)))


def run_all(key: str, limit: int) -> list[GuardedRun]:
    """Run every model under a guard."""
    return [run_guarded(model, key, limit) for model in MODELS]


def tally(runs: list[GuardedRun]) -> str:
    """Say how often a guard was wrong, and how."""
    misses = sum(run.verdict == "missed it" for run in runs)
    alarms = sum(run.verdict == "false alarm" for run in runs)
    right = sum(run.is_right for run in runs)
    return (f"{right} of {len(runs)} right; {misses} missed, "
            f"{alarms} {'false alarm' if alarms == 1 else 'false alarms'}.")


def runs_table(runs: list[GuardedRun]) -> list[list[str]]:
    """Write the runs as a table of plain text."""
    return [HEAD, *([run.model, "stuck" if run.stuck else "at work", run.status, str(run.ran), run.verdict]
                    for run in runs)]


def calls_table(run: GuardedRun) -> list[list[str]]:
    """Write the calls of a run as a table of plain text."""
    return [CALLS_HEAD, *([str(n), call_text(asked), told] for n, (asked, told) in enumerate(run.calls, 1))]


# --- HTML and widget -----------------------------------------------------------------------------------------


def runs_html(runs: list[GuardedRun], chosen: str) -> str:
    """Return the table of the runs; the chosen one is lit, and a guard that was wrong has the mark of an error."""
    rows = []
    for run, cells in zip(runs, runs_table(runs)[1:]):
        name = f"<b>{escape(run.model)}</b>" if run.model == chosen else escape(run.model)
        verdict = escape(run.verdict) if run.is_right else f"{view.mark('error')} {view.word(run.verdict, 'error')}"
        middle = "".join(f"<td>{escape(cell)}</td>" for cell in cells[1:-1])
        rows.append(f"<tr><td>{name}</td>{middle}<td>{verdict}</td></tr>")
    head = "".join(f"<th>{name}</th>" for name in HEAD)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def calls_html(run: GuardedRun) -> str:
    """Return the calls of a run; the one that was refused has the colour of an exit."""
    rows = []
    for n, (asked, told) in enumerate(run.calls, 1):
        refused = run.status == "repeated_call" and n == len(run.calls)
        words = [n, code(call_text(asked), "assistant"), f'<div class="{"ll-wrap" * refused}">{escape(told)}</div>']
        rows.append(f'<tr class="{"ll-refused" * refused}">{"".join(f"<td>{word}</td>" for word in words)}</tr>')
    head = "".join(f"<th>{name}</th>" for name in CALLS_HEAD)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def bench_html(runs: list[GuardedRun], key: str, limit: int, chosen: str) -> str:
    """Return the sentence and the two tables."""
    run = next(run for run in runs if run.model == chosen)
    said = f"{view.word('The guard', 'exit')} {escape(guard_words(key, limit))}: {tally(runs)}"
    eyebrow = f'<p class="ll-eyebrow">A model that {escape(chosen)}, call by call</p>'
    end = f'<p class="ll-note">{view.mark("exit")} {view.word(f"Exit: {run.status}.", "exit")}</p>'
    return (f'{view.sentence(said)}<div class="ll-cols"><div class="ll-plot ll-words">{runs_html(runs, chosen)}</div>'
            f'<div class="ll-tab ll-words">{eyebrow}<div class="ll-steps">{calls_html(run)}{end}</div></div></div>')


def guard_words(key: str, limit: int) -> str:
    """Say what a guard refuses."""
    return f"refuses the {ORDINALS[limit - 1]} call that is the same in {key}"


class RepeatBench(Bench):
    """Choose what counts as the same, and the limit; `runs` are those of all models, one of them call by call."""

    def __init__(self, model: str, key: str, limit: int) -> None:
        self.key = view.choices("The same means", list(GUARDS), "key", key)
        self.model = view.choices("Show a model that", list(MODELS), "model", model)
        self.limit, row = limit_row("limit", limit, 2, 6, 1)
        self._view = view.area("", "view")
        limits = widgets.HBox([row])
        limits.add_class("ll-limits")
        super().__init__(self.key, limits, self.model, self._view, hook="repeats")
        for control in (self.key, self.model, self.limit):
            control.observe(self._show, names="value")
        self._show()

    @guarded
    def _show(self, change: Any = None) -> None:
        self.runs = run_all(self.key.value, self.limit.value)
        self._view.value = bench_html(self.runs, self.key.value, self.limit.value, self.model.value)

    def twin(self) -> list[Block]:
        """Return the guard, the runs of all models, and the calls of one."""
        run = next(run for run in self.runs if run.model == self.model.value)
        guard = f"The guard {guard_words(self.key.value, self.limit.value)}: {tally(self.runs)}"
        return [guard, runs_table(self.runs), f"A model that {run.model}, call by call:", calls_table(run)]


def repeat_bench(model: str = "asks the same again", key: str = "tool, arguments and result",
                 limit: int = 3) -> RepeatBench:
    """Run eight models under one guard, and show which stuck runs it misses and where it stops a good one.

    Raises ValueError for a model or a key that is not among the choices, and for a limit that is not 2 to 6.
    """
    if model not in MODELS or key not in GUARDS or limit not in range(2, 7):
        raise ValueError(f"model must be one of {list(MODELS)}, key one of {list(GUARDS)}, and limit 2 to 6")
    return RepeatBench(model, key, limit)
