"""The approval bench: what it shows is what the gate, a decision and the run really did."""

from __future__ import annotations

import itertools
import json

import pytest
from looplab.approval import APPROVE, CHANGE, PRESETS, REJECT, ApprovalBench, approval_bench, play_presses
from looplab.view import Bench

from agentloop import REJECTED, WAITING, check_messages, open_calls

PRESSES = [list(presses) for n in range(3) for presses in itertools.product([APPROVE, REJECT, CHANGE], repeat=n)]


def observed(preset: str, *presses: str) -> dict[str, str]:
    """Return each call's observation by its id."""
    messages = play_presses(preset, presses).result.messages
    return {m["tool_call_id"]: m["content"] for m in messages if m["role"] == "tool"}


@pytest.mark.parametrize("preset", PRESETS)
def test_no_refund_runs_before_a_person_said_yes(preset: str) -> None:
    stand = play_presses(preset, [])
    assert stand.result.status == WAITING and stand.waiting is not None
    assert not [line for line in stand.ran if line.startswith("issue_refund")]
    assert "the run waits for a person." in "".join(stand.said)


@pytest.mark.parametrize("presses", PRESSES, ids=lambda presses: "-".join(press[:12] for press in presses) or "none")
@pytest.mark.parametrize("preset", PRESETS)
def test_a_run_that_ended_is_accepted_and_one_that_waits_has_its_call_open(preset: str, presses: list[str]) -> None:
    stand = play_presses(preset, presses)
    if stand.result.status == "done":
        check_messages(stand.result.messages)
        assert stand.waiting is None
    else:
        assert stand.waiting == open_calls(stand.result.messages)[0]


@pytest.mark.parametrize("preset", PRESETS)
def test_as_many_refunds_run_as_were_approved(preset: str) -> None:
    for presses in PRESSES:
        stand = play_presses(preset, presses)
        refunds = [line for line in stand.ran if line.startswith("issue_refund")]
        assert len(refunds) <= presses.count(APPROVE)


def test_a_yes_lets_the_call_run_and_a_no_is_its_observation() -> None:
    assert json.loads(observed("one refund", APPROVE)["c2"])["amount"] == 5000
    assert observed("one refund", REJECT)["c2"] == REJECTED


def test_each_refund_of_a_reply_waits_for_its_own_decision() -> None:
    seen = observed("two refunds in one reply", APPROVE, REJECT)
    assert json.loads(seen["c2"])["amount"] == 2500 and seen["c3"] == REJECTED


def test_a_yes_does_not_fit_a_call_whose_amount_was_changed_in_the_file() -> None:
    stand = play_presses("one refund", [CHANGE])
    assert stand.result.status == WAITING and stand.ran == ["get_order(A123)"]
    assert "the file holds issue_refund(order_id=\"A123\", amount=50000), and that waits" in "".join(stand.said)
    assert play_presses("one refund", [CHANGE, APPROVE]).ran[-1] == "issue_refund(A123, 50000)"


def test_nobody_is_asked_about_a_call_that_cannot_run() -> None:
    stand = play_presses("a refund that cannot run", [])
    assert stand.waiting is not None and stand.waiting.id == "c2"
    assert observed("a refund that cannot run")["c1"].startswith("ERROR: argument 'amount' must be of type number")


def test_after_a_no_the_model_can_choose_another_path() -> None:
    stand = play_presses("a model that tries again after a no", [REJECT, APPROVE])
    assert stand.result.answer == "2500 rupees were paid back; 1 refused by a person."


# --- The widget ----------------------------------------------------------------------------------------------


def test_back_takes_the_last_decision_back() -> None:
    bench = approval_bench()
    before = bench._repr_mimebundle_()["text/plain"]
    bench.press(APPROVE)
    assert bench.stand.result.status == "done" and bench.approve.disabled and not bench.undo.disabled
    bench.back()
    assert bench._repr_mimebundle_()["text/plain"] == before and bench.undo.disabled and not bench.approve.disabled


def test_another_preset_begins_anew() -> None:
    bench = approval_bench()
    bench.press(REJECT)
    bench.preset.value = "two refunds in one reply"
    assert bench.presses == [] and bench.stand.waiting is not None


def test_the_twin_says_in_words_what_the_bench_shows() -> None:
    bench = approval_bench()
    bench.press(APPROVE)
    bundle = bench._repr_mimebundle_()
    ran = "What ran: get_order(A123), issue_refund(A123, 5000)."
    for text in ("A person said yes to", "the run ended with done.", ran):
        assert text in bundle["text/plain"] and text in bundle["text/html"]
    assert "class=" not in bundle["text/html"] and "style=" not in bundle["text/html"]


def test_a_press_that_fails_is_said_in_the_bench(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = ApprovalBench()
    assert isinstance(bench, Bench)
    monkeypatch.setitem(PRESETS, "one refund", lambda: [])
    bench.press(APPROVE)
    assert "That did not work: AssertionError: script ran out" in bench.error_box.value
