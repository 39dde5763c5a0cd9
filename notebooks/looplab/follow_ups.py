"""The changes that an interviewer asks for at the end, and the checks that tell whether a file has them.

A check is a function of the reader's module; its docstring is the requirement, and what is tried. An exception means
that it does not hold. All are tried in a process that is ended if it does not end by itself.
"""

from __future__ import annotations

import io
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from agentloop import Json, describe
from looplab.cases import Outcome, attempt
from looplab.faults import load

Check = Callable[[Any], None]


@dataclass(frozen=True)
class FollowUp:
    """A change that is asked for: its name, what the interviewer says, what to write, and the checks.

    `some_holds` is what the interviewer says to a half of it, `notebook` where it is practised. `words` are said to a
    requirement that does not hold and has the key in its sentence.
    """

    name: str
    asks: str
    code: str
    checks: tuple[Check, ...]
    some_holds: str
    notebook: int
    words: dict[str, str] = field(default_factory=dict)


def sentence_of(check: Check) -> str:
    """Return the requirement that a check is about."""
    return str(check.__doc__).partition("\n")[0]


def tried_by(check: Check) -> str:
    """Return what a check tries."""
    return str(check.__doc__).partition("Tried: ")[2].strip()


# --- What the checks use -------------------------------------------------------------------------------------

OBJECT = {"type": "object"}
X: Json = {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}


def ask(mine: Any, *calls: tuple[str, str, Json]) -> Any:
    """Return a reply with calls, each as id, name and arguments."""
    return mine.ModelReply("", [mine.ToolCall(*deepcopy(c)) for c in calls])


def script(mine: Any, *replies: Any) -> Callable[..., Any]:
    """Return a model that replays replies; a text among them is a final answer."""
    left = list(replies)

    def model(messages: list[Json], specs: list[Json]) -> Any:
        assert left, "the model was asked again after its last reply"
        reply = left.pop(0)
        return mine.ModelReply(reply) if isinstance(reply, str) else reply

    return model


def tools(mine: Any, **functions: Callable[..., Any]) -> Any:
    """Return a registry in which a function with a default for x takes none, and any other takes x as text."""
    registry = mine.ToolRegistry()
    for name, fn in functions.items():
        registry.register(name, f"Use {name}.", OBJECT if fn.__defaults__ else X, fn)
    return registry


def observed(result: Any) -> dict[str, str]:
    """Return the content of each tool message by the id of its call."""
    return {m["tool_call_id"]: m["content"] for m in result.messages if m["role"] == "tool"}


# --- Approval ------------------------------------------------------------------------------------------------


def run_refund(mine: Any, risky: tuple[str, ...] = ("refund",)) -> tuple[Any, list[str]]:
    ran: list[str] = []
    registry = tools(mine, look=lambda x: ran.append(f"look {x}"), refund=lambda x: ran.append(f"refund {x}"))
    calls = [("a", "look", {"x": "1"}), ("b", "refund", {"x": "2"}), ("c", "look", {"x": "3"})]
    result = mine.run_agent("Refund it.", script(mine, ask(mine, *calls), "Done."), registry, risky=risky)
    return result, ran


def risky_call_waits(mine: Any) -> None:
    """A risky call is not run, and the run ends with waiting_for_approval and no answer.

    Tried: a reply with look, refund and look, where refund is risky
    """
    result, ran = run_refund(mine)
    assert "refund 2" not in ran, "the refund ran"
    assert (result.status, result.answer) == ("waiting_for_approval", None), f"{result.status}, {result.answer}"


def calls_before_it_are_answered(mine: Any) -> None:
    """The call before it has its observation; it and the call after it have none, and did not run.

    Tried: a reply with look, refund and look, where refund is risky
    """
    result, ran = run_refund(mine)
    assert (list(observed(result)), ran) == (["a"], ["look 1"]), f"observations of {list(observed(result))}, ran {ran}"


def open_calls_stay_in_the_list(mine: Any) -> None:
    """The reply stands in the list with all its calls, so that a later run knows which are open.

    Tried: a reply with look, refund and look, where refund is risky
    """
    result, _ = run_refund(mine)
    asked = [c["id"] for m in result.messages if m["role"] == "assistant" for c in m["tool_calls"]]
    assert asked == ["a", "b", "c"], f"the calls in the list are {asked}"


def without_risk_as_before(mine: Any) -> None:
    """A run without a risky call ends as before.

    Tried: the same reply, where nothing is risky
    """
    result, ran = run_refund(mine, risky=())
    assert (result.status, len(ran)) == ("done", 3), f"{result.status}, ran {ran}"


# --- Timeout -------------------------------------------------------------------------------------------------


def result_in_time(mine: Any) -> None:
    """A function that is done in time gives its result, and gets its arguments by name.

    Tried: with_timeout(fn, 2)(x="sky"), where fn returns at once
    """
    value = mine.with_timeout(lambda x: f"the {x}", 2)(x="sky")
    assert value == "the sky", f"it gave {value!r}"


def none_in_time(mine: Any) -> None:
    """A function that returns None in time is not late.

    Tried: with_timeout(fn, 2)(), where fn returns None at once
    """
    try:
        value = mine.with_timeout(lambda: None, 2)()
    except TimeoutError:
        raise AssertionError("a TimeoutError came all the same") from None
    assert value is None, f"it gave {value!r}"


def too_slow(mine: Any) -> None:
    """A function that takes too long is not waited for: TimeoutError.

    Tried: with_timeout(fn, 0.05)(), where fn waits for a minute
    """
    never = threading.Event()
    try:
        mine.with_timeout(lambda: never.wait(60), 0.05)()
    except TimeoutError:
        return
    raise AssertionError("no TimeoutError came")


def own_exception(mine: Any) -> None:
    """An exception of the function itself passes through.

    Tried: with_timeout(fn, 2)(), where fn raises a KeyError
    """
    try:
        mine.with_timeout(lambda: {}["Atlantis"], 2)()
    except KeyError:
        return
    raise AssertionError("the KeyError did not pass through")


def timeout_is_observed(mine: Any) -> None:
    """Registered as a tool, a function that takes too long is an observation that names TimeoutError.

    Tried: execute of a tool that is with_timeout(fn, 0.05), where fn waits for a minute
    """
    registry, never = mine.ToolRegistry(), threading.Event()
    registry.register("wait", "Wait.", OBJECT, mine.with_timeout(lambda: never.wait(60), 0.05))
    text = registry.execute("wait", {})
    assert text.startswith("ERROR: wait failed: TimeoutError"), f"it is {text!r}"


# --- Repeated calls ------------------------------------------------------------------------------------------


def repeat(mine: Any, args: list[str], answers: list[str] | None = None, **options: Any) -> tuple[Any, list[str]]:
    ran: list[str] = []

    def look(x: str) -> str:
        ran.append(x)
        return answers[len(ran) - 1] if answers else f"the {x}"

    replies = [ask(mine, (f"c{i}", "look", {"x": x})) for i, x in enumerate(args)]
    return mine.run_agent("Look.", script(mine, *replies, "Done."), tools(mine, look=look), **options), ran


def third_is_not_run(mine: Any) -> None:
    """The third call in a row with the same tool, arguments and result is not run: repeated_call, no answer.

    Tried: the same call in five replies, with max_repeats=3
    """
    result, ran = repeat(mine, ["sky"] * 5, max_repeats=3)
    got = result.status, result.answer, len(ran)
    assert got == ("repeated_call", None, 2), f"{result.status}, ran {len(ran)} times"


def number_says_which(mine: Any) -> None:
    """The number says which call in a row is not run: with 4, the fourth.

    Tried: the same call in five replies, with max_repeats=4
    """
    result, ran = repeat(mine, ["sky"] * 5, max_repeats=4)
    assert (result.status, len(ran)) == ("repeated_call", 3), f"{result.status}, ran {len(ran)} times"


def repeat_is_answered(mine: Any) -> None:
    """The call that was not run is answered with an ERROR, as is every call after it in the same reply.

    Tried: one reply with the same call four times, with max_repeats=3
    """
    reply = ask(mine, *((i, "look", {"x": "sky"}) for i in "abcd"))
    registry = tools(mine, look=lambda x: f"the {x}")
    result = mine.run_agent("Look.", script(mine, reply, "Done."), registry, max_repeats=3)
    errors = [text.startswith("ERROR: ") for text in observed(result).values()]
    assert errors == [False, False, True, True], f"observations: {list(observed(result).values())}"


def other_arguments(mine: Any) -> None:
    """Other arguments in between are no repeat.

    Tried: calls with sky, sky, sea, sky, sky, with max_repeats=3
    """
    result, _ = repeat(mine, ["sky", "sky", "sea", "sky", "sky"], max_repeats=3)
    assert result.status == "done", f"it ended with {result.status}"


def other_tool(mine: Any) -> None:
    """Another tool with the same arguments and result is no repeat.

    Tried: look, peek, look and peek with sky, with max_repeats=3
    """
    registry = tools(mine, look=lambda x: f"the {x}", peek=lambda x: f"the {x}")
    replies = [ask(mine, (f"c{i}", name, {"x": "sky"})) for i, name in enumerate(["look", "peek"] * 2)]
    result = mine.run_agent("Look.", script(mine, *replies, "Done."), registry, max_repeats=3)
    assert result.status == "done", f"it ended with {result.status}"


def poll_is_no_repeat(mine: Any) -> None:
    """The same call with a new result each time is a poll, and no repeat.

    Tried: the same call in three replies, where each result is new, with max_repeats=3
    """
    result, _ = repeat(mine, ["job"] * 3, ["queued", "running", "finished"], max_repeats=3)
    assert result.status == "done", f"it ended with {result.status}"


def repeats_are_allowed(mine: Any) -> None:
    """Unless max_repeats is given, calls may repeat.

    Tried: the same call in five replies, without max_repeats
    """
    result, ran = repeat(mine, ["sky"] * 5)
    assert (result.status, len(ran)) == ("done", 5), f"{result.status}, ran {len(ran)} times"


# --- Parallel calls ------------------------------------------------------------------------------------------


def at_the_same_time(mine: Any) -> None:
    """The calls of one reply run at the same time.

    Tried: a reply with two calls, each of which waits for half a second until the other has begun
    """
    both = threading.Barrier(2, timeout=0.5)
    registry = tools(mine, meet=lambda x: both.wait() >= 0)
    calls = [("a", "meet", {"x": "1"}), ("b", "meet", {"x": "2"})]
    result = mine.run_agent("Meet.", script(mine, ask(mine, *calls), "Done."), registry)
    assert observed(result) == {"a": "true", "b": "true"}, "the first was over before the second began"


def in_the_order_of_the_calls(mine: Any) -> None:
    """The observations stand in the order of the calls, even if the first is the last to be done.

    Tried: a reply with two calls, of which the first waits until the second is done
    """
    second_is_done = threading.Event()

    def go(x: str) -> str:
        if x == "first":
            second_is_done.wait(0.5)
        else:
            second_is_done.set()
        return x

    calls = [("a", "go", {"x": "first"}), ("b", "go", {"x": "second"})]
    result = mine.run_agent("Go.", script(mine, ask(mine, *calls), "Done."), tools(mine, go=go))
    assert list(observed(result).items()) == [("a", '"first"'), ("b", '"second"')], f"{observed(result)}"


def one_fails(mine: Any) -> None:
    """A call that fails takes no result away from the others.

    Tried: a reply with four calls: the second lacks an argument, the third names no tool
    """
    calls = [("a", "look", {"x": "1"}), ("b", "look", {}), ("c", "gone", {}), ("d", "look", {"x": "4"})]
    registry = tools(mine, look=lambda x: x)
    result = mine.run_agent("Look.", script(mine, ask(mine, *calls), "Done."), registry)
    errors = [text.startswith("ERROR: ") for text in observed(result).values()]
    assert (list(observed(result)), errors) == (list("abcd"), [False, True, True, False]), f"{observed(result)}"


# --- Resume --------------------------------------------------------------------------------------------------


def resumed(mine: Any, max_steps: int = 8, more_tokens: int = 4000) -> tuple[Any, Any, Any, Any]:
    """Return a run in one piece, one that was stopped after two steps, a copy of that, and what became of it.

    `more_tokens` is what the budget leaves to the second half.
    """
    replies = [*(ask(mine, (f"c{i}", "look", {"x": str(i)})) for i in range(3)), "Done."]
    registry = tools(mine, look=lambda x: f"the {x}")
    whole = mine.run_agent("Look.", script(mine, *replies), registry)
    model = script(mine, *replies)
    half = mine.run_agent("Look.", model, registry, max_steps=2)
    before = deepcopy(half)
    budget = half.tokens + more_tokens
    return whole, half, before, mine.resume(half, model, registry, max_steps=max_steps, token_budget=budget)


def goes_on(mine: Any) -> None:
    """A run that was stopped goes on, and ends with the same answer and messages as one in one piece.

    Tried: a run that max_steps=2 stopped, resumed with max_steps=8
    """
    whole, _, _, result = resumed(mine)
    assert (result.status, result.answer) == ("done", "Done."), f"{result.status}, {result.answer}"
    assert result.messages == whole.messages, "the messages differ from those of a run in one piece"


def goes_on_counting(mine: Any) -> None:
    """Steps and tokens go on counting.

    Tried: a run that max_steps=2 stopped, resumed with max_steps=8
    """
    whole, _, _, result = resumed(mine)
    got, expected = (result.steps, result.tokens), (whole.steps, whole.tokens)
    assert got == expected, f"steps and tokens are {got}, in one piece {expected}"


def limits_are_for_the_whole(mine: Any) -> None:
    """The limits are for the whole run: what was used before counts against them.

    Tried: a run that max_steps=2 stopped, resumed with max_steps=3, then with a budget that is spent already
    """
    one_more, none_more = resumed(mine, max_steps=3)[-1], resumed(mine, more_tokens=0)[-1]
    got = [(result.status, result.steps) for result in (one_more, none_more)]
    assert got == [("step_limit", 3), ("token_budget", 2)], " and ".join(f"{end}, {n} steps" for end, n in got)


def stays_as_it_was(mine: Any) -> None:
    """The result that it began with stays as it was.

    Tried: a run that max_steps=2 stopped, resumed with max_steps=8
    """
    _, half, before, _ = resumed(mine)
    assert half == before, "resume changed the result that it was given"


def done_is_done(mine: Any) -> None:
    """A run that is done does not go on: ValueError.

    Tried: resume of a run that is done
    """
    whole = resumed(mine)[0]
    try:
        mine.resume(whole, script(mine, "Again."), tools(mine, look=lambda x: x), max_steps=8, token_budget=4000)
    except ValueError:
        return
    raise AssertionError("no ValueError came")


# --- Cutting results -----------------------------------------------------------------------------------------


def read_page(mine: Any, length: int, **options: Any) -> str:
    registry = tools(mine, read=lambda x="": "y" * (length - 2))  # as JSON it has two quotes more
    result = mine.run_agent("Read.", script(mine, ask(mine, ("a", "read", {})), "Done."), registry, **options)
    return observed(result)["a"]


def long_is_cut(mine: Any) -> None:
    """A result of more than max_result_chars is cut to at most so many characters, what is said about it included.

    Tried: a tool that returns 5,000 characters, with max_result_chars=200, then 150
    """
    for most in (200, 150):
        text = read_page(mine, 5000, max_result_chars=most)
        assert len(text) <= most and text.startswith('"yyy'), f"it has {len(text)} characters: {text[:40]!r}"


def says_what_is_missing(mine: Any) -> None:
    """What is left says how many characters there were, or how many are missing.

    Tried: a tool that returns 5,000 characters, with max_result_chars=200
    """
    text = read_page(mine, 5000, max_result_chars=200)
    kept = text.count("y")
    assert any(str(n) in text.replace(",", "") for n in range(4998 - kept - 3, 5001)), f"it ends with {text[-60:]!r}"


def short_is_kept(mine: Any) -> None:
    """A result that fits is not touched, and without max_result_chars none is.

    Tried: 200 characters with max_result_chars=200, and 5,000 without it
    """
    fits, whole = read_page(mine, 200, max_result_chars=200), read_page(mine, 5000)
    assert fits == f'"{"y" * 198}"', f"a result of 200 characters became {fits[-60:]!r}"
    assert len(whole) == 5000, f"without max_result_chars, 5000 characters became {len(whole)}"


# --- The list ------------------------------------------------------------------------------------------------

FOLLOW_UPS = {follow_up.name: follow_up for follow_up in (
    FollowUp("approval", "Some tools are risky. A person has to approve their calls before they run, and may take "
                         "hours. So the run ends there, with that call and those after it left open.",
             'run_agent(..., risky=("issue_refund",))        # status "waiting_for_approval"',
             (risky_call_waits, calls_before_it_are_answered, open_calls_stay_in_the_list, without_risk_as_before),
             "Which calls of the reply have run when it stops, and which are open?", 8,
             {"without a risky call": "Run it once with nothing risky. What is different?"}),
    FollowUp("timeout", "A tool may hang. Give me a function that puts a limit on any tool: after so many seconds "
                        "it is not waited for any more, and the call raises TimeoutError. An exception of the tool "
                        "itself passes through. The loop should not change.",
             "with_timeout(fn, seconds)                      # a function like fn, to be registered in its place",
             (result_in_time, none_in_time, too_slow, own_exception, timeout_is_observed),
             "Who waits for whom while the tool hangs, and what does the caller get then?", 6,
             {"gives its result": "Call it by name, with x=1. What comes back?",
              "returns none": "How do you know that the function is done?",
              "passes through": "What becomes of an exception that the tool raises itself?"}),
    FollowUp("repeated calls", "The model sometimes makes the same call again and again and gets the same result. "
                               "The third in a row is not run: it and every call after it in that reply are answered "
                               "with a text that starts with ERROR, and the run ends without an answer. A poll, whose "
                               "result changes, is no repeat.",
             'run_agent(..., max_repeats=3)                  # status "repeated_call"; off unless given',
             (third_is_not_run, number_says_which, repeat_is_answered, other_arguments, other_tool, poll_is_no_repeat,
              repeats_are_allowed),
             "What has to be the same for a call to count as a repeat?", 7,
             {"third call": "Count aloud how often the tool runs before you stop.",
              "the number": "Where does the number come in that you are given?",
              "answered": "Draw me the last reply, and what stands below it.",
              "unless": "What has a caller to do who wants all this off?"}),
    FollowUp("parallel calls", "The calls of one reply are all reads, and slow. Run them at the same time. The list "
                               "should look as before.",
             "run_agent(...)                                 # as before",
             (at_the_same_time, in_the_order_of_the_calls, one_fails),
             "In which order do the results come back, and in which do they stand in the list?", 13,
             {"same time": "When does the second call begin?",
              "fails": "What does one failure do to the others?"}),
    FollowUp("resume", "A run that a limit stopped should go on later with a higher one, without doing anything "
                       "twice. The limits are for the whole run, both halves together. The first result stays as it "
                       "is. To resume a run that is done is a ValueError.",
             "resume(result, model, registry, max_steps=8, token_budget=4000)",
             (goes_on, goes_on_counting, limits_are_for_the_whole, stays_as_it_was, done_is_done),
             "What does the second run begin with: which messages, which counts?", 8,
             {"whole run": "Two steps were made, and the limit is three now. How many are left?",
              "stays": "Whose list do you append to?",
              "valueerror": "What do you say to a caller whose run is done?"}),
    FollowUp("cutting results", "One tool returns whole web pages, and each of them is sent again with every later "
                                "step. Cut long results to max_result_chars, and let the model know how many "
                                "characters there were, or are missing; what you say counts too.",
             "run_agent(..., max_result_chars=2000)          # off unless given",
             (long_is_cut, says_what_is_missing, short_is_kept),
             "Read me the observation that the model gets for a long result.", 6,
             {"at most": "Count its characters, your own words included.",
              "not touched": "And which results stay as they are?"}),
)}


# --- In the process ------------------------------------------------------------------------------------------


class Nowhere(io.StringIO):
    """Takes what is printed, however much, and keeps nothing."""

    def write(self, text: str) -> int:
        return len(text)


def attempt_unheard(act: Callable[..., Any], *arguments: Any) -> Outcome:
    """Attempt a piece of the reader's file, which may print as much as it likes."""

    def unheard() -> Any:
        with redirect_stdout(Nowhere()), redirect_stderr(Nowhere()):
            return act(*arguments)

    return attempt(unheard)


def attempt_load(path: str) -> Outcome:
    """Load the reader's file, in the way in which the stages load it."""
    return attempt_unheard(lambda: load(Path(path).read_bytes(), path))


def try_file(path: str, name: str) -> Iterator[Json]:
    """Try the checks of a follow-up on a file; yield each requirement before, and what came of it after."""
    loaded = attempt_load(path)
    for check in FOLLOW_UPS[name].checks:
        yield {"requirement": sentence_of(check)}
        outcome = loaded if loaded.error else attempt_unheard(check, loaded.value)
        holds = outcome.error is None and not outcome.redefined
        yield {"holds": holds, "came_back": "" if holds else what_came_back(outcome.error, path)}


def what_came_back(error: BaseException | None, path: str) -> str:
    """Say why a check does not hold, with the line of the file that an exception came through."""
    if error is None:
        return "the file redefines a name that belongs to Python"
    if isinstance(error, AssertionError):
        return str(error) or "it does not hold"
    if isinstance(error, AttributeError) and isinstance(error.obj, ModuleType):
        return f"the file has no {error.name}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return f"it raised {describe(error)}" + (f" (line {lines[-1]})" if lines else "")
