"""The widgets of a mock interview: the room with the clock, the rubric, the questions, and the result page."""

from __future__ import annotations

import asyncio
from typing import Any

import ipywidgets as widgets

from looplab import view
from looplab.folded import Folded
from looplab.follow_ups import FOLLOW_UPS
from looplab.interview import FILE, Interview, opening, report, result_blocks, save_page
from looplab.interview_brief import ALOUD_MINUTES, BRIEF, LENGTHS, MARKS, PARTS, RUBRIC
from looplab.interview_questions import QUESTIONS
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
    parts = [(f"Part {n}: {part.title}", [*part.asks, f"If all of it holds, ask: {part.all_holds}"])
             for n, part in enumerate(PARTS, 1) if part.asks]
    changes = [(f"A change: {f.name}", [f.asks, Code(f.code), [str(check.__doc__) for check in f.checks]])
               for f in FOLLOW_UPS.values()]
    return Folded([("The brief", BRIEF), *parts, *changes])


# --- The room ------------------------------------------------------------------------------------------------


class RoomBench(Bench):
    """The interview itself: clock, brief, parts, checks. `interview` is its state."""

    def __init__(self, interview: Interview) -> None:
        self.interview = interview
        self.others: list[Bench] = []
        self._ticking: asyncio.Task[None] | None = None
        self._clock, self._say = view.area("", "clock"), view.area("", "say")
        self._asked, self._report = view.area("", "asked"), view.area("", "report")
        self.length = view.field(widgets.RadioButtons(
            options=[(f"{minutes} minutes", minutes) for minutes in LENGTHS], value=interview.minutes,
            description="Length"), "length", "ll-radios")
        self.seed = view.field(widgets.BoundedIntText(interview.seed, 0, 9999, description="Seed"), "seed", "ll-seed")
        self.buttons = {
            "start": view.button("Start the clock", "start", self.start_or_pause, "ll-main"),
            "file": view.button(f"Make {FILE}", "file", self.make_file),
            "next": view.button("First part", "next", self.next_part),
            "checks": view.button("Run checks", "checks", self.run_checks),
            "again": view.button("Start again", "again", self.start_again),
        }
        self.length.observe(self._chosen, "value")
        self.seed.observe(self._chosen, "value")
        choices = widgets.HBox([self.length, self.seed, view.controls(self.buttons["again"])])
        choices.add_class("ll-choices-row")
        super().__init__(choices, self._clock, self._say,
                         view.controls(*list(self.buttons.values())[:-1]), self._asked, self._report, hook="interview")
        self._show("Choose a length, and start the clock when you are ready.")

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
        made = self.interview.make_file()
        where = "It lies in the folder notebooks; open it from the file browser on the left."
        self._show(f"{FILE} is blank. {where}" if made else f"There is a {FILE} already; it stays as it is. {where}")

    @guarded
    def next_part(self, _: Any = None) -> None:
        """Release the next part."""
        interview = self.interview
        interview.released = min(interview.released + 1, len(interview.parts))
        part, count = interview.parts[interview.released - 1], len(interview.parts)
        last = " It is the last one: then comes the rubric, below." if interview.released == count else ""
        self._show(f"Part {interview.released} of {count}, {part.title.lower()}: about "
                   f"{part.minutes[interview.length]} minutes.{last}")

    @guarded
    def run_checks(self, _: Any = None) -> None:
        """Judge the file as it is now, and show the interviewer's report."""
        self._report.value = '<p class="ll-note">The checks run …</p>'
        try:
            self.interview.run_checks()
        finally:
            self._show(opening(self.interview))

    @guarded
    def _chosen(self, change: Any) -> None:
        old, chosen = self.interview, (self.length.value, self.seed.value)
        if not old.begun:
            self.start_again()
        elif chosen == (old.minutes, old.seed):
            self._show("We go on as before.")
        else:
            self._show(f"We go on with {old.minutes} minutes, seed {old.seed}. For a new interview of {chosen[0]} "
                       f"minutes, seed {chosen[1]}, press Start again.")

    @guarded
    def start_again(self, _: Any = None) -> None:
        """Drop the interview, and begin a new one of the length and seed that are chosen; the file stays as it is."""
        old = self.interview
        old.clock.pause()
        self.interview = Interview(self.length.value, self.seed.value, old.folder)
        stays = f" Your {FILE} stays as it is." if old.has_file else ""
        self._show(f"A new interview.{stays} Start the clock when you are ready.")

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
            self._show_clock()
            await asyncio.sleep(1)

    def _show_clock(self) -> None:
        clock = self.interview.clock
        state = "time is up" if clock.text == "00:00" else "running" if clock.runs else "paused"
        value = f'<p class="ll-clock" role="timer"><b>{clock.text}</b> {state}</p>'
        if value != self._clock.value:
            self._clock.value = value

    def _show(self, said: str) -> None:
        interview, released = self.interview, self.interview.released
        self._show_clock()
        self._say.value = view.sentence(f"{view.word('The interviewer:', 'user')} {escape(said)}")
        self.buttons["start"].description = (
            "Pause the clock" if interview.clock.runs else "Go on" if interview.clock.used else "Start the clock")
        self.buttons["next"].description = "Next part" if released else "First part"
        self.buttons["next"].disabled = released == len(interview.parts)
        self.buttons["again"].disabled = not interview.begun
        self._asked.value = asked_html(interview)
        self._report.value = report_html(interview)
        for other in self.others:
            other.refresh()

    def twin(self) -> list[Block]:
        """Return the brief, and the parts with their minutes."""
        interview = self.interview
        head = ["part", *(f"{minutes} minutes" for minutes in LENGTHS)]
        rows = [[part.title, *(str(m or "–") for m in part.minutes)] for part in PARTS]
        return [f"A mock interview of {interview.minutes} minutes; the clock is paused.", *BRIEF,
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
    """Return the brief and the released parts; all but the newest are folded."""
    released = interview.parts[: interview.released]
    parts = [("The brief", BRIEF), *((f"{n}. {p.title}", interview.asked(p)) for n, p in enumerate(released, 1))]
    shown = [f"<summary>{escape(title)}</summary>{twin_html(blocks)}</details>" for title, blocks in parts]
    folded = [f"<details>{part}" for part in shown[:-1]]
    return f'<div class="ll-asked">{"".join(folded)}<details open>{shown[-1]}</div>'


def report_html(interview: Interview) -> str:
    """Return the interviewer's report, once there is one."""
    if interview.verdict is None:
        return ""
    return f'<div class="ll-report"><p class="ll-label">The report</p>{twin_html(report(interview))}</div>'


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
        rows: list[Any] = []
        for i, criterion in enumerate(RUBRIC, 1):
            choice = self.choices[criterion.name] = tick_buttons(criterion.name, f"tick-{i}")
            choice.value = room.interview.ticks.get(criterion.name, NOT_TICKED)
            choice.observe(self._ticked, "value")
            examples = "".join(f"<dt>{mark}</dt><dd>{escape(getattr(criterion, mark))}</dd>" for mark in MARKS)
            rows += [choice, view.area(f'<dl class="ll-examples">{examples}</dl>')]
        super().__init__(*rows, hook="rubric")

    @guarded
    def _ticked(self, change: Any) -> None:
        name, mark = change["owner"].description, change["new"]
        self._room.interview.ticks.pop(name, None)
        if mark != NOT_TICKED:
            self._room.interview.ticks[name] = mark
        for other in self._room.others:
            other.refresh()

    def refresh(self) -> None:
        """Show the ticks of the interview: none if it is a new one."""
        for name, choice in self.choices.items():
            choice.value = self._room.interview.ticks.get(name, NOT_TICKED)

    def twin(self) -> list[Block]:
        """Return the rubric as a table."""
        return [[["part", *MARKS], *([c.name, c.weak, c.fine, c.strong] for c in RUBRIC)]]


class QuestionBench(Bench):
    """One question at a time: answer it aloud, then look at ours, then tick how it went."""

    def __init__(self, room: RoomBench) -> None:
        self._room, self._order, self.place, self.shown = room, room.interview.questions, 0, 0
        self._say, self._answer = view.area("", "question"), view.area("", "answer")
        self._count = view.area("", "count")
        self.tick = tick_buttons("How was it?", "tick")
        self.tick.observe(self._ticked, "value")
        self.buttons = {"more": view.button("Show the answer", "more", self.more, "ll-main"),
                        "next": view.button("Next question", "next-question", self.next)}
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
        self._show()

    @guarded
    def next(self, _: Any = None) -> None:
        """Ask the next question; after the last comes the first."""
        self.place, self.shown = (self.place + 1) % len(QUESTIONS), 0
        self._show()

    @guarded
    def _ticked(self, change: Any) -> None:
        aloud = self._room.interview.aloud
        aloud.pop(self.question.question, None)
        if change["new"] != NOT_TICKED:
            aloud[self.question.question] = change["new"]
        self._show_count()
        for other in self._room.others:
            other.refresh()

    def _show(self) -> None:
        q = self.question
        self._say.value = view.sentence(f"<b>{escape(q.topic.capitalize())}.</b> {escape(q.question)}")
        lines = [q.answer, f"Then: {q.then}", q.reply][: self.shown]
        self._answer.value = "".join(view.note(line) for line in lines)
        self.buttons["more"].description = MORE[self.shown]
        self.buttons["more"].disabled = self.shown == 3
        self.tick.value = self._room.interview.aloud.get(q.question, NOT_TICKED)
        self._show_count()

    def _show_count(self) -> None:
        ticked = plural(len(self._room.interview.aloud), "question")
        self._count.value = view.note(f"Question {self.place + 1} of {len(QUESTIONS)}; {ticked} ticked.")

    def refresh(self) -> None:
        """Ask in the order of the interview's seed."""
        if self._order != self._room.interview.questions:
            self._order, self.place, self.shown = self._room.interview.questions, 0, 0
        self._show()

    def twin(self) -> list[Block]:
        """Return the question that is asked now."""
        return [f"Question {self.place + 1} of {len(QUESTIONS)}, on {self.question.topic}: {self.question.question}",
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
        path = save_page(self._room.interview)
        self._saved.value = view.note(f"Saved as {path.name}, in the folder notebooks; any browser opens it.")

    def refresh(self) -> None:
        """Show what the interview has come to."""
        self._page.value = f'<div class="ll-report">{twin_html(result_blocks(self._room.interview))}</div>'

    def twin(self) -> list[Block]:
        """Return the result as it is now."""
        return result_blocks(self._room.interview)


def mock_interview(minutes: int = 45, seed: int = 1) -> RoomBench:
    """Open the room of a mock interview of 25, 45 or 60 minutes.

    `seed` draws the change that is asked for at the end, and the order of the questions. Nothing is written before a
    button is pressed. Raises ValueError for another length.
    """
    return RoomBench(Interview(minutes, seed))
