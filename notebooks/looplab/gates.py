"""The bench of one call: the three gates of the registry, the observation, and whether the function ran."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ipywidgets as widgets

from agentloop import ToolCall, weather_world
from looplab import view
from looplab.checklist import Check, checks_html, checks_table
from looplab.reply_form import Draft, fields_note, sample_args, tool_field
from looplab.signatures import tool_lines, tools_html
from looplab.view import AS_TYPED, Bench, Block, call_text, guarded

GATES = ["The name: is the tool registered?", "The arguments: do they fit its schema?",
         "The run: does the function return JSON?"]
PRESETS = {
    "runs": ("get_weather", '{"city": "Pune"}'),
    "unknown tool": ("get_forecast", '{"city": "Pune"}'),
    "missing argument": ("get_weather", "{}"),
    "text for number": ("c_to_f", '{"celsius": "30"}'),
    "unexpected argument": ("get_weather", '{"city": "Pune", "unit": "C"}'),
    "no object": ("get_weather", '"Pune"'),
    "raises": ("get_weather", '{"city": "Atlantis"}'),
    "two mistakes": ("get_forecast", '{"unit": "C"}'),
}


# --- State ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tried:
    """A call that was executed: its observation, the gates, and the number of the one that stopped it, or None."""

    call: ToolCall
    observation: str
    gates: list[Check]
    stopped_at: int | None

    @property
    def ran(self) -> bool:
        """Whether the function was called."""
        return self.stopped_at in (None, 3)


def try_call(registry: Any, name: str, args: Any) -> Tried:
    """Execute a call, and find which gate its observation came from."""
    refused = registry.check(name, args)
    observation = registry.execute(name, args)
    stopped_at = None
    if refused:
        stopped_at = 2 if name in [spec["name"] for spec in registry.specs()] else 1
    elif observation.startswith("ERROR: "):
        stopped_at = 3
    last = stopped_at or len(GATES)
    answers = ["yes" if n < last or not stopped_at else "no" if n == last else "" for n in range(1, len(GATES) + 1)]
    gates = [Check(question, answer, answer == "no") for question, answer in zip(GATES, answers)]
    return Tried(ToolCall("c1", name, args), observation, gates, stopped_at)


def tried_words(tried: Tried) -> tuple[str, str, str]:
    """Return the sentence of a call as what the registry did, the call, and what came of it."""
    if not tried.ran:
        which = "first" if tried.stopped_at == 1 else "second"
        return "stopped", call_text(tried.call), f" at the {which} gate: the function did not run."
    if tried.stopped_at:
        return "ran", call_text(tried.call), ", and it failed at the third gate: the function did run."
    return "ran", call_text(tried.call), ": all three gates let it through."


# --- HTML and widget -----------------------------------------------------------------------------------------


def tried_html(tried: Tried, times: int = 1) -> str:
    """Return the sentence of a call, and how often it was tried in a row."""
    did, call, rest = tried_words(tried)
    rest += f" Tried {times:,} times." if times > 1 else ""
    who, said = view.word("The registry", "tool"), view.code(view.cut(call, 60))
    return view.sentence(f"{who} {did} {said}{view.escape(rest)}")


def untried_html(tried: Tried) -> str:
    """Return the sentence while the fields hold another call than the one that was executed last."""
    said = view.code(view.cut(call_text(tried.call), 60))
    return view.sentence(f"{view.word('Not run yet.', 'muted')} The gates and the observation are those of {said}.")


def gates_html(tried: Tried) -> str:
    """Return the gates, and under them the observation as the model gets it."""
    message = view.message_row({"role": "tool", "tool_call_id": "c1", "content": tried.observation})
    gates = f'<p class="ll-head">The three gates</p>{checks_html(tried.gates)}'
    return f'{gates}<p class="ll-head">The observation, exactly</p><ol class="ll-observation">{message}</ol>'


class CallBench(Bench):
    """The fields of a call, and its way through the gates; `tried` is the last one executed."""

    def __init__(self, registry: Any) -> None:
        self._registry = registry
        specs = registry.specs()
        self._specs = {spec["name"]: spec for spec in specs}
        presets = {name: made for name, made in PRESETS.items() if set(self._specs) == {"get_weather", "c_to_f"}}
        self._presets = presets or {"runs": (specs[0]["name"], sample_args(specs[0]))}
        self.preset = view.choices("Try", [*self._presets, AS_TYPED], "preset", "runs")
        self.tool = tool_field(self._specs)
        self.args = view.field(widgets.Text(description="Arguments, as JSON"), "args", "ll-json")
        self.run_button = view.button("Run the call", "run", self.run, "ll-main")
        view.on_enter(self.args, self.run)
        self._say, self._gates = view.area("", "say"), view.area("", "gates")
        self._note = view.area("", "note", "ll-live")
        fields = widgets.HBox([self.tool, self.args])
        fields.add_class("ll-pairrow")
        tools = view.area(tools_html(specs), "specs")
        left = view.column("ll-seat-b", fields, self._note, view.controls(self.run_button), tools)
        right = view.column("ll-seat-a", self._gates)
        super().__init__(self.preset, self._say, view.columns(left, right), hook="call")
        self._filling, self._times = False, 0
        self.preset.observe(self._take_preset, names="value")
        for field in (self.tool, self.args):
            field.observe(self._typed, names="value")
        self._take_preset()

    @guarded
    def run(self, _: Any = None) -> None:
        """Execute the call in the fields."""
        draft = self._draft
        if begun := draft.begun_call() if draft.is_ready else None:
            last = self.tried.call if self._times else None
            self.tried = try_call(self._registry, *begun)
            self._times = self._times + 1 if self.tried.call == last else 1
            self._gates.value = gates_html(self.tried)
            self._show()

    @property
    def _draft(self) -> Draft:
        return Draft(tool=self.tool.value.strip(), args=self.args.value)

    @guarded
    def _take_preset(self, change: Any = None) -> None:
        if texts := self._presets.get(self.preset.value):
            self._filling = True  # the two fields change one after the other
            self.tool.value, self.args.value = texts
            self._filling = False
            if self.preset.value == AS_TYPED:
                self._show()
            else:
                self.run()

    @guarded
    def _typed(self, change: Any) -> None:
        if not self._filling:
            self._presets[AS_TYPED] = (self.tool.value, self.args.value)
            self.preset.value = AS_TYPED
            self._show()

    def _show(self) -> None:
        draft = self._draft
        begun = draft.begun_call() if draft.is_ready else None
        was_tried = begun == (self.tried.call.name, self.tried.call.args)
        self._say.value = tried_html(self.tried, self._times) if was_tried else untried_html(self.tried)
        view.tell(self.args, self._note, fields_note(draft))
        self.run_button.disabled = not begun
        self.args.placeholder = sample_args(self._specs.get(draft.tool))

    def twin(self) -> list[Block]:
        """Return the call, the gates, the observation and the tools."""
        did, call, rest = tried_words(self.tried)
        return [f"The registry {did} {call}{rest}", checks_table(self.tried.gates),
                f"The observation: {self.tried.observation}", "The tools:", tool_lines(self._registry.specs())]


def call_bench(registry: Any = None) -> CallBench:
    """Execute any call, and show which of the three gates answers; without a registry, in the weather world.

    The call really runs, each time the button or one of the examples is pressed. Raises ValueError for a registry
    without tools.
    """
    registry = registry or weather_world()[0]
    if not registry.specs():
        raise ValueError("the registry has no tool that could be called: register one first")
    return CallBench(registry)
