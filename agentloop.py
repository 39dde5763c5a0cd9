"""agentloop: everything that happens between one model call and the next, in one file.

An agent is a language model in a loop with tools. The model asks for a tool call, our code runs it and
appends the result, and the model is asked again, until it replies without a call or a limit stops it.

    Model   = Callable[[list[Json], list[Json]], ModelReply]    # it asks the model
    Execute = Callable[[ToolCall], str]                         # it runs one tool call

The loop touches the world through these two functions only, and whatever else a harness needs wraps one of
them. The message list is the trace. Standard library only; `python agentloop.py` runs the demo.
"""

from __future__ import annotations


# --- 1 · Messages · notebooks/01_messages.ipynb ---------------------------------------------------------------

import json
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import chain, count, repeat, takewhile
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class ToolCall:
    """A request by the model to run one tool.

    `args` is the decoded JSON object. `error` is set by an adapter that could not decode the call: then the loop
    runs nothing, and the observation is "ERROR: " and this text.
    """

    id: str
    name: str
    args: Json
    error: str | None = None


@dataclass(frozen=True)
class Usage:
    """The tokens of one model call as its provider counted them."""

    prompt: int
    reply: int


@dataclass(frozen=True)
class ModelReply:
    """What the model returns: text, tool calls, or both; without a call it is the final answer.

    `usage` replaces the loop's own estimate. `stop_reason` is empty for a normal reply; "truncated", "refused"
    or "empty_reply" say that this is none, and the run ends with that status, its calls not run.
    """

    content: str = ""
    tool_calls: list[ToolCall] = field(default_factory=list)
    usage: Usage | None = None
    stop_reason: str = ""


Model = Callable[[list[Json], list[Json]], ModelReply]


def call(call_id: str, name: str, /, **args: Any) -> ToolCall:
    """Write a tool call as a script would: call("c1", "get_weather", city="Pune")."""
    return ToolCall(call_id, name, args)


def asks(*calls: ToolCall, text: str = "") -> ModelReply:
    """Write a reply that asks for one or more tool calls, with optional text beside them."""
    return ModelReply(text, list(calls))


def final(text: str) -> ModelReply:
    """Write a reply that asks for nothing, which makes it the final answer."""
    return ModelReply(text)


def after(expected: str, reply: ModelReply) -> Model:
    """Write a scripted step that replies only if a message since the last reply contains `expected`.

    Raises AssertionError otherwise: a script must not report a success that did not happen.
    """

    def step(messages: list[Json], specs: list[Json]) -> ModelReply:
        news = [m["content"] for m in takewhile(lambda m: m["role"] != "assistant", reversed(messages))]
        if not any(expected in text for text in news):
            raise AssertionError(f"the script expected {expected!r} in what came since the last reply: {news}")
        return reply

    return step


class ScriptedModel:
    """A model that replays fixed replies, one for each call.

    A step of the script is a ModelReply, or a function of (messages, specs) that returns one, like those `after`
    writes. Raises AssertionError if it is called more often than the script allows.
    """

    def __init__(self, replies: Iterable[ModelReply | Model]) -> None:
        self._steps = list(replies)
        self._calls: list[tuple[list[Json], int]] = []  # for each call: a growing copy, and how much of it was shown
        self._shown: list[Json] = []

    def __call__(self, messages: list[Json], specs: list[Json]) -> ModelReply:
        same_run = self._calls and messages[: len(self._shown)] == self._shown
        copies, known = self._calls[-1] if same_run else ([], 0)
        copies += deepcopy(messages[known:])
        self._shown = list(messages)
        self._calls.append((copies, len(messages)))
        if len(self._calls) > len(self._steps):
            raise AssertionError(f"script ran out: call {len(self._calls)} of {len(self._steps)}")
        step = self._steps[len(self._calls) - 1]
        return step(messages, specs) if callable(step) else step

    @property
    def seen(self) -> list[list[Json]]:
        """The message list at every call; each message was copied once, when it was first shown."""
        return [copies[:length] for copies, length in self._calls]

    def assert_complete(self) -> None:
        """Raise AssertionError if replies of the script were not used."""
        if len(self._calls) < len(self._steps):
            raise AssertionError(f"script not finished: {len(self._calls)} of {len(self._steps)} replies were used")


# --- 2 · Validator · notebooks/02_validator.ipynb -------------------------------------------------------------

import math

JSON_TYPES = {"string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,)}


def has_type(value: Any, types: tuple[type, ...]) -> bool:
    """Say whether a decoded JSON value has one of the types; a bool is no number, and NaN is not JSON.

    Source: RFC 8259, sections 3 and 6.
    """
    if isinstance(value, bool):  # first, because True is an int to Python
        return bool in types
    return isinstance(value, types) and not (isinstance(value, float) and not math.isfinite(value))


class SchemaError(ValueError, AssertionError):
    """A tool that cannot be registered, or a schema that cannot be checked.

    A bad schema is a bad value; the second base lets tests written for an assert pass.
    """


def types_of(name: str, rule: Any) -> tuple[type, ...]:
    """Return the Python types that fit an argument's rule; raise SchemaError if its type cannot be checked."""
    json_type = rule.get("type") if isinstance(rule, dict) else None
    if not isinstance(json_type, str) or json_type not in JSON_TYPES:
        raise SchemaError(f"argument {name!r}: unsupported type {json_type!r}; the types are {', '.join(JSON_TYPES)}")
    return JSON_TYPES[json_type]


def validate_args(args: Any, schema: Json) -> str | None:
    """Return None if `args` fits `schema`, else one sentence that says what is wrong first.

    Raises SchemaError for a type that is not in JSON_TYPES. Stricter than JSON Schema in two ways: an argument
    that is not in the schema is refused, and 3.0 is not an integer.
    """
    if not isinstance(args, dict) or not all(isinstance(name, str) for name in args):
        return "arguments must be a JSON object"
    for name in schema.get("required", []):
        if name not in args:
            return f"missing required argument {name!r}"
    properties = schema.get("properties", {})
    for name, value in args.items():
        if name not in properties:
            return f"unexpected argument {name!r}"
        if not has_type(value, types_of(name, properties[name])):
            return f"argument {name!r} must be of type {properties[name]['type']}"
    return None


def check_schema(schema: Any) -> None:
    """Raise SchemaError unless validate_args enforces every word of `schema` that is more than a description.

    The model reads a schema as a promise: a rule that is shown but not checked is worse than none.
    """
    schema = schema if isinstance(schema, dict) else {"type": None}
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if schema.get("type", "object") != "object" or not isinstance(properties, dict) or not isinstance(required, list):
        raise SchemaError('parameters must be like {"type": "object", "properties": {...}, "required": [...]}')
    for name, rule in properties.items():
        types_of(name, rule)
        check_keywords(rule, set())
    check_keywords(schema, {"properties", "required", "additionalProperties"})
    if unknown := [name for name in required if name not in list(properties)]:
        raise SchemaError(f"required names {unknown[0]!r}, which is not in properties")
    if schema.get("additionalProperties", False) is not False:
        raise SchemaError("additionalProperties can only be false: unknown arguments are refused")


def check_keywords(rule: Json, enforced: set[str]) -> None:
    """Raise SchemaError for a keyword that is neither enforced nor only a description."""
    for keyword in rule:
        if keyword not in enforced | {"type", "title", "description", "default"}:
            raise SchemaError(f"unsupported keyword {keyword!r}: it would be shown to the model, but not checked")


# --- 3 · Registry · notebooks/03_registry.ipynb ---------------------------------------------------------------

import inspect
import re

Execute = Callable[[ToolCall], str]


def written(value: Any, write: Callable[[Any], str] = repr) -> str:
    """Write a value as text, or name its type where that fails."""
    try:
        return write(value)
    except Exception:
        return type(value).__name__


def describe(error: BaseException) -> str:
    """Name an exception's type and, where it has one, its text."""
    name, text = type(error).__name__, written(error, str)
    return name if text in ("", name) else f"{name}: {text}"


def json_copy(value: Any, depth: int = 100) -> Any:
    """Return a copy of a JSON value; raise an exception for what JSON has not, or is nested deeper than `depth`.

    Source: RFC 8259; its section 9 lets an implementation limit the depth.
    """
    if value is None or isinstance(value, str) or isinstance(value, (int, float)) and math.isfinite(value):
        return value
    if isinstance(value, dict) and depth and not [key for key in value if not isinstance(key, str)]:
        return {key: json_copy(item, depth - 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)) and depth:
        return [json_copy(item, depth - 1) for item in value]
    raise TypeError(f"no such {type(value).__name__} in JSON: keys are text, numbers finite, levels at most 100")


encode = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode  # json.dumps would build one at each call
decode = json.JSONDecoder().raw_decode


def to_json(value: Any) -> str:
    """Write JSON text; raise an exception for what JSON has not, even where Python would write it."""
    return encode(json_copy(value))


def check_function(fn: Any, parameters: Json) -> None:
    """Raise TypeError unless `fn` is a plain function that takes the arguments of `parameters` by name."""
    inner = inspect.unwrap(getattr(fn, "func", fn))
    tests = (inspect.iscoroutinefunction, inspect.isasyncgenfunction, inspect.isgeneratorfunction)
    if any(test(f) for test in tests for f in (inner, type(inner).__call__)):
        raise TypeError("this loop does not run async or generator functions; register a plain one")
    for names in (parameters.get("required", []), parameters.get("properties", {})):
        try:
            inspect.signature(fn).bind(**dict.fromkeys(names))
        except TypeError:
            raise TypeError(f"fn cannot be called with the arguments {sorted(names)}") from None
        except ValueError:  # some built-in functions have no signature
            return


class ToolRegistry:
    """The tools a model may use, by name; a name that is not registered cannot run."""

    def __init__(self) -> None:
        self._tools: dict[str, tuple[Json, Callable[..., Any]]] = {}

    def register(self, name: str, description: str, parameters: Json, fn: Callable[..., Any]) -> None:
        """Add a tool, or raise SchemaError if its calls could fail for a fault that is ours and not the model's."""
        if not isinstance(name, str) or not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
            raise SchemaError(f"the tool name {written(name)} must be 1 to 64 of a-z, A-Z, 0-9, _ and -")
        if name in self._tools:
            raise SchemaError(f"the tool name {name!r} is taken")
        try:
            check_schema(parameters)
            check_function(fn, parameters)
            spec = {"name": name, "description": description, "parameters": {"type": "object"} | parameters}
            self._tools[name] = json_copy(spec), fn
        except Exception as error:
            raise SchemaError(f"tool {name!r}: {error}") from None

    def specs(self) -> list[Json]:
        """List name, description and parameters of each tool, as copies: what the model is shown."""
        return [deepcopy(spec) for spec, _ in self._tools.values()]

    def check(self, name: Any, args: Any) -> str | None:
        """Return None if the call could run, else the observation that says why not; nothing is run."""
        if not isinstance(name, str) or name not in self._tools:
            return f"ERROR: unknown tool {written(name)}. Available tools: {sorted(self._tools)}"
        parameters = self._tools[name][0]["parameters"]
        if problem := validate_args(args, parameters):
            return f"ERROR: {problem}. {name} expects {to_json(parameters.get('properties', {}))}"
        return None

    def execute(self, name: Any, args: Any) -> str:
        """Run one call and return the observation: the result as JSON, or a text that starts with "ERROR: ".

        It never raises, except for KeyboardInterrupt and its like, by which a person or a scheduler stops us.
        """
        if problem := self.check(name, args):
            return problem
        try:
            result = self._tools[name][1](**args)
        except (Exception, SystemExit, GeneratorExit) as error:
            return f"ERROR: {name} failed: {describe(error)}"
        try:
            return to_json(result)
        except Exception as error:
            return f"ERROR: {name} ran, but its result is not JSON: {describe(error)}; do not repeat it blindly"

    def __call__(self, call: ToolCall) -> str:
        """Run a call by its name and arguments: a registry is the innermost Execute."""
        return self.execute(call.name, call.args)


WEATHER_TASK = "How hot is Pune in Fahrenheit?"


def weather_world() -> tuple[ToolRegistry, list[str]]:
    """Return the demo's registry, and the log of every call that really ran."""
    celsius_by_city = {"Pune": 30, "Delhi": 35}
    ran: list[str] = []

    def get_weather(city: str) -> Json:
        ran.append(f"get_weather({city})")
        return {"city": city, "celsius": celsius_by_city[city]}

    def c_to_f(celsius: float) -> float:
        ran.append(f"c_to_f({celsius})")
        return celsius * 9 / 5 + 32

    city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    celsius = {"type": "object", "properties": {"celsius": {"type": "number"}}, "required": ["celsius"]}
    about_weather = "Current temperature of a city, in Celsius. Use it when the user asks about weather."
    about_c_to_f = "Convert Celsius to Fahrenheit. Use it when the user wants Fahrenheit."
    registry = ToolRegistry()
    registry.register("get_weather", about_weather, city, get_weather)
    registry.register("c_to_f", about_c_to_f, celsius, c_to_f)
    return registry, ran


def weather_script() -> list[ModelReply]:
    """Return the replies of a model that answers WEATHER_TASK in three steps."""
    look_up = asks(call("c1", "get_weather", city="Pune"), text="I will look up Pune first.")
    return [look_up, asks(call("c2", "c_to_f", celsius=30)), final("It is 86.0 F in Pune.")]


# --- 4 · Loop · notebooks/04_loop.ipynb -----------------------------------------------------------------------


@dataclass(frozen=True)
class AgentResult:
    """How a run ended, and everything it did.

    `status` is "done" only if the model gave a final answer; that says that it stopped, not that the task
    succeeded. `answer` is None unless done. `steps` counts model replies, `tokens` what was spent. `messages` is
    the whole list, for it is the trace. The other statuses of the loop are "step_limit", "token_budget",
    "interrupted", and a reply's stop reason: "truncated", "refused", "empty_reply". Wrappers add their own:
    "repeated_call", "waiting_for_approval", "deadline", "cost_cap", "bad_reply", or any other text.
    """

    status: str
    answer: str | None
    steps: int
    tokens: int
    messages: list[Json]


def count_tokens(obj: Any) -> int:
    """Estimate the tokens of `obj`: about four characters of its JSON each, which is a rule for English."""
    return max(1, len(encode(obj)) // 4)


def open_calls(messages: list[Json]) -> list[ToolCall]:
    """Return, as copies, the calls of the last reply that have no observation yet, in order."""
    answered = set()
    for message in reversed(messages):
        if message["role"] == "assistant":
            calls = [c for c in message["tool_calls"] if c["id"] not in answered]
            return [ToolCall(c["id"], c["name"], json_copy(c["args"]), c.get("error")) for c in calls]
        answered.add(message.get("tool_call_id"))
    return []


def record_call(call: ToolCall, taken_ids: set[str]) -> Json:
    """Return a call as the list keeps it: an id of its own, a name that is text, arguments that are JSON.

    Adds the id to `taken_ids`. What is not JSON becomes text, and `error` says why the call cannot run.
    """
    record: Json = {"id": call.id, "name": call.name, "args": call.args}
    if not isinstance(call.id, str) or not call.id or call.id in taken_ids:
        record["id"] = next(i for n in count(len(taken_ids) + 1) if (i := f"call_{n}") not in taken_ids)
    taken_ids.add(record["id"])
    if not isinstance(call.name, str):
        record |= {"name": written(call.name), "error": "the tool name must be text"}
    try:
        record["args"] = json_copy(call.args)
    except Exception as problem:
        record |= {"args": written(call.args), "error": f"arguments are not JSON: {describe(problem)}"}
    if call.error:
        record["error"] = str(call.error)
    return record


def record_reply(reply: ModelReply, taken_ids: set[str]) -> Json:
    """Return the message that records a reply; the calls of a reply with a stop reason are left out.

    Raises ValueError if the model returned something else than a ModelReply.
    """
    if not hasattr(reply, "tool_calls") or not isinstance(reply.content or "", str) or reply.stop_reason == "done":
        raise ValueError(f"the model must return a ModelReply with text as content, not {written(reply)}")
    calls = [] if reply.stop_reason else reply.tool_calls or []
    records = [record_call(call, taken_ids) for call in calls]
    return {"role": "assistant", "content": reply.content or "", "tool_calls": records}


def refuse_errors(execute: Execute) -> Execute:
    """Wrap `execute` so that a call that could not be decoded is answered with its error, and not run."""
    return lambda call: f"ERROR: {call.error}" if call.error else execute(call)


Watch = Callable[[Json], None]


class Run:
    """One run in progress: its message list, appended to and never edited, and what it has spent.

    Each message is measured, and copied for the model, once: so a step costs the same however long the list is.
    """

    def __init__(self, result: AgentResult, watch: Watch | None) -> None:
        self.steps, self.spent, self.watch = result.steps, result.tokens, watch
        self.ids = {c["id"] for message in result.messages for c in message.get("tool_calls", [])}
        self.chars = 0  # of the list as JSON, which adds ", " or a bracket to each message
        self.messages: list[Json] = []
        self.copies: list[Json] = []
        for message in deepcopy(result.messages):
            self.keep(message)
        self.told = len(self.messages) if result.status else 0

    def keep(self, message: Json) -> int:
        """Append a message, and return its tokens."""
        text = encode(message)
        self.messages.append(message)
        self.copies.append(decode(text)[0])
        self.chars += len(text) + len(", ")
        return max(1, len(text) // 4)

    def tell(self) -> None:
        """Show `watch` copies of the messages that it was not told of yet."""
        if self.watch is not None:
            for message in self.messages[self.told :]:
                self.told += 1
                self.watch(deepcopy(message))

    def take(self, reply: ModelReply, prompt: int) -> None:
        """Keep and count a reply; its usage, where it has one, replaces the estimate."""
        tokens = self.keep(record_reply(reply, self.ids))
        self.steps += 1
        self.spent += reply.usage.prompt + reply.usage.reply if reply.usage else prompt + tokens
        self.tell()

    def answer(self, call: ToolCall, content: str) -> None:
        """Keep the one message that answers `call`; raise ValueError if its content is not text."""
        if not isinstance(content, str):
            raise ValueError(f"execute must return the observation as text, not {written(content)}")
        self.keep({"role": "tool", "tool_call_id": call.id, "name": call.name, "content": content})

    def close(self, first: str, rest: str) -> None:
        """Answer the open calls with two texts, so that a provider accepts the list."""
        for call, text in zip(open_calls(self.messages), chain([first], repeat(rest))):
            self.answer(call, text)
        self.tell()

    def end(self, status: str) -> AgentResult:
        """Return the result; only a run that is done has an answer."""
        answer = self.messages[-1]["content"] if status == "done" else None
        return AgentResult(status, answer, self.steps, self.spent, self.messages)


# --- 5 · Exits · notebooks/05_exits.ipynb ---------------------------------------------------------------------

from contextlib import suppress

WAITING = "waiting_for_approval"  # the one exit that leaves calls open, because they have not started
INTERRUPTED = "ERROR: interrupted; it may have taken effect"
NOT_RUN = "ERROR: not run: the run ended before this call"


class Stop(Exception):
    """Raised by a wrapper of the model or of execute to end the run with a status of its own.

    `why` becomes the observation of the call that was refused; the status itself where nothing is given.
    """

    def __init__(self, status: str, why: str = "") -> None:
        if status in ("", "done"):
            raise ValueError("a wrapper ends a run with a status of its own; only a final answer makes it done")
        super().__init__(f"{status}: {why}" if why else status)
        self.status, self.why = status, why or status


def run_agent(task: str, model: Model, registry: ToolRegistry, system: str = "Use the tools to answer the user.",
              max_steps: int = 8, token_budget: int = 4000, *,
              execute: Execute | None = None, watch: Watch | None = None) -> AgentResult:
    """Ask the model, run the calls it asks for, and repeat until it asks for none or a limit stops the run.

    `max_steps` limits model calls. `token_budget` is checked before each call, on the estimate; the last reply may
    pass it, so lower it by the largest reply where that must not happen. `execute` runs the calls in place of the
    registry, which wrappers use; `watch` is told each message after it was appended, and cannot change the run.

    Raises ValueError for a limit below 1. An exception of the model or of a wrapper passes through, as does Ctrl-C,
    with the run so far in its attribute `result`; a wrapper's Stop ends the run instead.
    """
    if not isinstance(task, str) or not isinstance(system, str):
        raise ValueError("task and system must be text")
    start = AgentResult("", None, 0, 0, [{"role": "system", "content": system}, {"role": "user", "content": task}])
    return continue_agent(start, model, registry, max_steps, token_budget, execute=execute, watch=watch)


def continue_agent(result: AgentResult, model: Model, registry: ToolRegistry, max_steps: int, token_budget: int, *,
                   execute: Execute | None = None, watch: Watch | None = None) -> AgentResult:
    """Go on with a run that stopped; its steps and tokens go on counting, and `result` stays as it is.

    Calls that wait for approval are executed. Any other open call was interrupted and is answered so: nothing runs
    twice by itself. Raises ValueError for a limit below 1 and for a run that is done.
    """
    if max_steps < 1 or token_budget < 1:
        raise ValueError("max_steps and token_budget must be at least 1")
    if result.status == "done":
        raise ValueError("this run is done; begin a new one with run_agent")
    execute = refuse_errors(registry if execute is None else execute)
    run, specs = Run(result, watch), registry.specs()
    specs_tokens = count_tokens(specs)
    try:
        try:
            if result.status != WAITING:
                run.close(INTERRUPTED, INTERRUPTED)
            while True:
                for call in open_calls(run.messages):
                    run.answer(call, execute(call))
                    run.tell()
                if run.steps >= max_steps:
                    return run.end("step_limit")
                prompt = specs_tokens + run.chars // 4
                if run.spent + prompt > token_budget:
                    return run.end("token_budget")
                reply = model(list(run.copies), list(specs))
                run.take(reply, prompt)
                if not run.messages[-1]["tool_calls"]:
                    return run.end(reply.stop_reason or "done")
        except Stop as stop:
            if stop.status != WAITING:
                run.close(f"ERROR: {stop.why}", NOT_RUN)
            return run.end(stop.status)
    except BaseException as error:
        with suppress(BaseException):  # `watch` may raise too; it is the first exception that goes on
            run.close(INTERRUPTED, NOT_RUN)
        vars(error)["result"] = run.end("interrupted")
        raise


# --- The demo -------------------------------------------------------------------------------------------------


def trace_rows(result: AgentResult, specs: list[Json]) -> list[list[str]]:
    """Return one row for each step of a run: step, decision, observation, tokens so far by the loop's estimate."""
    rows: list[list[str]] = []
    spent = 0
    for i, message in enumerate(result.messages):
        if message["role"] == "assistant":
            calls = message["tool_calls"]
            spent += count_tokens(specs) + count_tokens(result.messages[:i]) + count_tokens(message)
            asked = [f"{c['name']}({json.dumps(c['args'], ensure_ascii=False)})" for c in calls]
            rows.append([str(len(rows) + 1), " ".join(asked) or message["content"], "", str(spent)])
        elif message["role"] == "tool":
            rows[-1][2] += message["content"]
    return rows


def main() -> None:
    """Run the weather task into each exit of the loop, and print each run as a trace table."""

    def ctrl_c(messages: list[Json], specs: list[Json]) -> ModelReply:
        raise KeyboardInterrupt

    script = weather_script()
    cut_off = ModelReply("It is 86.0 F in P", stop_reason="truncated")
    runs: list[tuple[str, list[Any], int, int]] = [
        ("the model finishes", script, 8, 4000),
        ("max_steps=2", script, 2, 4000),
        ("token_budget=500", script, 8, 500),
        ("the reply is cut off", [script[0], cut_off], 8, 4000),
        ("Ctrl-C", [script[0], ctrl_c], 8, 4000),
    ]
    layout = "{:<5} {:<31} {:<33} {:>6}"
    print(WEATHER_TASK, "", layout.format("step", "decision", "observation", "tokens"), sep="\n")
    for title, replies, max_steps, token_budget in runs:
        registry, _ = weather_world()
        try:
            model = ScriptedModel(replies)
            result = run_agent(WEATHER_TASK, model, registry, max_steps=max_steps, token_budget=token_budget)
        except KeyboardInterrupt as error:
            result = vars(error)["result"]
        for row in trace_rows(result, registry.specs()):
            print(layout.format(*row))
        used = f"{result.steps} of {max_steps} steps, {result.tokens} of {token_budget} tokens"
        print(f"{title}: exit {result.status}, {used}\n")


if __name__ == "__main__":
    main()
