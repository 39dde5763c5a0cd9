"""Where a reader writes a model's reply: text, and calls one by one with their arguments as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import ipywidgets as widgets

from agentloop import Json, ModelReply, ToolCall
from looplab.typed import NotJson, read_json, trouble
from looplab.view import (
    area, button, call_text, choices, code, controls, escape, field, guarded, json_text, mark, on_enter, plural, tell,
    word,
)

SAMPLES = {"string": "…", "integer": 0, "number": 0, "boolean": True}
STOP_REASONS = {"none": "", "truncated": "truncated", "refused": "refused", "empty_reply": "empty_reply"}


# --- State ---------------------------------------------------------------------------------------------------


class Unfinished(ValueError):
    """A call of which one field is still empty; its sentence says what is to come."""


@dataclass(frozen=True)
class Draft:
    """A reply that is being written; the call in the fields is part of it as soon as it can be read."""

    text: str = ""
    calls: tuple[tuple[str, Any], ...] = ()
    tool: str = ""
    args: str = ""
    stop_reason: str = ""

    def begun_call(self) -> tuple[str, Any] | None:
        """Return the call in the fields, None if they are empty; raise NotJson or Unfinished if it is none yet."""
        if not self.tool and not self.args.strip():
            return None
        if not self.args.strip():
            raise Unfinished("No arguments yet: the field shows what they can look like.")
        args = read_json(self.args)
        if not self.tool:
            raise Unfinished("No tool yet: choose one, or type any name.")
        return self.tool, args

    def reply(self, first_id: int = 1) -> ModelReply:
        """Return the draft as a reply with its calls numbered from `first_id`; raise ValueError if it cannot be yet."""
        begun = self.begun_call()
        calls = [*self.calls, begun] if begun else self.calls
        numbered = [ToolCall(f"c{first_id + i}", name, args) for i, (name, args) in enumerate(calls)]
        return ModelReply(self.text, numbered, stop_reason=self.stop_reason)

    @property
    def is_ready(self) -> bool:
        """Whether it can be sent: something is written, and nothing is half written."""
        try:
            return bool(self.begun_call()) or self != Draft()
        except ValueError:
            return False


def draft_of(reply: ModelReply) -> Draft:
    """Return a reply as the draft that it was."""
    return Draft(reply.content, tuple((c.name, c.args) for c in reply.tool_calls), stop_reason=reply.stop_reason)


def count_calls(replies: Iterable[ModelReply]) -> int:
    """Return how many calls these replies ask for."""
    return sum(len(reply.tool_calls) for reply in replies)


# --- HTML ----------------------------------------------------------------------------------------------------


def forecast(draft: Draft) -> str:
    """Say in one sentence of HTML what sending a draft will do."""
    if draft == Draft():
        return "Nothing is written yet: a reply is a text, a call, or both."
    if not draft.is_ready:
        return "A call is not finished: finish it, or empty its fields."
    reply = draft.reply()
    if reply.stop_reason:
        return f"This reply is none: its calls do not run, and the run ends: {word(reply.stop_reason, 'exit')}."
    if calls := len(reply.tool_calls):
        return f"This reply asks for <b>{plural(calls, 'call')}</b>, so the run goes on, within its limits."
    return f"This reply asks for <b>no call</b>, so it is the answer and ends the run: {word('done', 'exit')}."


def fields_note(draft: Draft) -> str:
    """Return the line under the fields of a call: how it reads, what is still to come, or what is wrong with it."""
    try:
        begun = draft.begun_call()
        said = f"Reads as {code(call_text({'name': begun[0], 'args': begun[1]}))}." if begun else "No call begun."
    except NotJson as problem:
        return trouble("Not JSON yet:", str(problem))
    except Unfinished as problem:
        said = escape(problem)
    return f'<p class="ll-note">{said}</p>'


def sample_args(spec: Json | None) -> str:
    """Return arguments of the right shape for a tool, to show in an empty field."""
    properties = spec["parameters"].get("properties", {}) if spec else {}
    return json_text({name: SAMPLES[rule["type"]] for name, rule in properties.items()})


# --- Widgets -------------------------------------------------------------------------------------------------


class ReplyForm(widgets.VBox):
    """The fields of a reply. `draft` is what they hold; `on_change` is called when that changes."""

    def __init__(self, specs: Sequence[Json], stop_reasons: bool = False) -> None:
        self._specs = {spec["name"]: spec for spec in specs}
        self.on_change: Callable[[], Any] = lambda: None
        self._calls: list[tuple[str, Any]] = []
        self._filling = False
        self.text = field(widgets.Textarea(description="Text", rows=2), "text", "ll-grows")
        self.tool = tool_field(self._specs)
        self.args = field(widgets.Text(description="Arguments, as JSON"), "args", "ll-json")
        self.stop = choices("Stop reason", STOP_REASONS.items(), "stop-reason", "")
        self.add = button("Add call", "add-call", self._add)
        on_enter(self.args, lambda: self._add(None))
        self._note, self._forecast = area("", "note", "ll-live"), area("", "forecast", "ll-live")
        self._rows = widgets.VBox()
        self._rows.add_class("ll-calls")
        self._rows.add_class("ll-live")
        fields = widgets.HBox([self.tool, self.args, controls(self.add)])
        fields.add_class("ll-pairrow")
        calls_label = area('<p class="ll-label">Calls in this reply</p>')
        self._inputs = [self.text, self.tool, self.args, self.stop]
        for widget in self._inputs:
            widget.observe(self._changed, names="value")
        ending = [self.stop] if stop_reasons else []
        super().__init__([self.text, fields, self._note, calls_label, self._rows, *ending, self._forecast])
        self._show_calls()
        self._changed()

    @property
    def draft(self) -> Draft:
        """What the fields hold now; a text of blanks alone is none."""
        text = self.text.value if self.text.value.strip() else ""
        tool, stop = self.tool.value.strip(), self.stop.value
        return Draft(text, tuple(self._calls), tool, self.args.value, stop)

    def fill(self, draft: Draft) -> None:
        """Write a draft into the fields."""
        self._calls = list(draft.calls)
        self._filling = True  # the fields change one after the other
        self.text.value, self.tool.value, self.args.value = draft.text, draft.tool, draft.args
        self.stop.value = draft.stop_reason
        self._filling = False
        self._show_calls()
        self._changed()

    def enable(self, can_reply: bool) -> None:
        """Let the reader write, or not."""
        for widget in self._inputs:
            widget.disabled = not can_reply
        self._changed()

    def show_error(self, text: str) -> None:
        """Show a sentence where the form speaks of its fields."""
        if text:
            self._note.value = f'<p class="ll-note ll-bad">{mark("error")} {escape(text)}</p>'

    @guarded
    def _changed(self, change: Any = None) -> None:
        if self._filling:
            return
        draft, closed = self.draft, self.text.disabled
        self.args.placeholder = sample_args(self._specs.get(draft.tool))
        tell(self.args, self._note, fields_note(draft))
        self._forecast.value = f'<p class="ll-preview">{"No reply is due." if closed else forecast(draft)}</p>'
        self.add.disabled = closed or not draft.is_ready or not draft.begun_call()
        self.on_change()

    @guarded
    def _add(self, button: Any) -> None:
        if not self.add.disabled and (begun := self.draft.begun_call()):
            self.tool.focus()  # first, so that a second Enter meets no other button
            self.fill(replace(self.draft, calls=(*self._calls, begun), tool="", args=""))

    def _show_calls(self) -> None:
        self._rows.children = [self._row(i, *made) for i, made in enumerate(self._calls)] or [
            area('<p class="ll-note">none yet</p>')]

    def _row(self, i: int, name: str, args: Any) -> widgets.HBox:
        text = call_text({"name": name, "args": args})
        shown = code(f"→ {text}", "assistant")
        return removable_row(self._rows, shown, f"remove-{i + 1}", f"Remove {text}", lambda: self._remove(i))

    @guarded
    def _remove(self, i: int) -> None:
        self.tool.focus()
        del self._calls[i]
        self._show_calls()
        self._changed()


def removable_row(rows: widgets.VBox, content: str, hook: str, tooltip: str,
                  remove: Callable[[], Any]) -> widgets.HBox:
    """Return a line of HTML for `rows`, with a button that takes it away."""

    def press(_: Any) -> None:
        if row in rows.children:  # the second click of a double click comes from a row that is gone
            remove()

    row = widgets.HBox([area(content), controls(button("Remove", hook, press, tooltip=tooltip))])
    row.add_class("ll-callrow")
    return row


def tool_field(names: Iterable[str]) -> widgets.Combobox:
    """Return a field for the name of a tool, which offers those there are and takes any other."""
    return field(widgets.Combobox(description="Tool", options=list(names), placeholder="any name"), "tool")


class ScriptBox(widgets.VBox):
    """A button that shows and hides code in a field, from which it can be copied."""

    def __init__(self, text: str = "Show the script") -> None:
        self._text = text
        self.button = button(text, "script", self._toggle)
        copied = widgets.Textarea(description="The script, to copy into a cell")
        self.code = field(copied, "script-code", "ll-json", "ll-script")
        super().__init__([self.code], layout={"display": "none"})

    def write(self, text: str) -> None:
        """Put code into the field."""
        self.code.value, self.code.rows = text.rstrip(), text.count("\n")

    def _toggle(self, _: Any) -> None:
        shown = self.layout.display == "none"
        self.layout.display = "" if shown else "none"
        self.button.description = "Hide the script" if shown else self._text
        if shown:
            self.code.focus()
