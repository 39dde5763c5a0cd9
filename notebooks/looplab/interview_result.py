"""What a mock interview came to: what to practise next, the result, and the page that it is saved as."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from looplab.folded import Folded
from looplab.interview import FILE, NOTEBOOKS, Interview, minutes_of_parts, remarks, report, short_answers
from looplab.interview_brief import ALOUD_MINUTES, Criterion, Part
from looplab.interview_questions import QUESTIONS
from looplab.view import Block, Code, plural, twin_html

PAGE = "my_interview_result"
ON_THE_LOOP = ("loop", "exits", "follow-up")  # each rests on the one before it


# --- What to practise next -----------------------------------------------------------------------------------


def notebook_named(number: int) -> str:
    """Return the name of the notebook with a number, or "" if there is none."""
    found = sorted(NOTEBOOKS.glob(f"{number:02}_*.ipynb"))
    return found[0].name if found else ""


def not_there_yet(interview: Interview) -> Iterator[tuple[Part, str]]:
    """Yield the parts that do not hold, or were not reached, each with the reason."""
    said = remarks(interview)
    for remark in said:
        if remark.held < remark.of or not remark.of:
            yield remark.part, f"{remark.part.title}: {remark.held} of {remark.of} hold"
    for number, part in enumerate(interview.parts[len(said):], len(said) + 1):
        why = "asked for, and not checked" if number <= interview.released else "not reached"
        yield part, f"{part.title}: {why}"


def practice(interview: Interview) -> list[tuple[str, str]]:
    """Return what to practise next: the name of a notebook, and why; what the checks found comes first.

    Of the parts that rest on the loop only the first is named, for its fault may be that of the others. It is nothing
    while the file was not judged or cannot be used, and while nothing is weak but marks are open.
    """
    if interview.verdict is None or not interview.verdict.rows or interview.not_usable:
        return []
    why: dict[int, list[str]] = {}
    on_the_loop = 0
    for part, reason in not_there_yet(interview):
        on_the_loop += part.name in ON_THE_LOOP
        if part.name not in ON_THE_LOOP or on_the_loop == 1:
            why.setdefault(part.notebook, []).append(reason)
    for part, asked in interview.also_asked:
        why.setdefault(asked.notebook, []).append(f"{part.title}: {asked.about}")
    for criterion in interview.rubric:
        if interview.ticks.get(criterion.name) == "weak":
            why.setdefault(home(interview, criterion), []).append(f"{criterion.name}: you ticked weak")
    for q in QUESTIONS:
        if interview.aloud.get(q.question) == "weak":
            why.setdefault(q.notebook, []).append(f"you ticked weak: “{q.question}”")
    if not why and not still_open(interview):
        why[18] = ["nothing was weak: find the bugs of others"]
    for criterion in interview.rubric:
        if interview.ticks.get(criterion.name) == "fine":
            why.setdefault(home(interview, criterion), []).append(f"{criterion.name}, to be strong: {criterion.strong}")
    return [(name, "; ".join(reason.rstrip(".") for reason in reasons))
            for number, reasons in why.items() if (name := notebook_named(number))]


def home(interview: Interview, criterion: Criterion) -> int:
    """Return the number of the notebook where a line of the rubric is practised."""
    return criterion.notebook or interview.follow_up.notebook


def still_open(interview: Interview) -> str:
    """Say what the reader has not ticked yet; "" if each mark of the rubric is, and a question where there is time."""
    left = [criterion for criterion in interview.rubric if criterion.name not in interview.ticks]
    found = [f"{len(left)} of {len(interview.rubric)} marks of the rubric"] if left else []
    found += ["the questions aloud"] if ALOUD_MINUTES[interview.length] and not interview.aloud else []
    return f"Still open: {' and '.join(found)}." if found else ""


# --- The result ----------------------------------------------------------------------------------------------


def result_blocks(interview: Interview) -> list[Block]:
    """Return the result as blocks."""
    used = round(interview.clock.used / 60)
    blocks: list[Block] = [
        f"An interview of {interview.minutes} minutes, seed {interview.seed}: {plural(used, 'minute')} used, "
        f"{plural(interview.released, 'part')} of {len(interview.parts)} asked for."]
    if interview.began and interview.clock.used:
        blocks.append(minutes_of_parts(interview))
    if interview.released and not interview.parts[interview.released - 1].stage:
        blocks += [f"The change that was asked for: {interview.follow_up.asks}", Code(interview.follow_up.code)]
    blocks += report(interview)
    ticked = [[c.name, mark, example(c, mark)] for c in interview.rubric if (mark := interview.ticks.get(c.name))]
    if ticked:
        blocks += ["What you ticked:", [["part", "mark", "like this"], *ticked]]
    if interview.aloud:
        marks = Counter(interview.aloud.values())
        blocks.append(f"{plural(len(interview.aloud), 'question')} answered aloud: {marks['strong']} strong, "
                      f"{marks['fine']} fine, {marks['weak']} weak.")
    if interview.not_usable:
        return [*blocks, "Mend the file, and run the checks again."]
    if interview.verdict is None or not interview.verdict.rows:
        return [*blocks, "What to practise next is said once the file was judged: write the first part, and run the "
                         "checks."]
    if rows := [list(row) for row in practice(interview)]:
        blocks += ["What to practise next:", [["notebook", "because"], *rows]]
    return [*blocks, still_open(interview)]


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
td:not(:last-child) {{ white-space: nowrap; }}
pre {{ white-space: pre-wrap; overflow-wrap: anywhere; font-size: 13px; }}
details {{ margin: .5rem 0; }} summary {{ cursor: pointer; }}
</style>
<h1>Mock interview, {day}</h1>
{content}
</html>
"""


def page_html(interview: Interview, day: date) -> str:
    """Return the result page: the result, the short answers and the file folded, and links to the notebooks."""
    folded = short_answers(interview)
    if interview.text is not None:
        folded.append((f"{FILE}, as it was judged", [Code(interview.text)]))
    content = twin_html(result_blocks(interview))
    linked = re.sub(r"<td>(\d\d_\w+\.ipynb)</td>", r'<td><a href="\1">\1</a></td>', content)
    return PAGE_HTML.format(day=day.isoformat(), content=f"{linked}\n{Folded(folded).html}")


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
