"""A lock that says, in any words, that its grant is lost: its holder stops believing at that moment, at time 0 too."""

from pathlib import Path

import pytest

from tests.helpers.planted_plugins import built_from
from tests.helpers.support import trial

NEVER_LOST = 2**63 - 1

# Everybody is granted this lock at once; a renewal announces what TOLD says.
SOURCE = """
#include "lockstorm.h"

static struct lock_grant acquire(struct lock *lock, int64_t wait_ms) {
    (void)lock, (void)wait_ms;
    return (struct lock_grant){.outcome = OUTCOME_OK};
}

static enum outcome renew(struct lock *lock) {
    env_tell_validity(lock->env, TOLD);
    return OUTCOME_UNKNOWN;
}

const unsigned lockstorm_lock_abi = LOCKSTORM_LOCK_ABI;
const struct lock_type lockstorm_lock = {
    .name = "announces", .summary = "announces", .capacity = 1, .acquire = acquire, .renew = renew};
"""


@pytest.mark.parametrize("told", ["0", "-1", "INT64_MIN", "env_mono_ns(lock->env)", "env_mono_ns(lock->env) - 1"])
@pytest.mark.parametrize("waited_ms", [0, 1000])
def test_a_loss_ends_the_belief(told: str, waited_ms: int, tmp_path: Path) -> None:
    file = built_from(SOURCE.replace("TOLD", told), tmp_path)
    with trial(f"plugin:{file}") as running:
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
    file = built_from(SOURCE.replace("TOLD", told), tmp_path)
    with trial(f"plugin:{file}") as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        one.renew()
        (announced,) = [event for event in running.story() if event.kind == "validity"]
        assert (announced.outcome, announced.value) == ("ok", NEVER_LOST if told == "INT64_MAX" else 1)
        assert two.acquire().ok
        exclusion = running.judge().properties["mutual_exclusion"]
        assert (exclusion.status, exclusion.count) == ("violated", 1)
