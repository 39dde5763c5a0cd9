"""Compose a scripted model reply by reply, run it in the weather world, and take its code away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ipywidgets as widgets

from agentloop import (
    WEATHER_TASK, AgentResult, Json, ModelReply, ScriptedModel, run_agent, weather_script, weather_world,
)
from looplab import view
from looplab.limits import Limits
from looplab.reply_form import Draft, ReplyForm, ScriptBox, removable_row
from looplab.scripts import write_script
from looplab.spend import exit_reason
from looplab.view import Bench, Block, call_text, guarded, plural

RAN_OUT = "script_ran_out"


# --- State ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Script:
    """Replies, and the limits of the run that they are for."""

    replies: tuple[ModelReply, ...]
    max_steps: int = 8
    token_budget: int = 4000


@dataclass(frozen=True)
class Performance:
    """What came of a script; the status of the result is "script_ran_out" where the loop asked for one reply more."""

    script: Script
    result: AgentResult
    specs: list[Json]

    @property
    def unused(self) -> int:
        """How many replies the run did not ask for."""
        return len(self.script.replies) - self.result.steps


def perform(script: Script) -> Performance:
    """Run a script on the weather task, for real."""
    registry, _ = weather_world()
    limits = {"max_steps": script.max_steps, "token_budget": script.token_budget}
    try:
        result = run_agent(WEATHER_TASK, ScriptedModel(script.replies), registry, **limits)
    except AssertionError as error:
        so_far = vars(error)["result"]
        result = AgentResult(RAN_OUT, None, so_far.steps, so_far.tokens, so_far.messages)
    return Performance(script, result, registry.specs())


def script_code(performance: Performance) -> str:
    """Write a script as code whose run gives the same messages; one that ran out ends at a lower max_steps."""
    script, status = performance.script, performance.result.status
    if not script.replies:
        return "# no reply yet"
    ran_out = status == RAN_OUT
    max_steps, status = (len(script.replies), "step_limit") if ran_out else (script.max_steps, status)
    return write_script(script.replies, WEATHER_TASK, max_steps, script.token_budget, status)


def performance_words(performance: Performance) -> tuple[str, str, str]:
    """Return the sentence of a run as its first words, their colour, and the rest."""
    script, result = performance.script, performance.result
    if result.status == RAN_OUT:
        has = {0: "no reply yet", 1: "1 reply"}.get(len(script.replies), f"{len(script.replies)} replies")
        return "The script ran out:", "error", f"it has {has}, and the loop asks for one more. Add a reply."
    reason = exit_reason(result, performance.specs, script.max_steps, script.token_budget)
    unused = f" Replies that were not asked for: {performance.unused}." if performance.unused else ""
    return f"Exit: {result.status}.", "exit", reason + unused


def reply_parts(reply: ModelReply) -> tuple[str, list[str]]:
    """Return what a reply says, and each call it asks for, as text."""
    said = " ".join(filter(None, (reply.content, reply.stop_reason and f"({reply.stop_reason})")))
    calls = [f"→ {call_text(call)}" for call in reply.tool_calls]
    return said, calls


def reply_text(reply: ModelReply) -> str:
    """Write a reply on one line."""
    said, calls = reply_parts(reply)
    return " ".join([said] * bool(said) + calls)


# --- HTML and widget -----------------------------------------------------------------------------------------


def performance_html(performance: Performance) -> tuple[str, str]:
    """Return the sentence of a run, and its messages."""
    words, role, rest = performance_words(performance)
    result = performance.result
    end = None if result.status == RAN_OUT else (result.status, "")
    messages = view.message_list(result.messages, end=end)
    head = f'<p class="ll-head">The run: {plural(len(result.messages), "message")}</p>'
    say = view.sentence(f"{view.mark(role)}{view.word(words, role)} {view.escape(rest)}")
    return say, f'{head}<div class="ll-given">{messages}</div>'


def reply_html(reply: ModelReply) -> str:
    """Return a reply on one line: its text, and its calls in the model's colour."""
    said, calls = reply_parts(reply)
    return " ".join([view.escape(said)] * bool(said) + [view.code(call, "assistant") for call in calls])


class ScriptBuilder(Bench):
    """Replies, a form for the next one, and the run they make; `script` is the state, `code` what it is as code."""

    def __init__(self, replies: Sequence[ModelReply]) -> None:
        self._replies = tuple(replies)
        self._removed: list[tuple[int, tuple[ModelReply, ...]]] = []  # with the place of the first
        self._say, self._messages = view.area("", "say"), view.area("", "messages")
        self.limits = Limits(self._run)
        self.form = ReplyForm(weather_world()[0].specs(), stop_reasons=True)
        self.add_button = view.button("Add reply", "add-reply", self.add, "ll-main")
        self.clear_button = view.button("Remove all", "clear", self.clear)
        self.back_button = view.button("Put back", "put-back", self.put_back)
        self.script_box = ScriptBox()
        self._rows = widgets.VBox()
        self._rows.add_class("ll-replies")
        buttons = view.controls(self.add_button, self.clear_button, self.script_box.button, self.back_button)
        title, next_title = (view.area(f'<p class="ll-head ll-flush">{view.mark("assistant")} {text}</p>')
                             for text in ("The script", "The next reply"))
        left = view.column("ll-seat-a", self._messages)
        right = view.column("ll-seat-b", title, self._rows, next_title, self.form, buttons)
        super().__init__(self.limits, self._say, view.columns(left, right), self.script_box, hook="builder")
        self.form.on_change = self._allow_add
        self._allow_add()
        self._run()

    @property
    def script(self) -> Script:
        """The replies and the limits."""
        return Script(self._replies, self.limits.max_steps, self.limits.token_budget)

    @property
    def code(self) -> str:
        """The script as code that runs and gives the same messages."""
        return script_code(self.performance)

    @guarded
    def add(self, _: Any = None) -> None:
        """Append the reply in the form to the script, and run it."""
        if self.form.draft == Draft():  # the second click of a double click
            return
        known = [*self._replies, *(reply for _, replies in self._removed for reply in replies)]
        first_id = 1 + max((int(c.id[1:]) for reply in known for c in reply.tool_calls), default=0)
        self._replies = (*self._replies, self.form.draft.reply(first_id))
        self.form.text.focus()  # first, so that a second Enter meets no other button
        self.form.fill(Draft())
        self._run()

    @guarded
    def remove(self, i: int) -> None:
        """Take a reply out of the script, and run what is left."""
        self._take(i, i + 1)

    @guarded
    def clear(self, _: Any = None) -> None:
        """Take all replies out of the script."""
        self._take(0, len(self._replies))

    def _take(self, start: int, stop: int) -> None:
        if taken := self._replies[start:stop]:
            self.form.text.focus()
            self._removed.append((start, taken))
            self._replies = self._replies[:start] + self._replies[stop:]
            self._run()

    @guarded
    def put_back(self, _: Any = None) -> None:
        """Put what was removed last back in its place, and run the script."""
        if self._removed:
            place, replies = self._removed.pop()
            if not self._removed:
                self.form.text.focus()
            self._replies = self._replies[:place] + replies + self._replies[place:]
            self._run()

    @guarded
    def _run(self, change: Any = None) -> None:
        self.performance = perform(self.script)
        view.switch_off([(self.clear_button, not self._replies), (self.back_button, not self._removed)])
        self._say.value, self._messages.value = performance_html(self.performance)
        self.script_box.write(self.code)
        self._rows.children = [self._row(i, reply) for i, reply in enumerate(self._replies)] or [
            view.area('<p class="ll-note">no reply yet</p>')]

    def _row(self, i: int, reply: ModelReply) -> widgets.HBox:
        text = f'<span class="ll-muted">{i + 1}</span>&ensp;{reply_html(reply)}'
        name, words = f"remove-reply-{i + 1}", f"Remove reply {i + 1}"
        return removable_row(self._rows, text, name, words, lambda: self.remove(i))

    def _allow_add(self) -> None:
        self.add_button.disabled = not self.form.draft.is_ready

    def twin(self) -> list[Block]:
        """Return the script, the exit, the messages of the run and the code."""
        words, _, rest = performance_words(self.performance)
        replies = [reply_text(reply) for reply in self._replies]
        messages = [view.message_text(message) for message in self.performance.result.messages]
        return ["The script:", replies, f"{words} {rest}", messages, "Its code:", view.Code(self.code)]


def script_builder(replies: Sequence[ModelReply] | None = None) -> ScriptBuilder:
    """Compose a scripted model for the weather task, see its run and take its code.

    Without replies it begins with the script that finishes the task.
    """
    return ScriptBuilder(weather_script() if replies is None else replies)
