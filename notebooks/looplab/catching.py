"""Judge a reader's test: it must pass on our loop and fail on the broken one, or end on ours and never on the other.

It runs in another process, three times, each time for as long as a job of the sandbox may take.
"""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from agentloop import Json
from looplab import sandbox
from looplab.answers import CannotSend, Packing, dots_in, source_of
from looplab.faults import broken_text, get_fault, our_text
from looplab.view import plural

SANDBOX = sandbox.Sandbox("looplab.faults")
LINES, WIDTH = 8, 300  # of what a test printed
NOT_A_TEST = "not yet. Write a function test(agentloop), and give its name without brackets."
NOT_RUN = "calling this test runs none of its lines. Write it without yield and async."
UNWRITTEN = "not yet. Write the test in the place of the three dots, and run the cell again."
ELSEWHERE = "It runs the agentloop that is installed. Take all that it uses from its argument, the loop under test."
UNUSED = "It never uses its argument, which is the loop under test."


@dataclass(frozen=True)
class Judgement:
    """What became of a reader's test: whether it tells the two loops apart, and a text that says it.

    `tried` says that it ran at all, `printed` what it printed, and `source` is its text.
    """

    caught: bool
    text: str
    tried: bool = False
    printed: str = ""
    source: str = ""


def judge_test(number: Any, test: Any) -> Judgement:
    """Try a test on our loop and on a broken one, in another process, for a limited time."""
    try:
        fault = get_fault(number)
    except ValueError as error:
        return Judgement(False, f"No test was tried: {error}.")
    packing = Packing()
    if problem := not_yet(test):
        return Judgement(False, f"Case {number}: {problem}")
    try:
        job = {"part": packing.write(test), "code": packing.code, "left": list(packing.left)}
    except (CannotSend, RecursionError) as error:
        held = error if isinstance(error, CannotSend) else "itself"
        said = f"this test holds {held}, which cannot be taken along. Write it with def, in a cell."
        return Judgement(False, f"Case {number}: {said}")
    try:
        caught, said, printed = try_on_both(broken_text(fault), job, runs_ours(test.__code__))
    except OSError:
        said = "a test is tried in a second Python process, and this system starts none."
        return Judgement(False, f"Case {number}: {said}")
    return Judgement(caught, f"Case {number}: {said}", True, printed, source_of(test)[0].rstrip())


def not_yet(test: Any) -> str:
    """Say why a test cannot be tried as it is; "" if it can."""
    if not isinstance(test, FunctionType):
        return NOT_A_TEST
    if test.__code__.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return NOT_RUN
    return UNWRITTEN if is_unwritten(test) else ""


def is_unwritten(test: FunctionType) -> bool:
    """Say whether three dots stand where the test should; those of an empty class or function inside are none."""
    try:
        tree = ast.parse(source_of(test)[0])
    except CannotSend:
        return False
    bare = [node for node in ast.walk(tree) if isinstance(node, ast.Expr) and is_dots(node.value)]
    own = [node for node in getattr(tree.body[0], "body", []) if node in bare]
    return sum(dots_in(tree)) > len(bare) - len(own)


def is_dots(node: ast.AST) -> bool:
    """Say whether a piece of code is three dots."""
    return isinstance(node, ast.Constant) and node.value is ...


def runs_ours(code: CodeType) -> bool:
    """Say whether a function takes agentloop from outside, by an import or as a name of its notebook."""
    inner = [const for const in code.co_consts if isinstance(const, CodeType)]
    return "agentloop" in code.co_names or any(map(runs_ours, inner))


# --- On both loops -------------------------------------------------------------------------------------------


def try_on_both(broken: str, job: Json, outside: bool) -> tuple[bool, str, str]:
    """Return whether a test tells the loops apart, a text that says it, and what the test printed.

    `outside` says that the test takes agentloop from outside.
    """
    ours = try_on(our_text(), job)
    if said := fails_on_ours(ours):
        return False, said, printed_text(ours)
    other = try_on(broken, job)
    printed = printed_text(ours, other)
    if not other["failed"]:
        said = f"the test passes on both loops, so the broken one gets away with it.{why(other, outside)}"
        return False, said, printed
    again = try_on(our_text(), job)
    if again["failed"]:
        said = f"run again on our loop, the test fails: {again['came_back']}. Keep all that it changes inside of it."
        return False, said, printed
    if other["ended"] == "stopped":
        said = f"it never ended, and was stopped after {sandbox.SECONDS:g} seconds"
        return True, f"caught. The test passes on our loop; on the broken one {said}.", printed
    return True, f"caught. The test passes on our loop; on the broken one {other['came_back']}.", printed


def try_on(text: str, job: Json) -> Json:
    """Return what came of a test on a loop; where its process did not tell, how that ended."""
    events, ended = SANDBOX.run("looplab.faults:try_test", {"text": text} | job)
    outcome: Json = {"on": "the cell", "ended": ended, "printed": "", "used": True, "reasons": []}
    for event in events:
        outcome |= event
    if "failed" in outcome:
        return outcome
    became = "ended the process, or used up its memory"
    if ended == "stopped":
        became = f"was still running after {sandbox.SECONDS:g} seconds and was stopped"
    return outcome | {"failed": True, "came_back": f"it {became}"}


def fails_on_ours(outcome: Json) -> str:
    """Say why a test that does not pass on our loop proves nothing; "" if it passes."""
    if not outcome["failed"]:
        return ""
    came_back = outcome["came_back"]
    if outcome["on"] == "the cell":
        return f"the cell does not run: {came_back}."
    if outcome["ended"] == "stopped":
        return f"on our loop the test {came_back.removeprefix('it ')}; does its script end?"
    if outcome["ended"]:
        return f"on our loop the test {came_back.removeprefix('it ')}."
    said = f"the test fails on our loop, so it does not tell the two apart: {came_back}."
    return said + first_reason(outcome, came_back)


def why(outcome: Json, outside: bool) -> str:
    """Say of a test that passes on both loops what may be amiss."""
    if outside:
        return f" {ELSEWHERE}"
    if not outcome["used"]:
        return f" {UNUSED}"
    if outcome["came_back"] != "None":
        return f" It returned {outcome['came_back']}; a test fails by raising, as assert does."
    return first_reason(outcome, "")


def first_reason(outcome: Json, told: str) -> str:
    """Name the first thing that failed under the test, unless that was told."""
    reasons = [f"{what}: {error}" for what, error in outcome["reasons"] if error not in told]
    return f" First of all, {reasons[0]}." if reasons else ""


def printed_text(*outcomes: Json) -> str:
    """Return what a test printed, cut, for each loop where it printed something else."""
    texts = dict(zip(("on our loop", "on the broken one"), (cut_lines(outcome["printed"]) for outcome in outcomes)))
    if len(set(texts.values())) == 1:
        texts = {"": next(iter(texts.values()))}
    return "\n".join(f"It printed{f' {where}' if where else ''}:\n{text}" for where, text in texts.items() if text)


def cut_lines(text: str) -> str:
    """Return the first lines of a text, each cut, and how many follow."""
    lines = text.rstrip().split("\n")
    shown = [line if len(line) <= WIDTH else f"{line[:WIDTH]} …" for line in lines[:LINES]]
    more = len(lines) - LINES
    return "\n".join([*shown, f"… and {plural(more, 'more line')}"] if more > 0 else shown)
