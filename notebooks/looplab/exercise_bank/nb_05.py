"""Exercises of notebook 05: the square, the budget before the run, limits, a wrapper that stops, an exit left open."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from agentloop import (
    WEATHER_TASK,
    AgentResult,
    Json,
    ModelReply,
    Usage,
    asks,
    call,
    count_tokens,
    final,
    open_calls,
    run_agent,
    weather_script,
    weather_world,
)
from looplab.cases import Case, Exercise, Patient, same_messages

PLENTY = 10**9

SQUARE = Exercise(
    "05-square",
    {"input_tokens": FunctionType},
    [
        Case("input_tokens(1000, 500, 1)", "one step sends the start, and nothing more", 1000),
        Case("input_tokens(1000, 500, 2)", "the start, and the start with 500 more", 2500),
        Case("input_tokens(1000, 500, 8)", "what the loop sent in this notebook: 22,000", 22000),
        Case("input_tokens(1600, 750, 10)", "ten prompts, the first of 1,600, the last of 8,350", 49750),
        Case("input_tokens(1600, 0, 10)", "ten times the same prompt", 16000),
        Case("input_tokens(1000, 500, 0)", "0: no step sends nothing", 0),
    ],
    (
        "Write down the prompts of the first three steps: what does each send?",
        "Step number n, counted from 0, sends start + more * n. Add them up.",
        "sum(start + more * n for n in range(steps)).",
    ),
)


# --- When does the budget stop it? ---------------------------------------------------------------------------


def never_ending(max_steps: int, token_budget: int) -> AgentResult:
    """Run the model that never finishes."""
    return run_agent(WEATHER_TASK, Patient(), weather_world()[0], max_steps=max_steps, token_budget=token_budget)


def sizes(steps: int) -> tuple[list[int], list[int]]:
    """Return the tokens of the prompts, and of the replies, of the model that never finishes."""
    messages, specs = never_ending(steps, PLENTY).messages, weather_world()[0].specs()
    replies = [i for i, message in enumerate(messages) if message["role"] == "assistant"]
    prompts = [count_tokens(specs) + count_tokens(messages[:i]) for i in replies]
    return prompts, [count_tokens(messages[i]) for i in replies]


def real_case(budget: int) -> Case:
    return Case(
        f"steps_made(prompts, replies, {budget})",
        "as many as the loop itself makes with this budget",
        lambda steps: steps == never_ending(10, budget).steps,
        given=f"ten steps of the model that never finishes, with a budget of {budget:,}",
    )


BUDGET = Exercise(
    "05-budget",
    {"steps_made": FunctionType},
    [
        Case("steps_made([100, 150, 200], [20, 20, 20], 1000)", "all three calls: the budget stops nothing", 3),
        Case(
            "steps_made([100, 150, 200], [20, 20, 20], 300)",
            "two calls: 290 are spent, and the third prompt needs 200",
            2,
        ),
        Case(
            "steps_made([100, 150, 200], [20, 20, 20], 490)",
            "three: spent and prompt together are exactly the budget",
            3,
        ),
        Case("steps_made([100, 150, 200], [20, 20, 20], 489)", "two: one token is missing for the third prompt", 2),
        Case(
            "steps_made([100, 150, 200], [20, 20, 20], 250)",
            "one: with the first reply 120 are spent, and the next prompt needs 150",
            1,
        ),
        Case("steps_made([100, 150, 200], [20, 20, 20], 99)", "none: the first prompt does not fit", 0),
        Case("steps_made([100], [5000], 100)", "one: the reply is known only after the call, and does not undo it", 1),
        *map(real_case, (500, 900, 1900)),
    ],
    (
        "Do what the loop does: before each call, add what is spent and what the next prompt needs.",
        "If spent + prompt is over the budget, return how many calls were made so far. Else add prompt and reply to "
        "spent.",
        "for step, (prompt, reply) in enumerate(zip(prompts, replies)): return step where it does not fit. After the "
        "loop "
        "return len(prompts).",
    ),
    lambda: dict(zip(("prompts", "replies"), sizes(10))),
)


# --- Choose the limits ---------------------------------------------------------------------------------------


def repaired_script() -> list[ModelReply]:
    """Return a script with two wrong calls, each followed by its repair."""
    asked = [
        call("c1", "get_weather", town="Pune"),
        call("c2", "get_weather", city="Pune"),
        call("c3", "c_to_f", celsius="30"),
        call("c4", "c_to_f", celsius=30),
    ]
    return [*map(asks, asked), final("It is 86.0 F in Pune.")]


def status_of(replies: list[ModelReply], limits: Json) -> str:
    """Return how a run of the weather task ends with these limits."""
    return run_agent(WEATHER_TASK, Patient(replies), weather_world()[0], **limits).status


def steps_for_free(limits: Json) -> int:
    """Return the steps of a run that never finishes, where a provider counts next to no tokens."""
    model = Patient(limit=100)

    def free(messages: list[Json], specs: list[Json]) -> ModelReply:
        return ModelReply("", model(messages, specs).tool_calls, Usage(0, 0))

    return run_agent(WEATHER_TASK, free, weather_world()[0], **limits).steps


LIMITS = Exercise(
    "05-limits",
    {"limits": dict},
    [
        Case("sorted(limits)", "the two limits of run_agent", ["max_steps", "token_budget"]),
        Case(
            "limits",
            "whole numbers of at least 1, written without quotes",
            lambda limits: all(type(limit) is int and limit >= 1 for limit in limits.values()),
            given="the two limits",
        ),
        Case(
            "status_of(weather_script(), limits)",
            "a good run ends by itself",
            "done",
            given="a good run: 3 steps, 683 tokens",
        ),
        Case(
            "status_of(repaired_script(), limits)",
            "a run with two repairs ends by itself",
            "done",
            given="a run with two repairs: 5 steps, 1,495 tokens",
        ),
        Case(
            "never_ending(**limits).tokens",
            "at most 2,000 tokens",
            lambda tokens: tokens <= 2000,
            given="what the model that never finishes spends",
        ),
        Case(
            'limits["token_budget"] + 100',
            "at most 2,000: the last reply comes after the check, and on top",
            lambda tokens: tokens <= 2000,
            given="the budget, and a last reply of 100 tokens",
        ),
        Case(
            "steps_for_free(limits)",
            "at most 10 steps: where tokens cost nothing, only max_steps stops a run",
            lambda steps: steps <= 10,
            given="the steps of a run that never finishes, if its tokens are counted as 0",
        ),
    ],
    (
        "Four things limit your choice: what a run with repairs needs, from below; 2,000 tokens and 10 steps, from "
        "above.",
        "The budget must leave room for the largest reply. And the steps must allow the repairs.",
        "max_steps lies between 5 and 10, token_budget between 1,495 and 2,000 less 100.",
    ),
    lambda: {
        "status_of": status_of,
        "never_ending": never_ending,
        "repaired_script": repaired_script,
        "steps_for_free": steps_for_free,
    },
)


# --- A wrapper that ends the run -----------------------------------------------------------------------------


def run_with(ask_first: Any, risky: set[str], *replies: ModelReply) -> tuple[AgentResult, list[str]]:
    """Run replies, or the weather script, with the wrapper around the registry; return the result and what ran."""
    registry, ran = weather_world()
    script = list(replies) or weather_script()
    return run_agent(WEATHER_TASK, Patient(script), registry, execute=ask_first(registry, risky)), ran


def plain(execute: Any, risky: set[str]) -> Any:
    return execute


BOTH = asks(
    call("a", "get_weather", city="Pune"), call("b", "c_to_f", celsius=30), call("c", "get_weather", city="Delhi")
)
STOP = Exercise(
    "05-stop",
    {"ask_first": FunctionType},
    [
        Case(
            "run_with(ask_first, set())[0]",
            "the run as it is without the wrapper: nothing is risky",
            same_messages(run_with(plain, set())[0].messages),
            given="the weather task, with no risky tool: its messages",
        ),
        Case(
            'run_with(ask_first, {"c_to_f"})[0].status',
            "the status needs_person",
            "needs_person",
            given="the weather task, where c_to_f is risky: its status",
        ),
        Case(
            'run_with(ask_first, {"c_to_f"})[1]',
            "get_weather ran, c_to_f did not",
            ["get_weather(Pune)"],
            given="the weather task, where c_to_f is risky: what ran",
        ),
        Case(
            'open_calls(run_with(ask_first, {"c_to_f"})[0].messages)',
            "no call without an observation",
            [],
            given="the weather task, where c_to_f is risky: calls left open",
        ),
        Case(
            'run_with(ask_first, {"c_to_f"}, both)[1]',
            "the call before the risky one ran; neither it nor the next did",
            ["get_weather(Pune)"],
            given="three calls in one reply, the second one risky: what ran",
        ),
    ],
    (
        "ask_first returns a function of one call, like any Execute. What does it do with a risky call, what with "
        "another?",
        "The test is call.name in risky. A run is ended by raising, not by returning a text; the notebook says what "
        "is raised.",
        'In run(call): if call.name in risky: raise Stop("needs_person", "a person must allow this"). Else return '
        'execute(call).',
    ),
    lambda: {"run_with": run_with, "both": BOTH, "open_calls": open_calls},
)


# --- Find the bug: an exit that leaves a call open -----------------------------------------------------------


def run_limited(loop: Any, max_steps: int, replies: list[ModelReply] | None = None) -> Any:
    """Run a reader's loop with a step limit, on a script or on the model that never finishes."""
    return loop(WEATHER_TASK, Patient(replies, max_steps), weather_world()[0], max_steps)


def expected(max_steps: int, replies: list[ModelReply] | None = None) -> list[Json]:
    """Return the messages of the reference."""
    return run_agent(
        WEATHER_TASK, Patient(replies), weather_world()[0], max_steps=max_steps, token_budget=PLENTY
    ).messages


def ending(result: AgentResult) -> tuple[str, str | None, int]:
    """Return status, answer and steps of a run."""
    return result.status, result.answer, result.steps


TWO = asks(call("a", "get_weather", city="Pune"), call("b", "get_weather", city="Delhi"))
BUG = Exercise(
    "05-bug",
    {"run_task": FunctionType},
    [
        Case(
            "run_limited(run_task, 8, weather_script())",
            "the run of seven messages, as before",
            same_messages(expected(8, weather_script())),
            given="the weather task, max_steps=8: its messages",
        ),
        Case(
            "ending(run_limited(run_task, 3, weather_script()))",
            "done: the third reply may still answer",
            ("done", "It is 86.0 F in Pune.", 3),
            given="the weather task, max_steps=3: how it ends",
        ),
        Case(
            "run_limited(run_task, 2, weather_script())",
            "six messages: the last call has its observation",
            same_messages(expected(2, weather_script())),
            given="the weather task, max_steps=2: its messages",
        ),
        Case(
            "ending(run_limited(run_task, 2, weather_script()))",
            "status step_limit, no answer, two steps",
            ("step_limit", None, 2),
            given="the weather task, max_steps=2: how it ends",
        ),
        Case(
            "run_limited(run_task, 1, [both])",
            "five messages: both calls of the last reply have their observations",
            same_messages(expected(1, [TWO])),
            given="two calls in one reply, max_steps=1: its messages",
        ),
        Case(
            "run_limited(run_task, 5)",
            "five replies, each with its observation",
            same_messages(expected(5)),
            given="a model that never finishes, max_steps=5: its messages",
        ),
    ],
    (
        "Look at the last message of a run that stopped. What would a provider say to such a list?",
        "The exit stands between the reply and its calls. Each call needs its observation before the run may end.",
        "Take the `if step == max_steps` out, and return the step_limit result after the for loop, when the steps are "
        "used up.",
    ),
    lambda: {"run_limited": run_limited, "ending": ending, "both": TWO},
    shipped="""
def run_task(task, model, registry, max_steps=8):
    messages = [{"role": "system", "content": "Use the tools to answer the user."}, {"role": "user", "content": task}]
    for step in range(1, max_steps + 1):
        reply = model(messages, registry.specs())
        calls = [{"id": c.id, "name": c.name, "args": c.args} for c in reply.tool_calls]
        messages.append({"role": "assistant", "content": reply.content, "tool_calls": calls})
        if not calls:
            return AgentResult("done", reply.content, step, 0, messages)
        if step == max_steps:
            return AgentResult("step_limit", None, step, 0, messages)
        for c in reply.tool_calls:
            content = registry.execute(c.name, c.args)
            messages.append({"role": "tool", "tool_call_id": c.id, "name": c.name, "content": content})
""",
)

EXERCISES = [SQUARE, BUDGET, LIMITS, STOP, BUG]
