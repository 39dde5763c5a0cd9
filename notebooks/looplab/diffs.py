"""The diff and test view: a run on a project, call by call, with what it changed and what the tests said last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher, unified_diff
from typing import Any

from agentloop import AgentResult, Json, decoded
from looplab import view
from looplab.project import FILES, files_after
from looplab.view import Bench, Block, call_text, code, escape, guarded, plural

HEIGHT = 475  # pixels of the files
WIDTH = 60  # characters of a call in the sentence and in the twin
Line = tuple[str, str, str]  # a path, " ", "-" or "+", and the text of the line

# --- State ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Frame:
    """The state after one call, or after the reply that asks for none: the files, and what the tests said last.

    `observation` is None for a call that has none. `tests` is the last result of run_tests, and `stale` says that a
    file was changed after it.
    """

    step: int
    asked: Json | None
    observation: str | None
    text: str
    files: dict[str, str]
    tests: Json | None
    stale: bool


def frames_of(messages: list[Json], files: Mapping[str, str] = FILES) -> list[Frame]:
    """Return a frame for each call of a run, in order, and one for each reply that asks for none."""
    found = {m["tool_call_id"]: i for i, m in enumerate(messages) if m["role"] == "tool"}
    frames: list[Frame] = []
    step, now, tests, stale = 0, dict(files), None, False
    for message in messages:
        step += message["role"] == "assistant"
        for asked in message.get("tool_calls", []):
            place = found.get(asked["id"])
            observation = None if place is None else messages[place]["content"]
            before, now = now, files_after(messages[: (place or 0) + 1], files) if place else now
            stale = stale or now != before
            if said := outcome_in(asked, observation):
                tests, stale = said, False
            frames.append(Frame(step, asked, observation, message["content"], now, tests, stale))
        if message["role"] == "assistant" and not message["tool_calls"]:
            frames.append(Frame(step, None, None, message["content"], now, tests, stale))
    return frames


def outcome_in(asked: Json, observation: str | None) -> Json | None:
    """Return the result of run_tests that an observation holds, or None if it holds none."""
    said = decoded(observation or "") if asked["name"] == "run_tests" else None
    return said if isinstance(said, dict) and "passed" in said else None


def diff_of(before: Mapping[str, str], now: Mapping[str, str]) -> list[Line]:
    """Return every line of every file: kept, taken away or added."""
    lines: list[Line] = []
    for path, text in now.items():
        old, new = before[path].splitlines(), text.splitlines()
        for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            lines += [(path, " ", line) for line in old[a:b] if kind == "equal"]
            lines += [(path, "-", line) for line in old[a:b] if kind != "equal"]
            lines += [(path, "+", line) for line in new[c:d] if kind != "equal"]
    return lines


def what_came(frame: Frame) -> tuple[str, str]:
    """Say in a few words who answered a call, and how."""
    tests = outcome_in(frame.asked or {"name": ""}, frame.observation)
    if frame.observation is None:
        return "It", " has no observation."
    if frame.observation.startswith("ERROR: "):
        return "The tool", " answered with an error."
    if tests:
        return "The tests", " pass." if tests["passed"] else " do not pass."
    return "The tool", " changed the file." if (frame.asked or {})["name"] == "edit" else " answered."


def outcome_words(frame: Frame) -> str:
    """Say what the tests said last, and whether that still holds."""
    if not frame.tests:
        return "They have not run yet."
    passed = "passed" if frame.tests["passed"] else "did not pass"
    since = ", but a file was changed since" if frame.stale else ""
    return f"{plural(int(frame.tests.get('tests', 0)), 'test')} ran: {passed}{since}."


def ending(result: AgentResult, verified: bool | None) -> str:
    """Say how a run ended, and what the verifier says of its project."""
    said = {None: "", True: " The verifier: it succeeded.", False: " The verifier: it did not succeed."}
    return f"The run stopped with {result.status}.{said[verified]}"


# --- HTML and widget -----------------------------------------------------------------------------------------


def sentence_html(frame: Frame, count: int) -> str:
    """Return the sentence of a frame: what the model asked for, and what came of it."""
    place, model = escape(f"Step {frame.step} of {count}: "), view.word("the model", "assistant")
    if frame.asked is None:
        return view.sentence(f"{place}{model} asks for nothing more: {escape(view.cut(frame.text, 80))}")
    who, came = what_came(frame)
    asked = code(view.cut(call_text(frame.asked), WIDTH), "assistant")
    return view.sentence(f"{place}{model} asks for {asked}. {view.word(who, 'tool')}{escape(came)}")


def files_html(start: Mapping[str, str], before: Frame | None, frame: Frame) -> str:
    """Return the files, line by line; what was taken away and added stays in sight, and what is new is lit."""
    seen = Counter(diff_of(start, before.files if before else start))
    rows: list[str] = []
    last, number = "", 0
    for line in diff_of(start, frame.files):
        path, sign, text = line
        if path != last:
            rows += ["<li></li>"] * bool(rows) + [f"<li><span></span><b>{escape(path)}</b></li>"]
            last, number = path, 0
        number += sign != "-"
        seen[line] -= 1
        lit = ' class="ll-now"' if seen[line] < 0 else ""
        said = escape(f"{sign} {text}")
        shown = {" ": said, "-": f'<span class="ll-muted">{said}</span>', "+": f"<b>{said}</b>"}[sign]
        rows.append(f"<li{lit}><span>{number if sign != '-' else ''}</span>{shown}</li>")
    region = f'tabindex="0" role="region" aria-label="the files" style="--ll-h:{HEIGHT}px"'
    head = '<p class="ll-head">The files, and how they differ from the beginning</p>'
    return f'{head}<div class="ll-lines" {region}><ol>{"".join(rows)}</ol></div>'


def side_html(frame: Frame, end: str) -> str:
    """Return what the call gave, what the tests said last, and, where the run is over, how it ended."""
    gave, said = "", (frame.tests or {}).get("said", "")
    if frame.asked:
        content = view.cut(frame.observation or "no observation", 300)
        gave = view.message_row({"role": "tool", "tool_call_id": frame.asked["id"], "content": content})
    output = f'<pre class="ll-code">{escape(said)}</pre>' if said else ""
    flag = f'<span class="ll-who ll-exit">{view.mark("exit")}exit</span>'
    over = f'<li class="ll-m ll-end">{flag}<div class="ll-exit">{escape(end)}</div></li>' if end else ""
    head = "What the call gave" if gave else "How it ended"
    return (f'<p class="ll-head">{head}</p><ol class="ll-observation">{gave}{over}</ol>'
            f'<p class="ll-head">The tests, when they ran last</p>'
            f'<div class="ll-tests"><p>{escape(outcome_words(frame))}</p>{output}</div>')


class ProjectView(Bench):
    """Step through runs on a project; `place` is the number of the current frame, from 1."""

    def __init__(self, runs: Mapping[str, AgentResult], verified: Mapping[str, bool], files: Mapping[str, str]) -> None:
        if not runs:
            raise ValueError("project_view needs a run")
        self._runs, self._verified, self._files = dict(runs), dict(verified), dict(files)
        self.choice = view.choices("Run", list(runs), "choice", next(iter(runs)))
        self.buttons = {
            "First": view.button("First", "first", lambda _: self.go_to(1)),
            "Back": view.button("Back", "back", lambda _: self.go_to(self.place - 1)),
            "Next": view.button("Next", "next", lambda _: self.go_to(self.place + 1)),
            "Last": view.button("Last", "last", lambda _: self.go_to(len(self.frames))),
        }
        self._position, self._say = view.area("", "position"), view.area("", "say")
        self._diff, self._side = view.area("", "files"), view.area("", "side")
        columns = view.columns(view.column("ll-col-code", self._diff), view.column("ll-col-list", self._side))
        super().__init__(self.choice, view.controls(*self.buttons.values(), self._position), self._say, columns,
                         hook="project")
        self.choice.layout.display = "" if len(runs) > 1 else "none"
        self.choice.observe(self._choose, names="value")
        self._choose()

    @guarded
    def _choose(self, change: Any = None) -> None:
        self.result = self._runs[self.choice.value]
        self.frames = frames_of(self.result.messages, self._files)
        self._show(1)

    @guarded
    def go_to(self, place: int) -> None:
        """Show a frame, by its number from 1 on."""
        self._show(place)

    def _show(self, place: int) -> None:
        self.place = min(max(place, 1), max(len(self.frames), 1))
        view.switch_ends(self.buttons, self.place <= 1, self.place >= len(self.frames))
        self._position.value = f'<span class="ll-position">{min(place, len(self.frames))} / {len(self.frames)}</span>'
        if not self.frames:
            self._say.value, self._diff.value, self._side.value = view.sentence("The model was not asked yet."), "", ""
            return
        frame, before = self.frames[self.place - 1], self.frames[self.place - 2] if self.place > 1 else None
        end = ending(self.result, self._verified.get(self.choice.value)) if self.place == len(self.frames) else ""
        self._say.value = sentence_html(frame, self.frames[-1].step)
        self._diff.value = files_html(self._files, before, frame)
        self._side.value = side_html(frame, end)

    def twin(self) -> list[Block]:
        """Return the calls of the run with what they gave, the tests, how it ended, and its diff."""
        several = [f"One of {len(self._runs)} runs: {', '.join(self._runs)}."] * (len(self._runs) > 1)
        rows = [["step", "call", "what came of it"]]
        for frame in self.frames:
            asked = call_text(frame.asked) if frame.asked else frame.text
            came = "".join(what_came(frame)) if frame.asked else "The run is over."
            rows.append([str(frame.step), view.cut(asked, WIDTH), came])
        now = self.frames[-1].files if self.frames else self._files
        diff = [line for path, text in now.items()
                for line in unified_diff(self._files[path].splitlines(), text.splitlines(), path, path, lineterm="")]
        tests = f"The tests, when they ran last: {outcome_words(self.frames[-1])}" if self.frames else ""
        end = ending(self.result, self._verified.get(self.choice.value))
        return [*several, f"{self.choice.value}: {end}", rows, tests, view.Code("\n".join(diff) or "No file differs.")]


def project_view(runs: Mapping[str, AgentResult], verified: Mapping[str, bool] | None = None,
                 files: Mapping[str, str] = FILES) -> ProjectView:
    """Step through runs by their names: what each call gave, how the files differ, what the tests said last.

    `files` are the project's before the runs. `verified` is what a verifier says of the project after each.
    """
    return ProjectView(runs, verified or {}, files)
