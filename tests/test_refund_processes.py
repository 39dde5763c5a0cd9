"""The refund over two processes, and the crash lab: real processes, of which some are really killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from looplab import crash_lab, refund_desk
from looplab.crash_lab import POINTS, SCHEMES, Crash, crash, plot_refunds, refund, refund_model
from looplab.processes import in_a_process
from looplab.worlds import read_refunds

from agentloop import INTERRUPTED, WAITING, check_messages, load_checkpoint, open_calls, recover


def test_a_refund_waits_in_a_file_and_is_paid_once_after_a_yes_of_another_process(tmp_path: Path) -> None:
    first = in_a_process("refund_desk", "ask", tmp_path, 9)
    assert first.said.startswith("9:00  waiting_for_approval after 2 steps: issue_refund(") and not first.killed
    assert read_refunds(tmp_path / "ledger.jsonl") == []
    assert [call.name for call in open_calls(load_checkpoint(tmp_path / "run.jsonl").messages)] == ["issue_refund"]
    second = in_a_process("refund_desk", "yes", tmp_path, 14)
    assert second.said == "14:00  done after 3 steps: 5000 rupees were paid back for order A123.\n"
    assert "refused: this run is done" in in_a_process("refund_desk", "yes", tmp_path, 15).said
    assert [refund["amount"] for refund in read_refunds(tmp_path / "ledger.jsonl")] == [5000]


def test_after_a_no_nothing_is_paid_and_the_model_says_so(tmp_path: Path) -> None:
    assert refund_desk.ask(tmp_path, 9).status == WAITING
    result = refund_desk.go_on(tmp_path, 14, yes=False)
    assert (result.status, result.steps) == ("done", 3) and "not approved" in str(result.answer)
    assert read_refunds(tmp_path / "ledger.jsonl") == []
    check_messages(result.messages)


def test_a_module_that_fails_is_told_and_not_taken_for_killed(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="looplab.refund_desk failed"):
        in_a_process("refund_desk", "ask", tmp_path / "none", 9)


# --- The crash lab -------------------------------------------------------------------------------------------

PAID = {
    ("no journal", "before the refund"): 1,
    ("no journal", "after the refund"): 2,
    ("no journal", "after its result was recorded"): 2,
    ("a journal", "before the refund"): 0,
    ("a journal", "after the refund"): 1,
    ("a journal", "after its result was recorded"): 1,
    ("a journal and a key", "before the refund"): 1,
    ("a journal and a key", "after the refund"): 1,
    ("a journal and a key", "after its result was recorded"): 1,
}


@pytest.mark.parametrize(("scheme", "point"), PAID)
def test_a_process_that_is_killed_and_taken_up_pays_as_often_as_the_notebook_says(scheme: str, point: str) -> None:
    assert crash(scheme, point).refunds == PAID[scheme, point]


def test_the_process_is_really_killed() -> None:
    ended = subprocess.run([sys.executable, "-c", "from looplab.crash_lab import die; die()"])
    assert ended.returncode == (-signal.SIGKILL if hasattr(signal, "SIGKILL") else 137)


def test_killed_before_and_after_the_refund_the_journal_is_the_same_and_says_unknown(tmp_path: Path) -> None:
    journals = []
    for point in POINTS[:2]:
        folder = tmp_path / point.replace(" ", "_")
        folder.mkdir()
        assert crash_lab.start(folder, "a journal", point).killed
        journals.append((folder / "journal.jsonl").read_bytes())
        assert [call.name for call in open_calls(recover(folder / "journal.jsonl").messages)] == ["issue_refund"]
        result = refund(folder, "a journal")
        assert [m["content"] for m in result.messages if m.get("name") == "issue_refund"] == [INTERRUPTED]
        check_messages(result.messages)
    assert journals[0] == journals[1]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_run_that_is_not_killed_pays_once(scheme: str, tmp_path: Path) -> None:
    assert refund(tmp_path, scheme).answer == "5000 rupees were paid back for order A123."
    assert crash_lab.refunds_in(tmp_path) == 1


def test_the_model_reads_again_what_was_interrupted_and_only_with_a_key_pays_again() -> None:
    def asked(name: str, key: dict[str, str]) -> list[str]:
        last = {"role": "tool", "tool_call_id": "c1", "name": name, "content": INTERRUPTED}
        return [call.name for call in refund_model(key)([last], []).tool_calls]

    assert asked("get_order", {}) == ["get_order"]
    assert asked("issue_refund", {}) == []
    assert asked("issue_refund", {"request_id": "r"}) == ["issue_refund"]


def test_the_plot_says_how_many_refunds_were_paid() -> None:
    plot = plot_refunds([Crash(scheme, point, refunds, "") for (scheme, point), refunds in PAID.items()])
    assert "with no journal 1, 2, 2; with a journal 0, 1, 1; with a journal and a key 1, 1, 1." in plot.text
    assert plot.png.startswith(b"\x89PNG") and ["before the refund", "1", "0", "1"] in plot.rows
