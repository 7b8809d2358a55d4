"""A right lock whose holder hands its key over to the next client is not accused of granting it too early."""

from pathlib import Path

from tests.helpers.planted_plugins import one_mistake
from tests.helpers.support import lockstorm


def test_a_lease_that_began_with_a_release_is_not_counted_from_when_its_client_noticed(tmp_path: Path) -> None:
    """In schedule 715 the message to client-3 is lost. Its lease begins at 5 s, it looks at 6 s; at 8 s the lease is
    over and client-2 is granted the lock."""
    words = ("--schedules", "1000", "--lease", "3s", "--work", "2500ms", "--wait", "20s", "--require", "lease")
    done = lockstorm("explore", "--plugin", one_mistake(tmp_path, "handover"), *words, timeout=300)
    assert done.returncode == 0, done.stdout
