"""Print runs as text: a transcript, a trace, a table; each with a limit on width and lines."""

import json
from itertools import zip_longest
from textwrap import wrap

from agentloop import AgentResult, Json, ToolRegistry, trace_rows

WIDTH = 96
CELL = 48
LINES = 60


def shorten(text: str, width: int = WIDTH) -> str:
    """Return `text` on one line, cut to `width` characters; a cut says how many characters are left out."""
    text = text.replace("\n", "⏎")
    if len(text) <= width:
        return text
    note = f"… ({len(text) - width:,} more)"
    return text[:width] + note


def call_text(call: Json) -> str:
    """Write a recorded call as code: get_weather(city="Pune")."""
    args = call["args"]
    if not isinstance(args, dict):
        return f"{call['name']}({json.dumps(args, ensure_ascii=False)})"
    return f"{call['name']}({', '.join(f'{k}={json.dumps(v, ensure_ascii=False)}' for k, v in args.items())})"


def print_lines(lines: list[str]) -> None:
    """Print at most LINES lines, and say how many more there are."""
    shown = lines[:LINES]
    print("\n".join(shown))
    if len(lines) > len(shown):
        print(f"… and {len(lines) - len(shown):,} more lines")


def transcript(messages: list[Json]) -> None:
    """Print a message list, one line for each text, call and observation."""
    lines = []
    for message in messages:
        role, content = message["role"], message["content"]
        calls = message.get("tool_calls", [])
        if content or not calls:
            who = f"{role} {message['tool_call_id']}" if role == "tool" else role
            lines.append(f"{who:<10} {shorten(content)}")
        for number, call in enumerate(calls):
            who = "" if number or content else role
            lines.append(f"{who:<10} → {shorten(call_text(call))}  {call['id']}")
    print_lines(lines)


def cell_lines(cell: object, whole: bool) -> list[str]:
    """Return the lines of a cell: a number with commas, a text cut to 48 characters or, if `whole`, wrapped at them."""
    if type(cell) is int:
        return [f"{cell:,}"]
    return wrap(str(cell).replace("\n", "⏎"), CELL) or [""] if whole else [shorten(str(cell), CELL)]


def table(headings: list[str], rows: list[list[object]], whole: bool = False) -> None:
    """Print a plain table; numbers stand right. A cell of more than 48 characters is cut, or goes on below if `whole`.
    """
    tall = [[[heading] for heading in headings], *([cell_lines(cell, whole) for cell in row] for row in rows)]
    cells = [line for row in tall for line in zip_longest(*row, fillvalue="")]
    widths = [max(len(row[i]) for row in cells) for i in range(len(headings))]
    right = [all(isinstance(row[i], (int, float)) for row in rows) and bool(rows) for i in range(len(headings))]
    print_lines(["  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right)).rstrip()
                 for row in cells])


def trace(result: AgentResult, registry: ToolRegistry, whole: bool = False) -> None:
    """Print a run as a table: step, decision, observation, tokens so far; and the exit below it.

    Long cells are cut, or go on below if `whole`.
    """
    table(["step", "decision", "observation", "tokens"],
          [[int(step), decision, observation, int(tokens)]
           for step, decision, observation, tokens in trace_rows(result, registry.specs())], whole)
    print(f"exit: {result.status} after {result.steps} steps and {result.tokens:,} tokens")
