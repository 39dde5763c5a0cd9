"""The specs of the tools as a reader sees them: a signature and its description, and folded as they are sent."""

from __future__ import annotations

from collections.abc import Sequence

from agentloop import Json
from looplab.view import escape, json_text, plural


def signature(spec: Json) -> str:
    """Write a tool as a signature, with brackets around what may be left out: weather(city: string, [unit: string])."""
    required = spec["parameters"].get("required", [])
    args = [(name, f"{name}: {rule['type']}") for name, rule in spec["parameters"].get("properties", {}).items()]
    return f"{spec['name']}({', '.join(text if name in required else f'[{text}]' for name, text in args)})"


def tools_html(specs: Sequence[Json], first_word: str = "") -> str:
    """Return the specs, under a head that counts them."""
    rows = "".join(map(tool_html, specs))
    raw = escape("\n".join(map(json_text, specs)))
    folded = f'<details class="ll-raw"><summary>as they are sent, in JSON</summary><pre>{raw}</pre></details>'
    return f'<p class="ll-head ll-tools">{first_word} {plural(len(specs), "tool")}</p>{rows}{folded if specs else ""}'


def tool_html(spec: Json) -> str:
    """Return one spec: its signature, with the name in bold, over its description."""
    name, args = escape(spec["name"]), escape(signature(spec).removeprefix(spec["name"]))
    about = f'<p class="ll-muted">{escape(spec["description"])}</p>'
    return f'<div class="ll-spec"><code><b>{name}</b>{args}</code>{about}</div>'


def tool_lines(specs: Sequence[Json]) -> list[str]:
    """Write the specs as lines of plain text."""
    return [f"{signature(spec)}: {spec['description']}" for spec in specs]
