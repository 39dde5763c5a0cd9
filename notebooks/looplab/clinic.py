"""The bug clinic: a run of a broken loop is shown; the reader says what is wrong, finds the line, and writes a test.

The test is tried on our loop and on the broken one, in a process that is ended if it does not end by itself.
"""

from __future__ import annotations

import base64
import functools
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from types import FunctionType
from typing import Any

import ipywidgets as widgets

from agentloop import AgentResult, Json
from looplab import plots, sandbox, view
from looplab.answers import CannotSend, Packing, places_left
from looplab.faults import FAULTS, LEVELS, Fault, broken_text, our_text
from looplab.folded import Folded
from looplab.scenes import Scene, Section, lines_of, place_of, scene_of, scene_of_ours, sections_of
from looplab.view import Bench, Block, Code, escape, guarded

SANDBOX = sandbox.Sandbox("looplab.faults")
HEIGHT, LISTING = 300, 20 * 19  # pixels of the message list, and of the listing: whole lines
STEPS = ("diagnosed", "located", "caught")
AREAS = ("say", "run", "specs", "plot", "diagnosis", "listing", "found", "hints", "verdict", "progress")
SKELETON = """def test(agentloop):
    result = run(agentloop, agentloop.weather_script())
    assert ...


clinic.judge(test)"""


# --- A case in words -----------------------------------------------------------------------------------------


def get_fault(number: int) -> Fault:
    """Return a fault by its number; raise ValueError if there is none."""
    if number not in range(1, len(FAULTS) + 1):
        raise ValueError(f"the cases are 1 to {len(FAULTS)}")
    return FAULTS[number - 1]


def options_of(fault: Fault) -> list[str]:
    """Return four diagnoses: the right one, two near misses, and another case's; always in the same order."""
    chance = Random(fault.number)
    others = [other.wrong for other in FAULTS if other.level == fault.level and other is not fault]
    options = [fault.wrong, *fault.misses, chance.choice(others)]
    chance.shuffle(options)
    return options


def hints_of(fault: Fault) -> list[str]:
    """Return three hints, each stronger than the one before."""
    function, section = place_of(fault)
    return [fault.hint, f"{fault.rule} {beside_ours(fault)}", f"The line is in {function}, in section {section}."]


def beside_ours(fault: Fault) -> str:
    """Say how our loop ends where the broken one ends otherwise; where both end alike, what differs."""
    broken, ours = scene_of(fault), scene_of_ours(fault)
    if ours is None:
        return "Ours refuses this before the run."
    if ours.exit != broken.exit:
        return f"On the same run ours ends with {ours.exit}."
    one, other = ((*vars(scene.result).values(), scene.called) for scene in (broken, ours))
    names = ("the exit", "the answer", "the steps", "the tokens", "the list", "the calls that were run")
    differ = [name for name, left, right in zip(names, one, other) if left != right]
    return f"On the same run ours ends with {ours.exit} too. What differs: {', '.join(differ)}."


def answer_of(fault: Fault) -> str:
    """Return the source of our test, as a reader would write it in a cell."""
    lines = inspect.getsource(fault.test).rstrip().split("\n")
    return "\n".join(lines[next(i for i, line in enumerate(lines) if line.startswith("def ")):])


def change_of(fault: Fault) -> str:
    """Write the change of a fault as a diff."""
    old, new = (textwrap.dedent(text).split("\n") for text in (fault.old, fault.new))
    return "\n".join([*(f"- {line}" for line in old), *(f"+ {line}" for line in new)])


@functools.cache
def plot_of(fault: Fault) -> plots.Plot:
    """Draw the tokens of a case's run, step by step."""
    scene = scene_of(fault)
    result = scene.result or AgentResult(scene.exit, None, 0, 0, scene.messages)
    return plots.spend_by_step(result, scene.specs, token_budget=scene.token_budget, max_steps=scene.max_steps)


# --- Judging -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judgement:
    """What became of a reader's test: whether it tells the two loops apart, and a text that says it."""

    caught: bool
    text: str


def judge_test(number: int, test: Any) -> Judgement:
    """Try a test on our loop and on a broken one, in another process, for a limited time."""
    case, packing = f"Case {number}", Packing()
    if not isinstance(test, FunctionType):
        said = "not yet. Write a function test(agentloop), and give its name without brackets."
        return Judgement(False, f"{case}: {said}")
    if test.__code__.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return Judgement(False, f"{case}: calling this test runs none of its lines. Write it without yield and async.")
    if places_left(test):
        said = "not yet. Write the test in the place of the three dots, and run the cell again."
        return Judgement(False, f"{case}: {said}")
    try:
        part = packing.write(test)
    except (CannotSend, RecursionError) as error:
        held = error if isinstance(error, CannotSend) else "itself"
        said = f"this test holds {held}, which cannot be taken along. Write it with def, in a cell."
        return Judgement(False, f"{case}: {said}")
    loops = {"our loop": our_text(), "the broken loop": broken_text(get_fault(number)), "our loop again": our_text()}
    arguments = {"loops": loops, "part": part, "code": packing.code, "left": packing.left}
    try:
        events, ended = SANDBOX.run("looplab.faults:try_test", arguments)
    except OSError:
        return Judgement(False, f"{case}: a test is tried in a second Python process, and this system starts none.")
    caught, said = read_events(events, ended)
    return Judgement(caught, f"{case}: {said}")


def read_events(events: list[Json], ended: str) -> tuple[bool, str]:
    """Say what the other process told of a test: whether it told the loops apart, and why not."""
    tried = [event["on"] for event in events if "on" in event]
    outcomes = [event for event in events if "failed" in event]
    if len(outcomes) < max(1, len(tried)):
        where = f"on {tried[-1]} the test" if tried else "the cell"
        became = "ended the process, or used up its memory."
        if ended == "stopped":
            became = f"was still running after {sandbox.SECONDS:.0f} seconds and was stopped; does its script end?"
        return False, f"{where} {became}"
    said = outcomes[-1]["came_back"]
    if tried == ["the cell"]:
        return False, f"the cell does not run: {said}."
    if outcomes[0]["failed"]:
        return False, f"the test fails on our loop, so it does not tell the two apart: {outcomes[0]['came_back']}."
    if not outcomes[1]["failed"]:
        return False, "the test passes on both loops, so the broken one gets away with it."
    if outcomes[2]["failed"]:
        return False, f"run again on our loop, the test fails: {said}. Keep all that it changes inside of it."
    said = outcomes[1]["came_back"]
    return True, f"caught. The test passes on our loop; on the broken one {said}."


# --- HTML ----------------------------------------------------------------------------------------------------


def say_html(fault: Fault) -> str:
    """Return the sentence of a case: its setting, and the exit of its run."""
    flag = f"{view.mark('exit')}{view.word(f'Exit: {scene_of(fault).exit}.', 'exit')}"
    return view.sentence(f"<b>Case {fault.number}.</b> {escape(str(fault.test.__doc__))} {flag}")


def run_html(fault: Fault) -> str:
    """Return the message list of a case, its exit, and its facts."""
    scene = scene_of(fault)
    rows = view.message_list(scene.messages, end=(scene.exit, ""), height=HEIGHT)
    return f'<p class="ll-head">What the list holds</p>{rows}'


def plot_html(fault: Fault) -> str:
    """Return the plot of a case as a picture, and the facts of its run."""
    scene, plot = scene_of(fault), plot_of(fault)
    picture = base64.b64encode(plot.png).decode("ascii")
    image = f'<img src="data:image/png;base64,{picture}" alt="{escape(plot.sentence)}">'
    return f'<div class="ll-picture">{image}<p>{escape(scene.facts)} {escape(scene.reached)}</p></div>'


def listing_html(section: Section, lit: set[int], at: int) -> str:
    """Return a section of the broken file with its line numbers; `lit` are lit, and the line `at` is scrolled to."""
    rows = []
    for number, line in enumerate(section.lines, section.start):
        names = " ".join(["ll-now"] * (number in lit) + ["ll-at"] * (number == at))
        now = f' class="{names}"' * bool(names) + ' aria-current="true"' * (number in lit)
        rows.append(f"<li{now}><span>{number}</span><span>{escape(line)}</span></li>")
    label = escape(f"section {section.title} of the broken file")
    region = f'class="ll-lines ll-jump" tabindex="0" role="region" aria-label="{label}" style="--ll-h:{LISTING}px"'
    return f"<div {region}><ol>{''.join(rows)}</ol></div>"


def located_text(fault: Fault, line: int) -> str:
    """Say of a line whether it is the one with the fault."""
    last, wrong = broken_text(fault).count("\n"), lines_of(fault)
    if not 1 <= line <= last:
        return f"The file has no such line; its lines are 1 to {last:,}."
    if line in wrong:
        return f"That is it: line {line}, in {place_of(fault)[0]}."
    close = " You are close." if {line - 1, line + 1} & wrong else ""
    if not any(line in section.numbers for section in sections_of(broken_text(fault))):
        close = " The fault is in one of the five sections of the loop."
    return f"Line {line} is as it should be.{close}"


def specs_text(scene: Scene) -> list[str]:
    """Write the specs of the tools as lines: name, description, parameters."""
    return [f"{spec['name']}: {spec['description']} {view.json_text(spec['parameters'])}" for spec in scene.specs]


def progress_text(done: dict[str, set[int]], number: int) -> str:
    """Say how far the clinic has come, and a case."""
    this = " and ".join(step for step in STEPS if number in done[step]) or "not begun"
    counts = [f"{len(done[step])} {step}" for step in STEPS]
    return f"This case: {this}. Of all {len(FAULTS)}: {', '.join(counts)}."


# --- Widget --------------------------------------------------------------------------------------------------


@dataclass
class Chart:
    """What a reader has done at one case."""

    hints: int = 0
    judged: bool = False
    at: int = 0  # the line that was asked about last
    lit: set[int] = field(default_factory=set)


class ClinicBench(Bench):
    """The fault picker: `fault` is the case shown now, `done` which cases were diagnosed, located and caught."""

    def __init__(self, number: int) -> None:
        self.done: dict[str, set[int]] = {step: set() for step in STEPS}
        self._charts: dict[int, Chart] = {}
        self.fault = get_fault(number)
        self._areas = {name: view.area("", name) for name in AREAS}
        levels = [(f"{level}, {name}", level) for level, name in LEVELS.items()]
        self.level = view.field(widgets.RadioButtons(options=levels, description="Level"), "level", "ll-radios")
        self.case = view.field(widgets.RadioButtons(description="Case"), "case", "ll-radios")
        self.options = view.field(widgets.RadioButtons(description="What is wrong?"), "options", "ll-choices")
        self.words = view.field(widgets.Textarea(
            rows=2, description="Or say it in your own words", placeholder="The loop …"), "words")
        self.section = view.field(widgets.Dropdown(description="Which line? Section"), "section", "ll-part")
        self.line = view.field(widgets.IntText(description="Line"), "line", "ll-part")
        self.buttons = {
            "compare": view.button("Compare with ours", "compare", self.compare),
            "locate": view.button("It is this line", "locate", self.locate),
            "hint": view.button("Hint", "hint", self.hint),
            "answer": view.button("Show our test", "answer", self.answer),
        }
        self._build()
        self.options.observe(self._diagnosed, "value")
        self.show(number)
        self.level.observe(self._picked_level, "value")
        self.case.observe(self._picked_case, "value")
        self.section.observe(self._show_listing, "value")

    def _build(self) -> None:
        areas, buttons = self._areas, self.buttons
        run = view.column("ll-seat-a", areas["run"], areas["specs"])
        compare, more = view.controls(buttons["compare"]), view.controls(buttons["hint"], buttons["answer"])
        diagnosis = view.column("ll-seat-a", self.options, self.words, compare, areas["diagnosis"])
        help_ = view.column("ll-seat-b", more, areas["hints"], areas["progress"])
        place = widgets.HBox([self.section, self.line, view.controls(buttons["locate"])])
        place.add_class("ll-pairrow")
        code = view.area(f'<p class="ll-label">Which test catches it? Write it in the next cell.</p>'
                         f'<pre class="ll-code">{escape(SKELETON)}</pre>')
        super().__init__(
            self.level, self.case, areas["say"], view.columns(run, view.column("ll-seat-b", areas["plot"])),
            view.columns(diagnosis, help_), place, areas["listing"], areas["found"], code, areas["verdict"],
            hook="clinic")

    @property
    def chart(self) -> Chart:
        """What was done at the case shown now."""
        return self._charts.setdefault(self.fault.number, Chart())

    @guarded
    def show(self, number: int) -> None:
        """Show a case by its number."""
        fault = self.fault = get_fault(number)
        numbers = [f.number for f in FAULTS if f.level == fault.level]
        self.level.value = fault.level
        with self.hold_trait_notifications():
            if self.case.options != tuple(numbers):
                self.case.options = numbers
            self.case.value = number
        self._areas["say"].value, self._areas["run"].value = say_html(fault), run_html(fault)
        self._areas["specs"].value, self._areas["plot"].value = view.specs_html(scene_of(fault).specs), plot_html(fault)
        self.options.unobserve(self._diagnosed, "value")  # new options may choose one by themselves
        self.options.options, self.options.value, self.words.value = options_of(fault), None, ""
        self.options.observe(self._diagnosed, "value")
        for name in ("diagnosis", "found", "verdict"):
            self._areas[name].value = view.note("")
        self._sections = {s.title: s for s in sections_of(broken_text(fault))}
        self.section.options = list(self._sections)
        self.section.value = list(self._sections)[-1]  # where the loop stands; never a hint
        self.line.value = self._sections[self.section.value].start
        self._show_listing()
        self._show_hints()
        self._show_progress()

    @guarded
    def compare(self, _: Any = None) -> None:
        """Show our diagnosis beside the reader's own words."""
        if not self.words.value.strip():
            self._areas["diagnosis"].value = view.note("Write a sentence first.")
            return
        self.done["diagnosed"].add(self.fault.number)
        said = f"Ours: {self.fault.wrong} If yours says the same, it is right."
        self._areas["diagnosis"].value = view.note(said)
        self._show_progress()

    @guarded
    def locate(self, _: Any = None) -> None:
        """Say whether the line is the one with the fault, and show the section that it stands in."""
        line, wrong = self.line.value, lines_of(self.fault)
        self.chart.at = line
        if line in wrong:
            self.done["located"].add(self.fault.number)
            self.chart.lit = wrong
        self._areas["found"].value = view.note(located_text(self.fault, line))
        if home := next((s for s in self._sections.values() if line in s.numbers), None):
            self.section.value = home.title
        self._show_listing()
        self._show_progress()

    @guarded
    def hint(self, _: Any = None) -> None:
        """Show the next of the three hints."""
        self.chart.hints = min(self.chart.hints + 1, 3)
        self._show_hints()

    @guarded
    def answer(self, _: Any = None) -> None:
        """Show our test."""
        ours = escape(answer_of(self.fault))
        self._areas["verdict"].value = f'<p class="ll-label">Our test</p><pre class="ll-code">{ours}</pre>'

    def judge(self, test: Callable[[Any], None]) -> None:
        """Try a test on our loop and on the broken one of the case shown now, and print what came of it."""
        judgement = judge_test(self.fault.number, test)
        self.chart.judged = self.chart.judged or "not yet" not in judgement.text
        if judgement.caught:
            self.done["caught"].add(self.fault.number)
        self._areas["verdict"].value = view.note(judgement.text)
        self._show_hints()
        self._show_progress()
        print(judgement.text)

    @guarded
    def _picked_level(self, change: Any) -> None:
        if change["new"] != self.fault.level:
            self.show(next(f.number for f in FAULTS if f.level == change["new"]))

    @guarded
    def _picked_case(self, change: Any) -> None:
        if change["new"] not in (None, self.fault.number):
            self.show(change["new"])

    @guarded
    def _diagnosed(self, change: Any) -> None:
        if change["new"] is None:
            return
        right = change["new"] == self.fault.wrong
        if right:
            self.done["diagnosed"].add(self.fault.number)
        said = f"Right. {self.fault.rule}" if right else "That is not what happened here. Read the list once more."
        self._areas["diagnosis"].value = view.note(said)
        self._show_progress()

    @guarded
    def _show_listing(self, change: Any = None) -> None:
        self._areas["listing"].value = listing_html(self._sections[self.section.value], self.chart.lit, self.chart.at)

    def _show_hints(self) -> None:
        chart = self.chart
        hints = hints_of(self.fault)[: chart.hints]
        self._areas["hints"].value = "".join(view.note(f"Hint {n} of 3. {text}") for n, text in enumerate(hints, 1))
        self.buttons["hint"].disabled = chart.hints == 3
        self.buttons["answer"].disabled = not chart.judged

    def _show_progress(self) -> None:
        self._areas["progress"].value = view.note(progress_text(self.done, self.fault.number))

    def twin(self) -> list[Block]:
        """Return the case shown now, in plain words."""
        fault, scene, plot = self.fault, scene_of(self.fault), plot_of(self.fault)
        return [f"Case {fault.number} of {len(FAULTS)}, level {fault.level}. {fault.test.__doc__} Exit: {scene.exit}.",
                [view.message_text(message) for message in scene.messages], f"{scene.facts} {scene.reached}",
                "The tools that the model is shown:", specs_text(scene),
                f"{plot.title}. {plot.sentence}", plot.rows, "What is wrong?", options_of(fault),
                "Which line is it? Which test catches it?", Code(SKELETON), progress_text(self.done, self.fault.number)]


def all_cases(level: int) -> Folded:
    """Return the cases of a level with their answers folded: the rule, the change, and our test."""
    if level not in LEVELS:
        raise ValueError(f"the levels are {', '.join(map(str, LEVELS))}")
    return Folded((f"Case {fault.number}. {fault.test.__doc__}",
                   [fault.wrong, fault.rule, "The change:", Code(change_of(fault)), "A test that catches it:",
                    Code(answer_of(fault))]) for fault in FAULTS if fault.level == level)


def bug_clinic(case: int = 2) -> ClinicBench:
    """Show a broken loop at work: say what is wrong, find the line, write the test that catches it.

    The loops are broken by small changes of agentloop.py, in three levels. Raises ValueError for a case there is not.
    """
    return ClinicBench(case)
