"""What the harness and each of its wrappers cost per step, against bare loops: `python tests/benchmark.py`.

Every loop gets the same scripted replies, built before the clock starts, and runs the same tool. Rounds are
interleaved, CPU time is measured, and medians are compared, so that the ratios hold on a busy machine too.
"""

from __future__ import annotations

import gc
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from agentloop import (
    Json,
    Model,
    ModelReply,
    ToolRegistry,
    Trace,
    asks,
    call,
    cost_cap,
    deadline,
    final,
    fit_messages,
    journal,
    replay,
    require_approval,
    run_agent,
    stop_on_repeat,
    trim_result,
    with_hooks,
    with_retries,
    with_timeout,
)

Loop = Callable[[list[ModelReply]], int]
PLENTY = 10**12
TASK, SYSTEM = "How hot is Pune in Fahrenheit?", "Use the tools to answer the user."
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TYPES = {"string": str, "integer": int, "number": (int, float), "boolean": bool}


def get_weather(city: str) -> Json:
    return {"city": city, "celsius": 30}


REGISTRY = ToolRegistry()
REGISTRY.register("get_weather", "Current temperature of a city, in Celsius.", CITY, get_weather)


def replies(steps: int) -> list[ModelReply]:
    """Return a script of that many replies; the last one is the answer."""
    asked = [asks(call(f"c{i}", "get_weather", city="Pune"), text="I will look up Pune.") for i in range(steps - 1)]
    return [*asked, final("It is 86.0 F in Pune.")]


def scripted(script: list[ModelReply]) -> Model:
    """Return a model that costs next to nothing."""
    steps = iter(script)
    return lambda messages, specs: next(steps)


# --- The loops ------------------------------------------------------------------------------------------------


def harness(script: list[ModelReply]) -> int:
    """Our loop, with nothing around it."""
    return run_agent(TASK, scripted(script), REGISTRY, SYSTEM, len(script), PLENTY).steps


def careful_loop(script: list[ModelReply]) -> int:
    """A bare loop that counts, validates its arguments, and copies each message once for the model."""
    model, tools = scripted(script), {"get_weather": (CITY, get_weather)}
    specs = [{"name": "get_weather", "description": "Current temperature of a city, in Celsius.", "parameters": CITY}]
    specs_tokens = len(json.dumps(specs, ensure_ascii=False)) // 4
    messages: list[Json] = []
    copies: list[Json] = []
    ids: set[str] = set()
    chars = spent = steps = 0

    def append(message: Json) -> int:
        nonlocal chars
        text = json.dumps(message, ensure_ascii=False)
        messages.append(message)
        copies.append(json.loads(text))
        chars += len(text) + 2
        return len(text) // 4

    append({"role": "system", "content": SYSTEM})
    append({"role": "user", "content": TASK})
    while steps < len(script):
        prompt = specs_tokens + chars // 4
        if spent + prompt > PLENTY:
            break
        reply = model(list(copies), list(specs))
        calls = [{"id": c.id, "name": c.name, "args": dict(c.args)} for c in reply.tool_calls]
        steps += 1
        spent += prompt + append({"role": "assistant", "content": reply.content, "tool_calls": calls})
        if not calls:
            break
        for one in calls:
            if one["id"] in ids:
                raise ValueError("an id came twice")
            ids.add(one["id"])
            observation = careful_call(tools, one["name"], one["args"])
            append({"role": "tool", "tool_call_id": one["id"], "name": one["name"], "content": observation})
    return steps


def careful_call(tools: dict[str, Any], name: str, args: Json) -> str:
    """Validate and run one call, as a careful person would write it in ten minutes."""
    if name not in tools:
        return f"ERROR: unknown tool {name!r}"
    schema, fn = tools[name]
    for required in schema["required"]:
        if required not in args:
            return f"ERROR: missing required argument {required!r}"
    for argument, value in args.items():
        json_type = schema["properties"].get(argument, {}).get("type")
        if json_type is None:
            return f"ERROR: unexpected argument {argument!r}"
        if not isinstance(value, TYPES[json_type]) or isinstance(value, bool) != (json_type == "boolean"):
            return f"ERROR: argument {argument!r} must be of type {json_type}"
        if isinstance(value, float) and not math.isfinite(value):
            return f"ERROR: argument {argument!r} must be of type {json_type}"
    try:
        return json.dumps(fn(**args), ensure_ascii=False, allow_nan=False)
    except Exception as error:
        return f"ERROR: {name} failed: {type(error).__name__}: {error}"


def careless_loop(script: list[ModelReply]) -> int:
    """A bare loop that counts each message once, and neither validates nor copies."""
    model, tools = scripted(script), {"get_weather": get_weather}
    specs = [{"name": "get_weather", "description": "Current temperature of a city, in Celsius.", "parameters": CITY}]
    specs_tokens = len(json.dumps(specs, ensure_ascii=False)) // 4
    messages: list[Json] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": TASK}]
    chars, spent, steps = len(json.dumps(messages, ensure_ascii=False)), 0, 0
    while steps < len(script):
        prompt = specs_tokens + chars // 4
        if spent + prompt > PLENTY:
            break
        reply = model(messages, specs)
        calls = [{"id": c.id, "name": c.name, "args": c.args} for c in reply.tool_calls]
        message = {"role": "assistant", "content": reply.content, "tool_calls": calls}
        size = len(json.dumps(message, ensure_ascii=False))
        messages.append(message)
        chars += size + 2
        spent += prompt + size // 4
        steps += 1
        if not calls:
            break
        for one in calls:
            try:
                content = json.dumps(tools[one["name"]](**one["args"]), ensure_ascii=False)
            except Exception as error:
                content = f"ERROR: {one['name']} failed: {type(error).__name__}: {error}"
            result = {"role": "tool", "tool_call_id": one["id"], "name": one["name"], "content": content}
            messages.append(result)
            chars += len(json.dumps(result, ensure_ascii=False)) + 2
    return steps


# --- The wrappers ---------------------------------------------------------------------------------------------


def around(model: Callable[[Model], Model] | None = None, execute: Callable[[ToolRegistry], Any] | None = None,
           fn: Callable[[Any], Any] | None = None) -> Loop:
    """Return our loop with a wrapper around its model, its execute or its tool's function."""

    def loop(script: list[ModelReply]) -> int:
        tools = ToolRegistry()
        about = "Current temperature of a city, in Celsius."
        tools.register("get_weather", about, CITY, fn(get_weather) if fn else get_weather)
        asked = model(scripted(script)) if model else scripted(script)
        inner = execute(tools) if execute else None
        return run_agent(TASK, asked, tools, SYSTEM, len(script), PLENTY, execute=inner).steps

    return loop


def journalled(script: list[ModelReply]) -> int:
    """Our loop, each message of which goes into a file."""
    with tempfile.TemporaryDirectory() as folder:
        watch = journal(Path(folder, "run.jsonl"))
        return run_agent(TASK, scripted(script), REGISTRY, SYSTEM, len(script), PLENTY, watch=watch).steps


def replayed(script: list[ModelReply]) -> int:
    """Our loop on a recording of itself, both runs."""
    recorded = run_agent(TASK, scripted(script), REGISTRY, SYSTEM, len(script), PLENTY).messages
    return run_agent(TASK, replay(recorded), REGISTRY, SYSTEM, len(script), PLENTY).steps


def slim(model: Model) -> Model:
    """Send a model the 1,000 newest tokens only."""
    return lambda messages, specs: model(fit_messages(messages, 1000), specs)


WRAPPED: dict[str, Loop] = {
    "with_timeout on the tool": around(fn=lambda fn: with_timeout(fn, 60)),
    "with_retries on the tool": around(fn=with_retries),
    "trim_result": around(execute=lambda tools: trim_result(tools, 2000)),
    "fit_messages": around(model=slim),
    "stop_on_repeat": around(execute=lambda tools: stop_on_repeat(tools, PLENTY)),
    "deadline on both": around(model=lambda model: deadline(model, 999), execute=lambda tools: deadline(tools, 999)),
    "cost_cap": around(model=lambda model: cost_cap(model, PLENTY, 3, 15)),
    "with_hooks": around(execute=lambda tools: with_hooks(tools, lambda asked: None, lambda asked, seen: None)),
    "require_approval": around(execute=lambda tools: require_approval(tools, tools.check, ())),
    "journal": journalled,
    "Trace": around(model=lambda model: Trace().model(model), execute=lambda tools: Trace().execute(tools)),
    "replay, and the run that it replays": replayed,
}


def print_wrappers(sizes: tuple[int, ...] = (100, 1000)) -> None:
    """Print what a step costs with each wrapper, as a multiple of what it costs without."""
    print(f"\n{'a step with':<38}" + "".join(f"{f'{steps:,} steps':>14}" for steps in sizes))
    for name, loop in WRAPPED.items():
        ratios = []
        for steps in sizes:
            bare, wrapped = medians([(harness, steps), (loop, steps)], rounds=5)
            ratios.append(wrapped / bare)
        print(f"{name:<38}" + "".join(f"{ratio:>14.2f}" for ratio in ratios))


LOOPS: list[Loop] = [harness, careful_loop, careless_loop]


# --- The clock ------------------------------------------------------------------------------------------------


def seconds(loop: Loop, script: list[ModelReply], repeats: int) -> float:
    """Return the CPU time of one run, as the mean of a few in a row, with the collector off as timeit has it."""
    gc.collect()
    gc.disable()
    start = time.process_time()
    for _ in range(repeats):
        if loop(script) != len(script):
            raise ValueError(f"{loop.__name__} stopped early")
    taken = time.process_time() - start
    gc.enable()
    return taken / repeats


def medians(cases: list[tuple[Loop, int]], rounds: int) -> Iterator[float]:
    """Yield the median time of each case; every round runs them all."""
    scripts = {steps: replies(steps) for _, steps in cases}
    times = [[seconds(loop, scripts[steps], max(1, 1000 // steps)) for loop, steps in cases] for _ in range(rounds)]
    return (statistics.median(column) for column in zip(*times, strict=True))


def import_milliseconds(rounds: int) -> float:
    """Return the CPU time of `import agentloop` in a fresh interpreter, less what the interpreter takes alone."""

    def cpu(statement: str) -> float:
        program = f"{statement}; import time; print(time.process_time())"
        return float(subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stdout)

    pairs = [(cpu("import agentloop"), cpu("pass")) for _ in range(rounds)]
    return 1000 * statistics.median(with_it - alone for with_it, alone in pairs)


def main() -> None:
    print(f"{'steps':>6} {'µs a step':>10} {'careful':>9} {'careless':>9}   harness / careful, harness / careless")
    for steps in (10, 100, 1000):
        ours, careful, careless = medians([(loop, steps) for loop in LOOPS], rounds=31)
        cells = " ".join(f"{1e6 * time_taken / steps:>9.1f}" for time_taken in (ours, careful, careless))
        goal = "" if steps == 10 else "   goal: at most 1.25 and 2"
        print(f"{steps:>6}  {cells}   {ours / careful:.2f}, {ours / careless:.2f}{goal}")
    few, many = medians([(harness, 100), (harness, 4000)], rounds=11)
    print(f"4,000 steps cost {many / few:.1f} times what 100 cost   goal: at most 80")
    print_wrappers()
    print(f"import agentloop takes {import_milliseconds(rounds=15):.1f} ms of CPU   goal: below 25")


if __name__ == "__main__":
    main()
