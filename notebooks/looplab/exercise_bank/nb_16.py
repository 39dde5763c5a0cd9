"""Exercises of notebook 16: a task that tells agents apart, look before you pay, what changed, a cache, a rate."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from agentloop import Json
from looplab.cases import Case, Exercise
from looplab.eval_models import Agent, Thoughts, ask, at_the_order_desk
from looplab.evals import Task, run_task

# --- A task of your own ---------------------------------------------------------------------------------------

BROKEN_ONE = "One keyboard of order A123 is broken, I keep the other. Refund what that one cost, before tax."


def right_one(task: str) -> Thoughts:
    """Look up, compute, pay one, and say so."""
    [_] = yield [ask("get_order", order_id="A123")]
    yield [ask("calculator", expression="2500 * 1")]
    yield [ask("issue_refund", order_id="A123", amount=2500)]
    return "2500 rupees were paid back for order A123."


def right_in_other_words(task: str) -> Thoughts:
    """Do the same, and write the number as banks do."""
    yield from right_one(task)
    return "Done: INR 2,500.00 are on their way to you."


def pays_both(task: str) -> Thoughts:
    """Pay the whole order."""
    return (yield from at_the_order_desk("Refund it.", "A123"))


def only_says_so(task: str) -> Thoughts:
    """Look up and compute, and claim the rest."""
    yield [ask("get_order", order_id="A123")]
    yield [ask("calculator", expression="2500 * 1")]
    return "2500 rupees were paid back for order A123."


def pays_twice(task: str) -> Thoughts:
    """Do the right thing, and do it again."""
    answer = yield from right_one(task)
    yield [ask("issue_refund", order_id="A123", amount=2500)]
    return answer


def says_nothing(task: str) -> Thoughts:
    """Pay, and leave the customer to guess."""
    yield from right_one(task)
    return "Done."


def never_looks(task: str) -> Thoughts:
    """Pay what such a keyboard will have cost."""
    yield [ask("calculator", expression="5000 / 2")]
    yield [ask("issue_refund", order_id="A123", amount=2500)]
    return "2500 rupees were paid back for order A123."


AGENTS: list[Agent] = [right_one, right_in_other_words, pays_both, only_says_so, pays_twice, says_nothing, never_looks]


def verdict(task: Json, agent: Agent) -> str:
    """Return the verdict of a reader's task on an agent."""
    for name in ("answer", "path", "refunds"):
        if not isinstance(task.get(name), list | tuple):
            return f"task[{name!r}] must be a list, and is {task.get(name)!r}"
    parts = {name: tuple(task[name]) for name in ("answer", "path")}
    refunds = tuple(tuple(refund) if isinstance(refund, list) else refund for refund in task["refunds"])
    try:
        judged = Task("mine", "order desk", BROKEN_ONE, **parts, steps=9, refunds=refunds)
    except ValueError as error:
        return str(error)
    return run_task(judged, agent).verdict


TASK = Exercise(
    "16-task",
    {"task": dict},
    [
        Case("verdict(task, right_one)", "right: it looks up, computes, pays 2500 and says so", "right"),
        Case("verdict(task, right_in_other_words)", 'right: "INR 2,500.00" is the same number', "right"),
        Case("verdict(task, pays_both)", "wrong: it pays 5000", lambda told: told.startswith("wrong")),
        Case("verdict(task, only_says_so)", "wrong: nothing was paid", lambda told: told.startswith("wrong")),
        Case("verdict(task, pays_twice)", "wrong: it pays 2500 two times", lambda told: told.startswith("wrong")),
        Case("verdict(task, says_nothing)", "wrong: the customer is not told how much",
             lambda told: told.startswith("wrong")),
        Case("verdict(task, never_looks)", "right by luck, with a fault in its path: it never used get_order",
             "right; it never used get_order"),
    ],
    (
        "What would the order desk check afterwards: the sentence to the customer, the account, or both?",
        "answer holds numbers and words that each right answer must have; the fewer, the better. A refund is an order "
        "and an amount: [\"A123\", …].",
        "One keyboard cost 2500. So the answer holds one number, refunds one pair, and the path is the tools of the "
        "task named refund.",
    ),
    lambda: {"verdict": verdict, **{agent.__name__: agent for agent in AGENTS}},
)


# --- Look before you pay --------------------------------------------------------------------------------------


def episode(*replies: str) -> list[Json]:
    """Return the messages of a run from the calls of each reply: "look A123, pay A123" or "look A123 fails"."""
    messages: list[Json] = [{"role": "system", "content": "Use the tools."}, {"role": "user", "content": BROKEN_ONE}]
    for step, reply in enumerate(replies, 1):
        parts = [part.split() for part in reply.split(", ")]
        calls = [record(f"c{step}{n}", word, order_id) for n, (word, order_id, *_) in enumerate(parts, 1)]
        messages.append({"role": "assistant", "content": "", "tool_calls": calls})
        messages += [{"role": "tool", "tool_call_id": call["id"], "name": call["name"],
                      "content": "ERROR: it failed" if fails else "{}"} for call, (_, _, *fails) in zip(calls, parts)]
    return [*messages, {"role": "assistant", "content": "Done.", "tool_calls": []}]


def record(call_id: str, word: str, order_id: str) -> Json:
    """Return the record of a call: "look" looks an order up, "pay" pays for it."""
    if word == "pay":
        return {"id": call_id, "name": "issue_refund", "args": {"order_id": order_id, "amount": 2500}}
    return {"id": call_id, "name": "get_order", "args": {"order_id": order_id}}


LOOKED = Exercise(
    "16-looked",
    {"looked_first": FunctionType},
    [
        Case('looked_first(episode("look A123", "pay A123"))', "True: it looked, then it paid", True),
        Case('looked_first(episode("pay A123"))', "False: it never looked", False),
        Case('looked_first(episode("look A123"))', "True: nothing was paid", True),
        Case('looked_first(episode("pay A123", "look A123"))', "False: it looked too late", False),
        Case('looked_first(episode("look A123 fails", "pay A123"))', "False: an error shows no order", False),
        Case('looked_first(episode("pay A123 fails"))', "True: the refund failed, so nothing was paid", True),
        Case('looked_first(episode("look A124", "pay A123"))', "False: it looked at another order", False),
        Case('looked_first(episode("look A123, pay A123"))',
             "False: both were asked for in one reply, so the order was not read when it asked to pay", False),
        Case('looked_first(episode("look A123", "pay A123", "pay A124"))', "False: the second one was not looked up",
             False),
        Case('looked_first(episode("look A123, look A124", "pay A124, pay A123"))', "True: both were looked up", True),
    ],
    (
        "What is known at the moment when a reply is written? Only what stands in the list before it.",
        "Find the observation of a call by its id. Go through the replies in order, and keep a set of the orders that "
        "were seen. When does an order enter that set: at its call, or after its reply?",
        "For each assistant message: first check its refunds that did not fail against `seen`, then add the orders of "
        "its get_order calls that did not fail.",
    ),
    lambda: {"episode": episode},
)


# --- What changed ---------------------------------------------------------------------------------------------


def parts(fixed: list[str], broken: list[str], missing: list[str]) -> dict[str, list[str]]:
    """Return what compare must return."""
    return {"fixed": fixed, "broken": broken, "missing": missing}


COMPARE = Exercise(
    "16-compare",
    {"compare": FunctionType},
    [
        Case('compare({"a": True, "b": False}, {"a": True, "b": False})', "three empty lists: nothing changed",
             parts([], [], [])),
        Case('compare({"a": True, "b": False}, {"a": True, "b": True})', "b is fixed", parts(["b"], [], [])),
        Case('compare({"a": True, "b": False}, {"a": False, "b": True})',
             "b is fixed and a is broken, though the rate is the same", parts(["b"], ["a"], [])),
        Case('compare({"a": True, "b": False}, {"b": False})', "a is missing: it was not run, so it is not broken",
             parts([], [], ["a"])),
        Case('compare({"a": False, "b": True}, {"b": True})', "a is missing, although it was wrong before",
             parts([], [], ["a"])),
        Case('compare({"a": True}, {"a": True, "new": False})', "a new task is none of the three", parts([], [], [])),
        Case('compare({"c": False, "b": False, "a": False}, {"a": True, "b": True, "c": True})',
             "c, b, a: the order of the old", parts(["c", "b", "a"], [], [])),
    ],
    (
        "Go through the tasks of one of the two dictionaries. Of which one?",
        "Three cases for each name of old: it is not in new; it was wrong and is right; it was right and is wrong.",
        "missing: name not in new. fixed: name in new and new[name] and not old[name]. broken: name in new and "
        "old[name] and not new[name].",
    ),
)


# --- A cache --------------------------------------------------------------------------------------------------


def close_to(usd: float) -> Callable[[Any], bool]:
    """Return a test for an amount, whatever way it was added up."""
    return lambda value: isinstance(value, (int, float)) and abs(value - usd) < 1e-9


CACHE = Exercise(
    "16-cache",
    {"prompt_cost": FunctionType},
    [
        Case("prompt_cost([1600], 3, 0.1)", "0.0048: nothing was sent before the first prompt", close_to(0.0048)),
        Case("prompt_cost([1600, 2350], 3, 0.1)",
             "0.00753: of the second prompt 1,600 tokens are cached, and 750 are new", close_to(0.00753)),
        Case("prompt_cost([1600, 2350, 3100], 3, 0)", "0.0093: what is cached is free, so 3,100 tokens are paid",
             close_to(0.0093)),
        Case("prompt_cost([1600, 2350, 3100], 3, 1)", "0.02115: no part is cheaper", close_to(0.02115)),
        Case("prompt_cost([1000, 1000], 10, 0.5)", "0.015: nothing new in the second prompt", close_to(0.015)),
        Case("prompt_cost([], 3, 0.1)", "0: no prompt, no cost", close_to(0)),
        Case("prompt_cost([*range(1600, 9100, 750)], 3, 0.1)", "0.03747: ten prompts, from 1,600 to 8,350 tokens",
             close_to(0.03747)),
    ],
    (
        "Which part of a prompt was sent before? It has the length of another prompt in the list.",
        "Walk through the prompts with the one before each, 0 for the first: the new part is the difference.",
        "For before, prompt in zip([0, *prompts], prompts): add before * cached + (prompt - before). At the end, times "
        "price, divided by 1e6.",
    ),
)


# --- Find the bug: a rate -------------------------------------------------------------------------------------


def scores(right: int, wrong: int = 0, stopped: int = 0) -> list[Json]:
    """Return so many scores that are right, done and wrong, and stopped before an answer."""
    return [*[{"status": "done", "right": True}] * right, *[{"status": "done", "right": False}] * wrong,
            *[{"status": "step_limit", "right": False}] * stopped]


BUG = Exercise(
    "16-bug",
    {"success_rate": FunctionType},
    [
        Case("success_rate(scores(right=3, wrong=1))", "0.75", 0.75),
        Case("success_rate(scores(right=2, stopped=2))", "0.5: who was stopped did not succeed", 0.5),
        Case("success_rate(scores(right=1, wrong=1, stopped=2))", "0.25", 0.25),
        Case("success_rate(scores(right=0, stopped=3))", "0.0: three runs, and none succeeded", 0.0),
        Case("success_rate(scores(right=0))", "None: without a run there is no rate", None),
        Case("success_rate(scores(right=2))", "1.0", 1.0),
    ],
    (
        "How many runs were there, and by how many does it divide?",
        "An agent that stops early on hard tasks must not look better for it. Each run counts, whatever its status.",
        "Divide by len(scores), and return None first if there are none.",
    ),
    lambda: {"scores": scores},
    shipped="""
def success_rate(scores):
    done = [score for score in scores if score["status"] == "done"]
    return sum(score["right"] for score in done) / len(done)
""",
)

EXERCISES = [TASK, LOOKED, COMPARE, CACHE, BUG]
