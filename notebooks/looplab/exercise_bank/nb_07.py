"""Exercises of notebook 07: turns, a hook that blocks and mends, the order of wrappers, a hook that spoils a result."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from agentloop import Execute, Json, ModelReply, Stop, ToolCall, ToolRegistry, asks, call, run_agent, with_hooks
from looplab.cases import Case, Exercise, Patient


def desk() -> tuple[ToolRegistry, list[str]]:
    """Return a registry of five tools, and the names of the calls that really ran."""
    ran: list[str] = []
    registry = ToolRegistry()

    def tool(name: str, result: Any, /, **types: str) -> None:
        def fn(**args: Any) -> Any:
            ran.append(name)
            return result(len(ran))

        properties = {arg: {"type": json_type} for arg, json_type in types.items()}
        registry.register(name, "A tool of this desk.", {"type": "object", "properties": properties}, fn)

    tool("get_order", lambda n: {"item": "keyboard"}, order_id="string", page="integer")
    tool("get_customer", lambda n: {"name": "Ada"}, name="string")
    tool("job_status", lambda n: f"{n} of 9 done")
    tool("read_log", lambda n: "." * 500 + str(n) + "." * 500)
    tool("delete_order", lambda n: "gone", order_id="string")
    return registry, ran


A, B = ("get_order", {"order_id": "A123"}), ("get_customer", {"name": "Ada"})
STATUS, LOG = ("job_status", Json()), ("read_log", Json())

# --- Turns ---------------------------------------------------------------------------------------------------


def outcomes(refuse_seen: Any, limit: int, *calls: tuple[str, Json]) -> list[str]:
    """Run calls through the wrapper; say of each whether it ran, was refused, or what else came back."""
    registry, ran = desk()
    execute, said = refuse_seen(registry, limit), []
    for n, (name, args) in enumerate(calls):
        before = len(ran)
        told = execute(ToolCall(f"c{n}", name, args))
        refused = isinstance(told, str) and told.startswith("ERROR: ")
        said.append("ran" if len(ran) > before and not refused else "refused" if refused and len(ran) == before
                    else f"{told!r}, although it {'ran' if len(ran) > before else 'did not run'}")
    return said


def second_run(refuse_seen: Any) -> list[str]:
    """Run the same call three times in one run, then once in another."""
    outcomes(refuse_seen, 2, A, A, A)
    return outcomes(refuse_seen, 2, A)


TURNS = Exercise(
    "07-turns",
    {"refuse_seen": FunctionType},
    [
        Case("outcomes(refuse_seen, 2, A, A, A)", "it gave the same result twice, so the third is refused",
             ["ran", "ran", "refused"], given="limit 2, calls A A A"),
        Case("outcomes(refuse_seen, 2, A, B, A, B, A, B)", "both are refused the third time, though in turn",
             ["ran"] * 4 + ["refused"] * 2, given="limit 2, calls A B A B A B"),
        Case("outcomes(refuse_seen, 3, A, B, A, B, A, B, A)", "the fourth A is refused",
             ["ran"] * 6 + ["refused"], given="limit 3, calls A B A B A B A"),
        Case("outcomes(refuse_seen, 2, *[STATUS] * 5)", "all run: the answer changes each time",
             ["ran"] * 5, given="limit 2, five times the status of a job that moves on"),
        Case('outcomes(refuse_seen, 1, ("get_order", {"order_id": "A1", "page": 1}), '
             '("get_order", {"page": 1, "order_id": "A1"}))',
             "the second is refused: the order of arguments says nothing",
             ["ran", "refused"], given="limit 1, the same arguments in another order"),
        Case('outcomes(refuse_seen, 1, ("get_order", {"order_id": "A1"}), ("get_order", {"order_id": "A2"}))',
             "both run: other arguments, another call", ["ran", "ran"], given="limit 1, two different orders"),
        Case("second_run(refuse_seen)", "it runs: each run has a wrapper of its own", ["ran"],
             given="the same call in a second run"),
    ],
    (
        "What must be counted: calls, or calls together with their result? And for how long is it remembered?",
        "call_key(call) is the same for the same tool and arguments. Keep the results of each key in a dictionary made "
        "inside refuse_seen.",
        "seen = {}. Inside: results = seen.setdefault(call_key(call), []); refuse if any result is in it "
        "`limit` times; else run, append, return.",
    ),
    lambda: {"outcomes": outcomes, "second_run": second_run, "A": A, "B": B, "STATUS": STATUS},
)


# --- A hook --------------------------------------------------------------------------------------------------


def hooked_run(guard: Any, asked: ToolCall) -> tuple[str, list[str]]:
    """Run a call with the hook; return the observation and what ran."""
    registry, ran = desk()
    return with_hooks(registry, before=guard)(asked), ran


HOOK = Exercise(
    "07-hook",
    {"guard": FunctionType},
    [
        Case('guard(call("c1", "get_customer", name="Ada"))', "None: this call goes its way", None),
        Case('guard(call("c1", "delete_order", order_id="A123"))', 'a text that starts with "ERROR: "',
             lambda told: isinstance(told, str) and told.startswith("ERROR: ")),
        Case('hooked_run(guard, call("c1", "delete_order", order_id="A123"))[1]', "nothing", [],
             given="delete_order, with the hook: what ran"),
        Case('guard(call("c1", "get_order", order_id="a123"))', "the same call, with A123",
             ToolCall("c1", "get_order", {"order_id": "A123"})),
        Case('guard(call("c1", "get_order", order_id="a123", page=2))', "the same call, with A123 and its page",
             ToolCall("c1", "get_order", {"order_id": "A123", "page": 2})),
        Case('hooked_run(guard, call("c1", "get_order", page=2))', "it runs: what has no order_id is not the hook's",
             ('{"item": "keyboard"}', ["get_order"]), given="get_order without an order_id: observation, what ran"),
        Case('hooked_run(guard, call("c1", "get_order", order_id=7))[0]',
             "the registry's sentence: a hook leaves to it what it cannot mend",
             lambda told: "argument 'order_id' must be of type string" in told,
             given="get_order with a number as order_id: the observation"),
    ],
    (
        "A hook returns one of three things: None, a text, or another ToolCall. Which case needs which?",
        "replace(call, args={**call.args, ...}) makes a changed call. Only a text has upper().",
        'if call.name == "delete_order": return "ERROR: …". If it is get_order and '
        'isinstance(call.args.get("order_id"), str): return replace(call, args=call.args | {"order_id": …}), with '
        'call.args["order_id"].upper() in the place of the dots.',
    ),
    lambda: {"hooked_run": hooked_run},
)


# --- The order of wrappers -----------------------------------------------------------------------------------


def run_wrapped(wrapped: Any, *calls: tuple[str, Json]) -> Json:
    """Run calls, one a step, in the reader's wrappers; return how it ended, the log, what ran, the longest result."""
    registry, ran = desk()
    log: list[str] = []
    replies = [asks(ToolCall(f"c{n}", name, args)) for n, (name, args) in enumerate(calls)]
    result = run_agent("Go on.", Patient([*replies, ModelReply("Done.")]), registry, max_steps=9, token_budget=10**6,
                       execute=wrapped(registry, log))
    read = [message["content"] for message in result.messages if message["role"] == "tool"]
    return {"status": result.status, "log": log, "ran": ran, "longest": max(map(len, read))}


ORDER = Exercise(
    "07-order",
    {"wrapped": FunctionType},
    [
        Case('run_wrapped(wrapped, A, B)["log"]', "both names", ["get_order", "get_customer"],
             given="two calls: the log"),
        Case('run_wrapped(wrapped, A, A, A)["status"]', "repeated_call", "repeated_call",
             given="the same call three times: how the run ends"),
        Case('run_wrapped(wrapped, A, A, A)["ran"]', "two: the third is not run", ["get_order"] * 2,
             given="the same call three times: what ran"),
        Case('run_wrapped(wrapped, A, A, A)["log"]', "three: the refused one was asked for too, and is in the log",
             ["get_order"] * 3, given="the same call three times: the log"),
        Case('run_wrapped(wrapped, LOG)["longest"]', "200 characters at most", lambda size: size <= 200,
             given="a tool that returns 1,000 characters: the longest observation"),
        Case('run_wrapped(wrapped, LOG, LOG, LOG)["status"]',
             "repeated_call: the results differ only where they were cut, so the model was shown the same twice",
             "repeated_call", given="three long results that differ in the middle: how the run ends"),
    ],
    (
        "Which wrapper must see a call that another one refuses? It stands outside of that one.",
        "Write it from the inside to the outside: what is nearest to the registry comes first. The log is a hook.",
        "execute = trim_result(registry, 200); then stop_on_repeat(execute); then with_hooks(execute, before=…), where "
        "the hook appends call.name to log and returns None.",
    ),
    lambda: {"run_wrapped": run_wrapped, "A": A, "B": B, "LOG": LOG},
)


# --- Find the bug: a hook that spoils a result ---------------------------------------------------------------


def full_disk(asked: ToolCall, told: str) -> None:
    """A hook that fails."""
    raise OSError("no space left on the disk")


def with_after(hooked: Any, after: Any, execute: Execute | None = None) -> tuple[str, list[str]]:
    """Run delete_order with the reader's wrapper; return the observation and what ran."""
    registry, ran = desk()
    return hooked(execute or registry, after)(call("c1", "delete_order", order_id="A123")), ran


def noted(hooked: Any) -> list[tuple[str, str]]:
    """Return what a hook is told."""
    notes: list[tuple[str, str]] = []
    with_after(hooked, lambda asked, told: notes.append((asked.name, told)))
    return notes


def stopped(asked: ToolCall) -> str:
    """An execute that ends the run."""
    raise Stop("deadline", "the time is over")


def status_of(hooked: Any) -> str:
    """Return how a run ends whose execute raises Stop inside the reader's wrapper."""
    model = Patient([asks(call("c1", "delete_order", order_id="A123")), ModelReply("Done.")])
    return run_agent("Go on.", model, desk()[0], execute=hooked(stopped, lambda asked, told: None)).status


BUG = Exercise(
    "07-bug",
    {"hooked": FunctionType},
    [
        Case("with_after(hooked, lambda asked, told: None)", "the result, and one call that ran",
             ('"gone"', ["delete_order"]), given="a hook that works: observation, what ran"),
        Case("noted(hooked)", "the call and its observation, once", [("delete_order", '"gone"')],
             given="what the hook is told"),
        Case("with_after(hooked, full_disk)", "the same result: the order is gone, whatever the log says",
             ('"gone"', ["delete_order"]), given="a hook that fails: observation, what ran"),
        Case("status_of(hooked)", "deadline: a wrapper inside ended the run", "deadline",
             given="an execute that raises Stop: how the run ends"),
    ],
    (
        "What has already happened when the hook fails? And what does the model do when it reads that it failed?",
        "The try is too wide: it guards the call together with the hook, and swallows a Stop as well.",
        "Call execute before the try. Only after(call, observation) stands inside it; its exception is passed over.",
    ),
    lambda: {"with_after": with_after, "noted": noted, "status_of": status_of, "full_disk": full_disk},
    shipped="""
def hooked(execute, after):
    def run(call):
        try:
            observation = execute(call)
            after(call, observation)
            return observation
        except Exception as error:
            return f"ERROR: {call.name} failed: {error}"
    return run
""",
)

EXERCISES = [TURNS, HOOK, ORDER, BUG]
