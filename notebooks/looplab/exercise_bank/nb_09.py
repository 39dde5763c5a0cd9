"""Exercises of notebook 09: three stuck runs, a goal, a rule for redaction, a comparison that stops too early."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from agentloop import (
    AgentResult,
    Json,
    ModelReply,
    asks,
    call,
    explain,
    final,
    redact_message,
    run_agent,
    to_json,
)
from looplab.cases import Case, Exercise, Patient
from looplab.worlds import REFUND_TASK, order_desk

CAUSES = ("two calls in turn", "a long result", "a slow tool", "a wrong argument", "a refusal")


def is_cause(value: Any) -> bool:
    """Say whether a value is one of the causes to choose from."""
    return isinstance(value, str) and value in CAUSES


STUCK = Exercise(
    "09-stuck",
    {"causes": dict, "steps": dict},
    [
        Case("sorted(causes)", "the three runs", ["run_a", "run_b", "run_c"]),
        Case("[is_cause(causes[run]) for run in sorted(causes)]", "each one of the five causes", [True, True, True]),
        Case('causes["run_a"]', "what its decisions show", "two calls in turn"),
        Case('causes["run_b"]', "what its tokens show", "a long result"),
        Case('causes["run_c"]', "what its seconds show", "a slow tool"),
        Case('steps["run_a"]', "the step whose call was made before", 3),
        Case('steps["run_b"]', "the step whose result made the next prompt so much longer", 1),
        Case('steps["run_c"]', "the first step that took so long", 1),
    ],
    (
        "In each run another column is odd: the decisions, the tokens, or the seconds of the tool. Which is it?",
        "run_a: does a decision come back? run_b: between which steps do the tokens jump, and what was appended there? "
        "run_c: compare model s and tool s.",
        "In run_a the third call is the first one again, in turn with the second. In run_b look at list_orders. In "
        "run_c each call takes half a minute.",
    ),
    lambda: {"is_cause": is_cause},
)


# --- A goal --------------------------------------------------------------------------------------------------


def desk(*replies: ModelReply, max_steps: int = 8) -> AgentResult:
    """Run replies at the order desk, for real."""
    return run_agent(REFUND_TASK, Patient(list(replies)), order_desk()[0], max_steps=max_steps)


LOOK_UP = asks(call("c1", "get_order", order_id="A123"))


def refund(call_id: str, amount: float, order_id: str = "A123") -> ModelReply:
    """Return a reply that asks for a refund."""
    return asks(call(call_id, "issue_refund", order_id=order_id, amount=amount))


def no_refund_ran() -> AgentResult:
    """Return a run in which a person said no to the refund."""
    registry, _ = order_desk()

    def reject(tool_call: Any) -> str:
        rejected = "ERROR: a person rejected this action"
        return rejected if tool_call.name == "issue_refund" else registry(tool_call)

    return run_agent(REFUND_TASK, Patient([LOOK_UP, refund("c2", 5000), final("Sorry.")]), registry, execute=reject)


DONE = final("5000 rupees were paid back.")
GOAL = Exercise(
    "09-goal",
    {"paid_in_full": FunctionType},
    [
        Case("paid_in_full(desk(look_up, refund('c2', 5000), done))", "True: 5000 of 5000", True),
        Case(
            "paid_in_full(desk(look_up, refund('c2', 2500), done))", "False: half of it, whatever the model says", False
        ),
        Case(
            "paid_in_full(desk(look_up, refund('c2', 2500), refund('c3', 2500), done))",
            "True: two halves",
            True,
        ),
        Case("paid_in_full(desk(look_up, done))", "False: nothing was paid, whatever the model says", False),
        Case(
            "paid_in_full(no_refund_ran())", "False: a person said no", False, given="a refund that a person rejected"
        ),
        Case(
            "paid_in_full(desk(look_up, refund('c2', 9000), refund('c3', 5000), done))",
            "True: the first one failed, the second was paid",
            True,
        ),
        Case("paid_in_full(desk(final('Hello.')))", "False: no order was found", False),
        Case(
            'explain(desk(look_up, max_steps=1), {"refund paid": paid_in_full})',
            "stopped at the step limit after 1 step: refund not paid",
            "stopped at the step limit after 1 step: refund not paid",
        ),
    ],
    (
        "Only observations count: messages with the role tool. Which two tools matter, and what do their results hold?",
        "Leave out contents that begin with ERROR: , and decode the rest with json.loads. Add up the refunds.",
        'results = [json.loads(m["content"]) for the tool messages of one name that are no error]. Compare the sum of '
        "the amounts with unit_price * qty; if no order was found, return False.",
    ),
    lambda: {
        "desk": desk,
        "look_up": LOOK_UP,
        "refund": refund,
        "done": DONE,
        "no_refund_ran": no_refund_ran,
        "explain": explain,
    },
)


# --- A rule for redaction ------------------------------------------------------------------------------------


def written_as(hide: Any, args: Json) -> Json:
    """Return the arguments of a call as they are written into a trace."""
    asked = [{"id": "c1", "name": "pay", "args": args}]
    shown: Json = redact_message({"role": "assistant", "content": "", "tool_calls": asked}, hide)["tool_calls"][0][
        "args"
    ]
    return shown


def result_as(hide: Any, result: Json) -> str:
    """Return a result as it is written into a trace."""
    message = {"role": "tool", "tool_call_id": "c1", "name": "pay", "content": to_json(result)}
    text: str = redact_message(message, hide)["content"]
    return text


REDACT = Exercise(
    "09-redact",
    {"hide": FunctionType},
    [
        Case('written_as(hide, {"card": "4000123412344242"})', "the last four characters", {"card": "…4242"}),
        Case('written_as(hide, {"email": "a@b.example"})', "no address", {"email": "(redacted)"}),
        Case('written_as(hide, {"api_key": "zq-1"})', "no key: redact_secrets hides it", {"api_key": "(redacted)"}),
        Case('written_as(hide, {"order_id": "A123", "qty": 2})', "both as they are", {"order_id": "A123", "qty": 2}),
        Case('written_as(hide, {"card": None})', "as it is: there is no card", {"card": None}),
        Case(
            'result_as(hide, {"customer": {"email": "a@b.example", "name": "Asha"}, "card": "12344242"})',
            "address and card hidden, in a result too, and the name shown",
            '{"customer": {"email": "(redacted)", "name": "Asha"}, "card": "…4242"}',
        ),
    ],
    (
        "hide is called for every field, with its name and its value, and returns what is written.",
        "Look at card and email first. For everything else, redact_secrets(name, value) says what is written.",
        'if name == "card" and isinstance(value, str): return "…" + value[-4:].',
    ),
    lambda: {"written_as": written_as, "result_as": result_as},
)


# --- Find the bug: a comparison that stops too early ---------------------------------------------------------


def listed(*contents: str, call_id: str = "c1", city: str = "Pune") -> list[Json]:
    """Return a small run: a task, a reply with a call, and observations or texts."""
    asked = [{"id": call_id, "name": "get_weather", "args": {"city": city}}]
    start: list[Json] = [
        {"role": "user", "content": "How hot?"},
        {"role": "assistant", "content": "", "tool_calls": asked},
    ]
    told = [{"role": "tool", "tool_call_id": call_id, "name": "get_weather", "content": text} for text in contents]
    return start + told


BUG = Exercise(
    "09-bug",
    {"first_change": FunctionType},
    [
        Case('first_change(listed("30"), listed("30"))', "None: nothing differs", None),
        Case('first_change(listed("30"), listed("30", call_id="x9"))', "None: only ids differ", None),
        Case('first_change(listed("30"), listed("31"))', "2: the result differs", 2),
        Case('first_change(listed("30"), listed("30", city="Delhi"))', "1: the call differs", 1),
        Case('first_change(listed("30"), listed())', "2: the second run broke off before it", 2),
        Case('first_change(listed(), listed("30"))', "2: the first run broke off before it", 2),
        Case('first_change(listed("30", "31"), listed("30"))', "3: the message that only one run has", 3),
        Case("first_change([], [])", "None: two empty runs are the same", None),
    ],
    (
        "What does zip do with two lists of different lengths?",
        "It stops with the shorter one. If all messages up to there are the same, the lengths decide.",
        "After the loop: if the lengths differ, return the shorter one, for that is the index of the first message "
        "that only one run has.",
    ),
    lambda: {"listed": listed},
    shipped="""
def first_change(a, b):
    def told(message):
        calls = [(c["name"], c["args"]) for c in message.get("tool_calls", [])]
        return message["role"], message["content"], calls

    for i, (old, new) in enumerate(zip(a, b)):
        if told(old) != told(new):
            return i
    return None
""",
)

EXERCISES = [STUCK, GOAL, REDACT, BUG]
