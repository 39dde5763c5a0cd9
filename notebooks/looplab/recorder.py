"""Run a loop for real, once, and keep each statement of it that ran, with the state after it.

One function is traced: the loop, or the function that a wrapper like run_agent hands its work to. Nothing is replaced
or simulated: model, registry and list are the reader's own. Whoever traced before, a debugger or coverage, is told of
every event and gets its place back.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from types import CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

from agentloop import describe
from looplab.view import call_text, cut, plural

MAX_LINES = 5_000
LINES_OF = {"line": 1, "opcode": 1 / 20}  # what an event of the trace counts; instructions are seldom followed
SPENT, PROMPT = ("spent", "tokens"), ("prompt", "prompt_tokens", "estimate")


# --- What is kept --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Statement:
    """A statement, or the head of one that has a body; lines count from 1 at the top of the function."""

    node: ast.AST
    first: int
    last: int


@dataclass(frozen=True)
class Source:
    """The text of a function, the line of its file where it begins, and the statement at each of its lines."""

    name: str
    lines: list[str]
    begins: int
    by_line: dict[int, Statement]

    def code_of(self, statement: Statement) -> str:
        """Return a statement on one line; of one with a body, the head."""
        lines = self.text_of(statement.node).splitlines()[: statement.last - statement.first + 1]
        return re.sub(r":(\s*#.*)?$", "", " ".join(line.strip() for line in lines))

    @functools.cached_property
    def has_loop_on_one_line(self) -> bool:
        """Say whether a `while` has its body on its own line, so that a round of it is no new line."""
        nodes = [statement.node for statement in self.by_line.values()]
        return any(isinstance(node, ast.While) and node.end_lineno == node.lineno for node in nodes)

    def text_of(self, node: ast.AST) -> str:
        """Return an expression as it is written in the source."""
        return ast.get_source_segment("\n".join(self.lines), node) or ""


@dataclass(frozen=True)
class Asked:
    """A call of the model: how many messages it was shown, and its reply in words, or the exception it raised."""

    shown: int
    content: str = ""
    calls: tuple[str, ...] = ()
    stop_reason: str = ""
    raised: str = ""


@dataclass(frozen=True)
class Ran:
    """A call that was executed: the call in words, and the observation, or the exception it raised."""

    call: str
    observation: str = ""
    raised: str = ""


@dataclass(frozen=True)
class Moment:
    """A statement that has just run, and the state after it.

    `values` are the variables in words. The message list is the first `length` of the recording's list `version`:
    the statement appended the last `appended` of them, edited those at `edited`, and removed `removed` others.
    `went_in` says whether the body of an `if` or a loop comes next. `prompt` is the estimate that is not spent yet,
    `estimates` says that it was just made, and `waiting` holds until the reply is in the list.
    """

    statement: Statement
    values: dict[str, str]
    changed: frozenset[str]
    version: int
    length: int
    appended: int = 0
    edited: tuple[int, ...] = ()
    removed: int = 0
    asked: Asked | None = None
    ran: tuple[Ran, ...] = ()
    raised: str = ""
    went_in: bool = False
    spent: int | None = None
    prompt: int | None = None
    estimates: bool = False
    waiting: bool = False


@dataclass
class Recording:
    """One run of a loop: its source, its moments, and how it ended.

    `names` are the loop's own names for the model and the registry; `specs` is None if the registry has none.
    """

    source: Source
    moments: list[Moment]
    versions: list[list[Any]]
    specs: list[Any] | None
    names: dict[str, str]
    max_steps: int | None
    budget: int | None
    result: Any
    error: BaseException | None
    cut_off_after: int | None

    def messages(self, i: int) -> list[Any]:
        """Return the message list as it was after moment `i`."""
        moment = self.moments[i]
        return self.versions[moment.version][: moment.length]

    def steps(self, i: int) -> int:
        """Count the replies in the list after moment `i`."""
        return sum(message.get("role") == "assistant" for message in self.messages(i))

    @functools.cached_property
    def scale(self) -> int:
        """The most that was spent or estimated at any moment, or the budget if that is more."""
        return max([self.budget or 0, *((moment.spent or 0) + (moment.prompt or 0) for moment in self.moments)])


# --- Reading the function ------------------------------------------------------------------------------------


def loop_function(loop: Callable[..., Any]) -> FunctionType:
    """Return the function that holds the loop: `loop` itself, or the one to which it hands its work.

    Raises TypeError for what cannot be followed line by line, and ValueError where there is no source.
    """
    function = loop.func if isinstance(loop, functools.partial) else loop
    function = inspect.unwrap(getattr(function, "__func__", function))
    if not isinstance(function, FunctionType):
        raise TypeError(f"loop must be a function written in Python, not {loop!r}")
    if function.__code__.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise TypeError(f"{function.__name__} is async or a generator; only plain functions can be played")
    tree = parse(function)
    end = tree.body[-1]
    if isinstance(end, ast.Return) and isinstance(end.value, ast.Call) and isinstance(end.value.func, ast.Name):
        worker = function.__globals__.get(end.value.func.id)
        loops = any(isinstance(node, (ast.For, ast.While)) for node in ast.walk(tree))
        if isinstance(worker, FunctionType) and worker is not function and not loops:
            return loop_function(worker)
    return function


def parse(function: FunctionType) -> ast.FunctionDef:
    """Return the syntax tree of a function; its lines count from 1."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, SyntaxError):
        tree = None
    if not isinstance(tree, ast.FunctionDef):
        raise ValueError(f"the source of {function.__name__} cannot be read; define it with def, in a file, or in a "
                         "cell that does not begin with %%")
    return tree


def read_source(function: FunctionType) -> Source:
    """Return the lines of a function and the statements they belong to."""
    lines, begins = inspect.getsourcelines(function)
    by_line = {line: s for s in statements(parse(function).body) for line in range(s.first, s.last + 1)}
    return Source(function.__name__, textwrap.dedent("".join(lines)).splitlines(), begins, by_line)


def statements(body: list[Any]) -> Iterator[Statement]:
    """Yield the statements of a body and of the bodies inside it; of an `if`, a loop and their like, the head."""
    for node in body:
        parts = [part for name in BODIES for part in getattr(node, name, [])]
        if not parts or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield Statement(node, node.lineno, node.end_lineno)
            continue
        first = first_line(node)
        head = [inner for child in ast.iter_child_nodes(node) if child not in parts for inner in ast.walk(child)]
        last = max([first, *(n.end_lineno for n in head if hasattr(n, "end_lineno"))])
        yield Statement(node, first, last)
        yield from statements([part for part in parts if first_line(part) > last])  # `if x: return` is one statement


BODIES = ("body", "orelse", "handlers", "finalbody", "cases")


def first_line(node: Any) -> int:
    """Return the line where a statement, a handler or a case begins."""
    line: int = node.pattern.lineno if isinstance(node, ast.match_case) else node.lineno
    return line


def is_silent(node: ast.AST) -> bool:
    """Say whether a statement only marks a place, like `try:` or `while True:`, so that it is no moment."""
    constant = isinstance(node, ast.While) and isinstance(node.test, ast.Constant)
    text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return constant or text or isinstance(node, (ast.Try, ast.TryStar, ast.Pass, ast.Global, ast.Nonlocal))


# --- Values in words -----------------------------------------------------------------------------------------


def in_words(value: Any) -> str:
    """Say in a few characters what a variable holds; running the reader's code for it as little as possible."""
    name = type(value).__name__
    article = f"{'an' if name[:1] in 'AEIOUaeiou' else 'a'} {name}"
    try:
        return _in_words(value) or article
    except Exception:
        return article


def _in_words(value: Any) -> str:
    if value is None or isinstance(value, (bool, int, float, str)):
        return cut(repr(value[:100] if isinstance(value, str) else value), 30)
    if isinstance(value, (list, tuple, dict, set, frozenset)):
        return plural(len(value), "item")
    if isinstance(value, BaseException):
        return cut(describe(value), 60)
    inside = attributes(value)
    if "tool_calls" in inside and "content" in inside:
        return f"a reply with {plural(len(inside['tool_calls']), 'call') if inside['tool_calls'] else 'no calls'}"
    return cut(call_text(value), 44) if "name" in inside and "args" in inside else ""


def attributes(value: Any) -> dict[str, Any]:
    """Return what an object holds; nothing for a class, a function or a module."""
    return {} if isinstance(value, (type, FunctionType, MethodType, ModuleType)) else getattr(value, "__dict__", {})


def is_message_list(name: str, value: Any) -> bool:
    """Say whether a variable looks like the message list: it begins with a message, or is empty and so called."""
    if not isinstance(value, list):
        return False
    return isinstance(value[0], dict) and "role" in value[0] if value else name == "messages"


def message_list_in(values: dict[str, Any]) -> list[Any]:
    """Return the list that is called messages, or else the longest that looks like one; attributes count as well."""
    short = [(name.rpartition(".")[2], value) for name, value in values.items()]
    lists = [(name == "messages", len(value), value) for name, value in short if is_message_list(name, value)]
    return max(lists, key=lambda found: found[:2], default=(False, 0, []))[2]


def variables(local: dict[str, Any]) -> dict[str, Any]:
    """Return the variables worth a look; for an object that holds the message list, its attributes."""
    found: dict[str, Any] = {}
    for name, value in local.items():
        inside = attributes(value)
        if any(is_message_list(n, v) for n, v in inside.items()):
            found |= {f"{name}.{n}": v for n, v in inside.items() if not n.startswith("_")}
        elif not name.startswith("_") and not callable(value) and not isinstance(value, ModuleType):
            found[name] = value
    return found


def number(values: dict[str, Any], names: tuple[str, ...]) -> int | None:
    """Return the variable or attribute with one of the names, if it is a whole number."""
    found = (v for name in names for n, v in values.items() if n.rpartition(".")[2] == name and type(v) is int)
    return next(found, None)


def assigned(node: ast.AST) -> set[str]:
    """Return the names to which a statement assigns, without the objects before a dot."""
    stored = [n for n in ast.walk(node) if isinstance(getattr(n, "ctx", None), ast.Store)]
    return {n.id if isinstance(n, ast.Name) else n.attr for n in stored if isinstance(n, (ast.Name, ast.Attribute))}


# --- Keeping moments -----------------------------------------------------------------------------------------


class Film:
    """The moments so far. A message is copied when it is first seen, and again only if it was edited."""

    def __init__(self) -> None:
        self.moments: list[Moment] = []
        self.versions: list[list[Any]] = [[]]
        self._known: dict[str, tuple[int, str]] = {}

    def add(self, statement: Statement, local: dict[str, Any], given: dict[str, int], **events: Any) -> None:
        """Keep a statement that has just run; `given` are the identities of the arguments the function began with."""
        values = variables({name: value for name, value in local.items() if given.get(name) != id(value)})
        known = {name: (id(value), in_words(value)) for name, value in values.items()}
        changed = frozenset(name for name in known if known[name] != self._known.get(name))
        self._known = known
        words = {name: text for name, (_, text) in known.items()}
        self.moments.append(Moment(statement, words, changed, **self._list(message_list_in(local | values)), **events))
        self.moments[-1] = replace(self.moments[-1], **self._tokens(values))

    def _list(self, current: list[Any]) -> dict[str, Any]:
        known, edited = self.versions[-1], ()
        if not equal(current[: len(known)], known):
            pairs = list(enumerate(zip(known, current)))
            edited = tuple(i for i, (old, now) in pairs if not equal(old, now) and not equal(old, copied(now)))
            if edited or len(current) < len(known):
                self.versions.append([copied(now) if i in edited else old for i, (old, now) in pairs])
        new = [copied(message) for message in current[len(known):]]
        self.versions[-1].extend(new)
        return {"version": len(self.versions) - 1, "length": len(current), "appended": len(new), "edited": edited,
                "removed": max(0, len(known) - len(current))}

    def _tokens(self, values: dict[str, Any]) -> dict[str, Any]:
        now, before = self.moments[-1], self.moments[-2] if len(self.moments) > 1 else None
        node, spent = now.statement.node, number(values, SPENT)
        estimates = isinstance(node, (ast.Assign, ast.AnnAssign)) and bool(assigned(node) & set(PROMPT))
        prompt = before.prompt if before and before.spent == spent else None
        new = self.versions[-1][now.length - now.appended:]
        asks = estimates or now.asked is not None or bool(before and before.waiting)
        waiting = asks and not any(message.get("role") == "assistant" for message in new)
        return {"spent": spent, "prompt": number(values, PROMPT) if estimates else prompt, "waiting": waiting,
                "estimates": estimates}


def equal(a: Any, b: Any) -> bool:
    """Compare, and take values that cannot be compared as different."""
    try:
        return bool(a == b)
    except Exception:
        return False


def copied(message: Any) -> dict[str, Any]:
    """Return a copy of a message; for what is none, a message that says what it is."""
    if not isinstance(message, dict):
        return {"role": type(message).__name__, "content": in_words(message)}
    try:
        return deepcopy(message)
    except Exception:
        return dict(message)


# --- Tracing -------------------------------------------------------------------------------------------------


class CutOff(BaseException):
    """Raised inside a loop that has run too many lines. No Exception, so that `except Exception` lets it pass.

    `insist` is called when it is gone, for a bare `except` may have swallowed it.
    """

    def __init__(self, insist: Callable[[], None]) -> None:
        self._insist = insist

    def __del__(self) -> None:
        self._insist()


class Tracer:
    """The trace function of one recording; sys.settrace describes the events."""

    def __init__(self, code: CodeType, source: Source, model: Any, tools: list[Any], earlier: Any) -> None:
        self.film, self.was_cut_off = Film(), False
        self.names: dict[str, Any] = {}  # the arguments the loop began with
        self.source, self._code, self._earlier = source, code, earlier
        self._model = code_of(model, "__call__")
        self._tools = [code_of(tool, name) for tool in tools for name in ("execute", "__call__")]
        self._lines = 0.0
        self._at: dict[FrameType, tuple[Statement | None, int]] = {}  # the statement under way, and where it began
        self._given: dict[FrameType, dict[str, int]] = {}
        self._call: Asked | Ran | None = None  # of the model or a tool, under way; a loop inside it is not followed
        self._asked: Asked | None = None
        self._ran: list[Ran] = []
        self._raised = ""

    def trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        """Say who follows a call that begins: this recording, the earlier trace function, or both."""
        ours = self._choose(frame)
        if not self._earlier:
            return ours
        theirs = self._earlier(frame, event, arg)
        sys.settrace(self.trace)  # coverage takes the place for itself at every call
        return both(ours, theirs) if ours and theirs else ours or theirs

    def _choose(self, frame: FrameType) -> Any:
        if self._call:
            return None
        if frame.f_code is self._code:
            self._at = dict.fromkeys([*self._at, frame], (None, -1))  # a loop that calls itself goes on in the new call
            frame.f_trace_opcodes = self.source.has_loop_on_one_line  # which is one line event, however long it runs
            self._given[frame] = {name: id(value) for name, value in frame.f_locals.items() if name != "self"}
            self.names = self.names or dict(frame.f_locals)
            return self._follow
        if self._at and frame.f_code is self._model:
            self._call = Asked(next((len(value) for value in arguments(frame) if isinstance(value, list)), 0))
            return self._listen
        if self._at and frame.f_code in self._tools:
            self._call = Ran(cut(call_in_words(arguments(frame)), 200))
            return self._listen
        return None

    def _follow(self, frame: FrameType, event: str, arg: Any) -> Any:
        statement, began = self._at[frame]
        if event == "exception":
            self._raised = describe(arg[1])
        elif event == "return":
            self._keep(frame, statement, None)
            del self._at[frame], self._given[frame]
        elif event == "line":
            following = self.source.by_line.get(frame.f_lineno - self.source.begins + 1)
            if following is not statement or frame.f_lasti <= began:  # else one more line of the same statement
                self._keep(frame, statement, following)
                self._at[frame] = (following, frame.f_lasti)
        self._lines += LINES_OF.get(event, 0)
        if self._lines > MAX_LINES:
            self._cut_off()
        return self._follow

    def _keep(self, frame: FrameType, statement: Statement | None, following: Statement | None) -> None:
        if statement and not is_silent(statement.node):
            body = getattr(statement.node, "body", None)
            went_in = bool(body and following and body[0].lineno <= following.first <= body[-1].end_lineno)
            raised = "" if isinstance(statement.node, ast.For) else self._raised  # some iterators end by raising
            self.film.add(statement, dict(frame.f_locals), self._given[frame], asked=self._asked,
                          ran=tuple(self._ran), raised=raised, went_in=went_in)
        self._asked, self._ran, self._raised = None, [], ""

    def _listen(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "exception":
            self._raised = describe(arg[1])
        elif event == "line":
            self._raised = ""  # it was caught
        elif event == "return":
            if isinstance(self._call, Asked):
                self._asked = replace(self._call, raised=self._raised) if self._raised else replied(self._call, arg)
            elif isinstance(self._call, Ran):
                text = arg if isinstance(arg, str) else ""
                self._ran.append(replace(self._call, raised=self._raised, observation=text))
            self._call = None
        return self._listen

    def _cut_off(self) -> None:
        self.was_cut_off = True
        sys.setprofile(self._insist)  # raising ends the tracing, and a bare except would then go on for ever
        raise CutOff(self._insist)

    def _insist(self, *event: Any) -> None:
        for loop_frame in self._at:
            loop_frame.f_trace = self._follow
            sys.settrace(self.trace)

    def end(self) -> None:
        """Follow nothing any more."""
        self._at.clear()


def both(ours: Any, theirs: Any) -> Any:
    """Return a trace function of one call that tells two of each event."""

    def follow(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal theirs
        theirs = theirs and theirs(frame, event, arg)
        ours(frame, event, arg)
        return follow

    return follow


def code_of(value: Any, method: str) -> CodeType | None:
    """Return the code that runs when `value`, or a method of it, is called; None if that is not Python code."""
    while isinstance(value, functools.partial):
        value = value.func
    function = value if isinstance(value, (FunctionType, MethodType)) else getattr(type(value), method, None)
    code: CodeType | None = getattr(function, "__code__", None)
    return code


def arguments(frame: FrameType) -> list[Any]:
    """Return the positional arguments of a call that has just begun, without self."""
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount]
    more = code.co_varnames[code.co_argcount + code.co_kwonlyargcount] if code.co_flags & inspect.CO_VARARGS else ""
    return [frame.f_locals[name] for name in names if name != "self"] + list(frame.f_locals.get(more, ()))


def call_in_words(given: list[Any]) -> str:
    """Write the call that a registry or an executor was given: a ToolCall, or a name and its arguments."""
    if len(given) > 1 and isinstance(given[0], str):
        return call_text({"name": given[0], "args": given[1]})
    return call_text(given[0]) if given else "a call"


def replied(asked: Asked, reply: Any) -> Asked:
    """Return what the model was asked, with its reply in words."""
    content, calls = getattr(reply, "content", reply), getattr(reply, "tool_calls", None)
    words = tuple(cut(call_text(call), 200) for call in calls) if isinstance(calls, list) else ()
    text = content if isinstance(content, str) else in_words(content) if content is not None else ""
    return replace(asked, content=text, calls=words, stop_reason=str(getattr(reply, "stop_reason", "") or ""))


def record(loop: Callable[..., Any], task: Any, model: Any, registry: Any, limits: dict[str, Any]) -> Recording:
    """Call `loop(task, model, registry, **limits)` once and return the recording of its run.

    An exception of the loop is kept in it, as is the state until then; so is an end by force after MAX_LINES lines.
    One that comes before the loop's first statement is raised, as are TypeError for a limit the loop does not take,
    and ValueError for a loop in which no statement runs.
    """
    function = loop_function(loop)
    known = limits_of(loop, task, model, registry, limits)
    earlier, earlier_profile = sys.gettrace(), sys.getprofile()
    tracer = Tracer(function.__code__, read_source(function), model, [registry, limits.get("execute")], earlier)
    result = raised = None
    sys.settrace(tracer.trace)
    try:
        result = loop(task, model, registry, **limits)
    except BaseException as error:
        if not tracer.film.moments:
            raise
        raised = error
    finally:
        tracer.end()
        if tracer.was_cut_off:
            sys.setprofile(earlier_profile)
        sys.settrace(earlier)
    if not tracer.film.moments:
        raise ValueError(f"{function.__name__} ran no statement that can be shown; it returned {in_words(result)}")
    names = {role: next((n for n, v in tracer.names.items() if v is value), role)
             for role, value in (("model", model), ("registry", registry))}
    specs = deepcopy(registry.specs()) if hasattr(registry, "specs") else None
    moments = with_end(tracer.film.moments, always=tracer.was_cut_off)
    return Recording(tracer.source, moments, tracer.film.versions, specs, names, known.get("max_steps"),
                     known.get("token_budget"), result, raised, MAX_LINES if tracer.was_cut_off else None)


def with_end(moments: list[Moment], always: bool) -> list[Moment]:
    """Return the moments with the end as the last: the `return` or `raise` itself, or one more without a change."""
    last = replace(moments[-1], waiting=False)
    place = last.statement
    leaves = [n.lineno for n in ast.walk(place.node) if isinstance(n, (ast.Return, ast.Raise))]
    if any(place.first <= line <= place.last for line in leaves) and not always:
        return [*moments[:-1], last]
    quiet = replace(last, changed=frozenset(), appended=0, edited=(), removed=0, asked=None, ran=(), raised="",
                    estimates=False)
    return [*moments, quiet]


def limits_of(loop: Callable[..., Any], task: Any, model: Any, registry: Any, limits: dict[str, Any]) -> dict[str, int]:
    """Return the limits with which the loop will run, its defaults included.

    Raises TypeError, in one sentence, if the loop cannot be called so.
    """
    name, signature = getattr(loop, "__name__", "the loop"), inspect.signature(loop)
    try:
        bound = signature.bind(task, model, registry, **limits)
    except TypeError as error:
        raise TypeError(f"{name}{signature} cannot be played: {error}") from None
    bound.apply_defaults()
    given = bound.arguments | limits
    return {limit: given[limit] for limit in ("max_steps", "token_budget") if type(given.get(limit)) is int}
