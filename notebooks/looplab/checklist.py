"""Checks in the order in which they are made: those that were passed, the one that spoke, those not reached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from looplab.view import escape


@dataclass(frozen=True)
class Check:
    """A question to a call, and the answer: "" if it was not reached; `spoke` if it ended the checking."""

    question: str
    answer: str = ""
    spoke: bool = False


def checks_html(checks: Sequence[Check]) -> str:
    """Return the checks as an ordered list, with the one that spoke lit."""
    return f'<ol class="ll-checks">{"".join(map(check_html, checks))}</ol>'


def check_html(check: Check) -> str:
    """Return one check as an item of the list."""
    state = "ll-here" if check.spoke else "" if check.answer else "ll-muted"
    answer = check.answer or "not reached"
    return f'<li class="{state}"><span>{escape(check.question)}</span><span>{escape(answer)}</span></li>'


def checks_table(checks: Sequence[Check]) -> list[list[str]]:
    """Write the checks as a table of plain text."""
    return [["check", "answer"], *([check.question, check.answer or "not reached"] for check in checks)]
