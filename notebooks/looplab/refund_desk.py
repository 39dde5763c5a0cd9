"""The refund that waits for a person, in two processes that share a folder and nothing else.

    python -m looplab.refund_desk ask FOLDER 9
    python -m looplab.refund_desk yes FOLDER 14

The number is the hour at which the process runs, which stands in for the clock.
"""

from __future__ import annotations

import sys
from pathlib import Path

from agentloop import (
    AgentResult,
    Json,
    ModelReply,
    continue_agent,
    deadline,
    decide,
    load_checkpoint,
    open_calls,
    require_approval,
    run_agent,
    save_checkpoint,
)
from looplab.show import call_text
from looplab.worlds import REFUND_TASK, RISKY, order_desk, refunds


def reply_by_step(messages: list[Json], specs: list[Json]) -> ModelReply:
    """Give the reply of the refund script that is next in the list, whichever process asks."""
    step = refunds()[sum(message["role"] == "assistant" for message in messages)]
    reply: ModelReply = step(messages, specs) if callable(step) else step
    return reply


def ask(folder: Path, hour: float) -> AgentResult:
    """Run until a person is needed, and save the run."""
    registry, _ = order_desk(folder / "ledger.jsonl")
    gate = require_approval(registry, registry.check, RISKY)
    model = deadline(reply_by_step, 60, clock=lambda: hour * 3600)
    result = run_agent(REFUND_TASK, model, registry, execute=gate)
    save_checkpoint(folder / "run.jsonl", result)
    return result


def go_on(folder: Path, hour: float, yes: bool) -> AgentResult:
    """Load the run, take the decision on each call that waits, and go on."""
    waiting = load_checkpoint(folder / "run.jsonl")
    verdicts = decide(waiting, {call.id: yes for call in open_calls(waiting.messages)})
    registry, _ = order_desk(folder / "ledger.jsonl")
    gate = require_approval(registry, registry.check, RISKY, verdicts)
    model = deadline(reply_by_step, 60, clock=lambda: hour * 3600)
    result = continue_agent(waiting, model, registry, 8, 4000, execute=gate)
    save_checkpoint(folder / "run.jsonl", result)
    return result


def main(what: str, folder: str, hour: str) -> None:
    """Do one of ask, yes and no, and print how the run stands."""
    try:
        result = ask(Path(folder), float(hour)) if what == "ask" else go_on(Path(folder), float(hour), what == "yes")
    except ValueError as error:
        print(f"{hour}:00  refused: {error}")
        return
    waiting = [call_text(vars(call)) for call in open_calls(result.messages)]
    print(f"{hour}:00  {result.status} after {result.steps} steps: {result.answer or ', '.join(waiting)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
