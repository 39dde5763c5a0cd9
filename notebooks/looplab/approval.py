"""The approval bench: a run that stops at each refund, and waits for the person at the buttons."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from agentloop import (
    WAITING,
    AgentResult,
    Json,
    ModelReply,
    ScriptedModel,
    ToolCall,
    after,
    asks,
    call,
    continue_agent,
    decide,
    final,
    open_calls,
    require_approval,
    run_agent,
    verdict_key,
)
from looplab import view
from looplab.view import Bench, Block, call_text, code, escape, guarded
from looplab.worlds import REFUND_TASK, RISKY, order_desk

NOTHING = '<p class="ll-spec">nothing</p>'
APPROVE, REJECT, CHANGE = "Approve", "Reject", "Approve, then change the amount"


# --- State ---------------------------------------------------------------------------------------------------


def tells(messages: list[Json], specs: list[Json]) -> ModelReply:
    """Answer with what was paid back, and how often a person said no."""
    results = [m["content"] for m in messages if m["role"] == "tool" and m["name"] == "issue_refund"]
    paid = [json.loads(text)["amount"] for text in results if text.startswith("{")]
    rejected = sum("rejected" in text for text in results)
    said = f"{sum(paid)} rupees were paid back" if paid else "Nothing was paid back"
    return final(f"{said}; {rejected} refused by a person." if rejected else f"{said}.")


def refund(call_id: str, amount: Any) -> ToolCall:
    """Return a call that asks for a refund of order A123."""
    return call(call_id, "issue_refund", order_id="A123", amount=amount)


LOOK_UP = call("c1", "get_order", order_id="A123")
PRESETS: dict[str, Callable[[], list[Any]]] = {
    "one refund": lambda: [asks(LOOK_UP), asks(refund("c2", 5000)), tells],
    "two refunds in one reply": lambda: [asks(LOOK_UP, refund("c2", 2500), refund("c3", 2500)), tells],
    "a look-up after a refund, in one reply": lambda: [asks(refund("c1", 5000), replace(LOOK_UP, id="c2")), tells],
    "a refund that cannot run": lambda: [
        asks(refund("c1", "5000")),
        after("must be of type number", asks(refund("c2", 5000))),
        tells,
    ],
    "a model that tries again after a no": lambda: [asks(refund("c1", 5000)), tries_again, tells],
}


def tries_again(messages: list[Json], specs: list[Json]) -> ModelReply:
    """Ask for half of it after a no."""
    return asks(refund("c2", 2500)) if "rejected" in messages[-1]["content"] else tells(messages, specs)


@dataclass(frozen=True)
class Stand:
    """How the run stands: the result, the call that waits or None, what ran, and a sentence: who, did, what."""

    result: AgentResult
    waiting: ToolCall | None
    ran: list[str]
    said: tuple[str, str, str]


def play_presses(preset: str, presses: Sequence[str]) -> Stand:
    """Run a preset of the order desk, and go on after each press; the run is real, and begins anew each time."""
    registry, ran = order_desk()
    model = ScriptedModel(PRESETS[preset]())

    def gate(verdicts: Json) -> Any:
        return require_approval(registry, registry.check, RISKY, verdicts)

    result = run_agent(REFUND_TASK, model, registry, execute=gate({}))
    last: tuple[str, ToolCall] | None = None
    for press in presses:
        waiting = waiting_call(result)
        if waiting is None:
            break
        verdicts = decide(result, {waiting.id: press != REJECT})
        result = with_more(result, waiting.id) if press == CHANGE else result
        result = continue_agent(result, model, registry, 8, 4000, execute=gate(verdicts))
        last = press, waiting
    waiting = waiting_call(result)
    return Stand(result, waiting, ran, sentence_parts(result, waiting, last))


def waiting_call(result: AgentResult) -> ToolCall | None:
    """Return the call that waits for a person, if one does."""
    return open_calls(result.messages)[0] if result.status == WAITING else None


def with_more(result: AgentResult, call_id: str) -> AgentResult:
    """Return a run as somebody left it who edited the saved file: the amount of a call is ten times as much."""
    messages = deepcopy(result.messages)
    asked = next(c for m in messages for c in m.get("tool_calls", []) if c["id"] == call_id)
    asked["args"]["amount"] *= 10
    return replace(result, messages=messages)


def sentence_parts(result: AgentResult, waiting: ToolCall | None,
                   last: tuple[str, ToolCall] | None) -> tuple[str, str, str]:
    """Say what has just happened, as who did it, the call, and the rest."""
    now = "the run waits for a person." if waiting else f"the run ended with {result.status}."
    if last is None:
        return "The gate", " holds ", f"{call_text(waiting)}: {now}"
    press, decided = last
    if press == CHANGE:
        held = call_text(waiting)
        return "The verdict", f" is for {call_text(decided)}", f", but the file holds {held}, and that waits."
    return "A person", f" said {'no' if press == REJECT else 'yes'} to ", f"{call_text(decided)}: {now}"


# --- HTML and widget -----------------------------------------------------------------------------------------


def waiting_html(stand: Stand) -> str:
    """Return what a person is asked, with what a yes is bound to; or that nobody is asked."""
    if stand.waiting is None:
        return '<p class="ll-head">Nobody is asked</p><p class="ll-spec">No call waits.</p>'
    head = '<p class="ll-head">A person is asked</p>'
    call_id, digest = verdict_key(stand.waiting).split(" ")
    asked = code(call_text(stand.waiting), "assistant")
    bound = f"A verdict is bound to the id {code(call_id)} and the digest {code(digest[:12] + '…')}"
    return f'{head}<div class="ll-spec"><p>{asked}</p><p class="ll-muted">{bound}</p></div>'


def ran_html(ran: Sequence[str]) -> str:
    """Return what really ran."""
    items = "".join(f'<div class="ll-spec">{code(line, "tool")}</div>' for line in ran)
    return f'<p class="ll-head">What ran</p>{items or NOTHING}'


class ApprovalBench(Bench):
    """Choose what the model asks for, and decide; `stand` is how the run stands."""

    def __init__(self) -> None:
        self.presses: list[str] = []
        self.preset = view.choices("The model asks for", list(PRESETS), "preset", next(iter(PRESETS)))
        self.approve = view.button(APPROVE, "approve", lambda _: self.press(APPROVE), "ll-main")
        self.reject = view.button(REJECT, "reject", lambda _: self.press(REJECT))
        self.change = view.button(CHANGE, "change", lambda _: self.press(CHANGE))
        self.undo = view.button("Back", "back", self.back)
        self._say, self._list = view.area("", "say"), view.area("", "list")
        self._waiting, self._ran = view.area("", "waiting"), view.area("", "ran")
        buttons = view.controls(self.approve, self.reject, self.change, self.undo)
        buttons.layout.margin = "8px 0 20px -2px"
        left = view.column("ll-seat-b", self._waiting, buttons, self._ran)
        super().__init__(self.preset, self._say, view.columns(left, view.column("ll-seat-a", self._list)),
                         hook="approval")
        self.preset.observe(self._begin, names="value")
        self._begin()

    @guarded
    def press(self, what: str) -> None:
        """Decide on the call that waits."""
        self.presses.append(what)
        self._show()

    @guarded
    def back(self, _: Any = None) -> None:
        """Take the last decision back; the run is made anew without it."""
        del self.presses[-1:]
        self._show()

    @guarded
    def _begin(self, change: Any = None) -> None:
        self.presses = []
        self._show()

    def _show(self) -> None:
        self.stand = play_presses(self.preset.value, self.presses)
        is_over = self.stand.waiting is None
        view.switch_off([(self.undo, not self.presses)]
                        + [(button, is_over) for button in (self.approve, self.reject, self.change)])
        result = self.stand.result
        who, did, what = self.stand.said
        role = "user" if who == "A person" else "exit"
        self._say.value = view.sentence(f"{view.word(who, role)}{escape(did + what)}")
        self._waiting.value, self._ran.value = waiting_html(self.stand), ran_html(self.stand.ran)
        self._list.value = view.message_list(result.messages, end=(result.status, result.answer or ""), height=420)

    def twin(self) -> list[Block]:
        """Return the sentence, the messages and what ran."""
        ran = f"What ran: {', '.join(self.stand.ran) or 'nothing'}."
        buttons = f"Buttons: {APPROVE}; {REJECT}; {CHANGE}; Back."
        return [f"The model asks for {self.preset.value}.", "".join(self.stand.said),
                list(map(view.message_text, self.stand.result.messages)), ran, buttons]


def approval_bench() -> ApprovalBench:
    """Run the order desk with a gate in front of its refunds, and decide what becomes of each."""
    return ApprovalBench()
