"""Write a reader's answer as code that another process can run: what is typed into a cell cannot be pickled."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import inspect
import linecache
import math
import sys
import textwrap
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

import agentloop
from agentloop import Json


NO_SOURCE = (OSError, TypeError)  # what inspect raises: TypeError for a function that wraps a builtin


class CannotSend(ValueError):
    """A value that cannot be written as code; the text names it."""


class Packing:
    """The code that an answer needs, in order, for a process that knows agentloop and nothing of the notebook."""

    def __init__(self) -> None:
        self.code: list[Json] = []  # pieces of source, each with the line of its cell
        self.left: dict[str, str] = {}  # names that were not taken along, and what cannot be written of them
        self.shadowed: list[str] = []  # names of builtins that mean something else in the notebook
        self._seen: set[str] = set()

    def write(self, value: Any) -> str:
        """Return an expression for `value`, and keep the code of the functions in it; raise CannotSend if none is."""
        if value is None or value is ... or isinstance(value, (bool, int, str)):
            return repr(value)
        if isinstance(value, float):
            return repr(value) if math.isfinite(value) else f"float({str(value)!r})"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{self.write(key)}: {self.write(item)}" for key, item in value.items()) + "}"
        if isinstance(value, (list, tuple, set)):
            items = "[" + ", ".join(map(self.write, value)) + "]"
            return items if isinstance(value, list) else f"{'tuple' if isinstance(value, tuple) else 'set'}({items})"
        if dataclasses.is_dataclass(value) and hasattr(agentloop, type(value).__name__):
            fields = [f"{field.name}={self.write(getattr(value, field.name))}" for field in dataclasses.fields(value)]
            return f"{type(value).__name__}({', '.join(fields)})"
        name = str(getattr(value, "__name__", ""))
        if isinstance(value, FunctionType) or vars(builtins).get(name) is value:
            self.take(name, value)
            if name not in self.left:
                return name
            raise CannotSend(self.left[name])
        raise CannotSend(name_of(value))

    def take(self, name: str, value: Any) -> None:
        """Keep the code that gives `name` its value of the notebook; a value that cannot be written is left."""
        if name in self._seen or is_known(name, value):
            return
        self._seen.add(name)
        self.shadowed += [name] * hasattr(builtins, name)
        try:
            source, line = self._definition(name, value)
            self.code.append({"source": source, "line": line})
        except (CannotSend, RecursionError) as error:
            self.left[name] = str(error)

    def _definition(self, name: str, value: Any) -> tuple[str, int]:
        if isinstance(value, ModuleType):
            return f"import {value.__name__} as {name}", 1
        if is_importable(value):
            return f"from {value.__module__} import {value.__name__} as {name}", 1
        if not isinstance(value, (FunctionType, type)):
            return f"{name} = {self.write(value)}", 1
        source, line, scope = source_of(value)
        for used in sorted(names_in(source) & scope.keys()):
            self.take(used, scope[used])
        return source if name == value.__name__ else f"{source}\n{name} = {value.__name__}", line


def is_known(name: str, value: Any) -> bool:
    """Say whether a name means the same in a process that knows agentloop: many cells are a copy of that file."""
    ours = vars(agentloop).get(name, vars(builtins).get(name))
    if isinstance(value, FunctionType) and isinstance(ours, FunctionType) and ours is not value:
        try:
            return inspect.getsource(ours) == inspect.getsource(value)
        except NO_SOURCE:
            return False
    value = inspect.unwrap(value) if name == "open" else value  # a notebook wraps it
    return value is ours or (isinstance(value, type) and isinstance(ours, type) and value.__module__ == "__main__")


def is_importable(value: Any) -> bool:
    """Say whether a function or class is found in its module by its name; the notebook itself is no such module."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    found = sys.modules.get(module) if module not in (None, "__main__") else None
    return found is not None and vars(found).get(name) is value


def source_of(value: Any) -> tuple[str, int, Json]:
    """Return the source of a function or class, the line it begins at, and the names around it."""
    if isinstance(value, type):
        return source_of_class(value)
    if value.__name__ == "<lambda>":
        raise CannotSend("a lambda")
    try:
        source = textwrap.dedent(inspect.getsource(value))
    except NO_SOURCE:
        raise CannotSend("a function whose source is not at hand") from None
    inside = {name: cell.cell_contents for name, cell in zip(value.__code__.co_freevars, value.__closure__ or ())}
    return source, value.__code__.co_firstlineno, value.__globals__ | inside


def source_of_class(value: type) -> tuple[str, int, Json]:
    """Return the source of a class, found through one of its methods: inspect finds none for a class of a notebook."""
    methods = [getattr(item, "__func__", getattr(item, "fget", item)) for item in vars(value).values()]
    for method in filter(inspect.isfunction, methods):
        lines = linecache.getlines(method.__code__.co_filename)
        for node in ast.walk(ast.parse("".join(lines))):
            if isinstance(node, ast.ClassDef) and node.name == value.__name__:
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                return textwrap.dedent("".join(lines[first - 1 : node.end_lineno])), first, method.__globals__
    raise CannotSend(name_of(value))


def names_in(source: str) -> set[str]:
    """Return the names that a piece of code reads."""
    nodes = ast.walk(ast.parse(source))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def name_of(value: Any) -> str:
    """Name what kind of thing a value is: a list, the function or class of a name."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if getattr(value, "__name__", "") == "<lambda>":
        return "a lambda"
    kind = type(value).__name__
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


# --- Is it an answer yet? ------------------------------------------------------------------------------------


def places_left(value: Any) -> int:
    """Count the three dots that are still to be replaced in an answer."""
    if isinstance(value, FunctionType):
        try:
            return sum(dots_in(ast.parse(source_of(value)[0])))
        except CannotSend:
            return 0
    if isinstance(value, (list, tuple)):
        return sum(map(places_left, value))
    return sum(map(places_left, value.values())) if isinstance(value, dict) else value is ...


def dots_in(node: ast.AST) -> Iterator[bool]:
    """Yield True for each three dots in code; those in a type such as tuple[int, ...] are none to replace."""
    if isinstance(node, ast.Constant) and node.value is ...:
        yield True
    if not isinstance(node, ast.Subscript):
        for child in ast.iter_child_nodes(node):
            yield from dots_in(child)


def is_unchanged(value: Any, shipped: str) -> bool:
    """Say whether a function is the one that the notebook ships, whatever its comments and spaces."""
    try:
        return bool(shipped) and ast.dump(ast.parse(source_of(value)[0])) == ast.dump(ast.parse(shipped))
    except CannotSend:
        return False
