"""The scripted models that the benches run, and the code that writes a script down."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterable, Iterator
from itertools import count, cycle, islice
from typing import Any

from agentloop import (
    WEATHER_TASK, ModelReply, ScriptedModel, ToolCall, asks, call, final, weather_script, weather_world,
)

LINE = 100  # a reply that is longer is written one call a line


def two_tools() -> Iterator[ModelReply]:
    """A model that asks for two tools in one reply."""
    yield asks(call("c1", "get_weather", city="Pune"), call("c2", "get_weather", city="Delhi"))
    yield final("It is 30 C in Pune and 35 C in Delhi.")


def never_finishes() -> Iterator[ModelReply]:
    """A model that goes from city to city and never answers."""
    for n, city in zip(count(1), cycle(["Pune", "Delhi"])):
        yield asks(call(f"c{n}", "get_weather", city=city))


def repeats_itself() -> Iterator[ModelReply]:
    """A model that makes the same call again and again."""
    for n in count(1):
        yield asks(call(f"c{n}", "get_weather", city="Pune"))


def text_first() -> Iterator[ModelReply]:
    """A model that writes a text beside each call; it is no answer, for the reply asks for a tool."""
    yield asks(call("c1", "get_weather", city="Pune"), text="It is hot in Pune. I will look up how hot.")
    yield asks(call("c2", "c_to_f", celsius=30), text="It is 30 C. Now I convert it.")
    yield final("It is 86.0 F in Pune.")


def makes_a_tool_raise() -> Iterator[ModelReply]:
    """A model whose first call makes the tool raise, and which recovers."""
    yield asks(call("c1", "get_weather", city="Atlantis"))
    yield asks(call("c2", "get_weather", city="Pune"))
    yield asks(call("c3", "c_to_f", celsius=30))
    yield final("Atlantis is not known. It is 86.0 F in Pune.")


SCRIPTS: dict[str, Callable[[], Iterable[ModelReply]]] = {
    "finishes": weather_script,
    "asks for two tools": two_tools,
    "never finishes": never_finishes,
    "repeats itself": repeats_itself,
    "writes text first": text_first,
    "makes a tool raise": makes_a_tool_raise,
}


def scripted(name: str, max_steps: int) -> ScriptedModel:
    """Return the named model, with as many replies as a run of `max_steps` can use."""
    return ScriptedModel(islice(SCRIPTS[name](), max_steps))


# --- A script as code ----------------------------------------------------------------------------------------


def write_script(replies: Iterable[ModelReply], task: str = WEATHER_TASK, max_steps: int = 8, token_budget: int = 4000,
                 status: str = "", world: Any = weather_world) -> str:
    """Write the code that runs these replies as a ScriptedModel, in the world they were made for.

    `status` adds a line that checks how the run ends. A registry, or a world from the notebook, is named and not
    written: the code runs where that name is known.
    """
    lines = [line for reply in replies for line in reply_code(reply)]
    writers = ("asks", "call", "final", "ModelReply", "ToolCall")
    names = {"ScriptedModel"} | {name for name in writers if f"{name}(" in "".join(lines)}
    setting = world_code(world, names)
    limits = f"max_steps={max_steps}, token_budget={token_budget}"
    code = ["import agentloop", f"from agentloop import {', '.join(sorted(names))}", *setting, ""]
    code += ["model = ScriptedModel([", *(f"    {line}" for line in lines), "])"]
    code += [f"result = agentloop.run_agent({task!r}, model, registry, {limits})"]
    code += [f"assert result.status == {status!r}"] * bool(status)
    return "\n".join(code) + "\n"


def world_code(world: Any, names: set[str]) -> list[str]:
    """Return the lines that make the registry anew; adds to `names` what they take from agentloop."""
    if world is weather_world:
        names.add("weather_world")
        return ["", "registry, ran = weather_world()"]
    name, module = getattr(world, "__qualname__", ""), getattr(world, "__module__", "")
    if not name.isidentifier():
        return ["", "# registry: the one of this notebook"]
    imported = [f"from {module} import {name}"] * (module != "__main__")
    return [*imported, "", f"made = {name}()", "registry = made[0] if isinstance(made, tuple) else made"]


def reply_code(reply: ModelReply) -> list[str]:
    """Write a reply as its author would, as the lines of one item of a list."""
    calls = [call_code(c) for c in reply.tool_calls]
    if reply.stop_reason:
        inner = [repr(reply.content), f"[{', '.join(calls)}]", f"stop_reason={reply.stop_reason!r}"]
        return [f"ModelReply({', '.join(inner)}),"]
    if not calls:
        return [f"final({reply.content!r}),"]
    inner = calls + [f"text={reply.content!r}"] * bool(reply.content)
    line = f"asks({', '.join(inner)}),"
    return [line] if len(line) <= LINE else ["asks(", *(f"    {part}," for part in inner), "),"]


def call_code(made: ToolCall) -> str:
    """Write a call as code: call(…) where its arguments can be written by name, else ToolCall(…)."""
    if not isinstance(made.args, dict) or not all(map(can_be_a_keyword, made.args)):
        return f"ToolCall({made.id!r}, {made.name!r}, {made.args!r})"
    return f"call({', '.join([repr(made.id), repr(made.name), *(f'{k}={v!r}' for k, v in made.args.items())])})"


def can_be_a_keyword(name: str) -> bool:
    """Say whether an argument can be written as name=value; Python folds some letters that are not ASCII."""
    return name.isascii() and name.isidentifier() and not keyword.iskeyword(name)
