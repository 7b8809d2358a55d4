"""`timers`: every schedule begins at the same moment of a service's periodic timers, as it does with new programs."""

from pathlib import Path

import pytest

from tests.application.described import described, searched

# Without work between requests (a lease of 1 ms), everything happens in the first second of a schedule.
TICKING = """
[app]
command = [{python}, "{services}/ticking.py"]
lease = "1ms"
environment = {{ REDIS_URL = "{{redis}}", PORT = "{{port}}" }}
[servers]
redis = {{}}
[[request]]
name = "ask"
http = "POST /"
[[check]]
redis = "LRANGE other 0 -1"
empty = true
"""


@pytest.mark.lengthy("searches some tens of schedules of a service, twice")
def test_schedules_begin_at_the_same_moment_of_a_timer(tmp_path: Path) -> None:
    often = ('lease = "1ms"', 'lease = "1ms"\ntimers = "7s"')
    other = searched(described(tmp_path, TICKING, ""), schedules=20, keep_going=True)
    assert other.exit != 0 and "'LRANGE other 0 -1' has" in other.sentence
    same = searched(described(tmp_path, TICKING, "", often), schedules=20, keep_going=True)
    assert same.exit == 0 and "met every check in 20 schedules" in same.sentence, same.sentence
