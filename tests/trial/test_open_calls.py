"""What a trial in real time says that it waits for."""

import re
import sys
from pathlib import Path

import pytest

from lockstorm.base.waiting_note import heard_by, note_wait, somebody_listens
from lockstorm.results.event import Event
from lockstorm.scenario.play import play
from lockstorm.trial.open_calls import open_calls
from lockstorm.trial.settings import TrialSettings

S = 1_000_000_000


def event(kind: str, at_s: float, actor: str = "client-1", name: str | None = None) -> Event:
    return Event(kind=kind, actor=actor, name=name, mono_ns=int(at_s * S))


def test_a_call_that_does_not_come_back_is_named_after_three_seconds() -> None:
    events = [event("acquire-invoke", 1), event("acquire-return", 1.1), event("release-invoke", 2)]
    events += [event("acquire-invoke", 3, "client-2")]
    assert open_calls(events, int(4.9 * S)) == ""
    assert open_calls(events, 5 * S) == "client-1 has waited 3 s for its release"
    both = "client-1 has waited 4 s for its release, client-2 has waited 3 s for its acquire"
    assert open_calls(events, 6 * S) == both


def test_a_client_that_is_gone_waits_for_nothing() -> None:
    events = [event("acquire-invoke", 0), event("actor-exit", 1, "driver", "client-1")]
    assert open_calls(events, 9 * S) == ""


def test_only_who_listens_is_told() -> None:
    heard = list[str]()
    note_wait("before")
    with heard_by(heard.append):
        assert somebody_listens()
        note_wait("within")
    note_wait("after")
    assert heard == ["within"] and not somebody_listens()


# The first two questions are answered, and acquire is not, for four seconds.
HANGS = """#!{python}
import json, sys, time
HELLO = {{"protocol": 1, "name": "hangs", "operations": []}}
for line in sys.stdin:
    asked = json.loads(line)
    if asked["op"] == "acquire":
        time.sleep(4.5)
    answer = {{"id": asked["id"], "outcome": "ok"}} | (HELLO if asked["op"] == "hello" else {{}})
    print(json.dumps(answer), flush=True)
"""


@pytest.mark.lengthy("waits for an adapter that hangs")
def test_a_trial_says_what_it_waits_for(tmp_path: Path) -> None:
    program = tmp_path / "hangs"
    program.write_text(HANGS.format(python=sys.executable))
    program.chmod(0o755)
    heard = list[str]()
    with heard_by(heard.append):
        play(TrialSettings(f"adapter:{program}", "contention", time="real"))
    assert any(re.fullmatch(r"client-\d has waited [3-5] s for its acquire.*", each) for each in heard), heard
