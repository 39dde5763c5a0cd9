"""What every widget is made of: pure functions that turn data into HTML, and Bench, the base of the widgets.

The functions take plain values and escape each of them; nothing else in looplab writes HTML from a value unescaped.
Names of roles are also names of colours and marks: system, user, assistant, tool, error, exit.
"""

from __future__ import annotations

import functools
import html
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from agentloop import describe

STYLE, KEYS = ((Path(__file__).parent / name).read_text(encoding="utf-8") for name in ("look.css", "keys.js"))

SHAPES = {
    "system": '<rect x="1.25" y="1.25" width="9.5" height="9.5" rx="1.5" {line} stroke-width="1.5"/>',
    "user": '<circle cx="6" cy="6" r="5.2" {fill}/>',
    "assistant": '<path d="M6 -.3 12.3 6 6 12.3 -.3 6Z" {fill}/>',
    "tool": '<rect x=".7" y=".7" width="10.6" height="10.6" rx="1.5" {fill}/>',
    "error": '<path d="M6 1 11.4 10.8H.6Z" {line} stroke-width="1.6" stroke-linejoin="round"/>',
    "exit": '<path d="M2.2 12V.6M2.2 1.2H11L8.6 4 11 6.8H2.2" {fill} stroke="currentColor" stroke-width="1.5"'
            ' stroke-linejoin="round"/>',
}
PAINT = {"fill": 'fill="currentColor"', "line": 'fill="none" stroke="currentColor"'}
AS_TYPED = "as typed"  # among examples to choose from: what the reader wrote
MAX_SQUARES = 12  # more steps than these are told in words only


# --- Words ---------------------------------------------------------------------------------------------------


def escape(value: Any) -> str:
    """Return `value` as text that HTML shows as it is, in content and in attributes."""
    text = str(value).encode("utf-8", "backslashreplace").decode("utf-8")  # half a surrogate pair cannot be sent
    return html.escape(text, quote=True)


def plural(count: int, noun: str) -> str:
    """Write a count and its noun: "1 message", "1,200 messages"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def cut(text: str, width: int) -> str:
    """Return `text` on one line, cut to `width` characters."""
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 2].rstrip() + " …"


def json_text(value: Any) -> str:
    """Write `value` as JSON on one line; where it is no JSON, as Python would, without addresses."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return re.sub(" at 0x[0-9a-fA-F]+", "", repr(value))


def call_text(call: Any) -> str:
    """Write a call as code, from a ToolCall or its record: get_weather(city="Pune")."""
    name, args = (call.get(n) if isinstance(call, dict) else getattr(call, n, None) for n in ("name", "args"))
    inside = ", ".join(f"{n}={json_text(v)}" for n, v in args.items()) if isinstance(args, dict) else json_text(args)
    return f"{name}({inside})"


def kind_of(message: Any) -> str:
    """Return what colours a message: its role, or "error" for an observation that is one."""
    is_error = message.get("role") == "tool" and content_text(message).startswith("ERROR: ")
    return "error" if is_error else str(message.get("role"))


def content_text(message: Any) -> str:
    """Return a message's content as text, whatever it is."""
    content = message.get("content", "")
    return content if isinstance(content, str) else json_text(content)


def calls_of(message: Any) -> list[Any]:
    """Return the calls in a message that can be read as such; a reader's loop may have put anything there."""
    calls = message.get("tool_calls")
    return [c for c in calls if isinstance(c, dict) or hasattr(c, "args")] if isinstance(calls, list) else []


def call_id(call: Any) -> str:
    """Return the id of a ToolCall or of its record."""
    return str(call.get("id", "") if isinstance(call, dict) else getattr(call, "id", ""))


def message_text(message: Any) -> str:
    """Write a message as one line of plain text: role, content, and each call with its id."""
    who, content = str(message.get("role")), content_text(message)
    parts = [f"{who} [{message['tool_call_id']}]:" if "tool_call_id" in message else f"{who}:"]
    calls = [f"→ {call_text(call)} [{call_id(call)}]" for call in calls_of(message)]
    return " ".join(parts + [content] * bool(content) + calls)


def meter_text(steps: int, max_steps: int | None, spent: int | None, budget: int | None,
               prompt: int | None = None, under_way: bool = False) -> str:
    """Say how far a run has come: "step 2 of 8; 177 of 4,000 tokens spent, next prompt about 207"."""
    said = _steps_text(steps, max_steps, under_way)
    return f"{said}; {_tokens_text(spent, budget, prompt)}" if spent is not None else said


def _steps_text(steps: int, max_steps: int | None, under_way: bool) -> str:
    if under_way:
        return f"step {steps + 1:,} of {max_steps:,}" if max_steps else f"step {steps + 1:,}"
    return f"{steps:,} of {max_steps:,} steps taken" if max_steps else f"{plural(steps, 'step')} taken"


def _tokens_text(spent: int, budget: int | None, prompt: int | None) -> str:
    said = f"{spent:,}{f' of {budget:,}' if budget else ''} tokens spent"
    return said if prompt is None else f"{said}, next prompt about {prompt:,}"


# --- HTML ----------------------------------------------------------------------------------------------------


def mark(role: str) -> str:
    """Return the 12 px mark of a role; where the role is none of ours, its place stays empty."""
    shape = SHAPES.get(role, "").format(**PAINT)
    colour = f" ll-{role}" if shape else ""
    return f'<svg class="ll-mark{colour}" width="12" height="12" viewBox="0 0 12 12" aria-hidden="true">{shape}</svg>'


def word(text: Any, role: str) -> str:
    """Return a word in bold and in a role's colour, as the sentences begin: word("The model", "assistant")."""
    return f'<b class="ll-{escape(role)}">{escape(text)}</b>'


def code(text: Any, role: str = "") -> str:
    """Return text in the code font, in a role's colour where one is given."""
    return f'<code class="ll-{escape(role)}">{escape(text)}</code>' if role else f"<code>{escape(text)}</code>"


def with_code(text: Any) -> str:
    """Return text with what stands between backticks in the code font."""
    return re.sub("`([^`]*)`", r"<code>\1</code>", escape(text))


def sentence(content: str) -> str:
    """Return the sentence of a view: HTML that says what has just happened, in a place two lines high."""
    return f'<p class="ll-say" role="status">{content}</p>'


def tell(field: Any, note: Any, said: str) -> None:
    """Say in the note under a field what it holds; a bad note marks the field as invalid for a screen reader too.

    The mark comes first, for keys.js looks at it after the note.
    """
    (field.add_class if "ll-bad" in said else field.remove_class)("ll-invalid")
    note.value = said


def note(text: Any, bad: bool = False) -> str:
    """Return a line under a field; a bad one begins with the mark of an error."""
    first, more = (f"{mark('error')} ", " ll-bad") if bad else ("", "")
    return f'<p class="ll-note{more}">{first}{escape(text)}</p>'


def message_row(message: Any, classes: str = "") -> str:
    """Return one message as a list item: mark, role and id, then content and calls."""
    calls = tuple((call_text(call), call_id(call)) for call in calls_of(message))
    observes = str(message.get("tool_call_id", ""))
    return _row(kind_of(message), observes, content_text(message), calls, classes)


@functools.lru_cache(maxsize=4096)
def _row(kind: str, observes: str, content: str, calls: tuple[tuple[str, str], ...], classes: str) -> str:
    lines = [code(f"→ {text}", "assistant") + f' <span class="ll-id">{escape(of)}</span>' for text, of in calls]
    if kind == "error":
        lines.insert(0, f'<code>{word("ERROR:", "error")}{escape(content.removeprefix("ERROR:"))}</code>')
    elif content or not lines:
        lines.insert(0, code(content) if kind == "tool" else escape(content))
    role = "tool" if kind == "error" else kind
    ident = f'<span class="ll-id">{escape(observes)}</span>' if observes else ""
    who = f'<span class="ll-who ll-{kind if kind in SHAPES else "muted"}">{mark(kind)}{escape(role)}{ident}</span>'
    return f'<li class="ll-m{classes}">{who}<div>{"".join(f"<div>{line}</div>" for line in lines)}</div></li>'


def message_list(messages: Sequence[Any], new: Collection[int] = (), seen: int = 0,
                 end: tuple[str, str] | None = None, label: str = "message list", height: int = 475,
                 most: int | None = None) -> str:
    """Return the message list, with a head before each reply's step, in an area that scrolls to its end.

    The messages at the indexes in `new` are lit. The first `seen` carry the model's rule: it is shown them.
    `end` is a status and what follows it, for the row of the exit, which is no message. `height` is in pixels.
    Of more than `most` messages, only the last are listed, and how many came before.
    """
    rows, step, first = [], 0, max(0, len(messages) - most) if most else 0
    if first:
        rows.append(f'<li class="ll-empty">{plural(first, "earlier message")}</li>')
    for i, message in enumerate(messages):
        shown = " ll-seen" if i < seen else ""
        is_reply = message.get("role") == "assistant"
        step += is_reply
        if i < first:
            continue
        if is_reply:
            rows.append(f'<li class="ll-stephead{shown}">step {step}</li>')
        rows.append(message_row(message, " ll-new" if i in new else shown))
    if not messages:
        rows.append('<li class="ll-empty">no message yet</li>')
    if end:
        status, more = end
        rows.append(f'<li class="ll-m ll-end"><span class="ll-who ll-exit">{mark("exit")}exit</span>'
                    f'<div class="ll-exit"><b>{escape(status)}</b> {escape(more)}</div></li>')
    region = f'class="ll-msgs" tabindex="0" role="region" aria-label="{escape(label)}" style="--ll-h:{height}px"'
    return f"<div {region}><ol>{''.join(rows)}</ol></div>"


def specs_html(specs: Sequence[Any]) -> str:
    """Return the specs of the tools, folded; in a widget of its own, so that it stays open once it is."""
    if not specs:
        return '<p class="ll-specs">No tool is shown to the model.</p>'
    shown = f"{plural(len(specs), 'tool')} {'is' if len(specs) == 1 else 'are'} shown to the model with every call"
    return f'<details class="ll-specs"><summary>{shown}</summary>{"".join(map(_spec, specs))}</details>'


def _spec(spec: Any) -> str:
    name, about = escape(spec.get("name")), escape(spec.get("description"))
    return f'<div class="ll-spec"><h4>{name}</h4><p>{about}</p><p>{code(json_text(spec.get("parameters")))}</p></div>'


def meter(steps: int, max_steps: int | None, spent: int | None, budget: int | None,
          prompt: int | None = None, scale: int = 0, under_way: bool = False) -> str:
    """Return the counters: a square for each step, and the budget as a bar with the next prompt behind what is spent.

    `steps` are the replies in the list; `under_way` says that one more has begun. `prompt` is the estimate that is
    not spent yet. `scale` is the length of the bar in tokens, the largest of the whole run, so that the limit stays
    in its place. What is None is not drawn.
    """
    left = f"<p>{_bold_numbers(_steps_text(steps, max_steps, under_way))}</p>{_squares(steps, max_steps, under_way)}"
    right = ""
    if spent is not None and budget is None:
        right = f'<p>{_key("spent", spent, " tokens")}</p>'
    elif spent is not None and budget is not None:
        about = "–" if prompt is None else f"about {prompt:,}"
        keys = _key("spent", spent) + _key("next", about, name="next prompt")
        keys += _key("limit", budget, " tokens", name="budget")
        said = escape(_tokens_text(spent, budget, prompt))
        bar = _bar(spent, budget, prompt or 0, max(scale, budget, spent + (prompt or 0)))
        right = f'<p>{keys}</p><div class="ll-bar" role="img" aria-label="{said}">{bar}</div>'
    return f'<div class="ll-meter"><div>{left}</div><div>{right}</div></div>'


def _bold_numbers(text: str) -> str:
    first = next((part for part in text.split() if part[0].isdigit()), "")
    return escape(text).replace(first, f"<b>{first}</b>", 1)


def _squares(steps: int, max_steps: int | None, under_way: bool) -> str:
    squares = ""
    if max_steps and max_steps <= MAX_SQUARES:
        states = ["ll-on"] * steps + ["ll-cur"] * under_way + [""] * max_steps
        squares = "".join(f'<i class="{state}"></i>' for state in states[:max_steps])
    return f'<div class="ll-pips" aria-hidden="true">{squares}</div>'


def _key(part: str, value: Any, unit: str = "", name: str = "") -> str:
    number = f"{value:,}" if isinstance(value, int) else escape(value)
    return f'<span class="ll-pair"><i class="ll-key ll-key-{part}"></i>{name or part} <b>{number}</b>{unit}</span>'


def _bar(spent: int, budget: int, prompt: int, scale: int) -> str:
    def part(name: str, start: int, stop: int, style: str = "") -> str:
        place = f"left:{100 * start / scale:.2f}%;width:{100 * (stop - start) / scale:.2f}%"
        return f'<span class="ll-b-{name}" style="{place}{style}"></span>' if stop > start else ""

    inside, after = min(spent + prompt, max(spent, budget)), spent + prompt
    ahead = part("next", spent, inside, ";border-right:0" if after > inside else "") + part("over", inside, after)
    limit = f'<span class="ll-b-limit" style="left:{100 * budget / scale:.2f}%"></span>'
    return part("track", 0, budget) + part("spent", 0, spent) + ahead + limit


def table(rows: Sequence[Sequence[Any]]) -> str:
    """Return a table whose first row is its head."""
    lines = "".join(f"<tr>{_cells(row, 'td')}</tr>" for row in rows[1:])
    return f"<table><thead><tr>{_cells(rows[0], 'th')}</tr></thead><tbody>{lines}</tbody></table>"


def _cells(row: Sequence[Any], tag: str) -> str:
    return "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row)


# --- The static twin -----------------------------------------------------------------------------------------

# What a widget shows at rest, in plain words: a block is a paragraph, a numbered list, a table (a list of rows, the
# first its head), or Code.
Block = str | list[str] | list[list[str]]


class Code(str):
    """A block of a twin that keeps its lines."""


def twin_html(blocks: Iterable[Block]) -> str:
    """Write the blocks of a twin as HTML without style or class, which GitHub and a printed page show."""
    return "\n".join(_block_html(block) for block in blocks if block)


def _block_html(block: Block) -> str:
    if isinstance(block, Code):
        return f"<pre>{escape(block)}</pre>"
    if isinstance(block, str):
        return f"<p>{with_code(block)}</p>"
    if isinstance(block[0], str):
        return f"<ol>{''.join(f'<li>{escape(item)}</li>' for item in block)}</ol>"
    return table(block)


def twin_text(blocks: Iterable[Block]) -> str:
    """Write the blocks of a twin as plain text, in the same words."""
    return "\n".join(_block_text(block) for block in blocks if block)


def _block_text(block: Block) -> str:
    if isinstance(block, str):
        return block
    if isinstance(block[0], str):
        return "\n".join(f"{i}. {item}" for i, item in enumerate(block, 1))
    widths = [max(len(str(cell)) for cell in column) for column in zip(*block)]
    return "\n".join("  ".join(str(cell).ljust(width) for cell, width in zip(row, widths)).rstrip() for row in block)


# --- Widgets -------------------------------------------------------------------------------------------------


def style() -> widgets.HTML:
    """Return the style sheet as a hidden widget; it is shown once in each bench."""
    return widgets.HTML(f"<style>{STYLE}</style>", layout={"display": "none"})


def keys() -> widgets.Output:
    """Return what keeps the keys pressed in a bench from the notebook, as a hidden widget; see keys.js."""
    shown = {"output_type": "display_data", "data": {"application/javascript": KEYS}, "metadata": {}}
    return widgets.Output(outputs=(shown,), layout={"display": "none"})


def area(content: str = "", hook: str = "", *classes: str) -> widgets.HTML:
    """Return a widget that shows HTML; `hook` is the class t-hook by which tests find it."""
    return _named(widgets.HTML(content), hook, classes)


def button(text: str, hook: str, on_click: Callable[[Any], Any], *classes: str, tooltip: str = "") -> widgets.Button:
    """Return a button; on_click is called with it."""
    made: widgets.Button = _named(widgets.Button(description=text, tooltip=tooltip), hook, classes)
    made.on_click(on_click)
    return made


def field(widget: Any, hook: str, *classes: str) -> Any:
    """Return an input with its label above it, found by the class t-hook; its description is the label."""
    return _named(widget, hook, ("ll-field", *classes))


def on_enter(text_field: Any, act: Callable[[], Any]) -> None:
    """Call `act` whenever Enter is pressed in a field of one line."""
    text_field.on_msg(lambda _, told, buffers: act() if told.get("event") == "submit" else None)


def switch(text: str, hook: str) -> widgets.Checkbox:
    """Return a checkbox, off, with its text beside it."""
    return _named(widgets.Checkbox(description=text, indent=False), hook, ("ll-switch",))


def choices(text: str, options: Any, hook: str, value: Any = None) -> widgets.RadioButtons:
    """Return a row of options of which one can be chosen, or none yet; they look like buttons.

    Tab reaches the row once, and the arrow keys choose; keys.js sees to both. Toggle buttons would look the same, but
    ipywidgets does not tell a screen reader which one is chosen.
    """
    made = widgets.RadioButtons(description=text, options=options, value=value)
    return _named(made, hook, ("ll-radios",))


def controls(*parts: Any) -> widgets.HBox:
    """Return a row of controls that wraps where it is narrow; a text among them becomes a label."""
    labelled = [area(f'<span class="ll-muted">{escape(p)}</span>') if isinstance(p, str) else p for p in parts]
    return _named(widgets.HBox(labelled), "", ("ll-ctl",))


def columns(*parts: Any) -> widgets.HBox:
    """Lay columns side by side; they stack by themselves where it is narrow."""
    return _named(widgets.HBox(list(parts)), "", ("ll-cols",))


def column(width: str, *parts: Any) -> widgets.VBox:
    """Return one column; `width` is its class in the style sheet: "ll-col-code", "ll-col-list", "ll-seat-a", …"""
    return _named(widgets.VBox(list(parts)), "", (width,))


def switch_off(states: Iterable[tuple[Any, bool]]) -> None:
    """Disable each control or enable it; the enabled come first, so that one can take the focus of a disabled one."""
    for control, is_off in sorted(states, key=lambda state: state[1]):
        control.disabled = is_off


def switch_ends(buttons: Mapping[str, Any], is_first: bool, is_last: bool) -> None:
    """Disable the buttons of a walk that lead nowhere: First and Back at its first place, the others at its last."""
    switch_off((button, is_first if name.lower() in ("first", "back") else is_last) for name, button in buttons.items())


def _named(widget: Any, hook: str, classes: Iterable[str]) -> Any:
    widget.tooltip = widget.tooltip or ""  # of None, ipywidgets makes the word null
    for name in [f"t-{hook}"] * bool(hook) + [c for c in classes if c]:
        widget.add_class(name)
    return widget


def guarded(callback: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method of a bench that a control calls: an exception is shown in the bench, as one sentence."""

    @functools.wraps(callback)
    def run(self: Bench, *args: Any, **kwargs: Any) -> Any:
        self.show_error("")
        try:
            return callback(self, *args, **kwargs)
        except Exception as error:
            self.show_error(f"That did not work: {describe(error)}")
            return None

    return run


class Bench(widgets.VBox):
    """A widget with the look of the series, a line for errors, and a static twin in the cell's stored output.

    A subclass builds its parts, passes them here, and says in `twin()` what it shows now.
    """

    def __init__(self, *parts: Any, hook: str = "") -> None:
        self.error_box = area("", "error")
        super().__init__([style(), keys(), self.error_box, *parts])
        _named(self, hook, ("ll", "ll-view"))
        self.show_error("")

    def show_error(self, text: str) -> None:
        """Show one sentence above the controls; an empty text takes it away."""
        self.error_box.value = f'<div role="alert">{note(text, bad=True)}</div>' if text else ""
        self.error_box.layout.display = "" if text else "none"

    def twin(self) -> list[Block]:
        """Return what the widget shows, as blocks of plain words."""
        raise NotImplementedError

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        blocks = self.twin()
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs)
        return bundle | {"text/html": twin_html(blocks), "text/plain": twin_text(blocks)}
