"""A lock that says, in any words, that its grant is lost: its holder stops believing at that moment, at time 0 too."""

from pathlib import Path

import pytest

from tests.helpers.planted_plugins import one_mistake
from tests.helpers.support import trial

NEVER_LOST = 2**63 - 1


def announcing(directory: Path, told: str) -> str:
    return f"plugin:{one_mistake(directory, 'stating', 'GRANTED=0', f'TOLD={told}', 'ANSWER=OUTCOME_UNKNOWN')}"


@pytest.mark.parametrize("told", ["0", "-1", "INT64_MIN", "env_mono_ns(lock->env)", "env_mono_ns(lock->env) - 1"])
@pytest.mark.parametrize("waited_ms", [0, 1000])
def test_a_loss_ends_the_belief(told: str, waited_ms: int, tmp_path: Path) -> None:
    with trial(announcing(tmp_path, told)) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        running.advance(waited_ms)
        one.renew()
        (announced,) = [event for event in running.story() if event.kind == "validity"]
        assert (announced.outcome, announced.mono_ns) == ("refused", waited_ms * 1_000_000)
        assert 1 <= announced.value <= max(announced.mono_ns, 1), (
            "when it ended: never 0, which says that none is stated"
        )
        assert two.acquire().ok
        exclusion = running.judge().properties["mutual_exclusion"]
        assert (exclusion.status, exclusion.count) == ("holds", 0)


@pytest.mark.parametrize("told", ["INT64_MAX", "env_mono_ns(lock->env) + 1"])
def test_a_validity_that_has_not_ended_lasts(told: str, tmp_path: Path) -> None:
    with trial(announcing(tmp_path, told)) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        one.renew()
        (announced,) = [event for event in running.story() if event.kind == "validity"]
        assert (announced.outcome, announced.value) == ("ok", NEVER_LOST if told == "INT64_MAX" else 1)
        assert two.acquire().ok
        exclusion = running.judge().properties["mutual_exclusion"]
        assert (exclusion.status, exclusion.count) == ("violated", 1)
