"""The loop player's sentences: what a statement has just done, and how the run ended, in one or two lines.

A sentence begins with who acts. It is a list of pieces, plain text or `Said`, that can be written as text or as HTML.
"""

from __future__ import annotations

import ast
import re
from typing import Any, NamedTuple

from agentloop import describe
from looplab.recorder import Moment, Recording, in_words
from looplab.view import cut, escape, kind_of, mark, plural


class Said(NamedTuple):
    """A piece of a sentence: its text, the role whose colour it has, and its form: "b" for a name, or "code"."""

    text: str
    role: str
    form: str


Sentence = list[Said | str]


def name(text: str, role: str = "") -> Said:
    """Name who acts."""
    return Said(text, role, "b")


def code(text: str, role: str = "", width: int = 60) -> Said:
    """Quote code, a call, JSON or an exception, cut to a part of a line."""
    return Said(cut(text, width), role, "code")


def as_text(sentence: Sentence) -> str:
    """Write a sentence as plain text."""
    return "".join(piece if isinstance(piece, str) else piece.text for piece in sentence)


def as_html(sentence: Sentence) -> str:
    """Write a sentence as HTML; a way out begins with its flag."""
    return "".join(escape(piece) if isinstance(piece, str) else _piece_html(*piece) for piece in sentence)


def _piece_html(text: str, role: str, form: str) -> str:
    flag = mark("exit") if (role, form) == ("exit", "b") else ""
    colour = f' class="ll-{role}"' if role else ""
    return f"<{form}{colour}>{flag}{escape(text)}</{form}>"


def tell(recording: Recording, i: int) -> Sentence:
    """Say what the statement of moment `i` has just done; of the last one, how the run ended."""
    if i == len(recording.moments) - 1:
        return _end(recording, recording.moments[i])
    for telling in (_reply, _calls, _exception, _list, _tokens, _question, _round):
        if said := telling(recording, i):
            return said
    return _changes(recording, i)


LOOP = name("The loop")


# --- What the model, the tools and the list did --------------------------------------------------------------


def _reply(recording: Recording, i: int) -> Sentence:
    asked = recording.moments[i].asked
    if not asked:
        return []
    said: Sentence = [name("The model", "assistant"), f" is shown {plural(asked.shown, 'message')} and "]
    if asked.raised:
        return [*said, "raises ", code(asked.raised, width=90), "."]
    if asked.stop_reason:
        return [*said, "gives a reply that counts as none: ", code(asked.stop_reason), "."]
    if not asked.calls:
        return [*said, f"asks for no tool: “{cut(asked.content, 80)}”"]
    calls = [piece for call in asked.calls[:2] for piece in (", ", code(call, "assistant", 44))]
    more = f", and {len(asked.calls) - 2} more" if len(asked.calls) > 2 else ""
    what = f"{'text and ' if asked.content else ''}{plural(len(asked.calls), 'call')}"
    return [*said, f"replies with {what}: ", *calls[1:], f"{more}. Nothing has run yet."]


REFUSALS = [
    (r"unknown tool '(.*?)'\. ", "there is no tool "),
    (r"missing required argument '(.*?)'\. ", "the call lacks the argument "),
    (r"unexpected argument '(.*?)'\. ", "the tool has no argument "),
    (r"argument '(.*?)' must be of type \w+\. ", "the call gives the wrong type for "),
]


def _calls(recording: Recording, i: int) -> Sentence:
    moment = recording.moments[i]
    if not moment.ran:
        return []
    ran = moment.ran[-1]
    if len(moment.ran) > 1:
        return [name("The tools", "tool"), f" get {len(moment.ran)} calls; the last is ", code(ran.call), "."]
    if ran.raised:
        return [name("The call", "tool"), " ", code(ran.call), " raises ", code(ran.raised, width=80), "."]
    text = ran.observation.removeprefix("ERROR: ")
    if text == ran.observation:
        joins = " It is the observation." if moment.appended else ""
        return [name("The tool", "tool"), " runs ", code(ran.call, width=44), " and returns ", code(text), f".{joins}"]
    error = name("error", "error")
    then = [" The ", error, " goes back to the model as the observation."] if moment.appended else []
    for pattern, why in REFUSALS:
        if found := re.match(pattern, text):
            return [name("The tool", "tool"), f" did not run: {why}", code(found[1]), ".", *then]
    tool, failed, why = text.partition(" failed: ")
    if failed and ran.call.startswith(f"{tool}("):
        return [name("The tool", "tool"), " ", code(tool), " ran and failed: ", code(why), ".", *then]
    return [name("The call", "tool"), " is answered with an ", error, ": ", code(text, width=80), "."]


def _exception(recording: Recording, i: int) -> Sentence:
    moment = recording.moments[i]
    if moment.raised:
        return [LOOP, " does not get past this line: ", code(moment.raised, width=90), "."]
    if not isinstance(moment.statement.node, ast.ExceptHandler):
        return []
    raised = next((code(m.raised, width=90) for m in reversed(recording.moments[:i]) if m.raised), "it")
    return [LOOP, " catches ", raised, "."] if moment.went_in else [LOOP, " does not catch ", raised, " here."]


def _list(recording: Recording, i: int) -> Sentence:
    moment, messages = recording.moments[i], recording.messages(i)
    if moment.edited or moment.removed:
        what = [f"{plural(len(moment.edited), 'message')} edited"] if moment.edited else []
        what += [f"{plural(moment.removed, 'message')} removed"] if moment.removed else []
        return [name("The list"), f" was changed: {', '.join(what)}. The model will be shown another past."]
    new = messages[len(messages) - moment.appended:]
    if len(new) == len(messages) > 0:
        roles = ", ".join(str(m.get("role")) for m in new[:4]) + (" …" if len(new) > 4 else "")
        return [name("The list"), f" begins with {plural(len(new), 'message')}: {roles}."]
    if len(new) > 1:
        return [name("The list"), f" grows by {len(new)} messages to {len(messages)}."]
    return _joins(recording, i, new[0]) if new else []


def _joins(recording: Recording, i: int, message: Any) -> Sentence:
    kind, place = kind_of(message), f"message {len(recording.messages(i))}"
    call = code(str(message.get("tool_call_id")))
    if kind == "assistant":
        spent = f" {_spent(recording, i)}" if _spent_grew(recording, i) else ""
        return [name("The reply", "assistant"), f" joins the list as {place}.{spent}"]
    if kind == "error":
        return [name("The error", "error"), " goes back to the model as the observation of ", call, "."]
    if kind == "tool":
        return [name("The observation", "tool"), " of ", call, f" joins the list as {place}."]
    return [name(f"The {kind} message"), f" joins the list as {place}."]


# --- What the loop itself did --------------------------------------------------------------------------------


def _spent_grew(recording: Recording, i: int) -> bool:
    return i > 0 and recording.moments[i].spent not in (None, 0, recording.moments[i - 1].spent)


def _spent(recording: Recording, i: int) -> str:
    of = f" of {recording.budget:,}" if recording.budget else ""
    return f"{recording.moments[i].spent:,}{of} tokens are spent."


def _tokens(recording: Recording, i: int) -> Sentence:
    moment = recording.moments[i]
    if moment.estimates and moment.prompt is not None:
        return [LOOP, f" estimates the next prompt: about {moment.prompt:,} tokens."]
    return [LOOP, f" adds up: {_spent(recording, i)}"] if _spent_grew(recording, i) else []


def _question(recording: Recording, i: int) -> Sentence:
    moment = recording.moments[i]
    node = moment.statement.node
    if not isinstance(node, (ast.If, ast.While)):
        return []
    asks = {getattr(n, "id", "") or getattr(n, "attr", "") for n in ast.walk(node.test)}
    if "token_budget" in asks and recording.budget and moment.prompt is not None:
        together = (moment.spent or 0) + moment.prompt
        verdict = "within the budget" if together <= recording.budget else "over the budget"
        need = f"{moment.spent or 0:,} tokens spent and about {moment.prompt:,} for the next prompt make {together:,}"
        return [LOOP, f" checks the budget: {need}, {verdict} of {recording.budget:,}."]
    if "max_steps" in asks and asks & {"step", "steps"} and recording.max_steps:
        return [LOOP, f" checks the steps: {recording.steps(i):,} of {recording.max_steps:,} are taken."]
    reply = next((m.asked for m in reversed(recording.moments[:i]) if m.asked), None)
    if reply and asks & {"tool_calls", "calls", "open_calls"}:
        wants = plural(len(reply.calls), "call") if reply.calls else "no tool"
        return [LOOP, f" looks at the reply: it asks for {wants}."]
    return [LOOP, " asks: ", code(recording.source.text_of(node.test)), f"? {'Yes' if moment.went_in else 'No'}."]


def _round(recording: Recording, i: int) -> Sentence:
    moment = recording.moments[i]
    node = moment.statement.node
    if not isinstance(node, ast.For):
        return []
    target = recording.source.text_of(node.target)
    value = moment.values.get(target, "")
    if moment.went_in and target == "step":
        return [LOOP, f" begins step {value}{f' of {recording.max_steps:,}' if recording.max_steps else ''}."]
    if moment.went_in:
        return [LOOP, f" takes the next {target}: ", code(value, "assistant" if "call" in target else ""), "."]
    if "call" in target:
        return [LOOP, " finds no more calls to run."]
    return [LOOP, " has gone through ", code(recording.source.text_of(node.iter)), "."]


def _changes(recording: Recording, i: int) -> Sentence:
    moment = recording.moments[i]
    node = moment.statement.node
    if isinstance(node, (ast.Break, ast.Continue)):
        return [LOOP, " goes on to the next round." if isinstance(node, ast.Continue) else " leaves this inner loop."]
    changed = [n for n in moment.values if n in moment.changed]
    if not changed:
        return [LOOP, " runs ", code(recording.source.code_of(moment.statement)), "; nothing shown here changes."]
    sets = [piece for n in changed[:3] for piece in (", ", code(n), " to ", code(moment.values[n]))]
    return [LOOP, " sets ", *sets[1:], f", and {len(changed) - 3} more." if len(changed) > 3 else "."]


# --- How it ended --------------------------------------------------------------------------------------------

WHY = {
    "truncated": "The reply was cut off, so it is no answer, and none of its calls runs.",
    "refused": "The model refused, so its text is no answer, and none of its calls runs.",
    "empty_reply": "The reply is empty, so it is no answer.",
    "repeated_call": "The same call came once more, and it was not run.",
    "waiting_for_approval": "A call waits until a person decides.",
    "deadline": "The time is up.",
    "cost_cap": "The money is spent.",
    "bad_reply": "The model's replies could not be read.",
}


def status_of(recording: Recording) -> str:
    """Name the end of a run: the status of its result, or "crashed", "interrupted", "cut off", "returned"."""
    if recording.cut_off_after:
        return "cut off"
    if isinstance(recording.error, KeyboardInterrupt):
        return "interrupted"
    if recording.error:
        return "crashed"
    status = getattr(recording.result, "status", None)
    return status if isinstance(status, str) else "returned"


def _end(recording: Recording, moment: Moment) -> Sentence:
    status = status_of(recording)
    if status == "cut off":
        ran = f"{recording.cut_off_after:,} lines of the loop have run"
        return [name("Cut off.", "exit"), f" {ran} and it took no way out, so the player stopped it."]
    kept = f" The list keeps its {plural(moment.length, 'message')}."
    if recording.error and status == "interrupted":
        return [name("Exit: interrupted.", "exit"), f" Ctrl-C ended the loop here.{kept}"]
    if recording.error:
        return [name("The loop crashed:", "exit"), " ", code(describe(recording.error), width=90), f".{kept}"]
    if status == "returned":
        result = recording.result
        text = f"“{cut(result, 90)}”" if isinstance(result, str) else f"{in_words(result)}."
        return [name("The loop returns", "exit"), f" {text}"]
    return [name(f"Exit: {status}.", "exit"), f" {_why(recording, moment, status)}"]


def _why(recording: Recording, moment: Moment, status: str) -> str:
    if status == "done":
        answer = cut(str(getattr(recording.result, "answer", "")), 90)
        return f"The reply asks for no tool, so it is the answer: “{answer}”"
    if status == "token_budget" and recording.budget and moment.prompt is not None:
        spent = moment.spent or 0
        return (f"{spent:,} tokens are spent and the next prompt needs about {moment.prompt:,}: together "
                f"{spent + moment.prompt:,}, and the budget is {recording.budget:,}. The model is not called again.")
    if status == "step_limit" and recording.max_steps:
        allowed = f"{recording.max_steps:,} {'is' if recording.max_steps == 1 else 'are'} allowed"
        return f"The model still asks for tools after {plural(recording.steps(-1), 'step')}, and {allowed}."
    return WHY.get(status, "The run ends here.")
