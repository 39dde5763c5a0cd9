"""What a reader is shown of a broken loop: the last run of the fault's test, recorded while it really ran."""

from __future__ import annotations

import ast
import difflib
import functools
import inspect
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from agentloop import AgentResult, Json, ToolCall, describe
from looplab.faults import Fault, broken_text, load, our_text, split_text
from looplab.view import call_text, cut, plural


@dataclass
class Scene:
    """A run: its result, what the model was shown of the tools, the limits, and the calls that reached a function."""

    max_steps: int
    token_budget: int
    specs: list[Json]
    called: list[str]
    messages: list[Json] = field(default_factory=list)
    result: AgentResult | None = None
    raised: str = ""

    @property
    def exit(self) -> str:
        """The run's status, or the name of the exception that took the run with it."""
        return self.result.status if self.result else self.raised.partition(":")[0]

    @property
    def facts(self) -> str:
        """How the run ended, with its numbers."""
        if self.result is None:
            return f"The report: there is none. {self.raised} came out of the loop."
        raised = f" {self.raised} came out of the loop." if self.raised else ""
        answer = "there is no answer"
        if self.result.answer is not None:
            answer = f"the answer is “{cut(self.result.answer, 60)}”"
        return (f"The report: {plural(self.result.steps, 'step')} of {self.max_steps}, {self.result.tokens:,} of "
                f"{self.token_budget:,} tokens; {answer}.{raised}")

    @property
    def reached(self) -> str:
        """Which calls reached the function of a tool."""
        times = {call: self.called.count(call) for call in self.called}
        calls = [call if count == 1 else f"{call}, {count} times" for call, count in times.items()]
        return f"Calls that reached a tool's function: {'; '.join(calls) or 'none'}."


def record(loop: ModuleType, test: Callable[[Any], None]) -> Scene | None:
    """Return the last run that a test makes on a loop, or None if it makes none; the loop is not to be used again."""
    scenes: list[Scene] = []
    watch_tools(loop)
    continue_agent = loop.continue_agent  # run_agent goes through it too

    def recorded(result: Any, model: Any, registry: Any, max_steps: int, token_budget: int, *,
                 execute: Any = None, watch: Any = None) -> Any:
        told = list(result.messages) if result.status else []
        scene = Scene(max_steps, token_budget, registry.specs(), registry.called)
        scenes.append(scene)
        try:
            scene.result = continue_agent(result, model, registry, max_steps, token_budget,
                                          execute=execute, watch=watch or told.append)
        except BaseException as error:
            scene.result, scene.raised = vars(error).get("result"), describe(error)
            raise
        finally:
            scene.messages = scene.result.messages if scene.result else told
        return scene.result

    loop.continue_agent = recorded
    with suppress(BaseException):  # the test is meant to fail
        test(loop)
    return scenes[-1] if scenes else None


def watch_tools(loop: ModuleType) -> None:
    """Let the registries of a loop note each call that reaches a tool's function."""

    class Registry(loop.ToolRegistry):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.called: list[str] = []

        def register(self, name: str, description: str, parameters: Json, fn: Callable[..., Any]) -> None:
            @functools.wraps(fn)
            def noted(**args: Any) -> Any:
                with suppress(TypeError):  # a call that Python refuses does not reach the function
                    inspect.signature(fn).bind(**args)
                    self.called.append(call_text(ToolCall("", name, args)))
                return fn(**args)

            super().register(name, description, parameters, noted)

    loop.ToolRegistry = Registry


@functools.cache
def scene_of(fault: Fault) -> Scene:
    """Return the run of a fault's test on the broken loop."""
    scene = record(load(broken_text(fault)), fault.test)
    if scene is None:
        raise ValueError(f"the test of {fault.name} makes no run")
    return scene


@functools.cache
def scene_of_ours(fault: Fault) -> Scene | None:
    """Return the run of a fault's test on our loop, or None if there is none."""
    return record(load(our_text()), fault.test)


# --- Where the fault is --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Section:
    """A section of agentloop.py: its title, the number of its first line, and its lines."""

    title: str
    start: int
    lines: list[str]

    @property
    def numbers(self) -> range:
        """The numbers of its lines."""
        return range(self.start, self.start + len(self.lines))


def sections_of(text: str) -> list[Section]:
    """Cut the loop of a text of agentloop.py into its five sections."""
    lines = split_text(text)[0].split("\n")
    heads = {i: found[1] for i, line in enumerate(lines) if (found := re.match(r"# --- (\d · \w+)", line))}
    ends = [*list(heads)[1:], len(lines) - 1]
    return [Section(title, start + 1, lines[start:end]) for (start, title), end in zip(heads.items(), ends)]


@functools.cache
def lines_of(fault: Fault) -> frozenset[int]:
    """Return the numbers of the broken lines; where lines are missing, those of the two around them."""
    above = our_text().partition(fault.old)[0].count("\n")
    ours, broken = our_text().split("\n")[above:], broken_text(fault).split("\n")[above:]
    ours, broken = ours[: fault.old.count("\n") + 1], broken[: fault.new.count("\n") + 1]
    found: set[int] = set()
    for kind, _, _, start, end in difflib.SequenceMatcher(None, ours, broken, autojunk=False).get_opcodes():
        if kind == "delete":
            found |= {start, start + 1}
        elif kind != "equal":
            found |= set(range(start + 1, end + 1))
    return frozenset(above + number for number in found)


def is_missing(fault: Fault) -> bool:
    """Say whether the fault is that lines are missing."""
    return all(line in fault.old.split("\n") for line in fault.new.split("\n"))


@functools.cache
def statement_lines(fault: Fault) -> frozenset[int]:
    """Return the broken lines with the rest of their statements; an `if` and a single line under it are one."""
    lines, found = lines_of(fault), set(lines_of(fault))
    loop, _ = split_text(broken_text(fault))
    for node in ast.walk(ast.parse("" if is_missing(fault) else loop)):
        if isinstance(node, (ast.stmt, ast.excepthandler)):
            body, last = getattr(node, "body", []), node.end_lineno or node.lineno
            if body and not (isinstance(node, ast.If) and last == body[0].lineno and not node.orelse):
                last = body[0].lineno - 1
            span = range(node.lineno, last + 1)
            found |= set(span) if lines & set(span) else set()
    return frozenset(found)


def place_of(fault: Fault) -> tuple[str, str]:
    """Return the name of the function that holds the fault, and the title of its section."""
    line = min(lines_of(fault))
    section = next(s for s in reversed(sections_of(broken_text(fault))) if s.start <= line)
    above = section.lines[: line - section.start + 1]
    return next(name[1] for text in reversed(above) if (name := re.match(r"\s*def (\w+)", text))), section.title
