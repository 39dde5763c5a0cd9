"""Exercises of notebook 08: a key for a refund, approval by amount, a broken exchange, a resume that runs too much."""

from __future__ import annotations

from copy import deepcopy
from types import FunctionType
from typing import Any

from agentloop import (
    INTERRUPTED,
    WAITING,
    AgentResult,
    Execute,
    Json,
    ToolCall,
    asks,
    call,
    check_messages,
    decide,
    final,
    require_approval,
    run_agent,
    verdict_key,
)
from looplab.cases import Case, Exercise, Patient, same_messages
from looplab.worlds import REFUND_TASK, RISKY, order_desk

# --- One key for one refund ----------------------------------------------------------------------------------


def asked(call_id: str, order_id: str, amount: float) -> ToolCall:
    """Return a call for a refund."""
    return call(call_id, "issue_refund", order_id=order_id, amount=amount)


def turned(call_id: str, order_id: str, amount: float) -> ToolCall:
    """Return the same call with its arguments in another order."""
    return call(call_id, "issue_refund", amount=amount, order_id=order_id)


def same_key(refund_key: Any, one: ToolCall, other: ToolCall) -> bool:
    """Say whether two calls have the same key."""
    return bool(refund_key(one) == refund_key(other))


KEY = Exercise(
    "08-key",
    {"refund_key": FunctionType},
    [
        Case('type(refund_key(asked("c2", "A123", 5000))).__name__', "a text", "str"),
        Case(
            'same_key(refund_key, asked("c2", "A123", 5000), asked("c7", "A123", 5000))',
            "True: the same refund, asked for a second time",
            True,
        ),
        Case(
            'same_key(refund_key, asked("c2", "A123", 5000), turned("c2", "A123", 5000))',
            "True: the same arguments, in another order",
            True,
        ),
        Case(
            'same_key(refund_key, asked("c2", "A123", 5000), asked("c2", "A123", 2500))',
            "False: another amount",
            False,
        ),
        Case(
            'same_key(refund_key, asked("c2", "A123", 5000), asked("c2", "A124", 5000))',
            "False: another order",
            False,
        ),
        Case(
            'same_key(refund_key, asked("c2", "A1", 235000), asked("c2", "A123", 5000))',
            "False: the same characters, cut at another place",
            False,
        ),
    ],
    (
        "What makes two calls the same refund? Put that into the key, and nothing else.",
        "The id of the call differs each time, so it does not belong there. The arguments do, in a fixed order.",
        "json.dumps(call.args, sort_keys=True) keeps the names, the order and the borders between the values.",
    ),
    lambda: {"asked": asked, "turned": turned, "same_key": same_key},
)


# --- Small refunds need nobody -------------------------------------------------------------------------------


def desk_run(ask_above: Any, limit: float, tool_call: ToolCall, decision: bool | None = None) -> tuple[str, list[str]]:
    """Run one call at the order desk behind the gate; return how the run ended, and what ran."""
    registry, ran = order_desk()
    verdicts = {} if decision is None else {verdict_key(tool_call): decision}
    execute = ask_above(registry, registry.check, limit, verdicts)
    result = run_agent(REFUND_TASK, Patient([asks(tool_call), final("Done.")]), registry, execute=execute)
    return result.status, ran


PAID = ("done", ["issue_refund(A123, 800)"])
AMOUNT = Exercise(
    "08-amount",
    {"ask_above": FunctionType},
    [
        Case(
            'desk_run(ask_above, 1000, asked("c1", "A123", 800))',
            "done, and the refund ran: 800 is not above 1000",
            PAID,
        ),
        Case(
            'desk_run(ask_above, 800, asked("c1", "A123", 800))',
            "done, and the refund ran: 800 is not above 800",
            PAID,
        ),
        Case(
            'desk_run(ask_above, 799, asked("c1", "A123", 800))',
            "waiting_for_approval, and nothing ran",
            (WAITING, []),
        ),
        Case('desk_run(ask_above, 799, asked("c1", "A123", 800), True)', "done, after a yes", PAID),
        Case(
            'desk_run(ask_above, 799, asked("c1", "A123", 800), False)',
            "done, after a no, and nothing ran",
            ("done", []),
        ),
        Case(
            'desk_run(ask_above, 0, call("c1", "get_order", order_id="A123"))',
            "done: a look-up needs nobody",
            ("done", ["get_order(A123)"]),
        ),
        Case(
            'desk_run(ask_above, 799, asked("c1", "A123", "a lot"))',
            "done, and nothing ran: nobody is asked about a call that cannot run",
            ("done", []),
        ),
        Case(
            'desk_run(ask_above, 799, call("c1", "issue_refund", order_id="A123"))',
            "done, and nothing ran: without an amount the call cannot run",
            ("done", []),
        ),
    ],
    (
        "You have a gate that asks about every refund. Which calls should go around it?",
        'require_approval(execute, check, {"issue_refund"}, verdicts) is that gate. Before you look at the amount, '
        "make sure that there is one: check(call.name, call.args) is None.",
        'In run(call): if it is a refund, its check is None, and call.args["amount"] <= limit, return execute(call). '
        "Else return gate(call).",
    ),
    lambda: {"desk_run": desk_run, "asked": asked},
)


# --- Repair a broken exchange --------------------------------------------------------------------------------

START: list[Json] = [{"role": "system", "content": "Use the tools."}, {"role": "user", "content": "Go."}]


def broken(answered: int, count: int = 3) -> list[Json]:
    """Return a list whose last reply asks for `count` calls, of which `answered` have their observation."""
    ids = "abc"[:count]
    calls = [{"id": i, "name": "get_order", "args": {"order_id": "A123"}} for i in ids]
    seen = [{"role": "tool", "tool_call_id": i, "name": "get_order", "content": "{}"} for i in ids[:answered]]
    return [*START, {"role": "assistant", "content": "", "tool_calls": calls}, *seen]


def repaired(answered: int, count: int = 3) -> list[Json]:
    """Return the list as it should be after the repair."""
    whole = broken(count, count)
    return [
        m | {"content": INTERRUPTED} if m["role"] == "tool" and i - 3 >= answered else m for i, m in enumerate(whole)
    ]


def accepted(repair: Any, messages: list[Json]) -> bool:
    """Say whether check_messages accepts the repaired list."""
    check_messages(repair(messages))
    return True


def left_alone(repair: Any, messages: list[Json]) -> bool:
    """Say whether the list that was given is as it was."""
    before = deepcopy(messages)
    repair(messages)
    return messages == before


REPAIR = Exercise(
    "08-repair",
    {"repair": FunctionType},
    [
        Case(
            "repair(broken(2))",
            "the third call is answered with INTERRUPTED",
            same_messages(repaired(2)),
            given="three calls, of which two are answered",
        ),
        Case(
            "repair(broken(0))",
            "all three are answered with INTERRUPTED, in order",
            same_messages(repaired(0)),
            given="three calls, of which none is answered",
        ),
        Case(
            "repair(broken(3))",
            "the list as it is: nothing is open",
            same_messages(broken(3)),
            given="three calls, all answered",
        ),
        Case(
            "repair(start)",
            "the list as it is: no reply yet",
            same_messages(START),
            given="a system message and a task",
        ),
        Case("accepted(repair, broken(1, 2))", "check_messages accepts it", True),
        Case("left_alone(repair, broken(1))", "True: the list that was given is as it was", True),
    ],
    (
        "A function of notebook 04 says which calls of a list are open.",
        "For each of open_calls(messages) one message: role, tool_call_id, name, content. Return a new list.",
        'messages + [{"role": "tool", "tool_call_id": c.id, "name": c.name, "content": INTERRUPTED} for c in '
        "open_calls(messages)].",
    ),
    lambda: {"broken": broken, "start": deepcopy(START), "accepted": accepted, "left_alone": left_alone},
)


# --- Find the bug: a resume that runs too much ---------------------------------------------------------------


def waiting_run(*calls: ToolCall) -> tuple[AgentResult, Execute, list[str]]:
    """Return a run of one reply that waits at its first refund, an execute that says yes, and what ran since."""
    registry, _ = order_desk()
    gate = require_approval(registry, registry.check, RISKY)
    waiting = run_agent(REFUND_TASK, Patient([asks(*calls)]), registry, execute=gate)
    registry, ran = order_desk()
    yes = require_approval(registry, registry.check, RISKY, decide(waiting, dict.fromkeys(open_ids(waiting), True)))
    return waiting, yes, ran


def open_ids(result: AgentResult) -> list[str]:
    """Return the ids of the calls that wait."""
    done = {m["tool_call_id"] for m in result.messages if m["role"] == "tool"}
    return [c["id"] for c in result.messages[2]["tool_calls"] if c["id"] not in done]


def resumed(resume: Any, *calls: ToolCall) -> tuple[list[Json], list[str]]:
    """Resume a run that waits; return its messages and what ran after the decision."""
    waiting, execute, ran = waiting_run(*calls)
    return resume(waiting, execute), ran


LOOK_UP = call("a", "get_order", order_id="A123")
REFUND = call("b", "issue_refund", order_id="A123", amount=5000)
SUM = call("c", "calculator", expression="2500 * 2")
BUG = Exercise(
    "08-bug",
    {"resume": FunctionType},
    [
        Case(
            "resumed(resume, refund)[1]",
            "the refund ran",
            ["issue_refund(A123, 5000)"],
            given="a refund alone: what ran",
        ),
        Case(
            "resumed(resume, look_up, refund)[1]",
            "the refund ran, and the look-up did not run again",
            ["issue_refund(A123, 5000)"],
            given="a look-up that has run, and a refund that waits: what ran after the yes",
        ),
        Case(
            "[m['tool_call_id'] for m in resumed(resume, look_up, refund)[0] if m['role'] == 'tool']",
            "one observation for each call, in order: a, b",
            ["a", "b"],
            given="a look-up that has run, and a refund that waits: whose observations are in the list",
        ),
        Case(
            "resumed(resume, look_up, refund, total)[1]",
            "the refund, then the calculation after it",
            ["issue_refund(A123, 5000)", "calculator(2500 * 2)"],
            given="a look-up, a refund that waits, and a calculation: what ran after the yes",
        ),
        Case("check_messages(resumed(resume, look_up, refund, total)[0])", "check_messages accepts the list", None),
    ],
    (
        "Write down the tool messages of the list that comes back. Which call has two of them?",
        "The loop goes through all calls of the last reply. Some of these have their observation already.",
        "for tool_call in open_calls(messages): is all that has to run.",
    ),
    lambda: {"resumed": resumed, "look_up": LOOK_UP, "refund": REFUND, "total": SUM},
    shipped="""
def resume(waiting, execute):
    messages = deepcopy(waiting.messages)
    last_reply = [m for m in messages if m["role"] == "assistant"][-1]
    for asked in last_reply["tool_calls"]:
        tool_call = ToolCall(**asked)
        content = execute(tool_call)
        messages.append({"role": "tool", "tool_call_id": tool_call.id, "name": tool_call.name, "content": content})
    return messages
""",
)

EXERCISES = [KEY, AMOUNT, REPAIR, BUG]
