"""The cases of an exercise, and how an answer is tried on them, in a process of its own.

A case is code that uses the answer, so that a reader can run the same in a cell. What can go wrong with it, an endless
loop apart, ends here as words.
"""

from __future__ import annotations

import __future__

import io
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import agentloop
from agentloop import Json, describe, written
from looplab.sandbox import put_back_builtins
from looplab.show import call_text, shorten

PRINTED = 10_000  # characters that an answer may print in one case
SHOWN = 300
ANYTHING = BaseException  # a name of our own, for an answer may redefine the builtin


@dataclass(frozen=True)
class Raises:
    """Expect an exception of a kind, in place of a value."""

    kind: type[BaseException]


@dataclass(frozen=True)
class Case:
    """Code that uses the answer, what is expected of it in words, and the test of what comes back.

    The test is the value itself, Raises, or a function that says whether the value holds; a text in place of False
    tells what came back. `given` is shown in place of code that would tell a reader too little.
    """

    code: str
    expected: str
    test: Any
    given: str = ""


@dataclass(frozen=True)
class Exercise:
    """What a reader is asked for, under which names the cases use it, and three hints, each stronger than the last.

    `world` makes the other names that the cases use, anew for each case. `shipped` is the source of the function with
    a fault that the notebook gives, where the fault is to be found.
    """

    id: str
    wants: dict[str, type]
    cases: Sequence[Case]
    hints: tuple[str, str, str]
    world: Callable[[], Json] = dict
    shipped: str = ""


@dataclass
class Outcome:
    """What came of one piece of an answer: a value, or the exception that it ended in, and what it printed."""

    value: Any = None
    error: BaseException | None = None
    printed: str = ""
    redefined: list[str] = field(default_factory=list)


class PrintedTooMuch(BaseException):
    """Ends code that prints on and on."""


class AskedTooOften(BaseException):
    """Ends a loop that asks its model on and on; an `except Exception` does not hold it up."""


class Output(io.StringIO):
    """Keeps what is printed, up to a limit."""

    def write(self, text: str) -> int:
        if self.tell() + len(text) > PRINTED:
            raise PrintedTooMuch
        return super().write(text)

    def close(self) -> None:
        """Stay open, for what was printed is read afterwards."""


def attempt(act: Callable[..., Any], *arguments: Any) -> Outcome:
    """Run a piece of an answer, with no input and its output kept, and with the builtins put back after it."""
    outcome, kept, output = Outcome(), (sys.stdin, sys.stdout, sys.stderr), Output()
    sys.stdin, sys.stdout, sys.stderr = io.StringIO(), output, output
    try:
        outcome.value = act(*arguments)
    except MemoryError as error:
        outcome.error = error.with_traceback(None)  # which would keep alive what fills the memory
    except ANYTHING as error:
        outcome.error = error
    outcome.redefined = put_back_builtins()
    sys.stdin, sys.stdout, sys.stderr = kept
    outcome.printed = output.getvalue()
    return outcome


# --- Trying --------------------------------------------------------------------------------------------------


def try_answer(exercise: Exercise, parts: list[str], code: list[Json], left: list[str]) -> Iterator[Json]:
    """Try an answer on each case; yield the case before, and its outcome after.

    `parts` are expressions for what the exercise wants, `code` is what they need, and `left` are names of the
    notebook that could not be taken along.
    """
    defined = attempt(define, dict(zip(exercise.wants, parts)), code)
    if defined.error or defined.redefined:
        yield {"given": "the cell as it is", "expected": "code that runs"}
        yield told(False, what_came_back(defined, left), defined)
        return
    for case in exercise.cases:
        yield {"given": case.given or case.code, "expected": case.expected}
        names = vars(agentloop) | exercise.world() | defined.value
        outcome = attempt(eval, compile(case.code, "<case>", "eval"), names)
        judged = attempt(judge_case, case, outcome, left)
        unseen = f"something that cannot be looked at: {what_came_back(judged, left)}"
        holds, came_back = (False, unseen) if judged.error else judged.value
        yield told(holds, came_back, outcome)


def told(holds: bool, came_back: str, outcome: Outcome) -> Json:
    """Return the outcome of a case as it is sent."""
    return {"holds": holds, "came_back": came_back, "printed": outcome.printed[:SHOWN]}


def define(parts: dict[str, str], code: list[Json]) -> Json:
    """Run the code of an answer where the names of agentloop are known, and return its parts."""
    scope = dict(vars(agentloop))
    for piece in code:
        source = "\n" * (piece["line"] - 1) + piece["source"]  # so that lines have the numbers of their cell
        exec(compile(source, "<answer>", "exec", flags=__future__.annotations.compiler_flag), scope)
    return {name: eval(part, scope) for name, part in parts.items()}


def judge_case(case: Case, outcome: Outcome, left: list[str]) -> tuple[bool, str]:
    """Return whether a case holds, and what came back in words."""
    came_back = what_came_back(outcome, left)
    if isinstance(case.test, Raises):
        return isinstance(outcome.error, case.test.kind) and not outcome.redefined, came_back
    if outcome.error or outcome.redefined:
        return False, came_back
    if not callable(case.test):
        got, wanted = type(outcome.value), type(case.test)
        if got is not wanted and got in (bool, int, float) and outcome.value == case.test:
            kinds = f"of type {got.__name__}: it must be of type {wanted.__name__}"
            return False, f"{came_back}, which is the right value, but {kinds}"
        return got is wanted and outcome.value == case.test, came_back
    verdict = case.test(outcome.value)
    return (False, verdict) if isinstance(verdict, str) else (bool(verdict), came_back)


# --- Words ---------------------------------------------------------------------------------------------------


def what_came_back(outcome: Outcome, left: list[str]) -> str:
    """Say what came of a piece of an answer."""
    error = outcome.error
    if outcome.redefined:
        return f"it redefined {', '.join(outcome.redefined)}: what belongs to Python must stay as it is"
    if error is None:
        return cut(written(outcome.value))
    if isinstance(error, PrintedTooMuch):
        return f"it printed more than {PRINTED:,} characters and was stopped"
    if isinstance(error, AskedTooOften):
        return str(error)
    if isinstance(error, MemoryError):
        return "it used up the memory that a check may have"
    line = line_of(error)
    if isinstance(error, SystemExit):
        return f"it called sys.exit{line}"
    if isinstance(error, NameError) and error.name in left:
        return f"it uses {error.name} of the notebook{line}; a check cannot take that along, so make it inside"
    return cut(f"it raised {describe(error)}{line}")


def line_of(error: BaseException) -> str:
    """Return the last line of the answer that an exception came through, in words."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "<answer>"]
    return f" (line {lines[-1]} of its cell)" if lines else ""


def cut(text: str) -> str:
    """Return `text` cut to SHOWN characters."""
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}… and {len(text) - SHOWN:,} more characters"


# --- Runs ----------------------------------------------------------------------------------------------------


def same_messages(expected: list[Json]) -> Callable[[Any], bool | str]:
    """Return a test that compares a run's messages with those expected, and tells the first that differs."""

    def test(value: Any) -> bool | str:
        mine = getattr(value, "messages", value)
        if not isinstance(mine, list):
            return f"no message list, but {cut(written(value))}"
        for i in range(max(len(mine), len(expected))):
            yours, ours = (messages[i] if i < len(messages) else None for messages in (mine, expected))
            if yours != ours:
                lines = [f"message {i + 1} is the first that differs", f"yours     {message_line(yours, ours)}"]
                return "\n".join([*lines, f"expected  {message_line(ours, yours)}"])
        return True

    return test


def message_line(message: Any, other: Any = None) -> str:
    """Write a message on one line: its role, an observation's id, its text, and its calls with their ids.

    Where `other` would read the same although it differs, the message is written as it is.
    """
    if message is None:
        return "no message: the list ends before it"
    line = as_line(message)
    return shorten(written(message) if other is not None and line == as_line(other) else line)


def as_line(message: Any) -> str:
    """Write a message as message_line does, or as Python does where it is not made like one."""
    try:
        who = f"{message['role']} {message['tool_call_id']}" if "tool_call_id" in message else message["role"]
        calls = [f"→ {call_text(call)} {call['id']}" for call in message.get("tool_calls", [])]
        return " ".join([f"{who}:", *[message["content"]] * bool(message["content"]), *calls])
    except Exception:
        return written(message)


class Patient:
    """A model that replays a script, or asks for the weather without end; it gives up on a loop that does not stop."""

    def __init__(self, replies: Sequence[Any] | None = None, limit: int = 40) -> None:
        self._replies, self._limit = replies, limit if replies is None else len(replies)
        self.shown: list[int] = []

    def __call__(self, messages: list[Json], specs: list[Json]) -> Any:
        if len(self.shown) >= self._limit:
            told = "the model had given its final answer" if self._replies else "nothing had stopped it"
            raise AskedTooOften(f"it asked the model for step {self._limit + 1}, although {told}")
        self.shown.append(len(messages))
        step = len(self.shown)
        if self._replies is None:
            return agentloop.asks(agentloop.call(f"c{step}", "get_weather", city=("Delhi", "Pune")[step % 2]))
        reply = self._replies[step - 1]
        return reply(messages, specs) if callable(reply) else reply
