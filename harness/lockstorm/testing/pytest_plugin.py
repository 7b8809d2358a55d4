"""The pytest plug-in (`lockstorm docs pytest`): options, the marker, fixtures, the gate's cases.

pytest loads this module in every environment that has lockstorm, also for suites that do not use it. So it imports
nothing that a trial consists of: the other modules of this room do, once a test asks for a fixture.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lockstorm.base.errors import UsageError
from lockstorm.testing import trial_outcome
from lockstorm.testing.item_state import BUDGET, BUDGET_S, GATE, MARKER, REPORT, SEED

if TYPE_CHECKING:
    from lockstorm.results.verdict import TrialResult
    from lockstorm.search.search_result import SearchResult
    from lockstorm.testing.trial_runner import TrialRunner
    from lockstorm.trial.trial import Trial

SEED_MOST = 2**63 - 1  # SEED_LIMIT of trial/settings.py
MARKER_HELP = (
    f"{MARKER}(lock=, adapter=, plugin=, store=, time=, seed=, ...): the lock and the settings of the trials of this "
    "test, named like the fields of TrialSettings; the closest marker wins (`lockstorm docs pytest`)."
)


# --- options ---


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("lockstorm")
    group.addoption(
        "--lockstorm-seed",
        dest=SEED,
        type=int,
        metavar="N",
        help="Seed of all lockstorm trials without a seed of their own. Default: 1.",
    )
    group.addoption(
        "--lockstorm-report",
        dest=REPORT,
        metavar="DIR",
        help="Keep the history and the HTML report of every lockstorm trial in this directory.",
    )
    group.addoption(
        "--lockstorm-budget",
        dest=BUDGET,
        metavar="DURATION",
        help="Time for each lockstorm_explore that names no schedules and no time_limit, such as 10s. Default: "
        f"{BUDGET} in the configuration file, or that of lockstorm explore.",
    )
    parser.addini(BUDGET, "The default of --lockstorm-budget.", default="")
    group.addoption(
        "--lockstorm-gate",
        dest=GATE,
        nargs="?",
        const="lockstorm.toml",
        metavar="POLICY",
        help="Run each case of this gate policy as a test. Default without a value: lockstorm.toml.",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER_HELP)
    config.pluginmanager.register(trial_outcome, "lockstorm-outcome")
    options = config.option
    if (seed := getattr(options, SEED)) is not None and not 0 <= seed <= SEED_MOST:
        raise pytest.UsageError(f"--lockstorm-seed {seed}: from 0 to {SEED_MOST}")
    config.stash[BUDGET_S] = _budget_s(getattr(options, BUDGET) or config.getini(BUDGET))
    directory = config.invocation_params.dir
    if getattr(options, REPORT):  # absolute, so that xdist's workers write to the same place
        setattr(options, REPORT, str(directory / getattr(options, REPORT)))
    if chosen := getattr(options, GATE):
        policy = (directory / chosen).resolve()
        if policy.suffix != ".toml":  # pytest takes the word behind the option for its value
            raise pytest.UsageError(
                f"--lockstorm-gate {chosen}: a policy is a .toml file. For lockstorm.toml beside other tests write the "
                f"option last: pytest {chosen} --lockstorm-gate"
            )
        if not policy.is_file():
            raise pytest.UsageError(f"--lockstorm-gate: there is no policy {policy}: lockstorm init writes one")
        setattr(options, GATE, str(policy))
        if not any((directory / each.partition("::")[0]).resolve() == policy for each in config.args):
            config.args.append(str(policy))


def _budget_s(text: str) -> int | None:
    if not text:
        return None
    from lockstorm.base.durations import parse_duration_ms

    try:
        return max(1, parse_duration_ms(text, "s") // 1000)
    except UsageError as error:
        raise pytest.UsageError(f"--lockstorm-budget {error}") from None


# --- the gate's cases ---


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    policy = parent.config.getoption(GATE)
    if not policy or Path(policy) != file_path.resolve():
        return None
    from lockstorm.testing.gate_items import PolicyFile

    return PolicyFile.from_parent(parent, path=file_path)


# --- fixtures ---


@pytest.fixture
def lockstorm_runner(request: pytest.FixtureRequest) -> "Iterator[TrialRunner]":
    """What the other fixtures are methods of: opens and plays trials, and keeps their histories."""
    from lockstorm.testing.trial_runner import TrialRunner

    with TrialRunner(request) as runner:
        yield runner


@pytest.fixture
def lockstorm_trial(lockstorm_runner: "TrialRunner") -> "Iterator[Trial]":
    """A trial of the lock that the marker names, to be driven step by step."""
    with lockstorm_runner.open() as trial:
        yield trial


@pytest.fixture
def lockstorm_open(lockstorm_runner: "TrialRunner") -> "Callable[..., AbstractContextManager[Trial]]":
    """lockstorm_open(**settings): a context manager that opens a trial to be driven step by step; a test may open
    several, one after the other."""
    return lockstorm_runner.open


@pytest.fixture
def lockstorm_play(lockstorm_runner: "TrialRunner") -> "Callable[..., TrialResult]":
    """lockstorm_play(scenario, **settings): plays a scenario and returns its result."""
    return lockstorm_runner.play


@pytest.fixture
def lockstorm_storm(lockstorm_runner: "TrialRunner") -> "Callable[..., TrialResult]":
    """lockstorm_storm(faults="...", trials=1, duration_ms=..., **settings): runs storms and returns their result."""
    return lockstorm_runner.storm


@pytest.fixture
def lockstorm_app(lockstorm_runner: "TrialRunner") -> "Callable[..., SearchResult]":
    """lockstorm_app("lockstorm-app.toml", schedules=..., time_limit=..., faults="...", **settings): searches schedules
    of the application that the file describes, and returns the verdict on them."""
    return lambda file, **settings: lockstorm_runner.explore(app=file, **settings)


@pytest.fixture
def lockstorm_explore(lockstorm_runner: "TrialRunner") -> "Callable[..., SearchResult]":
    """lockstorm_explore(schedules=..., time_limit=..., faults="...", **settings): searches schedules and returns the
    verdict on them."""
    return lockstorm_runner.explore
