"""The transcript reader: each claim of a conclusion, and in the message list the result that it comes from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import ipywidgets as widgets

from agentloop import Json
from looplab import view
from looplab.evidence import Finding, check_evidence, evidence_rows, exactly, source_words, turn_of
from looplab.view import AS_TYPED, Bench, Block, code, escape, guarded, plural

HEAD = ["claim", "kind", "comes from"]
OWN = "the agent's"
OPEN, SHUT = "\ue000", "\ue001"  # stand for a mark's tags until the text is escaped; no text of ours holds them
MARK = '<b style="box-shadow:inset 0 -2px var(--ll-here)">'


# --- State ---------------------------------------------------------------------------------------------------


def tally(findings: Sequence[Finding]) -> str:
    """Say how many claims are proven."""
    if not findings:
        return "This conclusion claims nothing that can be looked up."
    return f"Proven: {sum(finding.proven for finding in findings)} of {plural(len(findings), 'claim')}."


def finding_words(messages: list[Json], finding: Finding) -> tuple[str, str]:
    """Say of a claim what it does, comes or follows from, or why it is not proven; and from where, if it is."""
    if not finding.proven:
        return f" {finding.how}.", ""
    return (" follows from " if finding.how else " comes from "), source_words(messages, finding)


# --- HTML and widget -----------------------------------------------------------------------------------------


def words_html(messages: list[Json], finding: Finding) -> str:
    """Return the sentence of a claim."""
    does, source = finding_words(messages, finding)
    first = "" if finding.proven else view.mark("error")
    claim = code(view.cut(finding.claim.text, 60), "assistant")
    end = f"{view.word(source, 'tool')}." if source else ""
    return view.sentence(f"{first}{claim}{escape(does)}{end}")


def rows_html(messages: list[Json], findings: Sequence[Finding], current: int) -> str:
    """Return the claims as a table, the current one lit."""
    lines = []
    for i, finding in enumerate(findings):
        lit = ' style="background:var(--ll-here-band)" aria-current="true"' if i == current else ""
        source = escape(source_words(messages, finding)) if finding.proven else f"{view.mark('error')} not proven"
        cells = [code(view.cut(finding.claim.text, 34)), finding.claim.kind, source]
        lines.append(f"<tr{lit}>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    head = "".join(f"<th>{name}</th>" for name in HEAD)
    table = f'<table><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table>'
    return f'<div class="ll-words ll-tab" style="margin-top:12px">{table}{view.note(tally(findings))}</div>'


def list_html(messages: list[Json], finding: Finding | None) -> str:
    """Return the run before its conclusion, with the results that a claim comes from lit, and its words underlined.

    It does not scroll by itself, so that what is lit is never out of its view.
    """
    rows, positions = [], finding.positions if finding else ()
    for position, message in enumerate(messages[:-1]):
        if message["role"] == "assistant":
            rows.append(f'<li class="ll-stephead">turn {turn_of(messages, position)}</li>')
        if finding and position in positions:
            rows.append(view.message_row(message | {"content": marked(message["content"], finding)}, " ll-new"))
        elif message["role"] != "system":
            rows.append(view.message_row(message))
    html = f'<ol class="ll-observation" style="min-height:520px">{"".join(rows)}</ol>'
    return html.replace(OPEN, MARK).replace(SHUT, "</b>")


def marked(content: str, finding: Finding) -> str:
    """Return a result with the words that prove a claim between OPEN and SHUT."""
    for word in finding.words:
        content = re.sub(exactly(word), lambda found: f"{OPEN}{found[0]}{SHUT}", content, flags=re.IGNORECASE)
    return content


class TranscriptReader(Bench):
    """Go through the claims of a conclusion, the agent's own or one that is typed; `current` is the index of one."""

    def __init__(self, messages: list[Json], others: Mapping[str, str]) -> None:
        self._messages, self._texts = messages, {OWN: messages[-1]["content"], **others}
        self.choice = view.choices("Conclusion", [*self._texts, AS_TYPED], "choice", OWN)
        typed = widgets.Textarea(self._texts[OWN], description="The conclusion, yours to change", rows=5)
        self.text = view.field(typed, "text")
        self.buttons = {
            "Back": view.button("Back", "back", lambda _: self.go_to(self.current - 1)),
            "Next": view.button("Next", "next", lambda _: self.go_to(self.current + 1)),
            "Next not proven": view.button("Next not proven", "unproven", lambda _: self.go_to(self._next_unproven())),
        }
        self._position = view.area("", "position")
        self._say, self._table, self._list = view.area("", "say"), view.area("", "table"), view.area("", "list")
        columns = view.columns(view.column("ll-seat-a", self.text, self._table), view.column("ll-seat-b", self._list))
        super().__init__(self.choice, view.controls(*self.buttons.values(), self._position), self._say, columns,
                         hook="reader")
        self.choice.layout.display = "" if others else "none"
        self.choice.observe(self._choose, names="value")
        self.text.observe(self._typed, names="value")
        self._typed()

    @guarded
    def _choose(self, change: Any = None) -> None:
        self.text.value = self._texts.get(self.choice.value, self.text.value)

    @guarded
    def _typed(self, change: Any = None) -> None:
        if self.text.value not in self._texts.values():
            self._texts[AS_TYPED] = self.text.value
        self.choice.value = next(name for name, text in self._texts.items() if text == self.text.value)
        self.findings = check_evidence(self._messages, self.text.value)
        unproven = [i for i, finding in enumerate(self.findings) if not finding.proven]
        self._show(unproven[0] if unproven else 0)

    @guarded
    def go_to(self, index: int) -> None:
        """Show a claim, by its index."""
        self._show(index)

    def _next_unproven(self) -> int:
        later = [*range(self.current + 1, len(self.findings)), *range(self.current + 1)]
        return next((i for i in later if not self.findings[i].proven), self.current)

    def _show(self, index: int) -> None:
        last = len(self.findings) - 1
        self.current = min(max(index, 0), max(last, 0))
        is_off = {"Back": self.current <= 0, "Next": self.current >= last,
                  "Next not proven": all(finding.proven for finding in self.findings)}
        view.switch_off((self.buttons[name], off) for name, off in is_off.items())
        place = f"{self.current + 1 if self.findings else 0} / {len(self.findings)}"
        self._position.value = f'<span class="ll-position">{place}</span>'
        now = self.findings[self.current] if self.findings else None
        self._say.value = words_html(self._messages, now) if now else view.sentence(tally([]))
        self._table.value = rows_html(self._messages, self.findings, self.current)
        self._list.value = list_html(self._messages, now)

    def twin(self) -> list[Block]:
        """Return the conclusion, and where each of its claims comes from."""
        rows = evidence_rows(self._messages, self.findings)
        return [f"The conclusion: {self.text.value}", [HEAD, *rows], tally(self.findings)]


def transcript_reader(messages: list[Json], others: Mapping[str, str] | None = None) -> TranscriptReader:
    """Show where each claim of a run's conclusion comes from; `others` are more conclusions to choose from, by name.

    Raises ValueError for a run that has no conclusion.
    """
    if not messages or messages[-1]["role"] != "assistant":
        raise ValueError("transcript_reader needs a run whose last message is the model's conclusion")
    return TranscriptReader(messages, others or {})
