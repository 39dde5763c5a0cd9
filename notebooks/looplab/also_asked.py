"""What an interviewer asks about a file although no check is about it: each is tried on the file first.

A try is a function of the reader's module that says whether the file does what is asked about. One that fails says
nothing, and then nothing is asked.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from agentloop import Json
from looplab.cases import attempt
from looplab.follow_ups import OBJECT, ask, attempt_load, attempt_unheard, observed, script, tools


MANY = 33  # calls of one reply: a pool that is not told how many takes at most 32


@dataclass(frozen=True)
class AlsoAsked:
    """A remark on one part or change: what it is about, what is asked, where it is practised, and the try."""

    about: str
    asks: str
    notebook: int
    does: Callable[[Any], bool]


# --- Tries ---------------------------------------------------------------------------------------------------


def observe(mine: Any, fn: Callable[[], Any]) -> str:
    """Return the text that the file's registry gives for a tool without arguments."""
    registry = mine.ToolRegistry()
    registry.register("pay", "Pay.", OBJECT, fn)
    return str(registry.execute("pay", {}))


def calls_a_result_a_failure(mine: Any) -> bool:
    return observe(mine, lambda: {1, 2}).startswith("ERROR: pay failed")


def swallows_ctrl_c(mine: Any) -> bool:
    def interrupted() -> None:
        raise KeyboardInterrupt

    try:
        observe(mine, interrupted)
    except KeyboardInterrupt:
        return False
    return True


def lets_an_exit_out(mine: Any) -> bool:
    return isinstance(attempt(observe, mine, sys.exit).error, SystemExit)


def raises_at_a_name_that_is_no_text(mine: Any) -> bool:
    return attempt(mine.ToolRegistry().execute, ["pay"], {}).error is not None


def promises_what_it_does_not_check(mine: Any) -> bool:
    registry, ran = mine.ToolRegistry(), []
    unit = {"type": "string", "enum": ["C", "F"]}
    registry.register("heat", "Heat.", {"type": "object", "properties": {"unit": unit}}, lambda unit: ran.append(unit))
    registry.execute("heat", {"unit": "K"})
    return bool(ran)


def lets_two_calls_share_an_id(mine: Any) -> bool:
    reply = ask(mine, ("a", "look", {"x": "1"}), ("a", "look", {"x": "2"}))
    result = mine.run_agent("Look.", script(mine, reply, "Done."), tools(mine, look=lambda x: x))
    return list(observed(result)) == ["a"]


def says_nothing_of_the_timeout(mine: Any) -> bool:
    never = threading.Event()
    error = attempt(mine.with_timeout(lambda: never.wait(60), 0.05)).error
    never.set()
    return isinstance(error, TimeoutError) and not str(error).strip()


def keeps_the_program_alive(mine: Any) -> bool:
    before, never = set(threading.enumerate()), threading.Event()
    attempt(mine.with_timeout(lambda: never.wait(60), 0.05))
    left = [thread for thread in threading.enumerate() if thread not in before and not thread.daemon]
    never.set()
    return bool(left)


def takes_an_exit_for_a_timeout(mine: Any) -> bool:
    def leave() -> None:
        raise SystemExit

    return isinstance(attempt(mine.with_timeout(leave, 0.5)).error, TimeoutError)


def asks_a_person_about_what_cannot_run(mine: Any) -> bool:
    registry = tools(mine, refund=lambda x: x)
    result = mine.run_agent("Pay.", script(mine, ask(mine, ("a", "refund", {})), "Done."), registry, risky=("refund",))
    return bool(result.status == "waiting_for_approval")


def takes_another_order_for_another_call(mine: Any) -> bool:
    orders = [{"x": "1", "y": "2"}, {"y": "2", "x": "1"}] * 2
    text = {"type": "string"}
    both = {"type": "object", "properties": {"x": text, "y": text}, "required": ["x", "y"]}
    registry = mine.ToolRegistry()
    registry.register("look", "Look.", both, lambda x, y: "the same")
    replies = [ask(mine, (f"c{i}", "look", args)) for i, args in enumerate(orders)]
    return bool(mine.run_agent("Look.", script(mine, *replies, "Done."), registry, max_repeats=3).status == "done")


def runs_only_some_at_the_same_time(mine: Any) -> bool:
    together = threading.Barrier(MANY, timeout=0.5)
    registry = tools(mine, meet=lambda x: together.wait() >= 0)
    reply = ask(mine, *((f"c{i}", "meet", {"x": str(i)}) for i in range(MANY)))
    result = mine.run_agent("Meet.", script(mine, reply, "Done."), registry, token_budget=10**6)
    return set(observed(result).values()) != {"true"}


def sends_a_call_without_its_result(mine: Any) -> bool:
    shown: list[Any] = []

    def model(messages: list[Json], specs: list[Json]) -> Any:
        shown.extend(messages)
        return mine.ModelReply("Done.")

    registry, reply = tools(mine, look=lambda x: x), ask(mine, ("a", "look", {"x": "1"}))
    half = mine.run_agent("Look.", script(mine, reply), registry, max_steps=1)
    half.messages.pop()  # as if the process had ended while the call ran
    mine.resume(half, model, registry, max_steps=8, token_budget=4000)
    return shown[-1]["role"] == "assistant"


def is_longer_than_a_small_limit(mine: Any) -> bool:
    registry = tools(mine, read=lambda x="": "y" * 5000)
    replies = script(mine, ask(mine, ("a", "read", {})), "Done.")
    return len(observed(mine.run_agent("Read.", replies, registry, max_result_chars=10))["a"]) > 10


ALSO_ASKED = {
    "registry": (
        AlsoAsked("results that are not JSON", "A tool returned what is not JSON, and your text says that it failed. "
                  "It ran: what does the model do next, if it was a payment?", 3, calls_a_result_a_failure),
        AlsoAsked("Ctrl-C in a tool", "Ctrl-C in a tool becomes a text for the model. How does a person stop the run?",
                  3, swallows_ctrl_c),
        AlsoAsked("exits in a tool", "A tool calls sys.exit(), and with it your execute ends the whole run. Which "
                  "exceptions do you catch, besides Exception?", 3, lets_an_exit_out),
        AlsoAsked("names that are no text", "The model sends a list where the name should be, and execute raises. What "
                  "else can come in there?", 3, raises_at_a_name_that_is_no_text),
        AlsoAsked("schema keywords that are not checked", "You take a schema with enum and check nothing of it. What "
                  "does the model believe?", 2, promises_what_it_does_not_check)),
    "loop": (
        AlsoAsked("ids that are given twice", "Two calls came with the same id, and so did their results. Whose is "
                  "whose?", 4, lets_two_calls_share_an_id),),
    "approval": (
        AlsoAsked("who is asked about what", "A risky call lacks an argument, and a person is asked about it. What "
                  "would come first?", 8, asks_a_person_about_what_cannot_run),),
    "timeout": (
        AlsoAsked("what a timeout says", "Your TimeoutError says nothing. What should the model know about the call?",
                  6, says_nothing_of_the_timeout),
        AlsoAsked("threads that keep the program alive", "After a timeout the program cannot end, because the thread "
                  "is no daemon. Who waits for it?", 6, keeps_the_program_alive),
        AlsoAsked("exits that look like timeouts", "A tool called sys.exit(), and you say that it took too long. "
                  "Which exceptions do you hand over?", 6, takes_an_exit_for_a_timeout)),
    "repeated calls": (
        AlsoAsked("the order of arguments", "The same arguments in another order count as another call. What do you "
                  "compare?", 7, takes_another_order_for_another_call),),
    "parallel calls": (
        AlsoAsked("how many calls run at once", f"A reply has {MANY} calls, and some wait until others are over. What "
                  "sets that limit: you, or your pool's default?", 13, runs_only_some_at_the_same_time),),
    "resume": (
        AlsoAsked("calls without a result", "The list ends with a call that has no result, and you send it as it is. "
                  "Did that call run?", 8, sends_a_call_without_its_result),),
    "cutting results": (
        AlsoAsked("very small limits", "With a limit of ten characters your text is longer than that. Which gives way, "
                  "the limit or your words?", 6, is_longer_than_a_small_limit),),
}


# --- In the process ------------------------------------------------------------------------------------------


def try_file(path: str, names: list[str]) -> Iterator[Json]:
    """Try on a file what is asked about these parts and changes; yield the name and what it is about if it does so."""
    mine = attempt_load(path).value
    for name in names if mine else []:
        for asked in ALSO_ASKED.get(name, ()):
            outcome = attempt_unheard(asked.does, mine)
            if outcome.error is None and not outcome.redefined and outcome.value:
                yield {"name": name, "about": asked.about}
