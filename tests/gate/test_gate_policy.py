"""lockstorm.toml: the keys and values that it accepts, and the messages for those that it does not."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest

from lockstorm.attach.server_address import TlsFiles
from lockstorm.base import paths
from lockstorm.base.errors import UsageError
from lockstorm.base.toml_table import find_key_lines
from lockstorm.gate.gate_plan import plan_gate
from lockstorm.gate.gate_policy import USUAL_REQUIRE, Policy, read_policy
from lockstorm.gate.policy_file import KEYS
from lockstorm.locks.lock_names import lock_named
from lockstorm.scenario.scenario import scenarios
from tests.application.described import CREDITS, described
from tests.helpers.planted_plugins import built_from, changed

SCHEMA = json.loads((paths.ROOT / "docs" / "lockstorm.schema.json").read_text())
LOCK = '[[lock]]\nname = "set-nx-px"\n'
APP = '[[app]]\nfile = "lockstorm-app.toml"\n'


def policy(directory: Path, text: str) -> Policy:
    file = directory / "lockstorm.toml"
    file.write_text(text)
    return read_policy(file)


def refused(directory: Path, text: str) -> str:
    """The message about a wrong policy, without its directory."""
    with pytest.raises(UsageError) as error:
        plan_gate(policy(directory, text))
    assert error.value.exit_status == 2
    return str(error.value).removeprefix(f"{directory}/")


def as_plain(text: str) -> Any:
    """TOML as JSON values: dates become texts."""
    return json.loads(json.dumps(tomllib.loads(text), default=str))


FULL = """
[[lock]]
name = "set-nx-px-fenced"
store = "fence-reads-and-writes"
require = ["integrity", "fencing"]
used = "src/stock.py:12"
lease = "10s"

[[lock]]
name = "permit-semaphore"
permits = 3
checks_validity = true

[require]
open = ["integrity", "capacity"]

[scenarios]
play = ["contention", "gc-pause"]
skip = ["gc-pause"]
repeat = 2
seed = 7
time = "virtual"
controls = false

[[storm]]
name = "pauses"
faults = ["pause-client", "partition"]
trials = 3
duration = "5s"
clients = 3
lease = "2s"
seed = 5
time = "virtual"

[budget]
time = "10min"
trials = 100

[[accept]]
lock = "permit-semaphore"
store = "open"
scenario = "storm-pauses"
property = ["integrity", "capacity"]
why = "the resource is a cache"
until = 2027-03-31

[runs]
directory = "kept"
keep = 5
"""


def test_a_policy_with_every_key(tmp_path: Path) -> None:
    read = policy(tmp_path, FULL)
    fenced, permits = read.locks
    assert (fenced.require, fenced.used, fenced.request.lease_ms) == (
        ("integrity", "fencing"),
        "src/stock.py:12",
        10_000,
    )
    assert (permits.store, permits.request.permits, permits.require) == ("open", 3, ("integrity", "capacity"))
    assert (read.play, read.repeat, read.seed, read.controls) == (("contention",), 2, 7, False)
    assert read.storms[0].faults == "pause-client,partition"
    assert (read.budget_ms, read.budget_trials, read.runs, read.keep) == (600_000, 100, tmp_path / "kept", 5)
    assert read.accepted[0].until.isoformat() == "2027-03-31"
    jobs = plan_gate(read).jobs
    assert {job.request.lock for job in jobs if job.request.checks_validity} == {"permit-semaphore"}
    assert len(jobs) == 2 * (2 + 3), "for each lock a scenario twice, and three storms"
    assert [job.name for job in jobs] == [
        f"{lock}.{scenario}.{seed}"
        for lock in ("set-nx-px-fenced.fence-reads-and-writes", "permit-semaphore.open")
        for scenario, seeds in (("contention", (7, 8)), ("storm-pauses", (5, 6, 7)))
        for seed in seeds
    ]
    assert {job.request.seed for job in jobs if job.faults} == {5, 6, 7}
    assert {job.request.lease_ms for job in jobs if job.faults} == {2_000}


def test_the_defaults(tmp_path: Path) -> None:
    read = policy(tmp_path, LOCK)
    assert read.locks[0].require == ("mutual_exclusion", "integrity", "liveness")
    assert read.play == tuple(scenarios())
    plan = plan_gate(read)
    assert {each.scenario for each in plan.inapplicable} == {
        name for name, scenario in scenarios().items() if scenario.inapplicable_reason(lock_named("set-nx-px"), "open")
    }
    assert len(plan.jobs) == 2 * len(plan.cases), "with and without its fault"


def test_a_scenario_may_be_one_trial(tmp_path: Path) -> None:
    plan = plan_gate(policy(tmp_path, LOCK + "[scenarios]\nplay = ['gc-pause']\ncontrols = false\n"))
    (job,) = plan.jobs
    assert (job.request.scenario, job.request.control) == ("gc-pause", False)


def test_fencing_is_not_required_of_a_lock_without_tokens_by_default(tmp_path: Path) -> None:
    text = LOCK + '[require]\nopen = ["integrity", "fencing"]\n'
    assert policy(tmp_path, text).locks[0].require == ("integrity",)
    own = LOCK + 'require = ["fencing"]\n'
    assert refused(tmp_path, own) == ("lockstorm.toml:3: set-nx-px gives no fencing token, so fencing cannot be judged")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "",
            "lockstorm.toml names no lock and no application: [[lock]] with a name (`lockstorm locks` lists them), or "
            "[[app]] with a file (`lockstorm app init` writes one)",
        ),
        (LOCK + '[scenaros]\nplay = "all"', "lockstorm.toml:3: unknown key 'scenaros': did you mean scenarios?"),
        (LOCK + "stor = 1", "lockstorm.toml:3: unknown key 'stor' in [lock]: did you mean store?"),
        (LOCK + "[budget]\ncolour = 1", "lockstorm.toml:4: unknown key 'colour' in [budget]: there are: time, trials"),
        (
            "[[lock]]\nname = 'set-nx-p'",
            "lockstorm.toml:2: there is no lock called 'set-nx-p': did you mean set-nx-px?",
        ),
        ("[[lock]]\nstore = 'open'", "lockstorm.toml:1: [[lock]] lacks name"),
        ("[lock]\nname = 'setnx'", "lockstorm.toml:1: write [[lock]]: there may be several"),
        ("[[lock]]\nadapter = 'my-lock'", "lockstorm.toml:2: there is no adapter called 'my-lock'"),
        ("[[lock]]\nadapter = 'redis-py'\nname = 'setnx'", "lockstorm.toml:2: a lock has a name, or an adapter"),
        (
            LOCK + "[scenarios]\nplay = ['clock-jump-node']",
            "lockstorm.toml:1: nothing can be played for set-nx-px/open: set-nx-px does not live on five nodes",
        ),
        (LOCK + LOCK, "lockstorm.toml:1: set-nx-px/open is there more than once"),
        (LOCK + "store = 'fence-writes'", "lockstorm.toml:3: set-nx-px gives no fencing token"),
        (LOCK + "fixed_lease = 1", "lockstorm.toml:3: fixed_lease has to be true or false"),
        (LOCK + "checks_validity = 1", "lockstorm.toml:3: checks_validity has to be true or false"),
        (LOCK + "lease = 30", "lockstorm.toml:3: lease 30: say the unit, as in 30ms"),
        (LOCK + "lease = '0s'", "lockstorm.toml:3: lease 0ms: from 1ms to 576h"),
        (LOCK + "permits = 2", "lockstorm.toml:2: --permits is for locks that have several"),
        (LOCK + "[scenarios]\nplay = ['gc-paus']", "lockstorm.toml:4: there is no scenario called 'gc-paus'"),
        (LOCK + "[scenarios]\nplay = []", "lockstorm.toml leaves nothing to play"),
        (LOCK + "[scenarios]\nplay = [1]", "lockstorm.toml:4: play has to be a list of names"),
        (LOCK + "[scenarios]\nrepeat = 0", "lockstorm.toml:4: repeat has to be a whole number from 1 to 1000"),
        (LOCK + "[scenarios]\nrepeat = true", "lockstorm.toml:4: repeat has to be a whole number from 1 to 1000"),
        (
            LOCK + "[scenarios]\nplay = ['clock-jump-node']",
            "lockstorm.toml:1: nothing can be played for set-nx-px/open: set-nx-px does not live on five nodes",
        ),
        (LOCK + "[[storm]]\ntrials = 3", "lockstorm.toml:3: [[storm]] lacks name"),
        (LOCK + "[[storm]]\nname = 'A b'", "lockstorm.toml:4: 'A b': a name is made of small letters"),
        (LOCK + "[[storm]]\nname='a'\n[[storm]]\nname='a'", "lockstorm.toml:6: there are two storms called a"),
        (LOCK + "[[storm]]\nname='a'\nfaults=['pause']", "lockstorm.toml:5: there is no fault called 'pause'"),
        (LOCK + "[[storm]]\nname='a'\nclients=0", "lockstorm.toml:5: clients has to be a whole number from 1 to"),
        (LOCK + "[[storm]]\nname='a'\ntrials=0", "lockstorm.toml:5: trials has to be a whole number from 1 to"),
        (LOCK + "[[storm]]\nname='a'\nseed=-1", "lockstorm.toml:5: seed has to be a whole number from 0 to"),
        (LOCK + "[[storm]]\nname='a'\nlease='0s'", "lockstorm.toml:5: lease 0ms: from 1ms"),
        (LOCK + "permits = 0", "lockstorm.toml:3: permits has to be a whole number from 1 to"),
        (
            LOCK.replace("set-nx-px", "pg-skip-locked") + "[[storm]]\nname='a'",
            "lockstorm.toml:1: a storm asks for its lock again and again",
        ),
        (LOCK + "[require]\nopen = ['safety']", "lockstorm.toml:4: there is no property called 'safety'"),
        (LOCK + "[require]\nopen = ['cost']", "lockstorm.toml:4: there is no property called 'cost'"),
        (LOCK + "[budget]\ntrials = 3", "lockstorm.toml: this policy asks for "),
        (LOCK + "[runs]\ndirectory = ''", "lockstorm.toml:4: directory has to be a text"),
        ("[[lock]\nname = 1", "lockstorm.toml: Expected ']]' at the end of an array declaration (at line 1, column 7)"),
        ("lock = 1", "lockstorm.toml:1: write [[lock]]: there may be several"),
        (LOCK + "budget = 1", "lockstorm.toml:3: unknown key 'budget' in [lock]"),
        ("budget = 1\n" + LOCK, "lockstorm.toml:1: [budget] has to be a table"),
    ],
)
def test_a_mistake_is_reported_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    assert refused(tmp_path, text).startswith(message)


ACCEPT = {
    "lock": '"set-nx-px"',
    "scenario": '"gc-pause"',
    "property": '"integrity"',
    "why": '"a cache"',
    "until": "2027-03-31",
}


def acceptance(**other: str | None) -> str:
    keys = {**ACCEPT, **other}
    return LOCK + "[[accept]]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items() if value is not None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (acceptance(why=None), "lockstorm.toml:3: [[accept]] lacks why"),
        (acceptance(until=None), "lockstorm.toml:3: until has to be a day, such as 2027-03-31"),
        (acceptance(until='"soon"'), "lockstorm.toml:8: until has to be a day"),
        (acceptance(until="2027-03-31T10:00:00"), "lockstorm.toml:8: until has to be a day"),
        (acceptance(property=None), "lockstorm.toml:3: [[accept]] lacks property"),
        (acceptance(lock='"setnx"'), "lockstorm.toml:4: there is no lock in this policy called 'setnx'"),
        (
            acceptance(store='"fence-writes"'),
            "lockstorm.toml:9: this policy does not use set-nx-px with a fence-writes",
        ),
        (acceptance(scenario='"gc-paus"'), "lockstorm.toml:5: there is no scenario or storm in this policy called"),
    ],
)
def test_an_acceptance_says_what_why_and_until_when(tmp_path: Path, text: str, message: str) -> None:
    assert refused(tmp_path, text).startswith(message)


def test_no_policy_at_all(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no .*lockstorm\.toml: `lockstorm init` writes one"):
        read_policy(tmp_path / "lockstorm.toml")
    with pytest.raises(UsageError, match="Is a directory"):
        read_policy(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="is not text in UTF-8"):
        read_policy(tmp_path / "binary")


def test_the_line_of_a_key_is_not_that_of_a_text_that_looks_like_it() -> None:
    text = '[[lock]]\nused = """\nname = 1\n[[lock]]\n"""\nname = "a"\n[[lock]]\n"name" = "b"\n'
    places = find_key_lines(text)
    assert (places["lock", 0, "name"], places["lock", 1], places["lock", 1, "name"]) == (6, 7, 8)


def table_of(path: tuple[str | int, ...]) -> str:
    return ".".join(part for part in path[:-1] if isinstance(part, str))


def test_the_documentation_has_every_key(tmp_path: Path) -> None:
    text, attached = re.findall(r"```toml\n(.*?)```", (paths.ROOT / "docs" / "gate.md").read_text(), re.DOTALL)
    built_from(changed({}), tmp_path, "mylock.so")
    (tmp_path / "redis.conf").write_text("appendonly yes\n")
    described(tmp_path, CREDITS, "late")
    read = policy(tmp_path, text)
    assert read.require == USUAL_REQUIRE, "the page states the default"
    fastjsonschema.validate(SCHEMA, as_plain(text))
    fastjsonschema.validate(SCHEMA, as_plain(attached))
    chosen = policy(tmp_path, attached).attach
    assert chosen and (chosen.address.user, chosen.yes) == ("app", True)
    assert chosen.files == TlsFiles(*(str(tmp_path / name) for name in ("ca.pem", "own.pem", "own.key")))
    places = [*find_key_lines(text), *find_key_lines(attached)]
    known = {path[0] if len(path) == 1 else (table_of(path), path[-1]) for path in places if path}
    for table, keys in KEYS.items():
        assert {(table, key) if table else key for key in keys} <= known


# --- the schema ---


def resolved(found: dict[str, Any]) -> dict[str, Any]:
    """The definition of a table, or of the tables of an array."""
    reference = found.get("$ref") or found["items"]["$ref"]
    table: dict[str, Any] = SCHEMA["definitions"][reference.rpartition("/")[2]]
    return table


def test_the_schema_knows_the_same_keys() -> None:
    assert set(SCHEMA["properties"]) == set(KEYS[""])
    for name, keys in KEYS.items():
        if name:
            outer, _, inner = name.partition(".")
            table = resolved(SCHEMA["properties"][outer])
            table = resolved(table["properties"][inner]) if inner else table
            assert set(table["properties"]) == set(keys), name
            assert table["additionalProperties"] is False, name


def test_the_schema_takes_what_is_right(tmp_path: Path) -> None:
    described(tmp_path, CREDITS, "late")
    for text in (FULL, LOCK, acceptance(), APP, APP + LOCK):
        policy(tmp_path, text)
        fastjsonschema.validate(SCHEMA, as_plain(text))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[[lock]]\nstore = 'open'",
        "[[app]]\nname = 'shop'",
        APP + "schedules = 0",
        APP + "require = 'chec'",
        LOCK + "stor = 1",
        LOCK + "lease = 30",
        LOCK + "store = 'closed'",
        LOCK + "[scenarios]\nrepeat = 0",
        LOCK + "[[storm]]\nname = 'A b'",
        LOCK + "[require]\nopen = ['cost']",
        acceptance(why=None),
        acceptance(until='"soon"'),
    ],
)
def test_the_schema_refuses_what_is_wrong(tmp_path: Path, text: str) -> None:
    described(tmp_path, CREDITS, "late")
    refused(tmp_path, text)
    with pytest.raises(fastjsonschema.JsonSchemaException):
        fastjsonschema.validate(SCHEMA, as_plain(text))
