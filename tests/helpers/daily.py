"""Parameters of a test: a few are in the default run, and the others are slow."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def daily(cases: Iterable[Any], of: Collection[Any], reason: str, seconds: float) -> list[Any]:
    """The cases for `pytest.mark.parametrize`: all but those in `of` have the marker `slow`. A tuple is the values of
    several parameters. ValueError if one of `of` is no case."""
    every = list(cases)
    if missing := [each for each in of if each not in every]:
        raise ValueError(f"{missing} are no cases")
    slow = pytest.mark.slow(reason, seconds=seconds)
    return [pytest.param(*_values(case), marks=[] if case in of else slow) for case in every]


def _values(case: Any) -> tuple[Any, ...]:
    return case if isinstance(case, tuple) else (case,)
