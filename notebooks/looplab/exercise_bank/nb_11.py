"""Exercises of notebook 11: a budget, a tool, a workflow with a way out, what to build, a plan that was not dropped."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import FunctionType
from typing import Any

from agentloop import (
    WEATHER_TASK,
    AgentResult,
    Json,
    ToolCall,
    ToolRegistry,
    call,
    final,
    run_agent,
    weather_script,
    weather_world,
)
from looplab.cases import Case, Exercise, Patient
from looplab.worlds import ORDER_TASK, POLICIES, order_desk, recovers

# --- A budget ------------------------------------------------------------------------------------------------

RUNS: dict[str, Callable[[int], AgentResult]] = {
    "the order desk": lambda budget: run_agent(
        ORDER_TASK, Patient(list(recovers())), order_desk()[0], token_budget=budget
    ),
    "the weather": lambda budget: run_agent(
        WEATHER_TASK, Patient(weather_script()), weather_world()[0], token_budget=budget
    ),
    "one reply": lambda budget: run_agent("Hello?", Patient([final("Hello.")]), ToolRegistry(), token_budget=budget),
    "a long answer": lambda budget: run_agent(
        "Write.", Patient([final("word " * 900)]), ToolRegistry(), token_budget=budget
    ),
}


def with_and_below(smallest_budget: Any, run: str) -> Any:
    """Say how a run ends with the budget that is returned, and with one token less."""
    budget = smallest_budget(RUNS[run](10**6))
    if type(budget) is not int or budget < 2:
        return f"the budget {budget!r}"
    return [RUNS[run](limit).status for limit in (budget, budget - 1)]


ENDS = ["done", "token_budget"]
BUDGET = Exercise(
    "11-budget",
    {"smallest_budget": FunctionType},
    [
        Case('with_and_below(smallest_budget, "the order desk")', "done, and with one token less token_budget", ENDS),
        Case('with_and_below(smallest_budget, "the weather")', "done, and with one token less token_budget", ENDS),
        Case('with_and_below(smallest_budget, "one reply")', "done, and with one token less token_budget", ENDS),
        Case('with_and_below(smallest_budget, "a long answer")', "done, and with one token less token_budget", ENDS),
    ],
    (
        "The budget is checked before each call, on what was spent and the prompt to come. What is not in that check?",
        "The last check is the largest. When it is made, all is counted but one thing: the last reply.",
        "result.tokens less the tokens of the last message. count_tokens says how many a message has.",
    ),
    lambda: {"with_and_below": with_and_below},
)


# --- A tool --------------------------------------------------------------------------------------------------


def shop(register: Any) -> tuple[ToolRegistry, Json]:
    """Return a registry with the tool of an answer, and the orders it works on."""
    registry = ToolRegistry()
    orders: Json = {"A123": {"item": "keyboard", "unit_price": 2500, "qty": 2}}
    register(registry, orders)
    return registry, orders


def observe(register: Any, /, **args: Any) -> str:
    """Return the observation of one call."""
    return shop(register)[0](ToolCall("c1", "cancel_item", args))


def pieces_left(register: Any, /, **args: Any) -> int:
    """Return the quantity of A123 after one call."""
    registry, orders = shop(register)
    registry(ToolCall("c1", "cancel_item", args))
    left: int = orders["A123"]["qty"]
    return left


def says_when(registry: ToolRegistry) -> bool | str:
    """Say whether the only tool's description says when to use it."""
    if not registry.specs():
        return "no tool: nothing was registered"
    told = registry.specs()[0]["description"]
    words = told.lower().split()
    return bool(len(words) >= 6 and {"use", "when", "if"} & set(words)) or f"the description {told!r}"


def error_with(*parts: str) -> Callable[[Any], bool]:
    """Return a test for an observation that is an error and holds these parts as whole words."""
    return lambda text: str(text).startswith("ERROR: ") and all(
        re.search(rf"\b{re.escape(part)}\b", str(text)) for part in parts
    )


TOOL = Exercise(
    "11-tool",
    {"register_cancel": FunctionType},
    [
        Case(
            "shop(register_cancel)[0]",
            "a description of six words or more, with a word like use, when or if",
            says_when,
            given="the description",
        ),
        Case(
            'observe(register_cancel, order_id="A123", pieces=1)',
            '{"qty": 1}: what is needed and no more',
            '{"qty": 1}',
        ),
        Case('pieces_left(register_cancel, order_id="A123", pieces=1)', "1: the order is changed", 1),
        Case('pieces_left(register_cancel, order_id="A123", pieces=2)', "0: all of it may be taken off", 0),
        Case(
            'observe(register_cancel, order_id="A123", pieces=1.5)',
            "an ERROR by the schema, before anything runs",
            error_with("argument 'pieces' must be of type integer"),
        ),
        Case(
            'observe(register_cancel, order_id=123, pieces=1)',
            "an ERROR by the schema, before anything runs",
            error_with("argument 'order_id' must be of type string"),
        ),
        Case(
            'observe(register_cancel, order_id="Z999", pieces=1)',
            "an ERROR that names the id, and what ids look like",
            error_with("Z999", "A123"),
        ),
        Case(
            'observe(register_cancel, order_id="A123", pieces=3)',
            "an ERROR that says how many there are",
            error_with("cancel_item failed", "2"),
        ),
        Case('pieces_left(register_cancel, order_id="A123", pieces=3)', "2: an error changes nothing", 2),
        Case('pieces_left(register_cancel, order_id="A123", pieces=0)', "2: an error changes nothing", 2),
        Case('pieces_left(register_cancel, order_id="A123", pieces=-1)', "2: an error changes nothing", 2),
        Case(
            'observe(register_cancel, order_id="A123", pieces=0)',
            "an ERROR that says how many there are",
            error_with("cancel_item failed", "2"),
        ),
    ],
    (
        "Write a function that takes order_id and pieces, and register it with a name, a description, a schema.",
        "Check first and change last, so that an error changes nothing. A tool says what is wrong by raising.",
        'raise LookupError(f"no order with id {order_id}; ids look like A123"). For pieces, compare 1 <= pieces <= qty '
        "and name qty in the error. In the schema, pieces is an integer.",
    ),
    lambda: {"shop": shop, "observe": observe, "pieces_left": pieces_left},
)


# --- A workflow ----------------------------------------------------------------------------------------------


def served(answer: Any, ticket: str, topics: str) -> list[Any]:
    """Return what a workflow returns, and how often it asked."""
    questions = questions_of(answer, ticket, topics)
    return [questions.pop(), len(questions)]


def questions_of(answer: Any, ticket: str, topics: str) -> list[Any]:
    """Return the questions that a workflow asks, and at their end what it returns."""
    questions: list[Any] = []

    def ask(question: str) -> str:
        questions.append(question)
        return topics if len(questions) == 1 else f"draft {len(questions) - 1}"

    returned = answer(ticket, ask, dict(POLICIES))
    return [*questions, returned]


def second_question(answer: Any, ticket: str, topics: str) -> str:
    """Return the second question of a workflow."""
    *questions, _ = questions_of(answer, ticket, topics)
    return str(questions[1]) if len(questions) > 1 else "no second question"


def holds(*parts: str) -> Callable[[Any], bool]:
    """Return a test for a text that holds these parts."""
    return lambda text: all(part in str(text) for part in parts)


BROKEN, BOTH = "My keyboard is broken.", "It came late, and broken."
HANDED = "(handed to a person)"
WORKFLOW = Exercise(
    "11-workflow",
    {"answer": FunctionType},
    [
        Case(f'served(answer, {BROKEN!r}, "refund")', "the draft, with two questions asked", ["draft 1", 2]),
        Case(f'questions_of(answer, {BROKEN!r}, "refund")[0]', "a first question with the ticket in it", holds(BROKEN)),
        Case(
            f'second_question(answer, {BROKEN!r}, "refund")',
            "the policy on refunds, and the ticket",
            holds(POLICIES["refund"], BROKEN),
        ),
        Case(f'served(answer, {BOTH!r}, "refund, delivery")', "one draft for both topics", ["draft 1", 2]),
        Case(
            f'second_question(answer, {BOTH!r}, "refund, delivery")',
            "both policies, and the ticket",
            holds(POLICIES["refund"], POLICIES["delivery"], BOTH),
        ),
        Case(f'served(answer, {BOTH!r}, "delivery,refund")', "the same without a space", ["draft 1", 2]),
        Case('served(answer, "Engrave it.", "engraving")', "handed to a person, no further question", [HANDED, 1]),
        Case(
            f'served(answer, {BROKEN!r}, "refund, engraving")',
            "handed to a person: there is no policy for one of the two",
            [HANDED, 1],
        ),
        Case('served(answer, "Hello.", "")', "handed to a person: there is no topic", [HANDED, 1]),
    ],
    (
        "Ask, split at the commas, look whether there is a policy for each, ask again.",
        'text.split(",") leaves the spaces; strip() takes them away. all(…) says whether something holds for each.',
        'topics = [topic.strip() for topic in ask(…).split(",")]. If not all of them are in policies, return the text. '
        "Else join their policies, and ask once more.",
    ),
    lambda: {"served": served, "questions_of": questions_of, "second_question": second_question},
)


# --- What to build -------------------------------------------------------------------------------------------

KINDS = ("one prompt", "workflow", "agent", "none")


def are_kinds(build: Any) -> bool | str:
    """Say whether each of five choices is one of those that there are, or which is none."""
    odd = [f"{task!r} is {kind!r}" for task, kind in build.items() if kind not in KINDS]
    return f"{', '.join(odd)}, which is none of the four" if odd else len(build) == 5


CHOOSE = Exercise(
    "11-choose",
    {"build": dict},
    [
        Case("build", 'each one of "one prompt", "workflow", "agent", "none"', are_kinds),
        Case('build["headline"]', "what does it in a single call: all that is needed is given", "one prompt"),
        Case('build["invoice"]', "what fits steps that are written in the task itself", "workflow"),
        Case('build["incident"]', "what fits steps that depend on what is found", "agent"),
        Case('build["trading"]', "what fits a costly mistake that nobody can review", "none"),
        Case('build["tests"]', "what fits an open number of tries, and a result that can be judged", "agent"),
    ],
    (
        "Ask the five questions of the list above, in their order; the first that speaks decides.",
        "Which task needs nothing but what is given? In which one are the steps already written down? Which one must "
        "be quick and is costly?",
        "Two of them need an agent: there the next step depends on what the last one showed, and a person, or a test "
        "suite, judges the result.",
    ),
)


# --- Find the bug: a plan that was not dropped ---------------------------------------------------------------

LOOK, WRONG = call("c1", "get_order", order_id="A123"), call("c1", "get_order", id="A123")


def pay(amount: float) -> ToolCall:
    """Write a call that pays money back."""
    return call("c2", "issue_refund", order_id="A123", amount=amount)


def carried_out(follow: Any, *plans: list[ToolCall], max_plans: int = 5) -> list[str]:
    """Return the calls that really ran."""
    registry, ran = order_desk()
    follow(planner_of([list(plan) for plan in plans]), registry, max_plans)
    return ran


def planner_of(plans: list[list[ToolCall]], told: list[str] | None = None) -> Callable[[str], list[ToolCall]]:
    """Return a planner that gives these plans, and the last one from then on; `told` gets the news it was given."""
    given = iter(plans)

    def planner(news: str) -> list[ToolCall]:
        if told is not None:
            told.append(news)
        return next(given, plans[-1])

    return planner


def told_planner(follow: Any, *plans: list[ToolCall]) -> list[str]:
    """Return the beginnings of the news that the planner was given."""
    told: list[str] = []
    follow(planner_of([list(plan) for plan in plans], told), order_desk()[0], 5)
    return [news[:13] for news in told]


def seen_by(follow: Any, *plans: list[ToolCall], max_plans: int = 5) -> list[str]:
    """Return the beginnings of the observations that come back."""
    seen = follow(planner_of([list(plan) for plan in plans]), order_desk()[0], max_plans)
    return [text[:13] for text in seen]


BUG = Exercise(
    "11-bug",
    {"follow": FunctionType},
    [
        Case(
            "carried_out(follow, [look, pay(100)])",
            "both steps, once each",
            ["get_order(A123)", "issue_refund(A123, 100)"],
        ),
        Case(
            "carried_out(follow, [wrong, pay(100)], [look, pay(100)])",
            "the first plan fails at its first step; then the new plan, and 100 is paid once",
            ["get_order(A123)", "issue_refund(A123, 100)"],
        ),
        Case(
            "carried_out(follow, [wrong, pay(100)], [look, pay(200)])",
            "only the new plan: 200 is paid",
            ["get_order(A123)", "issue_refund(A123, 200)"],
        ),
        Case(
            "carried_out(follow, [look, wrong, pay(100)], [pay(50)])",
            "what ran before the error, then the new plan",
            ["get_order(A123)", "issue_refund(A123, 50)"],
        ),
        Case(
            "told_planner(follow, [wrong, pay(100)], [look])",
            "nothing at first, then the error",
            ["", "ERROR: missin"],
        ),
        Case(
            "seen_by(follow, [wrong, pay(100)], [look], max_plans=1)",
            "one observation: there is no second plan",
            ["ERROR: missin"],
        ),
        Case(
            "seen_by(follow, [wrong, pay(100)], max_plans=3)",
            "three errors: the planner gives the same plan again, and it is still whole",
            ["ERROR: missin"] * 3,
            given="a planner that returns the same list again, three plans at most",
        ),
    ],
    (
        "After a failed step, what is left of the old plan? Where do its steps go?",
        "A new plan takes the place of the old one; it does not come after it.",
        "Use = and not +=. And since pop takes steps out of the list, work on a copy of what the planner returned: the "
        "list is the planner's own.",
    ),
    lambda: {
        "carried_out": carried_out,
        "told_planner": told_planner,
        "seen_by": seen_by,
        "look": LOOK,
        "wrong": WRONG,
        "pay": pay,
    },
    shipped="""
def follow(planner, registry, max_plans):
    seen, news, plan = [], "", []
    for _ in range(max_plans):
        plan += planner(news)
        while plan:
            news = registry(plan.pop(0))
            seen.append(news)
            if news.startswith("ERROR: "):
                break
        else:
            return seen
    return seen
""",
)

EXERCISES = [BUDGET, TOOL, WORKFLOW, CHOOSE, BUG]
