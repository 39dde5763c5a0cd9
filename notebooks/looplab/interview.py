"""A mock interview without its widgets: the clock, the parts, the checks, and what is said to a file."""

from __future__ import annotations

import json
import os
import re
import time
import tokenize
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from looplab import sandbox
from looplab.also_asked import ALSO_ASKED, AlsoAsked
from looplab.follow_ups import FOLLOW_UPS, FollowUp, sentence_of, tried_by
from looplab.interview_brief import (ALOUD_MINUTES, GROUND, LENGTHS, MARKS, PARTS, RUBRIC, SAME_FAULT, Criterion,
                                     Part)
from looplab.interview_questions import QUESTIONS
from looplab.judging import Verdict, judge, python_says
from looplab.keeping import keep_json, put_aside
from looplab.view import Block, Code, cut, plural

NOTEBOOKS = Path(__file__).parents[1]
FILE, STATE = "my_interview.py", "my_interview_state.json"
KEPT = ("minutes", "seed", "released", "began", "aloud_began", "ticks", "aloud", "failed", "failed_runs")
NOT_SEEN = "I have not seen your file yet."
SHOWN = 3
SAVE_FIRST = "save the file first (Ctrl+S, on a Mac Cmd+S), then check"
OPEN_TWICE = "If the interview is open in two notebooks, go on in one of them."
SANDBOX = sandbox.Sandbox("looplab.also_asked")


# --- The clock -----------------------------------------------------------------------------------------------


class Clock:
    """Counts down while it runs; it can be paused. `now` gives seconds that never go back."""

    def __init__(self, minutes: int, now: Callable[[], float] = time.monotonic, used: float = 0.0) -> None:
        self.minutes, self._now = minutes, now
        self._used, self._since = used, 0.0
        self.runs = False

    def start(self) -> None:
        """Begin, or go on after a pause."""
        if not self.runs:
            self.runs, self._since = True, self._now()

    def pause(self) -> None:
        """Stop counting until it is started again."""
        if self.runs:
            self._used, self.runs = self.used, False

    @property
    def used(self) -> float:
        """The seconds that it ran."""
        return self._used + (self._now() - self._since if self.runs else 0)

    @property
    def text(self) -> str:
        """What is left, as minutes and seconds; never less than nothing."""
        return f"{as_minutes(max(0, 60 * self.minutes - self.used)):0>5}"


def as_minutes(seconds: float) -> str:
    """Return seconds as minutes and seconds: 4:05."""
    return f"{round(seconds) // 60}:{round(seconds) % 60:02}"


# --- The state -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Requirement:
    """A requirement of the follow-up: whether it holds, and if not what was tried and what came back."""

    sentence: str
    holds: bool
    came_back: str
    tried: str = ""


@dataclass
class Interview:
    """One interview: its length and seed, what was released, what the checks found, and what the reader ticked.

    `began` holds the seconds on the clock at which each part was released, `aloud_began` those at which the questions
    came after it. `judged` is how many parts were released when the checks ran, and `text` what the file held then;
    `since` says what is new since the checks before. `failed` tells by the name of a part which checks failed at any
    run, none if it held at once, and `failed_runs` at how many; consequences of a fault in another part are left out.
    `kept` is what the file of its state holds.
    """

    minutes: int
    seed: int
    folder: Path = NOTEBOOKS
    released: int = 0
    verdict: Verdict | None = None
    change: list[Requirement] = field(default_factory=list)
    ticks: dict[str, str] = field(default_factory=dict)
    aloud: dict[str, str] = field(default_factory=dict)
    began: list[float] = field(default_factory=list)
    aloud_began: float | None = None
    failed: dict[str, list[str]] = field(default_factory=dict)
    failed_runs: dict[str, int] = field(default_factory=dict)
    judged: int = 0
    text: str | None = None
    not_saved: str = ""
    since: str = ""
    kept: Any = None
    also_asked: list[tuple[Part, AlsoAsked]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.minutes not in LENGTHS:
            raise ValueError(f"an interview takes {', '.join(map(str, LENGTHS[:-1]))} or {LENGTHS[-1]} minutes")
        if type(self.seed) is not int or not 0 <= self.seed <= 9999:
            raise ValueError("the seed is a whole number from 0 to 9999")
        self.clock = Clock(self.minutes)

    @property
    def length(self) -> int:
        """The place of its length among LENGTHS."""
        return LENGTHS.index(self.minutes)

    @property
    def parts(self) -> list[Part]:
        """The parts that its length leaves time for; the change has the words of the follow-up that was drawn."""
        drawn = self.follow_up
        change = {"some_holds": drawn.some_holds, "words": drawn.words, "notebook": drawn.notebook}
        return [part if part.stage else replace(part, **change) for part in PARTS if part.minutes[self.length]]

    @property
    def rubric(self) -> list[Criterion]:
        """The lines of the rubric that belong to its parts, and the one on thinking aloud."""
        titles = {*(part.title for part in self.parts), "Aloud"}
        return [criterion for criterion in RUBRIC if criterion.name in titles]

    @property
    def follow_up(self) -> FollowUp:
        """The change that is asked for at the end, drawn by the seed: six seeds in a row draw all six."""
        lap, place = divmod(self.seed - 1, len(FOLLOW_UPS))
        return FOLLOW_UPS[Random(lap).sample(list(FOLLOW_UPS), len(FOLLOW_UPS))[place]]

    @property
    def questions(self) -> list[int]:
        """The places of the questions in the order in which they are asked, drawn by the seed.

        One of each topic comes before a second of any.
        """
        drawn = Random(self.seed)
        topics = list(dict.fromkeys(q.topic for q in QUESTIONS))
        turn = {topic: place for place, topic in enumerate(drawn.sample(topics, len(topics)))}
        mixed, asked = drawn.sample(range(len(QUESTIONS)), len(QUESTIONS)), dict.fromkeys(topics, 0)
        order = {}
        for i in mixed:
            topic = QUESTIONS[i].topic
            order[i] = (asked[topic], turn[topic])
            asked[topic] += 1
        return sorted(mixed, key=lambda i: order[i])

    @property
    def file(self) -> Path:
        """The reader's file."""
        return self.folder / FILE

    @property
    def begun(self) -> bool:
        """Whether there is something that a new interview would drop."""
        used = self.clock.runs or self.clock.used > 0
        return bool(used or self.released or self.verdict or self.ticks or self.aloud)

    @property
    def not_usable(self) -> bool:
        """Whether the checks found that the file cannot be used at all."""
        return self.verdict is not None and bool(self.verdict.not_loaded)

    @property
    def has_file(self) -> bool:
        """Whether the reader's file is there."""
        return self.file.is_file()

    @property
    def in_the_way(self) -> str:
        """What stands where the reader's file should be and is none, in a sentence, or ""."""
        if self.file.is_dir():
            what = "a folder"
        elif not self.has_file and os.path.lexists(self.file):
            what = "a link to a file that is gone"
        else:
            return ""
        return f"{FILE} is {what}: rename it or take it away, then press Make {FILE}."

    def asked(self, part: Part) -> list[Block]:
        """Return what the interviewer asks in a part."""
        return part.asks or [self.follow_up.asks, Code(self.follow_up.code), "What held before should hold afterwards."]

    def release(self) -> Part:
        """Ask for the next part, or for the last one again, and return it."""
        if self.released < len(self.parts):
            self.released += 1
            self.began.append(self.clock.used)
            self.aloud_began = None
        return self.parts[self.released - 1]

    def was_asked_for(self, title: str) -> bool:
        """Whether a line of the rubric can be judged: that of the change cannot before the change was asked for."""
        return all(part.stage or part.title != title for part in self.parts[self.released :])

    def begin_aloud(self) -> None:
        """Count the time from now on for the questions, if a part came before them."""
        if self.began and self.aloud_began is None:
            self.aloud_began = self.clock.used

    @property
    def used_aloud(self) -> float:
        """The seconds that the questions took."""
        return 0.0 if self.aloud_began is None else self.clock.used - self.aloud_began

    def used_by_part(self) -> list[tuple[Part, float]]:
        """Return the parts that were released with the seconds that each took; the last goes on until the questions."""
        ends = [*self.began[1:], self.clock.used - self.used_aloud]
        return [(part, end - began) for part, began, end in zip(self.parts, self.began, ends)]

    @property
    def over(self) -> Part | None:
        """The newest part if its minutes are over."""
        used = self.used_by_part()
        return used[-1][0] if used and used[-1][1] >= 60 * used[-1][0].minutes[self.length] else None

    def make_file(self) -> bool:
        """Make the blank file, and return True; False if there is one, which stays as it is.

        What was said before of the missing file is forgotten.
        """
        try:
            with self.file.open("x", encoding="utf-8"):
                self.forget_checks()
                return True
        except FileExistsError:
            return False

    def forget_checks(self) -> None:
        """Forget what the checks found."""
        self.verdict, self.change, self.also_asked, self.text = None, [], [], None
        self.not_saved = self.since = ""

    def run_checks(self) -> None:
        """Judge the file by the stages of the parts that were released, all of them before the first."""
        before, found = self.text, (outcomes(self), self.verdict.first if self.verdict else [])
        self.forget_checks()
        self.judged = self.released
        if not self.has_file:
            self.verdict = Verdict(self.in_the_way or f"There is no file {FILE} yet: press Make {FILE}.")
            return
        self.text = text_of(self.file)
        stages = [part.stage for part in self.parts[: self.released] if part.stage]
        self.verdict = judge(self.file, max(stages, default=5))
        if not self.not_usable:
            if any(not part.stage for part in self.parts[: self.released]):
                self.change = try_change(self.file, self.follow_up)
            self.also_asked = try_what_is_also_asked(self)
            if self.text != before:
                self.remember_failed()
                self.since = what_is_new(found, (outcomes(self), self.verdict.first))
        if not self.text.strip():
            self.not_saved = f"{FILE} is empty: {SAVE_FIRST}."
        elif self.text == before and not (self.verdict.holds and all(one.holds for one in self.change)):
            self.not_saved = f"{FILE} is as it was at the last check. If you wrote more, {SAVE_FIRST}."

    def remember_failed(self) -> None:
        """Keep which checks of each part failed; one that lacks all, or a name that it must have, is not begun."""
        own = own_failures(self)
        for remark in remarks(self) if self.judged else []:
            name, failing = remark.part.name, own[remark.part.name]
            if remark.held and not any("has the names of" in sentence for sentence in failing):
                ever = self.failed.setdefault(name, [])
                ever += [sentence for sentence in failing if sentence not in ever]
                self.failed_runs[name] = self.failed_runs.get(name, 0) + bool(failing)


def text_of(file: Path) -> str:
    """Return the text of a file as Python reads it, and where it cannot, as it can best be shown."""
    try:
        with tokenize.open(file) as source:
            return source.read()
    except (SyntaxError, UnicodeDecodeError):
        return file.read_text(encoding="utf-8", errors="replace")


def try_change(file: Path, follow_up: FollowUp) -> list[Requirement]:
    """Try a follow-up on a file, in another process; what was not reached does not hold."""
    try:
        events, ended = SANDBOX.run("looplab.follow_ups:try_file", {"path": str(file), "name": follow_up.name})
    except OSError:
        events, ended = [], "died"
    found = [event for event in events if "holds" in event]
    why = {"stopped": f"it was still running after {sandbox.SECONDS:.0f} seconds and was stopped",
           "died": "the process ended"}
    rows = [Requirement(sentence_of(check), False, "not tried", tried_by(check)) for check in follow_up.checks]
    for i, event in enumerate(found):
        rows[i] = replace(rows[i], holds=event["holds"], came_back=event["came_back"])
    if len(found) < len(rows):
        rows[len(found)] = replace(rows[len(found)], came_back=why.get(ended, "not tried"))
    return rows


def try_what_is_also_asked(interview: Interview) -> list[tuple[Part, AlsoAsked]]:
    """Return what no check is about and is asked all the same, part by part; of parts that hold, and no others."""
    parts = {interview.follow_up.name if remark.part.name == "follow-up" else remark.part.name: remark.part
             for remark in remarks(interview) if remark.held == remark.of}
    try:
        events, _ = SANDBOX.run("looplab.also_asked:try_file", {"path": str(interview.file), "names": list(parts)})
    except OSError:
        return []
    found = {(event["name"], event["about"]) for event in events}
    return [(parts[name], asked) for name in parts for asked in ALSO_ASKED.get(name, ())
            if (name, asked.about) in found]


# --- What is kept of it --------------------------------------------------------------------------------------


def keep(interview: Interview) -> str:
    """Write beside the reader's file what a restart of the kernel would lose: all but what the checks found.

    A file there that is not of this interview is put aside first. Return a sentence on that, or on why nothing is kept.
    """
    path, said = interview.folder / STATE, ""
    state = {name: getattr(interview, name) for name in KEPT} | {"used": interview.clock.used}
    try:
        if path.is_file():
            if read_state(path) == state:
                return ""
            if holds_another(interview):
                said = f"{STATE} was not of this interview; it is now {put_aside(path)}. {OPEN_TWICE}"
        keep_json(path, state)
        interview.kept = deepcopy(state)
        return said
    except OSError as error:
        why = "is a folder" if path.is_dir() else f"cannot be written: {error.strerror or type(error).__name__}"
        return f"Your parts and marks are not kept, because {STATE} {why}."


def holds_another(interview: Interview) -> bool:
    """Say whether the file of the state is not as this interview left it: another notebook may go on with it."""
    path = interview.folder / STATE
    return path.is_file() and (interview.kept is None or read_state(path) != interview.kept)


def read_state(path: Path) -> Any:
    """Return what a file of a state holds, or None if it cannot be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def kept(folder: Path) -> Interview | None:
    """Return the interview that was kept, its clock paused, or None if there is none.

    Raises ValueError if there is something in its place that is no interview.
    """
    if not os.path.lexists(folder / STATE):
        return None
    state = read_state(folder / STATE)
    try:
        found = Interview(**{name: state[name] for name in KEPT if name in state}, folder=folder, kept=deepcopy(state))
        found.clock = Clock(found.minutes, used=float(state["used"]))
        if not is_whole(found):
            raise ValueError
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise ValueError(f"{STATE} holds no interview that can be read, so this is a new one.") from error
    return found if found.begun else None


def is_whole(found: Interview) -> bool:
    """Say whether an interview that was read holds nothing but what one can come to."""
    names = {part.name for part in found.parts}
    seconds = [found.clock.used, *found.began, 0 if found.aloud_began is None else found.aloud_began]
    return bool(
        type(found.released) is int and 0 <= found.released == len(found.began) <= len(found.parts)
        and all(0 <= second < float("inf") for second in seconds)
        and found.ticks.keys() <= {criterion.name for criterion in RUBRIC}
        and {*found.ticks.values(), *found.aloud.values()} <= set(MARKS)
        and found.failed.keys() | found.failed_runs.keys() <= names
        and all(isinstance(sentence, str) for failed in found.failed.values() for sentence in failed)
        and all(type(runs) is int for runs in found.failed_runs.values()))


# --- What the interviewer says -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Remark:
    """What the interviewer says to a part: how much of it holds, and the words."""

    part: Part
    held: int
    of: int
    words: str


def remarks(interview: Interview) -> list[Remark]:
    """Return what the interviewer says to each part that was judged."""
    said = []
    for part in interview.parts[: interview.judged] or [part for part in interview.parts if part.stage]:
        outcomes = outcomes_of(interview, part)
        held = sum(holds for _, holds in outcomes)
        said.append(Remark(part, held, len(outcomes), words_for(interview, part, outcomes)))
    return said


def outcomes_of(interview: Interview, part: Part) -> list[tuple[str, bool]]:
    """Return the requirements of a part as sentences, each with whether it holds."""
    if not part.stage:
        return [(requirement.sentence, requirement.holds) for requirement in interview.change]
    rows = interview.verdict.rows if interview.verdict else []
    return [(as_part(sentence), outcome == "holds")
            for stage, outcome, sentence in rows if stage.startswith(str(part.stage))]


def outcomes(interview: Interview) -> dict[str, bool]:
    """Return whether each requirement that was judged holds, by part and sentence."""
    return {f"{remark.part.title}: {sentence}": holds
            for remark in remarks(interview) for sentence, holds in outcomes_of(interview, remark.part)}


def own_failures(interview: Interview) -> dict[str, list[str]]:
    """Return by the name of a part what does not hold, and is no consequence of what fails in a part before it."""
    own: dict[str, list[str]] = {}
    before: list[str] = []
    for remark in remarks(interview):
        failing = [sentence for sentence, holds in outcomes_of(interview, remark.part) if not holds]
        own[remark.part.name] = [sentence for sentence in failing if not follows(sentence, before)]
        before += failing
    return own


def follows(sentence: str, before: list[str]) -> bool:
    """Say whether a requirement fails because of one that fails in a part before: the ground, or the same fault."""
    faults = [kind for kind in SAME_FAULT if is_about(sentence, kind)]
    return any(is_about(one, GROUND) or any(is_about(one, kind) for kind in faults) for one in before)


def is_about(sentence: str, words: tuple[str, ...]) -> bool:
    """Say whether a sentence holds one of the words."""
    return any(one in sentence.lower() for one in words)


def what_is_new(before: tuple[dict[str, bool], list[str]], now: tuple[dict[str, bool], list[str]]) -> str:
    """Say what a run of the checks found that the run before had not; "" if that one found nothing."""
    (then, first_then), (holds, first) = before, now
    gained = [sentence for sentence in holds if holds[sentence] and then.get(sentence) is False]
    lost = [sentence for sentence in holds if not holds[sentence] and then.get(sentence)]
    if gained or lost:
        said = [f"{words}: {first_few(found)}" for words, found in (
            ("what holds now", gained), ("what does not hold any more", lost)) if found]
        return f"Since the last run, {'; '.join(said)}."
    failing, failing_then = ({one for one in found if not found[one]} for found in (holds, then))
    same = failing and failing == failing_then and first != first_then
    return "Since the last run the same checks fail, the first with another result." if same else ""


def first_few(sentences: list[str]) -> str:
    """Return the first of some sentences in one line, and how many more there are."""
    more = len(sentences) - SHOWN
    return "; ".join([one.rstrip(".") for one in sentences[:SHOWN]] + [f"and {more} more"] * (more > 0))


def as_part(sentence: str) -> str:
    """Return a requirement in the interviewer's words, to whom a stage is a part."""
    return re.sub(r"\bstage (\d)", r"part \1", sentence)


def words_for(interview: Interview, part: Part, outcomes: list[tuple[str, bool]]) -> str:
    """Say what an interviewer says to a part: a question if all of it holds, else where to look."""
    held = sum(holds for _, holds in outcomes)
    if not held:
        came_back = "" if part.stage or not interview.change else interview.change[0].came_back
        if re.search(r"\(line \d+\)$", came_back):
            return f"I cannot see the change yet, because your file does not get that far: {came_back}."
        return f"I see nothing of this yet. {part.nothing}"
    if held == len(outcomes):
        return f"All the checks hold. {part.all_holds}"
    first = next(sentence for sentence, holds in outcomes if not holds)
    came_back = what_came_back(interview, part, first)
    words = about_exception(came_back) or next(
        (words for about in (compared_field(came_back), first.lower()) for key, words in part.words.items()
         if key in about), part.some_holds)
    failing = len(outcomes) - held
    lead = "This one does not hold yet" if failing == 1 else f"{failing} do not hold yet; the first is"
    return f"{lead}: “{first.rstrip('.')}.” {words}"


def what_came_back(interview: Interview, part: Part, sentence: str) -> str:
    """Return what the checks told of a requirement that does not hold."""
    if not part.stage:
        return next(f"came back: {one.came_back}" for one in interview.change if one.sentence == sentence)
    told = interview.verdict.told if interview.verdict else {}
    return next((message for (stage, about), message in told.items()
                 if stage.startswith(str(part.stage)) and as_part(about) == sentence), "")


def about_exception(told: str) -> str:
    """Ask about an exception of the file, got out or caught, where the checks wanted none; "" if there was none."""
    found = re.search(r"^came back: (?:it raised|`ERROR: \w+ failed:) (\w+)", told, re.MULTILINE)
    if not found or re.search(r"^expected:  (an exception|`ERROR: \w+ failed)", told, re.MULTILINE):
        return ""
    line = re.search(r"\(line (\d+)\)$", told)
    return f"It raised {found[1]}{f' in line {line[1]}' if line else ''}: what came in, and what did you expect there?"


def compared_field(told: str) -> str:
    """Return the field of the result that was not as expected, or "" if it is not a field that was compared."""
    found = re.search(r"^expected:  (\w+) = ", told, re.MULTILINE)
    return found[1] if found else ""


def counted(interview: Interview) -> tuple[int, int]:
    """Return how many requirements hold, and how many were judged."""
    said = remarks(interview)
    return sum(remark.held for remark in said), sum(remark.of for remark in said)


def opening(interview: Interview) -> str:
    """Return the interviewer's first sentence after the checks."""
    if interview.verdict is None:
        return "Run the checks again: there is no report any more." if interview.failed else NOT_SEEN
    if not interview.verdict.rows:
        return interview.verdict.said
    if interview.verdict.not_loaded:
        return does_not_load(interview.verdict)
    held, of = counted(interview)
    if held == of:
        return "That is what I asked for. Let us talk about it."
    if not held:
        return "Let us begin together: what goes in, and what comes out?"
    if held == of - 1:
        return f"Nearly done: {held} of {of} hold, and one does not yet."
    if held >= 0.9 * of:
        return f"Nearly done: {held} of {of} hold. Let me say what is left."
    return f"You are on the way: {held} of {of} hold. Let me say what I see, part by part."


def does_not_load(verdict: Verdict) -> str:
    """Say why a file does not load: kind and line, then Python's own words, and for one fault what to write."""
    own = cut(python_says(verdict.first[1]), 200)
    said = f"Your file does not load: {verdict.not_loaded}{f': {own}' if own else ''}".rstrip(".") + "."
    if verdict.not_loaded.startswith("ValueError") and "mutable default" in own:
        said += " A list cannot be a field's default, or all would share it: write field(default_factory=list)."
    if "utf-8" in own.lower():
        said += " Save the file as UTF-8."
    return said


def headline(interview: Interview) -> str:
    """Return the verdict in a few words, for the place beside the button; "" while there is none."""
    if interview.verdict is None:
        return ""
    if not interview.verdict.rows or interview.not_usable:
        return "Not judged: see the report."
    held, of = counted(interview)
    before = f" as of part {interview.judged}" if interview.judged and as_of(interview) else ""
    return f"{held} of {of} hold{before}{'; was it saved?' if interview.not_saved else ''}"


def as_of(interview: Interview) -> str:
    """Say which parts a report is about, where others were asked for since; else ""."""
    if interview.judged == interview.released:
        return ""
    if not interview.judged:
        return "These checks ran before a part was asked for, on all of them. Run them again for what is asked now."
    since = [part.title for part in interview.parts[interview.judged : interview.released]]
    last = interview.parts[interview.judged - 1].title
    return f"As of part {interview.judged}, {last}. {' and '.join(since)} came later: run the checks again."


def report(interview: Interview) -> list[Block]:
    """Return the interviewer's report as blocks: sentences, a row for each part, and the first failure in full."""
    blocks: list[Block] = [interview.not_saved, opening(interview)]
    if interview.verdict is None or not interview.verdict.rows or interview.not_usable:
        return [block for block in blocks if block]
    blocks = [as_of(interview), *blocks, interview.since]
    blocks.append([["part", "holds", "the interviewer"],
                   *([remark.part.title, f"{remark.held} of {remark.of}", remark.words]
                     for remark in remarks(interview))])
    broken = [one for one in interview.change if not one.holds]
    if interview.verdict.first:
        sentence, message = interview.verdict.first
        blocks += [f"The first that does not hold: {as_part(sentence)}.", Code(message)]
    elif broken:
        one = broken[0]
        told = f"tried:     {one.tried}\nexpected:  {one.sentence}\ncame back: {one.came_back}"
        blocks += ["The first of the change that does not hold:", Code(told)]
    if interview.also_asked:
        blocks += ["No check is about this. I tried it on your file all the same, and would ask:",
                   [f"{part.title}: {asked.asks}" for part, asked in interview.also_asked]]
    return [block for block in blocks if block]


def short_answers(interview: Interview) -> list[tuple[str, list[Block]]]:
    """Return the questions of the report, each with a short answer: those to the parts of which all holds."""
    if interview.verdict is None or not interview.verdict.rows or interview.not_usable:
        return []
    return [(f"{remark.part.title}: a short answer", [remark.part.answer])
            for remark in remarks(interview) if remark.held == remark.of]


def minutes_of_parts(interview: Interview) -> list[list[str]]:
    """Return the parts and the questions with their minutes, and those that were used, as a table."""
    used = {part.name: as_minutes(seconds) for part, seconds in interview.used_by_part()}
    aloud = "–" if interview.aloud_began is None else as_minutes(interview.used_aloud)
    return [["part", "minutes", "minutes used"],
            *([p.title, str(p.minutes[interview.length]), used.get(p.name, "–")] for p in interview.parts),
            ["Questions aloud", str(ALOUD_MINUTES[interview.length] or "–"), aloud]]


def ever_failed(interview: Interview) -> list[list[str]]:
    """Return the parts of which a check failed at any run, as a table, or nothing."""
    now = {remark.part.name: f"{remark.held} of {remark.of}" for remark in remarks(interview) if remark.of}
    rows = [[part.title, now.get(part.name, "not checked"), str(interview.failed_runs.get(part.name, 0)),
             f"{plural(len(failed), 'check')}: {first_few(failed)}"]
            for part in interview.parts if (failed := interview.failed.get(part.name))]
    return [["part", "holds now", "failed runs", "what failed"], *rows] if rows else []
