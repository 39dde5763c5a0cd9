"""You are the model: the reader is given what a model is given, and replies; the loop does the rest, for real.

The state is the list of replies so far. Each view runs the loop anew: a script of those replies, and a last step
that stops the run where the reader has to reply. So undo drops a reply, and nothing is simulated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from agentloop import (WEATHER_TASK, AgentResult, Json, ModelReply, ScriptedModel, Stop, ToolCall, run_agent,
                       weather_world)
from looplab import view
from looplab.reply_form import Draft, ReplyForm, ScriptBox, count_calls, draft_of
from looplab.scripts import write_script
from looplab.signatures import tool_lines, tools_html
from looplab.spend import exit_reason, next_prompt
from looplab.view import Bench, Block, call_text, guarded, plural

YOUR_TURN = "your_turn"
LIST_HEIGHT = 312  # pixels, kept while the messages grow


# --- State ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Game:
    """A seat at the loop, and the replies given so far; `world` is a registry, or makes one."""

    task: str
    world: Any
    max_steps: int = 8
    token_budget: int = 4000
    turns: int | None = None
    replies: tuple[ModelReply, ...] = ()


@dataclass(frozen=True)
class Position:
    """Where a game stands: the run so far, the specs, and each executed call with whether its function ran."""

    game: Game
    result: AgentResult
    specs: list[Json]
    executed: list[tuple[ToolCall, bool]]

    @property
    def over(self) -> bool:
        """Whether the run has ended."""
        return self.result.status != YOUR_TURN

    @property
    def waits(self) -> bool:
        """Whether the reader is to reply now."""
        return not self.over and len(self.game.replies) != self.game.turns

    @property
    def news(self) -> list[int]:
        """The indexes of the observations that came since the last reply."""
        last = max((i for i, m in enumerate(self.result.messages) if m["role"] == "assistant"), default=None)
        return [] if last is None else list(range(last + 1, len(self.result.messages)))


def make_registry(world: Any) -> Any:
    """Return a fresh registry from a function that makes one, alone or first of a tuple; a registry stays itself."""
    made = world if hasattr(world, "specs") else world()
    return made[0] if isinstance(made, tuple) else made


def play_on(game: Game) -> Position:
    """Run the loop with the replies of a game, to its end or to where the next reply is due."""
    registry = make_registry(game.world)
    executed: list[tuple[ToolCall, bool]] = []

    def execute(call: ToolCall) -> str:
        executed.append((call, registry.check(call.name, call.args) is None))
        return registry(call)

    def your_turn(messages: list[Json], specs: list[Json]) -> ModelReply:
        raise Stop(YOUR_TURN)

    model = ScriptedModel([*game.replies, your_turn])
    result = run_agent(game.task, model, registry, max_steps=game.max_steps, token_budget=game.token_budget,
                       execute=execute)
    return Position(game, result, registry.specs(), executed)


def game_script(position: Position) -> str:
    """Write a game as code whose run gives the same messages; an unfinished one ends at a lower max_steps."""
    game, result = position.game, position.result
    if not game.replies:
        return "# no reply yet"
    status, max_steps = (result.status, game.max_steps) if position.over else ("step_limit", len(game.replies))
    return write_script(game.replies, game.task, max_steps, game.token_budget, status, game.world)


# --- Words ---------------------------------------------------------------------------------------------------


def what_happened(position: Position) -> tuple[str, str, str]:
    """Return the sentence of a position as its first words, their colour, and the rest."""
    game, result = position.game, position.result
    if position.over:
        reason = exit_reason(result, position.specs, game.max_steps, game.token_budget, "You still ask")
        return f"Exit: {result.status}.", "exit", reason
    if not game.replies:
        return "You are the model.", "assistant", "This is all you are given. Read it, and reply."
    fate, ends = fate_of_calls(position), "" if len(position.news) == 1 else "s"
    if position.waits:
        return "You are the model.", "assistant", f"{fate}: read the observation{ends}, and reply again."
    turns = "That was one turn." if game.turns == 1 else f"Those were {game.turns} turns."
    return turns, "assistant", f"{fate}; the observation{ends} came back, and a model would now be asked again."


def fate_of_calls(position: Position) -> str:
    """Say how many calls of the last reply ran."""
    ran = [did for _, did in position.executed[-len(position.news):]]
    if len(ran) > 1:
        return f"{sum(ran) or 'None'} of your {len(ran)} calls ran"
    if not ran[0]:
        return "Your call did not run"
    failed = position.result.messages[-1]["content"].startswith("ERROR: ")
    return f"Your call ran{' and failed' if failed else ''}"


def harness_facts(position: Position) -> dict[str, str]:
    """Return what the harness knows, and the model does not."""
    game, result = position.game, position.result
    step = result.steps if position.over else result.steps + 1
    spent = f"{result.tokens:,} of {game.token_budget:,} tokens"
    if not position.over:
        spent += f"; this prompt about {next_prompt(result.messages, position.specs):,}"
    ran = ", ".join(call_text(call) for call, did in position.executed if did)
    refused = ", ".join(call_text(call) for call, did in position.executed if not did)
    following = f"none: the run ended, {result.status}" if position.over else "does the reply ask for a tool?"
    return {"step": f"{step} of {game.max_steps}", "spent": spent, "what ran": ran, "what did not": refused,
            "next check": following}


# --- HTML ----------------------------------------------------------------------------------------------------


def say_html(position: Position) -> str:
    """Return the sentence of a position."""
    words, role, rest = what_happened(position)
    flag = view.mark("exit") if role == "exit" else ""
    return view.sentence(f"{flag}{view.word(words, role)} {view.escape(rest)}")


def undone_html(in_form: bool) -> str:
    """Return the sentence after a reply was undone, which is in the form again or not."""
    said = "back in the form: change it, or send it again" if in_form else "kept for Redo: the form holds another"
    return view.sentence(f"{view.word('You are the model.', 'assistant')} Your last reply is undone, and {said}.")


def given_html(position: Position) -> str:
    """Return the messages that the model is given, with those that are new lit, and the exit at the end."""
    messages, over = position.result.messages, position.over
    head = f"You are given {plural(len(messages), 'message')}" if position.waits else plural(len(messages), "message")
    end = (position.result.status, "") if over else None
    rows = view.message_list(messages, new=() if over else position.news, end=end, height=LIST_HEIGHT)
    return f'<p class="ll-head">{head}</p><div class="ll-given">{rows}</div>'


def harness_html(position: Position) -> str:
    """Return what the harness knows, on a quiet ground."""
    facts = harness_facts(position)
    shown = {name: view.code(text) if name.startswith("what") and text else view.escape(text or "nothing yet")
             for name, text in facts.items()}
    rows = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in shown.items())
    head = '<p class="ll-eyebrow">What the harness knows, and the model does not</p>'
    return f'<div class="ll-behind">{head}<dl>{rows}</dl></div>'


# --- Widget --------------------------------------------------------------------------------------------------


class SeatBench(Bench):
    """The seat of the model. `game` is its state, `result` the run so far, and `script` what was played, as code."""

    def __init__(self, game: Game) -> None:
        self.position = play_on(game)
        self._one_turn = game.turns == 1
        self._undone: list[Draft] = []
        self._say, self._given, self._behind = view.area("", "say"), view.area("", "given"), view.area("", "behind")
        self.form = ReplyForm(self.position.specs, stop_reasons=not self._one_turn)
        self.send_button = view.button("Send reply", "send", self.send, "ll-main")
        self.undo_button = view.button("Begin again" if self._one_turn else "Undo last reply", "undo", self.undo)
        self.redo_button = view.button("Redo", "redo", self.redo)
        self.redo_button.layout.display = "none" if self._one_turn else ""
        self.script_box = ScriptBox()
        self.switch = view.switch("Show what the harness knows", "harness")
        self.switch.observe(self._show, names="value")
        self.form.on_change = self._allow_send
        buttons = view.controls(self.send_button, self.undo_button, self.redo_button, self.script_box.button)
        title = view.area(f'<p class="ll-head ll-flush">{view.mark("assistant")} Your reply</p>')
        reply = view.column("ll-seat-b", title, self.form, buttons, self.switch, self._behind)
        given = view.column("ll-seat-a", self._given, view.area(tools_html(self.position.specs, "and"), "specs"))
        super().__init__(self._say, view.columns(given, reply), self.script_box, hook="seat")
        self._show()

    @property
    def game(self) -> Game:
        """The state: the task, the world, the limits and the replies so far."""
        return self.position.game

    @property
    def result(self) -> AgentResult:
        """The run so far; its status is "your_turn" while a reply is due."""
        return self.position.result

    @property
    def script(self) -> str:
        """What was played, as code that runs and gives the same messages."""
        return game_script(self.position)

    @guarded
    def send(self, _: Any = None) -> None:
        """Give the reply in the form to the loop."""
        if self.position.waits and self.form.draft != Draft():  # empty at the second click of a double click
            self._reply(self.form.draft)

    @guarded
    def redo(self, _: Any = None) -> None:
        """Give the reply that was undone last to the loop, as it was."""
        if self.position.waits and self._undone:
            self._reply(self._undone[-1])

    def _reply(self, draft: Draft) -> None:
        reply = draft.reply(count_calls(self.game.replies) + 1)
        self.position = play_on(replace(self.game, replies=(*self.game.replies, reply)))
        (self.form.text if self.position.waits else self.switch).focus()  # a second Enter does nothing there
        if self.form.draft == draft:
            self.form.fill(Draft())
        if self._undone[-1:] == [draft]:
            self._undone.pop()
        self._show()

    @guarded
    def undo(self, _: Any = None) -> None:
        """Take the last reply back into the form, unless something else is being written there; Redo has it too."""
        if not self.game.replies:
            return
        *kept, last = self.game.replies
        self.position = play_on(replace(self.game, replies=tuple(kept)))
        self.form.enable(self.position.waits)
        self.form.text.focus()  # before the button is switched off: a second Enter would press the next one
        is_free = self.form.draft in (Draft(), *self._undone[-1:])
        self._undone.append(draft_of(last))
        if is_free:
            self.form.fill(self._undone[-1])
        self._show(said=undone_html(is_free))

    @guarded
    def _show(self, change: Any = None, said: str = "") -> None:
        position = self.position
        self.form.enable(position.waits)
        has_replied = bool(self.game.replies)
        view.switch_off([(self.undo_button, not has_replied), (self.script_box.button, not has_replied),
                         (self.redo_button, not position.waits or not self._undone)])
        self.script_box.write(self.script)
        self._say.value, self._given.value = said or say_html(position), given_html(position)
        self._behind.value = harness_html(position) if self.switch.value else ""

    def _allow_send(self) -> None:
        self.send_button.disabled = not self.position.waits or not self.form.draft.is_ready

    def twin(self) -> list[Block]:
        """Return what the reader is given now, in plain words."""
        words, _, rest = what_happened(self.position)
        tools = tool_lines(self.position.specs)
        messages = [view.message_text(message) for message in self.result.messages]
        return [f"{words} {rest}", f"{plural(len(messages), 'message')}:", messages, f"{plural(len(tools), 'tool')}:",
                tools, "A reply is text, or calls with their arguments as JSON, or both."]


def you_are_the_model(task: str = WEATHER_TASK, registry: Any = weather_world, max_steps: int = 8,
                      token_budget: int = 4000, turns: int | None = None) -> SeatBench:
    """Put the reader in the model's seat: the same messages, the same specs, and a form for the reply.

    `registry` is a registry, or a function that makes a fresh one, like weather_world. The run is made anew after
    each reply, so a registry's tools run again: give the function if that is not safe, or if they keep state.
    With `turns`, the game ends after so many replies. Raises ValueError for limits or turns below 1.
    """
    if turns is not None and turns < 1:
        raise ValueError("turns must be at least 1, or None for a whole run")
    return SeatBench(Game(task, registry, max_steps, token_budget, turns))
