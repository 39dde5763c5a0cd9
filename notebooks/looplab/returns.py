"""What notebook 15 adds to the order desk: a long log, and models that work with what they are given.

The models are functions of what they are shown, so the same one works with or without a skill and a sub-agent.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from agentloop import Json, ModelReply, ToolRegistry, asks, call, final
from looplab.worlds import schema

SKILLS = Path(__file__).parents[1] / "skills"
RETURN_TASK = "I sent one of the two keyboards of order A123 back. What do I get for it?"
SEARCH = "Find the parcel of order A123 in the depot's log. Answer with its line, and nothing else."
PAGES, LINES = 6, 20
STATES, ITEMS = ["sealed", "opened", "broken"], ["mouse", "lamp", "screen", "keyboard", "cable"]
PARCEL = "A123: 1 keyboard, opened, works"


def log_lines(page: int) -> list[str]:
    """Return the lines of a page of the depot's log; the parcel of order A123 stands on the fifth."""
    lines = []
    for line in range(LINES):
        n = LINES * page + line
        state, item = STATES[n * 11 % 3], ITEMS[n * 7 % 5]
        what = f"{'BCDEF'[n % 5]}{100 + n * 37 % 900}: {1 + n % 3} {item}, {state}, {['works', 'untested'][n % 2]}"
        parcel = PARCEL if (page, line) == (5, 7) else what
        lines.append(f"{6 + n // 10:02}:{n * 6 % 60:02} shelf {n * 13 % 40} order {parcel}")
    return lines


def add_log(registry: ToolRegistry) -> None:
    """Register the tool that reads the depot's log."""

    def read_log(page: int) -> Json:
        if not 1 <= page <= PAGES:
            raise LookupError(f"no page {page}; the log has the pages 1 to {PAGES}")
        return {"page": page, "lines": log_lines(page)}

    about = f"A page of the depot's log, 1 to {PAGES}: each parcel that came back. Use it to find a parcel."
    registry.register("read_log", about, schema(page="integer"), read_log)


def add_finder(registry: ToolRegistry) -> None:
    """Register the tool that finds the lines of one order in the depot's log."""

    def find_parcel(order_id: str) -> list[str]:
        lines = [line for page in range(1, PAGES + 1) for line in log_lines(page)]
        return [line for line in lines if f" order {order_id}: " in line]

    about = "The lines of the depot's log about one order. Use it to find a parcel."
    registry.register("find_parcel", about, schema(order_id="string"), find_parcel)


def depot() -> ToolRegistry:
    """Return a registry that can read the depot's log, and do nothing else."""
    registry = ToolRegistry()
    add_log(registry)
    return registry


def better_depot() -> ToolRegistry:
    """Return a registry that can search the depot's log, and do nothing else."""
    registry = ToolRegistry()
    add_finder(registry)
    return registry


# --- Models --------------------------------------------------------------------------------------------------


def results_of(messages: list[Json], name: str) -> list[str]:
    """Return the observations of a tool that are results, in order."""
    return [m["content"] for m in messages
            if m["role"] == "tool" and m["name"] == name and not m["content"].startswith("ERROR: ")]


def parcel_in(texts: list[str]) -> str:
    """Return the line of the parcel of order A123, or ""."""
    found = [match[0] for text in texts if (match := re.search(r'[^"]*\bA123: [^"]*', text))]
    return found[-1] if found else ""


def ask_for(messages: list[Json], name: str, text: str = "", /, **args: Any) -> ModelReply:
    """Ask for one call, whose id is the number of the reply."""
    number = 1 + sum(message["role"] == "assistant" for message in messages)
    return asks(call(f"c{number}", name, **args), text=text)


def next_page(messages: list[Json]) -> ModelReply:
    """Ask for the page of the log after the last one that was read."""
    page = len(results_of(messages, "read_log")) + 1
    return ask_for(messages, "read_log", page=page)


def searcher(messages: list[Json], specs: list[Json]) -> ModelReply:
    """A model that reads the log page by page, or searches it, and answers with the line of the parcel."""
    if line := parcel_in(results_of(messages, "read_log") + results_of(messages, "find_parcel")):
        return final(line)
    if "find_parcel" in {spec["name"] for spec in specs}:
        return ask_for(messages, "find_parcel", order_id="A123")
    if messages[-1]["content"].startswith("ERROR: "):
        return final("There is no parcel of order A123 in the log.")
    return next_page(messages)


def reads_on(messages: list[Json], specs: list[Json]) -> ModelReply:
    """A model that reads the log again and again, and never has enough."""
    return ask_for(messages, "read_log", page=1 + len(results_of(messages, "read_log")) % PAGES)


def reports(messages: list[Json], specs: list[Json]) -> ModelReply:
    """A model that reads the whole log, and answers with all of it."""
    pages = results_of(messages, "read_log")
    return final("\n".join(pages)) if len(pages) == PAGES else next_page(messages)


def careless(messages: list[Json], specs: list[Json]) -> ModelReply:
    """A model that finds the parcel, and answers from memory."""
    reply = searcher(messages, specs)
    return reply if reply.tool_calls else final(reply.content.replace("opened", "sealed"))


def clerk(messages: list[Json], specs: list[Json]) -> ModelReply:
    """A model that handles RETURN_TASK by the rules that it has read, with the tools that it has.

    It pays the full price where nobody told it otherwise.
    """
    tools = {spec["name"] for spec in specs}
    if "load_skill" in tools and not results_of(messages, "load_skill"):
        return ask_for(messages, "load_skill", "There are rules for this.", name="process-a-return")
    if not results_of(messages, "get_order"):
        return ask_for(messages, "get_order", order_id="A123")
    places = [results_of(messages, name) for name in ("read_log", "find_parcel", "delegate")]
    line = parcel_in(sum(places, []))
    if not line and (reply := look_for_parcel(messages, tools)):
        return reply
    known = messages[0]["content"] + "".join(results_of(messages, "load_skill"))
    part = 0.9 if "opened" in line and "90%" in known else 1
    return pay_back(messages, part)


def look_for_parcel(messages: list[Json], tools: set[str]) -> ModelReply | None:
    """Return the reply of the clerk while the parcel is not found; None where there is nothing to look with."""
    if "delegate" in tools:
        if messages[-1].get("name") != "delegate":
            return ask_for(messages, "delegate", "Somebody else can read the log.", task=SEARCH)
        if messages[-1]["content"].startswith("ERROR: "):
            return final("I could not find out whether your parcel has arrived. A person will look for it.")
        return final("Your parcel has not arrived, so nothing is paid.")
    if "find_parcel" in tools:
        return ask_for(messages, "find_parcel", order_id="A123")
    if "read_log" in tools:
        if messages[-1]["content"].startswith("ERROR: "):
            return final("Your parcel has not arrived, so nothing is paid.")
        return next_page(messages)
    return None


def pay_back(messages: list[Json], part: float) -> ModelReply:
    """Return the last replies of the clerk: compute, pay, tell."""
    if not (sums := results_of(messages, "calculator")):
        price = json.loads(results_of(messages, "get_order")[0])["unit_price"]
        return ask_for(messages, "calculator", expression=f"{price} * {part}")
    amount: Any = json.loads(sums[0])
    if not results_of(messages, "issue_refund"):
        return ask_for(messages, "issue_refund", order_id="A123", amount=amount)
    return final(f"{amount:.0f} rupees were paid back for one keyboard of order A123.")
