"""The exercises of the notebooks, a module for each: cases and hints. The solutions are in notebooks/solutions."""

from __future__ import annotations

from collections.abc import Iterator

from agentloop import Json
from looplab.cases import Exercise, try_answer
from looplab.exercise_bank import (
    nb_01,
    nb_02,
    nb_03,
    nb_04,
    nb_05,
    nb_06,
    nb_07,
    nb_08,
    nb_09,
    nb_10,
    nb_11,
    nb_12,
    nb_13,
    nb_14,
    nb_15,
    nb_16,
)

NOTEBOOKS = {
    "01_messages": nb_01.EXERCISES,
    "02_validator": nb_02.EXERCISES,
    "03_registry": nb_03.EXERCISES,
    "04_loop": nb_04.EXERCISES,
    "05_exits": nb_05.EXERCISES,
    "06_failing_tools": nb_06.EXERCISES,
    "07_limits_and_hooks": nb_07.EXERCISES,
    "08_approval": nb_08.EXERCISES,
    "09_traces": nb_09.EXERCISES,
    "10_real_models": nb_10.EXERCISES,
    "11_order_desk": nb_11.EXERCISES,
    "12_checkout_incident": nb_12.EXERCISES,
    "13_async_loop": nb_13.EXERCISES,
    "14_a_real_project": nb_14.EXERCISES,
    "15_skills_and_sub_agents": nb_15.EXERCISES,
    "16_evals_and_cost": nb_16.EXERCISES,
}
EXERCISES: dict[str, Exercise] = {exercise.id: exercise for bank in NOTEBOOKS.values() for exercise in bank}


def try_by_id(exercise_id: str, parts: list[str], code: list[Json], left: list[str]) -> Iterator[Json]:
    """Try an answer on the cases of an exercise: the job that is done in a process of its own."""
    yield from try_answer(EXERCISES[exercise_id], parts, code, left)
