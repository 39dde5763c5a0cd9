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
from itertools import count, takewhile
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


def require(condition: object, sentence: str, error: type[Exception] = ValueError) -> None:
    """Raise `error` with a sentence unless a condition holds; an assert would be gone under `python -O`."""
    if not condition:
        raise error(sentence)


def after(expected: str, reply: ModelReply) -> Model:
    """Write a scripted step that replies only if a message since the last reply contains `expected`.

    Raises AssertionError otherwise: a script must not report a success that did not happen.
    """

    def step(messages: list[Json], specs: list[Json]) -> ModelReply:
        news = [m["content"] for m in takewhile(lambda m: m["role"] != "assistant", reversed(messages))]
        require(any(expected in text for text in news), f"the script expected {expected!r} in {news}", AssertionError)
        return reply

    return step


class ScriptedModel:
    """A model that replays fixed replies, one for each call.

    A step of the script is a ModelReply, or a function of (messages, specs) that returns one, like those `after`
    writes. Raises AssertionError if it is called more often than the script allows.
    """

    def __init__(self, replies: Iterable[ModelReply | Model]) -> None:
        self._steps, self._shown, self._copies = list(replies), list[Json](), list[Json]()
        self._calls: list[tuple[list[Json], int]] = []  # for each call: a growing copy, and how much of it was shown

    def __call__(self, messages: list[Json], specs: list[Json]) -> ModelReply:
        self._copies = self._copies if messages[: len(self._shown)] == self._shown else []  # [] for another run
        self._copies += deepcopy(messages[len(self._copies) :])
        self._shown = list(messages)
        self._calls.append((self._copies, len(messages)))
        require(self._steps, f"script ran out at call {len(self._calls)}", AssertionError)
        step = self._steps.pop(0)
        return step(messages, specs) if callable(step) else step

    @property
    def seen(self) -> list[list[Json]]:
        """The message list at every call; each message was copied once, when it was first shown."""
        return [copies[:length] for copies, length in self._calls]

    def assert_complete(self) -> None:
        """Raise AssertionError if replies of the script were not used."""
        require(not self._steps, f"script not finished: {len(self._steps)} replies were not used", AssertionError)


# --- 2 · Validator · notebooks/02_validator.ipynb -------------------------------------------------------------

import math

JSON_TYPES = {"string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,)}


def has_type(value: Any, json_type: str) -> bool:
    """Say whether a decoded JSON value has a type; NaN and infinity have none, for they are not JSON.

    It asks for the exact type, because to isinstance a bool is an int. Source: RFC 8259, sections 3 and 6.
    """
    return type(value) in JSON_TYPES[json_type] and not (type(value) is float and not math.isfinite(value))


def validate_args(args: Any, schema: Json) -> str | None:
    """Return None if `args` fits `schema`, else one sentence that says what is wrong first.

    `schema` is one that check_schema accepts. Stricter than JSON Schema in two ways: an argument that is not in the
    schema is refused, and 3.0 is not an integer.
    """
    if not isinstance(args, dict) or not all(isinstance(name, str) for name in args):
        return "arguments must be a JSON object"
    if missing := [name for name in schema.get("required", []) if name not in args]:
        return f"missing required argument {missing[0]!r}"
    properties = schema.get("properties", {})
    for name, value in args.items():
        if name not in properties:
            return f"unexpected argument {name!r}"
        if not has_type(value, properties[name]["type"]):
            return f"argument {name!r} must be of type {properties[name]['type']}"
    return None


class SchemaError(ValueError, AssertionError):
    """A tool that cannot be registered, or a schema that cannot be checked.

    A bad schema is a bad value; the second base lets tests written for an assert pass.
    """


def check_words(where: str, rule: Json, checked: dict[str, list[Any]]) -> None:
    """Raise SchemaError for a word of `rule` whose value is not among those that are checked.

    The model reads a schema as a promise: a rule that is shown but not checked is worse than none.
    """
    for word, value in rule.items():  # compared as text, for 0 == False
        if word not in ("title", "description", "default") and repr(value) not in map(repr, checked.get(word, [])):
            raise SchemaError(f"{where}: unsupported {word} {value!r}; what is checked is {checked}")


def check_schema(schema: Any) -> None:
    """Raise SchemaError unless validate_args enforces every word of `schema` that is more than a description."""
    words: Json = dict(schema) if isinstance(schema, dict) else {"type": None}
    properties, required = words.pop("properties", {}), words.pop("required", [])
    require(type(properties) is dict and type(required) is list, "properties must be dict, required list", SchemaError)
    check_words("parameters", words, {"type": ["object"], "additionalProperties": [False]})
    for name, rule in properties.items():
        words = rule if isinstance(rule, dict) else {}
        check_words(f"argument {name!r}", {"type": None} | words, {"type": list(JSON_TYPES)})
    unknown = [name for name in required if name not in list(properties)]  # a list, for what cannot be hashed
    require(not unknown, f"required names {unknown}, not in properties", SchemaError)


# --- 3 · Registry · notebooks/03_registry.ipynb ---------------------------------------------------------------

import inspect
import re
from contextlib import suppress

Execute = Callable[[ToolCall], str]


def written(value: Any, write: Callable[[Any], str] = repr) -> str:
    """Write a value as text, or name its type where that fails."""
    with suppress(Exception):
        return write(value)
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


encode, decode = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode, json.JSONDecoder().raw_decode


def to_json(value: Any) -> str:
    """Write JSON text; raise an exception for what JSON has not, even where Python would write it."""
    return encode(json_copy(value))


def check_function(fn: Any, parameters: Json) -> None:
    """Raise TypeError or ValueError unless `fn` can be called with `parameters` by name, and does its work then."""
    inner = inspect.unwrap(getattr(fn, "func", fn))
    tests = (inspect.iscoroutinefunction, inspect.isasyncgenfunction, inspect.isgeneratorfunction)
    require(not any(test(f) for test in tests for f in (inner, type(inner).__call__)), "fn must be plain, not async")
    for names in (parameters.get("required", []), parameters.get("properties", {})):
        inspect.signature(fn).bind(**dict.fromkeys(names))


class ToolRegistry:
    """The tools a model may use, by name; a name that is not registered cannot run."""

    def __init__(self) -> None:
        self._tools: dict[str, tuple[Json, Callable[..., Any]]] = {}

    def register(self, name: str, description: str, parameters: Json, fn: Callable[..., Any]) -> None:
        """Add a tool; raise SchemaError if its name, schema or signature is at fault, which no model can mend."""
        try:
            require(has_type(name, "string") and has_type(description, "string"), "name and description must be text")
            require(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name), "a name must be 1 to 64 of a-z, A-Z, 0-9, _, -")
            require(name not in self._tools, "the name must not be taken")
            check_schema(parameters)
            check_function(fn, parameters)
            spec = {"name": name, "description": description, "parameters": {"type": "object"} | parameters}
            self._tools[name] = json_copy(spec), fn
        except Exception as error:
            raise SchemaError(f"tool {written(name)}: {error}") from None

    def specs(self) -> list[Json]:
        """List name, description and parameters of each tool, as copies: what the model is shown."""
        return [deepcopy(spec) for spec, _ in self._tools.values()]

    def check(self, name: Any, args: Any) -> str | None:
        """Return None if the call could run, else the observation that says why not; nothing is run."""
        if not isinstance(name, str) or name not in self._tools:
            return f"ERROR: unknown tool {written(name)}. Available tools: {sorted(self._tools)}"
        parameters = self._tools[name][0]["parameters"]
        problem = validate_args(args, parameters)
        return f"ERROR: {problem}. {name} expects {to_json(parameters.get('properties', {}))}" if problem else None

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


# --- 4 · Loop · notebooks/04_loop.ipynb -----------------------------------------------------------------------


@dataclass(frozen=True)
class AgentResult:
    """How a run ended, and everything it did.

    `status` is "done" only if the model gave a final answer; that says that it stopped, not that the task
    succeeded. `answer` is None unless done. `steps` counts model replies, `tokens` what was spent. `messages` is
    the whole list, for it is the trace.

    The other statuses of the loop are "step_limit", "token_budget", "interrupted", and a reply's stop reason:
    "truncated", "refused", "empty_reply". Wrappers add their own: "repeated_call", "waiting_for_approval",
    "deadline", "cost_cap", "bad_reply", or any other text. An empty status means that nothing was done yet.
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
    answered = [m.get("tool_call_id") for m in takewhile(lambda m: m["role"] != "assistant", reversed(messages))]
    calls = messages[-1 - len(answered)]["tool_calls"] if len(answered) < len(messages) else []
    return [ToolCall(**c | {"args": json_copy(c["args"])}) for c in calls if c["id"] not in answered]


def record_call(call: ToolCall, taken_ids: set[str]) -> Json:
    """Return a call as the list keeps it: an id of its own, a name that is text, arguments that are JSON.

    Adds the id to `taken_ids`. Arguments that are not JSON become text, and `error` says why the call cannot run.
    """
    is_new = isinstance(call.id, str) and call.id and call.id not in taken_ids
    call_id = call.id if is_new else next(i for n in count(len(taken_ids) + 1) if (i := f"call_{n}") not in taken_ids)
    taken_ids.add(call_id)
    name = call.name if isinstance(call.name, str) else f"({written(call.name)})"  # in brackets no tool has it
    try:
        args, error = json_copy(call.args), call.error
    except Exception as problem:
        args, error = written(call.args), call.error or f"arguments are not JSON: {describe(problem)}"
    return {"id": call_id, "name": name, "args": args} | ({"error": str(error)} if error else {})


def record_reply(reply: ModelReply, taken_ids: set[str]) -> Json:
    """Return the message that records a reply; the calls of a reply with a stop reason are left out.

    Raises ValueError for what is no reply, and for the stop reason done, which calls alone decide.
    """
    if not hasattr(reply, "tool_calls") or not isinstance(reply.content or "", str) or reply.stop_reason == "done":
        raise ValueError(f"the model must return a ModelReply with text and no stop reason done, not {written(reply)}")
    calls = [record_call(call, taken_ids) for call in reply.tool_calls or [] if not reply.stop_reason]
    return {"role": "assistant", "content": reply.content or "", "tool_calls": calls}


Watch = Callable[[Json], None]


class Run:
    """One run in progress: its message list, appended to and never edited, and what it has spent.

    Each message is measured, and copied for the model, once: the bookkeeping of a step costs the same however long the
    list is. A model that edits what it is given changes its own copies, and never the list.
    """

    def __init__(self, result: AgentResult, watch: Watch | None) -> None:
        self.steps, self.spent, self.watch = result.steps, result.tokens, watch
        self.ids = {c["id"] for message in result.messages for c in message.get("tool_calls", [])}
        self.messages, self.copies, self.chars = list[Json](), list[Json](), 0
        for message in deepcopy(result.messages):
            self.keep(message)
        self.told = len(self.messages) if result.status else 0

    def keep(self, message: Json) -> int:
        """Append a message, and return its tokens."""
        text = encode(message)
        self.messages.append(message)
        self.copies.append(decode(text)[0])
        self.chars += len(text) + len(", ")  # a list as JSON adds these, or brackets, to each message
        return max(1, len(text) // 4)

    def tell(self) -> None:
        """Show `watch` copies of the messages that it was not told of yet."""
        while self.watch is not None and self.told < len(self.messages):
            self.told += 1
            self.watch(deepcopy(self.messages[self.told - 1]))

    def take(self, reply: ModelReply, prompt: int) -> None:
        """Keep and count a reply; its usage, where it has one, replaces the estimate."""
        tokens = self.keep(record_reply(reply, self.ids))
        self.steps += 1
        self.spent += reply.usage.prompt + reply.usage.reply if reply.usage else prompt + tokens
        self.tell()

    def answer(self, call: ToolCall, content: str) -> None:
        """Keep the one message that answers `call`; raise ValueError if its content is not text."""
        require(isinstance(content, str), "execute must return the observation as text")
        self.keep({"role": "tool", "tool_call_id": call.id, "name": call.name, "content": content})

    def close(self, first: str, rest: str) -> None:
        """Answer the open calls with two texts, so that a provider accepts the list."""
        for number, call in enumerate(open_calls(self.messages)):
            self.answer(call, rest if number else first)
        self.tell()

    def end(self, status: str) -> AgentResult:
        """Return the result; only a run that is done has an answer."""
        answer = self.messages[-1]["content"] if status == "done" else None
        return AgentResult(status, answer, self.steps, self.spent, self.messages)


# --- 5 · Exits · notebooks/05_exits.ipynb ---------------------------------------------------------------------

WAITING = "waiting_for_approval"  # the one exit that leaves calls open, because they have not started
INTERRUPTED = "ERROR: interrupted; it may have taken effect"
NOT_RUN = "ERROR: not run: the run ended before this call"


class Stop(Exception):
    """Raised by a wrapper of the model or of execute to end the run with a status of its own.

    `why` becomes the observation of the call that was refused; the status itself where nothing is given.
    """

    def __init__(self, status: str, why: str = "") -> None:
        require(status not in ("", "done"), "a wrapper has a status of its own; only an answer makes a run done")
        super().__init__(f"{status}: {why}" if why else status)
        self.status, self.why = status, why or status


def run_agent(task: str, model: Model, registry: ToolRegistry, system: str = "Use the tools to answer the user.",
              max_steps: int = 8, token_budget: int = 4000, *,
              execute: Execute | None = None, watch: Watch | None = None) -> AgentResult:
    """Ask the model, run the calls it asks for, and repeat until it asks for none or a limit stops the run.

    `max_steps` limits model calls. `token_budget` is checked before each call, on the estimate; the last reply may
    pass it, so lower it by the largest reply where that must not happen. `execute` runs the calls in place of the
    registry, which wrappers use; `watch` is told a copy of each message after it was appended.

    Raises ValueError for a limit below 1. An exception of the model, of a wrapper or of `watch` passes through, as does
    Ctrl-C, with the run so far in its attribute `result`; a wrapper's Stop ends the run instead.
    """
    require(isinstance(task, str) and isinstance(system, str), "task and system must be text")
    start = AgentResult("", None, 0, 0, [{"role": "system", "content": system}, {"role": "user", "content": task}])
    return continue_agent(start, model, registry, max_steps, token_budget, execute=execute, watch=watch)


def continue_agent(result: AgentResult, model: Model, registry: ToolRegistry, max_steps: int, token_budget: int, *,
                   execute: Execute | None = None, watch: Watch | None = None) -> AgentResult:
    """Go on with a run that stopped; its steps and tokens go on counting, and `result` stays as it is.

    Calls that wait for approval are executed. Any other open call was interrupted and is answered so: nothing runs
    twice by itself. Raises ValueError for a limit below 1 and for a run that is done.
    """
    require(max_steps >= 1 and token_budget >= 1, "max_steps and token_budget must be at least 1")
    require(result.status != "done", "this run is done; begin a new one with run_agent")
    execute = registry if execute is None else execute
    run, specs = Run(result, watch), registry.specs()
    specs_tokens = count_tokens(specs)
    try:
        try:
            if result.status != WAITING:
                run.close(INTERRUPTED, INTERRUPTED)
            while True:
                for call in open_calls(run.messages):
                    run.answer(call, f"ERROR: {call.error}" if call.error else execute(call))
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
    except BaseException as error:  # Ctrl-C, or an exception of the model, a wrapper or `watch`
        with suppress(BaseException):  # `watch` may raise too; it is the first exception that goes on
            run.close(INTERRUPTED, NOT_RUN)
        vars(error)["result"] = run.end("interrupted")
        raise


# --- 6 · Failing tools · notebooks/06_failing_tools.ipynb -----------------------------------------------------

import threading
import time
from functools import wraps
from itertools import compress, pairwise
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def with_timeout(fn: Callable[P, T], seconds: float) -> Callable[P, T]:
    """Return `fn`, which raises TimeoutError if it gives no result within `seconds`.

    It runs in another thread. Python cannot end a thread, so a call that is late goes on and may still take effect.
    """
    require(0 < seconds <= threading.TIMEOUT_MAX, "seconds must be above 0, and no more than a thread can wait")

    @wraps(fn)
    def limited(*args: P.args, **kwargs: P.kwargs) -> T:
        results: list[T] = []
        errors: list[BaseException] = []

        def work() -> None:
            try:
                results.append(fn(*args, **kwargs))
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=work, daemon=True)  # daemon: one that hangs does not keep Python from ending
        thread.start()
        thread.join(seconds)
        if errors:
            raise errors[0]
        if not results:
            raise TimeoutError(f"no result within {seconds} s; the call may still be running")
        return results[0]

    return limited


def up_to_a_second() -> float:
    """Return a random part of a second."""
    import random  # here, because few runs wait, and every run would pay for the import

    return random.random()


def with_retries(fn: Callable[P, T], on: tuple[type[Exception], ...] = (TimeoutError, ConnectionError),
                 waits: Iterable[float] = (1, 2, 4), sleep: Callable[[float], object] = time.sleep,
                 jitter: Callable[[], float] = up_to_a_second) -> Callable[P, T]:
    """Return `fn`, called again after each of `waits` seconds while it raises one of `on`; its last exception passes.

    `jitter()` is added to each wait, so that many who failed at once do not come back at once. Wrapping a function
    says that it is safe to repeat: a read is, a write whose answer was lost is not. A provider's 400 is never asked
    again, whatever `on` says.
    """
    on, waits = tuple(on), tuple(waits)

    @wraps(fn)
    def patient(*args: P.args, **kwargs: P.kwargs) -> T:
        for wait in waits:
            try:
                return fn(*args, **kwargs)
            except Stop:  # a decision, not a failure
                raise
            except on as error:
                if getattr(error, "status_code", None) == 400:  # a provider's word for a request that is wrong
                    raise
                sleep(wait + jitter())
        return fn(*args, **kwargs)

    return patient


def trim_result(execute: Execute, max_chars: int) -> Execute:
    """Return `execute` with each observation cut to `max_chars`, the note that says so included.

    The beginning and the end stay, for an error often says at its end what to do. What was cut is no longer JSON.
    """
    require(isinstance(max_chars, int) and max_chars >= 1, "max_chars must be a whole number, at least 1")

    def trimmed(call: ToolCall) -> str:
        text = execute(call)
        if len(text) <= max_chars:
            return text
        note = f"\n[truncated: {len(text)} characters, and {max_chars} may be shown; ask for less]\n"[:max_chars]
        kept = max_chars - len(note)
        return text[: kept - kept // 2] + note + text[len(text) - kept // 2 :]

    return trimmed


def fit_messages(messages: list[Json], max_tokens: int) -> list[Json]:
    """Return copies of the messages that fit into `max_tokens`, for a model that is sent less than the list holds.

    The oldest steps are left out, each reply with all its observations. What no reply began stays, like the system
    message and the task, and so does the last step, even where these alone are too long.
    """
    require(max_tokens >= 1, "max_tokens must be at least 1")
    starts = [i for i, message in enumerate(messages) if message["role"] != "tool"]
    groups = [messages[start:end] for start, end in pairwise([*starts, len(messages)])]
    stays = [group[0]["role"] != "assistant" for group in groups[:-1]] + [True]
    room = 4 * (max_tokens + 1) - sum(len(encode(group)) for group in compress(groups, stays))  # in characters
    kept: list[list[Json]] = []
    for group, stay in zip(reversed(groups), reversed(stays)):  # newest first
        if not stay and room > 0:
            room -= len(encode(group))
        if stay or room > 0:
            kept.append(group)
    return deepcopy([message for group in reversed(kept) for message in group])


# --- 7 · Limits and hooks · notebooks/07_limits_and_hooks.ipynb -----------------------------------------------

import warnings
from dataclasses import replace


def call_key(call: ToolCall) -> str:
    """Return a text that is the same for calls of the same tool with the same arguments, whatever their order."""
    return json.dumps([call.name, call.args], sort_keys=True)


def stop_on_repeat(execute: Execute, limit: int = 3, on_repeat: str = "stop") -> Execute:
    """Return `execute`, which does not run the same call for the `limit`th time in a row if its result was the same.

    It ends the run, or with on_repeat="tell" answers with an error. A poll whose answer changes is no repeat; two
    calls in turn, A-B-A-B, are not caught. It counts for one run: build it anew for each.
    """
    require(isinstance(limit, int) and limit >= 2, "limit must be a whole number, at least 2")
    require(on_repeat in ("stop", "tell"), 'on_repeat must be "stop" or "tell"')
    last, times = ("", ""), 0

    def watchful(call: ToolCall) -> str:
        nonlocal last, times
        key = call_key(call)
        if key == last[0] and times == limit - 1:
            why = f"{call.name} gave the same result {times} times in a row, and was not run again"
            if on_repeat == "stop":
                raise Stop("repeated_call", why)
            return f"ERROR: {why}; try something else"
        result = execute(call)
        times = times + 1 if (key, result) == last else 1
        last = key, result
        return result

    return watchful


def deadline(inner: Callable[P, T], seconds: float, clock: Callable[[], float] = time.monotonic) -> Callable[P, T]:
    """Return a model or an execute that ends the run when `seconds` have passed since the wrapping.

    It is checked before each call, and cuts none off: with_timeout does that. Build it anew for each run.
    """
    require(seconds > 0, "seconds must be above 0")
    end = clock() + seconds

    def punctual(*args: P.args, **kwargs: P.kwargs) -> T:
        if clock() >= end:
            raise Stop("deadline", f"the {seconds} s of this run have passed")
        return inner(*args, **kwargs)

    return punctual


def cost_cap(model: Model, max_usd: float, prompt_price: float, reply_price: float) -> Model:
    """Return `model`, which ends the run if the next prompt would take its cost above `max_usd`.

    Prices are USD per million tokens. A reply's usage counts, or the loop's estimate where it has none; as with the
    token budget, the last reply may pass the cap. It counts for one run: build it anew for each.
    """
    require(max_usd > 0 and prompt_price >= 0 and reply_price >= 0, "max_usd must be above 0, and no price below 0")
    spent, known, seen = 0.0, 0, 0  # USD; of the next prompt the tokens that are known, and in how many messages
    head: list[Json] = []  # of the last prompt; another one says that messages were left out since

    def frugal(messages: list[Json], specs: list[Json]) -> ModelReply:
        nonlocal spent, known, seen, head
        has_grown = bool(head) and messages[: len(head)] == head
        prompt = known + count_tokens(messages[seen:]) if has_grown else count_tokens(specs + messages)
        head, shown = deepcopy(messages[:3]), len(messages)
        if spent + prompt * prompt_price / 1e6 > max_usd:
            raise Stop("cost_cap", f"{spent:.4f} of {max_usd} USD are spent, and the next prompt would pass them")
        reply = model(messages, specs)
        usage = getattr(reply, "usage", None) or Usage(prompt, count_tokens(record_reply(reply, set())))
        spent += (usage.prompt * prompt_price + usage.reply * reply_price) / 1e6
        known, seen = usage.prompt + usage.reply, shown + 1
        return reply

    return frugal


Before = Callable[[ToolCall], ToolCall | str | None]
After = Callable[[ToolCall, str], str | None]


def ask_before(before: Before, call: ToolCall) -> ToolCall | str:
    """Return the call to run, or the observation of one that a hook blocked; a hook that fails blocks it too.

    It gets a copy of the call, and may end the run by Stop.
    """
    try:
        decision = before(deepcopy(call))
        if not isinstance(decision, ToolCall | str | None):
            raise TypeError(f"a hook must return None, a text or a ToolCall, not {written(decision)}")
        if isinstance(decision, ToolCall):
            return replace(decision, id=call.id, args=json_copy(decision.args))
        return call if decision is None else decision
    except Stop:
        raise
    except (Exception, SystemExit) as error:
        return f"ERROR: {call.name} was not run, because a hook failed: {describe(error)}"


def warn(text: str) -> None:
    """Warn of what must not end a run, not even where warnings are errors."""
    with suppress(Warning):
        warnings.warn(text, stacklevel=4)


def ask_after(after: After, call: ToolCall, result: str) -> str:
    """Return the observation to show; a hook that fails is only warned of, for it must not spoil a good result.

    It cannot end the run either, or the result would be lost: let the next `before` raise Stop.
    """
    try:
        changed = after(deepcopy(call), result)
        if not isinstance(changed, str | None):
            raise TypeError(f"a hook must return None or a text, not {written(changed)}")
        return result if changed is None else changed
    except (Exception, SystemExit) as error:
        warn(f"a hook failed after {call.name}, whose result stands: {describe(error)}")
        return result


def with_hooks(execute: Execute, before: Before | None = None, after: After | None = None) -> Execute:
    """Return `execute` with own code before and after each call, which can log it, block it or change it.

    `before(call)` returns None to let the call run, a text that is the observation instead, or another ToolCall to
    run, which is validated like any. `after(call, observation)` returns None, or a text to show instead.
    """
    def hooked(call: ToolCall) -> str:
        decision = ask_before(before, call) if before else call
        if isinstance(decision, str):
            return decision
        result = f"ERROR: {decision.error}" if decision.error else execute(decision)
        return ask_after(after, decision, result) if after else result

    return hooked


# --- 8 · Approval · notebooks/08_approval.ipynb ---------------------------------------------------------------

import os

REJECTED = "ERROR: a person rejected this action"


def verdict_key(call: ToolCall) -> str:
    """Return what a verdict is bound to: the call's id, and a digest of its tool and arguments."""
    import hashlib  # here, because few runs ask a person, and every run would pay for the import

    return f"{call.id} {hashlib.sha256(call_key(call).encode('utf-8')).hexdigest()}"


def require_approval(execute: Execute, check: Callable[[Any, Any], str | None], risky: Iterable[str],
                     verdicts: Json | None = None) -> Execute:
    """Return `execute`, which runs a call of a `risky` tool only after a person said yes to this very call.

    Without a verdict the run ends and waits; after a no the observation says so. `check` is the registry's, and comes
    first: no person is asked about a call that cannot run. `verdicts` are what `decide` returned, bound to the call as
    the list records it: a hook that changes calls must leave risky ones alone.
    """
    require(not isinstance(risky, str), "risky must be a collection of tool names, not one text")
    risky_names, verdicts = frozenset(risky), dict(verdicts or {})
    if unknown := [name for name in sorted(risky_names) if (check(name, {}) or "").startswith("ERROR: unknown tool")]:
        raise ValueError(f"risky names {unknown[0]!r}, which is no tool: its calls would run without approval")

    def gate(call: ToolCall) -> str:
        if check(call.name, call.args) is not None or call.name not in risky_names:
            return execute(call)
        key = verdict_key(call)
        if key not in verdicts:
            if call.id in [known.rpartition(" ")[0] for known in verdicts]:
                warn(f"the verdict on {call.id!r} is for other arguments than {call.name} has now: it goes on waiting")
            raise Stop(WAITING, f"{call.name} waits for a person to approve it")
        return execute(call) if verdicts[key] is True else REJECTED

    return gate


def decide(result: AgentResult, decisions: dict[str, bool]) -> Json:
    """Return a person's decisions as verdicts: plain JSON, each bound to a waiting call, its id and its arguments.

    Only True approves. A call that is not decided goes on waiting. Raises ValueError for an id that does not wait.
    """
    waiting = {call.id: call for call in open_calls(result.messages)} if result.status == WAITING else {}
    if unknown := [call_id for call_id in decisions if call_id not in waiting]:
        raise ValueError(f"no call {unknown[0]!r} waits for approval; those that wait are {list(waiting)}")
    return {verdict_key(waiting[call_id]): decision is True for call_id, decision in decisions.items()}


def is_recorded_call(value: Any) -> bool:
    """Say whether a decoded JSON value has the shape of a call as the list keeps it."""
    match value:
        case {"id": str(), "name": str(), "args": _, **rest}:
            return all(key == "error" and isinstance(text, str) for key, text in rest.items())
    return False


def is_message(value: Any) -> bool:
    """Say whether a decoded JSON value has the shape of a message."""
    match value:
        case {"role": "system" | "user", "content": str()}:
            return True
        case {"role": "assistant", "content": str(), "tool_calls": list(calls)}:
            return all(is_recorded_call(call) for call in calls)
        case {"role": "tool", "tool_call_id": str(), "name": str(), "content": str()}:
            return True
    return False


class MessageOrder:
    """What may come next in a list that a provider accepts."""

    def __init__(self) -> None:
        self.due: list[str] = []  # the ids of the calls that have no observation yet
        self.has_task = False
        self._taken, self._begun = {""}, False

    def fault(self, message: Json) -> str:
        """Say what is wrong with the next message, or take it and return ""."""
        role = message["role"] if is_message(message) else None
        ids = [call["id"] for call in message["tool_calls"]] if role == "assistant" else []
        if role is None:
            return "has not the shape of a message"
        if role == "tool" and message["tool_call_id"] not in self.due[:1]:
            return f"is the observation of {message['tool_call_id']!r}, which is not the next open call"
        if role != "tool" and self.due:
            return f"comes before the observation of the call {self.due[0]!r}"
        if role == "system" and self._begun:
            return "is a system message and not the first"
        if role == "assistant" and not self.has_task:
            return "is a reply before any task"
        if not self._taken.isdisjoint(ids) or len(set(ids)) < len(ids):
            return "asks for a call whose id is empty or was taken"
        self.due, self.has_task, self._begun = self.due[role == "tool" :] + ids, self.has_task or role == "user", True
        self._taken.update(ids)
        return ""


def check_messages(messages: list[Json]) -> None:
    """Raise ValueError, which names the first message at fault, unless a provider would accept the list.

    Only the first message can be the system's, a task comes before the first reply, each reply is followed by one
    observation for each of its calls, in order, and no id comes twice. A run that waits for approval has open calls,
    so its list passes once it has gone on.
    """
    order = MessageOrder()
    for i, message in enumerate(messages):
        if fault := order.fault(message):
            raise ValueError(f"message {i} {fault}")
    if order.due or not order.has_task:
        raise ValueError(f"the call {order.due[0]!r} has no observation" if order.due else "there is no task")


FilePath = str | os.PathLike[str]
VERSION = 1  # of the files


def write_lines(path: FilePath, kind: str, header: Json, messages: list[Json]) -> None:
    """Write a file of JSON Lines, a header and the messages, whole or not at all.

    It is written beside `path` first, so that a crash leaves the old file or the new one, and never a part of it.
    """
    lines = [{"agentloop": kind, "version": VERSION} | header, *messages]
    text = "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines)
    beside = f"{os.fspath(path)}.{threading.get_native_id()}.tmp"
    try:
        with open(beside, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        with suppress(FileNotFoundError):
            os.remove(beside)


def decoded(text: str | bytes) -> Any:
    """Decode JSON text, or return None if it is none."""
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    return None


def read_lines(path: FilePath, kind: str) -> tuple[Json, list[Json]]:
    """Return the header and the messages of a file, without the last line of a journal if a crash cut it off.

    Raises ValueError, which names the file, if it is broken, of another kind or of another version.
    """
    with open(path, "rb") as file:
        text = file.read()
    header, *messages = [decoded(line) for line in text.removesuffix(b"\n").split(b"\n")]
    if kind == "journal" and messages and messages[-1] is None and not text.endswith(b"\n"):
        messages.pop()
    faults = [f"line {i} is no message" for i, message in enumerate(messages, start=2) if not is_message(message)]
    if not isinstance(header, dict) or header.get("agentloop") != kind:
        raise ValueError(f"{os.fspath(path)} is not a {kind} of agentloop")
    if header.get("version") != VERSION:
        raise ValueError(f"{os.fspath(path)} is not of version {VERSION}, the only one that can be read")
    if header.get("messages", len(messages)) != len(messages):
        faults.append(f"it has {len(messages)} messages, and not as many as it says")
    if faults:
        raise ValueError(f"{os.fspath(path)} is broken: {faults[0]}")
    return header, messages


def header_of(result: AgentResult) -> Json:
    """Return what a file's header says of a run; the answer is in the last message."""
    sizes = {"steps": result.steps, "tokens": result.tokens, "messages": len(result.messages)}
    return {"status": result.status} | sizes


def read_run(path: FilePath, kind: str) -> tuple[Json, AgentResult]:
    """Return the header and the run of a file; raise ValueError, which names the file, if it holds none."""
    header, messages = read_lines(path, kind)
    match header:
        case {"status": str(status), "steps": int(steps), "tokens": int(tokens)} if (
            bool not in (type(steps), type(tokens)) and min(steps, tokens) >= 0
        ):
            answer = messages[-1]["content"] if status == "done" and messages else None
            return header, AgentResult(status, answer, steps, tokens, messages)
    raise ValueError(f"{os.fspath(path)} is broken: line 1 does not say how the run ended")


def save_checkpoint(path: FilePath, result: AgentResult) -> None:
    """Write a run to a file, whole or not at all, so that another process can go on with it."""
    write_lines(path, "checkpoint", header_of(result), result.messages)


def load_checkpoint(path: FilePath) -> AgentResult:
    """Return the run that save_checkpoint wrote; raise ValueError, which names the file, if it holds none."""
    return read_run(path, "checkpoint")[1]


def journal(path: FilePath) -> Watch:
    """Return a watch that writes each message to a file as it is appended, so that a crash loses none.

    A reply's line is the intent, an observation's line the outcome. If the file is there, the run in it goes on; a
    line that a crash cut off is removed first, or the next one would be glued to it. A message that cannot come next,
    as one of another run, is a ValueError; a run that never got a reply gives way to a new one. A run that goes on
    from a checkpoint is written first, message by message.
    """
    path = os.path.abspath(path)  # a tool may change the folder
    kept = read_lines(path, "journal")[1] if os.path.exists(path) else []
    write_lines(path, "journal", {}, kept)
    has_replies, has_gap = any(message["role"] == "assistant" for message in kept), False
    order = MessageOrder()
    for message in kept:
        order.fault(message)

    def write(message: Json) -> None:
        nonlocal has_replies, has_gap, order
        if has_gap:
            raise ValueError(f"{path} misses a message, which no other can follow")
        has_gap = True  # until the message is written
        if message["role"] == "system" and not has_replies:
            write_lines(path, "journal", {}, [])
            order = MessageOrder()
        if fault := order.fault(message):
            raise ValueError(f"{path} holds another run: the next message {fault}; give this run one of its own")
        has_replies |= message["role"] == "assistant"
        with open(path, "a", encoding="utf-8", newline="\n") as file:
            file.write(json.dumps(message) + "\n")
        has_gap = False

    return write


def tokens_so_far(messages: list[Json], specs_tokens: int, known: dict[int, int]) -> list[int]:
    """Return what was spent after each message: by position what is `known` of a reply, else the loop's estimate."""
    spent, chars, so_far = 0, 0, list[int]()
    for i, message in enumerate(messages):
        if message["role"] == "assistant":
            spent += known.get(i, specs_tokens + chars // 4 + count_tokens(message))
        chars += len(encode(message)) + len(", ")
        so_far.append(spent)
    return so_far


def recover(path: FilePath) -> AgentResult:
    """Return the run that a journal holds, as interrupted; what continue_agent does with it tells what is unknown.

    A call without an observation was under way, or never began; it is not run again. `tokens` is the loop's estimate
    without the specs, which a journal does not hold. After a reply that asks for nothing the run had ended.
    """
    _, messages = read_lines(path, "journal")
    steps = sum(message["role"] == "assistant" for message in messages)
    spent = tokens_so_far(messages, 0, {})
    return AgentResult("interrupted", None, steps, spent[-1] if spent else 0, messages)


# --- 9 · Traces · notebooks/09_traces.ipynb -------------------------------------------------------------------

from collections.abc import Collection
from itertools import zip_longest

Redact = Callable[[str, Any], Any]
SECRET = "(?i:(key|token|secret|passw(or)?d|pwd|passphrase|auth(orization)?|bearer|credential|cookie)s?)(?![a-z])"
REDACTED = "(redacted)"


def redact_secrets(name: str, value: Any) -> Any:
    """Return "(redacted)" for a value whose name says that it is secret, like api_key, authToken or Password.

    It goes by the name alone: a secret in free text, or under a harmless name, is not found.
    """
    harmless = value is None or isinstance(value, bool)
    return value if harmless or not re.search(SECRET, name) else REDACTED


def redact_fields(name: str, value: Any, redact: Redact) -> Any:
    """Return a JSON value with `redact` applied to every field in it; an item of a list goes by the list's name.

    In a text these are the pairs "name": "text", in either quotes: what is left of JSON that was cut off, or was none.
    """
    if isinstance(value, dict):
        return {key: redact_fields(key, redact(key, item), redact) for key, item in value.items()}
    if isinstance(value, list):
        return [redact_fields(name, redact(name, item), redact) for item in value]
    if isinstance(value, str):
        pair = r"""(["'])((?:(?!\1)[^\\]|\\.)+)\1\s*:\s*(["'])((?:(?!\3)[^\\]|\\.)*)"""
        return re.sub(pair, lambda f: f"{f[1]}{f[2]}{f[1]}: {f[3]}{redact(f[2], f[4])}", value)
    return value


def redact_message(message: Json, redact: Redact) -> Json:
    """Return a copy of a message, the fields of its arguments or of its result redacted.

    A result as a whole goes by the name of its tool.
    """
    copy = deepcopy(message)
    for asked in copy.get("tool_calls", []):
        asked["args"] = redact_fields(asked["name"], asked["args"], redact)
        if "error" in asked:
            asked["error"] = redact_fields("", {"error": asked["error"]}, redact)["error"]
    if copy["role"] == "tool":
        name, result = copy["name"], decoded(copy["content"])
        shown = redact_fields("", {name: copy["content"] if result is None else result}, redact)[name]
        copy["content"] = str(shown) if result is None else to_json(shown)
    return copy


def timed_model(model: Model, clock: Callable[[], float], notes: dict[int | str, Json]) -> Model:
    """Return `model`; the seconds and the usage of each reply are noted under its position in the list."""

    def timed(messages: list[Json], specs: list[Json]) -> ModelReply:
        position, start = len(messages), clock()
        reply = model(messages, specs)
        notes[position] = {"seconds": round(clock() - start, 6)}
        if usage := getattr(reply, "usage", None):
            notes[position]["usage"] = {"prompt": usage.prompt, "reply": usage.reply}
        return reply

    return timed


def timed_execute(execute: Execute, clock: Callable[[], float], notes: dict[int | str, Json]) -> Execute:
    """Return `execute`; the seconds of each call that comes back are noted under its id."""

    def timed(call: ToolCall) -> str:
        start = clock()
        result = execute(call)
        notes[call.id] = {"seconds": round(clock() - start, 6)}
        return result

    return timed


class Trace:
    """A run, and what its message list does not say: seconds and usage of each reply, seconds of each call.

    It wraps model and execute, outside of all other wrappers, and joins what it noted with the list when it is saved.
    It belongs to one run; one that was loaded can note how the run goes on. Before that, it has no messages.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.status, self.steps, self.messages = "", 0, list[Json]()
        self.specs: list[Json] = []
        self._clock = clock
        self._notes: dict[int | str, Json] = {}  # by the position of a reply, or the id of a call

    def model(self, model: Model) -> Model:
        """Return `model`; the seconds of each reply are noted, and its usage, if it has one."""
        timed = timed_model(model, self._clock, self._notes)

        def noted(messages: list[Json], specs: list[Json]) -> ModelReply:
            self.specs = self.specs or deepcopy(specs)
            return timed(messages, specs)

        return noted

    def execute(self, execute: Execute) -> Execute:
        """Return `execute`; the seconds of each call that comes back are noted."""
        return timed_execute(execute, self._clock, self._notes)

    def note(self, position: int) -> Json:
        """Return what was noted of the message at `position`."""
        return self._notes.get(self.messages[position].get("tool_call_id", position), {})

    def save(self, path: FilePath, result: AgentResult, redact: Redact | None = None) -> None:
        """Write the messages, each with what was noted of it, to a file, whole or not at all.

        `redact(name, value)` returns what is written of each field of arguments and results; the run stays as it is.
        """
        self.status, self.steps, self.messages = result.status, result.steps, deepcopy(result.messages)
        lines = [message | self.note(i) for i, message in enumerate(self.messages)]
        lines = [redact_message(line, redact) for line in lines] if redact else lines
        write_lines(path, "trace", header_of(result) | {"specs": self.specs}, lines)

    @classmethod
    def load(cls, path: FilePath) -> Trace:
        """Return the trace in a file, with messages and status; raise ValueError, which names the file, if none."""
        trace = cls()
        header, result = read_run(path, "trace")
        trace.status, trace.steps, trace.messages = result.status, result.steps, result.messages
        trace.specs = header.get("specs", [])
        for i, message in enumerate(trace.messages):
            noted: Json = {key: message.pop(key) for key in ("seconds", "usage") if key in message}
            trace._notes[message.get("tool_call_id", i)] = noted
        return trace

    def table(self) -> str:
        """Return the run that was saved or loaded as a text table, a line for each call and for the answer."""
        return as_table(rows_of(self))


def rows_of(trace: Trace) -> list[list[str]]:
    """Return the lines of a trace's table, one for each call and one for an answer, as lists of six texts."""
    notes = [trace.note(i) for i in range(len(trace.messages))]
    seconds = [f"{note['seconds']:.3f}" if "seconds" in note else "" for note in notes]
    known = {i: sum(note["usage"].values()) for i, note in enumerate(notes) if "usage" in note}
    spent = tokens_so_far(trace.messages, count_tokens(trace.specs), known)
    rows, steps = list[list[str]](), count(1)
    for i, message in enumerate(trace.messages):
        if message["role"] == "assistant":
            asked = [f"{c['name']}({encode(c['args'])})" for c in message["tool_calls"]]
            news = range(i + 1, min(i + 1 + len(asked), len(notes)))
            observed = [(trace.messages[j]["content"], seconds[j]) for j in news]
            once = [str(next(steps)), str(spent[i]), seconds[i]]  # what all calls of a reply share
            for decision, told in zip_longest(asked or [message["content"]], observed, fillvalue=("", "")):
                rows.append([once[0], str(decision), told[0], *once[1:], told[1]])
                once = ["", "", ""]
    return rows


def as_table(rows: list[list[str]]) -> str:
    """Write the rows of a trace under their heads, each cell on one line and cut to 36 characters."""
    lines = []
    for row in [["step", "decision", "observation", "tokens", "model s", "tool s"], *rows]:
        words = [" ".join(cell.split()) for cell in row]
        cells = [word if len(word) <= 36 else f"{word[:35]}…" for word in words]
        lines.append("{:>4}  {:<36}  {:<36}  {:>6}  {:>7}  {:>7}".format(*cells).rstrip())
    return "\n".join(lines)


VOLATILE = ("tool_call_id", "tool_calls.id")  # the fields in which two runs differ that did the same
ABSENT = object()


def difference(old: Any, new: Any, path: str, volatile: Collection[str]) -> str | None:
    """Return the path at which two decoded JSON values first differ, with both values, or None."""
    fields: Iterable[tuple[Any, Any, str]]
    if path in volatile or (isinstance(old, str) and old == new):
        return None
    if isinstance(old, str) and isinstance(new, str):
        old, new = (text if (value := decoded(text)) is None else value for text in (old, new))
    if isinstance(old, dict) and isinstance(new, dict):
        fields = ((old.get(key, ABSENT), new.get(key, ABSENT), f"{path}.{key}".lstrip(".")) for key in old | new)
    elif isinstance(old, list) and isinstance(new, list):
        fields = ((*items, path) for items in zip_longest(old, new, fillvalue=ABSENT))
    elif type(old) is type(new) and old == new:  # 1, 1.0 and true are three values
        return None
    else:
        texts = ["nothing" if value is ABSENT else encode(value) for value in (old, new)]
        alike = next((i for i, (x, y) in enumerate(zip(*texts)) if x != y), min(map(len, texts)))
        at = max(0, alike - 20)  # so that what differs is in what is shown
        was, now = (f"{'…' if at else ''}{text[at:]}" for text in texts)
        return f"{path}: {was[:60]} in the first, {now[:60]} in the second"
    return next(filter(None, (difference(*field, volatile) for field in fields)), None)


def first_difference(a: list[Json], b: list[Json], volatile: Collection[str] = VOLATILE,
                     start: int = 0) -> str | None:
    """Return a sentence that names the first message in which two runs differ, and the field; None if they do not.

    A field is named by its path, which goes into a result too: content.celsius. Paths in `volatile` may differ: the
    ids of calls, and what you add, like the time in a result: (*VOLATILE, "content.at").
    """
    require(not isinstance(volatile, str), "volatile must be a collection of paths, not one text")
    for i in range(start, max(len(a), len(b))):
        if i >= min(len(a), len(b)):
            longer, which = (a, "first") if i < len(a) else (b, "second")
            return f"message {i} ({longer[i]['role']}) is only in the {which}"
        if found := difference(a[i], b[i], "", volatile):
            return f"message {i} ({a[i]['role']}) differs in {found}"
    return None


def replay(messages: list[Json], volatile: Collection[str] = VOLATILE) -> Model:
    """Return a model that gives the recorded replies again, as long as it is shown what was shown then.

    Raises AssertionError, which names the first message that differs, if the run goes another way, and at the end of
    the recording. The list does not hold why a reply was cut off or refused: replayed, such a reply is an answer.
    """
    recorded, compared = deepcopy(messages), 0

    def model(shown: list[Json], specs: list[Json]) -> ModelReply:
        nonlocal compared
        position = len(shown)
        start = compared if compared < position else 0  # so that each message of a run is compared once
        if found := first_difference(recorded[:position], shown, volatile, start):
            raise AssertionError(f"the run is not the recorded one: {found}")
        compared = position
        if position >= len(recorded) or recorded[position]["role"] != "assistant":
            raise AssertionError(f"the recording has no reply after message {position - 1}")
        reply = deepcopy(recorded[position])
        return ModelReply(reply["content"], [ToolCall(**asked) for asked in reply["tool_calls"]])

    return model


ENDINGS = {
    "done": "answered",
    "step_limit": "stopped at the step limit",
    "token_budget": "stopped at the token budget",
    "interrupted": "interrupted",
    "truncated": "stopped by a reply that was cut off",
    "refused": "stopped by a refusal",
    "empty_reply": "stopped by an empty reply",
    "bad_reply": "stopped by bad replies",
    "repeated_call": "stopped at a repeated call",
    WAITING: "waiting for approval",
    "deadline": "stopped at the deadline",
    "cost_cap": "stopped at the cost cap",
}


def negated(goal: str) -> str:
    """Put "not" before the last word: order found, order not found."""
    *words, last = goal.split(" ")
    return " ".join([*words, "not", last])


def explain(result: AgentResult | Trace, goals: dict[str, Callable[[Any], object]] | None = None) -> str:
    """Say in one sentence why a run, or the run of a trace, ended, and which of its goals it reached.

    `goals` gives each goal a predicate of the result: with {"order found": …, "refund issued": …} the sentence is
    "stopped at the step limit after 12 steps: order found, refund not issued".
    """
    ending = ENDINGS.get(result.status, f"stopped with {result.status}")
    said = f"{ending} after {result.steps} step{'s' if result.steps != 1 else ''}"
    reached = [name if met(result) else negated(name) for name, met in (goals or {}).items()]
    return f"{said}: {', '.join(reached)}" if reached else said


# --- 10 · Real models · notebooks/10_real_models.ipynb --------------------------------------------------------


def accepted(text: str, pattern: str = "[a-zA-Z0-9_-]{1,64}") -> str:
    """Return a name or an id as it is where a provider accepts it, else its beginning and a digest of the whole.

    A model may invent any name, and each server writes ids of its own kind; two that differ stay different. So what
    ends like our digests gets one too; do not register a tool whose name does. Source: Anthropic, "Define tools";
    OpenAI, "Create chat completion", tools.
    """
    if re.fullmatch(pattern, text) and not re.search("__[0-9a-f]{16}$", text):
        return text
    import hashlib  # here, because few names are refused, and every run would pay for the import

    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{re.sub('[^a-zA-Z0-9_-]', '_', text)[:22]}__{digest[:16]}"  # 40 letters, the most that OpenAI takes


def object_args(asked: Json) -> Json:
    """Return the arguments of a recorded call, or {} where the model wrote no object, which no provider accepts."""
    return asked["args"] if isinstance(asked["args"], dict) else {}


def sendable(request: Any) -> Any:
    """Return a copy of a request with each half of a surrogate pair, which UTF-8 cannot write, replaced by "?"."""
    return json.loads(encode(request).encode("utf-8", "replace"))


def anthropic_blocks(message: Json) -> list[Json]:
    """Return a message as content blocks of Anthropic's: a result, or text, which must not be blank, and calls."""
    content = message["content"]
    if message["role"] == "tool":
        result = {"type": "tool_result", "tool_use_id": accepted(message["tool_call_id"]), "content": content}
        return [result | {"is_error": True} if content.startswith("ERROR:") else result]
    blocks: list[Json] = [{"type": "text", "text": content}] if content.strip() else []
    for c in message.get("tool_calls", []):
        use = {"type": "tool_use", "id": accepted(c["id"]), "name": accepted(c["name"]), "input": object_args(c)}
        blocks.append(use)
    return blocks


def to_anthropic(messages: list[Json], specs: list[Json]) -> Json:
    """Return what Anthropic's Messages API is asked: the system text apart, and turns of user and assistant.

    All results of a reply travel in one user message, before any text. A list that ends with a reply, as after one
    that was cut off, gets a last word from the user. Source: Anthropic, "Handle tool calls", "Parallel tool use".
    """
    turns: list[Json] = []
    for message in messages:
        role = "assistant" if message["role"] == "assistant" else "user"
        blocks = anthropic_blocks(message) if message["role"] != "system" else []
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        elif blocks:
            turns.append({"role": role, "content": blocks})
    if turns and turns[-1]["role"] == "assistant":
        turns.append({"role": "user", "content": [{"type": "text", "text": "Go on."}]})
    system = "\n\n".join(m["content"] for m in messages if m["role"] == "system" and m["content"].strip())
    tools = [{"name": s["name"], "description": s["description"], "input_schema": s["parameters"]} for s in specs]
    request: Json = {"system": system, "messages": turns, "tools": tools}
    return {key: sendable(value) for key, value in request.items() if value}


def read_call(call_id: Any, name: Any, raw: Any) -> ToolCall:
    """Return a call with its arguments decoded, which come as JSON text, as text encoded once more, or as an object.

    No arguments at all are {}; of a key that comes twice, the last counts. Those that are not JSON stay text, and the
    call's `error` shows their beginning. Source: OpenAI, "Create chat completion": the model does not always generate
    valid JSON.
    """
    args = raw
    for _ in range(2):
        if args is None or isinstance(args, str) and args.strip() in ("", "null"):
            args = {}
        elif isinstance(args, str):
            args = args if (inner := decoded(args)) is None else inner
    if isinstance(raw, str) and args == raw:
        return ToolCall(call_id, name, args, f"arguments are not JSON: {raw[:200]}{'…' if len(raw) > 200 else ''}")
    return ToolCall(call_id, name, args)


CUT_OFF = ("max_tokens", "model_context_window_exceeded", "length", "model_length")
GAVE_UP = ("abort", "error", "insufficient_system_resource")  # the words of vLLM, Mistral and DeepSeek
STOP_REASONS = dict.fromkeys(CUT_OFF + GAVE_UP, "truncated") | dict.fromkeys(("refusal", "content_filter"), "refused")


def read_reply(text: str, calls: list[ToolCall], usage: Usage | None, stop_reason: Any) -> ModelReply:
    """Return a reply with the provider's stop reason in the loop's words: "" where calls alone decide.

    That is so for tool_use, end_turn and their like, even where they disagree with the calls. A reply with no text
    and no call is an "empty_reply". Source: Anthropic, "Handling stop reasons"; OpenAI, `finish_reason`.
    """
    empty = "" if text.strip() or calls else "empty_reply"
    known = stop_reason if isinstance(stop_reason, str) else ""
    return ModelReply(text, calls, usage, STOP_REASONS.get(known, empty))


def not_a_reply(response: Any, part: str) -> ValueError:
    """Return an error which says that a response has not the part that holds a reply, and shows what came instead."""
    if hasattr(response, "__await__"):
        with suppress(Exception):
            response.close()  # or Python warns that nobody awaited it
        return ValueError("the client's answer must be awaited; take the client without Async in its name")
    said = written(getattr(response, "error", None) or response)[:200]
    return ValueError(f"the server sent no {part}, so there is no reply; check base_url, and what it did send: {said}")


def tokens_of(response: Any, *names: str) -> int:
    """Return the sum of some numbers in a response's usage, without those that are missing or no whole numbers."""
    numbers = [getattr(getattr(response, "usage", None), name, None) for name in names]
    return sum(number for number in numbers if type(number) is int and number > 0)


def from_anthropic(response: Any) -> ModelReply:
    """Return the reply in a response of Anthropic's: its text blocks, and its calls.

    Other blocks, like thinking, are not kept. Tokens read from a cache or written to it are not in `input_tokens`,
    and are counted as prompt here. Source: Anthropic, "Prompt caching".
    """
    blocks = getattr(response, "content", None)
    if not isinstance(blocks, list) or not all(hasattr(block, "type") for block in blocks):
        raise not_a_reply(response, "content")
    text = "".join(block.text or "" for block in blocks if block.type == "text")
    calls = [read_call(block.id, block.name, block.input) for block in blocks if block.type == "tool_use"]
    prompt = tokens_of(response, "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    usage = Usage(prompt, tokens_of(response, "output_tokens")) if prompt else None
    return read_reply(text, calls, usage, response.stop_reason)


KEYS = ("api_key", "auth_token", "aws_access_key", "aws_secret_key", "aws_session_token")


def check_client(client: Any, part: str) -> None:
    """Raise ValueError if a client has not the part that is asked, or has a key or a header that cannot be sent.

    It would try to send one that holds a line end, and its own error would quote it. A key that a function makes for
    each request is not there yet: without_keys keeps it out of exceptions, but not out of the client's own log.
    """
    if isinstance(client, type):
        raise ValueError(f"{client.__name__} is a class, and not yet a client; make one: {client.__name__}()")
    for name in KEYS:
        key = getattr(client, name, None)
        if isinstance(key, str) and not re.fullmatch("[!-~]*", key):
            raise ValueError(f"the client's {name} holds white space, or a letter that cannot be sent; strip it")
    for name, value in getattr(client, "default_headers", {}).items():
        if isinstance(value, str) and not re.fullmatch("([!-~]([ -~]*[!-~])?)?", value):
            raise ValueError(f"the client's header {name!r} holds what cannot be sent, like a line end, or no key")
    if not hasattr(client, part):
        kind = type(client).__name__
        raise ValueError(f"{kind} has no {part!r}; anthropic_model takes Anthropic's clients, openai_model OpenAI's")


UNSENDABLE = r"""header value:? b?['"]|UnicodeEncodeError\('(?!utf-8)"""  # and then the header


def quoted_key(error: BaseException, keys: Iterable[str] = ()) -> str:
    """Say which kind of key an exception, or one that it came from, quotes, sent or not to be sent; "" if none.

    Looked for are the keys given, and the secret headers of its request. Less than 8 letters are no key, for local
    servers take any word; a longer word hides each sentence that holds it. A part of a key, or a percent-encoded one,
    is not found.
    """
    links, keys = [error], list(keys)
    for link in links:  # it grows
        origins = [link.__cause__, link.__context__, *getattr(link, "exceptions", ())]
        links += [origin for origin in origins if origin is not None and origin not in links]
        with suppress(Exception):  # there may be no request yet
            headers = getattr(getattr(link, "request", None), "headers", {})
            for secret in [str(value) for name, value in headers.items() if re.search(SECRET, name)]:
                keys += [secret, secret.partition(" ")[2]]  # as in "Bearer …"
    said = " ".join(written(link, lambda e: f"{e!r} {e} {vars(e)}") for link in links)
    if re.search(UNSENDABLE, said):
        return "a key that cannot be sent: it holds white space, or a letter outside ASCII"
    plain, *keys = [text.replace("\\", "") for text in (said, *keys)]  # repr adds some
    return "a key" if any(len(key) >= 8 and key in plain for key in keys) else ""


def without_keys(model: Model, client: Any = None) -> Model:
    """Return `model`; in place of an exception that quotes a key it raises one that does not, and tells of no other.

    An answer of the provider keeps its type and its `status_code`, so that it may be retried; any other error, as of
    a key that cannot be sent, becomes a ValueError.
    """

    def discreet(messages: list[Json], specs: list[Json]) -> ModelReply:
        try:
            return model(messages, specs)
        except Exception as error:
            held = (getattr(client, name, None) for name in KEYS)  # no list, which a traceback with locals would print
            if not (quoted := quoted_key(error, (key for key in held if isinstance(key, str)))):
                raise
            kind, status = type(error), getattr(error, "status_code", None)
        said = f"{kind.__name__}{f' (status {status})' if status else ''} is not shown, because it quotes {quoted}"
        hidden: Exception = kind.__new__(kind, said) if status else ValueError(said)  # its __init__ wants more
        vars(hidden)["status_code"] = status
        raise hidden

    return discreet


def check_task(messages: list[Json]) -> None:
    """Raise ValueError unless a provider would accept the list, and the user says something before the first reply."""
    check_messages(messages)
    opening = takewhile(lambda message: message["role"] != "assistant", messages)
    if not any(message["role"] == "user" and message["content"].strip() for message in opening):
        raise ValueError("the task is blank, so there is nothing to send")


def check_thinking(options: Json) -> None:
    """Raise ValueError if options tell a model to think: a provider wants its thoughts back with the results.

    Source: Anthropic, "Extended thinking", preserving thinking blocks; DeepSeek, "Thinking mode", tool calls.
    """
    for told in (options, options.get("extra_body")):
        thinking = told.get("thinking") if isinstance(told, dict) else None
        if isinstance(thinking, dict) and thinking.get("type") != "disabled":
            raise ValueError('thinking must be {"type": "disabled"}: thoughts must be sent back, and are not kept')


def anthropic_model(client: Any, model: str, max_tokens: int = 4096, **options: Any) -> Model:
    """Return a model that asks Anthropic's Messages API, through its client or the one for Bedrock.

    A reply longer than `max_tokens` is cut off, which ends the run. For a large one the client wants a timeout of its
    own, or streaming, which is not done here; `options` go to the API as they are. The client holds the key and the
    address, and retries by itself: give it max_retries=0 where with_retries does that. A model that thinks unless told
    otherwise wants thinking={"type": "disabled"}.
    """
    check_client(client, "messages")
    check_thinking(options)

    def ask(messages: list[Json], specs: list[Json]) -> ModelReply:
        check_task(messages)
        request = to_anthropic(messages, specs)
        return from_anthropic(client.messages.create(model=model, max_tokens=max_tokens, **request, **options))

    return without_keys(ask, client)


OPENAI_ID = r"[^\ud800-\udfff]{1,40}"  # no half of a surrogate pair, or two such ids would go out as one


def openai_message(message: Json) -> Json:
    """Return a message as OpenAI's API wants it: arguments as JSON text, short ids, and no empty list of calls."""
    if message["role"] == "tool":
        call_id = accepted(message["tool_call_id"], OPENAI_ID)
        return {"role": "tool", "tool_call_id": call_id, "content": message["content"]}
    asked = []
    for c in message.get("tool_calls", []):
        function = {"name": accepted(c["name"]), "arguments": encode(object_args(c))}
        asked.append({"id": accepted(c["id"], OPENAI_ID), "type": "function", "function": function})
    plain = {"role": message["role"], "content": message["content"]}
    return plain | {"tool_calls": asked} if asked else plain


def to_openai(messages: list[Json], specs: list[Json]) -> Json:
    """Return what OpenAI's Chat Completions API is asked; a reply that was empty is left out.

    The API wants "properties" even where there are none. Source: OpenAI, "Function calling".
    """
    said = [m for m in messages if m["role"] != "assistant" or m["tool_calls"] or m["content"].strip()]
    empty = {"type": "object", "properties": {}}
    tools = [{"type": "function", "function": spec | {"parameters": empty | spec["parameters"]}} for spec in specs]
    request: Json = {"messages": [openai_message(m) for m in said], "tools": tools}
    return {key: sendable(value) for key, value in request.items() if value}


def text_of(content: Any) -> str:
    """Return the text of a content, which some servers write as a list of parts; "" where there is none."""
    if isinstance(content, list):
        parts = [part.get("text") if isinstance(part, dict) else getattr(part, "text", None) for part in content]
        return "".join(map(text_of, parts))
    return content if isinstance(content, str) else ""


def from_openai(response: Any) -> ModelReply:
    """Return the reply in a response of OpenAI's, or of a server that is compatible and leaves fields out.

    `prompt_tokens` holds what was read from a cache already. Source: OpenAI, "Prompt caching", "Refusals".
    """
    choice = (getattr(response, "choices", None) or [None])[0]
    message = getattr(choice, "message", None)
    if message is None:
        raise not_a_reply(response, "choices")
    refusal = text_of(getattr(message, "refusal", None))
    calls = []
    for c in getattr(message, "tool_calls", None) or []:
        function = getattr(c, "function", None)
        name, arguments = getattr(function, "name", None) or "", getattr(function, "arguments", None)
        calls.append(read_call(getattr(c, "id", None), name, arguments))
    text = text_of(getattr(message, "content", None)) or refusal
    prompt = tokens_of(response, "prompt_tokens")
    usage = Usage(prompt, tokens_of(response, "completion_tokens")) if prompt else None
    return read_reply(text, calls, usage, "refusal" if refusal else getattr(choice, "finish_reason", None))


def openai_model(client: Any, model: str, **options: Any) -> Model:
    """Return a model that asks OpenAI's Chat Completions API, or a server compatible with it, like Ollama or vLLM.

    `options` go to the API as they are, like max_completion_tokens. The client holds the key and the address, and
    retries by itself: give it max_retries=0 where with_retries does that. A server that wants reasoning_content back,
    like DeepSeek's, wants extra_body={"thinking": {"type": "disabled"}}.
    """
    check_client(client, "chat")
    check_thinking(options)

    def ask(messages: list[Json], specs: list[Json]) -> ModelReply:
        check_task(messages)
        return from_openai(client.chat.completions.create(model=model, **to_openai(messages, specs), **options))

    return without_keys(ask, client)


Complete = Callable[[list[Json]], str]

BAD_REPLY = 'reply must be JSON with "tool" and "args", or with "final".'
JSON_RULES = """Reply with one JSON object and nothing else.
To use a tool: {"tool": "its name", "args": {"argument": "value"}}
To finish: {"final": "your answer"}
The tools:"""


def json_texts(message: Json) -> Iterable[str]:
    """Yield what a message says to a model that speaks JSON text."""
    if message["role"] != "assistant":
        yield message["content"]
    elif not message["tool_calls"]:
        yield encode({"final": message["content"]})
    else:
        yield message["content"]
        for c in message["tool_calls"]:
            yield c["args"] if c.get("error") == BAD_REPLY else encode({"tool": c["name"], "args": c["args"]})


def to_json_text(messages: list[Json], specs: list[Json]) -> list[Json]:
    """Return the list for a model that knows no tools: they are in the system text, and observations are the user's.

    What follows in one role is joined, for many models want user and assistant in turn. Results have no ids there:
    they stand in the order of their calls.
    """
    tools = [f"{s['name']}: {s['description']} Its args: {encode(s['parameters'])}" for s in specs]
    system = [message["content"] for message in messages if message["role"] == "system"]
    turns = [{"role": "system", "content": "\n".join(filter(str.strip, [*system, JSON_RULES, *tools]))}]
    for message in [message for message in messages if message["role"] != "system"]:
        role = "assistant" if message["role"] == "assistant" else "user"
        text = "\n".join(filter(str.strip, json_texts(message)))
        if text and turns[-1]["role"] == role:
            turns[-1]["content"] += f"\n{text}"
        elif text:
            turns.append({"role": role, "content": text})
    said: list[Json] = sendable(turns)
    return said


def first_object(text: str) -> tuple[Json, str]:
    """Return the first JSON object in a text, and what stands before it; {} if there is none.

    The first bracket decides, unless it is closed after a few words, as in [note] or {city}. Where no whole object
    begins, one further on may be part of a list, or of an object that was cut off, and is not meant to be run.
    """
    found = re.search(r"{(?![\w .-]+})|\[(?![\w .-]+])", text)
    start = found.start() if found else len(text)
    with suppress(ValueError, RecursionError):
        data, end = decode(text, start)
        if "</think>" in text[end:]:  # it was part of a thought
            return first_object(text[end:].partition("</think>")[2])
        if isinstance(data, dict):
            return data, text[:start]
    return {}, text


def from_json_text(text: str) -> ModelReply:
    """Return the reply in a text: the first JSON object in it, whatever fence or prose stands around.

    One with "tool" acts; what it says beside, before the object and under "final", is kept as its text. What follows
    is not read: models like to write the observation too. Nor is a thought up to its </think>, but where its <think>
    is missing, any JSON in it must be whole. A text without such an object, or with one that has any other key,
    becomes a call with an error: the model is told, and the run goes on.
    """
    data, before = first_object(re.sub(r"^\s*<think>.*?(</think>|$)", "", text, flags=re.DOTALL))
    data = data if data.keys() <= {"tool", "args", "final"} else {}
    name, answer = data.get("tool"), data.get("final")
    said = answer if isinstance(answer, str) else "" if answer is None else encode(answer)
    if name and isinstance(name, str):
        prose = re.sub(r"```\w*\s*$", "", before.rpartition("</think>")[2]).strip()
        return ModelReply("\n".join(filter(None, [prose, said])), [read_call("", name, data.get("args"))])
    if not name and answer is not None:
        return read_reply(said, [], None, "")
    raw: Any = text  # arguments that are no object enter the list as they are
    return ModelReply("", [ToolCall("", "bad_reply", raw, BAD_REPLY)])


def bad_in_a_row(messages: list[Json]) -> int:
    """Count the last replies in a list that were no JSON; a message of the user begins the count anew."""
    bad = 0
    for message in messages:
        if message["role"] == "assistant":
            bad = bad + 1 if any(c.get("error") == BAD_REPLY for c in message["tool_calls"]) else 0
        elif message["role"] == "user":
            bad = 0
    return bad


def json_text_model(complete: Complete, max_bad: int = 3) -> Model:
    """Return a model made of `complete`, which is given messages of system, user and assistant and returns text.

    So any model that writes text can call tools. But a text says neither why it ended nor what it cost: a reply that
    was cut off counts as a bad one, and tokens are estimated. After `max_bad` bad replies in a row the run ends with
    "bad_reply"; with a message of the user behind them, it can go on.
    """
    if max_bad < 1:
        raise ValueError("max_bad must be at least 1")

    def ask(messages: list[Json], specs: list[Json]) -> ModelReply:
        check_task(messages)
        if bad_in_a_row(messages) >= max_bad:
            raise Stop("bad_reply", f"{max_bad} replies in a row were not the JSON that was asked for")
        text: Any = complete(to_json_text(messages, specs))
        if not isinstance(text, str | None):
            raise not_a_reply(text, "text")
        return from_json_text(text or "")

    return without_keys(ask)


# --- 13 · Async loop · notebooks/13_async_loop.ipynb ----------------------------------------------------------

from collections.abc import AsyncIterator, Awaitable

AsyncModel = Callable[[list[Json], list[Json]], Awaitable[ModelReply]]


class ToolFailure(Exception):
    """Raised by a tool for a failure that it expects, like a missing file; its text says what to do instead."""


def strict_execute(registry: ToolRegistry) -> Execute:
    """Return an Execute for which only ToolFailure is an observation; any other exception of a tool goes on.

    The registry itself makes an observation of every exception, which keeps a run alive, and hides a bug of ours.
    """

    def execute(call: ToolCall) -> str:
        if problem := registry.check(call.name, call.args):
            return problem
        try:
            return to_json(registry._tools[call.name][1](**call.args))
        except ToolFailure as failure:
            return f"ERROR: {failure}"

    return execute


def outcome(fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Callable[[], T]:
    """Call `fn`, and return a function that returns its result, or raises its exception, wherever it is called.

    So an exception gets out of its thread or task as it is: asyncio would end its loop at a KeyboardInterrupt, and
    would wait for ever after a StopIteration.
    """
    from concurrent.futures import Future  # here, because only who awaits pays for the import

    future: Future[T] = Future()
    try:
        future.set_result(fn(*args, **kwargs))
    except BaseException as error:
        future.set_exception(error)
    return future.result


async def awaited_outcome(fn: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> Callable[[], T]:
    """Do what `outcome` does with a function that is awaited, so that an exception gets out of its task as it is."""
    from concurrent.futures import Future

    future: Future[T] = Future()
    try:
        future.set_result(await fn(*args, **kwargs))
    except BaseException as error:
        future.set_exception(error)
    return future.result


def async_model(model: Model) -> AsyncModel:
    """Return `model` as one that is awaited; it runs in another thread, so that nothing else waits for it."""

    async def ask(messages: list[Json], specs: list[Json]) -> ModelReply:
        import asyncio

        return (await asyncio.to_thread(outcome, model, messages, specs))()

    return ask


@dataclass(frozen=True)
class MessageCompleted:
    """A system message, a task or a reply stands in the list, whole."""

    message: Json


@dataclass(frozen=True)
class ToolStarted:
    """A call is about to be given to `execute`; of many at once, some still wait for a free thread."""

    call: ToolCall


@dataclass(frozen=True)
class ToolEnded:
    """An observation stands in the list; one without a ToolStarted is of a call that was not run."""

    message: Json


@dataclass(frozen=True)
class TurnCompleted:
    """The reply of a step, and an observation for each of its calls, stand in the list."""

    step: int


@dataclass(frozen=True)
class RunEnded:
    """The run has returned, and nothing comes after this."""

    result: AgentResult


Event = MessageCompleted | ToolStarted | ToolEnded | TurnCompleted | RunEnded
Report = Callable[[Event], object]


def reporting(run: Run, report: Report, watch: Watch | None) -> Watch:
    """Return a watch of `run` that tells `watch` of each message before it reports it, and the turn it completes."""

    def tell(message: Json) -> None:
        if watch is not None:
            watch(deepcopy(message))
        report(ToolEnded(message) if message["role"] == "tool" else MessageCompleted(message))
        if run.steps and run.told == len(run.messages) and not open_calls(run.messages):
            report(TurnCompleted(run.steps))

    return tell


Outcomes = dict[str, Callable[[], str]]  # by the ids of the calls that were started


async def answer_calls(run: Run, execute: Execute, safe: Collection[str], report: Report, outcomes: Outcomes) -> None:
    """Run the open calls, at once if all of them are safe, and keep their observations in the order asked."""
    import asyncio

    def work(call: ToolCall) -> None:
        outcomes[call.id] = (lambda: f"ERROR: {call.error}") if call.error else outcome(execute, call)

    calls = open_calls(run.messages)
    at_once = all(call.name in safe for call in calls)
    for batch in [calls] if at_once else [[call] for call in calls]:
        tasks = []
        try:
            for call in batch:
                report(ToolStarted(deepcopy(call)))
                outcomes[call.id] = lambda: INTERRUPTED  # until it comes back
                tasks.append(asyncio.ensure_future(asyncio.to_thread(work, call)))
            for call, task in zip(batch, tasks):
                await task
                run.answer(call, outcomes[call.id]())
                run.tell()
        except Stop as stop:
            if at_once and stop.status == WAITING:  # the calls after it have begun, and after a yes would run again
                raise ValueError(f"{call.name} waits for a person, so it cannot be among the safe tools") from stop
            raise
        finally:
            for task in tasks:
                task.cancel()  # a thread cannot be ended, but a call that waits for one never begins


def settle(run: Run, outcomes: Outcomes) -> None:
    """Answer the open calls of a run that was broken off: what came back, or that it is unknown, or not run."""
    for call in open_calls(run.messages):
        try:
            content = outcomes.get(call.id, lambda: NOT_RUN)()
        except BaseException as error:  # the one that goes on to the caller, or another of the same batch
            content = f"ERROR: {error.why}" if isinstance(error, Stop) else INTERRUPTED
        run.answer(call, content if isinstance(content, str) else INTERRUPTED)
    run.tell()


async def run_agent_async(task: str, model: AsyncModel, registry: ToolRegistry,
                          system: str = "Use the tools to answer the user.", max_steps: int = 8,
                          token_budget: int = 4000, *, execute: Execute | None = None, watch: Watch | None = None,
                          report: Report | None = None, safe: Collection[str] = ()) -> AgentResult:
    """Do what run_agent does, with a model that is awaited, and with calls that run in other threads.

    The calls of a reply run in order, or at once if each is of a tool named in `safe`; then `execute` must bear
    several threads, and if such a call waits for approval that is a ValueError. `report` is told of each event, after
    its message was kept and `watch` was told.

    If it is cancelled, what came back is kept, and the CancelledError goes on as any exception does, with the run so
    far in its attribute `result`, unless it had not begun. A thread cannot be ended: a call that was running goes on,
    and asyncio.run waits for it, so put with_timeout around a tool that may hang. Unlike run_agent this loop knows
    whether a call was begun when `watch` raised, and says "not run" of one that was not.
    """
    require(isinstance(task, str) and isinstance(system, str), "task and system must be text")
    start = AgentResult("", None, 0, 0, [{"role": "system", "content": system}, {"role": "user", "content": task}])
    return await continue_agent_async(start, model, registry, max_steps, token_budget,
                                      execute=execute, watch=watch, report=report, safe=safe)


async def continue_agent_async(result: AgentResult, model: AsyncModel, registry: ToolRegistry, max_steps: int,
                               token_budget: int, *, execute: Execute | None = None, watch: Watch | None = None,
                               report: Report | None = None, safe: Collection[str] = ()) -> AgentResult:
    """Go on with a run that stopped, as continue_agent does, whichever of the two loops it began in."""
    require(max_steps >= 1 and token_budget >= 1, "max_steps and token_budget must be at least 1")
    require(not isinstance(safe, str), "safe must be a collection of tool names")
    require(result.status != "done", "this run is done; begin a new one with run_agent_async")
    execute, report = registry if execute is None else execute, report or (lambda event: None)
    run, specs, outcomes = Run(result, None), registry.specs(), Outcomes()
    run.watch, specs_tokens = reporting(run, report, watch), count_tokens(specs)
    try:
        try:
            if result.status != WAITING:
                run.close(INTERRUPTED, INTERRUPTED)
            while True:
                await answer_calls(run, execute, safe, report, outcomes)
                if run.steps >= max_steps:
                    return run.end("step_limit")
                prompt = specs_tokens + run.chars // 4
                if run.spent + prompt > token_budget:
                    return run.end("token_budget")
                asked = model(list(run.copies), list(specs))
                if not inspect.isawaitable(asked):
                    raise ValueError("the model must be awaited; async_model(model) makes such a model of a plain one")
                reply = await asked
                run.take(reply, prompt)
                if not run.messages[-1]["tool_calls"]:
                    return run.end(reply.stop_reason or "done")
        except Stop as stop:
            if stop.status != WAITING:
                settle(run, outcomes)
            return run.end(stop.status)
    except BaseException as error:  # above all a CancelledError
        with suppress(BaseException):  # `watch` may raise too; it is the first exception that goes on
            settle(run, outcomes)
        vars(error)["result"] = run.end("interrupted")
        raise


async def agent_events(run: Callable[..., Awaitable[AgentResult]], *args: Any, **options: Any) -> AsyncIterator[Event]:
    """Yield the events of run_agent_async or continue_agent_async, called with these arguments, as they happen.

    RunEnded is the last, unless an exception of the run goes on. Whoever leaves early, by aclosing or aclose, or is
    cancelled, cancels the run, and what it had started is settled first. A break alone does not, while somebody holds
    the events.
    """
    import asyncio

    events: asyncio.Queue[Event | None] = asyncio.Queue()
    task = asyncio.ensure_future(awaited_outcome(run, *args, report=events.put_nowait, **options))
    task.add_done_callback(lambda _: events.put_nowait(None))
    try:
        while event := await events.get():
            yield event
        yield RunEnded((await task)())
    except BaseException as error:
        task.cancel()
        try:
            (await task)()
        except BaseException as ended:
            vars(error).update(vars(ended))
        raise


# --- The demo -------------------------------------------------------------------------------------------------

WEATHER_TASK = "How hot is Pune in Fahrenheit?"


def weather_world() -> tuple[ToolRegistry, list[str]]:
    """Return the demo's registry, and the log of every call that really ran."""
    registry, ran = ToolRegistry(), list[str]()

    def get_weather(city: str) -> Json:
        ran.append(f"get_weather({city})")
        return {"city": city, "celsius": {"Pune": 30, "Delhi": 35}[city]}

    def c_to_f(celsius: float) -> float:
        ran.append(f"c_to_f({celsius})")
        return celsius * 9 / 5 + 32

    city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    about = "Current temperature of a city, in Celsius. Use it when the user asks about weather."
    registry.register("get_weather", about, city, get_weather)
    celsius = {"type": "object", "properties": {"celsius": {"type": "number"}}, "required": ["celsius"]}
    about = "Convert Celsius to Fahrenheit. Use it when the user wants Fahrenheit."
    registry.register("c_to_f", about, celsius, c_to_f)
    return registry, ran


def weather_script() -> list[ModelReply]:
    """Return the replies of a model that answers WEATHER_TASK in three steps."""
    look_up = asks(call("c1", "get_weather", city="Pune"), text="I will look up Pune first.")
    return [look_up, asks(call("c2", "c_to_f", celsius=30)), final("It is 86.0 F in Pune.")]


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
            rows[-1][2] += (" | " if rows[-1][2] else "") + message["content"]
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
