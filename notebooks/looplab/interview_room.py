"""The widgets of a mock interview: the room with the clock, the rubric, the questions, and the result page."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from looplab import view
from looplab.folded import Folded
from looplab.follow_ups import FOLLOW_UPS, sentence_of
from looplab.interview import (FILE, NOTEBOOKS, STATE, Interview, as_minutes, headline, holds_another, keep, kept,
                               opening, report, short_answers)
from looplab.interview_brief import ALOUD_MINUTES, BRIEF, LENGTHS, MARKS, PARTS, RUBRIC
from looplab.interview_questions import QUESTIONS
from looplab.interview_result import result_blocks, result_html, save_page
from looplab.keeping import put_aside
from looplab.view import Bench, Block, Code, escape, guarded, plural, twin_html

NOT_TICKED = "not yet"
MORE = ("Show the answer", "What comes next?", "Show that answer", "That is all")


# --- What can be read folded ---------------------------------------------------------------------------------


def all_questions(topic: str) -> Folded:
    """Return the questions on a topic with their answers folded; raise ValueError for a topic there is not."""
    topics = list(dict.fromkeys(question.topic for question in QUESTIONS))
    if topic not in topics:
        raise ValueError(f"the topics are {', '.join(topics)}")
    return Folded((q.question, [q.answer, f"Then: {q.then}", q.reply]) for q in QUESTIONS if q.topic == topic)


def interviewer_sheet() -> Folded:
    """Return what a person needs who plays the interviewer: the brief, the parts, the changes."""
    parts = [(f"Part {n}: {part.title}", [*part.asks, f"If all of it holds, ask: {part.all_holds}", part.answer])
             for n, part in enumerate(PARTS, 1) if part.asks]
    changes = [(f"A change: {f.name}", [f.asks, Code(f.code), [sentence_of(check) for check in f.checks]])
               for f in FOLLOW_UPS.values()]
    return Folded([("The brief", BRIEF), *parts, *changes])


# --- The room ------------------------------------------------------------------------------------------------


class RoomBench(Bench):
    """The interview itself: clock, brief, parts, checks. `interview` is its state; one that was left goes on.

    `asked` is the one that the cell asks for, before anything was done: what is stored in the notebook shows it, so
    that a notebook run again says the same, whatever the reader's own interview came to.
    """

    def __init__(self, asked: Interview) -> None:
        said = "Choose a length, and start the clock when you are ready."
        try:
            left = kept(asked.folder)
        except ValueError as error:
            left, said = None, f"{error} {said}"
        self.asked, self.interview = asked, left or Interview(asked.minutes, asked.seed, asked.folder)
        self.others: list[Bench] = []
        self._not_kept = ""
        self._ticking: asyncio.Task[None] | None = None
        self._told = ""
        self._clock, self._say = view.area("", "clock"), view.area("", "say")
        self._asked, self._report = view.area("", "asked"), view.area("", "report")
        self._headline = view.area("", "headline")
        self.length = view.field(widgets.RadioButtons(
            options=[(f"{minutes} minutes", minutes) for minutes in LENGTHS], value=asked.minutes,
            description="Length"), "length", "ll-radios")
        self.seed = view.field(widgets.Text(str(asked.seed), description="Seed", continuous_update=False),
                               "seed", "ll-seed")
        self.buttons = {
            "start": view.button("Start the clock", "start", self.start_or_pause, "ll-main", "ll-once"),
            "file": view.button(f"Make {FILE}", "file", self.make_file),
            "next": view.button("First part", "next", self.next_part, "ll-once"),
            "checks": view.button("Run checks", "checks", self.run_checks),
            "again": view.button("Start again", "again", self.start_again),
            "sure": view.button("Yes, start again", "sure", self.start_anew),
            "aside": view.button("Start again, and keep my file under another name", "aside", self.put_aside),
        }
        *first, again, sure, aside = self.buttons.values()
        self.length.observe(self._chosen, "value")
        self.seed.observe(self._chosen, "value")
        choices = widgets.HBox([self.length, self.seed, view.controls(again)])
        choices.add_class("ll-choices-row")
        super().__init__(choices, self._clock, self._say, view.controls(sure, aside),
                         view.controls(*first, self._headline), self._asked, self._report, hook="interview")
        self._show(f"{left_over(left)}{self._for_another()}" if left else said)

    @guarded
    def start_or_pause(self, _: Any = None) -> None:
        """Start the clock, or pause it."""
        clock = self.interview.clock
        if clock.runs:
            clock.pause()
            self._show("The clock is paused.")
        else:
            clock.start()
            self._show("Read the brief, and ask for the first part." if not self.interview.released else "Go on.")
            self._tick()

    @guarded
    def make_file(self, _: Any = None) -> None:
        """Make the blank file, unless there is one."""
        made, in_the_way = self.interview.make_file(), self.interview.in_the_way
        where = "It lies in the folder notebooks; open it from the file browser on the left."
        there = in_the_way or f"There is a {FILE} already; it stays as it is. {where}"
        self._show(f"{FILE} is blank. {where} Save it before you run the checks." if made else there)

    @guarded
    def next_part(self, _: Any = None) -> None:
        """Release the next part."""
        interview = self.interview
        part, count = interview.release(), len(interview.parts)
        paused = "" if interview.clock.runs else (
            f" The clock does not run: press {self.buttons['start'].description}.")
        last = " It is the last one: then comes the rubric, below." if interview.released == count else ""
        self._show(f"Part {interview.released} of {count}, {part.title.lower()}: about "
                   f"{part.minutes[interview.length]} minutes.{last}{paused}")

    @guarded
    def run_checks(self, _: Any = None) -> None:
        """Judge the file as it is now, and show the interviewer's report; until then no button can be pressed."""
        interview = self.interview
        for button in self.buttons.values():
            button.disabled = True
        self._headline.value = '<span class="ll-muted">The checks run …</span>'
        self._report.value = ""
        try:
            interview.run_checks()
        finally:
            judged = interview.verdict and interview.verdict.rows and not interview.not_usable
            last = " The rubric comes next." if judged and interview.judged == len(interview.parts) else ""
            self._show(interview.not_saved or opening(interview) + last)

    @guarded
    def _chosen(self, change: Any) -> None:
        old, seed = self.interview, self.seed.value.strip()
        if not (seed.isascii() and seed.isdecimal() and len(seed) < 5):
            self.seed.value = str(old.seed)
            self._show(f"“{seed}” is no seed, which is a whole number from 0 to 9999: it is {old.seed} again.")
        elif not old.begun:
            self._begin("")
        else:
            another = self._for_another()
            self._show(f"We go on with {old.minutes} minutes, seed {old.seed}.{another}" if another else
                       "We go on as before.")

    def _for_another(self) -> str:
        """Say how to come to the interview that is chosen, if it is another one than this."""
        chosen = self.length.value, int(self.seed.value)
        if chosen == (self.interview.minutes, self.interview.seed):
            return ""
        return " For a new interview of {} minutes, seed {}, press Start again.".format(*chosen)

    @guarded
    def start_again(self, _: Any = None) -> None:
        """Ask whether the interview is to end; another button says yes, so that a double click does not."""
        self._show("This ends the interview: clock, marks and report begin anew. Press Yes, start again if you mean "
                   "it.", ask=True)

    @guarded
    def start_anew(self, _: Any = None) -> None:
        """Begin a new interview, of the length and seed that are chosen; the file stays as it is."""
        self._begin(f" Your {FILE} stays as it is." if self.interview.has_file else "")

    @guarded
    def put_aside(self, _: Any = None) -> None:
        """Give the file a name with a number, and begin a new interview."""
        if self.interview.has_file:
            self._begin(f" Your file is now {put_aside(self.interview.file)}.")
        else:
            self._show(self.interview.in_the_way or f"There is no {FILE} to keep.")

    def _begin(self, said: str) -> None:
        old = self.interview
        old.clock.pause()
        self.keep()
        if old.begun and (old.folder / STATE).is_file():
            said += f" The parts and marks of the last one are now in {put_aside(old.folder / STATE)}."
        self._told = ""
        self.interview = Interview(self.length.value, int(self.seed.value), old.folder)
        self._show(f"A new interview.{said} Start the clock when you are ready.")

    def _tick(self) -> None:
        """Show the clock each second while it runs; without a notebook it is shown when something happens."""
        if self._ticking:
            self._ticking.cancel()
        try:
            self._ticking = asyncio.get_running_loop().create_task(self._keep_ticking())
        except RuntimeError:
            self._ticking = None

    async def _keep_ticking(self) -> None:
        while self.interview.clock.runs:
            self.beat()
            await asyncio.sleep(1)

    def beat(self) -> None:
        """Do what is due each second; what another notebook keeps is left alone until a button is pressed here."""
        self._show_clock()
        self.keep_pace()
        if int(self.interview.clock.used) % 20 == 0 and not holds_another(self.interview):
            self.keep()

    def _show_clock(self) -> None:
        clock = self.interview.clock
        state = "time is up" if clock.text == "00:00" else "running" if clock.runs else "paused"
        value = f'<p class="ll-clock" role="timer"><b>{clock.text}</b> {state}{escape(pace(self.interview))}</p>'
        if value != self._clock.value:
            self._clock.value = value

    def keep_pace(self) -> None:
        """Say once that the minutes of a part are over."""
        part = self.interview.over
        if part and part.name != self._told:
            self._told = part.name
            self._speak(f"The minutes for “{part.title}” are over. Finish your line, say what is missing, and go on.")

    def _speak(self, said: str) -> None:
        self._say.value = view.sentence(f"{view.word('The interviewer:', 'user')} {escape(said)}")

    def keep(self) -> None:
        """Keep the interview once it has begun, so that a restart of the kernel loses nothing but the report.

        Say once if it cannot be kept, and what became of a file in its place.
        """
        said = keep(self.interview) if self.interview.begun else ""
        if said and said != self._not_kept:
            self.show_error(said)
        self._not_kept = said

    def _show(self, said: str, ask: bool = False) -> None:
        interview, released = self.interview, self.interview.released
        self.keep()
        self._show_clock()
        is_off = {"next": released == len(interview.parts), "again": not interview.begun}
        view.switch_off((button, is_off.get(name, False)) for name, button in self.buttons.items())
        self.buttons["start"].description = (
            "Pause the clock" if interview.clock.runs else "Go on" if interview.clock.used else "Start the clock")
        self.buttons["next"].description = "Next part" if released else "First part"
        self.buttons["sure"].layout.display = None if ask else "none"
        self.buttons["aside"].layout.display = None if ask and interview.has_file else "none"
        self._speak(said)
        self._headline.value = f'<span class="ll-muted">{escape(headline(interview))}</span>'
        self._asked.value = asked_html(interview)
        self._report.value = report_html(interview)
        for other in self.others:
            other.refresh()

    def twin(self) -> list[Block]:
        """Return the brief, and the parts with their minutes."""
        head = ["part", *(f"{minutes} minutes" for minutes in LENGTHS)]
        rows = [[part.title, *(str(m or "–") for m in part.minutes)] for part in PARTS]
        return [f"A mock interview of {self.asked.minutes} minutes; the clock is paused.", *BRIEF,
                [head, *rows, ["Questions aloud", *(str(m or "–") for m in ALOUD_MINUTES)]]]

    # --- The benches that go with it ---

    def rubric(self) -> RubricBench:
        """Return the rubric, for the reader to tick."""
        return self._with(RubricBench(self))

    def ask_aloud(self) -> QuestionBench:
        """Return the questions, one at a time, to be answered aloud."""
        return self._with(QuestionBench(self))

    def result(self) -> ResultBench:
        """Return the result page."""
        return self._with(ResultBench(self))

    def _with(self, bench: Any) -> Any:
        self.others.append(bench)
        return bench


def asked_html(interview: Interview) -> str:
    """Return the minutes of the parts, the brief and the released parts; all but the newest are folded."""
    minutes = [["part", "minutes"], *([p.title, str(p.minutes[interview.length])] for p in interview.parts)]
    minutes.append(["Questions aloud", str(ALOUD_MINUTES[interview.length] or "–")])
    released = interview.parts[: interview.released]
    parts = [("The parts and their minutes", [minutes]), ("The brief", BRIEF),
             *((f"{n}. {p.title}", interview.asked(p)) for n, p in enumerate(released, 1))]
    shown = [f"<summary>{escape(title)}</summary>{twin_html(blocks)}</details>" for title, blocks in parts]
    for n, part in enumerate(released, 1 + len(shown) - len(released)):
        nudge = Folded([("Stuck for two minutes?", [part.nothing])]).html
        shown[n - 1] = f"{shown[n - 1].removesuffix('</details>')}{nudge}</details>"
    folded = [f"<details>{part}" for part in shown[:-1]]
    return f'<div class="ll-asked">{"".join(folded)}<details open>{shown[-1]}</div>'


def report_html(interview: Interview) -> str:
    """Return the interviewer's report, once there is one, and the short answers folded."""
    if interview.verdict is None:
        return ""
    answers = Folded(short_answers(interview)).html
    return f'<div class="ll-report"><p class="ll-label">The report</p>{twin_html(report(interview))}{answers}</div>'


def pace(interview: Interview) -> str:
    """Say how far the newest part is in its minutes; "" before the first."""
    used = interview.used_by_part()
    if not used:
        return ""
    part, seconds = used[-1]
    title, most = part.title, part.minutes[interview.length]
    if interview.aloud_began is not None:
        title, most, seconds = "Questions aloud", ALOUD_MINUTES[interview.length], interview.used_aloud
    return f" · {title}: {as_minutes(seconds)}{f' of {most} minutes' if most else ''}"


def left_over(left: Interview) -> str:
    """Say that an interview that was left goes on, and where."""
    return (f"We go on with the interview of {left.minutes} minutes, seed {left.seed}, left at {left.clock.text} "
            f"after {plural(left.released, 'part')}; its marks are back. Run the checks for a report.")


# --- Rubric, questions, result -------------------------------------------------------------------------------


def tick_buttons(name: str, hook: str) -> Any:
    """Return the choice among the marks."""
    made = widgets.RadioButtons(options=[NOT_TICKED, *MARKS], value=NOT_TICKED, description=name)
    return view.field(made, hook, "ll-radios")


class RubricBench(Bench):
    """One choice for each line of the rubric, with an example of each mark below it."""

    def __init__(self, room: RoomBench) -> None:
        self._room = room
        self.choices: dict[str, Any] = {}
        self._rows: dict[str, list[Any]] = {}
        for i, criterion in enumerate(RUBRIC, 1):
            choice = self.choices[criterion.name] = tick_buttons(criterion.name, f"tick-{i}")
            choice.value = room.interview.ticks.get(criterion.name, NOT_TICKED)
            choice.observe(self._ticked, "value")
            examples = "".join(f"<dt>{mark}</dt><dd>{escape(getattr(criterion, mark))}</dd>" for mark in MARKS)
            self._rows[criterion.name] = [choice, view.area(f'<dl class="ll-examples">{examples}</dl>')]
        super().__init__(*(row for rows in self._rows.values() for row in rows), hook="rubric")
        self.refresh()

    @guarded
    def _ticked(self, change: Any) -> None:
        name, mark = change["owner"].description, change["new"]
        self._room.interview.ticks.pop(name, None)
        if mark != NOT_TICKED:
            self._room.interview.ticks[name] = mark
        self._room.keep()
        for other in self._room.others:
            other.refresh()

    def refresh(self) -> None:
        """Show the lines of the interview's parts, and its ticks: none if it is a new one."""
        for name, rows in self._rows.items():
            for row in rows:
                row.layout.display = None if name in {c.name for c in self._room.interview.rubric} else "none"
        for name, choice in self.choices.items():
            choice.disabled = not self._room.interview.was_asked_for(name)
            choice.value = self._room.interview.ticks.get(name, NOT_TICKED)

    def twin(self) -> list[Block]:
        """Return the rubric as a table."""
        return [[["part", *MARKS], *([c.name, c.weak, c.fine, c.strong] for c in self._room.asked.rubric)]]


class QuestionBench(Bench):
    """One question at a time: answer it aloud, then look at ours, then tick how it went."""

    def __init__(self, room: RoomBench) -> None:
        self._room = room
        self._begin_with_what_is_open()
        self._say, self._answer = view.area("", "question"), view.area("", "answer")
        self._count = view.area("", "count")
        self.tick = tick_buttons("How was it?", "tick")
        self.tick.observe(self._ticked, "value")
        self.buttons = {"more": view.button("Show the answer", "more", self.more, "ll-main"),
                        "next": view.button("Next question", "next-question", self.next),
                        "back": view.button("Question before", "question-before", self.back)}
        super().__init__(self._say, view.controls(*self.buttons.values()), self._answer, self.tick, self._count,
                         hook="aloud")
        self._show()

    @property
    def question(self) -> Any:
        """The question that is asked now."""
        return QUESTIONS[self._order[self.place]]

    @guarded
    def more(self, _: Any = None) -> None:
        """Show the answer; then the question that follows; then its answer."""
        self.shown = min(self.shown + 1, 3)
        self._begin()

    @guarded
    def next(self, _: Any = None) -> None:
        """Ask the next question; after the last comes the first."""
        self.place, self.shown = (self.place + 1) % len(QUESTIONS), 0
        self._begin()

    @guarded
    def back(self, _: Any = None) -> None:
        """Go back to the question before."""
        self.place, self.shown = max(0, self.place - 1), 0
        self._show()

    @guarded
    def _ticked(self, change: Any) -> None:
        aloud = self._room.interview.aloud
        aloud.pop(self.question.question, None)
        self._room.interview.begin_aloud()
        if change["new"] != NOT_TICKED:
            aloud[self.question.question] = change["new"]
        self._show_count()
        self._room.keep()
        for other in self._room.others:
            other.refresh()

    def _begin_with_what_is_open(self) -> None:
        interview = self._room.interview
        self._order, self.shown = interview.questions, 0
        self.place = next((place for place, i in enumerate(self._order)
                           if QUESTIONS[i].question not in interview.aloud), 0)

    def _begin(self) -> None:
        self._room.interview.begin_aloud()
        self._room.keep()
        self._show()

    def _show(self) -> None:
        q = self.question
        view.switch_off([(self.buttons["back"], not self.place), (self.buttons["more"], self.shown == 3)])
        self._say.value = view.sentence(f"<b>{escape(q.topic.capitalize())}.</b> {escape(q.question)}")
        lines = [q.answer, f"Then: {q.then}", q.reply][: self.shown]
        self._answer.value = "".join(f'<p class="ll-answer">{escape(line)}</p>' for line in lines)
        is_last = self.place == len(QUESTIONS) - 1
        self.buttons["next"].description = "Begin again with the first" if is_last else "Next question"
        self.buttons["more"].description = MORE[self.shown]
        self.tick.value = self._room.interview.aloud.get(q.question, NOT_TICKED)
        self._show_count()

    def _show_count(self) -> None:
        ticked = plural(len(self._room.interview.aloud), "question")
        self._count.value = view.note(f"Question {self.place + 1} of {len(QUESTIONS)}; {ticked} ticked.")

    def refresh(self) -> None:
        """Ask in the order of the interview's seed, from the first that is not ticked."""
        if self._order != self._room.interview.questions:
            self._begin_with_what_is_open()
        self._show()

    def twin(self) -> list[Block]:
        """Return the question that is asked first."""
        first = QUESTIONS[self._room.asked.questions[0]]
        return [f"Question 1 of {len(QUESTIONS)}, on {first.topic}: {first.question}",
                "Answer it aloud, then look at the answer."]


class ResultBench(Bench):
    """What the interview came to, and what to practise next; it is saved when the reader says so."""

    def __init__(self, room: RoomBench) -> None:
        self._room = room
        self._page, self._saved = view.area("", "page"), view.area("", "saved")
        self.save_button = view.button("Save as a page", "save", self.save, "ll-main")
        super().__init__(self._page, view.controls(self.save_button), self._saved, hook="result")
        self.refresh()

    @guarded
    def save(self, _: Any = None) -> None:
        """Write the result page beside the reader's file."""
        self._saved.value = ""
        path = save_page(self._room.interview)
        self._saved.value = view.note(f"Saved as {path.name}, in the folder notebooks; any browser opens it.")

    def refresh(self) -> None:
        """Show what the interview has come to; what was saved may be no longer that."""
        self._saved.value = ""
        self._page.value = f'<div class="ll-report">{result_html(self._room.interview)}</div>'

    def twin(self) -> list[Block]:
        """Return what the result looks like before the interview."""
        return result_blocks(self._room.asked)


ROOMS: dict[Path, RoomBench] = {}


def mock_interview(minutes: int = 45, seed: int = 1, folder: Path = NOTEBOOKS) -> RoomBench:
    """Open the room of a mock interview of 25, 45 or 60 minutes.

    `seed`, from 0 to 9999, draws the change that is asked for at the end, and the order of the questions; the reader's
    file lies in `folder`. There is one room for a folder: an interview that has begun goes on when the cell is run
    again. Nothing is written before a button is pressed. Raises ValueError for another length or seed.
    """
    asked, place = Interview(minutes, seed, folder), folder.resolve()
    if place in ROOMS:
        ROOMS[place].asked = asked
        ROOMS[place].length.value, ROOMS[place].seed.value = minutes, str(seed)
    else:
        ROOMS[place] = RoomBench(asked)
    return ROOMS[place]
