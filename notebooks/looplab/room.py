"""The plot of a run as a staircase in a room: token_budget is the ceiling, max_steps the wall, as SVG text."""

from __future__ import annotations

from collections.abc import Sequence

from looplab.view import SHAPES, PAINT, escape, plural

WIDTH, HEIGHT = 584, 300
LEFT, RIGHT, TOP, FLOOR = 52, 478, 49, 274
GAP = 3  # on both sides of a bar
WORDS_WIDE, WORDS_HIGH = 64, 40  # what two lines of words need


class Room:
    """The geometry of a room, and its drawing."""

    def __init__(self, max_steps: int, token_budget: int, highest: int) -> None:
        self.slot = (RIGHT - LEFT) / max_steps
        self.scale = max(token_budget, highest)
        self.max_steps, self.token_budget = max_steps, token_budget

    def x(self, step: int) -> float:
        """Where the bar of a step begins."""
        return LEFT + (step - 1) * self.slot + GAP

    def y(self, tokens: float) -> float:
        """Where a number of tokens lies."""
        return FLOOR - (FLOOR - TOP) * tokens / self.scale

    def above(self, tokens: int) -> float:
        """Where a number stands over its bar, clear of the ceiling."""
        place, ceiling = self.y(tokens) - 6, self.y(self.token_budget)
        return ceiling - 5 if place - 10 < ceiling < place + 4 else place

    def bar(self, step: int, low: int, high: int, colour: str) -> str:
        """Draw a part of a step's bar."""
        top, bottom = self.y(high), self.y(low)
        return rect(self.x(step), top, self.slot - 2 * GAP, bottom - top, f'fill="{var(colour)}"')

    def middle(self, step: int) -> float:
        """Where the middle of a step's bar is."""
        return self.x(step) + self.slot / 2 - GAP


def room_svg(steps: Sequence[tuple[int, int]], refused: int, max_steps: int, token_budget: int, status: str) -> str:
    """Draw a run from the prompt and reply of each step; `refused` is the prompt that was not sent, or 0."""
    sums = [sum(map(sum, steps[: n + 1])) for n in range(len(steps))]
    spent = sums[-1] if sums else 0
    room = Room(max_steps, token_budget, spent + refused)
    parts = [ground(room), *ticks(room)]
    for n, ((prompt, reply), total) in enumerate(zip(steps, sums), 1):
        before = total - prompt - reply
        parts += [room.bar(n, 0, before, "track"), room.bar(n, before, before + prompt, "spent"),
                  room.bar(n, before + prompt, total, "assistant")]
    parts += walls(room, status, 2 * len(steps) > max_steps)
    if refused:
        parts += dashed_box(room, len(steps) + 1, spent, spent + refused)
    parts += [text(room.middle(n), room.above(total), f"{total:,}", "middle", halo=True)
              for n, total in enumerate(sums, 1)]
    parts += [text(room.middle(n), FLOOR + 18, n, "middle", "ink" if n <= len(steps) else "muted")
              for n in range(1, max_steps + 1)]
    parts += flag(room, status, len(steps), spent)
    return frame("".join(parts), sums, max_steps, token_budget, status)


def frame(content: str, sums: Sequence[int], max_steps: int, token_budget: int, status: str) -> str:
    """Return the SVG, with a sentence for who does not see it."""
    numbers = ", ".join(f"{total:,}" for total in sums)
    label = (f"Tokens spent after each of {plural(len(sums), 'step')}: {numbers or 'none'}. "
             f"Budget {token_budget:,}, max_steps {max_steps}. Exit: {status}.")
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" class="ll-room"'
    return f'<svg {box} role="img" aria-label="{escape(label)}">{content}</svg>'


def ground(room: Room) -> str:
    """Draw the floor of the room."""
    ceiling = room.y(room.token_budget)
    return rect(LEFT, ceiling, RIGHT - LEFT, FLOOR - ceiling, f'fill="{var("quiet")}"')


def ticks(room: Room) -> list[str]:
    """Draw the numbers at the left, with a hairline each, and the budget's in bold."""
    step = tick_step(room.token_budget)
    parts = [text(LEFT - 8, FLOOR + 4, 0, "end", "muted"), text(LEFT - 8, FLOOR + 18, "step", "end", "muted")]
    for tokens in range(step, room.token_budget, step):
        if room.y(tokens) - room.y(room.token_budget) > 14:
            y = room.y(tokens)
            parts += [text(LEFT - 8, y + 4, f"{tokens:,}", "end", "muted"), line(LEFT, y, RIGHT, y, "line", 1)]
    return [*parts, text(LEFT - 8, room.y(room.token_budget) + 4, f"{room.token_budget:,}", "end", "exit", bold=True)]


def tick_step(budget: int) -> int:
    """Return a round distance that divides a budget into at most five parts."""
    return next(step for size in (10, 100, 1000, 10_000) for step in (size, 2 * size, size * 5 // 2, 5 * size)
                if budget <= 5 * step)


def walls(room: Room, status: str, run_is_long: bool) -> list[str]:
    """Draw the two limits with their names; the one that ended the run is thick, and the names keep out of its way."""
    ceiling = room.y(room.token_budget)
    thick = {"token_budget": (2.5, 1.25), "step_limit": (1.25, 2.5)}.get(status, (1.25, 1.25))
    name = (LEFT, "start") if run_is_long else (RIGHT, "end")
    return [line(LEFT, ceiling, RIGHT, ceiling, "exit", thick[0]), line(RIGHT, ceiling, RIGHT, FLOOR, "exit", thick[1]),
            text(name[0], ceiling - 8, "token_budget", name[1], "exit"),
            text(RIGHT + 8, FLOOR - 4, "max_steps", "start", "exit")]


def dashed_box(room: Room, step: int, low: int, high: int) -> list[str]:
    """Draw the prompt that was not sent, dashed, through the ceiling."""
    top, bottom, width = room.y(high), room.y(low), room.slot - 2 * GAP
    ceiling = room.y(room.token_budget)
    outline = f'fill="{var("bg")}" stroke="{var("exit")}" stroke-width="1.5" stroke-dasharray="4 3"'
    words = [f"about {high - low:,}", "not sent"]
    if width >= WORDS_WIDE and bottom - ceiling >= WORDS_HIGH:
        x, y, anchor = room.middle(step), ceiling + 21, "middle"
    elif width >= WORDS_WIDE and ceiling - top >= WORDS_HIGH:
        x, y, anchor = room.middle(step), ceiling - 22, "middle"
    else:
        x, y, anchor = room.x(step) + width + 6, ceiling + 16, "start"
    said = [text(x, y + 15 * i, part, anchor) for i, part in enumerate(words)]
    return [room.bar(step, 0, low, "track"), rect(room.x(step) + .75, top, width - 1.5, bottom - top, outline),
            line(LEFT, ceiling, RIGHT, ceiling, "exit", 2.5), *said]


def flag(room: Room, status: str, steps: int, spent: int) -> list[str]:
    """Draw the exit's flag where the run ended: at the wall, above the prompt not sent, or on the last step."""
    if status == "step_limit":
        x, y = RIGHT + 8, min(room.y(spent), FLOOR - 38)
    elif status == "token_budget":
        x, y = room.x(steps + 1) - 2.4, TOP - 19
    else:
        x, y = room.middle(steps) - 20, room.above(spent) - 26
    icon = f'<svg x="{x:.1f}" y="{y:.1f}" width="13" height="13" viewBox="0 0 12 12" class="ll-exit">'
    return [f'{icon}{SHAPES["exit"].format(**PAINT)}</svg>', text(x + 18, y + 10.5, status, "start", "exit", bold=True)]


def var(colour: str) -> str:
    """Name a colour of the style sheet."""
    return f"var(--ll-{colour})"


def rect(x: float, y: float, width: float, height: float, paint: str) -> str:
    """Draw a rectangle."""
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" {paint}/>'


def line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float) -> str:
    """Draw a line."""
    return f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="{var(colour)}" stroke-width="{width}" fill="none"/>'


def text(x: float, y: float, content: object, anchor: str, colour: str = "ink",
         bold: bool = False, halo: bool = False) -> str:
    """Draw text; with a halo where it may lie on a line."""
    style = f"fill:{var(colour)}" + ";font-weight:600" * bold
    style += f";paint-order:stroke;stroke:{var('quiet')};stroke-width:3px" * halo
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" style="{style}">{escape(content)}</text>'
