"""The bug clinic: a run of a broken loop is shown; the reader says what is wrong, finds the line, and writes a test."""

from __future__ import annotations

import base64
import functools
import inspect
import textwrap
from collections.abc import Callable, Set
from random import Random
from typing import Any

import ipywidgets as widgets

from agentloop import AgentResult
from looplab import charts, plots, view
from looplab.catching import judge_test
from looplab.charts import FILE, STEPS, Chart, how
from looplab.faults import FAULTS, LEVELS, Fault, broken_text, get_fault
from looplab.folded import Folded
from looplab.scenes import (Scene, Section, is_missing, lines_of, place_of, scene_of, scene_of_ours, sections_of,
                            statement_lines)
from looplab.view import Bench, Block, Code, escape, guarded

HEIGHT, LISTING = 300, 21 * 19  # pixels of the message list, and of the listing: whole lines, and one in the middle
AREAS = ("say", "given", "run", "specs", "plot", "diagnosis", "found", "listing", "hints", "needs", "verdict",
         "progress", "table")
MAY_BE_MISSING = "The fault may be a line that is missing: then take one of the two lines around the gap."
COUNTED = "The plot counts what each prompt and each reply cost, read off the messages alone."
SKELETON = """def test(agentloop):
    result = run(agentloop, agentloop.weather_script())
    assert ...


clinic.judge(test)"""


# --- A case in words -----------------------------------------------------------------------------------------


def options_of(fault: Fault) -> list[str]:
    """Return four diagnoses, of which one is right; always in the same order."""
    options = [fault.wrong, *fault.misses]
    Random(fault.number).shuffle(options)
    return options


def hints_of(fault: Fault) -> list[str]:
    """Return three hints, each stronger than the last: where to look, what to compare, the rule and its place."""
    function, section = place_of(fault)
    return [f"Look at {fault.where}.", f"{fault.compare} {beside_ours(fault)}",
            f"The rule it breaks: {fault.rule} The line is in {function}, in section {section}."]


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


# --- HTML ----------------------------------------------------------------------------------------------------


def say_html(fault: Fault) -> str:
    """Return the sentence of a case: its setting, and the exit of its run."""
    flag = f"{view.mark('exit')}{view.word(f'Exit: {scene_of(fault).exit}.', 'exit')}"
    return view.sentence(f"<b>Case {fault.number}.</b> {escape(fault.title)} {flag}")


def head_of(scene: Scene) -> str:
    """Say what the messages of a run are: its list, or what was told of a run that was lost."""
    return "What the list holds" if scene.result else "What was told before the run was lost"


def run_html(fault: Fault) -> str:
    """Return the messages of a case, and its exit."""
    scene = scene_of(fault)
    rows = view.message_list(scene.messages, end=(scene.exit, ""), height=HEIGHT)
    return f'<p class="ll-head">{head_of(scene)}</p>{rows}'


def plot_html(fault: Fault) -> str:
    """Return the plot of a case as a picture, what it counts, and the report of its run."""
    scene, plot = scene_of(fault), plot_of(fault)
    picture = base64.b64encode(plot.png).decode("ascii")
    image = f'<img src="data:image/png;base64,{picture}" alt="{escape(plot.sentence)}">'
    return f'<div class="ll-picture">{image}<p>{COUNTED}</p><p>{escape(scene.facts)} {escape(scene.reached)}</p></div>'


def listing_html(section: Section, lit: Set[int], at: int) -> str:
    """Return a section of the broken file with its line numbers; `lit` are lit, and the line `at` is scrolled to."""
    rows = []
    for number, line in enumerate(section.lines, section.start):
        names = " ".join(["ll-now"] * (number in lit) + ["ll-at"] * (number == at))
        now = f' class="{names}"' * bool(names) + ' aria-current="true"' * (number in lit)
        rows.append(f"<li{now}><span>{number}</span><span>{escape(line)}</span></li>")
    label = escape(f"section {section.title} of the broken file")
    region = f'class="ll-lines ll-listing" tabindex="0" role="region" aria-label="{label}" style="--ll-h:{LISTING}px"'
    return f"<div {region}><ol>{''.join(rows)}</ol></div>"


def located_text(fault: Fault, line: int) -> str:
    """Say of a line whether it is the one with the fault."""
    lines, wrong = broken_text(fault).split("\n")[:-1], statement_lines(fault)
    if not 1 <= line <= len(lines):
        return f"The file has no such line; its lines are 1 to {len(lines):,}."
    if line in wrong and is_missing(fault):
        first, last = sorted(lines_of(fault))
        return f"That is it: lines are missing between {first} and {last}, in {place_of(fault)[0]}."
    if line in wrong:
        return f"That is it: line {line}, in {place_of(fault)[0]}."
    if lines[line - 1].strip().startswith(fault.alike):
        return f"Line {line} could do it, by what the run shows; but it is as it should be. What works with it?"
    if holds_no_code(fault, line):
        return f"Line {line} holds no code: take one that does."
    close = " You are close." if {line - 1, line + 1} & wrong else ""
    if not any(line in section.numbers for section in sections_of(broken_text(fault))):
        close = " The fault is in one of the five sections of the loop."
    return f"Line {line} is as it should be.{close}"


def holds_no_code(fault: Fault, line: int) -> bool:
    """Say whether a line is no answer to which line it is: it is not in the file, or it is empty or a comment."""
    text = dict(enumerate(broken_text(fault).split("\n")[:-1], 1)).get(line, "").strip()
    return line not in statement_lines(fault) and (not text or text.startswith("#"))


def chosen_text(fault: Fault, choice: str, diagnosed: bool) -> str:
    """Say of one of the diagnoses whether it is right; `diagnosed` says that the case was diagnosed before."""
    if choice == fault.wrong:
        return f"Right. The rule it breaks: {fault.rule}"
    if diagnosed:
        return "This one is not it; what you found before still counts."
    return f"That is not what happened here. {fault.misses[choice]}"


def specs_text(scene: Scene) -> list[str]:
    """Write the specs of the tools as lines: name, description, parameters."""
    return [f"{spec['name']}: {spec['description']} {view.json_text(spec['parameters'])}" for spec in scene.specs]


def progress_text(done: dict[str, set[int]], number: int) -> str:
    """Say how far the clinic has come, and a case."""
    this = " and ".join(step for step in STEPS if number in done[step]) or "not begun"
    counts = [f"{len(done[step])} {step}" for step in STEPS]
    return f"This case: {this}. Of all {len(FAULTS)}: {', '.join(counts)}."


def level_rows(level: int, kept: dict[int, Chart]) -> list[list[str]]:
    """Return a table of the cases of a level, and how each was done."""
    cases = [(fault, kept.get(fault.number, Chart())) for fault in FAULTS if fault.level == level]
    return [["case", "", *STEPS], *([str(fault.number), fault.title, *(getattr(chart, step) or "–" for step in STEPS)]
                                    for fault, chart in cases)]


def level_html(level: int, kept: dict[int, Chart], unsaved: bool) -> str:
    """Return the table of a level, and where it is kept."""
    where = f"{FILE.name} cannot be written here, so this lasts as long as the kernel." if unsaved else (
        f"Kept in {FILE.name}, beside the notebook. To begin anew, delete that file, and run the cell again.")
    table = f'<div class="ll-words">{view.table(level_rows(level, kept))}</div>'
    return f'<p class="ll-label">Level {level}, and how you did it</p>{table}{view.note(where)}'


def verdict_html(fault: Fault, chart: Chart) -> str:
    """Return what was said of the last test, what it printed, and the tests that catch the fault side by side."""
    printed = f'<pre class="ll-code">{escape(chart.printed)}</pre>' if chart.printed else ""
    tests = [("Your test", chart.test)] * bool(chart.test) + [("Our test", answer_of(fault))] * chart.ours
    columns = "".join(f'<div class="ll-seat-a"><p class="ll-label">{name}</p>'
                      f'<pre class="ll-code">{escape(text)}</pre></div>' for name, text in tests)
    return f'{view.note(chart.verdict)}{printed}<div class="ll-cols">{columns}</div>'


def needs_html(fault: Fault, chart: Chart) -> str:
    """Return what a test of a case may need, once its fault is known."""
    if not fault.needs or not (chart.diagnosed or chart.hints == len(hints_of(fault))):
        return ""
    return f'<p class="ll-label">What its test may need</p><pre class="ll-code">{escape(fault.needs.strip())}</pre>'


# --- Widget --------------------------------------------------------------------------------------------------


class ClinicBench(Bench):
    """The fault picker: `fault` is the case shown now, `done` which cases were diagnosed, located and caught."""

    def __init__(self, number: int) -> None:
        self.fault = get_fault(number)
        self._charts, self._showing = charts.open_charts(), False
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
            "diagnose": view.button("It is this one", "diagnose", self.diagnose),
            "compare": view.button("Compare with ours", "compare", self.compare),
            "same": view.button("It says the same", "same", lambda _: self.agree(True)),
            "other": view.button("It does not", "other", lambda _: self.agree(False)),
            "locate": view.button("It is this line", "locate", self.locate),
            "hint": view.button("Hint", "hint", self.hint, "ll-once"),
            "answer": view.button("Show our test", "answer", self.answer),
        }
        self._build()
        self.show(number)
        for control, seen in ((self.level, self._picked_level), (self.case, self._picked_case),
                              (self.options, self._noted), (self.words, self._noted), (self.line, self._noted),
                              (self.section, self._picked_section)):
            control.observe(seen, "value")

    def _build(self) -> None:
        areas, buttons = self._areas, self.buttons
        run = view.column("ll-seat-a", areas["run"], areas["specs"])
        compare = view.controls(*(buttons[name] for name in ("compare", "same", "other")))
        choose = view.controls(buttons["diagnose"])
        diagnosis = view.column("ll-seat-a", self.options, choose, self.words, compare, areas["diagnosis"])
        more = view.controls(buttons["hint"], buttons["answer"])
        help_ = view.column("ll-seat-b", more, areas["hints"], areas["progress"])
        place = widgets.HBox([self.section, self.line, view.controls(buttons["locate"])])
        place.add_class("ll-pairrow")
        code = view.area(f'<p class="ll-label">Which test catches it? Write it in the next cell.</p>'
                         f'<pre class="ll-code">{escape(SKELETON)}</pre>')
        super().__init__(
            self.level, self.case, areas["say"], areas["given"],
            view.columns(run, view.column("ll-seat-b", areas["plot"])), view.columns(diagnosis, help_),
            place, areas["found"], areas["listing"], areas["needs"], code, areas["verdict"], areas["table"],
            hook="clinic")

    @property
    def chart(self) -> Chart:
        """What was done at the case shown now."""
        return self._charts.setdefault(self.fault.number, Chart())

    @property
    def done(self) -> dict[str, set[int]]:
        """The numbers of the cases that were diagnosed, located and caught."""
        return {step: {number for number, chart in self._charts.items() if getattr(chart, step)} for step in STEPS}

    @guarded
    def show(self, number: int) -> None:
        """Show a case by its number, as it was left."""
        fault = get_fault(number)
        shown = {"say": say_html(fault), "given": view.note(fault.given) if fault.given else "",
                 "run": run_html(fault), "specs": view.specs_html(scene_of(fault).specs), "plot": plot_html(fault)}
        self.fault, self._showing = fault, True  # a plot takes a while; from here on all changes at once
        try:
            self._set_controls(fault, self.chart)
            for name, content in shown.items():
                self._areas[name].value = content
        finally:
            self._showing = False
        self._show_listing()
        self._show_chart()

    def _set_controls(self, fault: Fault, chart: Chart) -> None:
        numbers, options = tuple(f.number for f in FAULTS if f.level == fault.level), options_of(fault)
        self._sections = {s.title: s for s in sections_of(broken_text(fault))}
        titles = tuple(self._sections)
        first = self._sections[titles[-1]].start  # where the loop stands; never a hint
        with self.level.hold_sync(), self.case.hold_sync(), self.options.hold_sync(), self.section.hold_sync():
            self.level.value = fault.level
            if self.case.options != numbers:
                self.case.options = numbers
            self.case.value = fault.number
            self.options.options = options
            self.options.value = chart.choice if chart.choice in options else None
            self.section.options = titles
            self.section.value = self._section_of(chart.asked) or titles[-1]
            self.words.value, self.line.value = chart.words, chart.line or first

    def _section_of(self, line: int) -> str:
        return next((title for title, section in self._sections.items() if line in section.numbers), "")

    @guarded
    def diagnose(self, _: Any = None) -> None:
        """Say whether the diagnosis that is chosen is right."""
        fault, chart, choice = self.fault, self.chart, self.chart.choice
        if choice not in options_of(fault):
            self._areas["diagnosis"].value = view.note("Choose one of the four first.")
            return
        chart.said = chosen_text(fault, choice, bool(chart.diagnosed))
        if not chart.diagnosed:
            chart.weighing = False
            shown = "after ours was shown" * chart.compared
            chart.diagnosed = how(chart.wrong, chart.hints, shown) if choice == fault.wrong else ""
            chart.wrong += choice != fault.wrong
        self._keep()

    @guarded
    def compare(self, _: Any = None) -> None:
        """Show our diagnosis beside the reader's own words."""
        chart = self.chart
        if not chart.words.strip():
            self._areas["diagnosis"].value = view.note("Write a sentence first.")
            return
        chart.compared, chart.weighing = True, not chart.diagnosed
        chart.said = f"Ours: {self.fault.wrong}{' Does yours say the same?' * chart.weighing}"
        self._keep()

    @guarded
    def agree(self, same: bool) -> None:
        """Take the reader's word for whether the two diagnoses agree."""
        fault, chart = self.fault, self.chart
        chart.weighing = False
        if same:
            chart.diagnosed = how(chart.wrong, chart.hints, "by your own judgement")
            chart.said = f"Diagnosed, by your own judgement. The rule it breaks: {fault.rule}"
        else:
            chart.wrong += 1
            chart.said = f"Then it does not count. Ours: {fault.wrong} The evidence is in {fault.where}."
        self._keep()

    @guarded
    def locate(self, _: Any = None) -> None:
        """Say whether the line is the one with the fault, and show the section that it stands in."""
        chart, line = self.chart, self.line.value
        if holds_no_code(self.fault, line):
            self._areas["found"].value = view.note(located_text(self.fault, line))
            return
        chart.asked, right = line, line in statement_lines(self.fault)
        if not chart.located:
            chart.located = how(chart.wrong_lines, chart.hints) if right else ""
            chart.wrong_lines += not right
        self.section.value = self._section_of(line) or self.section.value
        self._show_listing()
        self._keep()

    @guarded
    def hint(self, _: Any = None) -> None:
        """Show the next of the three hints."""
        self.chart.hints = min(self.chart.hints + 1, 3)
        self._keep()

    @guarded
    def answer(self, _: Any = None) -> None:
        """Show our test."""
        self.chart.ours = True
        self._keep()

    def judge(self, test: Callable[[Any], None]) -> None:
        """Try a test on our loop and on the broken one of the case shown now, and print what came of it."""
        judgement, chart = judge_test(self.fault.number, test), self.chart
        chart.verdict, chart.printed = judgement.text, judgement.printed
        if judgement.caught:
            chart.test = judgement.source
            chart.caught = chart.caught or how(chart.wrong_tests, 0, "after ours was shown" * chart.ours)
        elif judgement.tried and not chart.caught:
            chart.wrong_tests += 1
        if judgement.tried:
            self._keep()
        else:
            self._show_chart()
        print("\n".join(filter(None, [judgement.text, judgement.printed])))

    @guarded
    def _picked_level(self, change: Any) -> None:
        if not self._showing and change["new"] != self.fault.level:
            self.show(next(f.number for f in FAULTS if f.level == change["new"]))

    @guarded
    def _picked_case(self, change: Any) -> None:
        if not self._showing and change["new"] not in (None, self.fault.number):
            self.show(change["new"])

    @guarded
    def _noted(self, change: Any) -> None:
        if not self._showing:
            chart = self.chart
            chart.choice, chart.words, chart.line = self.options.value or "", self.words.value, self.line.value
            charts.keep_charts(self.fault.number)

    @guarded
    def _picked_section(self, change: Any) -> None:
        if not self._showing:
            self._show_listing()

    def _keep(self) -> None:
        charts.keep_charts(self.fault.number)
        self._show_chart()

    def _show_listing(self) -> None:
        lit = lines_of(self.fault) if self.chart.located else frozenset()
        self._areas["listing"].value = listing_html(self._sections[self.section.value], lit, self.chart.asked)

    def _show_chart(self) -> None:
        fault, chart, buttons = self.fault, self.chart, self.buttons
        is_off = {"same": not chart.weighing, "other": not chart.weighing,
                  "hint": chart.hints == 3, "answer": not chart.may_see_ours}
        view.switch_off((buttons[name], off) for name, off in is_off.items())
        hints = hints_of(fault)[: chart.hints]
        shown = {
            "diagnosis": view.note(chart.said),
            "found": view.note(located_text(fault, chart.asked) if chart.asked else MAY_BE_MISSING),
            "hints": "".join(view.note(f"Hint {n} of 3. {text}") for n, text in enumerate(hints, 1)),
            "needs": needs_html(fault, chart),
            "verdict": verdict_html(fault, chart),
            "progress": view.note(progress_text(self.done, fault.number)),
            "table": level_html(fault.level, self._charts, charts.unsaved),
        }
        for name, content in shown.items():
            self._areas[name].value = content

    def twin(self) -> list[Block]:
        """Return the case shown now, in plain words; what the reader did is the reader's own."""
        fault, scene, plot = self.fault, scene_of(self.fault), plot_of(self.fault)
        return [f"Case {fault.number} of {len(FAULTS)}, level {fault.level}. {fault.title} Exit: {scene.exit}.",
                fault.given, f"{head_of(scene)}:", [view.message_text(message) for message in scene.messages],
                f"{scene.facts} {scene.reached}", "The tools that the model is shown:", specs_text(scene),
                f"{plot.title}. {plot.sentence} {COUNTED}", plot.rows, "What is wrong?", options_of(fault),
                f"Which line is it? {MAY_BE_MISSING}", "Which test catches it?", Code(SKELETON)]


def all_cases(level: int) -> Folded:
    """Return the cases of a level with their answers folded: the rule, the change, and our test."""
    if level not in LEVELS:
        raise ValueError(f"the levels are {', '.join(map(str, LEVELS))}")
    return Folded((f"Case {fault.number}. {fault.title}", [
        f"What is wrong: {fault.wrong}", f"The rule it breaks: {fault.rule}", "The change:", Code(change_of(fault)),
        "A test that catches it:", Code(answer_of(fault))]) for fault in FAULTS if fault.level == level)


def bug_clinic(case: int = 2) -> ClinicBench:
    """Show a broken loop at work: say what is wrong, find the line, write the test that catches it.

    The loops are broken by small changes of agentloop.py, in three levels. Raises ValueError for a case there is not.
    """
    return ClinicBench(case)
