"""The event timeline: what a run told while it ran, with a lane for each call.

The place on the line is the number of an event, and no time, so that a run looks the same each day. An event is known
by the name of its type, for the notebook that builds the types has its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentloop import Json
from looplab import view
from looplab.room import line, rect, text, var
from looplab.view import PAINT, SHAPES, Bench, Block, call_text, escape, guarded, plural

HEAD = ["event", "type", "call", "what"]
CUT = 64  # characters of what an event says, in the table

Events = Sequence[Any]


# --- State ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lane:
    """A call: the numbers of the events at which it started and ended, if it did, and its observation."""

    call_id: str
    text: str
    started: int | None = None
    ended: int | None = None
    observation: str = ""

    @property
    def state(self) -> str:
        """What became of it so far: "waits", "runs", "result", "error" or "not run"."""
        if self.ended is None:
            return "waits" if self.started is None else "runs"
        if self.started is None:
            return "not run"
        return "error" if self.observation.startswith("ERROR: ") else "result"


def kind_of(event: Any) -> str:
    """Return the name of an event's type."""
    return type(event).__name__


def messages_of(events: Events) -> list[Json]:
    """Return the messages that these events told of, in order."""
    return [event.message for event in events if kind_of(event) in ("MessageCompleted", "ToolEnded")]


def lanes_of(events: Events) -> list[Lane]:
    """Return a lane for each call that these events tell of, in the order in which they were asked for."""
    lanes: dict[str, Lane] = {}
    for number, event in enumerate(events, 1):
        if kind_of(event) == "MessageCompleted":
            for asked in event.message.get("tool_calls", []):
                lanes[asked["id"]] = Lane(asked["id"], call_text(asked))
        elif kind_of(event) == "ToolStarted":
            lane = lanes.get(event.call.id, Lane(event.call.id, call_text(event.call)))
            lanes[event.call.id] = replace(lane, started=number)
        elif kind_of(event) == "ToolEnded":
            call_id, content = event.message["tool_call_id"], event.message["content"]
            lane = lanes.get(call_id, Lane(call_id, event.message["name"]))
            lanes[call_id] = replace(lane, ended=number, observation=content)
    return list(lanes.values())


def event_words(events: Events, number: int) -> tuple[str, str, str]:
    """Say what an event tells: who, the role that colours it, and the rest."""
    event, lanes = events[number - 1], lanes_of(events[:number])
    match kind_of(event):
        case "MessageCompleted":
            return message_words(event.message)
        case "ToolStarted":
            others = [lane.call_id for lane in lanes if lane.state == "runs" and lane.call_id != event.call.id]
            beside = f", while {' and '.join(others)} {'runs' if len(others) == 1 else 'run'}" if others else ""
            return "The tool", "tool", f" starts {event.call.id}: {view.cut(call_text(event.call), 60)}{beside}."
        case "ToolEnded":
            lane = next(lane for lane in lanes if lane.call_id == event.message["tool_call_id"])
            if lane.state == "not run":
                return "The harness", "exit", f" did not run {lane.call_id}, and says so in its place."
            said = view.cut(lane.observation.removeprefix("ERROR: "), CUT)
            if lane.state == "error":
                return "The tool", "error", f" returns an error for {lane.call_id}: {said}"
            return "The tool", "tool", f" returns for {lane.call_id}: {said}"
        case "TurnCompleted":
            return f"Turn {event.step}", "user", " is complete: the reply, and an observation for each of its calls."
        case "RunEnded":
            return f"Exit: {event.result.status}.", "exit", f" The run took {plural(event.result.steps, 'turn')}."
    return kind_of(event), "user", " is an event of your own."


def message_words(message: Json) -> tuple[str, str, str]:
    """Say what a message is that stands in the list."""
    calls = message.get("tool_calls", [])
    if message["role"] != "assistant":
        role = str(message["role"])
        who = {"system": "The system message", "user": "The task"}.get(role, role)
        return who, role, f" stands in the list: {view.cut(message['content'], CUT)}"
    if calls:
        return "The model", "assistant", f" asks for {plural(len(calls), 'call')}; the reply stands in the list, whole."
    return "The model", "assistant", f" answers: {view.cut(message['content'], CUT)}"


def event_row(number: int, event: Any) -> list[str]:
    """Return an event's row of the table."""
    kind, call_id, what = kind_of(event), "", ""
    if kind == "ToolStarted":
        call_id, what = event.call.id, call_text(event.call)
    elif kind == "ToolEnded":
        call_id, what = event.message["tool_call_id"], event.message["content"]
    elif kind == "MessageCompleted":
        what = view.message_text(event.message)
    elif kind == "TurnCompleted":
        what = f"turn {event.step}"
    elif kind == "RunEnded":
        what = event.result.status
    return [str(number), kind, call_id, view.cut(what, CUT)]


def run_words(events: Events) -> str:
    """Say in one sentence how many events there are, and when each call ran."""
    lanes = lanes_of(events)
    ran = [f"{lane.call_id} from {lane.started} to {lane.ended or 'the end'}" for lane in lanes if lane.started]
    idle = [lane.call_id for lane in lanes if not lane.started]
    said = f"{plural(len(events), 'event')}, {plural(len(lanes), 'call')}"
    said += f": {', '.join(ran)}" if ran else ""
    return f"{said}; not run: {', '.join(idle)}." if idle else f"{said}."


# --- Drawing -------------------------------------------------------------------------------------------------

WIDTH, LEFT, RIGHT = 584, 128, 572
TOP, ROW, FOOT = 8, 30, 44


def timeline_svg(events: Events, now: int) -> str:
    """Draw the events up to `now`, each in its column; what comes later has its place kept free."""
    slot = (RIGHT - LEFT) / max(len(events), 1)
    lanes, so_far = lanes_of(events), {lane.call_id: lane for lane in lanes_of(events[:now])}
    floor = TOP + ROW * (1 + len(lanes))

    def x(number: int) -> float:
        return LEFT + (number - .5) * slot

    parts = [rect(x(now) - slot / 2, 0, slot, floor, f'fill="{var("here-band")}"')] if events else []
    parts += turns(events[:now], lambda number: x(number) + slot / 2, floor)
    parts += numbers(len(events), x, floor)
    parts += [row_name(0, "messages", "ink"), *marks(events[:now], x)]
    for row, lane in enumerate(lanes, 1):
        known = so_far.get(lane.call_id)
        parts.append(row_name(row, f"{lane.call_id} {lane.text.partition('(')[0]}", "ink" if known else "muted"))
        parts += [bar(known, row, now, x)] if known and known.state != "waits" else []
    box = f'viewBox="0 0 {WIDTH} {floor + FOOT}" class="ll-room"'
    return f'<svg {box} role="img" aria-label="{escape(run_words(events[:now]))}">{"".join(parts)}</svg>'


def middle(row: int) -> float:
    """Return the height of the middle of a row."""
    return TOP + ROW * row + ROW / 2


def row_name(row: int, name: str, colour: str) -> str:
    """Draw the name of a row, and the hairline that its events lie on."""
    return (line(LEFT, middle(row), RIGHT, middle(row), "line", 1)
            + text(LEFT - 12, middle(row) + 4, view.cut(name, 18), "end", colour))


def marks(events: Events, x: Any) -> list[str]:
    """Draw the mark of its role for each message that is no observation, and the flag of the exit."""
    drawn = []
    for number, event in enumerate(events, 1):
        role = event.message["role"] if kind_of(event) == "MessageCompleted" else ""
        role = "exit" if kind_of(event) == "RunEnded" else role
        if role in SHAPES:
            place = f'x="{x(number) - 6:.1f}" y="{middle(0) - 6:.1f}" width="12" height="12" viewBox="0 0 12 12"'
            ground = rect(x(number) - 8, middle(0) - 1, 16, 2, f'fill="{var("bg")}"') if role == "system" else ""
            drawn.append(f'{ground}<svg {place} class="ll-{role}">{SHAPES[role].format(**PAINT)}</svg>')
    return drawn


def bar(lane: Lane, row: int, now: int, x: Any) -> str:
    """Draw a call: filled if it gave a result, hollow if it failed, dashed while it runs or if it did not run."""
    left = x(lane.started or lane.ended) - 5
    width = x(lane.ended or now) + 5 - left
    colour = var({"error": "error", "not run": "exit"}.get(lane.state, "tool"))
    paint = f'fill="{colour if lane.state == "result" else var("bg")}" stroke="{colour}" stroke-width="1.5"'
    dashes = ' stroke-dasharray="4 3"' if lane.state in ("runs", "not run") else ""
    return rect(left, middle(row) - 7, width, 14, paint + dashes)


def turns(events: Events, x: Any, floor: float) -> list[str]:
    """Draw a line where a turn is completed, with its number at the foot."""
    parts = []
    for number, event in enumerate(events, 1):
        if kind_of(event) == "TurnCompleted":
            parts.append(line(x(number), TOP, x(number), floor, "edge", 1))
            parts.append(text(x(number) - 2, floor + 34, f"turn {event.step}", "end"))
    return parts


def numbers(count: int, x: Any, floor: float) -> list[str]:
    """Draw the numbers of the events under their columns, not more than there is room for."""
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 1000) if count / step <= 20)
    shown = range(step, count + 1, step)
    return [text(LEFT - 12, floor + 16, "event", "end", "muted"),
            *(text(x(number), floor + 16, number, "middle", "muted") for number in shown)]


# --- HTML and widget -----------------------------------------------------------------------------------------


def timeline_html(events: Events, now: int) -> str:
    """Return the drawing, and the words for its bars."""
    keys = "filled: a result · hollow: an error · dashed: under way, or not run"
    return f'<div>{timeline_svg(events, now)}<p class="ll-note">{keys}</p></div>'


class EventTimeline(Bench):
    """Step through the events of a run; `number` is the number of the current one."""

    def __init__(self, runs: Mapping[str, Iterable[Any]]) -> None:
        self._runs = {name: list(events) for name, events in runs.items()}
        if not self._runs or not all(self._runs.values()):
            raise ValueError("event_timeline needs the events of a run, and a run has some")
        self.choice = view.choices("Run", list(runs), "choice", next(iter(runs)))
        self.buttons = {
            "First": view.button("First", "first", lambda _: self.go_to(1)),
            "Back": view.button("Back", "back", lambda _: self.go_to(self.number - 1)),
            "Next": view.button("Next", "next", lambda _: self.go_to(self.number + 1)),
            "Last": view.button("Last", "last", lambda _: self.go_to(len(self.events))),
        }
        self._position = view.area("", "position")
        self._say, self._lanes, self._list = view.area("", "say"), view.area("", "lanes"), view.area("", "list")
        columns = view.columns(view.column("ll-col-code", self._lanes), view.column("ll-col-list", self._list))
        super().__init__(self.choice, view.controls(*self.buttons.values(), self._position), self._say, columns,
                         hook="timeline")
        self.choice.layout.display = "" if len(runs) > 1 else "none"
        self.choice.observe(self._choose, names="value")
        self._choose()

    @guarded
    def _choose(self, change: Any = None) -> None:
        self.events = self._runs[self.choice.value]
        self._show(len(self.events))

    @guarded
    def go_to(self, number: int) -> None:
        """Show an event, by its number from 1 on."""
        self._show(number)

    def _show(self, number: int) -> None:
        self.number = min(max(number, 1), len(self.events))
        view.switch_ends(self.buttons, self.number == 1, self.number == len(self.events))
        self._position.value = f'<span class="ll-position">{self.number} / {len(self.events)}</span>'
        who, role, rest = event_words(self.events, self.number)
        self._say.value = view.sentence(f"{view.word(who, role)}{escape(rest)}")
        self._lanes.value = timeline_html(self.events, self.number)
        now, messages = self.events[self.number - 1], messages_of(self.events[: self.number])
        new = [len(messages) - 1] if messages and messages_of([now]) else []
        end = (now.result.status, "") if kind_of(now) == "RunEnded" else None
        self._list.value = view.message_list(messages, new, end=end, height=340)

    def twin(self) -> list[Block]:
        """Return what the run told: a sentence, and a row for each event."""
        several = [f"One of {len(self._runs)} runs: {', '.join(self._runs)}."] * (len(self._runs) > 1)
        rows = [event_row(number, event) for number, event in enumerate(self.events, 1)]
        return [*several, f"{self.choice.value}: {run_words(self.events)}", [HEAD, *rows]]


def event_timeline(*runs: Iterable[Any], **named: Iterable[Any]) -> EventTimeline:
    """Step through the events of one or more runs: what each told, which calls ran at once, and the list as it grew.

    Each run is given as its events, by name where there are several: event_timeline(at_once=…, in_order=…).
    """
    return EventTimeline({f"run {i}": events for i, events in enumerate(runs, 1)} | {
        name.replace("_", " "): events for name, events in named.items()})
