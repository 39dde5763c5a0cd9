"""Exercises of notebook 13: a script with conditions, a front end, batches, and results that go to the wrong call."""

from __future__ import annotations

import asyncio
import concurrent.futures.thread  # noqa: F401  or a check imports it, and a process that has changed is not kept
from collections.abc import Sequence
from types import FunctionType
from typing import Any

from agentloop import (
    INTERRUPTED,
    NOT_RUN,
    AgentResult,
    Event,
    ModelReply,
    Stop,
    ToolCall,
    ToolFailure,
    ToolRegistry,
    agent_events,
    asks,
    call,
    final,
    run_agent,
    run_agent_async,
    strict_execute,
)
from looplab.cases import Case, Exercise, Patient, Raises
from looplab.coding import CODING_TASK, DIAGNOSIS, calculator_world
from looplab.worlds import schema

# --- A second failed read -------------------------------------------------------------------------------------


def failing_reads(fails: Sequence[bool]) -> ToolRegistry:
    """Return a registry whose reads fail or give the file in this order, whatever the path."""
    reads = iter(fails)
    files = calculator_world()[1]

    def read(path: str) -> str:
        if next(reads):
            raise ToolFailure("use read with path='calculator.py'")
        return files["calculator.py"]

    registry = ToolRegistry()
    registry.register("read", "The text of a file.", schema(path="string"), read)
    return registry


def go(replies: Any, max_steps: int = 8, fails: Sequence[bool] = ()) -> AgentResult:
    """Run a script in the world of the calculator, or where its reads fail in this order."""
    registry = failing_reads(fails) if fails else calculator_world()[0]
    execute = strict_execute(registry)
    return run_agent(CODING_TASK, Patient(list(replies)), registry, max_steps=max_steps, execute=execute)


def ids(result: AgentResult) -> list[Any]:
    """Return how many calls a run made, how many ids of their own they have, and whether the results carry these."""
    asked = [c["id"] for message in result.messages for c in message.get("tool_calls", [])]
    told = [message["tool_call_id"] for message in result.messages if message["role"] == "tool"]
    return [len(asked), len(set(asked)), asked == told]


def failed(result: AgentResult) -> list[bool]:
    """Return for each observation whether it is an error."""
    return [message["content"].startswith("ERROR: ") for message in result.messages if message["role"] == "tool"]


def given_ids(replies: Any) -> int:
    """Return how many of a script's calls have an id of their own in the script; conditions are met by all paths."""
    news = [{"role": "user", "content": "ERROR: use read with path='calculator.py' def add(a, b): return a - b"}]
    made = [reply(news, []) if callable(reply) else reply for reply in replies]
    return len({c.id for reply in made for c in reply.tool_calls if c.id})


READS = Exercise(
    "13-reads",
    {"script": FunctionType, "too_few": int},
    [
        Case("go(script()).steps", "four turns", 4),
        Case("ids(go(script()))", "three calls, three ids, and results that carry them", [3, 3, True]),
        Case("given_ids(script())", "each call has an id of its own in the script already", 3),
        Case("failed(go(script()))", "the first two reads fail, the third does not", [True, True, False]),
        Case("go(script()).answer", "the diagnosis, as before", DIAGNOSIS),
        Case(
            "go(script(), fails=[False, True, False])",
            "the script fails: its first read did not",
            Raises(AssertionError),
            given="a world in which the first read succeeds, and the second fails",
        ),
        Case(
            "go(script(), fails=[True, False, False])",
            "the script fails: its second read did not",
            Raises(AssertionError),
            given="a world in which the first read fails, and no other",
        ),
        Case(
            "go(script(), fails=[True, True, True])",
            "the script fails: it has not seen the file",
            Raises(AssertionError),
            given="a world in which every read fails",
        ),
        Case("go(script(), max_steps=too_few).answer", "None: the diagnosis is never given", None),
        Case("go(script(), max_steps=too_few + 1).answer", "the diagnosis: one step more is enough", DIAGNOSIS),
    ],
    (
        "Begin with diagnoses(), and put one more step between the first and the second. What must each step wait for?",
        "Steps two and three both come after('ERROR: use read', …), each with an id of its own. The last step comes "
        "after what only the file holds.",
        "asks(…r1…), after(error, asks(…r2, another wrong path…)), after(error, asks(…r3, calculator.py…)), "
        "after('return a - b', final(DIAGNOSIS)). The answer is the fourth reply, so a limit of three is too low.",
    ),
    lambda: {"go": go, "ids": ids, "failed": failed, "given_ids": given_ids},
)


# --- A front end ----------------------------------------------------------------------------------------------


def no_tests() -> None:
    """Fail with a text that may be taken for that of a call that was not run."""
    raise ToolFailure("not run: there are no tests")


def told(*replies: ModelReply, stop_at: str = "", safe: bool = False) -> list[Event]:
    """Return the events of a run of these replies; `stop_at` is the id of a call that a wrapper refuses."""
    registry, files = calculator_world()
    files["log.txt"] = "ERROR: the tests were not run"
    registry.register("run_tests", "Run the tests.", schema(), no_tests)
    strict = strict_execute(registry)

    def execute(asked: ToolCall) -> str:
        if asked.id == stop_at:
            raise Stop("deadline")
        return strict(asked)

    async def model(messages: Any, specs: Any) -> ModelReply:
        return next(script)

    async def collect() -> list[Event]:
        names = {"read"} if safe else set[str]()
        events = agent_events(run_agent_async, CODING_TASK, model, registry, execute=execute, safe=names)
        return [event async for event in events]

    script = iter(replies)
    return asyncio.run(collect())


def read(call_id: str, path: str = "calculator.py") -> ToolCall:
    """Write a call that reads a file."""
    return call(call_id, "read", path=path)


TWO = (asks(read("r1", "sum.py")), asks(read("r2")), final("Seen."))
THREE = (asks(read("r1"), read("r2", "sum.py"), read("r3")), final("Seen."))
WORDS = (asks(read("r1", "log.txt"), call("t1", "run_tests")), final("Seen."))
FRONT = Exercise(
    "13-front",
    {"states": FunctionType},
    [
        Case("states([])", "no call, no word", {}),
        Case("states(told(*two)[:3])", "r1 has not begun", {"r1": "waits"}, given="the first 3 events"),
        Case("states(told(*two)[:4])", "r1 is under way", {"r1": "runs"}, given="the first 4 events"),
        Case("states(told(*two)[:5])", "r1 has failed", {"r1": "error"}, given="the first 5 events"),
        Case("states(told(*two))", "r1 has failed, r2 has not", {"r1": "error", "r2": "result"}, given="all 13 events"),
        Case(
            "states(told(*three, safe=True)[:5])",
            "two run at once, the third waits",
            {"r1": "runs", "r2": "runs", "r3": "waits"},
            given="the first 5 events of three reads at once",
        ),
        Case(
            "states(told(*three, stop_at='r2'))",
            "r2 was refused, and r3 never began",
            {"r1": "result", "r2": "error", "r3": "not run"},
            given="all events of a run that a wrapper stopped at r2",
        ),
        Case(
            "states(told(*words))",
            "r1 gave a result, whatever words are in it, and t1 was run, and failed",
            {"r1": "result", "t1": "error"},
            given="all events of a run that reads the text ERROR: the tests were not run, and whose tests fail",
        ),
        Case("states(told(done))", "no call, no word", {}, given="all events of a run without a call"),
    ],
    (
        "Go through the events in order and keep one word for each id. Which three kinds of events tell of a call?",
        "A MessageCompleted of a reply asks for calls: they wait. After ToolStarted a call runs. At ToolEnded look at "
        "the content, and at the word that stands there so far.",
        'At ToolEnded: if the call still "waits" it was not run; else "error" if the content begins with ERROR: , and '
        '"result" if not. A message without calls has no key tool_calls, so use .get.',
    ),
    lambda: {"told": told, "two": TWO, "three": THREE, "words": WORDS, "done": final("Nothing to do.")},
)


# --- Batches --------------------------------------------------------------------------------------------------


def calls(*names: str) -> list[ToolCall]:
    """Return calls of these tools, with ids from c1 on."""
    return [ToolCall(f"c{n}", name, {}) for n, name in enumerate(names, 1)]


def by_id(made: Any) -> list[list[str]]:
    """Write batches by the ids of their calls."""
    return [[c.id for c in batch] for batch in made]


SAFE = frozenset({"read", "list"})
BATCHES = Exercise(
    "13-batches",
    {"batches": FunctionType},
    [
        Case("by_id(batches(calls('read', 'list', 'read'), safe))", "all three together", [["c1", "c2", "c3"]]),
        Case("by_id(batches(calls('edit', 'test'), safe))", "each alone, the edit first", [["c1"], ["c2"]]),
        Case(
            "by_id(batches(calls('read', 'read', 'edit', 'test', 'read', 'read'), safe))",
            "two reads together, the edit alone, the test alone, two reads together",
            [["c1", "c2"], ["c3"], ["c4"], ["c5", "c6"]],
        ),
        Case(
            "by_id(batches(calls('read', 'edit', 'read'), safe))",
            "the second read sees what the edit did, so it stays behind it",
            [["c1"], ["c2"], ["c3"]],
        ),
        Case("by_id(batches(calls('edit', 'read', 'list'), safe))", "the edit alone, then two", [["c1"], ["c2", "c3"]]),
        Case("by_id(batches(calls('read', 'read'), set()))", "nothing is safe: each alone", [["c1"], ["c2"]]),
        Case("batches([], safe)", "no calls, no batches", []),
    ],
    (
        "Walk through the calls and keep the list of batches. When does a call join the batch before it?",
        "It joins if it is safe and the last call so far is safe too. Otherwise it begins a batch of its own.",
        "if made and asked.name in safe and made[-1][-1].name in safe: made[-1].append(asked), else: "
        "made.append([asked]).",
    ),
    lambda: {"calls": calls, "by_id": by_id, "safe": SAFE},
)


# --- Find the bug: results by the order in which they came back -----------------------------------------------

BUG = Exercise(
    "13-bug",
    {"settled": FunctionType},
    [
        Case(
            'settled(["a", "b"], ["a", "b"], {"a": "order 1", "b": "order 2"})',
            "both have what they returned",
            [("a", "order 1"), ("b", "order 2")],
        ),
        Case(
            'settled(["a", "b", "c"], ["a"], {"a": "order 1"})',
            "the others were not run",
            [("a", "order 1"), ("b", NOT_RUN), ("c", NOT_RUN)],
        ),
        Case(
            'settled(["a", "b"], ["a", "b"], {"b": "order 2", "a": "order 1"})',
            "b was the first to return, and still each has its own",
            [("a", "order 1"), ("b", "order 2")],
        ),
        Case(
            'settled(["a", "b"], ["a", "b"], {"b": "order 2"})',
            "a is under way, b has returned",
            [("a", INTERRUPTED), ("b", "order 2")],
        ),
        Case(
            'settled(["a", "b"], ["a", "b"], {})', "both are under way", [("a", INTERRUPTED), ("b", INTERRUPTED)]
        ),
        Case('settled(["a"], ["a"], {"a": ""})', "a returned an empty text", [("a", "")]),
        Case("settled([], [], {})", "no calls", []),
    ],
    (
        "Let two calls run at once, and the second come back first. Which content is handed out first, and to whom?",
        "It hands them out in the order in which they came back, to whoever stands first. An id says whose each is.",
        "returned is a dict by id: look each call up in it, and take INTERRUPTED where it is not.",
    ),
    shipped="""
def settled(asked, started, returned):
    contents = iter(returned.values())
    told = []
    for call_id in asked:
        if call_id in started:
            told.append((call_id, next(contents, INTERRUPTED)))
        else:
            told.append((call_id, NOT_RUN))
    return told
""",
)

EXERCISES = [READS, FRONT, BATCHES, BUG]
