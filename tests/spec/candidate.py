"""The file under test: its code is loaded and run so that nothing in it can stop the suite.

Every check is a Trial. When it fails it says what was tried, what was expected, and what came back.
"""

from __future__ import annotations

import ctypes
import inspect
import io
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import pytest

SECONDS = 2.0  # how long one piece of the file's code may run; the option --seconds sets it
CHARS = 1000  # how much is shown of what it prints, and of a value
MODULE = "file_under_test"


class StillRunning(BaseException):
    """Stops a thread of the file's code; its own `except Exception` does not hold it up."""


class NotAwaited(BaseException):
    """Stands for the coroutine that an async function returned."""


class AskedTooOften(BaseException):
    """Ends a loop that asks the model on and on."""


class Output(io.StringIO):
    """Keeps the first characters of what is printed and counts the rest, so that endless printing fills nothing."""

    printed = 0
    stopped = False

    def write(self, text: str) -> int:
        if self.stopped:
            park()
        super().write(text[: max(0, CHARS - self.printed)])
        self.printed += len(text)
        return len(text)


def park() -> None:
    """Let a thread that nothing else can stop wait for ever; it is a daemon, so Python still ends."""
    threading.Event().wait()


@contextmanager
def quiet(output: Output) -> Iterator[None]:
    """Give the file's code an empty input and this output, and let its warnings be."""
    kept = sys.stdin, sys.stdout, sys.stderr
    sys.stdin, sys.stdout, sys.stderr = io.StringIO(), output, output
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = kept
    if output.printed:
        print(output.getvalue(), more(output.printed), sep="")


def run(act: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """Return what `act` returns and None, or None and what it raised; StillRunning if it had to be stopped."""
    outcome: list[tuple[Any, BaseException | None]] = []

    def work() -> None:
        try:
            try:
                outcome.append((act(), None))
            except BaseException as error:
                outcome.append((None, error))
        except StillRunning:  # it came when the work had just ended
            pass

    thread = threading.Thread(target=work, daemon=True)
    output = Output()
    with quiet(output):
        thread.start()
        thread.join(SECONDS)
        if thread.is_alive():
            stop(thread, output)
            return None, StillRunning()
    value, error = outcome[0]
    if inspect.iscoroutine(value):
        value.close()
        return None, NotAwaited()
    return value, error


left_behind: list[Output] = []


def stop(thread: threading.Thread, output: Output) -> None:
    """Raise StillRunning in a thread until it ends.

    Code that catches everything may go on: then it is parked when it prints. What waits outside of Python is left.
    """
    left_behind.append(output)  # `print` of a thread that goes on crashes Python if its output is gone
    output.stopped = True
    for _ in range(100):
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(StillRunning))
        thread.join(0.01)
        if not thread.is_alive():
            return


def load(path: Path) -> tuple[ModuleType | None, str]:
    """Return the module that a file makes, or None and a sentence that says why it makes none.

    The file is compiled as it is now, with its asserts, whatever is cached and however Python was started.
    """
    if not path.is_file():
        return None, f"there is no file {path}"
    if path.suffix == ".ipynb":
        return None, f"{path.name} is a notebook: put its code into a file that ends in .py, as %%writefile does"
    module = sys.modules[MODULE] = ModuleType(MODULE)
    module.__file__ = str(path)
    _, error = run(lambda: exec(compile(path.read_bytes(), path, "exec", dont_inherit=True, optimize=0), vars(module)))
    return (None, f"importing {path.name}: {describe(error)}") if error else (module, "")


def describe(error: BaseException) -> str:
    """Say in words how a piece of the file's code ended without a result."""
    if isinstance(error, StillRunning):
        return f"it was still running after {SECONDS:g} seconds and was stopped"
    if isinstance(error, AskedTooOften):
        return str(error)
    if isinstance(error, SystemExit):
        return f"it called sys.exit{place_of(error)}"
    if isinstance(error, NotAwaited):
        return "a coroutine: `async def` does no work until it is awaited; write `def`"
    words = f": {error}" if str(error) else ""
    return f"it raised {type(error).__name__}{words}{place_of(error)}"


def place_of(error: BaseException) -> str:
    """Return the last line of the file under test that an exception came through, in words."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == sys.modules[MODULE].__file__]
    return f" (line {lines[-1]})" if lines else ""


def show(value: Any) -> str:
    """Write a value for a reader: exact text between backticks, the rest as Python does, long ones cut."""
    text = f"`{value}`" if isinstance(value, str) else getattr(value, "__name__", None) or repr(value)
    return text[:CHARS] + more(len(text))


def more(length: int) -> str:
    """Say how much of a text is not shown."""
    return f" … and {length - CHARS} more characters" if length > CHARS else ""


class Candidate:
    """The file under test as the tests of one stage see it: its names, and what is tried on it."""

    def __init__(self, file: str, module: ModuleType | None, problem: str) -> None:
        self._file, self._module, self._problem = file, module, problem
        self._stuck = self.last_tried = ""

    def require(self, *names: str) -> None:
        """Fail, in one sentence, unless the file was loaded and has these names."""
        if self._problem:
            pytest.fail(self._problem, pytrace=False)
        missing = [name for name in names if not self._has(name)]
        if missing:
            pytest.fail(f"{self._file} has no class or function named {', '.join(missing)}", pytrace=False)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if not self._has(name):
            pytest.skip(f"not tried: {self._problem or f'{self._file} has no {name}'}")
        return getattr(self._module, name)

    def _has(self, name: str) -> bool:
        return callable(getattr(self._module, name, None))

    def attempt(self, tried: str, act: Callable[[], Any]) -> Trial:
        """Run `act`, which uses the file's code, for a limited time; `tried` tells a reader what it does.

        Skips the test if something before it in this stage did not end: the next would most likely not end either.
        """
        if self._stuck:
            pytest.skip(f"not tried, because this did not end: {self._stuck}")
        self.last_tried = tried
        trial = Trial(tried, *run(act))
        if isinstance(trial.error, StillRunning):
            self._stuck = tried
        return trial

    def use(self, called: str, /, *args: Any, **named: Any) -> Trial:
        """Call one function or class of the file."""
        function = getattr(self, called)
        given = [*map(repr, args), *(f"{name}={value!r}" for name, value in named.items())]
        return self.attempt(f"{called}({', '.join(given)})", lambda: function(*args, **named))


class Trial:
    """One thing tried, and what came of it: `value`, or `error` if it raised one or did not end."""

    def __init__(self, tried: str, value: Any, error: BaseException | None) -> None:
        if isinstance(error, (pytest.skip.Exception, pytest.fail.Exception)):
            raise error
        self.tried, self.error, self._value = tried, error, value

    def returned(self, expected: str = "a result") -> Any:
        """Return what came back; fail if nothing did, telling what was expected in its place."""
        if self.error is not None:
            self.fail(expected, describe(self.error))
        return self._value

    def fail(self, expected: str, came_back: str) -> NoReturn:
        pytest.fail(f"tried:     {self.tried}\nexpected:  {expected}\ncame back: {came_back}", pytrace=False)

    def expect(self, ok: bool, expected: str, came_back: str) -> None:
        """Fail unless `ok`, in words."""
        self.returned(expected)
        if not ok:
            self.fail(expected, came_back)

    def gives(self, expected: Any) -> None:
        """Expect exactly this value."""
        value = self.returned(show(expected))
        self.expect(value == expected, show(expected), show(value))

    def field(self, name: str, expected: str = "") -> Any:
        """Return a field of what came back."""
        expected = expected or f"a result with the field {name}"
        value = self.returned(expected)
        if not hasattr(value, name):
            self.fail(expected, f"{show(value)}, without the field {name}")
        return getattr(value, name)

    def has(self, **fields: Any) -> None:
        """Expect these values in the fields of what came back."""
        for name, part in fields.items():
            expected = f"{name} = {show(part)}"
            value = self.field(name, expected)
            self.expect(value == part, expected, f"{name} = {show(value)}")

    def is_a(self, kind: type) -> None:
        """Expect an instance of a class of the file."""
        value = self.returned(f"a {kind.__name__}")
        self.expect(isinstance(value, kind), f"a {kind.__name__}", f"a {type(value).__name__}")

    def raises(self, text: str, kind: type[BaseException] = Exception) -> None:
        """Expect an exception of this kind, with this text in its message."""
        expected = f"an exception of the kind {kind.__name__} with the text {show(text)}"
        if self.error is None:
            self.fail(expected, f"no exception, but {show(self._value)}")
        if not isinstance(self.error, kind) or text not in str(self.error):
            self.fail(expected, describe(self.error))
