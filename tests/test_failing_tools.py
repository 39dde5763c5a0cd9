"""Section 6: tools that hang, fail for a while, or say too much; and what a model is sent."""

from __future__ import annotations

import functools
import inspect
import json
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from support import assert_closed, observations, raises, random_text, run, takes, tool

import agentloop
from agentloop import (
    ScriptedModel,
    SchemaError,
    Stop,
    asks,
    call,
    check_messages,
    continue_agent,
    count_tokens,
    final,
    fit_messages,
    trim_result,
    up_to_a_second,
    with_retries,
    with_timeout,
)

CITY = takes(city="string")
NEVER_LATE = 60
ASK = asks(call("a", "t"))


@pytest.fixture
def stuck():
    """Return a function that hangs until the test is over."""
    over = threading.Event()
    yield lambda *args, **kwargs: over.wait() and "late"
    over.set()


# --- Timeouts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [30, None, False, 0, "", [], {"city": "Pune"}], ids=repr)
def test_a_function_that_is_in_time_gives_its_result(value):
    assert with_timeout(lambda: value, NEVER_LATE)() == value


@pytest.mark.parametrize(
    "error",
    [
        ValueError("bad"),
        KeyError(),
        SystemExit(1),
        KeyboardInterrupt(),
        GeneratorExit(),
        StopIteration(),
        TimeoutError("its own"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_a_function_raises_in_time_is_raised(error):
    with pytest.raises(type(error)) as caught:
        with_timeout(raises(error), NEVER_LATE)()
    assert caught.value is error


def test_a_function_gets_its_arguments_and_the_wrapper_looks_like_it():
    def look_up(city: str, *, unit: str = "C") -> str:
        """Look it up."""
        return f"{city} {unit}"

    for wrap in (lambda fn: with_timeout(fn, NEVER_LATE), with_retries):
        wrapped = wrap(look_up)
        assert wrapped("Pune", unit="F") == "Pune F"
        assert (wrapped.__name__, wrapped.__doc__) == ("look_up", "Look it up.")
        assert inspect.signature(wrapped) == inspect.signature(look_up)
        assert tool(wrapped, CITY).execute("t", {"city": "Pune"}) == '"Pune C"'


async def fetch(city):
    return city


@pytest.mark.parametrize("misfit", [fetch, lambda town: town, functools.partial(fetch)])
@pytest.mark.parametrize("wrap", [with_retries, lambda fn: with_timeout(fn, NEVER_LATE)])
def test_a_wrapped_function_that_does_not_fit_is_still_refused_when_it_is_registered(wrap, misfit):
    with pytest.raises(SchemaError):
        tool(wrap(misfit), CITY)


def test_a_late_function_is_not_waited_for_and_the_error_says_that_it_may_still_be_running(stuck):
    observation = tool(with_timeout(stuck, 0.01)).execute("t", {})
    assert observation == "ERROR: t failed: TimeoutError: no result within 0.01 s; the call may still be running"


def test_a_late_function_goes_on_and_its_result_is_nobodys():
    over, took_effect, second = threading.Event(), threading.Event(), threading.Event()
    results = iter([(over, "first"), (second, "second")])

    def slow():
        event, result = next(results)
        event.wait()
        took_effect.set()
        return result

    limited = with_timeout(slow, 0.01)
    with pytest.raises(TimeoutError):
        limited()
    assert not took_effect.is_set()
    over.set()
    assert took_effect.wait(NEVER_LATE)
    second.set()
    assert with_timeout(slow, NEVER_LATE)() == "second"


def test_the_threads_that_are_left_are_daemons(stuck):
    before = set(threading.enumerate())
    for _ in range(3):
        with pytest.raises(TimeoutError):
            with_timeout(stuck, 0.01)()
    left = set(threading.enumerate()) - before
    assert len(left) == 3 and all(thread.daemon for thread in left)


def run_python(program, *args):
    """Run a program in a new interpreter that imports the file under test; it is given a minute."""
    env = os.environ | {"PYTHONPATH": str(Path(agentloop.__file__).parent)}
    command = [sys.executable, "-W", "error", "-c", program, *args]
    return subprocess.run(command, env=env, capture_output=True, text=True, encoding="utf-8", timeout=60)


def test_python_ends_although_a_function_hangs_for_ever():
    program = """
import threading
from agentloop import *
registry = ToolRegistry()
registry.register("t", "Hang.", {}, with_timeout(threading.Event().wait, 0.01))
print(run_agent("go", ScriptedModel([asks(call("a", "t")), final("ok")]), registry).answer)
"""
    ended = run_python(program)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "ok\n", "")


@pytest.mark.skipif(os.name == "nt", reason="a signal to oneself ends a process there")
def test_ctrl_c_while_a_tool_is_waited_for_is_the_persons_and_leaves_a_closed_list(stuck):
    def interrupted():
        os.kill(os.getpid(), signal.SIGINT)
        stuck()

    model = ScriptedModel([asks(call("a", "t"), call("b", "t"))])
    with pytest.raises(KeyboardInterrupt) as caught:
        run(model, tool(with_timeout(interrupted, NEVER_LATE)))
    result = caught.value.result
    assert observations(result) == [agentloop.INTERRUPTED, agentloop.NOT_RUN]
    check_messages(result.messages)


def test_a_model_that_is_late_ends_the_run_with_its_messages_kept(stuck):
    model = ScriptedModel([ASK, with_timeout(stuck, 0.01)])
    with pytest.raises(TimeoutError) as caught:
        run(model, tool(lambda: "paid for"))
    result = caught.value.result
    assert (result.status, observations(result)) == ("interrupted", ['"paid for"'])
    assert continue_agent(result, ScriptedModel([final("ok")]), tool(lambda: 1), 9, 9999).answer == "ok"


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), 1e30])
def test_a_timeout_that_is_no_time_is_a_value_error(seconds):
    with pytest.raises(ValueError, match="seconds must be above 0"):
        with_timeout(lambda: 1, seconds)


# --- Retries --------------------------------------------------------------------------------------------------


class Flaky:
    """A function that raises these errors in turn, and then returns its arguments."""

    def __init__(self, *errors):
        self.errors, self.calls = list(errors), 0

    def __call__(self, *args, **kwargs):
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return args, kwargs


def retrying(fn, **options):
    """Wrap a function so that its waits are noted and nobody waits; return it with the notes."""
    slept = []
    return with_retries(fn, **{"sleep": slept.append, "jitter": lambda: 0} | options), slept


@pytest.mark.parametrize("failures", range(4))
def test_a_failure_that_passes_is_tried_again_after_1_2_and_4_seconds(failures):
    flaky = Flaky(*[TimeoutError(), ConnectionResetError(), ConnectionError()][:failures])
    patient, slept = retrying(flaky)
    assert patient("x", y=1) == (("x",), {"y": 1})
    assert (flaky.calls, slept) == (failures + 1, [1, 2, 4][:failures])


def test_after_the_last_wait_the_last_exception_passes_as_it_is():
    errors = [TimeoutError(str(n)) for n in range(5)]
    flaky = Flaky(*errors)
    patient, slept = retrying(flaky)
    with pytest.raises(TimeoutError) as caught:
        patient()
    assert caught.value is errors[3] and (flaky.calls, slept) == (4, [1, 2, 4])


class BadRequest(Exception):
    """What a provider's client raises for a request that no second try makes better."""


class RateLimited(Exception):
    """What a provider's client raises for a request that came too soon."""


@pytest.mark.parametrize(
    "error",
    [BadRequest("400"), ValueError(), OSError("disk full"), KeyboardInterrupt(), SystemExit()],
    ids=lambda error: type(error).__name__,
)
def test_a_failure_that_no_second_try_mends_passes_at_once(error):
    flaky = Flaky(error)
    patient, slept = retrying(flaky)
    with pytest.raises(type(error)):
        patient()
    assert (flaky.calls, slept) == (1, [])


def test_what_is_tried_again_can_be_named():
    patient, slept = retrying(Flaky(RateLimited(), RateLimited()), on=(RateLimited,), waits=[5, 50])
    assert patient() == ((), {}) and slept == [5, 50]
    with pytest.raises(TimeoutError):
        retrying(Flaky(TimeoutError()), on=(RateLimited,))[0]()


def test_the_waits_are_the_same_for_each_call_even_if_they_came_from_an_iterator():
    for waits in (iter([1, 2]), (wait for wait in (1, 2)), [1, 2]):
        patient, slept = retrying(raises(TimeoutError()), waits=waits)
        for _ in range(2):
            with pytest.raises(TimeoutError):
                patient()
        assert slept == [1, 2, 1, 2]


def test_without_waits_nothing_is_tried_again():
    flaky = Flaky(TimeoutError())
    with pytest.raises(TimeoutError):
        retrying(flaky, waits=())[0]()
    assert flaky.calls == 1


def test_jitter_is_added_to_each_wait_and_differs_each_time_by_less_than_a_second():
    jitter = iter([0.1, 0.2, 0.3])
    patient, slept = retrying(raises(TimeoutError()), jitter=lambda: next(jitter))
    with pytest.raises(TimeoutError):
        patient()
    assert slept == [1.1, 2.2, 4.3]
    drawn = [up_to_a_second() for _ in range(50)]
    assert len(set(drawn)) > 1 and all(0 <= seconds < 1 for seconds in drawn)


def test_a_stop_is_a_decision_and_never_tried_again():
    flaky = Flaky(Stop("cost_cap"))
    patient, slept = retrying(flaky, on=(Exception,))
    with pytest.raises(Stop):
        patient()
    assert (flaky.calls, slept) == (1, [])


def test_a_model_is_tried_again_and_the_run_does_not_see_it():
    flaky = Flaky(TimeoutError(), ConnectionError())
    model = ScriptedModel([ASK, final("ok")])

    def unreliable(messages, specs):
        flaky()
        return model(messages, specs)

    patient, slept = retrying(unreliable)
    result = run(patient)
    assert (result.status, result.steps, slept) == ("done", 2, [1, 2])
    assert result.messages == run(ScriptedModel([ASK, final("ok")])).messages


def test_a_tool_that_hangs_once_is_tried_again(stuck):
    calls = []

    def hangs_once():
        calls.append(1)
        return stuck() if len(calls) == 1 else "found"

    patient, slept = retrying(with_timeout(hangs_once, 0.05), waits=[1] * 1000)  # a busy machine is late more often
    assert tool(patient).execute("t", {}) == '"found"' and slept == [1] * (len(calls) - 1) != []


@pytest.mark.parametrize(
    "wrap", [lambda fn: fn, lambda fn: with_timeout(fn, NEVER_LATE)], ids=["bare", "with a timeout"]
)
@pytest.mark.parametrize("error", [TimeoutError("no answer"), ConnectionError("reset")], ids=repr)
def test_a_write_that_is_not_wrapped_in_retries_runs_once_though_its_answer_was_lost(wrap, error):
    sent = []

    def mail(to):
        sent.append(to)
        raise error

    observation = tool(wrap(mail), takes(to="string")).execute("t", {"to": "ada@example.org"})
    assert sent == ["ada@example.org"] and observation.startswith(f"ERROR: t failed: {type(error).__name__}")


# --- Results that are too long --------------------------------------------------------------------------------

LONG = {
    "rows": json.dumps([{"row": i, "text": "x" * 50} for i in range(5000)]),
    "a string": json.dumps("x" * 3000),
    "a string of escapes": json.dumps('"\\\n' * 1000),
    "a string with half emojis": json.dumps("\ud83d" * 3000, ensure_ascii=False),
    "emojis": json.dumps("🙂" * 3000, ensure_ascii=False),
    "a number": "1" * 3000,
    "nested lists": "[" * 60 + '"x", ' * 600 + "0" + "]" * 60,
    "blanks in a list": "[" + " " * 3000 + "]",
    "a list of notes": json.dumps(["\n[truncated: 5 characters]\n"] * 200),
    "an object": json.dumps({f"key {i}": i for i in range(1000)}),
    "an error": "ERROR: pay failed: " + "x" * 3000,
}


@pytest.mark.parametrize("max_chars", [200, 201, 500, 2000])
@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_a_long_result_is_cut_to_the_limit_with_a_note_of_its_size_and_never_passes_for_json(text, max_chars):
    cut = trim_result(lambda c: text, max_chars)(call("a", "t"))
    assert len(cut) == max_chars
    assert f"truncated: {len(text)} characters" in cut and "ask for less" in cut
    assert (cut[:7], cut[-7:]) == (text[:7], text[-7:])
    with pytest.raises(ValueError):
        json.loads(cut)


@pytest.mark.parametrize("seed", range(30))
def test_a_result_is_cut_only_if_it_is_longer_than_the_limit(seed):
    chance = random.Random(seed)
    text = json.dumps("".join(random_text(chance) for _ in range(40)), ensure_ascii=False)
    for max_chars in range(max(200, len(text) - 3), len(text) + 4):
        shown = trim_result(lambda c: text, max_chars)(call("a", "t"))
        assert (shown == text) == (len(text) <= max_chars) and len(shown) <= max_chars


class Unreadable(dict):
    """A result that fails at length when it is read."""

    items = values = raises(TypeError("x" * 5000))


def test_what_an_error_says_at_its_end_stays():
    observation = trim_result(tool(lambda: Unreadable()), 300)(call("a", "t"))
    assert observation.startswith("ERROR: t ran, but its result is not JSON: TypeError: ")
    assert observation.endswith("; do not repeat it blindly") and len(observation) == 300


def test_trimming_lets_a_stop_and_an_interrupt_pass():
    for error in (Stop("deadline"), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            trim_result(raises(error), 200)(call("a", "t"))


@pytest.mark.parametrize("max_chars", [0, -1, 100.5, "100", None])
def test_a_limit_that_is_no_whole_number_above_0_is_refused_before_the_run(max_chars):
    with pytest.raises(ValueError, match="max_chars must be a whole number, at least 1"):
        trim_result(lambda c: "text", max_chars)


@pytest.mark.parametrize("max_chars", [*range(1, 100, 7), 75, 76, 77, 78])
@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_a_limit_that_leaves_no_room_for_more_shows_the_note_or_its_beginning(text, max_chars):
    cut = trim_result(lambda c: text, max_chars)(call("a", "t"))
    assert len(cut) == max_chars and "\n[truncated: "[:max_chars] in cut
    with pytest.raises(ValueError):
        json.loads(cut)


# --- What is sent ---------------------------------------------------------------------------------------------


def history(chance, steps):
    """Return a message list of that many steps, of odd sizes."""
    texts = [random_text(chance) * chance.choice([0, 1, 20]) for _ in range(3)]
    script = [
        asks(*(call("", "t", x=chance.choice(texts)) for _ in range(chance.randint(1, 3))), text=chance.choice(texts))
        for _ in range(steps)
    ]
    return run(
        ScriptedModel([*script, final("ok")][:steps]), tool(lambda x: x, takes(x="string")), max_steps=steps
    ).messages


def size(messages):
    """Measure messages by hand."""
    return len(json.dumps(messages, ensure_ascii=False)) // 4


def steps_of(messages):
    """Split a list into its head and its steps, each a reply with its observations."""
    starts = [i for i, message in enumerate(messages) if message["role"] == "assistant"]
    return messages[: starts[0]], [messages[i:j] for i, j in zip(starts, [*starts[1:], len(messages)])]


@pytest.mark.parametrize("seed", range(20))
def test_what_is_sent_is_the_head_and_as_many_of_the_newest_whole_steps_as_fit(seed):
    chance = random.Random(seed)
    messages = history(chance, chance.randint(1, 9))
    head, steps = steps_of(messages)
    for max_tokens in sorted(
        {1, size(head), size(messages), size(messages) - 1, *(chance.randint(1, size(messages)) for _ in range(20))}
    ):
        sent = fit_messages(messages, max(1, max_tokens))
        fitting = [n for n in range(len(steps) + 1) if size(head + sum(steps[n:], [])) <= max(1, max_tokens)]
        first = min([*fitting, len(steps) - 1])
        assert sent == head + sum(steps[first:], [])
        check_messages(sent)


@pytest.mark.parametrize("max_tokens", range(50, 900, 25))
def test_no_observation_is_sent_without_its_call_and_no_call_without_its_observations(max_tokens):
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "task"}]
    for i in range(6):
        asked = [{"id": f"{i}{letter}", "name": "t", "args": {}} for letter in "abc"[: 1 + i % 3]]
        messages.append({"role": "assistant", "content": "", "tool_calls": asked})
        messages += [{"role": "tool", "tool_call_id": c["id"], "name": "t", "content": "x" * 300} for c in asked]
    sent = fit_messages(messages, max_tokens)
    assert_closed(sent)
    assert sent[:2] == messages[:2] and sent[-1] == messages[-1]
    assert count_tokens(sent) <= max_tokens or len(steps_of(sent)[1]) == 1


def test_all_that_no_reply_began_stays_also_between_the_steps():
    messages = history(random.Random(1), 3)
    _, steps = steps_of(messages)
    asked = {"role": "user", "content": "And now?"}
    instruction = {"role": "user", "content": "Be brief."}
    sent = fit_messages([messages[0], instruction, messages[1], *steps[0], asked, *steps[1], *steps[2]], 1)
    assert sent == [messages[0], instruction, messages[1], asked, *steps[2]]


def test_a_list_without_steps_is_sent_whole():
    assert fit_messages([], 1) == []
    head = [{"role": "system", "content": "s" * 100}, {"role": "user", "content": "task " * 100}]
    assert fit_messages(head, 1) == head


def test_calls_that_wait_are_sent_with_the_step_that_asked_for_them():
    messages = history(random.Random(2), 3)
    waiting = [
        *messages,
        asked := {"role": "assistant", "content": "", "tool_calls": [{"id": "w", "name": "t", "args": {}}]},
    ]
    assert fit_messages(waiting, 1) == [*messages[:2], asked]


@pytest.mark.parametrize("max_tokens", [1, 10**6])
def test_what_is_sent_are_copies(max_tokens):
    messages = history(random.Random(3), 4)
    before = json.dumps(messages)
    for message in fit_messages(messages, max_tokens):
        for asked in message.get("tool_calls", []):
            asked["args"].clear()
        message.clear()
    assert json.dumps(messages) == before


def test_what_is_remembered_stays_whole():
    shown = []

    def forgetful(messages, specs):
        sent = fit_messages(messages, 60)
        shown.append(len(sent))
        for message in sent:
            message["content"] = "edited"
        return asks(call("", "t", x="x" * 100)) if len(shown) < 5 else final("ok")

    result = run(forgetful, tool(lambda x: x, takes(x="string")))
    assert shown == [2, 4, 4, 4, 4] and len(result.messages) == 11
    assert "edited" not in json.dumps(result.messages)
    check_messages(result.messages)


@pytest.mark.parametrize("max_tokens", [0, -5])
def test_no_room_at_all_is_a_value_error(max_tokens):
    with pytest.raises(ValueError, match="at least 1"):
        fit_messages([], max_tokens)


def test_the_failures_worth_a_retry_may_come_as_a_list():
    tries = []

    def flaky():
        tries.append(1)
        if len(tries) < 2:
            raise TimeoutError
        return "ok"

    assert with_retries(flaky, on=[TimeoutError], sleep=lambda seconds: None)() == "ok"
