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
def pytest_pyfunc_call() -> Iterator[None]:
    """Tell in a sentence, and not by a traceback of ours, that what came back cannot even be read."""
    try:
        return (yield)
    except Exception as error:
        pytest.fail(f"what came back cannot be read: {type(error).__name__}: {error}", pytrace=False)
