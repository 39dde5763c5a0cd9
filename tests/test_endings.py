"""Every small script is run, and how it has to end is read off its message list alone."""

from __future__ import annotations

from pathlib import Path

import pytest

import agentloop
from looplab.endings import KINDS, OTHER, all_endings, is_closed, look_registry, reasons_to_end, run_script, scripts
from looplab.faults import FAULTS, broken_text, load

SPECS = look_registry(agentloop).specs()


@pytest.fixture(scope="module")
def ours():
    return all_endings(3, token_budget=500)


def test_every_script_of_every_kind_of_reply_is_run_once():
    assert len(KINDS) == 8
    assert len(set(scripts(4))) == len(list(scripts(4))) == 8 + 8**2 + 8**3 + 8**4 == 4680


def test_every_run_of_ours_ends_by_exactly_one_exit_in_time_with_one_observation_a_call(ours):
    assert [run.broken for run in ours.runs if run.broken] == []
    assert {run.exit for run in ours.runs} == {"done", "step_limit", "token_budget"}
    assert ours.sentence == ("584 scripts of 1 to 3 replies: 584 end by exactly one exit in time, with one observation "
                             "a call; 0 do not.")


@pytest.mark.parametrize("name", ["plain", "careful", "terse", "objects"])
def test_a_loop_of_ones_own_is_given_replies_of_its_own_shapes(name):
    text = (Path(__file__).parent / f"fixtures/{name}.py").read_text(encoding="utf-8")
    assert all_endings(2, token_budget=500, loop=load(text)).broken == []


def test_the_table_counts_every_run_once(ours):
    assert sum(sum(row[1:]) for row in ours.rows[1:]) == len(ours.runs)


def test_the_plot_says_what_it_shows_in_words(ours):
    plot = ours.plot()
    assert plot.png and "584 end by exactly one exit" in plot.text and "token_budget" in plot.text


# Broken loops that a script alone can show; the others break what is counted, written, or happens between two runs.
SEEN = ["text_ends_the_run", "second_call_dropped", "budget_after_the_call", "steps_not_counted", "unknown_tool_raises",
        "tool_error_ends_the_run", "one_step_too_many"]


@pytest.mark.parametrize("name", SEEN)
def test_a_broken_loop_is_found(name):
    fault = next(fault for fault in FAULTS if fault.name == name)
    found = all_endings(2, token_budget=200, loop=load(broken_text(fault)))
    assert found.broken and not found.sentence.endswith(" 0 do not.")


def test_a_run_that_raises_has_no_exit_of_the_loop():
    fault = next(fault for fault in FAULTS if fault.name == "unknown_tool_raises")
    loop = load(broken_text(fault))
    ending = run_script(loop, look_registry(loop), ("unknown tool",), 750)
    assert (ending.exit, ending.broken) == (OTHER, ["it raised KeyError: 'listen'"])


CALL = {"id": "a", "name": "look", "args": {"at": "sky"}}
HEAD = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
ASKS = {"role": "assistant", "content": "", "tool_calls": [CALL, CALL | {"id": "b"}]}
ENDS = {"role": "assistant", "content": "done", "tool_calls": []}


def tool(call_id, name="look"):
    return {"role": "tool", "tool_call_id": call_id, "name": name, "content": "1"}


@pytest.mark.parametrize(("messages", "closed"), [
    ([ASKS, tool("a"), tool("b")], True),
    ([ASKS, tool("a"), tool("b"), ENDS], True),
    ([ENDS], True),
    ([ASKS, tool("a")], False),
    ([ASKS, tool("a"), ENDS], False),
    ([ASKS, tool("b"), tool("a")], False),
    ([ASKS, tool("a"), tool("b"), tool("b")], False),
    ([ASKS, tool("a"), tool("b", "other")], False),
    ([tool("a")], False),
])
def test_a_list_is_closed_if_each_call_has_its_observation_in_order(messages, closed):
    assert is_closed(HEAD + messages) is closed


@pytest.mark.parametrize(("messages", "max_steps", "budget", "reasons", "passed"), [
    ([ENDS], 1, 500, ["done"], []),
    ([ASKS, tool("a"), tool("b")], 1, 500, ["step_limit"], []),
    ([ASKS, tool("a"), tool("b")], 2, 200, ["token_budget"], []),
    ([ASKS, tool("a"), tool("b")], 2, 500, [], []),
    ([ASKS, tool("a"), tool("b"), ENDS], 1, 500, ["done"], ["it took more steps than it may"]),
    ([ENDS], 1, 10, ["done"], ["the prompt of step 1 did not fit into the budget"]),
])
def test_the_exits_for_which_a_list_gives_a_reason(messages, max_steps, budget, reasons, passed):
    assert reasons_to_end(HEAD + messages, SPECS, max_steps, budget) == (reasons, passed)


@pytest.mark.parametrize("length", [0, 6, "four"])
def test_a_length_that_takes_too_long_is_a_value_error(length):
    with pytest.raises(ValueError, match="length must be 1 to 5"):
        all_endings(length)
