"""The bench of retries: one call of a tool that fails, and each attempt and each wait on a line of time."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ipywidgets as widgets

from agentloop import Json, ToolCall, ToolRegistry, call, describe, with_retries
from looplab import view
from looplab.limits import limit_row
from looplab.room import line, rect, text, var
from looplab.view import Bench, Block, escape, guarded, plural

QUICK = 0.5  # seconds that an attempt takes where nothing holds it up
BUSY = 5.0
WAITS: dict[str, tuple[float, ...]] = {"never": (), "after 0, 0 and 0 s": (0, 0, 0), "after 1, 2 and 4 s": (1, 2, 4)}
HEAD = ["attempt", "begins at", "it ends with", "then waits"]


# --- State ---------------------------------------------------------------------------------------------------


@dataclass
class Clock:
    """A time that passes only when somebody waits, so that nobody has to."""

    now: float = 0.0

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds

    def work(self, seconds: float, timeout: float) -> None:
        """Let an attempt take its time; raise TimeoutError, as with_timeout would, where that is too long."""
        self.wait(min(seconds, timeout))
        if seconds > timeout:
            raise TimeoutError(f"no result within {timeout:g} s; the call may still be running")


@dataclass
class Tool:
    """A tool that fails; it is asked at most once at a time, and counts how often it took effect."""

    clock: Clock
    timeout: float
    asked: int = 0
    effects: int = 0

    def busy(self) -> Json:
        """Refuse to answer until its busy time is over."""
        starts = self.clock.now
        self.clock.work(QUICK, self.timeout)
        if starts < BUSY:
            raise ConnectionError("busy; try again later")
        return {"city": "Pune", "celsius": 30}

    def down(self) -> Json:
        """Fail each time."""
        self.clock.work(QUICK, self.timeout)
        raise ConnectionError("connection refused")

    def hangs_once(self) -> Json:
        """Give no result at the first attempt."""
        self.clock.work(3600 if self.asked == 1 else QUICK, self.timeout)
        return {"city": "Pune", "celsius": 30}

    def slow(self) -> Json:
        """Take three seconds each time."""
        self.clock.work(3, self.timeout)
        return {"city": "Pune", "celsius": 30}

    def mistaken(self) -> Json:
        """Be asked for what is not there."""
        self.clock.work(QUICK, self.timeout)
        raise KeyError("Atlantis")

    def write(self) -> Json:
        """Pay at each attempt, and lose the answer of the first two on its way back."""
        self.effects += 1
        self.clock.work(3600 if self.asked < 3 else QUICK, self.timeout)
        return {"refund_id": f"R{self.effects}", "amount": 5000}


TOOLS: dict[str, tuple[ToolCall, Callable[[Tool], Json]]] = {
    "is busy for 5 s": (call("c1", "get_weather", city="Pune"), Tool.busy),
    "is down": (call("c1", "get_weather", city="Pune"), Tool.down),
    "hangs once": (call("c1", "get_weather", city="Pune"), Tool.hangs_once),
    "needs 3 s": (call("c1", "get_weather", city="Pune"), Tool.slow),
    "knows no such city": (call("c1", "get_weather", city="Atlantis"), Tool.mistaken),
    "pays, and its answer is lost": (call("c1", "issue_refund", order_id="A123"), Tool.write),
}


@dataclass(frozen=True)
class Attempt:
    """One attempt: when it began and ended, and the error that it ended with, or "" for a result."""

    start: float
    end: float
    error: str


@dataclass(frozen=True)
class Timeline:
    """A call with all its attempts, the waits between them, what the model reads, and how often the tool paid."""

    tool: str
    attempts: list[Attempt]
    observation: str
    effects: int

    @property
    def waits(self) -> list[float]:
        """The seconds between one attempt and the next."""
        return [after.start - before.end for before, after in zip(self.attempts, self.attempts[1:])]

    @property
    def seconds(self) -> float:
        """How long it all took."""
        return self.attempts[-1].end


@dataclass
class Noted:
    """A tool's function without arguments of its own; each attempt is noted."""

    tool: Tool
    act: Callable[[Tool], Json]
    attempts: list[Attempt] = field(default_factory=list)

    def __call__(self, **args: Any) -> Json:
        start, error = self.tool.clock.now, ""
        self.tool.asked += 1
        try:
            return self.act(self.tool)
        except Exception as problem:
            error = describe(problem)
            raise
        finally:
            self.attempts.append(Attempt(start, self.tool.clock.now, error))


def try_call(tool: str, waits: str, jitter: bool, timeout: float) -> Timeline:
    """Run one call of a tool through with_retries and a registry, in a time of its own."""
    asked, act = TOOLS[tool]
    clock, chance = Clock(), random.Random(4)
    noted = Noted(Tool(clock, timeout), act)
    patient = with_retries(noted, waits=WAITS[waits], sleep=clock.wait, jitter=chance.random if jitter else float)
    registry = ToolRegistry()
    properties = {name: {"type": "string"} for name in asked.args}
    registry.register(asked.name, "A tool that fails.", {"type": "object", "properties": properties}, patient)
    return Timeline(tool, noted.attempts, registry(asked), noted.tool.effects)


def timeline_words(made: Timeline) -> tuple[str, str, str]:
    """Return who speaks, the role that colours it, and the rest of the sentence."""
    tries, seconds = len(made.attempts), f"{made.seconds:.1f} s"
    paid = f" The customer was paid {made.effects} times." if made.effects > 1 else ""
    if not made.observation.startswith("ERROR: "):
        at = "at once" if tries == 1 else f"at attempt {tries}"
        return "The tool", "tool", f" gives a result {at}, after {seconds}.{paid}"
    if made.effects:
        paid = paid or " The customer was paid once, and nobody knows."
    given_up = f"gives up after {plural(tries, 'attempt')} and {seconds}"
    if "KeyError" in made.observation:
        given_up = "does not try again: the same question would get the same answer"
    return "The harness", "error", f" {given_up}. The model reads the error.{paid}"


def timeline_table(made: Timeline) -> list[list[str]]:
    """Write the attempts as a table of plain text."""
    waits = [f"{wait:.1f} s" for wait in made.waits] + ["–"]
    return [HEAD, *([str(n), f"{a.start:.1f} s", a.error or "a result", wait]
                    for n, (a, wait) in enumerate(zip(made.attempts, waits), 1))]


# --- Drawing -------------------------------------------------------------------------------------------------

WIDTH, HEIGHT = 584, 218
LEFT, RIGHT, TOP, ROW = 76, 566, 22, 42
FLOOR = TOP + 4 * ROW
MOST = max(len(waits) for waits in WAITS.values()) + 1


def timeline_svg(made: Timeline) -> str:
    """Draw the attempts, one below the other, on a line of time; the waits between them are dashed."""
    scale = max(10.0, made.seconds)

    def x(seconds: float) -> float:
        return LEFT + (RIGHT - LEFT) * seconds / scale

    parts = busy_time(made, x) + ticks(scale, x)
    waits = [0.0, *made.waits]
    for n in range(1, MOST + 1):
        y = TOP + (n - 1) * ROW + ROW / 2
        parts.append(text(LEFT - 12, y + 4, f"attempt {n}", "end", "ink" if n <= len(made.attempts) else "muted"))
        if n <= len(made.attempts):
            attempt = made.attempts[n - 1]
            parts += waiting(x(attempt.start - waits[n - 1]), x(attempt.start), y, waits[n - 1]) if n > 1 else []
            parts.append(bar(x(attempt.start), max(3, x(attempt.end) - x(attempt.start)), y, attempt))
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" class="ll-room"'
    return f'<svg {box} role="img" aria-label="{escape(drawing_words(made))}">{"".join(parts)}</svg>'


def drawing_words(made: Timeline) -> str:
    """Say what the drawing shows to who does not see it."""
    tries = [f"{a.start:.1f} to {a.end:.1f} s, {'failed' if a.error else 'a result'}" for a in made.attempts]
    return f"{plural(len(tries), 'attempt')} on a line of time: {'; '.join(tries)}."


def busy_time(made: Timeline, x: Callable[[float], float]) -> list[str]:
    """Shade the time in which the tool answers nobody."""
    end = {"is busy for 5 s": x(BUSY), "is down": RIGHT}.get(made.tool, LEFT)
    shade = rect(LEFT, TOP, end - LEFT, FLOOR - TOP, f'fill="{var("quiet")}"')
    said = "busy" if made.tool.startswith("is busy") else "down"
    return [shade, text(end - 6, TOP - 6, said, "end", "muted")] if end > LEFT else []


def ticks(scale: float, x: Callable[[float], float]) -> list[str]:
    """Draw the seconds under the attempts, with a hairline each."""
    step = next(seconds for seconds in (1, 2, 5, 10) if scale / seconds <= 10)
    marks = range(0, int(scale) + 1, step)
    lines = [line(x(s), TOP, x(s), FLOOR, "line", 1) for s in marks]
    return lines + [text(x(s), FLOOR + 18, f"{s} s", "middle", "muted") for s in marks]


def bar(left: float, width: float, y: float, attempt: Attempt) -> str:
    """Draw an attempt: filled if it gave a result, hollow if it failed."""
    colour = var("error" if attempt.error else "tool")
    paint = f'fill="{var("bg") if attempt.error else colour}" stroke="{colour}" stroke-width="1.5"'
    return rect(left, y - 8, width, 16, paint)


def waiting(left: float, right: float, y: float, seconds: float) -> list[str]:
    """Draw a wait with its length."""
    dashed = f'<path d="M{left:.1f} {y:.1f}L{right:.1f} {y:.1f}" stroke="{var("next")}" stroke-width="1.5"'
    said = text((left + right) / 2, y - 8, f"{seconds:.1f} s", "middle", halo=True)
    return [f'{dashed} stroke-dasharray="4 3" fill="none"/>', said] if seconds else []


# --- HTML and widget -----------------------------------------------------------------------------------------


def timeline_html(made: Timeline) -> str:
    """Return the sentence, the line of time, the table and the observation of a call."""
    who, role, rest = timeline_words(made)
    asked, _ = TOOLS[made.tool]
    message = view.message_row({"role": "tool", "tool_call_id": asked.id, "content": made.observation})
    table = f'<div class="ll-tab ll-words">{view.table(timeline_table(made))}</div>'
    plot = f'<div class="ll-plot"><p class="ll-eyebrow">{escape(view.call_text(asked))}</p>{timeline_svg(made)}</div>'
    read = f'<p class="ll-head">The observation, exactly</p><ol class="ll-observation">{message}</ol>'
    said = view.sentence(f"{view.word(who, role)}{escape(rest)}")
    return f'{said}<div class="ll-cols">{plot}{table}</div>{read}'


class RetryTimeline(Bench):
    """Choose how a tool fails and how it is tried again; `made` is the call that was run."""

    def __init__(self, tool: str, waits: str, jitter: bool, timeout: int) -> None:
        self.tool = view.choices("A tool that", list(TOOLS), "tool", tool)
        self.waits = view.choices("It is tried again", list(WAITS), "waits", waits)
        self.jitter = view.switch("jitter: up to a second more at each wait", "jitter")
        self.jitter.value = jitter
        self.timeout, row = limit_row("timeout", timeout, 1, 6, 1)
        self.timeout.description = "timeout in s"
        self._view = view.area("", "view")
        limits = widgets.HBox([row])
        limits.add_class("ll-limits")
        super().__init__(self.tool, self.waits, limits, self.jitter, self._view, hook="retries")
        for control in (self.tool, self.waits, self.jitter, self.timeout):
            control.observe(self._show, names="value")
        self._show()

    @guarded
    def _show(self, change: Any = None) -> None:
        self.made = try_call(self.tool.value, self.waits.value, self.jitter.value, self.timeout.value)
        self._view.value = timeline_html(self.made)

    def twin(self) -> list[Block]:
        """Return the choices, the attempts and the observation."""
        who, _, rest = timeline_words(self.made)
        jitter = "with jitter" if self.jitter.value else "without jitter"
        chosen = f"A tool that {self.made.tool}; it is tried again {self.waits.value}, {jitter}; "
        return [f"{chosen}the timeout is {self.timeout.value} s.", f"{who}{rest}", timeline_table(self.made),
                f"The observation: {self.made.observation}"]


def retry_timeline(tool: str = "is busy for 5 s", waits: str = "after 1, 2 and 4 s", jitter: bool = True,
                   timeout: int = 2) -> RetryTimeline:
    """Run one call of a tool that fails, and show each attempt and each wait; the time is simulated, the rest is not.

    Raises ValueError for a tool or waits that are not among the choices.
    """
    if tool not in TOOLS or waits not in WAITS:
        raise ValueError(f"tool must be one of {list(TOOLS)}, and waits one of {list(WAITS)}")
    return RetryTimeline(tool, waits, jitter, timeout)
