"""Kinds of services side by side, against a second reader of scenarios/expected.toml; and what is said about them."""

import io
import json
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs
from rich.console import Console

from lockstorm.base import paths
from lockstorm.base.errors import UsageError
from lockstorm.locks.lock_names import lock_named
from lockstorm.matrix.advice import advise_locks, decisions
from lockstorm.matrix.advice_result import Advice, Choice, KindCost, KindRow, MeasuredCost, Needs
from lockstorm.matrix.advice_table import BAR_WIDTH, held_bar, show_kinds
from lockstorm.matrix.candidates import PREVENTION, SERVERS, candidate_rank, cells_by_key, options_for
from lockstorm.matrix.matrix import expected_matrix
from lockstorm.matrix.remedies import EXPERT, REMEDIES, cautions, remedies
from lockstorm.matrix.service_kinds import JUDGED, KINDS, best_of_kind, compare_kinds, cost_text, read_costs
from lockstorm.native.library import locks, locks_on
from lockstorm.results.matrix_result import MatrixCell
from lockstorm.scenario.cells import cell_result
from lockstorm.scenario.scenario import scenarios
from lockstorm.servers.services import missing_for
from tests.helpers.support import lockstorm

TABLE = tomllib.loads((paths.ROOT / "scenarios" / "expected.toml").read_text())
FENCE = "fence-reads-and-writes"
ON_ONE_SERVER = ("redis", "redlock")  # kinds without a replica that could take over
CORRECT_ON_PLAIN = Needs("correctness", "plain")
NEEDS = (CORRECT_ON_PLAIN, Needs("correctness", "checks-tokens"), Needs("efficiency", "plain"))
NAMES = [kind.name for kind in KINDS]
REDIS = {lock.name for lock in locks_on("redis")}
BLOCKS = "With setnx a holder that crashes blocks all others for ever, because the lock never expires (crash-holder)."
HANGS = (
    "With pg-advisory, pg-advisory-xact a holder that hangs keeps all others waiting for as long as it hangs: the lock "
    "has no lease."
)
PAUSED = (
    "With redlock, pg-lease, etcd, zookeeper a holder that is paused past its lease overwrites the work of the next "
    "one (gc-pause)."
)


@pytest.fixture(scope="module")
def cells() -> list[MatrixCell]:
    return expected_matrix().cells


@pytest.fixture(scope="module")
def advice(cells: list[MatrixCell]) -> Advice:
    return advise_locks(CORRECT_ON_PLAIN, cells, "the table")


def rows_by_kind(needs: Needs, cells: list[MatrixCell]) -> dict[str, KindRow]:
    return {row.kind: row for row in compare_kinds(needs, cells, {}).rows}


# --- the numbers, by a second reader of the table ---


def line_of(scenario: str, lock: str, store: str) -> dict[str, Any] | None:
    lines = TABLE[scenario]
    own: dict[str, Any] | None = lines.get(f"{lock}/{store}")
    return own or (lines.get(f"*/{store}") if lock in REDIS else None)


def lines_of(kind: str, lock: str, store: str) -> dict[str, dict[str, Any]]:
    """The lines of all scenarios that are played with every lock to which they apply, and can happen to this kind."""
    (entry,) = (each for each in locks() if each.name == lock)
    found = {}
    for name, scenario in scenarios().items():
        fails_over = scenario.settings.get("replicas") or scenario.settings.get("topology", "single") != "single"
        if scenario.locks or (fails_over and kind in ON_ONE_SERVER) or store not in scenario.stores:
            continue
        if not scenario.inapplicable_reason(entry) and (line := line_of(name, lock, store)):
            found[name] = line
    return found


def outcome_of(line: dict[str, Any]) -> str:
    bad = {name for name, status in line.items() if status == "violated"}
    if bad and line.get("control") == "as the fault":
        return "unknown"
    if bad == {"liveness"}:
        return "stuck"
    saved = not bad or ("integrity" not in bad and "mutual_exclusion" in bad and "integrity" in line)
    return "survives" if saved else "damaged"


@pytest.mark.parametrize("needs", NEEDS, ids=lambda needs: f"{needs.purpose}-{needs.resource}")
@pytest.mark.parametrize("kind", NAMES)
def test_the_numbers_of_a_row_are_those_of_the_table(kind: str, needs: Needs, cells: list[MatrixCell]) -> None:
    row = rows_by_kind(needs, cells)[kind]
    lines = lines_of(kind, row.lock, row.store)
    for outcome in ("survives", "damaged", "stuck", "unknown"):
        assert sorted(getattr(row, outcome)) == sorted(
            name for name, line in lines.items() if outcome_of(line) == outcome
        )
    known = [line for line in lines.values() if outcome_of(line) != "unknown"]
    for name in JUDGED:
        assert row.properties[name] == Counter(line[name] for line in known if name in line)
    assert [each.scenario for each in row.breaks] == [*row.damaged, *row.stuck]
    for each in row.breaks:
        assert each.summary == scenarios()[each.scenario].summary
        assert each.prevention == PREVENTION.get(each.scenario)


@pytest.mark.parametrize("needs", NEEDS, ids=lambda needs: f"{needs.purpose}-{needs.resource}")
def test_shared_are_the_scenarios_of_all_rows(needs: Needs, cells: list[MatrixCell]) -> None:
    kinds = compare_kinds(needs, cells, {})
    of_row = [lines_of(row.kind, row.lock, row.store) for row in kinds.rows]
    assert sorted(kinds.shared) == sorted(set.intersection(*map(set, of_row)))
    for row, lines in zip(kinds.rows, of_row, strict=True):
        assert list(row.shared) == kinds.shared
        outcomes = [outcome_of(lines[name]) for name in kinds.shared]
        counting = ("survives", "damaged") if needs.purpose == "efficiency" else ("survives",)
        assert row.shared_survived == sum(outcome in counting for outcome in outcomes)
    survived = [row.shared_survived for row in kinds.rows]
    assert survived == sorted(survived, reverse=True)


@pytest.mark.parametrize("kind", NAMES)
def test_no_lock_of_a_kind_is_damaged_less_than_its_best(kind: str, cells: list[MatrixCell]) -> None:
    """For correctness: nothing that nobody can prevent damages another lock of the kind less often."""
    best = rows_by_kind(CORRECT_ON_PLAIN, cells)[kind]
    (of_kind,) = (each for each in KINDS if each.name == kind)
    damage = {}
    for lock in locks():
        if of_kind.has(lock) and not lock.once and lock.name != "none":
            lines = lines_of(kind, lock.name, "open")
            damage[lock.name] = sum(
                outcome_of(line) == "damaged" and name not in PREVENTION for name, line in lines.items()
            )
    assert damage[best.lock] == min(damage.values())


def test_every_lock_is_of_a_kind() -> None:
    kinds = {lock.name: [kind.name for kind in KINDS if kind.has(lock)] for lock in locks() if not lock.once}
    assert all(kinds.values())
    assert {
        name: found for name, found in kinds.items() if len(found) > 1 and found != ["redis", "redis-replicas"]
    } == {}
    assert kinds["pg-advisory"] == ["postgres-session"] and kinds["pg-lease"] == ["postgres-lease"]
    assert kinds["pg-for-update"] == kinds["pg-advisory-xact"] == ["postgres-transaction"]
    assert kinds["redlock"] == ["redlock"] and kinds["replica-wait"] == ["redis-replicas"]
    assert {kind.servers for kind in KINDS} == set(SERVERS)


# --- what is recommended, and what is said with it ---


def test_setnx_is_never_named_without_what_a_crash_does(advice: Advice, cells: list[MatrixCell]) -> None:
    """The best of its kind by damage alone; it is not recommended (tests/matrix/test_advice.py)."""
    assert advice.kinds.cautions[0] == BLOCKS
    assert advice.cautions == [PAUSED.replace("redlock, pg-lease, etcd, zookeeper", "redlock")]
    of_setnx = [row for row in decisions(cells) if Choice("setnx", "open") in row.best]
    assert of_setnx and all(row.blocks_after_crash for row in of_setnx)


def test_who_has_no_servers_yet_hears_of_other_kinds(advice: Advice, cells: list[MatrixCell]) -> None:
    assert advice.sentence.endswith(
        "Of the 10 scenarios that were played with every kind of service, these survive most, 9: PostgreSQL session "
        "(pg-advisory), PostgreSQL transaction (pg-advisory-xact)."
    )
    single = advise_locks(Needs("correctness", "plain", "single"), cells, "the table")
    assert single.sentence.endswith(EXPERT)


def test_a_lock_of_the_database_survives_the_crash_and_the_pause(advice: Advice) -> None:
    rows = {row.kind: row for row in advice.kinds.rows}
    transaction, redis, etcd = rows["postgres-transaction"], rows["redis"], rows["etcd"]
    assert (transaction.lock, transaction.equal) == ("pg-advisory-xact", ["pg-for-update"])
    assert [transaction.shared[name] for name in ("crash-holder", "gc-pause", "connection-closed")] == [
        "holds",
        "holds",
        "violated",
    ]
    assert (redis.lock, redis.shared["crash-holder"]) == ("setnx", "stuck")
    assert (etcd.shared["crash-holder"], etcd.shared["gc-pause"]) == ("holds", "violated")
    assert redis.cautions == [BLOCKS]
    assert advice.kinds.cautions == [
        BLOCKS,
        HANGS,
        PAUSED,
    ]


def test_a_resource_that_checks_tokens_changes_the_comparison(cells: list[MatrixCell]) -> None:
    needs = Needs("correctness", "checks-tokens")
    rows = rows_by_kind(needs, cells)
    assert [rows[kind].store for kind in ("redis", "postgres-lease", "etcd", "zookeeper")] == [FENCE] * 4
    assert rows["etcd"].damaged == rows["etcd"].stuck == ()
    assert rows["redlock"].store == "open" and "gc-pause" in rows["redlock"].damaged
    assert advise_locks(needs, cells, "the table").remedies == []


def test_for_efficiency_the_simplest_lock_stands_for_its_kind(cells: list[MatrixCell]) -> None:
    kinds = compare_kinds(Needs("efficiency"), cells, {})
    assert kinds.rows[0].kind == "redis" and kinds.rows[0].lock == "set-nx-px"
    assert kinds.sentence == (
        "Of the 10 scenarios that were played with every kind of service, all kinds leave nobody waiting in 10."
    )
    assert kinds.cautions == [HANGS]


def test_a_lock_with_a_lease_that_forgets_its_waiters_is_told_apart(cells: list[MatrixCell]) -> None:
    option = next(each for each in options_for(Needs("correctness"), cells) if each.lock == "pubsub-naive")
    assert cautions(Needs("correctness"), [option]) == [
        "With pubsub-naive no waiter is served after a holder has crashed (crash-holder)."
    ]


def test_without_cells_nothing_is_compared(cells: list[MatrixCell]) -> None:
    one = [cell for cell in cells if (cell.scenario, cell.lock) == ("gc-pause", "setnx")]
    kinds = compare_kinds(CORRECT_ON_PLAIN, one, {})
    assert kinds.shared == ["gc-pause"]
    assert [row.kind for row in kinds.rows if row.shared] == ["redis", "redis-replicas"]
    assert compare_kinds(CORRECT_ON_PLAIN, [], {}).sentence == (
        "No scenario was played with every kind of service, so their rows do not compare."
    )
    rows = remedies(CORRECT_ON_PLAIN, options_for(Needs("correctness", servers="five"), cells)[:1], one)
    assert [row.with_.result for row in rows] == [None, None, None]


def test_a_cell_without_a_verdict_counts_for_no_property(cells: list[MatrixCell]) -> None:
    bare = [structs.replace(cell, verdict={}) for cell in cells]
    row = rows_by_kind(CORRECT_ON_PLAIN, bare)["redis"]
    assert row.survives and row.properties == {name: {} for name in JUDGED}


# --- what an expert would do ---


def test_the_table_shows_what_an_expert_would_do(advice: Advice) -> None:
    shown = [(row.without.result, row.with_.result) for row in advice.remedies]
    assert shown == [("violated", "fenced"), ("violated", "fenced"), ("stuck", "holds")]
    assert [row.name for row in advice.remedies] == ["compare-and-set", "fencing-token", "one-transaction"]
    assert [row.with_.command for row in advice.remedies] == [
        "lockstorm run gc-pause --lock set-nx-px --store compare-and-set",
        f"lockstorm run gc-pause-read --lock set-nx-px-fenced --store {FENCE}",
        "lockstorm run crash-holder --lock pg-for-update",
    ]
    limit = advice.remedies[2].limit
    assert limit and (limit.result, limit.command) == (
        "violated",
        "lockstorm run connection-closed --lock pg-for-update",
    )
    for remedy in REMEDIES:
        for lock, store in (remedy.without, remedy.with_):
            assert line_of(remedy.scenario, lock, store)


@pytest.mark.parametrize("name", [remedy.name for remedy in REMEDIES])
def test_the_commands_of_an_expert_show_what_is_said(name: str, advice: Advice) -> None:
    (row,) = (row for row in advice.remedies if row.name == name)
    choices = {row.scenario: [row.without, row.with_]}
    if row.limit:
        choices[row.limit.scenario] = [row.limit]
    for scenario, choice in ((scenario, choice) for scenario, found in choices.items() for choice in found):
        if missing_for(lock_named(choice.lock), choice.store):
            continue
        done = lockstorm(*choice.command.split()[1:], "--json")
        verdict = json.loads(done.stdout)["verdict"]
        judged = set(line_of(scenario, choice.lock, choice.store) or ()) & set(verdict)
        if not lock_named(choice.lock).token:
            judged -= {"fencing"}
        assert cell_result({each: verdict[each]["status"] for each in judged}) == choice.result, choice.command


# --- costs ---


def cost_cell(lock: str, **changed: Any) -> dict[str, Any]:
    return {"lock": lock, "clients": 1, "rate": None, "requests_per_grant": 2.0, "cost_ratio": 1.25, **changed}


def test_costs_that_were_measured_are_shown(cells: list[MatrixCell], tmp_path: Path) -> None:
    path = tmp_path / "costs.json"
    path.write_text(json.dumps({"cells": [cost_cell("setnx"), cost_cell("setnx", clients=8, requests_per_grant=9.0)]}))
    rows = {row.kind: row for row in compare_kinds(CORRECT_ON_PLAIN, cells, read_costs(path)).rows}
    words = "1 command to acquire, 1 script to release, a poll every 100 ms by each waiter."
    assert rows["redis"].cost == KindCost(1, "polling", words, MeasuredCost(2.0, 1.25))
    servers = {kind: rows[kind].cost.servers for kind in ("redis-replicas", "redlock", "postgres-session")}
    assert servers == {"redis-replicas": 2, "redlock": 5, "postgres-session": 1}
    assert rows["etcd"].cost.measured is None
    assert rows["redis-replicas"].cost.measured is None, "the same lock was measured on one server"
    done = lockstorm("advise", "--for", "correctness", "--costs", str(path))
    assert done.returncode == 0
    assert "2 requests a grant, 1.25 x redis-benchmark" in done.stdout and "Measure those on Redis" not in done.stdout


def test_every_lock_says_what_it_costs() -> None:
    assert [lock.name for lock in locks() if not cost_text(lock)] == ["none"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "No such file"),
        ("nothing", "is not JSON: lockstorm compare -o writes such a file"),
        ("[]", "Expected `object`, got `array`: lockstorm compare -o writes such a file"),
        (
            json.dumps({"cells": [cost_cell("setnx", clients=8)]}),
            "has no costs of one client: lockstorm compare --waiters 1 --rate none -o writes such a file",
        ),
        (json.dumps({"cells": [cost_cell("setnx", requests_per_grant=None)]}), "has no costs of one client"),
    ],
)
def test_a_file_without_costs_is_refused(text: str | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "costs.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError, match=message):
        read_costs(path)
    done = lockstorm("advise", "--for", "correctness", "--costs", str(path))
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr and str(path) in done.stderr


# --- in a terminal ---


def test_a_terminal_shows_marks_and_bars() -> None:
    done = lockstorm("advise", "--for", "correctness", "--resource", "plain")
    assert done.returncode == 0
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "one Redis server setnx ✓✓✓∞∞✓✓✓✓✓ █████████▒░░ 25 of 34 31 of 34 29 of 34 16 of 21" in lines
    assert "etcd etcd ✓✓✓✓✓✗✗✗✗✗ ██████▒▒▒▒▒▒ 6 of 13 6 of 13 6 of 13 3 of 3" in lines
    assert BLOCKS in done.stdout and done.stdout.index(EXPERT) < done.stdout.index("What an expert would do")
    assert any(line.startswith("crash-holder 2 of 8 A holder dies before its write;") for line in lines)
    rows = [line for line in lines if line.startswith("correctness plain") and "setnx" in line]
    assert rows == [
        "correctness plain single setnx - a crashed holder blocks for ever 9 scenarios 5",
        "correctness plain replicas setnx - a crashed holder blocks for ever 11 scenarios 5",
    ]
    assert "violated: connection-closed, pg-for-update" in done.stdout


def test_json_has_the_table(cells: list[MatrixCell]) -> None:
    done = lockstorm("advise", "--for", "correctness", "--resource", "plain", "--json")
    found = json.loads(done.stdout)
    assert found["kinds"] == json.loads(msgspec.json.encode(compare_kinds(CORRECT_ON_PLAIN, cells, {})))
    assert found["remedies"] and found["cautions"] == [PAUSED.replace("redlock, pg-lease, etcd, zookeeper", "redlock")]


@pytest.mark.parametrize(
    ("counts", "bar"),
    [
        ((12, 0, 0), "████████████"),
        ((1, 1, 1), "████▒▒▒▒░░░░"),
        ((99, 1, 0), "███████████▒"),
        ((0, 0, 1), "░░░░░░░░░░░░"),
        ((1, 99, 1), "█▒▒▒▒▒▒▒▒▒▒░"),
        ((0, 0, 0), "not played"),
    ],
)
def test_a_bar_has_the_shares(counts: tuple[int, int, int], bar: str, cells: list[MatrixCell]) -> None:
    survives, damaged, stuck = (("x",) * count for count in counts)
    row = structs.replace(
        rows_by_kind(CORRECT_ON_PLAIN, cells)["redis"], survives=survives, damaged=damaged, stuck=stuck
    )
    assert len(bar) == BAR_WIDTH or bar == "not played"
    assert held_bar(row).plain == bar


@pytest.mark.parametrize("width", [80, 132, 160])
def test_the_table_fits_a_terminal(width: int, cells: list[MatrixCell]) -> None:
    console = Console(width=width, record=True, file=io.StringIO())
    show_kinds(console, compare_kinds(CORRECT_ON_PLAIN, cells, {}))
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= width
    (marks,) = (" ".join(line.split()) for line in lines if "one Redis server setnx" in " ".join(line.split())[:30])
    assert marks.startswith("one Redis server setnx ✓✓✓∞∞✓✓✓✓✓ █████████▒░░ 25 of 34")
    assert any(line.rstrip().endswith("31 of 34         29 of 34         16 of 21") for line in lines)


def test_the_best_of_a_kind_are_those_that_rank_alike(cells: list[MatrixCell]) -> None:
    for kind in KINDS:
        best = best_of_kind(kind, Needs("efficiency"), cells_by_key(cells))
        assert len({candidate_rank(option, Needs("efficiency", servers=kind.servers)) for option in best}) == 1
