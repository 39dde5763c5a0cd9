"""The file under test, as `mine` in every test of a stage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from . import candidate
from .candidate import Candidate, load


@pytest.fixture(scope="session")
def loaded(impl: Path, pytestconfig: pytest.Config) -> tuple[ModuleType | None, str]:
    candidate.SECONDS = pytestconfig.option.seconds
    return load(impl)


@pytest.fixture(scope="module")
def mine(impl: Path, loaded: tuple[ModuleType | None, str]) -> Candidate:
    return Candidate(impl.name, *loaded)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    """Tell in words, and not by a traceback of ours, that what came back cannot even be read."""
    try:
        return (yield)
    except Exception as error:
        came_back = f"one that raises {type(error).__name__}: {error}"
        tried = pyfuncitem.funcargs["mine"].last_tried
        pytest.fail(f"tried:     {tried}\nexpected:  a result that can be read\ncame back: {came_back}", pytrace=False)
