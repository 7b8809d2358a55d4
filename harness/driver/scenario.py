"""Scenarios: a story about a lock, told once and run for every lock.

A scenario is a pytest function in scenarios/test_*.py, decorated with `scenario`, that takes a Trial. `lockstorm run`
calls the same function. What it is expected to show stands in scenarios/expected.toml.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from harness.driver import paths

if TYPE_CHECKING:
    from harness.driver.trial import Trial


@dataclass(frozen=True)
class Scenario:
    """One story. `control` says in words what its control does instead of the fault."""

    name: str
    summary: str
    source: str
    control: str
    play: "Callable[[Trial], None]"
    counter: int = 0  # what the store's counter starts with
    real_lease_ms: int = 400  # in real time, where somebody has to wait for it to run out
    real_control_lease_ms: int = 10_000  # in real time, where nobody may outlast it, on however busy a machine


def scenario(
    name: str,
    *,
    summary: str,
    source: str,
    control: str,
    counter: int = 0,
    real_lease_ms: int = 400,
) -> "Callable[[Callable[[Trial], None]], Callable[[Trial], None]]":
    """Makes a function a scenario, without changing it."""

    def mark(play: "Callable[[Trial], None]") -> "Callable[[Trial], None]":
        told = Scenario(name, summary, source, control, play, counter, real_lease_ms)
        play.scenario = told  # type: ignore[attr-defined]
        return play

    return mark


@cache
def scenarios() -> dict[str, Scenario]:
    """All scenarios by name, in the order of their names."""
    found: dict[str, Scenario] = {}
    for path in sorted((paths.ROOT / "scenarios").glob("test_*.py")):
        module = importlib.import_module(f"scenarios.{path.stem}")
        for value in vars(module).values():
            told = getattr(value, "scenario", None)
            if isinstance(told, Scenario):
                found[told.name] = told
    return dict(sorted(found.items()))
