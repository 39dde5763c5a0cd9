"""The loop player: a loop that ran once, for real, to be stepped through statement by statement, forwards and back.

`play` records a run. `state_at` says in plain data what one frame shows; each function after it turns a state into
the HTML of one part; a Player only moves from frame to frame.
"""

from __future__ import annotations

import ast
import asyncio
import io
import keyword
import tokenize
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import ipywidgets as widgets

from agentloop import run_agent
from looplab import narrator
from looplab.recorder import Recording, record
from looplab.view import (Bench, Block, area, button, column, columns, controls, cut, escape, guarded, kind_of,
                          message_list, message_text, meter, meter_text, plural, sentence, specs_html, switch_ends,
                          switch_off)

WHOLE, PAGE, SHARED = 30, 25, 5  # rows of code shown whole; else rows of a page, and rows it shares with the next
WIDTH = 71  # characters in a row of code
LINE = 19  # the height of a row in pixels
MOST = 30  # messages that are listed at a frame; a frame before them shows the others
SECONDS = 1.0  # for which Play shows a frame
STATUSES = {"done", "step_limit", "token_budget", "interrupted", "truncated", "refused", "empty_reply"}


def play(task: str, model: Any, registry: Any, loop: Callable[..., Any] = run_agent, **limits: Any) -> Player:
    """Run `loop(task, model, registry, **limits)` once, for real, and return a player of what it did.

    `loop` may be any function of these arguments, also one typed into a cell; of run_agent, the player shows
    continue_agent, which holds its loop. If the loop raises, or never ends, the player shows where.
    """
    return Player(record(loop, task, model, registry, limits))


# --- What a frame shows --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class State:
    """What a player shows at one frame, in plain data.

    `frame` counts from 0. The messages at the indexes in `new` were just appended or edited; the model was shown the
    first `seen`. `end` is the status of the run, and what belongs to it, at the last frame.
    """

    frame: int
    frames: int
    first: int
    last: int
    sentence: narrator.Sentence
    values: dict[str, str]
    changed: frozenset[str]
    messages: list[Any]
    new: frozenset[int]
    seen: int
    steps: int
    max_steps: int | None
    spent: int | None
    budget: int | None
    prompt: int | None
    scale: int
    under_way: bool
    end: tuple[str, str] | None


def state_at(recording: Recording, i: int) -> State:
    """Return what a player shows at frame `i`."""
    moment, messages, steps = recording.moments[i], recording.messages(i), recording.steps(i)
    new = frozenset(range(len(messages) - moment.appended, len(messages))) | frozenset(moment.edited)
    end = None
    if i == len(recording.moments) - 1:
        spent = f", {moment.spent:,} tokens" if moment.spent is not None else ""
        end = (narrator.status_of(recording), f"after {plural(steps, 'step')}{spent}")
    return State(
        i, len(recording.moments), moment.statement.first, moment.statement.last, narrator.tell(recording, i),
        moment.values, moment.changed, messages, new, min(moment.asked.shown, len(messages)) if moment.asked else 0,
        steps, recording.max_steps, moment.spent, recording.budget, moment.prompt, recording.scale,
        moment.waiting and not end, end)


def stops_of(recording: Recording) -> dict[str, list[int]]:
    """Return the frames to jump to: calls of the model and of tools, errors that join the list, and the exit."""
    stops: dict[str, list[int]] = {"assistant": [], "tool": [], "error": [], "exit": [len(recording.moments) - 1]}
    for i, moment in enumerate(recording.moments):
        new = recording.messages(i)[-moment.appended:] if moment.appended else []
        stops["assistant"] += [i] if moment.asked else []
        stops["tool"] += [i] if moment.ran else []
        stops["error"] += [i] if any(kind_of(message) == "error" for message in new) else []
    return stops


def next_stop(stops: list[int], frame: int) -> int | None:
    """Return the first stop after a frame; None if there is none."""
    at = bisect_right(stops, frame)
    return stops[at] if at < len(stops) else None


def twin_of(state: State, code: str) -> list[Block]:
    """Return a frame in plain words: the sentence, the position, the messages, the counters."""
    where = f"frame {state.frame + 1} of {state.frames}, line {state.first}: `{code}`"
    counters = meter_text(state.steps, state.max_steps, state.spent, state.budget, state.prompt, state.under_way)
    end = [f"exit: {' '.join(state.end)}"] if state.end else []
    return [narrator.as_text(state.sentence), where, [message_text(m) for m in state.messages] + end, counters]


# --- The code ------------------------------------------------------------------------------------------------


class Row(NamedTuple):
    """A row of the listing: a line of code, or a part of one that is too long; its number stands at its first part."""

    line: int
    number: str
    html: str


def code_rows(recording: Recording) -> list[Row]:
    """Return the listing: black, but for the calls of the model and the tools, and the names of the exits."""
    lines = recording.source.lines
    tokens = list(tokenize.generate_tokens(io.StringIO("\n".join([*lines, ""])).readline))
    seams, spans = seams_of(tokens), spans_of(tokens, lines, recording)
    rows = []
    for line, text in enumerate(lines, 1):
        for start, stop, indent in parts_of(text, seams.get(line, {})):
            html = " " * indent + coloured(text, start, stop, spans.get(line, []))
            rows.append(Row(line, "" if start else str(line), html))
    return rows


def parts_of(text: str, seams: dict[int, int]) -> Iterator[tuple[int, int, int]]:
    """Cut a line into parts that fit: where each starts and stops, and its indent."""
    start, indent, hang = 0, 0, len(text) - len(text.lstrip()) + 8
    while len(text) - start > WIDTH - indent:
        end = start + WIDTH - indent
        least = (2 * max(start, hang) + end) // 3
        words = {i + 1: 0 for i in range(least, end) if text[i] == " "}
        fitting = {i: badness for i, badness in seams.items() if least < i <= end} or words or {end: 0}
        stop = min(fitting, key=lambda i: (fitting[i], -i))
        yield start, stop, indent
        start, indent = stop, hang
    yield start, len(text), indent


def seams_of(tokens: list[tokenize.TokenInfo]) -> dict[int, dict[int, int]]:
    """Return, for each line, the columns before which it may be cut, and how bad that would be.

    A cut lies between tokens and in no string; it is the worse the more brackets are open, and best after a comma.
    """
    seams: dict[int, dict[int, int]] = {}
    brackets = strings = 0
    for before, token in zip(tokens, tokens[1:]):
        brackets += (before.string in ("(", "[", "{")) - (before.string in (")", "]", "}"))
        opened = tokenize.tok_name[before.type]
        strings += (opened == "FSTRING_START") - (opened == "FSTRING_END")  # Python 3.12 reads into an f-string
        if not strings and token.start > before.end and token.start[0] == before.end[0]:
            seams.setdefault(token.start[0], {})[token.start[1]] = 2 * brackets - (before.string == ",")
    return seams


def coloured(text: str, start: int, stop: int, spans: list[tuple[int, int, str]]) -> str:
    """Return a part of a line as HTML."""
    html, at = [], start
    for left, right, name in spans:
        left, right = max(left, start), min(right, stop)
        if left < right:
            html += [escape(text[at:left]), f'<span class="{name}">{escape(text[left:right])}</span>']
            at = right
    return "".join([*html, escape(text[at:stop])])


def spans_of(tokens: list[tokenize.TokenInfo], lines: list[str], recording: Recording) -> dict[int, list[Any]]:
    """Return, for each line, the stretches that are not plain: start, end and class."""
    spans: dict[int, list[Any]] = {}
    for i, token in enumerate(tokens):
        name, (first, column), (last, end) = class_of(tokens, i, recording), token.start, token.end
        if name == "ll-tool" and tokens[i - 1].string == ".":
            column = tokens[i - 2].start[1]  # registry.execute is one thing
        for line in range(first, last + 1) if name else ():
            spans.setdefault(line, []).append(
                (column if line == first else 0, end if line == last else len(lines[line - 1]), name))
    return spans


def class_of(tokens: list[tokenize.TokenInfo], i: int, recording: Recording) -> str:
    """Return the class of a token in the style sheet; none for most."""
    token, before, after = tokens[i], tokens[i - 1], tokens[min(i + 1, len(tokens) - 1)]
    if token.type == tokenize.COMMENT:
        return "ll-c"
    if token.type == tokenize.STRING:
        is_docstring = before.type in (tokenize.INDENT, tokenize.NEWLINE)
        is_exit = literal(token.string) in STATUSES | {narrator.status_of(recording)}
        return "ll-c" if is_docstring else "ll-exit" if is_exit else ""
    if keyword.iskeyword(token.string) and token.string not in ("None", "True", "False"):
        return "ll-k"
    if after.string == "(":
        return {recording.names["registry"]: "ll-tool", "execute": "ll-tool",
                recording.names["model"]: "ll-assistant"}.get(token.string, "")
    return ""


def literal(text: str) -> Any:
    """Return the value of a string token; None for one that is not constant."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return None


def page_of(rows: list[Row], line: int) -> list[Row]:
    """Return the rows to show for a line: all, or the page chosen by the line alone, so that it does not wander."""
    size = page_size(rows)
    at = next((i for i, row in enumerate(rows) if row.line == line), 0)
    start = max(0, at - SHARED // 2) // (PAGE - SHARED) * (PAGE - SHARED)
    return rows[min(start, len(rows) - size):][:size]


def page_size(rows: list[Row]) -> int:
    """Return how many rows of the listing are shown at a time."""
    return len(rows) if len(rows) <= WHOLE else PAGE


def code_html(rows: list[Row], state: State) -> str:
    """Return the page of code with the lines of the statement lit."""
    lit = ' class="ll-now ll-out"' if state.end else ' class="ll-now"'
    items = []
    for row in page_of(rows, state.first):
        now = lit if state.first <= row.line <= state.last else ""
        current = ' aria-current="true"' if row.line == state.first and row.number else ""
        items.append(f"<li{now}{current}><span>{row.number}</span><span>{row.html}</span></li>")
    region = 'class="ll-lines" tabindex="0" role="region" aria-label="code of the loop"'
    return f'<div {region} style="--ll-h:{height_of(rows)}px"><ol>{"".join(items)}</ol></div>'


def height_of(rows: list[Row]) -> int:
    """Return the height of code and list in pixels; a short loop leaves room for its list."""
    return LINE * max(14, page_size(rows))


# --- The other parts -----------------------------------------------------------------------------------------

RANKS = ("step", "steps", "spent", "tokens", "prompt", "messages", "reply", "call")


def values_html(state: State, order: list[str]) -> str:
    """Return the variables, in two lines; the changed ones are lit, and others give way where it is too much."""
    names = [n for n in order if n in state.values]
    while len(names) > 1 and rows_needed(names, state.values) > 2:
        names.remove(next((n for n in reversed(names) if n not in state.changed), names[-1]))
    lit = ' class="ll-changed"'
    items = "".join(f'<div{lit * (n in state.changed)}><dt>{escape(n)} </dt>'
                    f'<dd>{escape(state.values[n])}</dd></div>' for n in names)
    return f'<dl class="ll-vars">{items}</dl>'


def rows_needed(names: list[str], values: dict[str, str]) -> int:
    """Return how many lines some variables take up, as the browser will lay them out."""
    rows, used = 1, 0
    for n in names:
        size = len(n) + 1 + len(values[n])
        if used and used + size > WIDTH:
            rows, used = rows + 1, 0
        used += size + 3
    return rows


def names_of(recording: Recording) -> list[str]:
    """Return every variable of a run, the counters first, the rest as they came up."""
    seen = dict.fromkeys(name for moment in recording.moments for name in moment.values)
    short = {name: name.rpartition(".")[2] for name in seen}
    return sorted(seen, key=lambda n: RANKS.index(short[n]) if short[n] in RANKS else len(RANKS))


def list_html(state: State, height: int) -> str:
    """Return the message list; of a long one, the end."""
    return message_list(state.messages, state.new, state.seen, state.end, height=height, most=MOST)


def meter_html(state: State) -> str:
    """Return the counters."""
    return meter(state.steps, state.max_steps, state.spent, state.budget, state.prompt, state.scale, state.under_way)


# --- The widget ----------------------------------------------------------------------------------------------


class Player(Bench):
    """A recorded run, shown one frame at a time; it opens at the first call of the model.

    `frames` are the moments of the run, `state` is what is shown now, `result` what the loop returned, `error` the
    exception it raised. In print, where nothing moves, it is the last frame: the whole list, and the exit.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording, self.frames = recording, recording.moments
        self.result, self.error = recording.result, recording.error
        self.stops, self.rows, self.order = stops_of(recording), code_rows(recording), names_of(recording)
        self._playing: asyncio.Task[None] | None = None

        self.buttons = {
            "first": button("First", "first", lambda _: self.go_to(0)),
            "back": button("Back", "back", lambda _: self.go_to(self.state.frame - 1)),
            "play": button("Play", "play", lambda _: self.play_or_pause(), "ll-play"),
            "next": button("Next", "next", lambda _: self.go_to(self.state.frame + 1)),
            "last": button("Last", "last", lambda _: self.go_to(len(self) - 1)),
        }
        self.jumps = {kind: self._jump_button(kind, text) for kind, text in
                      (("assistant", "model call"), ("tool", "tool call"), ("error", "error"), ("exit", "exit"))}
        self.slider = widgets.IntSlider(1, 1, len(self), description="Frame", readout=False, tooltip="")
        self.slider.observe(lambda change: self._slid(change["new"]), "value")
        self.position, self.sentence, self.code, self.values = area(), area(), area(), area()
        self.list, self.meter = area(), area()
        specs = area(specs_html(recording.specs) if recording.specs is not None else "", "specs")
        super().__init__(
            controls(*self.buttons.values(), widgets.HBox([self.slider, self.position])),
            controls("Jump to the next", *self.jumps.values()),
            self.sentence,
            columns(column("ll-col-code", self.code, self.values), column("ll-col-list", self.list, specs)),
            self.meter, hook="player")
        self._show(next_stop(self.stops["assistant"], -1) or 0)

    def __len__(self) -> int:
        return len(self.frames)

    @guarded
    def go_to(self, frame: int) -> None:
        """Show a frame; the first is 0."""
        self._pause()
        self._show(frame)

    @guarded
    def jump(self, kind: str) -> None:
        """Show the next model call ("assistant"), tool call ("tool"), "error" or "exit"; stay where none follows."""
        self._pause()
        frame = next_stop(self.stops[kind], self.state.frame)
        self._show(self.state.frame if frame is None else frame)

    @guarded
    def play_or_pause(self) -> None:
        """Show frame after frame, or stop doing so."""
        if not self._pause():
            try:
                self._playing = asyncio.get_running_loop().create_task(self._play())
            except RuntimeError:
                raise RuntimeError("Play needs a running notebook") from None
            self.buttons["play"].description = "Pause"

    def twin(self) -> list[Block]:
        """Return the last frame in plain words."""
        state = state_at(self.recording, len(self) - 1)
        return twin_of(state, cut(self.recording.source.code_of(self.frames[-1].statement), 100))

    @guarded
    def _slid(self, position: int) -> None:
        if position - 1 != self.state.frame:
            self._pause()
            self._show(position - 1)

    async def _play(self) -> None:
        while self.state.frame < len(self) - 1 and not self.error_box.value:
            await asyncio.sleep(SECONDS)
            self._step()
        self._pause()

    @guarded
    def _step(self) -> None:
        self._show(self.state.frame + 1)

    def _jump_button(self, kind: str, text: str) -> widgets.Button:
        return button(text, f"jump-{kind}", lambda _: self.jump(kind), "ll-jump", f"ll-j-{kind}")

    def _pause(self) -> bool:
        playing, self._playing = self._playing, None
        if playing:
            playing.cancel()
            self.buttons["play"].description = "Play"
        return playing is not None

    def _show(self, frame: int) -> None:
        if not 0 <= frame < len(self):
            raise IndexError(f"there is no frame {frame}; this run has frames 0 to {len(self) - 1}")
        self.state = state = state_at(self.recording, frame)
        switch_ends(self.buttons, frame == 0, frame == len(self) - 1)
        switch_off((jump, next_stop(self.stops[kind], frame) is None) for kind, jump in self.jumps.items())
        self.slider.value = frame + 1
        self.position.value = f'<span class="ll-position">{frame + 1:,} / {len(self):,}</span>'
        self.sentence.value = sentence(narrator.as_html(state.sentence))
        self.code.value = code_html(self.rows, state)
        self.values.value = values_html(state, self.order)
        self.list.value = list_html(state, height_of(self.rows))
        self.meter.value = meter_html(state)
