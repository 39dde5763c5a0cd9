"""Section 7: repeated calls, deadlines, money, and code of one's own around each call."""

from __future__ import annotations

import warnings
from dataclasses import replace

import pytest
from support import PLENTY, assert_closed, observations, raises, run, takes, tool

from agentloop import (
    NOT_RUN,
    ModelReply,
    ScriptedModel,
    Stop,
    ToolCall,
    Usage,
    asks,
    call,
    check_messages,
    continue_agent,
    cost_cap,
    count_tokens,
    deadline,
    final,
    fit_messages,
    record_reply,
    stop_on_repeat,
    weather_world,
    with_hooks,
)


def answering(*answers):
    """Return an execute that gives these answers in turn, the last one for ever, and the calls that it ran."""
    ran = []

    def execute(asked):
        ran.append((asked.name, asked.args))
        return answers[min(len(ran), len(answers)) - 1]

    return execute, ran


# --- Repeated calls -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [2, 3, 5])
@pytest.mark.parametrize("answer", ['"nothing"', "ERROR: t failed: OSError"], ids=["a result", "an error"])
def test_the_same_call_with_the_same_result_is_not_run_for_the_third_time_or_what_the_limit_says(answer, limit):
    execute, ran = answering(answer)
    watchful = stop_on_repeat(execute, limit)
    for n in range(1, limit):
        assert watchful(call(f"c{n}", "t", x="1")) == answer
    with pytest.raises(Stop) as caught:
        watchful(call("last", "t", x="1"))
    assert caught.value.status == "repeated_call"
    assert caught.value.why == f"t gave the same result {limit - 1} times in a row, and was not run again"
    assert len(ran) == limit - 1


def test_a_stuck_model_is_stopped_with_its_last_call_answered():
    ran = []
    registry = tool(lambda x: ran.append(x) or [], takes(x="string"))
    result = run(lambda messages, specs: asks(call("", "t", x="same")), registry, execute=stop_on_repeat(registry))
    assert (result.status, result.answer, result.steps, len(ran)) == ("repeated_call", None, 3, 2)
    assert observations(result)[-1] == "ERROR: t gave the same result 2 times in a row, and was not run again"
    check_messages(result.messages)


def test_repeats_in_one_reply_count_too_and_what_comes_after_is_not_run():
    registry = tool(lambda x: x, takes(x="string"))
    model = ScriptedModel([asks(*(call(c, "t", x="1") for c in "abc"), call("d", "t", x="2"))])
    result = run(model, registry, execute=stop_on_repeat(registry))
    assert observations(result)[:2] == ['"1"', '"1"'] and observations(result)[3] == NOT_RUN
    assert_closed(result.messages)


def test_it_is_off_unless_it_is_asked_for():
    assert run(lambda messages, specs: asks(call("", "t")), tool(lambda: 1), max_steps=5).status == "step_limit"


def poll(*answers, limit=3):
    """Ask for the same as often as there are answers, and return how the run ended and how often the tool ran."""
    results = iter(answers)
    registry = tool(lambda x: next(results), takes(x="string"))
    script = [asks(call("", "t", x="job 7"))] * len(answers) + [final("ok")]
    result = run(ScriptedModel(script), registry, execute=stop_on_repeat(registry, limit))
    return result.status, len(answers) - len(list(results))


def test_a_poll_whose_answer_changes_each_time_is_no_repeat():
    assert poll("queued", "running", "finished") == ("done", 3)
    assert poll(*range(20)) == ("done", 20)


def test_a_poll_that_answers_the_same_more_often_needs_a_higher_limit():
    slow = ["queued", "queued", "running", "running", "finished"]
    assert poll(*slow) == ("repeated_call", 2)
    assert poll(*slow, limit=4) == ("done", 5)


def test_a_limit_of_2_leaves_no_room_for_any_poll():
    assert poll("queued", "finished", limit=2) == ("repeated_call", 1)


def test_an_answer_in_between_begins_the_count_anew():
    assert poll(1, 1, 2, limit=4) == poll(1, 2, 1, limit=3) == ("done", 3)
    assert poll(1, 2, 2, 3) == ("repeated_call", 3)


DIFFERENT = {
    "another value": ({"x": "1"}, {"x": "2"}),
    "a number and its text": ({"x": 1}, {"x": "1"}),
    "a number and true": ({"x": 1}, {"x": True}),
    "zero and false": ({"x": 0}, {"x": False}),
    "null and nothing": ({"x": None}, {}),
    "another name": ({"x": 1}, {"y": 1}),
    "another order of a list": ({"x": [1, 2]}, {"x": [2, 1]}),
    "text in another case": ({"x": "Pune"}, {"x": "pune"}),
    "half an emoji and its question mark": ({"x": "\ud83d"}, {"x": "?"}),
}


@pytest.mark.parametrize("one, other", DIFFERENT.values(), ids=DIFFERENT)
def test_other_arguments_make_another_call(one, other):
    execute, ran = answering("same")
    watchful = stop_on_repeat(execute, 2)
    for n, args in zip(range(6), [one, other] * 3):
        assert watchful(ToolCall(f"c{n}", "t", args)) == "same"
    assert len(ran) == 6


def test_the_same_arguments_in_another_order_with_another_id_make_the_same_call():
    execute, ran = answering("same")
    watchful = stop_on_repeat(execute, 2)
    watchful(ToolCall("a", "t", {"x": {"k": 1, "l": 2}, "y": "é"}))
    with pytest.raises(Stop):
        watchful(ToolCall("b", "t", {"y": "é", "x": {"l": 2, "k": 1}}))
    assert len(ran) == 1


def test_the_same_arguments_of_another_tool_make_another_call():
    execute, ran = answering("same")
    watchful = stop_on_repeat(execute, 2)
    for name in "tutu":
        watchful(ToolCall("a", name, {"x": 1}))
    assert len(ran) == 4


def test_two_calls_in_turn_are_not_caught():
    registry = tool(lambda x: x, takes(x="string"))
    model = ScriptedModel([asks(call("", "t", x=x)) for x in "ABABABAB"])
    assert run(model, registry, max_steps=8, execute=stop_on_repeat(registry)).status == "step_limit"


def test_told_of_a_repeat_the_model_may_change_its_approach():
    ran = []
    registry = tool(lambda x: ran.append(x) or "nothing", takes(x="string"))
    same, other = asks(call("", "t", x="1")), asks(call("", "t", x="2"))
    model = ScriptedModel([same, same, same, same, other, same, same, final("ok")])
    result = run(model, registry, execute=stop_on_repeat(registry, on_repeat="tell"))
    told = "ERROR: t gave the same result 2 times in a row, and was not run again; try something else"
    assert observations(result) == ['"nothing"', '"nothing"', told, told, '"nothing"', '"nothing"', '"nothing"']
    assert (result.status, ran) == ("done", ["1", "1", "2", "1", "1"])


def test_one_that_only_repeats_what_it_was_told_still_ends_at_the_step_limit():
    registry = tool(lambda: "nothing")
    model = ScriptedModel([asks(call("", "t"))] * 9)
    result = run(model, registry, max_steps=9, execute=stop_on_repeat(registry, on_repeat="tell"))
    assert (result.status, result.steps) == ("step_limit", 9)


def test_a_call_that_was_interrupted_or_stopped_does_not_count():
    errors = iter([Stop("deadline"), KeyboardInterrupt()] * 3)
    watchful = stop_on_repeat(lambda asked: raises(next(errors))(), 2)
    for error in [Stop, KeyboardInterrupt] * 3:
        with pytest.raises(error):
            watchful(call("a", "t"))


@pytest.mark.parametrize("options", [{"limit": limit} for limit in (1, 0, 2.5, "3")] + [{"on_repeat": "ask"}])
def test_a_limit_below_2_or_an_unknown_way_to_react_is_a_value_error(options):
    with pytest.raises(ValueError, match="limit must be a whole number, at least 2|on_repeat must be"):
        stop_on_repeat(tool(lambda: 1), **options)


# --- Deadline -------------------------------------------------------------------------------------------------


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def test_no_call_begins_at_or_after_the_deadline():
    clock = Clock()
    punctual = deadline(lambda asked: "ran", 60, clock)
    for now, runs in [(1000, True), (1059.9, True), (1060, False), (2000, False)]:
        clock.now = now
        if runs:
            assert punctual(call("a", "t")) == "ran"
        else:
            with pytest.raises(Stop, match="deadline: the 60 s of this run have passed"):
                punctual(call("a", "t"))


def test_a_deadline_of_the_model_ends_the_run_between_two_steps():
    clock, registry = Clock(), tool(lambda: 1)

    def model(messages, specs):
        clock.now += 25
        return asks(call("", "t"))

    result = run(deadline(model, 60, clock), registry)
    assert (result.status, result.answer, result.steps) == ("deadline", None, 3)
    check_messages(result.messages)


def test_a_deadline_of_execute_ends_the_run_between_two_calls_and_each_has_an_observation():
    clock, ran = Clock(), []

    def work(x):
        ran.append(x)
        clock.now += 25

    registry = tool(work, takes(x="string"))
    model = ScriptedModel([asks(*(call(x, "t", x=x) for x in "abcde"))])
    result = run(model, registry, execute=deadline(registry, 60, clock))
    assert (result.status, ran) == ("deadline", ["a", "b", "c"])
    assert observations(result)[3:] == ["ERROR: the 60 s of this run have passed", NOT_RUN]
    check_messages(result.messages)


def test_a_call_that_began_in_time_is_not_cut_off():
    clock = Clock()

    def slow():
        clock.now += 1000
        return "late"

    registry = tool(slow)
    model = ScriptedModel([asks(call("a", "t")), final("ok")])
    result = run(model, registry, execute=deadline(registry, 60, clock))
    assert (result.status, observations(result)) == ("done", ['"late"'])


def test_a_run_that_met_its_deadline_goes_on_with_a_new_one():
    clock, registry = Clock(), tool(lambda: 1)
    model = ScriptedModel([asks(call("a", "t")), final("ok")])
    punctual = deadline(model, 60, clock)
    clock.now += 100
    late = run(punctual, registry)
    assert (late.status, late.steps, model.seen) == ("deadline", 0, [])
    result = continue_agent(late, deadline(model, 60, clock), registry, 9, 9999)
    assert (result.status, result.answer) == ("done", "ok")


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_deadline_that_has_passed_is_a_value_error(seconds):
    with pytest.raises(ValueError, match="above 0"):
        deadline(lambda: 1, seconds)


# --- Cost cap -------------------------------------------------------------------------------------------------


def paid(prompt, reply, **options):
    return ModelReply("", [call("", "t")], Usage(prompt, reply), **options)


def test_the_cost_is_counted_from_usage_at_two_prices_per_million_tokens():
    script = [paid(100_000, 10_000)] * 10  # 0.30 + 0.15 USD each
    for max_usd, steps in [(0.3, 1), (0.77, 1), (0.79, 2), (1.22, 2), (1.24, 3), (4, 9)]:  # the next prompt costs 0.33
        model = ScriptedModel(script)
        result = run(cost_cap(model, max_usd, 3, 15), tool(lambda: 1))
        assert (result.status, result.answer, result.steps, len(model.seen)) == ("cost_cap", None, steps, steps)
        check_messages(result.messages)


def test_without_usage_the_loops_estimate_counts_so_that_a_cap_and_a_budget_stop_alike():
    registry, _ = weather_world()
    script = [asks(call("", "get_weather", city="Pune"), text="I will look up Pune.")] * 60
    for steps in range(1, 60, 3):
        budget = run(ScriptedModel(script), registry, max_steps=steps).tokens
        by_cost = run(cost_cap(ScriptedModel(script), budget / 1e6, 1, 1), registry, max_steps=60)
        assert by_cost.status == "cost_cap" and by_cost.steps == steps
        assert budget == pytest.approx(by_cost.tokens, rel=0.02)


def test_the_next_prompt_is_what_the_last_one_was_and_what_came_since():
    for max_usd, size, status in [
        (0.209, 1, "cost_cap"),
        (0.215, 1, "done"),
        (0.215, 40_000, "cost_cap"),
        (0.225, 40_000, "done"),
    ]:
        model = ScriptedModel([paid(100_000, 10_000), final("ok")])  # then 110,000 tokens and the observation are sent
        assert run(cost_cap(model, max_usd, 1, 0), tool(lambda size=size: "x" * size)).status == status


def test_a_cap_that_is_built_anew_counts_the_whole_list_of_a_run_that_goes_on():
    registry = tool(lambda: "x" * 40_000)
    halted = run(ScriptedModel([asks(call("a", "t"))]), registry, max_steps=1)
    model = ScriptedModel([final("ok")])
    assert (
        continue_agent(halted, cost_cap(model, 0.009, 1, 1), registry, 9, PLENTY).status == "cost_cap"
        and model.seen == []
    )
    assert continue_agent(halted, cost_cap(model, 0.011, 1, 1), registry, 9, PLENTY).status == "done"


def test_a_cap_around_what_is_fitted_counts_the_messages_that_are_sent():
    script = [*(asks(call(f"c{n}", "t", x="word " * 40)) for n in range(12)), final("ok")]
    registry, costs = tool(lambda x: x, takes(x="string")), []

    def capped(max_usd):
        model = ScriptedModel(script)

        def counted(messages, specs):
            reply = model(messages, specs)
            costs.append(count_tokens(specs + messages) + count_tokens(record_reply(reply, set())))
            return reply

        inner = cost_cap(counted, max_usd, 1e6, 1e6)  # a dollar a token
        return run(lambda messages, specs: inner(fit_messages(messages, 300), specs), registry).status

    assert capped(1e9) == "done"
    total = sum(costs)
    assert (capped(0.95 * total), capped(1.02 * total)) == ("cost_cap", "done")


def test_a_first_prompt_that_costs_more_than_the_cap_is_not_sent():
    model = ScriptedModel([])
    result = run(cost_cap(model, 0.000001, 3, 15), tool(lambda: 1))
    assert (result.status, result.steps, model.seen) == ("cost_cap", 0, [])


def test_the_last_reply_may_pass_the_cap():
    answer = ModelReply("word " * 100, usage=Usage(10, 1_000_000))
    assert run(cost_cap(ScriptedModel([answer]), 1, 3, 15)).status == "done"


def test_a_price_may_be_nothing():
    result = run(cost_cap(ScriptedModel([paid(10**6, 10**6), final("ok")]), 1, 0, 0), tool(lambda: 1))
    assert result.status == "done"


def test_a_reply_that_is_none_is_counted_too():
    cut = ModelReply("word " * 400, [ToolCall("a", "t", {"x": "y" * 400})], stop_reason="truncated")
    spent = run(ScriptedModel([cut])).tokens
    model = cost_cap(ScriptedModel([cut, final("ok")]), 2 * spent / 1e6, 1, 1)
    result = run(model)
    assert result.status == "truncated"
    assert continue_agent(result, model, tool(lambda: 1), 9, 10**9).status == "cost_cap"


@pytest.mark.parametrize(
    "prices", [(0, 3, 15), (-1, 3, 15), (1, -3, 15), (1, 3, -15), (float("nan"), 3, 15), (1, 3, float("nan"))]
)
def test_a_cap_of_nothing_or_a_price_below_0_is_a_value_error(prices):
    with pytest.raises(ValueError, match="max_usd must be above 0"):
        cost_cap(ScriptedModel([]), *prices)


# --- Hooks ----------------------------------------------------------------------------------------------------


def hooked(ran, before=None, after=None):
    """Run one call of a tool that notes its runs, through hooks, and return the observation."""
    registry = tool(lambda x: ran.append(x) or f"ran {x}", takes(x="string"))
    result = run(
        ScriptedModel([asks(call("a", "t", x="1")), final("ok")]), registry, execute=with_hooks(registry, before, after)
    )
    assert result.status == "done"
    check_messages(result.messages)
    return observations(result)[0]


def test_a_hook_can_log_what_was_asked_and_what_came_back():
    log, ran = [], []
    assert hooked(ran, log.append, lambda asked, seen: log.append((asked.name, seen))) == '"ran 1"'
    assert (log, ran) == ([ToolCall("a", "t", {"x": "1"}), ("t", '"ran 1"')], ["1"])


@pytest.mark.parametrize("text", ["ERROR: not on a Sunday", '{"cached": true}', ""])
def test_a_hook_can_block_a_call_and_its_text_is_the_observation(text):
    ran, seen = [], []
    assert hooked(ran, lambda asked: text, lambda asked, observation: seen.append(observation)) == text
    assert (ran, seen) == ([], [])


def test_a_hook_can_change_a_call():
    ran = []
    assert hooked(ran, lambda asked: ToolCall("other id", asked.name, {"x": asked.args["x"] + "0"})) == '"ran 10"'
    assert ran == ["10"]


CHANGES = {
    "wrong type": (ToolCall("a", "t", {"x": 1}), "ERROR: argument 'x' must be of type string"),
    "no argument": (ToolCall("a", "t", {}), "ERROR: missing required argument 'x'"),
    "unknown tool": (ToolCall("a", "u", {"x": "1"}), "ERROR: unknown tool 'u'"),
    "a name that is no text": (ToolCall("a", ["t"], {"x": "1"}), "ERROR: unknown tool ['t']"),
    "arguments that are no object": (ToolCall("a", "t", "x"), "ERROR: arguments must be a JSON object"),
    "an error": (ToolCall("a", "t", {"x": "1"}, "cut"), "ERROR: cut"),
}


@pytest.mark.parametrize("changed, observation", CHANGES.values(), ids=CHANGES)
def test_a_changed_call_is_validated_like_any(changed, observation):
    ran = []
    assert hooked(ran, lambda asked: changed).startswith(observation) and ran == []


def test_a_changed_call_keeps_its_id_for_all_that_comes_after():
    seen = []

    def inner(asked):
        seen.append(asked.id)
        return "ok"

    execute = with_hooks(
        inner, lambda asked: ToolCall("new", "u", {}), lambda asked, observation: seen.append((asked.id, asked.name))
    )
    assert execute(call("a", "t")) == "ok" and seen == ["a", ("a", "u")]


def test_a_hook_can_change_an_observation_and_none_leaves_it():
    assert hooked([], after=lambda asked, seen: seen.upper()) == '"RAN 1"'
    assert hooked([], after=lambda asked, seen: None) == '"ran 1"'
    assert hooked([], after=lambda asked, seen: "") == ""


def test_a_hook_gets_copies_and_editing_them_changes_nothing():
    ran = []

    def rude(asked, *observation):
        asked.args.clear()

    assert hooked(ran, rude, rude) == '"ran 1"' and ran == ["1"]


def test_what_one_hook_does_to_its_copy_no_other_hook_sees():
    seen = []

    def rude(asked, *observation):
        seen.append(dict(asked.args))
        asked.args.clear()

    registry = tool(lambda x: x, takes(x="string"))
    execute = with_hooks(with_hooks(registry, rude, rude), rude, rude)
    assert execute(call("a", "t", x="1")) == '"1"' and seen == [{"x": "1"}] * 4


def test_without_hooks_nothing_changes():
    assert hooked([]) == '"ran 1"'


FAILING = [ValueError("bad hook"), KeyError(), AssertionError(), SystemExit(1), RecursionError()]


@pytest.mark.parametrize("error", FAILING, ids=lambda error: type(error).__name__)
def test_a_hook_that_fails_before_a_call_blocks_it_and_the_run_goes_on(error):
    ran = []
    observation = hooked(ran, raises(error))
    assert observation.startswith(f"ERROR: t was not run, because a hook failed: {type(error).__name__}") and ran == []


@pytest.mark.parametrize("answer", [False, True, 0, {}, {"x": "2"}, ["t"], b"no", ToolCall], ids=repr)
def test_a_hook_that_returns_what_it_cannot_mean_blocks_the_call(answer):
    ran = []
    assert (
        hooked(ran, lambda asked: answer).startswith("ERROR: t was not run, because a hook failed: TypeError")
        and ran == []
    )


@pytest.mark.parametrize("error", [*FAILING, Stop("sunday")], ids=lambda error: type(error).__name__)
def test_a_hook_that_fails_after_a_call_never_spoils_the_result_and_is_warned_of(error):
    ran = []
    with pytest.warns(UserWarning, match=f"a hook failed after t, whose result stands: {type(error).__name__}"):
        assert hooked(ran, after=raises(error)) == '"ran 1"'
    assert ran == ["1"]


@pytest.mark.parametrize("answer", [False, 0, {"ok": True}, b"no"], ids=repr)
def test_a_hook_that_returns_no_text_after_a_call_never_spoils_the_result(answer):
    with pytest.warns(UserWarning, match="must return None or a text"):
        assert hooked([], after=lambda asked, seen: answer) == '"ran 1"'


def test_a_result_stands_even_where_warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert hooked([], after=raises(ValueError())) == '"ran 1"'


def test_a_hook_can_end_the_run_before_a_call():
    ran = []
    registry = tool(lambda x: ran.append(x), takes(x="string"))
    model = ScriptedModel([asks(call("a", "t", x="1"), call("b", "t", x="2"))])
    result = run(model, registry, execute=with_hooks(registry, raises(Stop("sunday", "nothing runs on a Sunday"))))
    assert (result.status, observations(result), ran) == ("sunday", ["ERROR: nothing runs on a Sunday", NOT_RUN], [])


@pytest.mark.parametrize("place", ["before", "after"])
def test_ctrl_c_in_a_hook_is_the_persons(place):
    with pytest.raises(KeyboardInterrupt) as caught:
        hooked([], **{place: raises(KeyboardInterrupt())})
    check_messages(caught.value.result.messages)


def test_a_hook_that_changes_a_call_to_what_is_no_json_blocks_it():
    registry = tool(lambda x: x, takes(x="integer"))
    guarded = with_hooks(stop_on_repeat(registry), before=lambda call: replace(call, args={"x": {1}}))
    assert "because a hook failed: TypeError: no such set in JSON" in guarded(ToolCall("a", "t", {"x": 1}))
