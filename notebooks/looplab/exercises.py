"""check, hint, solution, progress: what a reader calls in the exercise cells of the notebooks."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

from agentloop import Json
from looplab import sandbox
from looplab.answers import CannotSend, Packing, is_unchanged, name_of, places_left
from looplab.cases import Exercise
from looplab.exercise_bank import EXERCISES, NOTEBOOKS
from looplab.keeping import keep_json

FOLDER = Path(__file__).parents[1]
PROGRESS = FOLDER / "progress.json"  # the reader's own; delete it to begin again
SOLUTIONS = FOLDER / "solutions"
LABEL = 11

SANDBOX = sandbox.Sandbox("looplab.exercise_bank", "looplab.evidence", "hashlib")
tried: set[str] = set()
hints_given: dict[str, int] = {}


@dataclass(frozen=True)
class Review:
    """What a check found: how many of how many cases hold, and a text that says it."""

    text: str
    held: int = 0
    cases: int = 0

    @property
    def solved(self) -> bool:
        """Whether every case holds."""
        return 0 < self.cases == self.held


def check(exercise_id: str, answer: Any) -> None:
    """Try an answer on the cases of an exercise; print how many hold, and about the first that does not, what helps."""
    review = review_answer(exercise_id, answer)
    print(review.text)
    if review.cases:
        tried.add(exercise_id)
    if review.solved:
        keep_progress(exercise_id)


def review_answer(exercise_id: str, answer: Any) -> Review:
    """Return what a check finds; nothing is printed or kept. The answer runs in another process, for a limited time."""
    exercise = EXERCISES.get(exercise_id)
    if exercise is None:
        return Review(no_exercise(exercise_id))
    answers = [answer] if len(exercise.wants) == 1 else answer
    packing = Packing()
    try:
        if problem := not_yet(exercise, answers):
            return Review(f"{exercise_id}: not yet. {problem}")
        parts = [packing.write(part) for part in answers]
    except (CannotSend, RecursionError) as error:
        held = error if isinstance(error, CannotSend) else "itself"
        advice = "Write functions with def, in a cell, and values as plain data."
        return Review(f"{exercise_id}: this answer holds {held}, which a check cannot take along. {advice}")
    arguments = {"exercise_id": exercise_id, "parts": parts, "code": packing.code, "left": list(packing.left)}
    try:
        events, ended = SANDBOX.run("looplab.exercise_bank:try_by_id", arguments)
    except OSError:
        return Review(f"{exercise_id}: an answer is tried in a second Python process, and this system starts none.")
    return judge_events(exercise, events, ended, packing.shadowed)


def no_exercise(exercise_id: Any) -> str:
    """Say that there is no such exercise, and which there are."""
    near = [known for known in EXERCISES if known[:2] == str(exercise_id)[:2]]
    there_are = ", ".join(near) or 'those that progress() counts; their ids are like "01-bug"'
    return f"There is no exercise {exercise_id!r}. There are {there_are}."


def not_yet(exercise: Exercise, answers: Any) -> str:
    """Say what is missing before an answer can be tried; "" if nothing is."""
    count = len(exercise.wants)
    if answers is ... or answers == [...]:
        return "Put your answer in the place of the three dots, and run the cell again."
    if not isinstance(answers, (list, tuple)) or len(answers) != count:
        return f"The answer is a list of {count}: [{', '.join(exercise.wants)}]."
    for (name, kind), answer in zip(exercise.wants.items(), answers):
        if kind is FunctionType and not isinstance(answer, FunctionType) and answer is not ...:
            advice = "Write it with def." if isinstance(answer, type) else "Give its name alone, without brackets."
            return f"{name} must be a function, and this is {name_of(answer)}. {advice}"
        if not isinstance(answer, kind) and answer is not ...:
            return f"{name} must be {name_of(kind())}, and this is {name_of(answer)}."
    if dots := places_left(answers):
        places = "the three dots are" if dots == 1 else f"three dots in {dots} places are"
        return f"There is something left to write: {places} still there."
    if is_unchanged(answers[0], exercise.shipped):
        return "The function is as it was. Find the bug, mend it, and run the cell again."
    return ""


def judge_events(exercise: Exercise, events: list[Json], ended: str, shadowed: list[str]) -> Review:
    """Return the review for what the other process told."""
    outcomes = [event for event in events if "holds" in event]
    inputs = [event for event in events if "given" in event]
    if len(inputs) > len(outcomes) or not outcomes:
        inputs = inputs or [{"given": "the cell as it is", "expected": "code that ends"}]
        came_back = "it ended the whole process, or used up its memory"
        if ended == "stopped":
            came_back = f"it was still running after {sandbox.SECONDS:g} seconds and was stopped"
        outcomes.append({"holds": False, "came_back": came_back, "printed": ""})
    held, cases = sum(outcome["holds"] for outcome in outcomes), len(exercise.cases)
    head = f"{exercise.id}: {held} of {cases} cases hold."
    if held == cases:
        return Review(f'{head} solution("{exercise.id}") shows ours.', held, cases)
    first = next(i for i, outcome in enumerate(outcomes) if not outcome["holds"])
    given, outcome = inputs[first], outcomes[first]
    lines = [f"{head} The first that does not, case {first + 1}:", row("input", given["given"])]
    lines += [row("expected", given["expected"]), row("came back", outcome["came_back"])]
    if outcome["printed"]:
        lines.append(row("printed", outcome["printed"]))
    if len(outcomes) < cases:
        lines.append(f"  The {cases - len(outcomes)} cases after it were not tried.")
    if shadowed:
        names = ", ".join(shadowed)
        lines.append(f"  In this notebook {names} is no longer what Python means by it; `del` brings it back.")
    return Review("\n".join([*lines, f'  hint("{exercise.id}") helps.']), held, cases)


def row(label: str, text: str) -> str:
    """Write a label and a text beside it, whose further lines are indented."""
    return f"  {label:<{LABEL}}" + text.rstrip("\n").replace("\n", "\n" + " " * (LABEL + 2))


def hint(exercise_id: str) -> None:
    """Print the next of the three hints of an exercise; each is stronger than the one before."""
    exercise = EXERCISES.get(exercise_id)
    if exercise is None:
        print(no_exercise(exercise_id))
        return
    number = hints_given[exercise_id] = min(hints_given.get(exercise_id, 0) + 1, len(exercise.hints))
    print(f"Hint {number} of {len(exercise.hints)}. {exercise.hints[number - 1]}")


def solution(exercise_id: str) -> None:
    """Print the solution of an exercise, once a check has seen an answer of the reader."""
    if exercise_id not in EXERCISES:
        print(no_exercise(exercise_id))
    elif exercise_id not in tried and exercise_id not in read_progress():
        print(f"Try it first: after a check of an answer of yours, solution({exercise_id!r}) shows ours.")
    else:
        notebook, source = find_solution(exercise_id)
        print(f"{source}\n\nWhy this is right, and what other answers miss: notebooks/solutions/{notebook}")


def find_solution(exercise_id: str) -> tuple[str, str]:
    """Return the name of the notebook with the solution, and the source of its cell, which has the exercise's id."""
    for name in NOTEBOOKS:
        path = SOLUTIONS / f"{name}.ipynb"
        if name[:2] == exercise_id[:2] and path.exists():
            for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
                if cell["id"] == exercise_id:
                    return path.name, "".join(cell["source"])
    raise ValueError(f"notebooks/solutions has no cell {exercise_id}")


# --- Progress ------------------------------------------------------------------------------------------------


def progress() -> None:
    """Print how many exercises of each notebook are solved, and that progress.json can be deleted to begin again."""
    solved, width = read_progress(), max(map(len, NOTEBOOKS)) + 2
    for name, bank in NOTEBOOKS.items():
        marks = "".join("■" if exercise.id in solved else "□" for exercise in bank)
        print(f"{name:<{width}}{sum(exercise.id in solved for exercise in bank)} of {len(bank)}  {marks}")
    print(f"{'all':<{width}}{len(solved)} of {len(EXERCISES)}")
    if solved:
        print("Kept in notebooks/progress.json; delete that file to begin again.")


def read_progress() -> list[str]:
    """Return the ids of the exercises that are solved; a file that cannot be read counts as none."""
    try:
        solved = json.loads(PROGRESS.read_text(encoding="utf-8"))["solved"]
        return [exercise_id for exercise_id in EXERCISES if exercise_id in solved]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def keep_progress(exercise_id: str) -> None:
    """Add an exercise to those solved; not from the solutions, for they are ours."""
    in_solutions = SOLUTIONS.exists() and Path.cwd().samefile(SOLUTIONS)
    if in_solutions or exercise_id in (solved := read_progress()):
        return
    with suppress(OSError):  # a folder that cannot be written is no reason to fail
        keep_json(PROGRESS, {"version": 1, "solved": [*solved, exercise_id]})
