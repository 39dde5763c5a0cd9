"""What a conclusion claims, and for each claim the results of the run that it comes from.

A claim is what can be looked up: a quotation, a version, a time, a number; or what follows from two of these, how many
times as much and how many minutes between. That one thing caused the other is no such claim: it stands in no result.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from agentloop import Json, decoded

NUMBER = r"(?<![\w:.])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?!\d|:\d|\.\d)"
WORDS = "one two three four five six seven eight nine ten eleven twelve".split()
QUOTE = r'["“](?P<quote>[^"“”]+)["”]'
CLAIM = re.compile(
    QUOTE
    + r"|(?<![\w:])(?P<time>\d{1,2}:\d\d(?::\d\d)?)(?![\w:])"
    r"|\b(?P<version>v\d+(?:\.\d+)*|\d+(?:\.\d+){2,})\b"
    rf"|(?:\babout\s+)?(?P<ratio>{NUMBER}\s*(?:times|x|×))(?!\w)"
    rf"|(?:\babout\s+)?\b(?P<minutes>(?:{'|'.join(WORDS)}|{NUMBER})\s+minutes?)\b"
    rf"|\b(?P<about>about\s+{NUMBER})"
    rf"|(?P<number>{NUMBER})",
    re.IGNORECASE,
)

DERIVED = {"ratio": ("number", "about"), "minutes": ("time",)}  # kinds that follow from two others, and from which


@dataclass(frozen=True)
class Claim:
    """Something in a text that can be looked up: its kind, its words, where it stands, and in which sentence."""

    kind: str
    text: str
    start: int
    sentence: int

    @property
    def figure(self) -> str:
        """The number as it is written, without the words around it and commas in it; "5" for five."""
        if found := re.search(NUMBER, self.text):
            return found[0].replace(",", "")
        return str(WORDS.index(self.text.split()[0].lower()) + 1)

    @property
    def value(self) -> float:
        """The number that is claimed."""
        return float(self.figure)

    @property
    def minute(self) -> int:
        """The minute of the day that is claimed."""
        hours, minutes = self.text.split(":")[:2]
        return 60 * int(hours) + int(minutes)


@dataclass(frozen=True)
class Record:
    """A part of a result whose values belong together, like one deploy, as text; and the position of its message."""

    position: int
    text: str


@dataclass(frozen=True)
class Finding:
    """A claim, the words that prove it, the positions of their results, and how it follows or why it does not."""

    claim: Claim
    words: tuple[str, ...]
    positions: tuple[int, ...]
    how: str

    @property
    def proven(self) -> bool:
        """Whether the claim stands in a result, or follows from what stands there."""
        return bool(self.positions)


def find_claims(text: str) -> list[Claim]:
    """Return the claims of a text, in order."""
    bare = re.sub(QUOTE, lambda quote: "-" * len(quote[0]), text)  # a full stop in a quotation ends no sentence of ours
    ends = [found.start() for found in re.finditer(r"[.!?]\s|\n", bare)]
    return [
        Claim(kind := str(found.lastgroup), found[kind], start := found.start(kind), sum(end < start for end in ends))
        for found in CLAIM.finditer(text)
    ]


def numbers(text: str) -> list[float]:
    """Return the numbers in a text: not those in a word, a time or a version."""
    return [float(number.replace(",", "")) for number in re.findall(NUMBER, text)]


# --- Records -------------------------------------------------------------------------------------------------


def records_of(messages: list[Json]) -> list[Record]:
    """Return the records of all results; an error is none, and neither is what the call itself had said."""
    said = {asked["id"]: asked["args"] for message in messages for asked in message.get("tool_calls", [])}
    records = []
    for position, message in enumerate(messages):
        if message["role"] == "tool" and not message["content"].startswith("ERROR: "):
            result, args = decoded(message["content"]), said.get(message["tool_call_id"])
            result, args = message["content"] if result is None else result, args if isinstance(args, dict) else {}
            records += [Record(position, text) for text in split_result(result, args)]
    return records


def split_result(value: Any, said: Json) -> Iterator[str]:
    """Yield the text of each record in a result, without the fields that only repeat an argument of the call."""
    if isinstance(value, dict):
        own = {name: item for name, item in value.items() if name not in said or said[name] != item}
        plain = {name: item for name, item in own.items() if not isinstance(item, (dict, list))}
        if plain:
            yield "\n".join(f"{name}\n{item}" for name, item in plain.items())
        value = [item for name, item in own.items() if name not in plain]
    if isinstance(value, list):
        for item in value:
            yield from split_result(item, said)
    else:
        yield str(value)


# --- Looking up ----------------------------------------------------------------------------------------------


def exactly(words: str) -> str:
    """Return a pattern that finds words as they are, and never as a part of longer ones."""
    return rf"(?<![\w:.]){re.escape(words)}(?!\w|\.\d)"


def rounds_to(number: float, claim: Claim) -> bool:
    """Say whether a number is the one claimed, rounded as that is: about 2,900 is meant to the hundred."""
    whole, _, decimals = claim.figure.partition(".")
    digits = len(decimals) or len(whole.rstrip("0")) - len(whole)
    return abs(number - claim.value) <= 10**-digits / 2


def holds(record: Record, claim: Claim) -> bool:
    """Say whether a record holds what is claimed: a whole word or number, never a part of one; V841 is v841."""
    if claim.kind == "number":
        return claim.value in numbers(record.text)
    if claim.kind == "about":
        return any(rounds_to(number, claim) for number in numbers(record.text))
    return re.search(exactly(claim.text), record.text, re.IGNORECASE if claim.kind == "version" else 0) is not None


def version_of(claim: Claim, claims: list[Claim]) -> Claim | None:
    """Return the version that something is said of, if there is one.

    It is the last one named before it in its sentence, or else the next one there, or else the last one before.
    """
    versions = [other for other in claims if other.kind == "version"]
    before = [version for version in versions if version.start <= claim.start]
    here = [version for version in versions if version.sentence == claim.sentence]
    chosen = [version for version in before if version in here] or here[:1] or before
    return chosen[-1] if chosen else None


def check_evidence(messages: list[Json], conclusion: str | None = None) -> list[Finding]:
    """Look up each claim of a conclusion in the results of a run; without one, of the last message.

    What is said of a version must stand in a record of that version, if it stands in the results that list versions:
    or one deploy could be given the time and the note of another.
    """
    claims, records = find_claims(messages[-1]["content"] if conclusion is None else conclusion), records_of(messages)
    found: dict[Claim, Finding] = {}
    for claim in (claim for claim in claims if claim.kind not in DERIVED):
        version = version_of(claim, claims)
        hits = {record for record in records if holds(record, claim)}
        subject = {record for record in records if version and holds(record, version)}
        positions = {record.position for record in hits}
        if version and hits and hits.isdisjoint(subject) and positions <= {record.position for record in subject}:
            found[claim] = Finding(claim, (), (), f"stands in a result, but not with {version.text}")
        else:
            why = "" if hits else "stands in no result"
            found[claim] = Finding(claim, (claim.text,), tuple(sorted(positions)), why)
    proven = [finding for finding in found.values() if finding.proven]
    return [found.get(claim) or derive(claim, proven) for claim in claims]


def derive(claim: Claim, proven: list[Finding]) -> Finding:
    """Find two proven claims, one named after the other, from which a ratio or a number of minutes follows."""
    for one, other in pairwise(finding for finding in proven if finding.claim.kind in DERIVED[claim.kind]):
        low, high = one.claim, other.claim
        if claim.kind == "minutes":
            value, how = float((high.minute - low.minute) % (24 * 60)), f"{high.text} - {low.text}"
        else:
            low, high = sorted((low, high), key=lambda claim: claim.value)
            value, how = high.value / low.value if low.value else math.inf, f"{high.figure} / {low.figure}"
        if math.isfinite(value) and round(value, len(claim.figure.partition(".")[2])) == claim.value:
            positions = tuple(sorted({*one.positions, *other.positions}))
            return Finding(claim, (one.claim.text, other.claim.text), positions, f"{how} = {value:.4g}")
    return Finding(claim, (), (), "does not follow from two that are named one after the other")


# --- Words ---------------------------------------------------------------------------------------------------


def source_words(messages: list[Json], finding: Finding) -> str:
    """Say where a claim comes from, as in "list_deploys, turn 2", or how it follows; or why it is not proven."""
    turns = list(dict.fromkeys(str(turn_of(messages, position)) for position in finding.positions))
    if finding.how:
        return finding.how + (f", turn{'s' if len(turns) > 1 else ''} {' and '.join(turns)}" if turns else "")
    places = [f"{messages[position]['name']}, turn {turn_of(messages, position)}" for position in finding.positions]
    return "; ".join(places)


def turn_of(messages: list[Json], position: int) -> int:
    """Return the number of the turn that a message belongs to."""
    return sum(message["role"] == "assistant" for message in messages[: position + 1])


def verdict(messages: list[Json], finding: Finding) -> str:
    """Say in a cell of a table where a claim comes from, or that it is not proven."""
    return f"{'' if finding.proven else 'NOT PROVEN: '}{source_words(messages, finding)}"


def evidence_rows(messages: list[Json], findings: list[Finding]) -> list[list[str]]:
    """Return a line for each claim: its words, its kind, and where it comes from."""
    return [[finding.claim.text, finding.claim.kind, verdict(messages, finding)] for finding in findings]
