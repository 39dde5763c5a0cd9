"""Other Python processes: what a notebook starts where a run must end with its process."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import agentloop

HERE = [str(Path(agentloop.__file__).parent), str(Path(__file__).parents[1])]


@dataclass(frozen=True)
class Ended:
    """A process that has ended: what it printed, and whether it was killed."""

    said: str
    killed: bool


def in_a_process(module: str, *arguments: object) -> Ended:
    """Run a module of looplab in a process of its own, as `python -m` does, and wait for its end.

    Raises RuntimeError, with what it wrote about it, if the module failed.
    """
    paths = dict.fromkeys([*HERE, *(path or os.getcwd() for path in sys.path)])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONUTF8": "1"}
    command = [sys.executable, "-m", f"looplab.{module}", *map(str, arguments)]
    ended = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8")
    if ended.stderr:
        raise RuntimeError(f"looplab.{module} failed: {ended.stderr}")
    return Ended(ended.stdout, ended.returncode != 0)
