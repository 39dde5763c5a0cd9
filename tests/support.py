"""Short ways to say a schema, a tool and a run, shared by the tests of the core."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from agentloop import AgentResult, Execute, Json, ModelReply, ToolCall, ToolRegistry, final, run_agent

PLENTY = 10**9  # a budget that no test reaches


def takes(**types: str) -> Json:
    """Return a schema that requires each of the arguments."""
    return {"type": "object", "properties": {name: {"type": t} for name, t in types.items()}, "required": list(types)}


def tool(fn: Callable[..., Any], schema: Json | None = None, name: str = "t") -> ToolRegistry:
    """Return a registry that holds one tool."""
    registry = ToolRegistry()
    registry.register(name, "A tool.", schema or {}, fn)
    return registry


def run(model: Any, registry: ToolRegistry | None = None, **options: Any) -> AgentResult:
    """Run the task "go", with limits that do not matter unless they are given."""
    return run_agent("go", model, registry or tool(lambda: 1), **{"max_steps": 50, "token_budget": PLENTY} | options)


def raises(error: BaseException) -> Callable[..., Any]:
    """Return a function that raises `error`, whatever it is given."""

    def fn(*args: Any, **kwargs: Any) -> Any:
        raise error

    return fn


def at_call(number: int, error: BaseException, execute: Execute) -> tuple[Execute, list[ToolCall]]:
    """Wrap `execute` so that its call of that number, from 1, raises `error`; return it and the calls it was given."""
    asked: list[ToolCall] = []

    def wrapper(call: ToolCall) -> str:
        asked.append(call)
        if len(asked) == number:
            raise error
        return execute(call)

    return wrapper, asked


def observations(result: AgentResult) -> list[str]:
    """Return the contents of the tool messages, in order."""
    return [message["content"] for message in result.messages if message["role"] == "tool"]


def replies(result: AgentResult) -> list[Json]:
    """Return the assistant messages, in order."""
    return [message for message in result.messages if message["role"] == "assistant"]


def assert_closed(messages: list[Json]) -> None:
    """Assert what a provider demands: system, user, then each reply followed by one result per call, in order."""
    assert [message["role"] for message in messages[:2]] == ["system", "user"]
    ids: list[str] = []
    due: list[str] = []
    for message in messages[2:]:
        if message["role"] == "assistant":
            assert not due, f"no result for {due}"
            due = [call["id"] for call in message["tool_calls"]]
            ids += due
        else:
            assert message["role"] == "tool" and message["tool_call_id"] == due.pop(0)
    assert not due, f"no result for {due}"
    assert len(set(ids)) == len(ids) and all(isinstance(i, str) and i for i in ids)


LETTERS = ["plain words ", '"quotes" \\ back', "\n\t", "日本", "é", "🙂", "\ud83d", "\x00", "\u2028"]


def random_text(chance: Random) -> str:
    """Return text that JSON must escape, or that takes more than a byte a letter."""
    return "".join(chance.choices(LETTERS, k=chance.randint(0, 12)))


def random_script(chance: Random) -> list[ModelReply]:
    """Return a script that ends, with odd text, ids, names and arguments on the way."""

    def one_call() -> ToolCall:
        args: dict[Any, Any] = {"x": random_text(chance), "y": [1, {"z": None}], 1: 2}
        some = {key: args[key] for key in chance.sample(list(args), chance.choice([0, 1, 1, 1, 2]))}
        call_id, error = chance.choice(["", "a", "é", None]), chance.choice([None] * 5 + ["cut"])
        return ToolCall(call_id, chance.choice("ttttu"), some, error)

    def one_reply() -> ModelReply:
        return ModelReply(random_text(chance), [one_call() for _ in range(chance.randint(1, 3))])

    return [*(one_reply() for _ in range(chance.randint(0, 5))), final(random_text(chance))]
