"""A mock interview without its widgets: the clock, the parts, what is said to a file, and the result page."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from looplab import sandbox
from looplab.follow_ups import FOLLOW_UPS, FollowUp
from looplab.interview_brief import ALOUD_MINUTES, LENGTHS, PARTS, RUBRIC, Part
from looplab.interview_questions import QUESTIONS
from looplab.judging import Verdict, judge
from looplab.view import Block, Code, plural, twin_html

NOTEBOOKS = Path(__file__).parents[1]
FILE, PAGE = "my_interview.py", "my_interview_result.html"
SANDBOX = sandbox.Sandbox("looplab.follow_ups")


# --- The clock -----------------------------------------------------------------------------------------------


class Clock:
    """Counts down while it runs; it can be paused. `now` gives seconds that never go back."""

    def __init__(self, minutes: int, now: Callable[[], float] = time.monotonic) -> None:
        self.minutes, self._now = minutes, now
        self._used, self._since = 0.0, 0.0
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
        left = max(0, round(60 * self.minutes - self.used))
        return f"{left // 60:02}:{left % 60:02}"


# --- The state -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Requirement:
    """A requirement of the follow-up: whether it holds, and what came back if not."""

    sentence: str
    holds: bool
    came_back: str


@dataclass
class Interview:
    """One interview: its length and seed, what was released, what the checks found, and what the reader ticked."""

    minutes: int
    seed: int
    folder: Path = NOTEBOOKS
    released: int = 0
    verdict: Verdict | None = None
    change: list[Requirement] = field(default_factory=list)
    ticks: dict[str, str] = field(default_factory=dict)
    aloud: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.minutes not in LENGTHS:
            raise ValueError(f"an interview takes {', '.join(map(str, LENGTHS[:-1]))} or {LENGTHS[-1]} minutes")
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
    def follow_up(self) -> FollowUp:
        """The change that is asked for at the end, drawn by the seed."""
        return FOLLOW_UPS[Random(self.seed).choice(list(FOLLOW_UPS))]

    @property
    def questions(self) -> list[int]:
        """The places of the questions in the order in which they are asked, drawn by the seed."""
        return Random(self.seed).sample(range(len(QUESTIONS)), len(QUESTIONS))

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

    def asked(self, part: Part) -> list[Block]:
        """Return what the interviewer asks in a part."""
        return part.asks or [self.follow_up.asks, Code(self.follow_up.code), "What held before should hold afterwards."]

    def make_file(self) -> bool:
        """Make the blank file, and return True; False if there is one, which stays as it is.

        What was said before of the missing file is forgotten.
        """
        try:
            with self.file.open("x", encoding="utf-8"):
                self.verdict, self.change = None, []
                return True
        except FileExistsError:
            return False

    def run_checks(self) -> None:
        """Judge the file by the stages of the parts that were released, all of them before the first."""
        self.change = []
        if not self.has_file:
            self.verdict = Verdict(f"There is no file {FILE} yet: press Make {FILE}.")
            return
        stages = [part.stage for part in self.parts[: self.released] if part.stage]
        self.verdict = judge(self.file, max(stages, default=5))
        if any(not part.stage for part in self.parts[: self.released]) and not self.not_usable:
            self.change = try_change(self.file, self.follow_up)


def try_change(file: Path, follow_up: FollowUp) -> list[Requirement]:
    """Try a follow-up on a file, in another process; what was not reached does not hold."""
    try:
        events, ended = SANDBOX.run("looplab.follow_ups:try_file", {"path": str(file), "name": follow_up.name})
    except OSError:
        events, ended = [], "died"
    found = [event for event in events if "holds" in event]
    why = {"stopped": f"it was still running after {sandbox.SECONDS:.0f} seconds and was stopped",
           "died": "the process ended"}
    rows = [Requirement(str(check.__doc__), False, "not tried") for check in follow_up.checks]
    for i, event in enumerate(found):
        rows[i] = Requirement(rows[i].sentence, event["holds"], event["came_back"])
    if len(found) < len(rows):
        rows[len(found)] = Requirement(rows[len(found)].sentence, False, why.get(ended, "not tried"))
    return rows


# --- What the interviewer says -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Remark:
    """What the interviewer says to a part: how much of it holds, and the words."""

    part: Part
    held: int
    of: int
    words: str


def remarks(interview: Interview) -> list[Remark]:
    """Return what the interviewer says to each released part after the checks."""
    said = []
    for part in interview.parts[: interview.released] or [part for part in interview.parts if part.stage]:
        outcomes = outcomes_of(interview, part)
        held = sum(holds for _, holds in outcomes)
        said.append(Remark(part, held, len(outcomes), words_for(part, outcomes, held)))
    return said


def outcomes_of(interview: Interview, part: Part) -> list[tuple[str, bool]]:
    """Return the requirements of a part as sentences, each with whether it holds."""
    if not part.stage:
        return [(requirement.sentence, requirement.holds) for requirement in interview.change]
    rows = interview.verdict.rows if interview.verdict else []
    return [(sentence, outcome == "holds") for stage, outcome, sentence in rows if stage.startswith(str(part.stage))]


def words_for(part: Part, outcomes: list[tuple[str, bool]], held: int) -> str:
    """Say what an interviewer says to a part: a question if all of it holds, else where to look."""
    if not held:
        return f"I see nothing of this yet. {part.nothing}"
    if held == len(outcomes):
        return f"All of it holds. {part.all_holds}"
    first = next(sentence for sentence, holds in outcomes if not holds)
    words = next((words for key, words in part.words.items() if key in first.lower()), part.some_holds)
    return f"This one does not hold yet: “{first.rstrip('.')}.” {words}"


def opening(interview: Interview) -> str:
    """Return the interviewer's first sentence after the checks."""
    if interview.verdict is None:
        return "I have not seen your file yet."
    if not interview.verdict.rows:
        return interview.verdict.said
    if interview.verdict.not_loaded:
        return f"Your file does not load: {interview.verdict.not_loaded}."
    said = remarks(interview)
    if all(remark.held == remark.of for remark in said):
        last = " The rubric comes next." if interview.released == len(interview.parts) else ""
        return f"That is what I asked for. Let us talk about it.{last}"
    if not any(remark.held for remark in said):
        return "Let us begin together: what goes in, and what comes out?"
    return "You are on the way. Let me say what I see, part by part."


def report(interview: Interview) -> list[Block]:
    """Return the interviewer's report as blocks: a sentence, a row for each part, and the first failure in full."""
    blocks: list[Block] = [opening(interview)]
    if interview.verdict is None or not interview.verdict.rows or interview.not_usable:
        return blocks
    said = remarks(interview)
    blocks.append([["part", "holds", "the interviewer"],
                   *([remark.part.title, f"{remark.held} of {remark.of}", remark.words] for remark in said)])
    if interview.verdict.first:
        sentence, message = interview.verdict.first
        blocks += [f"The first that does not hold: {sentence}.", Code(message)]
    elif broken := [requirement for requirement in interview.change if not requirement.holds]:
        blocks += [f"The first that does not hold: {broken[0].sentence}", Code(broken[0].came_back)]
    return blocks


# --- What to practise next -----------------------------------------------------------------------------------


def notebook_named(number: int) -> str:
    """Return the name of the notebook with a number, or "" if there is none."""
    found = sorted(NOTEBOOKS.glob(f"{number:02}_*.ipynb"))
    return found[0].name if found else ""


def practice(interview: Interview) -> list[tuple[str, str]]:
    """Return what to practise next: the name of a notebook, and why; what the checks found comes first.

    It is nothing while the file cannot be used, and while nothing is weak but marks are open.
    """
    why: dict[int, list[str]] = {}
    if interview.not_usable:
        return []
    if interview.verdict is None or not interview.verdict.rows:
        why[17] = ["your file was not judged yet: write the first part, and run the checks"]
    else:
        said = remarks(interview)
        for remark in said:
            if remark.held < remark.of or not remark.of:
                reason = f"{remark.part.title}: {remark.held} of {remark.of} hold"
                why.setdefault(remark.part.notebook, []).append(reason)
        for part in interview.parts[len(said):]:
            why.setdefault(part.notebook, []).append(f"{part.title}: not reached")
    for criterion in RUBRIC:
        if interview.ticks.get(criterion.name) == "weak":
            why.setdefault(criterion.notebook, []).append(f"{criterion.name}: you ticked weak")
    for q in QUESTIONS:
        if interview.aloud.get(q.question) == "weak":
            why.setdefault(q.notebook, []).append(f"you ticked weak: “{q.question}”")
    if not why and not still_open(interview):
        why[18] = ["nothing was weak: find the bugs of others"]
    return [(name, "; ".join(reasons)) for number, reasons in why.items() if (name := notebook_named(number))]


def still_open(interview: Interview) -> str:
    """Say what the reader has not ticked yet; "" if each mark of the rubric is, and a question where there is time."""
    titles = {*(part.title for part in interview.parts), "Aloud"}
    marks = [criterion.name for criterion in RUBRIC if criterion.name in titles]
    left = [name for name in marks if name not in interview.ticks]
    found = [f"{len(left)} of {len(marks)} marks of the rubric"] if left else []
    found += ["the questions aloud"] if ALOUD_MINUTES[interview.length] and not interview.aloud else []
    return f"Still open: {' and '.join(found)}." if found else ""


def result_blocks(interview: Interview) -> list[Block]:
    """Return the result page as blocks."""
    used = round(interview.clock.used / 60)
    blocks: list[Block] = [
        f"An interview of {interview.minutes} minutes, seed {interview.seed}: {plural(used, 'minute')} on the clock, "
        f"{plural(interview.released, 'part')} of {len(interview.parts)} released.",
        *report(interview)]
    ticked = [[c.name, mark, getattr(c, mark)] for c in RUBRIC if (mark := interview.ticks.get(c.name))]
    if ticked:
        blocks += ["What you ticked:", [["part", "mark", "like this"], *ticked]]
    if interview.aloud:
        marks = Counter(interview.aloud.values())
        blocks.append(f"{plural(len(interview.aloud), 'question')} answered aloud: {marks['strong']} strong, "
                      f"{marks['fine']} fine, {marks['weak']} weak.")
    if interview.not_usable:
        return [*blocks, "Mend the file, and run the checks again."]
    if rows := [list(row) for row in practice(interview)]:
        blocks += ["What to practise next:", [["notebook", "because"], *rows]]
    return [*blocks, still_open(interview)] if interview.verdict else blocks


PAGE_HTML = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Mock interview</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 3rem auto; padding: 0 1rem; }}
table {{ border-collapse: collapse; margin: 1rem 0; }}
th, td {{ text-align: left; vertical-align: top; padding: .3rem 1rem .3rem 0; border-bottom: 1px solid #8886; }}
pre {{ white-space: pre-wrap; font-size: 13px; }}
</style>
<h1>Mock interview</h1>
{content}
</html>
"""


def save_page(interview: Interview) -> Path:
    """Write the result page beside the reader's file, whole or not at all, and return its path."""
    path = interview.folder / PAGE
    beside = path.with_suffix(".new")
    beside.write_text(PAGE_HTML.format(content=twin_html(result_blocks(interview))), encoding="utf-8", newline="\n")
    os.replace(beside, path)
    return path
