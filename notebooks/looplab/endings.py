"""Ending as an experiment: every script of a few replies is run, and each run must end by exactly one exit."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

import agentloop
from agentloop import Json, count_tokens, describe
from looplab.plots import EDGE, EXIT, PAPER, SERIES, TRACK, Plot

LOOK = ("a", "look", {"at": "sky"})
KINDS: dict[str, tuple[str, list[tuple[str, str, Json]]]] = {  # the text of a reply, and its calls
    "text": ("It is done.", []),
    "empty": ("", []),
    "one call": ("", [LOOK]),
    "two calls": ("", [LOOK, ("b", "look", {"at": "sea"})]),
    "text and call": ("Let me look.", [LOOK]),
    "unknown tool": ("", [("a", "listen", {"to": "rain"})]),
    "bad arguments": ("", [("a", "look", {"at": 7})]),
    "raising tool": ("", [("a", "look", {"at": "sun"})]),
}
EXITS = {"done": TRACK, "step_limit": EDGE, "token_budget": EXIT}
OTHER = "other"  # an exception, or a status that no limit explains


def look_registry(loop: Any) -> Any:
    """Return a registry of a loop with one tool, which raises if it is asked to look at the sun."""

    def look(at: str) -> str:
        if at == "sun":
            raise KeyError(at)
        return f"the {at}"

    registry = loop.ToolRegistry()
    schema = {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}
    registry.register("look", "Look at something.", schema, look)
    return registry


def reply_of(loop: Any, kind: str) -> Any:
    """Return a reply of a kind in the shapes of a loop, which may have methods of their own."""
    text, calls = KINDS[kind]
    return loop.ModelReply(text, [loop.ToolCall(*parts) for parts in calls])


@dataclass(frozen=True)
class Ending:
    """How the run of a script ended: its exit, its steps, and the rules it broke."""

    script: tuple[str, ...]
    exit: str
    steps: int
    broken: list[str]


def run_script(loop: Any, registry: Any, script: tuple[str, ...], token_budget: int) -> Ending:
    """Run a script with as many steps as it has replies, and hold the rules against the message list alone."""
    asked, replies = 0, [reply_of(loop, kind) for kind in script]

    def model(messages: list[Json], specs: list[Json]) -> Any:
        nonlocal asked
        asked += 1
        if asked > len(script):
            raise AssertionError("the script ran out")
        return replies[asked - 1]

    try:
        result = loop.run_agent("Look.", model, registry, max_steps=len(script), token_budget=token_budget)
    except Exception as error:
        return Ending(script, OTHER, asked, [f"it raised {describe(error)}"])
    reasons, broken = reasons_to_end(result.messages, registry.specs(), len(script), token_budget)
    if reasons != [result.status]:
        broken.append(f"it ended with {result.status}, and its list says {' and '.join(reasons) or 'nothing'}")
    if not is_closed(result.messages):
        broken.append("a call has no observation of its own")
    return Ending(script, result.status if result.status in EXITS else OTHER, asked, broken)


def reasons_to_end(messages: list[Json], specs: list[Json], max_steps: int,
                   token_budget: int) -> tuple[list[str], list[str]]:
    """Return each exit for which the list gives a reason, and the limits that the run passed on its way."""
    sizes = [len(json.dumps(message)) + 2 for message in messages]  # all of these scripts are ASCII
    spent, steps, passed, fixed = 0, 0, [], count_tokens(specs)
    for i, message in enumerate(messages):
        if message["role"] == "assistant":
            prompt = fixed + sum(sizes[:i]) // 4
            if spent + prompt > token_budget:
                passed.append(f"the prompt of step {steps + 1} did not fit into the budget")
            spent, steps = spent + prompt + count_tokens(message), steps + 1
    if steps > max_steps:
        passed.append("it took more steps than it may")
    finished = messages[-1]["role"] == "assistant" and not messages[-1]["tool_calls"]
    next_prompt = fixed + sum(sizes) // 4
    holds = (finished, not finished and steps >= max_steps,
             not finished and steps < max_steps and spent + next_prompt > token_budget)
    return [name for name, is_so in zip(EXITS, holds) if is_so], passed


def is_closed(messages: list[Json]) -> bool:
    """Say whether each reply is followed by one observation for each of its calls, in order, with its id and name."""
    due: list[tuple[str, str]] = []
    for message in messages[2:]:
        if message["role"] == "assistant" and due:
            return False
        if message["role"] == "assistant":
            due = [(c["id"], c["name"]) for c in message["tool_calls"]]
        elif not due or due.pop(0) != (message["tool_call_id"], message["name"]):
            return False
    return not due


def scripts(length: int) -> Iterator[tuple[str, ...]]:
    """Yield every script of 1 to `length` replies, the shorter ones first."""
    for count in range(1, length + 1):
        yield from itertools.product(KINDS, repeat=count)


class Endings:
    """The endings of every script up to a length: counted as a table, and drawn as a grid for the longest."""

    def __init__(self, length: int, token_budget: int, loop: Any) -> None:
        self.length, self.token_budget = length, token_budget
        registry = look_registry(loop)
        self.runs = [run_script(loop, registry, script, token_budget) for script in scripts(length)]

    @property
    def broken(self) -> list[Ending]:
        """The runs that broke a rule."""
        return [run for run in self.runs if run.broken]

    @property
    def sentence(self) -> str:
        """What the experiment found, in numbers."""
        held = len(self.runs) - len(self.broken)
        return (f"{len(self.runs):,} scripts of 1 to {self.length} replies: {held:,} end by exactly one exit in time, "
                f"with one observation a call; {len(self.broken):,} do not.")

    @property
    def rows(self) -> list[list[str | float]]:
        """The runs counted by exit and by the steps that they took."""
        counts = Counter((run.exit, run.steps) for run in self.runs)
        steps = sorted({run.steps for run in self.runs})
        names = [*EXITS, *([OTHER] if any(run.exit == OTHER for run in self.runs) else [])]
        body = [[name, *(counts[name, n] for n in steps)] for name in names]
        return [["exit", *(f"after {n} {'step' if n == 1 else 'steps'}" for n in steps)], *body]

    def plot(self) -> Plot:
        """Draw the scripts of the full length as a grid: the first half of the replies down, the second across."""
        longest = [run for run in self.runs if len(run.script) == self.length]
        across = len(KINDS) ** (self.length // 2)
        names = [*EXITS, OTHER]
        grid = np.array([names.index(run.exit) for run in longest]).reshape(-1, across)
        return Plot(f"How {len(longest):,} scripts of {self.length} replies end", self.sentence, self.rows,
                    lambda figure: draw_grid(figure, grid, names))


def draw_grid(figure: Figure, grid: Any, names: list[str]) -> None:
    """Draw one small square for each script, in the colour of its exit."""
    figure.set_size_inches(7, 6.2)
    ax = figure.add_subplot()
    colours = [*EXITS.values(), SERIES[2]]
    ax.imshow(grid, cmap=ListedColormap(colours), vmin=0, vmax=len(colours) - 1, interpolation="nearest", aspect="auto")
    ax.set_title("Each square is a script, its colour the exit")
    for axis, size in ((ax.xaxis, grid.shape[1]), (ax.yaxis, grid.shape[0])):
        block = size // len(KINDS)
        axis.set_ticks([block * i + block / 2 - .5 for i in range(len(KINDS))], list(KINDS), fontsize=8)
    ax.tick_params(axis="x", rotation=30)
    ax.grid(False)
    for i in range(1, len(KINDS)):
        for line, size in ((ax.axvline, grid.shape[1]), (ax.axhline, grid.shape[0])):
            line(i * size / len(KINDS) - .5, color=PAPER, linestyle="-", marker="")
    ax.set_ylabel("first, then second reply")
    ax.set_xlabel("third, then fourth reply", loc="left")
    keys = [Patch(color=colours[i], label=names[i]) for i in np.unique(grid)]
    ax.legend(handles=keys, loc="upper right", bbox_to_anchor=(1, -.1), ncols=len(keys), handlelength=1,
              columnspacing=1.4)


def all_endings(length: int = 4, token_budget: int = 750, loop: Any = agentloop) -> Endings:
    """Run every script of 1 to `length` replies on a loop, each with as many steps as it has replies.

    `loop` is a module like agentloop. Raises ValueError for a length that is not 1 to 5; 5 takes a minute.
    """
    if length not in range(1, 6):
        raise ValueError("length must be 1 to 5")
    return Endings(length, token_budget, loop)
