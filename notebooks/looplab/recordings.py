"""Three runs that got stuck, as traces to diagnose. Their models are scripted, and their seconds those of a set clock.

    python -m looplab.recordings

writes notebooks/traces anew, with the same bytes each time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import wraps
from itertools import count, cycle
from pathlib import Path
from typing import ParamSpec, TypeVar

from agentloop import (
    AgentResult,
    ModelReply,
    ScriptedModel,
    ToolRegistry,
    Trace,
    asks,
    call,
    deadline,
    final,
    run_agent,
)
from looplab.worlds import ORDER_TASK, order_desk

FOLDER = Path(__file__).parents[1] / "traces"
P = ParamSpec("P")
T = TypeVar("T")


class Clock:
    """A clock that moves only when something takes time on it, so that a run has the same seconds each time."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def takes(self, seconds: float, fn: Callable[P, T]) -> Callable[P, T]:
        """Return `fn`, each call of which takes so many seconds on this clock."""

        @wraps(fn, updated=())
        def slow(*args: P.args, **kwargs: P.kwargs) -> T:
            self.now += seconds
            return fn(*args, **kwargs)

        return slow


def in_turn() -> Iterator[ModelReply]:
    """A model that tries two wrong ids in turn."""
    for n, order_id in zip(count(1), cycle(["Z999", "z999"])):
        yield asks(call(f"c{n}", "get_order", order_id=order_id), text=f"Perhaps the id is {order_id}.")


def list_first() -> Iterator[ModelReply]:
    """A model that lists all orders, and then does everything right."""
    yield asks(call("c0", "list_orders"), text="I will see which orders there are.")
    yield from good()


def good() -> Iterator[ModelReply]:
    """A model that does everything right."""
    yield asks(call("c1", "get_order", order_id="A123"), text="I will look up order A123.")
    yield asks(call("c2", "calculator", expression="2500 * 2 * 1.18"))
    yield final("Order A123 costs 5900.0 rupees with 18% GST.")


def desk_with_list() -> ToolRegistry:
    """Return the order desk with a tool that lists every order there ever was."""
    registry, _ = order_desk()
    orders = [{"order_id": f"A{n}", "item": "keyboard", "status": "delivered"} for n in range(100, 190)]
    registry.register("list_orders", "List all orders. Use it when the user does not know an id.", {}, lambda: orders)
    return registry


def record(
    path: Path,
    replies: Iterator[ModelReply],
    registry: ToolRegistry,
    task: str = ORDER_TASK,
    *,
    tool_seconds: float = 0.02,
    seconds: float = 60,
    token_budget: int = 6000,
) -> AgentResult:
    """Run a scripted model on a set clock, and save the trace."""
    clock = Clock()
    trace = Trace(clock=clock)
    script = ScriptedModel(next(replies, final("")) for _ in range(8))
    model = deadline(trace.model(clock.takes(0.8, script)), seconds, clock)
    execute = trace.execute(clock.takes(tool_seconds, registry))
    result = run_agent(task, model, registry, token_budget=token_budget, execute=execute)
    trace.save(path, result)
    return result


def record_all(folder: Path = FOLDER) -> dict[str, AgentResult]:
    """Write the three traces into a folder; return their runs by file name."""
    folder.mkdir(exist_ok=True)
    z999 = "What does order Z999 cost in total with 18% GST?"
    return {
        "run_a.jsonl": record(folder / "run_a.jsonl", in_turn(), order_desk()[0], z999),
        "run_b.jsonl": record(folder / "run_b.jsonl", list_first(), desk_with_list()),
        "run_c.jsonl": record(folder / "run_c.jsonl", good(), order_desk()[0], tool_seconds=31),
    }


def main() -> int:
    """Write the traces, and say how each run ended."""
    for name, result in record_all().items():
        print(f"notebooks/traces/{name}: {result.status} after {result.steps} steps")
    return 0


if __name__ == "__main__":
    sys.exit(main())
