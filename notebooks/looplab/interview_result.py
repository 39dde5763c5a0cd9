"""What a mock interview came to: what to practise next, the result, and the page that it is saved as."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from looplab.folded import Folded
from looplab.interview import (FILE, NOTEBOOKS, Interview, as_minutes, ever_failed, first_few, minutes_of_parts,
                               own_failures, remarks, report, short_answers)
from looplab.interview_brief import ALOUD_MINUTES, Criterion
from looplab.interview_questions import QUESTIONS
from looplab.view import Block, Code, plural, twin_html

PAGE = "my_interview_result"


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


@dataclass
class Reasons:
    """Why to practise with a notebook, and how large the trouble is: in runs of the checks, then in checks."""

    runs: int = 0
    checks: int = 0
    said: list[str] = field(default_factory=list)


def reasons(interview: Interview) -> Iterator[tuple[int, int, int, str]]:
    """Yield the numbers of notebooks to practise with, each with the size of the trouble and the reason.

    The size of a part's trouble is first the number of runs in which one of its checks failed, and one more if one
    still does; then the number of those checks, because one fault may fail several. What follows from a fault in a
    part before it does not count. A weak mark is one run.
    """
    own, said = own_failures(interview), remarks(interview)
    for remark in said:
        part, runs = remark.part, interview.failed_runs.get(remark.part.name, 0)
        failed = interview.failed.get(part.name, [])
        size = runs + bool(own[part.name]), len({*own[part.name], *failed})
        if remark.held < remark.of or not remark.of:
            before = "" if own[part.name] or not remark.of else ", perhaps because of a part before it"
            yield part.notebook, *size, f"{part.title}: {remark.held} of {remark.of} hold{before}"
        elif runs:
            yield part.notebook, *size, (f"{part.title}: held after {plural(runs + 1, 'run')} of the checks; "
                                         f"{plural(len(failed), 'check')} failed on the way")
    for criterion in interview.rubric:
        if interview.ticks.get(criterion.name) == "weak":
            again = ", so answer the questions once more, aloud" if criterion.name == "Aloud" else ""
            yield home(interview, criterion), 1, 0, f"{criterion.name}: you ticked weak{again}"
    for number, part in enumerate(interview.parts[len(said):], len(said) + 1):
        found = "asked for, and not checked" if number <= interview.released else "not reached"
        yield part.notebook, 0, 0, f"{part.title}: {found}"
    weak = [q for q in QUESTIONS if interview.aloud.get(q.question) == "weak"]
    for number in dict.fromkeys(q.notebook for q in weak):
        yield number, 0, 0, f"weak aloud: {first_few([f'“{q.question}”' for q in weak if q.notebook == number])}"
    for title, number in dict.fromkeys((part.title, asked.notebook) for part, asked in interview.also_asked):
        about = [asked.about for part, asked in interview.also_asked if (part.title, asked.notebook) == (title, number)]
        yield number, 0, 0, f"{title}: {', '.join(about)}"


def practice(interview: Interview) -> list[tuple[Notebook, str]]:
    """Return what to practise next: a notebook, and why; the largest trouble first.

    Without trouble come the parts that were not reached, the questions that were ticked weak, and what no check is
    about. It is nothing while the file was not judged or cannot be used, and while nothing is weak but marks are open.
    """
    if interview.verdict is None or not interview.verdict.rows or interview.not_usable:
        return []
    why: dict[int, Reasons] = {}
    for number, runs, checks, reason in reasons(interview):
        found = why.setdefault(number, Reasons())
        found.runs += runs
        found.checks += checks
        found.said.append(reason)
    if not why and not still_open(interview):
        why[18] = Reasons(said=["nothing was weak: find the bugs of others"])
    order = sorted(why, key=lambda number: (why[number].runs, why[number].checks), reverse=True)
    return [(notebook, "; ".join(why[number].said)) for number in order if (notebook := notebook_named(number))]


def in_an_hour(notebooks: list[Notebook]) -> int:
    """Return how many of the notebooks, from the first on, fit into an hour."""
    return sum(total <= 60 for total in accumulate(notebook.minutes for notebook in notebooks))


def to_be_strong(interview: Interview) -> list[str]:
    """Return the notebooks of what was ticked fine, each once, and none that is to be practised anyway."""
    told = {notebook for notebook, _ in practice(interview)}
    found: dict[Notebook, list[str]] = {}
    for criterion in interview.rubric:
        notebook = notebook_named(home(interview, criterion))
        if interview.ticks.get(criterion.name) == "fine" and notebook and notebook not in told:
            found.setdefault(notebook, []).append(criterion.name)
    return [f"{', '.join(names)}: {notebook}" for notebook, names in found.items()]


def practice_blocks(interview: Interview) -> list[Block]:
    """Return what to practise as blocks: what to do with an hour, the notebooks in their order, and what is open."""
    if interview.not_usable:
        return ["Mend the file, and run the checks again."]
    if interview.verdict is None or not interview.verdict.rows:
        then = "run the checks again" if interview.failed else "write the first part, and run the checks"
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
    """Return the minutes, the change, the report, what failed at any run, and what was ticked.

    What is new since the run before belongs to the room alone.
    """
    blocks: list[Block] = []
    if interview.began and interview.clock.used:
        blocks.append(minutes_of_parts(interview))
    if interview.released and not interview.parts[interview.released - 1].stage:
        blocks += [f"The change that was asked for: {interview.follow_up.asks}", Code(interview.follow_up.code)]
    blocks += [block for block in report(interview) if block != interview.since]
    if failed := ever_failed(interview):
        blocks += ["What failed when the checks ran, without what follows from a fault in a part before it; several "
                   "checks may fail for one fault:", failed]
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
    strong = f" Strong: {criterion.strong[0].lower()}{criterion.strong[1:]}" if mark == "fine" else ""
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
