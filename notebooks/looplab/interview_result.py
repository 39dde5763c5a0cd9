"""What a mock interview came to: what to practise next, the result, and the page that it is saved as."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import date
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from looplab.folded import Folded
from looplab.interview import (FILE, NOTEBOOKS, Interview, as_minutes, first_checks, minutes_of_parts, remarks, report,
                               short_answers)
from looplab.interview_brief import ALOUD_MINUTES, Criterion, Part
from looplab.interview_questions import QUESTIONS
from looplab.view import Block, Code, plural, twin_html

PAGE = "my_interview_result"
MOST_REASONS = 3
ON_THE_LOOP = ("loop", "exits", "follow-up")  # each rests on the one before it


# --- What to practise next -----------------------------------------------------------------------------------


class Notebook(NamedTuple):
    """A notebook: its name with the number, its file, and how many minutes it takes."""

    name: str
    file: str
    minutes: int

    def __str__(self) -> str:
        return f"{self.name} ({self.file})"


@cache
def notebook_named(number: int) -> Notebook | None:
    """Return the notebook with a number, as its own first lines tell it, or None if there is none."""
    for path in sorted(NOTEBOOKS.glob(f"{number:02}_*.ipynb")):
        with path.open(encoding="utf-8") as file:
            head = file.read(4000)
        name, minutes = re.search(r"# (\d\d) · ([^\"\\]+)", head), re.search(r"\*\*(\d+)", head)
        if name and minutes:
            return Notebook(f"{name[1]} {name[2]}", path.name, int(minutes[1]))
    return None


class Reasons(dict[int, list[str]]):
    """Why to practise, by the number of a notebook; in the order in which the notebooks came."""

    def add(self, number: int, reason: str) -> None:
        """Add a reason to those of a notebook."""
        self.setdefault(number, []).append(reason.rstrip("."))


def short(reasons: list[str]) -> str:
    """Return the first of the reasons in one line, and how many more there are."""
    more = len(reasons) - MOST_REASONS
    return "; ".join(reasons[:MOST_REASONS] + [f"and {more} more"] * (more > 0))


def does_not_hold(interview: Interview) -> Iterator[tuple[Part, str]]:
    """Yield the parts that were judged and do not hold, each with the reason."""
    for remark in remarks(interview):
        if remark.held < remark.of or not remark.of:
            yield remark.part, f"{remark.part.title}: {remark.held} of {remark.of} hold"


def not_checked(interview: Interview) -> Iterator[tuple[Part, str]]:
    """Yield the parts that were not judged, each with the reason."""
    judged = len(remarks(interview))
    for number, part in enumerate(interview.parts[judged:], judged + 1):
        yield part, f"{part.title}: {'asked for, and not checked' if number <= interview.released else 'not reached'}"


def held_after_a_hint(interview: Interview) -> Iterator[tuple[Part, str]]:
    """Yield the parts that hold now and did not at their first checks, each with the reason."""
    for remark in remarks(interview):
        found = interview.at_first.get(remark.part.name)
        if found and remark.held == remark.of:
            yield remark.part, f"{remark.part.title}: held after a hint, first run {found.partition(':')[0]}"


def practice(interview: Interview) -> list[tuple[Notebook, str]]:
    """Return what to practise next: a notebook, and why.

    First come the parts whose checks fail or that were ticked weak, then those that held after a hint or were not
    reached, then the questions that were ticked weak, then what no check is about. Of the parts that rest on the loop
    only the first that fails is named, for its fault may be that of the others. It is nothing while the file was not
    judged or cannot be used, and while nothing is weak but marks are open.
    """
    if interview.verdict is None or not interview.verdict.rows or interview.not_usable:
        return []
    why, on_the_loop = Reasons(), 0
    weak = [criterion for criterion in interview.rubric if interview.ticks.get(criterion.name) == "weak"]
    for found in (does_not_hold, held_after_a_hint, not_checked):
        for part, reason in found(interview):
            rests = part.name in ON_THE_LOOP and found is not held_after_a_hint
            on_the_loop += rests
            if not rests or on_the_loop == 1:
                why.add(part.notebook, reason)
        if found is does_not_hold:
            for criterion in weak:
                why.add(home(interview, criterion), f"{criterion.name}: you ticked weak")
    for q in QUESTIONS:
        if interview.aloud.get(q.question) == "weak":
            why.add(q.notebook, f"weak aloud: “{q.question}”")
    for part, asked in interview.also_asked:
        why.add(asked.notebook, f"{part.title}: {asked.about}")
    if not why and not still_open(interview):
        why.add(18, "nothing was weak: find the bugs of others")
    return [(notebook, short(reasons)) for number, reasons in why.items() if (notebook := notebook_named(number))]


def in_an_hour(notebooks: list[Notebook]) -> int:
    """Return how many of the notebooks, from the first on, fit into an hour."""
    return sum(total <= 60 for total in accumulate(notebook.minutes for notebook in notebooks))


def to_be_strong(interview: Interview) -> list[str]:
    """Return the notebooks of what was ticked fine."""
    fine = [criterion for criterion in interview.rubric if interview.ticks.get(criterion.name) == "fine"]
    return [f"{criterion.name}: {notebook}" for criterion in fine
            if (notebook := notebook_named(home(interview, criterion)))]


def practice_blocks(interview: Interview) -> list[Block]:
    """Return what to practise as blocks: what to do with an hour, the notebooks in their order, and what is open."""
    if interview.not_usable:
        return ["Mend the file, and run the checks again."]
    if interview.verdict is None or not interview.verdict.rows:
        then = "run the checks again" if interview.at_first else "write the first part, and run the checks"
        return [f"What to practise next is said once the file was judged: {then}."]
    blocks: list[Block] = []
    if found := practice(interview):
        fit = in_an_hour([notebook for notebook, _ in found])
        hour = ", then ".join(f"{notebook.name} ({notebook.minutes} minutes)" for notebook, _ in found[:fit])
        when = ["First", *["Then"] * (fit - 1), *["Later"] * (len(found) - fit)]
        blocks += [f"With an hour: {hour}.{' The rest later.' if fit < len(found) else ''}",
                   [["when", "notebook", "because"],
                    *([at, str(notebook), why] for at, (notebook, why) in zip(when, found))]]
    if fine := to_be_strong(interview):
        blocks += ["Fine, and to be strong when there is time:", fine]
    return [*blocks, still_open(interview)]


def home(interview: Interview, criterion: Criterion) -> int:
    """Return the number of the notebook where a line of the rubric is practised."""
    return criterion.notebook or interview.follow_up.notebook


def still_open(interview: Interview) -> str:
    """Say what the reader has not ticked yet; "" if each mark of the rubric is, and a question where there is time."""
    asked = [criterion for criterion in interview.rubric if interview.was_asked_for(criterion.name)]
    left = [criterion for criterion in asked if criterion.name not in interview.ticks]
    found = [f"{len(left)} of {len(asked)} marks of the rubric"] if left else []
    found += ["the questions aloud"] if ALOUD_MINUTES[interview.length] and not interview.aloud else []
    return f"Still open: {' and '.join(found)}." if found else ""


# --- The result ----------------------------------------------------------------------------------------------


def result_blocks(interview: Interview) -> list[Block]:
    """Return the result as blocks: what it was, how it went, and what to practise."""
    practise = practice_blocks(interview)
    return [summary(interview), *how_it_went(interview), *["What to practise:"] * (len(practise) > 1), *practise]


def result_html(interview: Interview) -> str:
    """Return the result as HTML, with links to the notebooks, which open beside the one that it is shown in."""
    blocks = result_blocks(interview)
    return re.sub(r"(\d\d [\w -]+) \((\d\d_\w+\.ipynb)\)", r'<a href="\2" target="_blank">\1</a>', twin_html(blocks))


def summary(interview: Interview) -> str:
    """Say which interview it was, and how far it came."""
    return (f"An interview of {interview.minutes} minutes, seed {interview.seed}: "
            f"{as_minutes(interview.clock.used)} minutes used, {plural(interview.released, 'part')} of "
            f"{len(interview.parts)} asked for.")


def how_it_went(interview: Interview) -> list[Block]:
    """Return the minutes, the change, the report, what the first checks found, and what was ticked."""
    blocks: list[Block] = []
    if interview.began and interview.clock.used:
        blocks.append(minutes_of_parts(interview))
    if interview.released and not interview.parts[interview.released - 1].stage:
        blocks += [f"The change that was asked for: {interview.follow_up.asks}", Code(interview.follow_up.code)]
    blocks += report(interview)
    if first := first_checks(interview):
        blocks += ["What did not hold at the first checks of a part:", first]
    ticked = [[c.name, mark, example(c, mark)] for c in interview.rubric if (mark := interview.ticks.get(c.name))]
    if ticked:
        blocks += ["What you ticked:", [["part", "mark", "like this"], *ticked]]
    if interview.aloud:
        marks = Counter(interview.aloud.values())
        blocks.append(f"{plural(len(interview.aloud), 'question')} answered aloud: {marks['strong']} strong, "
                      f"{marks['fine']} fine, {marks['weak']} weak.")
    return blocks


def example(criterion: Criterion, mark: str) -> str:
    """Return the example of a mark, and behind fine what strong would be."""
    strong = f" Strong would be: {criterion.strong}" if mark == "fine" else ""
    return f"{getattr(criterion, mark)}{strong}"


PAGE_HTML = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Mock interview, {day}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 3rem auto; padding: 0 1rem; }}
table {{ border-collapse: collapse; margin: 1rem 0; }}
th, td {{ text-align: left; vertical-align: top; padding: .3rem 1rem .3rem 0; border-bottom: 1px solid #8886; }}
td:first-child {{ white-space: nowrap; }} td:nth-child(2) {{ min-width: 5rem; }}
pre {{ white-space: pre-wrap; overflow-wrap: anywhere; font-size: 13px; }}
details {{ margin: .5rem 0; }} summary {{ cursor: pointer; }}
</style>
<h1>Mock interview, {day}</h1>
{content}
</html>
"""


def page_html(interview: Interview, day: date) -> str:
    """Return the result page: what to practise, how it went, and folded the short answers and the file."""
    folded = short_answers(interview)
    if interview.text is not None:
        folded.append((f"{FILE}, as it was judged", [Code(interview.text)]))
    parts = [twin_html([summary(interview)]), "<h2>What to practise</h2>", twin_html(practice_blocks(interview)),
             "<h2>How it went</h2>", twin_html(how_it_went(interview)), Folded(folded).html]
    return PAGE_HTML.format(day=day.isoformat(), content="\n".join(parts))


def save_page(interview: Interview, day: date | None = None) -> Path:
    """Write the result page beside the reader's file, and return its path.

    No page is written over: a second one gets a number. One that says the same is left as it is.
    """
    text = page_html(interview, day or date.today())
    number = 1
    while True:
        path = interview.folder / f"{PAGE}{f'_{number}' if number > 1 else ''}.html"
        try:
            write_new(path, text)
            return path
        except FileExistsError:
            if path.is_file() and path.read_text(encoding="utf-8", errors="replace") == text:
                return path
            number += 1


def write_new(path: Path, text: str) -> None:
    """Write a file that is not there yet, whole or not at all."""
    file = path.open("x", encoding="utf-8", newline="\n")
    try:
        with file:
            file.write(text)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
