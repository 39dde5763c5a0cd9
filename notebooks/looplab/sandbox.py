"""A process for code that may never end. It is kept for the next job, and ended where it does not end by itself.

A job is a generator function of ours, named "module:function", and its arguments. The process sends back what it
yields, one line of JSON each; what a reader's code prints does not get between these lines.
"""

from __future__ import annotations

import atexit
import builtins
import faulthandler
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import agentloop
from agentloop import Json

SECONDS = 3.0  # a job may take as long; an honest one takes a few thousandths of it
START_SECONDS = 60.0
MEMORY = 2**29
HERE = [str(Path(agentloop.__file__).parent), str(Path(__file__).parents[1])]


class Sandbox:
    """One process, started when it is first needed, and anew after a job that did not leave it as it was.

    `modules` are what its jobs need; they are imported at the start, so that no job waits for them.
    """

    def __init__(self, *modules: str) -> None:
        self._modules = modules
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.close)

    def run(self, job: str, arguments: Json) -> tuple[list[Any], str]:
        """Return what the job yielded, and how it ended: "" by itself, "stopped" by us, or "died".

        Raises OSError where no process can be started.
        """
        reusable = False
        try:
            process = self._running()
            _send(process, {"job": job, "arguments": arguments})
            lines, stopped = _read(process, SECONDS)
            ended = lines[-1].get("ended", "") if lines else ""
            reusable = ended == "as it was" and not stopped
        finally:
            if not reusable:
                self.close()
        how = "" if ended else "stopped" if stopped else "died"
        return [line["yielded"] for line in lines if "yielded" in line], how

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._process = _start(self._modules)
        return self._process

    def close(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process:
            _kill(process)
            process.wait()
            for pipe in filter(None, (process.stdin, process.stdout)):
                with suppress(OSError):  # it may hold what the process did not take any more
                    pipe.close()


def _start(modules: tuple[str, ...]) -> subprocess.Popen[bytes]:
    paths = [*HERE, *(path or os.getcwd() for path in sys.path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)), "PYTHONDONTWRITEBYTECODE": "1"}
    no_window = getattr(subprocess, "CREATE_NO_WINDOW", 0)  # on Windows a console would flash up
    command = [sys.executable, "-P", "-m", "looplab.sandbox", *modules]
    process = subprocess.Popen(
        command,
        env=environment,
        creationflags=no_window,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # so that what a job starts can be ended with it
    )
    if not _read(process, START_SECONDS)[0]:
        raise OSError("no second Python process could be started")
    return process


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the process and all that it started."""
    if process.returncode is None and hasattr(os, "killpg"):  # until it is waited for, its number is no other's
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def _send(process: subprocess.Popen[bytes], line: Json) -> None:
    with suppress(OSError):  # it has died; reading will tell
        if process.stdin:
            process.stdin.write(json.dumps(line).encode() + b"\n")
            process.stdin.flush()


def _read(process: subprocess.Popen[bytes], seconds: float) -> tuple[list[Json], bool]:
    """Return the lines up to the one that ends a job, and whether the process had to be stopped."""
    stopped = threading.Event()

    def stop() -> None:
        stopped.set()
        _kill(process)

    lines: list[Json] = []
    timer = threading.Timer(seconds, stop)
    timer.start()
    try:
        for line in process.stdout or ():
            with suppress(ValueError):  # a line that was cut off
                lines.append(json.loads(line))
            if lines and "ended" in lines[-1]:
                break
    finally:
        timer.cancel()
    return lines, stopped.is_set()


# --- In the process ------------------------------------------------------------------------------------------

BUILTINS = vars(builtins)
AS_STARTED = dict(BUILTINS)


def put_back_builtins(put: Callable[..., None] = BUILTINS.update, started: Json = AS_STARTED) -> list[str]:
    """Undo what was done to the builtins, and return their names; none is used before they are back."""
    found = {**BUILTINS}
    put(started)
    for name in found.keys() - started.keys():
        del BUILTINS[name]
    return sorted(name for name in found.keys() | started.keys() if found.get(name) is not started.get(name))


def state() -> list[Any]:
    """Return what a job could change so that the next one would notice."""
    return [dict(BUILTINS), dict(vars(agentloop)), dict(agentloop.JSON_TYPES), set(sys.modules), threading.enumerate()]


def has_children() -> bool:
    """Say whether the job left processes behind, where the system can be asked for that."""
    with suppress(ChildProcessError, AttributeError):
        os.waitpid(-1, os.WNOHANG)
        return True
    return False


def limit_memory() -> None:
    """Let the process have MEMORY bytes, where the system can be asked for that."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))


def serve(modules: list[str]) -> None:
    """Do the jobs that come in, one a line."""
    jobs, lines = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)

    ours = os.getpid()

    def send(line: Json) -> None:
        if os.getpid() != ours:
            os._exit(0)  # a copy of us that a job made has nothing to say
        lines.write(json.dumps(line).encode() + b"\n")
        lines.flush()

    limit_memory()
    for module in modules:
        importlib.import_module(module)
    send({"ended": "as it was"})
    for line in jobs:
        faulthandler.dump_traceback_later(10 * SECONDS, exit=True)  # for the case that nobody is left to stop us
        job = json.loads(line)
        home, _, name = job["job"].partition(":")
        run, before = getattr(importlib.import_module(home), name), state()
        for event in run(**job["arguments"]):
            send({"yielded": event})
        send({"ended": "as it was" if state() == before and not has_children() else "changed"})
        faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    serve(sys.argv[1:])
