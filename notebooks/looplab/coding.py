"""The smallest coding agent: its repository is one file, in memory, and all it can do is read."""

from __future__ import annotations

from typing import Any

from agentloop import Json, ToolFailure, ToolRegistry, after, asks, call, final
from looplab.worlds import schema

CODING_TASK = "add(2, 3) returns -1. Find out why."
DIAGNOSIS = "add in calculator.py returns a - b, so add(2, 3) is -1. It should return a + b. No file has been changed."


def calculator_world(missing: type[Exception] = ToolFailure) -> tuple[ToolRegistry, dict[str, str]]:
    """Return a registry that can read, and the files of the repository by their paths.

    `missing` is what `read` raises for a path that is none of theirs.
    """
    files = {"calculator.py": "def add(a, b):\n    return a - b\n"}

    def read(path: str) -> str:
        if path not in files:
            raise missing(f"use read with path={min(files)!r}")
        return files[path]

    registry = ToolRegistry()
    about_read = "The text of a file. Use it before you say anything about the code."
    registry.register("read", about_read, schema(path="string"), read)
    return registry, files


def diagnoses() -> list[Any]:
    """Return the script of a model that guesses a path, reads the error, and names the fault in the file it finds."""
    return [
        asks(call("r1", "read", path="sum.py"), text="I will look at the code."),
        after("ERROR: use read", asks(call("r2", "read", path="calculator.py"))),
        after("return a - b", final(DIAGNOSIS)),
    ]


def add_works(files: dict[str, str]) -> bool:
    """Say whether add(2, 3) is 5: a check of the task, which asks no model."""
    names: Json = {}
    exec(files["calculator.py"], names)
    return bool(names["add"](2, 3) == 5)
