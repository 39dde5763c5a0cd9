"""Evals: tasks with a check of the outcome and of the path, what runs an agent on them, and a report on two agents.

No widget and no plot is imported here, so that another process is quick to import it.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import NormalDist
from types import UnionType
from typing import Any

from agentloop import (
    AgentResult, Json, Model, ModelReply, ToolRegistry, Usage, count_tokens, describe, explain, first_difference,
    record_reply, run_agent, to_json, weather_world,
)
from looplab.eval_models import Agent, failed, model_of
from looplab.recordings import Clock
from looplab.worlds import CHECKOUT_TASK, ORDER_TASK, REFUND_TASK, checkout_world, order_desk

WORLDS: dict[str, Callable[[], tuple[ToolRegistry, list[str]]]] = {
    "weather": weather_world, "order desk": order_desk, "checkout": checkout_world,
}
REPLY_SECONDS, CALL_SECONDS = 0.8, 0.2  # on the clock of a run
MAX_STEPS, TOKEN_BUDGET = 8, 20_000


# --- Tasks ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """What an agent is asked in one of the worlds, and what a good run looks like.

    `answer` holds the numbers and words of a right answer, `refunds` what must be paid, and nothing else may be. `path`
    names the tools in their order; those of one text, "list_deploys search_logs", have no order among them. `steps` are
    enough for a good run. Raises ValueError for a world there is not, and for a part that is of another kind.
    """

    name: str
    world: str
    prompt: str
    answer: tuple[str, ...]
    path: tuple[str, ...]
    steps: int
    refunds: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        if self.world not in WORLDS:
            raise ValueError(f"there is no world {self.world!r}; there are {', '.join(WORLDS)}")
        if not all(isinstance(part, tuple) for part in (self.answer, self.path, self.refunds, *self.refunds)):
            raise ValueError("answer, path and refunds are tuples, and so is each refund: ('86',), and not '86'")
        if not all(isinstance(text, str) for text in (*self.answer, *self.path)):
            raise ValueError("answer and path hold texts, numbers of an answer too: ('86',), and not (86,)")
        if not all(len(refund) == 2 and isinstance(refund[1], int | float) for refund in self.refunds):
            raise ValueError("a refund is an order and a number: ('A123', 5000)")


TASKS = [
    Task("pune-f", "weather", "How hot is Pune in Fahrenheit?", ("86",), ("get_weather", "c_to_f"), 3),
    Task("delhi-f", "weather", "How hot is Delhi in Fahrenheit?", ("95",), ("get_weather", "c_to_f"), 3),
    Task("delhi-c", "weather", "How hot is Delhi in Celsius?", ("35",), ("get_weather",), 2),
    Task("warmer", "weather", "Which is warmer, Pune or Delhi?", ("Delhi",), ("get_weather",), 2),
    Task("atlantis", "weather", "How hot is Atlantis in Celsius?", ("no", "Atlantis"), ("get_weather",), 2),
    Task("gst", "order desk", ORDER_TASK, ("5900",), ("get_order", "calculator"), 3),
    Task("quote", "order desk", "What would a refund of order A123 be, before tax? Pay nothing yet.", ("5000",),
         ("get_order", "calculator"), 3),
    Task("item", "order desk", "Which item is order A123 for?", ("keyboard",), ("get_order",), 2),
    Task("no-order", "order desk", "What does order Z999 cost in total with 18% GST?", ("no", "Z999"),
         ("get_order",), 2),
    Task("refund", "order desk", REFUND_TASK, ("5000",), ("get_order", "calculator", "issue_refund"), 4,
         (("A123", 5000),)),
    Task("refund-one", "order desk", "A keyboard of order A123 arrived broken. Refund one of the two, before tax.",
         ("2500",), ("get_order", "calculator", "issue_refund"), 4, (("A123", 2500),)),
    Task("cause", "checkout", CHECKOUT_TASK, ("v841", "pool size 50 -> 10"),
         ("query_metrics", "list_deploys search_logs"), 3),
    Task("since", "checkout", "Since which hour is the p99 latency of checkout high?", ("02:00",),
         ("query_metrics",), 2),
    Task("note", "checkout", "What did deploy v841 of checkout change?", ("pool size 50 -> 10",), ("list_deploys",), 2),
    Task("lines", "checkout", "How many log lines mention payments-db?", ("3",), ("search_logs",), 2),
    Task("billing", "checkout", "Since which hour is the p99 latency of billing high?", ("no", "billing"),
         ("query_metrics",), 2),
]


# --- Grading ----------------------------------------------------------------------------------------------------


NUMBER = r"-?(?:\d{1,3}(?:,\d\d+)*,\d{3}|\d+)(?!\d)(?:\.\d+)?"
MINUS = "\N{MINUS SIGN}"
UNIT = "(?:[°º˚]?(?:deg|degrees)?(?:[cf]|celsius|fahrenheit)?|rs|inr|rupees?|usd|eur|lines?|hits?|ms|s|min|h)"
BEFORE = r"(?:(?<!\w)|(?<=\brs)|(?<=\binr)|(?<=\busd)|(?<=\beur))(?<!\d[:-])(?<![^a-z]\.)"
AFTER = rf"(?={UNIT}(?!\w))(?![:.-]\d)"


def says(answer: str, wanted: str) -> bool:
    """Say whether an answer holds a number, however it is written, or a text as whole words.

    A unit may be glued to a number, as in 86°F or Rs5900. A part of an id, a time, a date or a range is no number.
    """
    if re.fullmatch(NUMBER, wanted):
        written = re.findall(f"{BEFORE}(?>({NUMBER})){AFTER}", f" {answer.replace(MINUS, '-')}", re.IGNORECASE)
        value, *others = [float(number.replace(",", "")) for number in [wanted, *written]]
        return value in others
    return re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", answer, re.IGNORECASE) is not None


def calls_of(messages: list[Json]) -> list[tuple[Json, str]]:
    """Return each call of a run with its observation, in order."""
    told = {message["tool_call_id"]: message["content"] for message in messages if message["role"] == "tool"}
    return [(call, told.get(call["id"], "")) for message in messages for call in message.get("tool_calls", [])]


def outcome_faults(task: Task, result: AgentResult) -> Iterator[str]:
    """Yield what is wrong with the outcome: the exit, the answer, and what was really paid."""
    missing = [text for text in task.answer if not says(result.answer or "", text)]
    if result.status != "done":
        yield explain(result)
    elif missing:
        yield f"the answer misses {' and '.join(map(to_json, missing))}"
    paid = tuple((call["args"]["order_id"], call["args"]["amount"]) for call, told in calls_of(result.messages)
                 if call["name"] == "issue_refund" and not failed(told))
    if paid != task.refunds:
        yield f"it paid {money(paid)}, and should have paid {money(task.refunds)}"


def money(refunds: tuple[tuple[str, float], ...]) -> str:
    """Write refunds: "5000 for A123"."""
    return ", ".join(f"{amount:g} for {order_id}" for order_id, amount in refunds) or "nothing"


def path_faults(task: Task, result: AgentResult) -> Iterator[str]:
    """Yield what is wrong with the path: tools that were not used, their order, others, and more steps than needed."""
    used = [call["name"] for call, _ in calls_of(result.messages)]
    needed = " ".join(task.path).split()
    if unused := [name for name in needed if name not in used]:
        yield f"it never used {', '.join(unused)}"
    elif not in_order(used, task.path):
        yield f"it used its tools in another order: {', '.join(used)}"
    if others := sorted(set(used) - set(needed)):
        yield f"it used {', '.join(others)} as well"
    if result.steps > task.steps:
        yield f"it took {result.steps} steps, and {task.steps} are enough"


def in_order(used: Iterable[str], path: tuple[str, ...]) -> bool:
    """Say whether the tools of a path were used in its order; others may come between."""
    rest = iter(used)
    for group in path:
        missing = set(group.split())
        while missing:
            name = next(rest, None)
            if name is None:
                return False
            missing.discard(name)
    return True


# --- Running ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Score:
    """One run of a task: in words what is wrong with its outcome and with its path, what it took, and its messages."""

    task: Task
    agent: str
    status: str
    answer: str | None
    wrong: list[str]
    detours: list[str]
    steps: int
    prompt: int
    reply: int
    seconds: float
    messages: list[Json]

    @property
    def right(self) -> bool:
        """Whether the task succeeded."""
        return not self.wrong

    @property
    def tokens(self) -> int:
        """What was sent and written together."""
        return self.prompt + self.reply

    @property
    def verdict(self) -> str:
        """The score in words."""
        return f"wrong: {'; '.join(self.wrong)}" if self.wrong else "; ".join(["right", *self.detours])


def metered(model: Model, used: list[Usage]) -> Model:
    """Return `model`; the usage of each reply is noted, or the loop's estimate where it brings none."""

    def noted(messages: list[Json], specs: list[Json]) -> ModelReply:
        reply = model(messages, specs)
        estimate = Usage(count_tokens(specs) + count_tokens(messages), count_tokens(record_reply(reply, set())))
        used.append(reply.usage or estimate)
        return reply

    return noted


def run_task(task: Task, agent: Agent, clock: Clock | None = None) -> Score:
    """Run an agent on a task, in a world of its own, and grade what it did.

    Seconds are those of `clock`, on which each reply and each call takes its time. An exception of the agent is the
    fault of this run, and other tasks go on; Ctrl-C passes.
    """
    clock, used = clock or Clock(), list[Usage]()
    start, (registry, _) = clock(), WORLDS[task.world]()
    model = metered(clock.takes(REPLY_SECONDS, model_of(agent)), used)
    execute = clock.takes(CALL_SECONDS, registry)
    crash = []
    try:
        result = run_agent(task.prompt, model, registry, max_steps=MAX_STEPS, token_budget=TOKEN_BUDGET,
                           execute=execute)
    except (Exception, SystemExit) as error:
        result, crash = vars(error)["result"], [f"the agent raised {describe(error)}"]
    wrong, detours = [*crash, *outcome_faults(task, result)], [*path_faults(task, result)]
    prompt, reply = sum(usage.prompt for usage in used), sum(usage.reply for usage in used)
    return Score(task, agent.__name__, result.status, result.answer, wrong, detours, result.steps, prompt, reply,
                 round(clock() - start, 3), result.messages)


def evaluate(tasks: Iterable[Task], agent: Agent, path: Path | str | None = None,
             watch: Callable[[Score], object] | None = None, workers: int = 1) -> list[Score]:
    """Run an agent on each task, and return the scores in the order of the tasks.

    With a `path`, each score is kept there as soon as it is known, and a task whose score is there is not run again: a
    changed task is another task, and an agent goes by its name. `watch` is told each score. With more workers, tasks
    run in processes of their own; the agent must then be one that they can import.
    """
    tasks, path = list(tasks), Path(path) if path else None
    if not hasattr(agent, "__name__"):
        raise ValueError("an agent goes by its name, and this one has none: write it with def")
    if workers > 1 and agent.__module__ == "__main__":
        raise ValueError(f"another process cannot import {agent.__name__}: put it into a module")
    known = [score for score in open_scores(path) if score.agent == agent.__name__] if path else []
    scores = {score.task: score for score in known if score.task in tasks}
    for score in scores.values() if watch else ():
        watch(score)
    for score in run_all([task for task in tasks if task not in scores], agent, workers):
        scores[score.task] = score
        if path:
            keep_score(path, score)
        if watch:
            watch(score)
    return [scores[task] for task in tasks]


def run_all(tasks: list[Task], agent: Agent, workers: int) -> Iterator[Score]:
    """Yield each score as soon as it is known; with more than one worker the tasks run in as many processes."""
    if workers == 1:
        yield from (run_task(task, agent) for task in tasks)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        try:
            for run in as_completed([pool.submit(run_task, task, agent) for task in tasks]):
                yield run.result()
        finally:
            pool.shutdown(cancel_futures=True)


# --- The file of scores -----------------------------------------------------------------------------------------

HEADER = b'{"agentloop": "scores", "version": 1}'
KINDS: dict[str, type | UnionType] = {
    "agent": str, "status": str, "answer": str | None, "wrong": list, "detours": list, "steps": int, "prompt": int,
    "reply": int, "seconds": int | float, "messages": list,
}


def open_scores(path: Path) -> list[Score]:
    """Return the scores in a file, and make it ready for more: a last line that a crash cut off is taken away.

    Raises ValueError, which names the file, if it is no file of scores, or another line is broken.
    """
    text = path.read_bytes() if path.exists() else b""
    header, *lines = text.split(b"\n")[:-1] or [HEADER]
    if header != HEADER or not (HEADER.startswith(text) or b"\n" in text):
        raise ValueError(f"{path} is not a file of scores of version 1")
    scores = [read_score(line, f"{path}, line {number}") for number, line in enumerate(lines, 2)]
    if b"\n" not in text:
        path.write_bytes(HEADER + b"\n")
    elif not text.endswith(b"\n"):
        os.truncate(path, text.rindex(b"\n") + 1)
    return scores


def keep_score(path: Path, score: Score) -> None:
    """Write a score at the end of a file."""
    with path.open("a", encoding="utf-8", newline="\n") as file:
        file.write(json.dumps(asdict(score)) + "\n")


def read_score(line: bytes, where: str) -> Score:
    """Return the score that a line holds; raise ValueError, which says where, if it holds none."""
    try:
        fields = json.loads(line)
        score = Score(**fields | {"task": Task(**{name: as_tuple(value) for name, value in fields["task"].items()})})
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ValueError(f"{where}, holds no score") from None
    if not all(isinstance(getattr(score, name), kinds) for name, kinds in KINDS.items()):
        raise ValueError(f"{where}, holds no score")
    return score


def as_tuple(value: Any) -> Any:
    """Return a list, and the lists in it, as tuples."""
    return tuple(map(as_tuple, value)) if isinstance(value, list) else value


# --- What the scores say ----------------------------------------------------------------------------------------


def wilson(right: int, runs: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the interval of rates with which so many of so many runs agree.

    Unlike rate ± 2 errors it stays within 0 and 1, and is right for few runs and for all or none of them. Source: E. B.
    Wilson, Journal of the American Statistical Association 22 (1927).
    """
    if not 0 <= right <= runs or runs < 1 or not 0 < confidence < 1:
        raise ValueError("wilson takes 0 to `runs` right of 1 or more runs, and a confidence between 0 and 1")
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    rate, square = right / runs, z * z / runs
    centre, half = rate + square / 2, math.sqrt(square * (rate * (1 - rate) + square / 4))
    low, high = (centre - half) / (1 + square), (centre + half) / (1 + square)
    return (low if right else 0.0), (high if right < runs else 1.0)  # there rounding would miss by a hair


def differ(old: Score, new: Score) -> bool:
    """Say whether two runs of a task were judged differently, by outcome or, where both are right, by path."""
    return old.right != new.right or (old.right and bool(old.detours) != bool(new.detours))


def report(old: list[Score], new: list[Score]) -> str:
    """Compare two agents on the same tasks: how often each is right, and the first task on which they differ, and why.

    Raises ValueError if the tasks are not the same, in the same order.
    """
    if not old or [score.task for score in old] != [score.task for score in new]:
        raise ValueError("two agents are compared on the same tasks, in the same order")
    pairs = list(zip(old, new))
    lines = [f"{scores[0].agent} is right on {sum(s.right for s in scores)} of {len(scores)} tasks"
             for scores in (old, new)]
    lines += [f"  only {mine[0].agent}: {', '.join(names)}" for mine, others in ((old, new), (new, old))
              if (names := [a.task.name for a, b in zip(mine, others) if a.right > b.right])]
    first = next((pair for pair in pairs if differ(*pair)), None)
    if first is None:
        return "\n".join([*lines, "They differ on no task."])
    lines.append(f"They differ first on {first[0].task.name}: {first[0].task.prompt}")
    for score in first:
        lines += [f"  {score.agent} is {score.verdict}", f"    its answer: {score.answer}"]
    return "\n".join([*lines, f"  {first_difference(first[0].messages, first[1].messages)}"])
