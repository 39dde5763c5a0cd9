"""Exercises of notebook 14: a refusal that repairs, a verifier, a resume after a crash, a confinement that leaks."""

from __future__ import annotations

import os
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FunctionType
from typing import Any

from agentloop import INTERRUPTED, AgentResult, ToolCall, asks, call, check_messages, run_agent
from looplab.cases import Case, Exercise, Patient, Raises
from looplab.project import PROJECT_TASK, calculator_project
from looplab.worlds import order_desk

# --- A refusal that repairs ----------------------------------------------------------------------------------

TEXT = "def add(a, b):\n    if a:\n        return a - b\n    return b\n\n\ndef negate(a):\n    return 0 - a\n"
ALIKE = Exercise(
    "14-alike",
    {"find_alike": FunctionType},
    [
        Case(
            'find_alike(text, "return a - b")',
            "the line as it stands in the text, with its 8 spaces",
            "        return a - b",
        ),
        Case(
            r'find_alike(text, "def negate(a):\n\treturn 0 - a")',
            "both lines as they stand in the text: a tab and four spaces are alike",
            "def negate(a):\n    return 0 - a",
        ),
        Case(
            r'find_alike(text, "if a:   \nreturn a - b\n")',
            "both lines as they stand in the text, although old ends in spaces and a line end",
            "    if a:\n        return a - b",
        ),
        Case('find_alike(text, "return a * b")', "None: no line is alike", None),
        Case('find_alike(text, "return a-b")', "None: white space within a line counts", None),
        Case('find_alike(text, "turn a - b")', "None: a part of a line is not alike", None),
        Case(
            r'find_alike(text + "\n" + text, "return a - b")',
            "None: two places are alike, and nobody can say which is meant",
            None,
        ),
        Case(r'find_alike("return a - b", " \n")', "None: old is white space alone", None),
    ],
    (
        "Compare line by line, and forget the white space at both ends of a line: strip() does that.",
        "wanted = [line.strip() for line in old.strip().splitlines()]. Then try each line of the text as the first.",
        "Collect every start i at which the stripped lines[i : i + len(wanted)] equal wanted. If there is exactly one, "
        "join the lines there as they are; else return None.",
    ),
    lambda: {"text": TEXT},
)


# --- The verifier asks ---------------------------------------------------------------------------------------

AGENTS = {
    "adds": lambda a, b: a + b,
    "subtracts": lambda a, b: a - b,
    "answers_5": lambda a, b: 5,
    "adds_amounts": lambda a, b: abs(a) + abs(b),
    "adds_while_small": lambda a, b: (a + b) % 100,
    "adds_upwards": lambda a, b: a + max(b, 0),
    "adds_downwards": lambda a, b: a + min(b, 0),
    "answers_in_text": lambda a, b: str(a + b),
    "raises": lambda a, b: [][a],
}
VERIFY = Exercise(
    "14-verify",
    {"succeeded": FunctionType},
    [
        Case("succeeded(adds)", "True: this one adds", True),
        Case("succeeded(subtracts)", "False: this one subtracts", False),
        Case("succeeded(answers_5)", "False: this one answers 5 to everything", False),
        Case("succeeded(adds_amounts)", "False: this one forgets the signs", False),
        Case("succeeded(adds_while_small)", "False: this one is wrong from 100 on", False),
        Case("succeeded(adds_upwards)", "False: this one takes a negative b for 0", False),
        Case("succeeded(adds_downwards)", "False: this one takes a positive b for 0", False),
        Case("succeeded(answers_in_text)", "False: this one answers in text, like '5'", False),
        Case("succeeded(raises)", "False: this one raises, and so has not succeeded", False),
    ],
    (
        "Ask more than the one question that the test asks. Which answers would a lazy add give?",
        "Ask with negative numbers in either place, and with a large one. An exception is no success either.",
        "In a try: return all(ask(a, b) == a + b for a, b in [...]); in the except: return False.",
    ),
    lambda: dict(AGENTS),
)


# --- Resume after a crash ------------------------------------------------------------------------------------

HARMLESS = {"get_order", "calculator"}
LOOK_UP = call("a", "get_order", order_id="A123")
REFUND = call("b", "issue_refund", order_id="A123", amount=5000)
SUM = call("c", "calculator", expression="2500 * 2")
ORDER = '{"item": "keyboard", "unit_price": 2500, "qty": 2}'


def crashed(*calls: ToolCall, answered: int = 0) -> AgentResult:
    """Return an interrupted run whose last reply asks for the calls, of which the first have their observation."""
    registry, _ = order_desk()
    run = run_agent(PROJECT_TASK, Patient([asks(*calls)]), registry, max_steps=1)
    return AgentResult("interrupted", None, 1, run.tokens, run.messages[: 3 + answered])


def resumed(resume: Any, *calls: ToolCall, answered: int = 0) -> tuple[list[str], list[str]]:
    """Resume a run that crashed; return the observations of its last reply, and what ran."""
    registry, ran = order_desk()
    messages = resume(crashed(*calls, answered=answered), registry, set(HARMLESS))
    check_messages(messages)
    return [message["content"] for message in messages[3:]], ran


def left_alone(resume: Any, *calls: ToolCall) -> bool:
    """Say whether the run that was given is as it was."""
    found = crashed(*calls)
    before = deepcopy(found)
    resume(found, order_desk()[0], set(HARMLESS))
    return found == before


RESUME = Exercise(
    "14-resume",
    {"resume": FunctionType},
    [
        Case(
            "resumed(resume, look_up)",
            "the look-up ran, and its result is the observation",
            ([ORDER], ["get_order(A123)"]),
            given="a look-up that is open: its observation, and what ran",
        ),
        Case(
            "resumed(resume, refund)",
            "nothing ran, and the observation is INTERRUPTED",
            ([INTERRUPTED], []),
            given="a refund that is open: its observation, and what ran",
        ),
        Case(
            "resumed(resume, look_up, refund, total)",
            "a result, INTERRUPTED, a result: in the order of the calls",
            ([ORDER, INTERRUPTED, "5000"], ["get_order(A123)", "calculator(2500 * 2)"]),
            given="a look-up, a refund and a sum that are open: their observations, and what ran",
        ),
        Case(
            "resumed(resume, look_up, total, answered=1)",
            "the look-up keeps its result and does not run again; the sum runs",
            ([ORDER, "5000"], ["calculator(2500 * 2)"]),
            given="a look-up that was answered, and a sum that is open: the observations, and what ran",
        ),
        Case(
            "resumed(resume, look_up, answered=1)",
            "nothing ran: nothing is open",
            ([ORDER], []),
            given="a look-up that was answered: its observation, and what ran",
        ),
        Case("left_alone(resume, look_up, refund)", "True: the run that was given is as it was", True),
    ],
    (
        "open_calls(found.messages) are the calls to answer. For each, there are two cases.",
        'The content of an answer is execute(asked) where asked.name is in harmless, else INTERRUPTED. The keys of the '
        "message are role, tool_call_id, name and content.",
        "Build a list of answers, and return found.messages + answers: a new list, and the old one stays as it is.",
    ),
    lambda: {"resumed": resumed, "left_alone": left_alone, "look_up": LOOK_UP, "refund": REFUND, "total": SUM},
)


# --- Find the bug: a confinement that leaks ------------------------------------------------------------------


def found(find_inside: Any, path: str) -> str:
    """Ask for a path in a fresh project; return the file that was found, as seen from the project."""
    with TemporaryDirectory() as folder:
        root = calculator_project(Path(folder))
        (root / "notes").mkdir()
        (root / "link.txt").symlink_to(root.parent / "key.txt")
        old = root.with_name("project-old")
        old.mkdir()
        (old / "key.txt").write_text("", encoding="utf-8")
        file = find_inside(str(root), path.replace("{beside}", str(root.parent)))
        return Path(os.path.relpath(os.path.realpath(file), root)).as_posix()


def refused(path: str, why: str) -> Case:
    """Return the case of a path that must be refused."""
    return Case(f'found(find_inside, "{path}")', f"a ValueError: {why}", Raises(ValueError))


BUG = Exercise(
    "14-bug",
    {"find_inside": FunctionType},
    [
        Case('found(find_inside, "calculator.py")', "the file that was asked for", "calculator.py"),
        Case('found(find_inside, "notes/../calculator.py")', "a way that ends in the project", "calculator.py"),
        refused("../key.txt", "this lies beside the project"),
        refused("{beside}/key.txt", "this is an absolute path out of the project"),
        refused("link.txt", "this link leads out of the project"),
        refused("../project-old/key.txt", "project-old is another folder, whose name begins alike"),
        refused("{beside}/project-old/key.txt", "project-old is another folder, whose name begins alike"),
    ],
    (
        'Print both texts for the path "../project-old/key.txt". Does the one begin with the other?',
        "A path is a list of names, and no text: /site/project-old begins with the letters of /site/project.",
        "Compare names: Path(file).is_relative_to(folder), or make the folder's text end with os.sep.",
    ),
    lambda: {"found": found},
    shipped="""
def find_inside(root, path):
    folder = os.path.realpath(root)
    file = os.path.realpath(os.path.join(folder, path))
    if not file.startswith(folder):
        raise ValueError(f"{path} is outside of the project")
    return file
""",
)

EXERCISES: list[Exercise] = [ALIKE, VERIFY, RESUME, BUG]
