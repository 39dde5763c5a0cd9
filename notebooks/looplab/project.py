"""A disposable project with a bug, the models that work on it, and what a run's messages say about its files."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from agentloop import Json, Model, ModelReply, after, asks, call, final

CALCULATOR = '''"""The smallest calculator."""


def add(a, b):
    return a - b


def subtract(a, b):
    return a - b
'''
TEST_CALCULATOR = """import unittest

from calculator import add, subtract


class TestCalculator(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(2, 3), 5)

    def test_subtract(self):
        self.assertEqual(subtract(5, 3), 2)
"""
FILES = {"calculator.py": CALCULATOR, "test_calculator.py": TEST_CALCULATOR}
PROJECT_TASK = "The test of add fails. Mend the calculator, so that add(2, 3) is 5."

ADD = "def add(a, b):\n    return a - b"
RIGHT_ADD = "def add(a, b):\n    return a + b"


def calculator_project(folder: Path) -> Path:
    """Write the project anew into `folder`, and return its root; a key that is none of its files lies beside it."""
    root = folder.resolve() / "project"
    root.mkdir(parents=True)
    for path, text in FILES.items():
        (root / path).write_text(text, encoding="utf-8", newline="\n")
    (root.parent / "key.txt").write_text("the owner's key is 7421\n", encoding="utf-8")
    return root


def add_odd_files(root: Path) -> None:
    """Put into the project what a tool may stumble over: a folder, two kinds of links out, a picture, a long file."""
    (root / "notes").mkdir()
    (root / "link.txt").symlink_to(root.parent / "key.txt")
    os.link(root.parent / "key.txt", root / "twin.txt")
    (root / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (root / "big.csv").write_text("1,2,3\n" * 10_000, encoding="utf-8", newline="\n")


def kill_group(process: subprocess.Popen[Any]) -> None:
    """End a process that was started in a session of its own, and its group.

    What opened another session for itself is not in the group, and gets away.
    """
    with suppress(OSError, AttributeError):  # the group is gone already; Windows has none
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


# --- Models that work on it ----------------------------------------------------------------------------------


def mends() -> Iterator[ModelReply | Model]:
    """A model that looks, names a place that is there twice, reads the error, and mends add."""
    yield asks(call("l1", "list"), text="I will look at the project first.")
    yield asks(call("r1", "read", path="calculator.py"), call("t1", "run_tests"))
    wrong = call("e1", "edit", path="calculator.py", old="return a - b", new="return a + b")
    yield after("AssertionError: -1 != 5", asks(wrong, text="add subtracts."))
    right = call("e2", "edit", path="calculator.py", old=ADD, new=RIGHT_ADD)
    yield after("2 times in calculator.py", asks(right, call("t2", "run_tests"), text="I mean the one in add."))
    yield after('"passed": true', final("add(2, 3) is 5 now, and both tests pass."))


def one_edit(path: str, old: str, new: str) -> Iterator[ModelReply]:
    """A model that makes one edit, runs the tests, and says that all is well, whatever it saw."""
    yield asks(call("e1", "edit", path=path, old=old, new=new))
    yield asks(call("t1", "run_tests"))
    yield final("add(2, 3) is 5 now.")


# --- What the messages say -----------------------------------------------------------------------------------


def files_after(messages: list[Json], files: Mapping[str, str] = FILES) -> dict[str, str]:
    """Return the project's files after a run: those before it, and each edit that its messages say was made.

    An edit is exact, so a list of messages holds every state of these files.
    """
    files = dict(files)
    asked = {c["id"]: c["args"] for message in messages for c in message.get("tool_calls", [])}
    for message in messages:
        if message.get("name") == "edit" and not message["content"].startswith("ERROR: "):
            edit = asked[message["tool_call_id"]]
            if edit["path"] in files:
                files[edit["path"]] = files[edit["path"]].replace(edit["old"], edit["new"])
    return files
