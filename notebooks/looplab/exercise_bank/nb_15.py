"""Exercises of notebook 15: a skill loaded once, a failure as an observation, a bill, a choice, failures for free."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

from agentloop import AgentResult, Json
from looplab.cases import Case, Exercise, Raises

# --- Loaded once ---------------------------------------------------------------------------------------------

RETURNS, INVOICES = "1. Look the order up.\n2. Pay for what “arrived”.", "1. Cancel the old one.\n2. Write a new one."
BY_NAME = {"process-a-return": RETURNS, "correct-an-invoice": INVOICES}


def observed(content: str, role: str = "tool") -> Json:
    """Return a message with this content."""
    if role == "user":
        return {"role": role, "content": content}
    return {"role": role, "tool_call_id": "c1", "name": "load_skill", "content": content}


def sentence_about(name: str) -> Callable[[Any], bool | str]:
    """Return a test of the sentence that stands for a skill in place of its text."""

    def test(value: Any) -> bool | str:
        return isinstance(value, str) and name in value and len(value) < 80 or f"{value!r}"

    return test


def refusal(load_skill: Any, name: str) -> Any:
    """Return whether the text of the LookupError lists all names; or what came instead."""
    try:
        return f"no error, but {load_skill(dict(BY_NAME), [], name)!r}"
    except LookupError as error:
        return all(known in str(error) for known in BY_NAME) or f"LookupError: {error}"


SKILL = Exercise(
    "15-skill",
    {"load_skill": FunctionType},
    [
        Case('load_skill(skills, [], "process-a-return")', "the text of the skill", RETURNS),
        Case(
            'load_skill(skills, [observed(to_json(RETURNS))], "process-a-return")',
            "a short sentence that names the skill: its text stands in the list",
            sentence_about("process-a-return"),
            given="a list in which this skill was loaded: the content of its observation is to_json(RETURNS)",
        ),
        Case(
            'load_skill(skills, [observed(to_json(RETURNS))], "correct-an-invoice")',
            "the text of the skill: another one was loaded",
            INVOICES,
            given="a list in which another skill was loaded",
        ),
        Case(
            'load_skill(skills, [observed(to_json(RETURNS), role="user")], "process-a-return")',
            "the text of the skill: a user quoted it, and no tool gave it",
            RETURNS,
            given="a list in which a user wrote the text",
        ),
        Case(
            "load_skill(skills, [observed(\"ERROR: no skill 'returns'; there are process-a-return\")], "
            '"process-a-return")',
            "the text of the skill: an error only named it",
            RETURNS,
            given="a list with an error that lists the names",
        ),
        Case('refusal(load_skill, "returns")', "a LookupError whose text lists all names", True),
    ],
    (
        "Three things can happen: the name is unknown, its text is in the list already, or it must be loaded.",
        "An observation is JSON that keeps letters such as ü and “ as they are: json.dumps(skills[name], "
        "ensure_ascii=False), or to_json(skills[name]) from agentloop, is what stands there if the skill was loaded.",
        'First: if name not in skills, raise LookupError. Then: if any message has the role "tool" and the content '
        "to_json(skills[name]), return a sentence. Else return the text.",
    ),
    lambda: {"skills": dict(BY_NAME), "observed": observed, "refusal": refusal, "RETURNS": RETURNS},
)


# --- Its failure is an observation ---------------------------------------------------------------------------


def ends(status: str, answer: str | None = None) -> Callable[[], AgentResult]:
    """Return a sub-agent that ends so."""
    return lambda: AgentResult(status, answer, 3, 900, [])


def fails(error: BaseException) -> Callable[[], AgentResult]:
    """Return a sub-agent that raises an exception."""

    def run() -> AgentResult:
        raise error

    return run


def is_error(about: str = "") -> Callable[[Any], bool | str]:
    """Return a test of an observation that is an error and says what it is about."""

    def test(value: Any) -> bool | str:
        return isinstance(value, str) and value.startswith("ERROR: ") and about in value or f"{value!r}"

    return test


def is_answer(value: Any) -> bool | str:
    """Say whether the answer came back, with or without the spaces at its ends."""
    return isinstance(value, str) and value.strip() == "On shelf 31." or f"{value!r}"


OBSERVE = Exercise(
    "15-observe",
    {"observe": FunctionType},
    [
        Case('observe(ends("done", "On shelf 31."), 12)', "the answer: it has just the 12 characters", is_answer),
        Case(r'observe(ends("done", "  On shelf 31.\n"), 12)', "the answer: spaces are not counted", is_answer),
        Case('observe(ends("step_limit"), 12)', "an error that names step_limit", is_error("step_limit")),
        Case('observe(ends("truncated"), 12)', "an error that names truncated", is_error("truncated")),
        Case('observe(ends("done", "On shelf 31, I think."), 12)', "an error: it is too long", is_error()),
        Case('observe(ends("done", " "), 12)', "an error: there is nothing in it", is_error()),
        Case('observe(fails(ConnectionError("is down")), 12)', "an error that says is down", is_error("is down")),
        Case('observe(fails(Stop("deadline", "it is late")), 12)', "an error that says deadline", is_error("deadline")),
        Case("observe(fails(KeyboardInterrupt()), 12)", "KeyboardInterrupt goes on", Raises(KeyboardInterrupt)),
    ],
    (
        "Call run() in a try. Which exceptions are failures, and which one is a person who wants all of it to end?",
        "except Exception catches failures, Stop too, and not KeyboardInterrupt. describe(error) makes a text of one.",
        "After the try: if the status is not done, an error with the status. Then take answer.strip(): if its length "
        "is not between 1 and most, an error. Else return the answer.",
    ),
    lambda: {"ends": ends, "fails": fails},
)


# --- The bill ------------------------------------------------------------------------------------------------


@dataclass
class Paid:
    """A job, as the bill needs it."""

    spent: int
    jobs: list[Paid] = field(default_factory=list)


FAMILY = Paid(1000, [Paid(200), Paid(500, [Paid(120), Paid(80, [Paid(30)])])])
BILL = Exercise(
    "15-bill",
    {"bill": FunctionType},
    [
        Case("bill(alone)", "all of it under main: nothing was given away", {"main": 700}),
        Case("bill(two)", "main less what its two sub-agents spent", {"main": 300, "main.1": 250, "main.2": 150}),
        Case(
            "bill(family)",
            "each job less those right below it, with its own path",
            {"main": 300, "main.1": 200, "main.2": 300, "main.2.1": 120, "main.2.2": 50, "main.2.2.1": 30},
        ),
        Case("sum(bill(family).values())", "the 1000 that the main job spent in all", 1000),
    ],
    (
        "A job spent itself what it spent in all, less what those right below it spent in all.",
        'Let the function call itself: bill(inner, f"{path}.{number}"), with path="main" as a default.',
        "paid = {path: job.spent - sum(inner.spent for inner in job.jobs)}. Then for number, inner in "
        "enumerate(job.jobs, 1), add the bill of inner to it, and return it.",
    ),
    lambda: {"alone": Paid(700), "two": Paid(700, [Paid(250), Paid(150)]), "family": FAMILY},
)


# --- Which one ------------------------------------------------------------------------------------------------

KINDS = ["system message", "skill", "sub-agent", "tool"]


def is_kind(value: Any) -> bool:
    """Say whether a value is one of those to choose from."""
    return isinstance(value, str) and value in KINDS


CHOOSE = Exercise(
    "15-choose",
    {"use": dict},
    [
        Case("[is_kind(use[name]) for name in use]", "each one of the four", [True] * 5),
        Case('use["tone"]', "the place for what every step needs", "system message"),
        Case('use["recall"]', "the place for what is long, and seldom needed", "skill"),
        Case('use["contracts"]', "what reads much and says little", "sub-agent"),
        Case('use["total"]', "what is one call with a short result", "tool"),
        Case('use["payout"]', "what is one call, and may have to be approved where somebody watches", "tool"),
    ],
    (
        "Ask of each: is it instructions or work? Is it needed always? How much must be read, and how much comes back?",
        "Instructions that are always needed are no skill. Work that is one call with a short result needs no loop.",
        "One of the five reads much and says little. One is long and seldom needed. One is needed in every answer. The "
        "other two are single calls.",
    ),
    lambda: {"is_kind": is_kind},
)


# --- Find the bug: failures for free --------------------------------------------------------------------------


def handed(hand_out: Any, budget: int, *runs: tuple[str, int]) -> tuple[list[int], Any]:
    """Hand out a task for each run, which spends at most its share; return the shares, and what came back."""
    shares: list[int] = []

    def run(task: str, share: int) -> AgentResult:
        status, wants = runs[len(shares)]
        shares.append(share)
        return AgentResult(status, task if status == "done" else None, 1, min(wants, share), [])

    return shares, hand_out(budget, [f"task {n}" for n in range(1, len(runs) + 1)], run)


FAILED = ("token_budget", 10**6)
BUG = Exercise(
    "15-bug",
    {"hand_out": FunctionType},
    [
        Case(
            'handed(hand_out, 1000, ("done", 200), ("done", 300))',
            "shares of 500 and 400; both answers, and 500 spent",
            ([500, 400], (["task 1", "task 2"], 500)),
        ),
        Case(
            'handed(hand_out, 1000, ("token_budget", 500), ("done", 200))',
            "shares of 500 and 250: what failed has spent its 500 too",
            ([500, 250], ([None, "task 2"], 700)),
        ),
        Case(
            'handed(hand_out, 1000, ("truncated", 40), ("step_limit", 60), ("done", 50))',
            "shares of 500, 480 and 450: each failure has spent a little",
            ([500, 480, 450], ([None, None, "task 3"], 150)),
        ),
        Case(
            "handed(hand_out, 1000, *[FAILED] * 6)",
            "six shares, each half of the last, and never more than the 1000 together",
            ([500, 250, 125, 62, 31, 16], ([None] * 6, 984)),
        ),
        Case(
            "handed(hand_out, 4, *[FAILED] * 6)",
            "shares of 2 and 1; then there is no half left to give",
            ([2, 1], ([None, None], 3)),
        ),
    ],
    (
        "Let the first of two tasks fail, after it has spent its whole share. What is the share of the second?",
        "A run that failed has asked its model too. Where is that added?",
        "Add result.tokens to spent right after the run, whatever its status.",
    ),
    lambda: {"handed": handed, "FAILED": FAILED},
    shipped="""
def hand_out(budget, tasks, run):
    answers, spent = [], 0
    for task in tasks:
        share = (budget - spent) // 2
        if share < 1:
            return answers, spent
        result = run(task, share)
        if result.status == "done":
            answers.append(result.answer)
            spent += result.tokens
        else:
            answers.append(None)
    return answers, spent
""",
)

EXERCISES: list[Exercise] = [SKILL, OBSERVE, BILL, CHOOSE, BUG]
