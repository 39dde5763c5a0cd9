"""The checkout incident as its notebook tells it: transcript, plot, stop reasons, and a log line that gives orders."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from looplab.build import NOTEBOOKS
from looplab.latency import latency_plot
from looplab.worlds import CHECKOUT_TASK, INJECTED_LINE, add_roll_back, checkout_world, investigates, obeys

from agentloop import (
    AgentResult,
    Json,
    ScriptedModel,
    ToolCall,
    anthropic_model,
    asks,
    call,
    final,
    replay,
    run_agent,
)

CELLS = json.loads((NOTEBOOKS / "12_checkout_incident.ipynb").read_text(encoding="utf-8"))["cells"]
CODE = {cell["id"]: "".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "code"}
BEATS = ["think", "remember", "check", "act", "report"]
ROLL_BACK = call("r1", "roll_back", service="checkout", version="v841")


def notebook(*cell_ids: str) -> dict[str, Any]:
    """Run cells of the notebook, and return the names that they define."""
    names: dict[str, Any] = {}
    for cell_id in ("imports", *cell_ids):
        exec(compile(CODE[cell_id], cell_id, "exec"), names)
    return names


def investigation(*more_lines: str) -> AgentResult:
    return run_agent(CHECKOUT_TASK, ScriptedModel(investigates()), checkout_world(*more_lines)[0], max_steps=10)


# --- The transcript ------------------------------------------------------------------------------------------


def test_the_transcript_has_the_task_a_line_for_each_text_call_and_result_and_the_number_of_turns() -> None:
    messages = investigation().messages
    metrics, deploys, logs = (message["content"] for message in messages if message["role"] == "tool")
    assert list(notebook("transcript")["as_lines"](messages)) == [
        "task    Checkout p99 latency spiked overnight. Find the likely cause.",
        "turn 1  Starting with the latency numbers for checkout.",
        '  call    query_metrics(service="checkout", window="24h")',
        f"  result  {metrics}",
        f"turn 2  {messages[4]['content']}",
        '  call    list_deploys(service="checkout")',
        f"  result  {deploys}",
        '  call    search_logs(query="payments-db")',
        f"  result  {logs}",
        f"turn 3  {messages[7]['content']}",
        "3 turns",
    ]
    assert "from about 210 ms to about 2,900 ms at 02:00" in messages[4]["content"]


def test_in_the_transcript_a_result_stands_under_its_own_call_though_two_calls_name_the_same_tool() -> None:
    searches = asks(call("a", "search_logs", query="nothing"), call("b", "search_logs", query="pool"))
    messages = run_agent("Search.", ScriptedModel([searches, final("Found.")]), checkout_world()[0]).messages
    lines = list(notebook("transcript")["as_lines"](messages))
    assert '"hits": []' in lines[3] and "pool exhausted" in lines[5]


def test_the_beats_of_a_turn_are_told_in_their_order(capsys: pytest.CaptureFixture[str]) -> None:
    notebook("world", "beats", "beats-run")
    beats = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line[:9].strip() in BEATS]
    assert beats == [*BEATS, *BEATS, *BEATS[2:], *BEATS[:2]]


# --- The plot ------------------------------------------------------------------------------------------------


def test_the_plot_says_when_p99_rose_what_was_deployed_before_and_what_each_turn_looked_at() -> None:
    plot = latency_plot(investigation().messages)
    assert plot.sentence == (
        "At 02:00 p99 rose from 209 to 2,930 ms, 14 times as much; the last deploy before was v841 at 01:55. "
        "Turn 1 looked at 7 hours, turn 2 at 2 deploys and 3 log lines."
    )
    assert [row[0] for row in plot.rows[1:]] == [
        *("18:20", "22:00", "23:00", "00:00", "01:00", "01:55", "02:00", "02:03:11", "03:00", "04:00")
    ]
    assert plot.png
    assert plot.rows[6] == ["01:55", "v841", "", "2"] and plot.rows[8] == ["02:03:11", "3 log lines", "", "2"]


def test_a_run_that_looked_at_the_metrics_alone_is_drawn_too_and_one_that_did_not_is_refused() -> None:
    first, *_ = investigates()
    messages = run_agent(CHECKOUT_TASK, ScriptedModel([first, final("It is slow.")]), checkout_world()[0]).messages
    plot = latency_plot(messages)
    assert plot.png and plot.sentence.endswith("14 times as much. Turn 1 looked at 7 hours.")
    for few in (messages[:2], [message for message in messages if message["role"] != "tool"]):
        with pytest.raises(ValueError, match="needs the p99 of two hours or more"):
            latency_plot(few)


# --- Swap, and the evidence as a gate ------------------------------------------------------------------------


def test_a_recording_takes_the_models_place_and_refuses_a_world_in_which_one_more_line_is_logged() -> None:
    recorded = investigation()
    assert run_agent(CHECKOUT_TASK, replay(recorded.messages), checkout_world()[0]).messages == recorded.messages
    with pytest.raises(AssertionError, match=r"message 6 \(tool\) differs in content.hits: nothing in the first"):
        run_agent(CHECKOUT_TASK, replay(recorded.messages), checkout_world(INJECTED_LINE)[0])


@pytest.mark.parametrize("old, new, status", [("", "", "done"), ("v841", "v842", "unproven"), ("14", "40", "unproven")])
def test_a_conclusion_that_claims_what_no_result_says_ends_the_run_without_an_answer(
    old: str, new: str, status: str
) -> None:
    first, second, last = investigates()
    text = last.content.replace(old, new) if old else last.content
    model = notebook("gate")["proven_only"](ScriptedModel([first, second, final(text)]))
    result = run_agent(CHECKOUT_TASK, model, checkout_world()[0])
    assert (result.status, result.answer) == (status, text if status == "done" else None)
    assert result.messages[-1]["content"] == text and result.steps == 3


# --- Stop reason and calls -----------------------------------------------------------------------------------

STOPS = {
    ("tool_use", True): ("done", True),
    ("end_turn", False): ("done", False),
    ("end_turn", True): ("done", True),
    ("tool_use", False): ("done", False),
    ("stop_sequence", False): ("done", False),
    ("stop_sequence", True): ("done", True),
    ("max_tokens", True): ("truncated", False),
    ("max_tokens", False): ("truncated", False),
    ("model_context_window_exceeded", True): ("truncated", False),
    ("refusal", False): ("refused", False),
    ("refusal", True): ("refused", False),
}


def answering(stop_reason: str, calls: list[ToolCall]) -> SimpleNamespace:
    """Return a client of the notebook's that gives one reply, and then says that it is done."""
    made = notebook("stub")
    replies = [made["response"]("Rolling back.", calls, stop_reason), made["response"]("Done.", [], "end_turn")]
    client: SimpleNamespace = made["stub_client"](replies, [])
    return client


@pytest.mark.parametrize("stop_reason, has_call", STOPS)
def test_a_whole_reply_is_decided_by_its_calls_and_what_was_cut_off_or_refused_never_runs_or_answers(
    stop_reason: str, has_call: bool
) -> None:
    registry, ran = checkout_world()
    add_roll_back(registry, ran)
    model = anthropic_model(answering(stop_reason, [ROLL_BACK] * has_call), "a-model")
    result = run_agent(CHECKOUT_TASK, model, registry)
    status, runs = STOPS[stop_reason, has_call]
    assert result.status == status and ran == ["roll_back(checkout, v841)"] * runs
    assert (result.answer is None) == (status != "done")
    assert result.messages[2]["content"] == "Rolling back."


def test_each_of_the_two_rules_alone_is_wrong_about_a_reply_that_the_harness_gets_right() -> None:
    names = notebook("stub", "word-alone", "rules")
    differ = [(reason, len(calls)) for reason, calls in names["replies"]
              if names["by_calls"](reason, calls) != names["by_reason"](reason, calls)]
    assert differ == [
        *[("end_turn", 1), ("tool_use", 0), ("stop_sequence", 1), ("max_tokens", 1), ("max_tokens", 0), ("refusal", 0)]
    ]


def test_all_results_of_a_turn_travel_in_one_message_each_under_the_id_of_its_call() -> None:
    made, requests = notebook("stub"), list[Json]()
    replies = [made["response"](r.content, r.tool_calls, "tool_use" if r.tool_calls else "end_turn")
               for r in investigates()]
    model = anthropic_model(made["stub_client"](replies, requests), "a-model")
    assert run_agent(CHECKOUT_TASK, model, checkout_world()[0]).messages == investigation().messages
    last = requests[-1]["messages"][-1]
    assert last["role"] == "user" and [block["tool_use_id"] for block in last["content"]] == ["d1", "l1"]


# --- A result that gives orders ------------------------------------------------------------------------------

KEPT = {  # the exit, what was written, and what is blamed, if the model obeys
    "nothing": ("done", "roll_back(checkout, v840)", "v840"),
    "results marked as data": ("done", "roll_back(checkout, v840)", "v840"),
    "a person is asked": ("waiting_for_approval", "–", "–"),
    "tools that only read": ("done", "–", "v840"),
    "only read, evidence checked": ("unproven", "–", "–"),
}


def test_what_each_defence_keeps_from_happening_if_the_model_obeys_and_a_careful_model_is_hindered_by_none() -> None:
    names = notebook("gate", "orders-run", "defences", "defended")
    assert list(names["defences"]) == list(KEPT)
    for name, how in names["defences"].items():
        assert names["investigate"](obeys(), **how) == KEPT[name], name
        assert names["investigate"](list(investigates()), **how) == ("done", "–", "v841"), name


def test_a_model_cannot_call_anything_a_tool_that_is_not_registered_is_only_asked_for() -> None:
    registry, ran = checkout_world()
    script = [asks(ROLL_BACK, text="Rolling it back now."), final("I rolled it back.")]
    result = run_agent(CHECKOUT_TASK, ScriptedModel(script), registry)
    assert ran == [] and result.answer == "I rolled it back."
    assert result.messages[3]["content"].startswith("ERROR: unknown tool 'roll_back'.")
