"""What the fixtures do: open and play trials with the settings of a test's markers, and keep what they leave."""

import contextlib
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import msgspec
import pytest

from lockstorm.base.atomic_file import write_text
from lockstorm.base.errors import UsageError, at_place
from lockstorm.base.option_fields import options_of
from lockstorm.results.verdict import TrialResult
from lockstorm.scenario.play import play, prepare_by_hand
from lockstorm.search.explore import known_again, search_schedules
from lockstorm.search.replay import replay_schedule
from lockstorm.search.schedule_file import ScheduleFile, parse_schedule
from lockstorm.search.search_plan import SearchPlan, SearchRequest, plan_search
from lockstorm.search.search_result import SearchResult
from lockstorm.storm.storm import run_storm, run_storms
from lockstorm.storm.storm_plan import StormRequest, plan_storm
from lockstorm.testing.item_state import BUDGET_S, PLAY, PLAYING, REPORT, PlaysTrials
from lockstorm.testing.kept_trials import KeptTrials
from lockstorm.testing.marker_settings import (
    LOCKS,
    GivenSettings,
    check_given,
    durations_read,
    given_settings,
    lock_of,
    seed_of,
    trial_settings,
)
from lockstorm.trial.settings import BY_HAND, TrialSettings, at_pace
from lockstorm.trial.stall_sentinel import pace_of
from lockstorm.trial.trial import Trial


class TrialRunner:
    """The trials of one test, in one play of it."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self.item: pytest.Item = request.node
        self.played_again = 0
        self.usual_seed: int | None = None
        self._report: str | None = request.config.getoption(REPORT)
        self._open: list[Trial] = []
        self._is_over = False
        self._kept = KeptTrials(self.item.nodeid, self._report, lambda: Path(request.getfixturevalue("tmp_path")))

    def __enter__(self) -> Self:
        playing: PlaysTrials = self
        self.item.stash[PLAYING] = playing
        return self

    def __exit__(self, *exception: object) -> None:
        del self.item.stash[PLAYING]

    # --- what the fixtures are ---

    @contextlib.contextmanager
    def open(self, **changes: Any) -> Iterator[Trial]:
        """A trial to be driven step by step, until the block ends."""
        given = self._given(changes)
        request = trial_settings(self.item, given, BY_HAND, by_hand=True)
        self._note_seed(given, request.seed)
        with at_place(self.item.nodeid):
            settings = prepare_by_hand(request)
        with self.open_prepared(settings, lease_is_chosen=bool(request.lease_ms)) as trial:
            trial.steps_must_end = True
            yield trial

    @contextlib.contextmanager
    def open_prepared(self, settings: TrialSettings, *, lease_is_chosen: bool = False) -> Iterator[Trial]:
        """The same for settings that are complete."""
        pace = pace_of(self.item.stash.get(PLAY, 1))
        with Trial(at_pace(settings, pace, lease_is_chosen=lease_is_chosen)) as trial:
            self._open.append(trial)
            try:
                yield trial
            finally:
                if trial in self._open:  # and not kept already
                    self._open.remove(trial)
                    if not self._is_over or self._report:
                        self._keep(trial)

    def play(self, scenario: str, **changes: Any) -> TrialResult:
        """Plays a scenario once and returns its result."""
        given = self._given(changes)
        request = trial_settings(self.item, given, scenario, by_hand=False)
        self._note_seed(given, request.seed)
        with at_place(self.item.nodeid):
            result = play(request, save=self._kept.add().history)
        return self._noted(result)

    def storm(self, **changes: Any) -> TrialResult:
        """Runs a storm, or several (`trials`) with rising seeds, and returns the result."""
        changes = durations_read(self.item.nodeid, changes, StormRequest)
        of_storms = {name: changes.pop(name) for name in options_of(StormRequest) if name in changes}
        given = self._given(changes)
        request = trial_settings(self.item, given, "storm", by_hand=False)
        self._note_seed(given, request.seed)
        if request.control:
            raise UsageError(f"{self.item.nodeid}: control: a storm has none")
        with at_place(self.item.nodeid):
            storm = StormRequest(request, **of_storms)
            plan, history = plan_storm(storm), self._kept.add().history
            several = storm.trials > 1
            result = run_storms(storm, lambda _: None, save=history) if several else run_storm(plan, save=history)
        return self._noted(result)

    def explore(self, **changes: Any) -> SearchResult:
        """Searches schedules, with a budget of `schedules` or `time_limit`, and returns the verdict on all of them. It
        begins with what it found the last time."""
        plan = self._planned(changes)
        with at_place(self.item.nodeid):
            verdict = self._known(plan) or search_schedules(plan, lambda _: None)
        if verdict.schedule:
            self._keep_schedule(verdict.schedule)
            if found := self._found_before(plan):
                write_text(found, verdict.schedule)
        return verdict

    def _planned(self, changes: GivenSettings) -> SearchPlan:
        changes = durations_read(self.item.nodeid, changes, SearchRequest)
        options = options_of(SearchRequest)
        known = [*LOCKS, *(each.key for each in options.values())]
        of_trials = options_of(TrialSettings)
        own = {name: changes.pop(name) for name in options if name in changes}
        if strange := [name for name in changes if name not in LOCKS and name not in of_trials]:
            raise UsageError(f"{self.item.nodeid}: {strange[0]} is no setting of a search: {', '.join(known)} are")
        given = {**self._given(changes), **own}
        lock, seed = lock_of(self.item, given), seed_of(self.item, given)
        self._note_seed(given, seed.get("seed", 1))
        if given.get("time") == "virtual":  # which is the only one
            del given["time"]
        if strange := [name for name in given if name not in options and name not in LOCKS]:
            raise UsageError(f"{self.item.nodeid}: {strange[0]} is no setting of a search: {', '.join(known)} are")
        chosen = {**{name: value for name, value in given.items() if name not in LOCKS}, **seed}
        if not {"schedules", "seconds"} & chosen.keys():
            chosen["seconds"] = self.item.config.stash[BUDGET_S]
        with at_place(self.item.nodeid):
            return plan_search(SearchRequest(lock, **chosen))

    def _found_before(self, plan: SearchPlan) -> Path | None:
        """Where the smallest schedule of this test and this search is kept, in pytest's cache; None: without one."""
        cache = getattr(self.item.config, "cache", None)
        if not cache:
            return None
        key = sha256(f"{self.item.nodeid} {msgspec.json.encode(plan.key).decode()}".encode()).hexdigest()
        return Path(cache.mkdir("lockstorm")) / f"{key[:16]}.schedule"

    def _known(self, plan: SearchPlan) -> SearchResult | None:
        kept = self._found_before(plan)
        if not kept or not kept.exists():
            return None
        with contextlib.suppress(UsageError):  # of another release of lockstorm
            return known_again(plan, parse_schedule(kept.read_text(), str(kept)))
        return None

    # --- for the hooks ---

    def kept_lines(self) -> list[str]:
        while self._open:
            self._kept.add(self._open.pop(0).save)
        return self._kept.lines()

    def explain_by_stall(self, error: BaseException | None) -> None:
        for trial in self._open:
            if error is not None:
                trial.explain_by_stall(error)
            elif trial.verdict is None:  # judge() has looked
                trial.must_not_stall()

    def end_call(self) -> None:
        self._is_over = True

    # --- inside ---

    def _given(self, changes: GivenSettings) -> GivenSettings:
        changes = durations_read(self.item.nodeid, changes, TrialSettings)
        check_given(self.item.nodeid, changes)
        return given_settings(self.item, changes)

    def _note_seed(self, given: GivenSettings, seed: int) -> None:
        if "seed" not in given:
            self.usual_seed = seed

    def _noted(self, result: TrialResult) -> TrialResult:
        self.played_again += result.played_again
        if self._report:
            self._kept.lines()
        return result

    def _keep(self, trial: Trial) -> None:
        """Keeps the history of a trial that is about to close: of a failing test, or whose test has not ended."""
        kept = self._kept.add(trial.save)
        if self._report:
            kept.lines()
        else:
            trial.recorder.save(kept.history)
            kept.save = None

    def _keep_schedule(self, text: str) -> None:
        kept = self._kept.add()
        kept.schedule = kept.history.with_suffix(".schedule")
        write_text(kept.schedule, text)
        schedule = parse_schedule(text, str(kept.schedule))
        if isinstance(schedule, ScheduleFile):  # a library's has no history: its story is in the message
            replay_schedule(schedule, str(kept.schedule), save=kept.history)
        if self._report:
            kept.lines()
