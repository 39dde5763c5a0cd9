"""The wire viewer: our message list beside the request that a provider is sent, and which part of it is whose."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from agentloop import (
    JSON_RULES,
    Json,
    anthropic_blocks,
    check_messages,
    json_texts,
    to_anthropic,
    to_json_text,
    to_openai,
)
from looplab import view
from looplab.show import print_lines
from looplab.view import Bench, Block, code, escape, guarded, json_text, kind_of, message_text, plural, word

WIDTH = 64  # characters of a row
ROWS = 30  # of a page
SPECS = -1  # stands for the specs where else the index of a message stands

NAMES = [  # what we, Anthropic and OpenAI call a thing: a key, or a key with its value
    ["system text", "role: 'system'", "system", "role: 'system'"],
    ["around a tool", "–", "–", "function"],
    ["a tool's schema", "parameters", "input_schema", "parameters"],
    ["reply limit", "–", "max_tokens", "max_completion_tokens"],
    ["a call", "tool_calls", "type: 'tool_use'", "tool_calls"],
    ["its arguments", "args", "input", "arguments"],
    ["a result", "role: 'tool'", "type: 'tool_result'", "role: 'tool'"],
    ["whose result", "tool_call_id", "tool_use_id", "tool_call_id"],
    ["that it failed", "content: 'ERROR:…'", "is_error: True", "content: 'ERROR:…'"],
    ["why it ended", "stop_reason", "stop_reason", "finish_reason"],
    ["- with a call", "stop_reason: ''", "stop_reason: 'tool_use'", "finish_reason: 'tool_calls'"],
    ["- with text", "stop_reason: ''", "stop_reason: 'end_turn'", "finish_reason: 'stop'"],
    ["- cut off", "stop_reason: 'truncated'", "stop_reason: 'max_tokens'", "finish_reason: 'length'"],
    ["- refused", "stop_reason: 'refused'", "stop_reason: 'refusal'", "finish_reason: 'content_filter'"],
    ["tokens in", "prompt", "input_tokens", "prompt_tokens"],
    ["tokens out", "reply", "output_tokens", "completion_tokens"],
]

Path = tuple[str | int, ...]
Owners = dict[Path, int]


@dataclass(frozen=True)
class Row:
    """A row of a request as it is printed, and the message that it comes from, if it is from one."""

    text: str
    owner: int | None = None


# --- Printing in rows that belong to somebody ----------------------------------------------------------------


def rows_of(value: Any, owners: Owners, before: str = "", after: str = "", path: Path = (),
            owner: int | None = None, indent: int = 0) -> Iterator[Row]:
    """Yield `value` as rows of Python, `before` and `after` around it; a part with an owner begins a row of its own.

    A text of several lines stands as one text a row, which Python joins. A bracket stays on the row before it while
    there is room, so that a small request is short.
    """
    owner = owners.get(path, owner)
    parts = list(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ())
    lines = value.split("\n") if isinstance(value, str) else []
    shared = any(len(p) > len(path) and p[: len(path)] == path for p in owners)
    if len(lines) > 1:
        yield from wrapped(before, owner, indent)
        for i, line in enumerate(lines):
            text = literal(line) + after if i + 1 == len(lines) else literal(f"{line}\n")
            yield from wrapped(text, owners.get((*path, i), owner), indent + 2)
        return
    if not parts or not shared and indent + len(before + literal(value) + after) <= WIDTH:
        yield from wrapped(before + literal(value) + after, owner, indent)
        return
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    row, at = before + opening, indent
    for key, item in parts:
        name = f"{literal(key)}: " if isinstance(value, dict) else ""
        end = closing + after if key == parts[-1][0] else ", "
        place, flat = (*path, key), name + literal(item) + end
        is_own = owners.get(place, owner) != owner
        is_long = isinstance(item, (dict, list)) and indent + 2 + len(flat) > WIDTH
        if is_own or is_long or "\\n" in flat or any(p[: len(place)] == place for p in owners):
            hugs = isinstance(value, dict) and not is_own and at + len(row + name) < WIDTH - 8
            if row and not hugs:
                yield from wrapped(row.rstrip(), owner, at)
            start = row + name if hugs else name
            yield from rows_of(item, owners, start, end.rstrip(), place, owner, at if hugs and row else indent + 2)
            row, at = "", indent + 2
        elif at + len((row + flat).rstrip()) <= WIDTH:
            row += flat
        else:
            yield from wrapped(row.rstrip(), owner, at)
            row, at = flat, indent + 2
    if row:
        yield from wrapped(row, owner, at)


def literal(value: Any) -> str:
    """Write a value as Python reads it, text in the quotes that need no escapes in it, where there are such."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{literal(key)}: {literal(item)}' for key, item in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    return json_text(value) if isinstance(value, str) and ('"' not in value or "'" in value) else repr(value)


def wrapped(text: str, owner: int | None, indent: int) -> Iterator[Row]:
    """Yield a text as rows of at most WIDTH characters, the further ones a little more to the right."""
    first, more = " " * indent, " " * (indent + 4)
    if text:
        lines = textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=more, break_on_hyphens=False,
                              replace_whitespace=False, drop_whitespace=True)
        yield from (Row(line, owner) for line in lines)


def show_request(request: Any) -> None:
    """Print what a provider is sent, as Python would write it."""
    print_lines([row.text for row in rows_of(request, {})])


# --- Which part of a request is whose ------------------------------------------------------------------------


def anthropic_owners(messages: list[Json], request: Json) -> Owners:
    """Map the parts of a request of Anthropic's to the messages they come from."""
    blocks = (i for i, m in enumerate(messages) if m["role"] != "system" for _ in anthropic_blocks(m))
    owners: Owners = {("tools",): SPECS}
    if "system" in request:
        owners["system",] = next(i for i, m in enumerate(messages) if m["role"] == "system")
    for t, turn in enumerate(request.get("messages", [])):
        whose = [next(blocks, None) for _ in turn["content"]]
        places: list[Path] = [("messages", t, "content", b) for b in range(len(whose))]
        if len(set(whose)) == 1:
            places = [("messages", t)]
        owners |= {place: i for place, i in zip(places, whose) if i is not None}
    return owners


def openai_owners(messages: list[Json], request: Json) -> Owners:
    """Map the parts of a request of OpenAI's to the messages they come from."""
    said = [i for i, m in enumerate(messages) if m["role"] != "assistant" or m["tool_calls"] or m["content"].strip()]
    return {("messages", place): i for place, i in enumerate(said)} | {("tools",): SPECS}


def json_text_owners(messages: list[Json], turns: list[Json]) -> Owners:
    """Map the turns of a request in JSON text, or the lines of those that several share, to their messages."""
    systems = [i for i, m in enumerate(messages) if m["role"] == "system"]
    others = [i for i, m in enumerate(messages) if m["role"] != "system"]
    whose: list[int | None] = [i for i in systems for _ in lines_of(messages[i])]
    whose += [None] * (JSON_RULES.count("\n") + 1)  # the rules are the adapter's own
    whose += [SPECS] * (turns[0]["content"].count("\n") + 1 - len(whose))
    whose += [i for i in others for _ in lines_of(messages[i])]
    owners: Owners = {}
    for t, turn in enumerate(turns):
        count = turn["content"].count("\n") + 1
        mine, whose = whose[:count], whose[count:]
        places: list[Path] = [(t, "content", line) for line in range(count)] if len(set(mine)) > 1 else [(t,)]
        owners |= {place: i for place, i in zip(places, mine) if i is not None}
    return owners


def lines_of(message: Json) -> list[str]:
    """Return the lines of what a message says to a model that speaks JSON text."""
    return [line for text in json_texts(message) if text.strip() for line in text.split("\n")]


@dataclass(frozen=True)
class Provider:
    """How a provider is asked: the request, whose each part of it is, and what becomes of each kind of message."""

    request: Callable[[list[Json], list[Json]], Any]
    owners: Callable[[list[Json], Any], Owners]
    becomes: dict[str, str]


PROVIDERS = {
    "Anthropic": Provider(to_anthropic, anthropic_owners, {
        "system": "is no message there but a field of its own",
        "user": "is a block of text in a turn of the user",
        "assistant": "is a turn of the assistant with {blocks}",
        "tool": "is a block tool_result in a turn of the user",
        "error": "is a block tool_result in a turn of the user, marked as an error",
        "specs": "are the tools, with an input_schema each"}),
    "OpenAI": Provider(to_openai, openai_owners, {
        "system": "is the first message, as it is here",
        "user": "is a message, as it is here",
        "assistant": "is a message, as it is here",
        "calls": "is a message; each of its calls holds a function, with the arguments as JSON text",
        "tool": "is a message of its own, without the name of its tool",
        "error": "is a message like any result, and only its text says that it is an error",
        "specs": "are the tools; each stands under the key function"}),
    "JSON text": Provider(to_json_text, json_text_owners, {
        "system": "stands first in the system text, before the rules and the tools",
        "user": "is a message, as it is here",
        "assistant": "is text that holds the JSON",
        "tool": "is text of the user, for there is no role tool",
        "error": "is text of the user, for there is no role tool",
        "specs": "are lines of the system text, for the model knows of no tools"}),
}


# --- State ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wire:
    """A list and a provider's request for it, as rows, and where in the request each message stands."""

    ours: list[Row]
    theirs: list[Row]
    places: dict[int, list[Path]]


def wire(messages: list[Json], specs: list[Json], provider: str) -> Wire:
    """Return a list and the request for it as rows; the request is what the adapter really sends."""
    asked = PROVIDERS[provider].request(messages, specs)
    owners = PROVIDERS[provider].owners(messages, asked)
    ours = list(rows_of(messages, {(i,): i for i in range(len(messages))}, "messages = "))
    ours += rows_of(specs, {(): SPECS}, "specs = ")
    places: dict[int, list[Path]] = {}
    for place, i in owners.items():
        places.setdefault(i, []).append(place)
    name = "messages = " if isinstance(asked, list) else ""  # as its places name it
    return Wire(ours, list(rows_of(asked, owners, name)), places)


def place_text(places: list[Path]) -> str:
    """Write where a part of a request stands: messages[2].content[0], or the lines of a text."""
    if not places:
        return "–"
    *path, last = places[0]
    of_lines = [int(place[-1]) + 1 for place in places if isinstance(place[0], int) and len(place) > 1]
    steps = path if of_lines else [*path, last]
    named = steps if isinstance(steps[0], str) else ["messages", *steps]
    where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in named).lstrip(".")
    if len(of_lines) > 1:
        return f"{where}, lines {of_lines[0]} to {of_lines[-1]}"
    return f"{where}, line {of_lines[0]}" if of_lines else where


def beside(wired: Wire, chosen: int) -> str:
    """Say how many others share the turn that a message stands in; "" where it stands alone."""
    places = wired.places.get(chosen, [])
    if not places or len(places[0]) < 3:
        return ""
    turn = places[0][:-2]
    whose = {i for i, theirs in wired.places.items() if any(place[: len(turn)] == turn for place in theirs)}
    others = whose - {chosen, SPECS} if chosen != SPECS else set()
    return f", beside {plural(len(others), 'other message')}" if others else ""


def becomes_text(provider: str, kind: str, message: Json) -> str:
    """Say what becomes of a kind of message with a provider; of a reply, with its blocks or its calls."""
    becomes = PROVIDERS[provider].becomes
    if kind != "assistant":
        return becomes[kind]
    blocks = [block["type"] for block in anthropic_blocks(message)]
    said = becomes.get("calls" if message["tool_calls"] else kind, becomes[kind])
    return said.format(blocks=f"{plural(len(blocks), 'block')} ({', '.join(blocks)})")


def wire_words(messages: list[Json], wired: Wire, provider: str, chosen: int) -> tuple[str, str, str, str]:
    """Say what becomes of a message: who it is, its role, what it is there, and where."""
    places = wired.places.get(chosen, [])
    kind = "specs" if chosen == SPECS else kind_of(messages[chosen])
    who = "The specs" if chosen == SPECS else f"Message {chosen}"
    becomes = becomes_text(provider, kind, messages[chosen]) if places else "is left out, for it says nothing"
    return who, kind, f" {becomes}{beside(wired, chosen)}", place_text(places) if places else ""


# --- HTML and widget -----------------------------------------------------------------------------------------


def words_html(words: tuple[str, str, str, str]) -> str:
    """Return the sentence of a message."""
    who, kind, becomes, place = words
    role = {"error": "tool", "specs": ""}.get(kind, kind)
    named = f"{escape(who)}, {word(role, kind)}," if role else word(who, "muted")
    return view.sentence(f"{named}{escape(becomes)}{': ' + code(place) if place else ''}.")


def rows_html(rows: list[Row], messages: list[Json], chosen: int, label: str) -> str:
    """Return rows with the mark of each message where it begins, and those of the chosen one lit.

    Of many rows a page is shown, the one on which the chosen message begins.
    """
    first = next((i for i, row in enumerate(rows) if row.owner == chosen), 0)
    start = max(0, min(first - 4, len(rows) - ROWS)) if first >= ROWS - 6 else 0
    lines, before = [], None
    for row in rows[start : start + ROWS]:
        begins = row.owner not in (None, SPECS, before)
        mark = view.mark(kind_of(messages[row.owner])) if begins and row.owner is not None else ""
        lit = ' class="ll-now" aria-current="true"' if row.owner == chosen else ""
        muted = ' class="ll-muted"' if row.owner is None else ""
        lines.append(f"<li{lit}><span>{mark}</span><span{muted}>{escape(row.text)}</span></li>")
        before = row.owner
    more = [f"{plural(start, 'row')} above"] * (start > 0)
    more += [f"{plural(len(rows) - start - ROWS, 'row')} below"] * (len(rows) > start + ROWS)
    region = f'class="ll-lines" tabindex="0" role="region" aria-label="{escape(label)}"'
    listed = f'<div {region} style="--ll-h:{19 * ROWS + 12}px"><ol>{"".join(lines)}</ol></div>'
    return listed + view.note(", ".join(more))


class WireViewer(Bench):
    """A list beside a provider's request for it; `chosen` is the index of the message that is lit, or SPECS."""

    def __init__(self, messages: Iterable[Json], specs: Iterable[Json]) -> None:
        self._messages, self._specs = list(messages), list(specs)
        check_messages(self._messages)
        self._order = [*range(len(self._messages)), *([SPECS] if self._specs else [])]
        self._wires = {name: wire(self._messages, self._specs, name) for name in PROVIDERS}
        results = [i for i, message in enumerate(self._messages) if message["role"] == "tool"]
        self.chosen = results[0] if results else 0
        self.provider = view.choices("Provider", list(PROVIDERS), "provider", "Anthropic")
        self.buttons = {
            "First": view.button("First", "first", lambda _: self.choose(self._order[0])),
            "Back": view.button("Back", "back", lambda _: self._move(-1)),
            "Next": view.button("Next", "next", lambda _: self._move(1)),
            "Last": view.button("Last", "last", lambda _: self.choose(self._order[-1])),
        }
        self._position, self._say = view.area("", "position"), view.area("", "say")
        self._ours, self._theirs = view.area("", "ours"), view.area("", "theirs")
        columns = view.columns(view.column("ll-seat-a", self._ours), view.column("ll-seat-a", self._theirs))
        controls = view.controls(*self.buttons.values(), self._position)
        super().__init__(self.provider, controls, self._say, columns, hook="wire")
        self.provider.observe(self._show, names="value")
        self._show()

    @guarded
    def choose(self, message: int) -> None:
        """Light a message, by its index; -1 lights the specs."""
        if message not in self._order:
            raise ValueError(f"there is no message {message}; the last is {len(self._messages) - 1}")
        self.chosen = message
        self._show()

    def _move(self, by: int) -> None:
        self.choose(self._order[min(max(self._order.index(self.chosen) + by, 0), len(self._order) - 1)])

    @guarded
    def _show(self, change: Any = None) -> None:
        name, at = self.provider.value, self._order.index(self.chosen)
        wired = self._wires[name]
        view.switch_ends(self.buttons, at == 0, at == len(self._order) - 1)
        self._position.value = f'<span class="ll-position">{at + 1} / {len(self._order)}</span>'
        self._say.value = words_html(wire_words(self._messages, wired, name, self.chosen))
        ours = rows_html(wired.ours, self._messages, self.chosen, "our list")
        theirs = rows_html(wired.theirs, self._messages, self.chosen, f"what {name} is sent")
        self._ours.value = f'<p class="ll-head">Our list</p>{ours}'
        self._theirs.value = f'<p class="ll-head">The request, {escape(name)}</p>{theirs}'

    def twin(self) -> list[Block]:
        """Return the sentence of the chosen message, and for each message where every provider gets it."""
        name = self.provider.value
        who, kind, becomes, place = wire_words(self._messages, self._wires[name], name, self.chosen)
        table = [["our list", *PROVIDERS]]
        for i in self._order:
            text = "specs" if i == SPECS else f"{i} {message_text(self._messages[i])}"
            table.append([at_a_word(text, 44), *(place_text(w.places.get(i, [])) for w in self._wires.values())])
        return [f"{name}: {who}{becomes}{': ' + place if place else ''}.", table]


def at_a_word(text: str, width: int) -> str:
    """Return `text` on one line of at most `width` characters, cut between two words where there are two."""
    return view.cut(textwrap.shorten(text, width, placeholder=" …") if " " in text[:width] else text, width)


def wire_viewer(messages: Iterable[Json], specs: Iterable[Json]) -> WireViewer:
    """Show a message list beside what each provider is sent for it; a chosen message is lit on both sides.

    Raises ValueError for a list that no provider would accept, or what is no list, like a result or a registry.
    """
    for given in (messages, specs):
        if not isinstance(given, Iterable):
            kind = type(given).__name__
            raise ValueError(f"wire_viewer takes result.messages and registry.specs(), and not {kind}")
    return WireViewer(messages, specs)
