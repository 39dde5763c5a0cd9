"""Runs of run_agent with a model of the suite's own, which replays a script and records what it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, NamedTuple

from .candidate import AskedTooOften, Candidate, Trial, park, show
from .world import ANSWER, TASK, WEATHER, Json, build_registry


class Call(NamedTuple):
    """A tool call as a script writes it."""

    id: str
    name: str
    args: Json

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{key}={value!r}' for key, value in self.args.items())})"


class Reply(NamedTuple):
    """A reply as a script writes it."""

    text: str
    calls: tuple[Call, ...]

    def __str__(self) -> str:
        text = [f'"{self.text}"'] if self.text or not self.calls else []
        return " and ".join(text + [str(call) for call in self.calls])


def call(call_id: str, name: str, **args: Any) -> Call:
    return Call(call_id, name, args)


def asks(*calls: Call, text: str = "") -> Reply:
    return Reply(text, calls)


def final(text: str) -> Reply:
    return Reply(text, ())


LOOK_UP = "I will look up Pune first."
HAPPY_PATH = (
    asks(call("c1", "get_weather", city="Pune"), text=LOOK_UP),
    asks(call("c2", "c_to_f", celsius=30)),
    final(ANSWER),
)
NEVER_DONE = tuple(asks(call(f"c{n}", "get_weather", city="Pune")) for n in range(1, 16))


@dataclass
class Play:
    """One run: what came of it, what the model was shown at each call, and the tools that really ran."""

    trial: Trial
    shown: list[list[Json]]
    specs_shown: list[list[Json]]
    ran: list[str]

    @property
    def messages(self) -> list[Json]:
        """The messages of the result."""
        messages: list[Json] = self.trial.field("messages")
        readable = isinstance(messages, list) and all(isinstance(m, dict) and "role" in m for m in messages)
        self.trial.expect(readable, "messages that are one list of plain dicts, each with a role", show(messages))
        return messages

    def ends(self, **fields: Any) -> None:
        """Expect a result with these fields."""
        self.trial.has(**fields)

    def shows(self, *lengths: int) -> None:
        """Expect one model call for each of these numbers, and that it was shown as many messages."""
        came_back = [len(messages) for messages in self.shown]
        self.trial.expect(came_back == list(lengths), model_calls(lengths), model_calls(came_back))

    def runs(self, *names: str) -> None:
        """Expect that exactly these tools ran, in this order."""
        expected = f"the functions that run are: {', '.join(names)}" if names else "no function is run"
        self.trial.expect(self.ran == list(names), expected, f"{', '.join(self.ran) or 'none'} ran")

    def observes(self, *contents: str) -> None:
        """Expect exactly these contents of the tool messages."""
        came_back = [message.get("content") for message in self.messages if message["role"] == "tool"]
        self.trial.expect(came_back == list(contents), tool_messages(contents), tool_messages(came_back))

    def holds(self, *expected: Json) -> None:
        """Expect messages with at least these keys and values."""
        messages = self.messages
        for number, (message, parts) in enumerate(zip(messages, expected), 1):
            calls = message.get("tool_calls") if "tool_calls" in parts else []
            for place, made in enumerate(calls if isinstance(calls, list) else []):
                wanted = f"message {number}, tool_calls[{place}]: a plain dict with id, name, args"
                self.trial.expect(isinstance(made, dict), wanted, f"tool_calls[{place}] is a {type(made).__name__}")
            self.trial.expect(fits(message, parts), f"message {number} holds {parts}", show(message))
        missing = expected[len(messages) :]
        which = f", of which message {len(messages) + 1} holds {missing[0]}" if missing else ""
        came_back = f"{len(messages)} messages"
        self.trial.expect(len(messages) == len(expected), f"{len(expected)} messages{which}", came_back)


def play(mine: Candidate, *script: Reply, task: str = TASK, tools: Sequence[str] = WEATHER, **options: Any) -> Play:
    """Run run_agent of the file under test against a script.

    A run that asks on after the last reply is ended by an exception; one that catches even this waits for its end.
    """
    shown: list[list[Json]] = []
    specs_shown: list[list[Json]] = []
    ran: list[str] = []

    refused: list[AskedTooOften] = []

    def model(messages: list[Json], specs: list[Json]) -> Any:
        if refused:
            park()
        if len(shown) == len(script):
            replies = "reply" if len(script) == 1 else "replies"
            refused.append(AskedTooOften(f"the model was asked again after {len(script)} {replies}"))
            raise refused[0]
        shown.append(deepcopy(messages))
        specs_shown.append(deepcopy(specs))
        reply = script[len(shown) - 1]
        return mine.ModelReply(content=reply.text, tool_calls=[mine.ToolCall(*deepcopy(c)) for c in reply.calls])

    given = "".join(f", {name}={value!r}" for name, value in options.items())
    replies = "; ".join(f"{number}. {reply}" for number, reply in enumerate(script, 1))
    if script == NEVER_DONE:
        replies = f"{script[0]} at every step and never finishes"
    about = show(task) if len(task) < 100 else f"a task of {len(task)} characters"
    tried = f"run_agent({about}, model, registry{given}), where the model replies {replies}"
    trial = mine.attempt(tried, lambda: mine.run_agent(task, model, build_registry(mine, tools, ran), **options))
    return Play(trial, shown, specs_shown, ran)


def fits(message: Json, parts: Json) -> bool:
    """Say whether a message, or a call in it, holds these keys and values; it may hold more."""
    for key, part in parts.items():
        value = message.get(key)
        if key != "tool_calls":
            same = key in message and value == part
        else:
            same = isinstance(value, list) and len(value) == len(part) and all(map(fits, value, part))
        if not same:
            return False
    return True


def model_calls(lengths: Sequence[int]) -> str:
    """Tell model calls by what they were shown: 3 model calls, shown 2, 4 and 6 messages."""
    if not lengths:
        return "no model call"
    *some, last = map(str, lengths)
    calls = "1 model call" if not some else f"{len(lengths)} model calls"
    return f"{calls}, shown {', '.join(some)}{' and ' if some else ''}{last} messages"


def tool_messages(contents: Sequence[Any]) -> str:
    """Tell tool messages by their contents."""
    return f"tool messages with the contents {', '.join(map(show, contents))}" if contents else "no tool messages"
