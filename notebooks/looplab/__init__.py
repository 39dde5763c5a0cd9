"""The bench of the notebooks: widgets, plots, checks and worlds. A reader need not study it.

Names are loaded when they are first used, so that a notebook without widgets does not wait for them.
"""

import importlib

_HOME = {
    "transcript": "show", "trace": "show", "table": "show",
    "play": "player",
    "you_are_the_model": "seat",
    "validator_bench": "validator", "call_bench": "gates", "script_builder": "builder", "exits_bench": "exits",
    "retry_timeline": "retries", "repeat_bench": "repeats",
    "predict": "prediction",
    "check": "exercises", "hint": "exercises", "solution": "exercises", "progress": "exercises",
    "judge": "judging",
    "four_exits": "desk_runs", "need_an_agent": "need",
    "approval_bench": "approval", "trace_viewer": "viewer", "event_timeline": "timeline",
    "wire_viewer": "wire", "show_request": "wire",
    "transcript_reader": "reader",
    "project_view": "diffs",
    "nested_runs": "nesting",
    "progress_bar": "eval_progress", "cost_explorer": "cost_bench", "chance_explorer": "chances",
    "mock_interview": "interview_room", "all_questions": "interview_room", "interviewer_sheet": "interview_room",
    "bug_clinic": "clinic", "all_cases": "clinic", "all_endings": "endings",
}


def __getattr__(name: str):
    if name in _HOME:
        return getattr(importlib.import_module(f"looplab.{_HOME[name]}"), name)
    raise AttributeError(f"looplab has no {name!r}")


def __dir__() -> list[str]:
    return sorted(_HOME)
