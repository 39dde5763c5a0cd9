"""A run that pays out money, in processes that are killed: `python killed_run.py FOLDER`.

It has more than 50 points: before a reply is asked for, before and after a payment is made, when a message is about to
be recorded, and when half of its line is. A process begins the run, or goes on with the one that its folder holds.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

from agentloop import (
    AgentResult,
    Json,
    ModelReply,
    ToolRegistry,
    Watch,
    asks,
    call,
    continue_agent,
    final,
    journal,
    recover,
    run_agent,
)

SCRIPT = [
    asks(call("c1", "balance")),
    asks(call("c2", "pay", eur=1), text="I will pay the first one."),
    asks(call("c3", "balance"), call("c4", "pay", eur=2), call("c5", "pay", eur=3)),
    asks(call("c6", "pay", eur=4)),
    asks(call("c7", "refund", eur=4)),
    asks(call("c8", "pay", eur=5), call("c9", "balance")),
    final("All five are paid. é 🙂 \ud83d"),
]
AMOUNT = {"type": "object", "properties": {"eur": {"type": "integer"}}, "required": ["eur"]}


At = Callable[..., None]


def live(last_act: Callable[[], object] = list) -> None:
    """Kill at no point."""


def model(messages: list[Json], specs: list[Json]) -> ModelReply:
    """Reply by the number of replies before, so that it does not matter which process asks."""
    return SCRIPT[sum(message["role"] == "assistant" for message in messages)]


def bank(folder: Path, at: At = live) -> ToolRegistry:
    """Return the tools of a bank that writes each payment into a file."""

    def pay(eur: int) -> Json:
        at()
        with (folder / "paid").open("a", encoding="utf-8", newline="\n") as file:
            file.write(f"{eur}\n")
        at()
        return {"paid": eur}

    registry = ToolRegistry()
    registry.register("balance", "What is left to pay out.", {}, lambda: "enough")
    registry.register("pay", "Pay out an amount.", AMOUNT, pay)
    return registry


def payments(folder: Path) -> list[int]:
    """Return what the bank paid out."""
    file = folder / "paid"
    return [int(line) for line in file.read_text(encoding="utf-8").split()] if file.exists() else []


def recorded(folder: Path, at: At = live) -> Watch:
    """Return a journal with points at which the process may die; a message is in `told` once its recording is over."""
    write = journal(folder / "run.jsonl")

    def append(name: str, text: str) -> None:
        with (folder / name).open("a", encoding="utf-8", newline="\n") as file:
            file.write(text)

    def watch(message: Json) -> None:
        line = json.dumps(message) + "\n"
        at()
        at(lambda: append("run.jsonl", line[: len(line) // 2]))
        write(message)
        append("told", line)

    return watch


def go(folder: Path, at: At = live) -> AgentResult:
    """Begin the run, or go on with the one that the folder holds."""

    def asked(messages: list[Json], specs: list[Json]) -> ModelReply:
        at()
        return model(messages, specs)

    registry = bank(folder, at)
    crashed = recover(folder / "run.jsonl") if (folder / "run.jsonl").exists() else None
    if crashed is None or crashed.steps == 0:
        return run_agent("Pay the five.", asked, registry, watch=recorded(folder, at), token_budget=10**6)
    if crashed.messages[-1].get("tool_calls") == []:
        return crashed  # its last reply asked for nothing: the run had ended
    return continue_agent(crashed, asked, registry, 8, 10**6, watch=recorded(folder, at))


def run_and_die(folder: Path, fatal: int) -> None:
    """Run until the process dies at its point of that number, or the run ends."""
    points = count(1)

    def at(last_act: Callable[[], object] = list) -> None:
        if next(points) == fatal:
            last_act()
            os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))

    go(folder, at)


def in_a_process(folder: Path, fatal: int) -> bool:
    """Run in a process of its own, and say whether it was killed."""
    processes = multiprocessing.get_context("fork" if hasattr(os, "fork") else "spawn")
    process = processes.Process(target=run_and_die, args=(folder, fatal))
    process.start()
    process.join()
    return bool(process.exitcode)


def main(folder: str, fatal: str = "") -> None:
    """Kill a process at each point of a run, each in a folder of its own; or at one point, until the run has ended."""
    for n in range(1, 100):
        work = Path(folder, "" if fatal else str(n))
        work.mkdir(exist_ok=True)
        if not in_a_process(work, int(fatal or n)):
            print(n - 1)
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
