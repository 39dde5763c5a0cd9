"""The crash lab: a refund in a process that is killed, gone on with in a second one, and the refunds that were paid.

    python -m looplab.crash_lab FOLDER "a journal" "after the refund"

Without the last argument the process is not killed.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from agentloop import (
    INTERRUPTED,
    AgentResult,
    Execute,
    Json,
    Model,
    ModelReply,
    ToolCall,
    Watch,
    asks,
    call,
    continue_agent,
    final,
    journal,
    recover,
    run_agent,
)
from looplab.processes import Ended, in_a_process
from looplab.worlds import REFUND_TASK, order_desk, read_refunds

SCHEMES = ["no journal", "a journal", "a journal and a key"]
POINTS = ["before the refund", "after the refund", "after its result was recorded"]


# --- What the process does -----------------------------------------------------------------------------------


def die() -> NoReturn:
    """End this process at once, as a power cut would: nothing more is written, and nothing is closed."""
    if hasattr(signal, "SIGKILL"):
        os.kill(os.getpid(), signal.SIGKILL)
    os._exit(137)  # Windows knows no SIGKILL


def refund_model(key: Json) -> Model:
    """Return a model that refunds order A123. Told that the outcome is unknown, it asks again only if it has a key."""

    def model(messages: list[Json], specs: list[Json]) -> ModelReply:
        last, call_id = messages[-1], f"c{len(messages)}"
        name = last.get("name", "")
        unknown = last["content"] == INTERRUPTED
        if name == "" or (name == "get_order" and unknown):
            return asks(call(call_id, "get_order", order_id="A123"))
        if name == "get_order" or (key and unknown):
            return asks(call(call_id, "issue_refund", order_id="A123", amount=5000, **key))
        if unknown:
            return final("I cannot tell whether the refund was paid. A person must look into the ledger.")
        return final("5000 rupees were paid back for order A123.")

    return model


def dies_around(execute: Execute, point: str) -> Execute:
    """Return `execute`, in which the process dies before or after it runs a refund."""

    def deadly(call: ToolCall) -> str:
        if call.name == "issue_refund" and point == "before the refund":
            die()
        result = execute(call)
        if call.name == "issue_refund" and point == "after the refund":
            die()
        return result

    return deadly


def dies_after(watch: Watch | None, point: str) -> Watch:
    """Return `watch`, in which the process dies when the refund's observation was told."""

    def deadly(message: Json) -> None:
        if watch:
            watch(message)
        if message.get("name") == "issue_refund" and point == "after its result was recorded":
            die()

    return deadly


def refund(folder: Path, scheme: str, point: str = "") -> AgentResult:
    """Begin the run, or go on with the one that the journal holds; at `point` the process dies."""
    registry, _ = order_desk(folder / "ledger.jsonl")
    model = refund_model({"request_id": "refund-A123"} if "key" in scheme else {})
    path = folder / "journal.jsonl"
    crashed = recover(path) if path.exists() else None
    watch = dies_after(None if scheme == "no journal" else journal(path), point)
    execute = dies_around(registry, point)
    if crashed:
        return continue_agent(crashed, model, registry, 8, 4000, execute=execute, watch=watch)
    return run_agent(REFUND_TASK, model, registry, execute=execute, watch=watch)


def main(folder: str, scheme: str, point: str = "") -> None:
    """Refund, and print the answer, if this process lives so long."""
    print(refund(Path(folder), scheme, point).answer)


# --- What the lab does with it -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Crash:
    """What came of a run whose process was killed, and which a second process took up: the refunds paid, the answer."""

    scheme: str
    point: str
    refunds: int
    answer: str


def start(folder: Path | str, scheme: str, point: str = "") -> Ended:
    """Start the process of the lab, and wait for its end."""
    return in_a_process("crash_lab", folder, scheme, *[point] * bool(point))


def refunds_in(folder: Path | str) -> int:
    """Count the refunds that the ledger holds."""
    return len(read_refunds(Path(folder) / "ledger.jsonl"))


def crash(scheme: str, point: str) -> Crash:
    """Kill a process at a point of the run, start a second one, and count the refunds."""
    with tempfile.TemporaryDirectory() as folder:
        if not start(folder, scheme, point).killed:
            raise RuntimeError(f"the process was not killed {point}")
        answer = start(folder, scheme).said.strip()
        return Crash(scheme, point, refunds_in(folder), answer)


def crashes(schemes: Sequence[str] = SCHEMES, points: Sequence[str] = POINTS) -> list[Crash]:
    """Kill a process under each scheme at each point."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(crash, *zip(*[(scheme, point) for scheme in schemes for point in points])))


def plot_refunds(made: Sequence[Crash]) -> Any:
    """Draw how many refunds were paid, by scheme and by the point at which the process was killed."""
    from looplab import plots  # here, so that the process that dies need not load them

    schemes, points = (list(dict.fromkeys(names)) for names in zip(*[(c.scheme, c.point) for c in made]))
    paid = {(c.scheme, c.point): c.refunds for c in made}
    heights = {scheme: [paid[scheme, point] for point in points] for scheme in schemes}
    said = [f"with {scheme} {', '.join(map(str, values))}" for scheme, values in heights.items()]
    rows = [["killed", *schemes], *([point, *map(str, row)] for point, row in zip(points, zip(*heights.values())))]
    wide = plots.WIDE / len(schemes)

    def draw(figure: Any) -> None:
        ax = figure.add_subplot()
        ax.set_title("Refunds paid, where one is right")
        for i, (scheme, colour) in enumerate(zip(schemes, (plots.EDGE, plots.SPENT, plots.MODEL))):
            left = (i - (len(schemes) - 1) / 2) * wide
            bars = ax.bar([place + left for place in range(len(points))], heights[scheme], wide * .9, color=colour)
            ax.bar_label(bars, padding=3)
            bars.set_label(scheme)
        ax.axhline(1, color=plots.EXIT, zorder=1.5)
        ax.set_xticks(range(len(points)), [f"killed {point}" for point in points])
        ax.set_yticks(range(max(paid.values()) + 1))
        ax.set_ylim(0, max(paid.values()) + .9)
        ax.legend(loc="upper right", ncols=len(schemes), borderaxespad=0)

    sentence = f"Killed {', '.join(points)}: {'; '.join(said)}."
    return plots.Plot("Refunds paid after a crash, where one is right", sentence, rows, draw)


if __name__ == "__main__":
    main(*sys.argv[1:])
