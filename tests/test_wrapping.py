"""Sections 6 to 9 together: wrappers keep the shape of what they wrap, and however a run ends, it can go on."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import json
import random
import textwrap

import pytest
from support import PLENTY, observations, raises, random_script, run, takes, tool

from agentloop import (
    rows_of,
    NOT_RUN,
    WAITING,
    AgentResult,
    ModelReply,
    ScriptedModel,
    Stop,
    ToolCall,
    ToolRegistry,
    Trace,
    Usage,
    asks,
    call,
    check_messages,
    continue_agent,
    cost_cap,
    deadline,
    decide,
    explain,
    final,
    fit_messages,
    journal,
    load_checkpoint,
    open_calls,
    recover,
    redact_secrets,
    replay,
    require_approval,
    run_agent,
    save_checkpoint,
    stop_on_repeat,
    trim_result,
    with_hooks,
    with_retries,
    with_timeout,
)

ANY = {"properties": {"x": {"type": "string"}}}
LATER = 10**9


def echo():
    """Return a registry with one tool, `t`, that returns its argument, and the log of what ran."""
    ran = []
    return tool(lambda x="": ran.append(x) or x, ANY), ran


# --- Nothing to do --------------------------------------------------------------------------------------------

AROUND_EXECUTE = {
    "trim_result": lambda registry: trim_result(registry, 10**6),
    "stop_on_repeat": lambda registry: stop_on_repeat(registry, LATER),
    "deadline": lambda registry: deadline(registry, LATER),
    "with_hooks": lambda registry: with_hooks(registry, lambda asked: None, lambda asked, seen: None),
    "a hook that returns what it got": lambda registry: with_hooks(
        registry, lambda asked: asked, lambda asked, seen: seen
    ),
    "require_approval": lambda registry: require_approval(registry, registry.check, ()),
    "Trace": lambda registry: Trace().execute(registry),
    "all": lambda registry: stacked(registry, ()),
}
AROUND_MODEL = {
    "with_timeout": lambda model: with_timeout(model, 60),
    "with_retries": with_retries,
    "deadline": lambda model: deadline(model, LATER),
    "cost_cap": lambda model: cost_cap(model, LATER, 3, 15),
    "fit_messages": lambda model: lambda messages, specs: model(fit_messages(messages, LATER), specs),
    "Trace": lambda model: Trace().model(model),
    "all": lambda model: Trace().model(cost_cap(deadline(with_retries(with_timeout(model, 60)), LATER), LATER, 3, 15)),
}


def stacked(registry, risky=("t",), verdicts=None, trace=None, before=None, after=None, max_chars=10**6, limit=3):
    """Wrap a registry in all that there is, in the order that the series teaches."""
    execute = trim_result(registry, max_chars)
    execute = require_approval(execute, registry.check, risky, verdicts)
    execute = stop_on_repeat(execute, limit)
    execute = with_hooks(execute, before, after)
    return (trace or Trace()).execute(execute)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("wrap", AROUND_EXECUTE.values(), ids=AROUND_EXECUTE)
def test_a_wrapper_of_execute_that_has_nothing_to_do_changes_nothing(wrap, seed):
    script, (bare, _), (registry, _) = random_script(random.Random(seed)), echo(), echo()
    for max_steps in range(1, len(script) + 1):
        wrapped = run(ScriptedModel(script), registry, execute=wrap(registry), max_steps=max_steps)
        assert wrapped == run(ScriptedModel(script), bare, max_steps=max_steps)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("wrap", AROUND_MODEL.values(), ids=AROUND_MODEL)
def test_a_wrapper_of_the_model_that_has_nothing_to_do_changes_nothing(wrap, seed):
    script, (registry, _) = random_script(random.Random(seed)), echo()
    model, bare = ScriptedModel(script), ScriptedModel(script)
    assert run(wrap(model), registry) == run(bare, registry)
    assert model.seen == bare.seen


@pytest.mark.parametrize(
    "wrap", [lambda fn: with_timeout(fn, 60), with_retries, lambda fn: with_retries(with_timeout(fn, 60))]
)
def test_a_wrapper_of_a_tools_function_that_has_nothing_to_do_changes_nothing(wrap):
    for value in (None, "é \ud83d", 5, {"a": [1.5]}, float("nan"), {1, 2}):
        same = functools.partial(copy.copy, value)
        assert tool(wrap(same)).execute("t", {}) == tool(same).execute("t", {})
    for error in (KeyError("x"), ValueError(), SystemExit(1), Stop("deadline")):
        assert tool(wrap(raises(error))).execute("t", {}) == tool(raises(error)).execute("t", {})


# --- The order ------------------------------------------------------------------------------------------------


def test_hooks_come_before_the_count_of_repeats_which_sees_the_changed_call():
    registry, ran = echo()
    script = [asks(call("", "t", x=x)) for x in ("Pune", "PUNE", "pune", "puNe")] + [final("ok")]
    lower = lambda asked: ToolCall(asked.id, asked.name, {"x": asked.args["x"].lower()})  # noqa: E731
    result = run(ScriptedModel(script), registry, execute=stacked(registry, (), before=lower))
    assert (result.status, result.steps, ran) == ("repeated_call", 3, ["pune", "pune"])


def test_a_blocked_call_is_in_the_trace_and_is_no_repeat(tmp_path):
    registry, ran = echo()
    trace = Trace(iter(range(100)).__next__)
    script = [asks(call("", "t", x="a"))] * 4 + [final("ok")]
    execute = stacked(registry, (), trace=trace, before=lambda asked: "ERROR: not today")
    result = run(trace.model(ScriptedModel(script)), registry, execute=execute)
    trace.save(tmp_path / "trace", result)
    assert (result.status, ran) == ("done", [])
    assert [row[2:3] + row[5:] for row in rows_of(trace)] == [["ERROR: not today", "1.000"]] * 4 + [["", ""]]


def test_no_person_is_asked_again_about_a_call_that_repeats():
    registry, ran = echo()
    waiting = run(ScriptedModel([asks(*(call(c, "t", x="same") for c in "abc"))]), registry, execute=stacked(registry))
    yes = decide(waiting, {"a": True, "b": True, "c": True})
    result = continue_agent(waiting, ScriptedModel([]), registry, 9, PLENTY, execute=stacked(registry, verdicts=yes))
    assert (result.status, ran) == ("repeated_call", ["same", "same"])
    check_messages(result.messages)


def test_a_call_that_waits_does_not_count_as_a_repeat():
    registry, ran = echo()
    result = run(
        ScriptedModel([asks(call("a", "t", x="same"))]), registry, execute=(execute := stacked(registry, limit=2))
    )
    for _ in range(3):
        result = continue_agent(result, ScriptedModel([]), registry, 9, PLENTY, execute=execute)
        assert (result.status, ran) == (WAITING, [])


def test_repeats_hooks_and_trace_see_a_result_as_the_model_will():
    registry, seen = tool(lambda: "x" * 1000), []
    after = lambda asked, observation: seen.append(len(observation))  # noqa: E731
    result = run(
        ScriptedModel([asks(call("a", "t")), final("ok")]),
        registry,
        execute=stacked(registry, (), after=after, max_chars=300),
    )
    assert seen == [300] == [len(observations(result)[0])]


def test_a_retried_call_is_one_call_for_every_wrapper_outside():
    seen, slept = [], []
    flaky = iter([TimeoutError(), TimeoutError(), None])

    def unsteady():
        if error := next(flaky):
            raise error
        return "ok"

    registry = tool(with_retries(unsteady, sleep=slept.append, jitter=lambda: 0))
    result = run(
        ScriptedModel([asks(call("a", "t")), final("ok")]),
        registry,
        execute=stacked(registry, (), before=seen.append),
    )
    assert (observations(result), len(seen), slept) == (['"ok"'], 1, [1, 2])


def test_a_stop_of_an_inner_wrapper_passes_all_outer_ones():
    registry, ran = echo()
    for inner in (deadline(registry, 1, iter([0, 5]).__next__), raises(Stop("deadline", "closed"))):
        execute = Trace().execute(
            with_hooks(stop_on_repeat(require_approval(trim_result(inner, 500), registry.check, ())))
        )
        result = run(ScriptedModel([asks(call("a", "t"), call("b", "t"))]), registry, execute=execute)
        assert (result.status, ran, observations(result)[1]) == ("deadline", [], NOT_RUN)


# --- Every exit -----------------------------------------------------------------------------------------------


class Broken(Exception):
    """A bug of ours, or a provider that is down."""


def scripted(*last):
    """Return a model that looks twice, in replies of two calls, and then does these things."""
    return ScriptedModel(
        [asks(call("a", "t", x="1"), call("b", "t", x="2")), asks(call("c", "t", x="3"), call("d", "u")), *last]
    )


def stopping(status):
    """Return an execute that runs three calls and then ends the run."""
    registry, _ = echo()
    left = [True] * 3
    return lambda asked: registry(asked) if left and left.pop() else raises(Stop(status, "because"))()


EXITS = {
    "done": lambda registry: run(scripted(final("ok")), registry),
    "step_limit": lambda registry: run(scripted(), registry, max_steps=2),
    "token_budget": lambda registry: run(scripted(), registry, token_budget=250),
    "truncated": lambda registry: run(scripted(ModelReply("cut", [call("e", "t")], stop_reason="truncated")), registry),
    "refused": lambda registry: run(scripted(ModelReply("no", stop_reason="refused")), registry),
    "empty_reply": lambda registry: run(scripted(ModelReply(stop_reason="empty_reply")), registry),
    "repeated_call": lambda registry: run(
        scripted(*[asks(call("", "t", x="1"), call("", "t", x="1"))] * 2), registry, execute=stop_on_repeat(registry)
    ),
    "deadline": lambda registry: run(scripted(), registry, execute=deadline(registry, 3, iter(range(9)).__next__)),
    "cost_cap": lambda registry: run(cost_cap(scripted(), 0.0005, 3, 15), registry),
    "sunday": lambda registry: run(scripted(), registry, execute=stopping("sunday")),
    "a hook": lambda registry: run(scripted(), registry, execute=with_hooks(registry, raises(Stop("a hook")))),
    "bad_reply": lambda registry: run(scripted(raises(Stop("bad_reply"))), registry),
    "interrupted": lambda registry: interrupted(lambda: run(scripted(raises(Broken())), registry)),
    "interrupted by a person": lambda registry: interrupted(
        lambda: run(scripted(raises(KeyboardInterrupt())), registry)
    ),
    "interrupted in a call": lambda registry: interrupted(
        lambda: run(scripted(), registry, execute=raises(KeyboardInterrupt()))
    ),
    "interrupted by a watch": lambda registry: interrupted(lambda: run(scripted(), registry, watch=raises(Broken()))),
    "interrupted by a replay": lambda registry: interrupted(
        lambda: run(replay(run(scripted(final("ok"))).messages[:5]), registry)
    ),
}


def interrupted(go):
    with pytest.raises((Broken, KeyboardInterrupt, AssertionError)) as caught:
        go()
    return caught.value.result


@pytest.mark.parametrize("name", EXITS)
def test_the_history_of_every_stopped_run_is_one_that_a_provider_accepts_and_goes_on(name, tmp_path):
    registry, _ = echo()
    result = EXITS[name](registry)
    assert result.status == name.split(" by ")[0].split(" in ")[0]
    assert (result.answer is None) == (result.status != "done") and explain(result)
    check_messages(result.messages)
    save_checkpoint(tmp_path / "run", result)
    assert load_checkpoint(tmp_path / "run") == result
    if result.status != "done":
        ended = continue_agent(load_checkpoint(tmp_path / "run"), ScriptedModel([final("ok")]), registry, 99, PLENTY)
        assert (ended.status, ended.answer) == ("done", "ok")
        assert ended.messages[: len(result.messages)] == result.messages
        check_messages(ended.messages)


@pytest.mark.parametrize("seed", range(15))
def test_halted_anywhere_for_any_reason_and_saved_a_run_goes_on_as_if_nothing_had_been(seed, tmp_path):
    chance = random.Random(seed)
    script, (bare, log) = random_script(chance), echo()
    whole = run(ScriptedModel(script), bare)
    registry, ran = echo()
    result, model = AgentResult("", None, 0, 0, whole.messages[:2]), ScriptedModel(script)
    file = tmp_path / "run.jsonl"
    while result.status != "done":
        verdicts = (
            decide(result, {c.id: True for c in open_calls(result.messages)}) if result.status == WAITING else None
        )
        execute = stacked(registry, chance.choice([{"t"}, ()]), verdicts, limit=LATER)
        max_steps = result.steps + chance.randint(1, 2)
        budget = chance.choice([PLENTY, PLENTY, result.tokens + 1])
        result = continue_agent(result, model, registry, max_steps, budget, execute=execute, watch=journal(file))
        assert recover(file).messages == result.messages
        save_checkpoint(tmp_path / "checkpoint", result)
        result = load_checkpoint(tmp_path / "checkpoint")
    assert (result, ran) == (whole, log)


def test_everything_at_once(tmp_path):
    registry, ran, slept = ToolRegistry(), [], []
    flaky = iter([TimeoutError(), None])

    def look():
        if error := next(flaky):
            raise error
        return {"token": "zq-SECRET", "rows": ["x" * 50] * 100}

    registry.register("look", "Look.", {}, with_retries(with_timeout(look, 60), sleep=slept.append, jitter=lambda: 0))
    registry.register("pay", "Pay.", takes(eur="integer"), lambda eur: ran.append(eur) or "paid")
    script = [
        ModelReply("", [call("a", "look")], Usage(100, 10)),
        ModelReply("", [call("b", "pay", eur=5)], Usage(900, 10)),
        ModelReply("Paid.", usage=Usage(950, 10)),
    ]
    log, folder = [], tmp_path

    def wrapped(model, trace, verdicts=None):
        note = lambda asked: log.append(asked.name)  # noqa: E731
        execute = stacked(registry, {"pay"}, verdicts, trace, before=note, max_chars=500)
        slim = lambda messages, specs: model(fit_messages(messages, 300), specs)  # noqa: E731
        return trace.model(cost_cap(deadline(slim, LATER), 1, 3, 15)), execute

    trace = Trace(iter(range(100)).__next__)
    model, execute = wrapped(ScriptedModel(script[:2]), trace)
    waiting = run_agent("Pay 5.", model, registry, execute=execute, watch=journal(folder / "journal"))
    trace.save(folder / "trace", waiting, redact_secrets)
    save_checkpoint(folder / "checkpoint", waiting)
    assert (waiting.status, ran, slept) == (WAITING, [], [1])

    waiting, trace = load_checkpoint(folder / "checkpoint"), Trace.load(folder / "trace")
    verdicts = json.loads(json.dumps(decide(waiting, {"b": True})))
    model, execute = wrapped(ScriptedModel(script[2:]), trace, verdicts)
    result = continue_agent(waiting, model, registry, 8, 4000, execute=execute, watch=journal(folder / "journal"))
    trace.save(folder / "trace", result, redact_secrets)

    assert (result.status, result.answer, result.steps, result.tokens, ran) == ("done", "Paid.", 3, 1980, [5])
    assert log == ["look", "pay", "pay"]
    check_messages(result.messages)
    assert recover(folder / "journal").messages == result.messages
    loaded = Trace.load(folder / "trace")
    assert [row[3] for row in rows_of(loaded)] == ["110", "1020", "1980"]
    assert "zq-SECRET" in json.dumps(result.messages) and "zq-SECRET" not in (folder / "trace").read_text(
        encoding="utf-8"
    )
    assert explain(result, {"money paid": lambda r: ran == [5]}) == "answered after 3 steps: money paid"
    assert sorted(file.name for file in folder.iterdir()) == ["checkpoint", "journal", "trace"]


# --- How they are written -------------------------------------------------------------------------------------

WRAPPERS = [
    with_timeout,
    with_retries,
    trim_result,
    stop_on_repeat,
    deadline,
    cost_cap,
    with_hooks,
    require_approval,
    journal,
    replay,
    Trace.model,
    Trace.execute,
]


@pytest.mark.parametrize("wrapper", WRAPPERS, ids=lambda wrapper: wrapper.__qualname__)
def test_a_wrapper_has_fewer_than_25_lines_of_code(wrapper):
    source = textwrap.dedent(inspect.getsource(wrapper))
    docstring = ast.get_docstring(ast.parse(source).body[0])
    lines, of_docstring = ([line for line in text.splitlines() if line.strip()] for text in (source, docstring))
    assert len(lines) - len(of_docstring) < 25


def test_the_loop_knows_none_of_them():
    loop = ast.parse(inspect.getsource(run_agent) + inspect.getsource(continue_agent))
    known = {node.id for node in ast.walk(loop) if isinstance(node, ast.Name)}
    assert "open_calls" in known and known.isdisjoint({"Trace", *(wrapper.__name__ for wrapper in WRAPPERS[:-2])})
