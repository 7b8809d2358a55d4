"""Linearizability: histories by hand, the definition tried in all orders, planted mistakes, limits, round trips.

LOCKSTORM_LINEARIZABLE_HISTORIES=10000000   how many random histories a model (200,000 without it)
LOCKSTORM_LINEARIZABLE_SEED=7               the first one's seed (a failure names the seed)
LOCKSTORM_MUTANTS=all                       all planted mistakes; without it every eighth
"""

import json
import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from harness.driver import paths
from harness.driver.linearize import MODELS
from tests.building import make

HISTORIES = sorted((paths.ROOT / "tests" / "linearizable").glob("*.edn"))
RANDOM_HISTORIES = int(os.environ.get("LOCKSTORM_LINEARIZABLE_HISTORIES", "200000"))
SEED = int(os.environ.get("LOCKSTORM_LINEARIZABLE_SEED", "1"))
POLICIES = ("--release-policy=unknown", "--release-policy=not-happened", "--release-policy=released")
EXIT = {"holds": 0, "violated": 1, "inconclusive": 3}
ORACLE_SEED_MUTANTS, ORACLE_HISTORIES_MUTANTS = 1, 200_000

Said = dict[str, Any]


def linearize(path: Path, *words: str) -> Said:
    """A verdict, which the exit status must agree with."""
    done = subprocess.run([paths.program("linearize"), *words, str(path)], capture_output=True, text=True, timeout=60)
    assert done.stdout, (path, done.returncode, done.stderr)
    said: Said = json.loads(done.stdout)
    assert said["exit"] == done.returncode == EXIT[status(said)]
    assert done.stderr == ""
    return said


def status(said: Said) -> str:
    return str(said["verdict"]["linearizable"]["status"])


def about(path: Path) -> Said:
    first: Said = json.loads(path.read_text().splitlines()[0].removeprefix("; "))
    assert set(first) <= {"about", "model", "args", "expect", "under"}, path.name
    return first


def write_events(path: Path, events: str) -> Path:
    """Events in short: "0+acquire 0=acquire:5" is process 0's invocation, and that it was ok with the value 5."""
    kinds = {"+": "invoke", "=": "ok", "-": "fail", "?": "info"}
    lines = []
    for word in events.split():
        process, sign, f, value = re.fullmatch(r"(\d+)([+=?-])(\w+)(?::(.*))?", word).groups()  # type: ignore[union-attr]
        lines.append(f"{{:type :{kinds[sign]}, :process {process}, :f :{f}, :value {value or 'nil'}}}\n")
    path.write_text("".join(lines))
    return path


# --- written by hand ---


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
def test_a_history_written_by_hand(path: Path, tmp_path: Path) -> None:
    first = about(path)
    said = linearize(path, "--model", first["model"], *first.get("args", []))
    assert status(said) == first["expect"], (first["about"], said)
    for policy, expected in first.get("under", {}).items():
        assert status(linearize(path, "--model", first["model"], policy)) == expected, (first["about"], policy)
    evidence = said["verdict"]["linearizable"]["evidence"]
    assert len(evidence) == said["verdict"]["linearizable"]["count"] == (first["expect"] == "violated")
    if evidence:
        check_evidence(path, first, evidence[0], tmp_path)


def check_evidence(path: Path, first: Said, evidence: Said, tmp_path: Path) -> None:
    """The prefix that is named is not linearizable, and the one that is an event shorter is."""
    lines = path.read_text().splitlines(keepends=True)[1:]
    assert lines[evidence["prefix"]].startswith("{:type :ok"), "only an answer makes a history impossible"
    assert evidence["prefix"] in evidence["records"]
    assert evidence["operation"] in evidence["text"]
    assert all(words in evidence["text"] for words in evidence["in_the_way"])
    for length, expected in ((evidence["prefix"], ("holds", "inconclusive")), (evidence["prefix"] + 1, ("violated",))):
        cut = tmp_path / "cut.edn"
        cut.write_text("".join(lines[:length]))
        assert status(linearize(cut, "--model", first["model"], *first.get("args", []))) in expected, (length, first)


def test_good_and_bad_in_equal_number() -> None:
    counts = Counter((about(path)["model"], about(path)["expect"]) for path in HISTORIES)
    for model in MODELS:
        assert counts[model, "holds"] == counts[model, "violated"] >= 5, (model, counts)


def test_the_verdict_on_a_failed_release_is_a_matter_of_reading() -> None:
    """The public etcd case: what was read as a failure decides."""
    path = next(path for path in HISTORIES if path.stem == "owner-mutex-etcd-failed-release")
    verdicts = [status(linearize(path, "--model=owner-mutex", policy)) for policy in POLICIES]
    assert verdicts == ["holds", "violated", "holds"]
    said = linearize(path, "--model=owner-mutex", "--release-policy=not-happened")
    assert said["policies"]["release"] == "not-happened"
    assert "failed releases read as not-happened" in said["sentence"]


# --- the definition, and mistakes that it must find ---


@pytest.fixture(scope="session")
def oracle() -> Path:
    return make("test-programs") / "tests" / "linearizable_oracle"


@pytest.mark.parametrize("model", ("owner-mutex", "reentrant-mutex", "fenced-mutex"))
def test_nothing_is_lost_with_the_configurations_that_are_dropped(oracle: Path, model: str) -> None:
    """Histories too long for all orders: the same verdict and prefix when every configuration is kept."""
    command = [str(oracle), model, str(RANDOM_HISTORIES), str(SEED), "long"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("model", MODELS)
def test_the_definition_tried_in_all_orders(oracle: Path, model: str) -> None:
    command = [str(oracle), model, str(RANDOM_HISTORIES), str(SEED)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    violated = int(re.search(r"(\d+) of them not linearizable", done.stdout)[1])  # type: ignore[index]
    assert RANDOM_HISTORIES / 10 < violated < RANDOM_HISTORIES * 9 / 10, "both verdicts must be common"


# File, what stands there, what is planted instead; all must be found by the random histories of a model.
MUTANTS: list[tuple[str, str, str]] = [
    ("count", "counts->taken < counts->permits", "counts->taken <= counts->permits"),
    ("count", "counts->taken > 0)", "counts->taken >= 0)"),
    ("count", "kind->due[place - 1] < end", "kind->due[place - 1] > end"),
    ("count", "if (kind->due_count > 0) return kind->due_count--, true;", ""),
    ("count", "if (kind->free > 0) return kind->free--, true;", ""),
    ("count", "return kind->free--, true;", "return true;"),
    ("count", "== STANDS_FREE) kind->free++", "== STANDS_FREE) kind->free += 2"),
    ("count", "own->due[own->due_count - 1] == position", "true"),
    ("count", "own->due_count -= unplaced;", "own->due_count -= unplaced && own->due_count > 1;"),
    ("count", "!place_another(other)", "!place_another(own)"),
    ("owner", "+ it->depth <= sweep->releases.called[it->holder]", "<= sweep->releases.called[it->holder]"),
    ("owner", "+ it->depth <= sweep->releases.called", "+ it->depth < sweep->releases.called"),
    ("owner", "->releases += it->depth;", "->releases += 1;"),
    ("owner", "->releases += it->depth;", "->releases += 0;"),
    ("owner", "operation->call >= after && operation->call < before", "operation->call >= before"),
    (
        "owner",
        "if (operation->process != process && operation->call",
        "if (operation->process == process && operation->call",
    ),
    ("owner", "if (process == it->holder || sweep->last_firm", "if (sweep->last_firm"),
    ("owner", "sweep->last_firm[process] > sweep->position) continue;", "false) continue;"),
    (
        "owner",
        "if (!found || found->releases < releases) releases",
        "if (found && found->releases < releases) releases",
    ),
    (
        "owner",
        "if (!found || found->acquires < acquires) acquires",
        "if (found && found->acquires < acquires) acquires",
    ),
    ("owner", "sweep->releases.used[process] += releases;", ""),
    ("owner", "sweep->acquires.used[process] += acquires;", ""),
    ("owner", "!found->acquires && !found->owes) *found", "!found->acquires) *found"),
    ("owner", "if (mine->releases > (theirs ? theirs->releases : 0) || mine", "if (mine"),
    ("owner", "one->since >= other->since ||", "true ||"),
    ("owner", "one->since >= other->since ||", "one->since <= other->since ||"),
    ("owner", "!is_called_between(sweep, one->holder, one->since, other->since);", "true;"),
    ("owner", "if (it->holder != operation->process) difference_get", "if (it->holder == NOBODY) difference_get"),
    ("owner", "else if (--it->depth == 0) it->holder = NOBODY;", "else it->holder = NOBODY;"),
    ("owner", "difference->owes = false;", ""),
    ("owner", "difference->acquires++;", ""),
    ("owner", "if (!owes_any(it)) sweep->order.gap_count = 0;", "sweep->order.gap_count = 0;"),
    ("owner", "if (order->newest < next->value - 1) break;", "break;"),
    ("owner", "if (order->newest < next->value - 1) break;", "if (order->newest < next->value) break;"),
    ("owner", "order->newest >= next->value || next->call > sweep->position", "order->newest >= next->value"),
    ("owner", "if (order->newest >= next->value || next->call", "if (next->call"),
    ("owner", "next->call > sweep->position) return false;", "true) return false;"),
    (
        "owner",
        ">= sweep->releases.called[next->process]) return false;",
        "> sweep->releases.called[next->process]) return false;",
    ),
    ("owner", "difference_get(sweep, it, next->process)->releases++;", ""),
    ("owner", "order->newest = next->value;", ""),
    ("owner", "    order->newest++;", ""),
    ("owner", "if (order->gaps[each].end <= start || order", "if (order"),
    ("owner", "order->gaps[each].room == 0) continue;", "false) continue;"),
    ("owner", "order->gaps[each].room--;", ""),
    ("owner", "it->holder != NOBODY && it->since > operation->call;", "it->holder != NOBODY;"),
    ("owner", ">= sweep->acquires.called[process]) {", "> sweep->acquires.called[process]) {"),
    ("owner", "if (pay_back_then(sweep, it, operation)) continue;", ""),
    ("owner", "it->dead = it->holder != NOBODY && !can_let_go(sweep, it);", "it->dead = it->holder != NOBODY;"),
    ("owner", "it->dead = it->holder != NOBODY && !can_let_go(sweep, it);", ""),
    ("owner", "if (it->holder != NOBODY) let_go(sweep, it);", ""),
    ("owner", "it->dead = !take_token(sweep, it);", "it->dead = false;"),
    (
        "owner",
        "uint64_t room = (uint64_t)token - (uint64_t)order->newest - 1;",
        "uint64_t room = (uint64_t)token - (uint64_t)order->newest;",
    ),
    ("owner", "    order->next++;\n", ""),
    ("owner", "if (order->newest >= token) return false;", "if (order->newest > token) return false;"),
    ("owner", "if (room == 0 || !owes_any(it)) return true;", "return true;"),
    ("owner", "it->since = sweep->position;", "it->since = operation->call;"),
    ("owner", "return it->since > operation->call && releases_used", "return releases_used"),
    ("owner", "releases_used(sweep, it, process) < sweep->releases.called[process];", "true;"),
    ("owner", "if (sweep->model == MODEL_FENCED_MUTEX || it->holder == process) return false;", ""),
    ("owner", "bool moment = can_let_go(sweep, it) &&", "bool moment = false && can_let_go(sweep, it) &&"),
    (
        "owner",
        "struct configuration *other = can_let_go(sweep, it) ? fork_of(sweep, each) : NULL;",
        "struct configuration *other = NULL;",
    ),
    ("owner", "difference_get(sweep, &sweep->list[each], process)->releases++;", ""),
    ("owner", "} else if (fits_back_then(sweep, it, operation)) {", "} else if (false) {"),
    ("owner", "        } else if (can_let_go(sweep, it)) {", "        } else if (false) {"),
    ("owner", "sweep->list[each].depth++;", ""),
    ("owner", "if (list[order->grants[each]].end < earliest) earliest", "earliest"),
    ("owner", "if (list[index].call < order->deadlines[each]) continue;", "continue;"),
    ("owner", "if (one->value != two->value) return one->value < two->value ? -1 : 1;", ""),
    (
        "owner",
        "if (violated_here) found = tried, bad = middle;",
        "if (violated_here) found = tried, bad = middle, good = middle - 1;",
    ),
    ("owner", "sweep->timeline->prefix = middle;", ""),
    ("owner", "order->deadlines[order->due] == sweep->position", "order->deadlines[order->due] >= sweep->position"),
    ("owner", "if (order->next == order->due) acquire_returned", "acquire_returned"),
    ("register", "if (operation->kind == OPERATION_READ) return operation->value == value;", ""),
    ("register", "return operation->kind == OPERATION_WRITE || operation->from == value;", "return true;"),
    (
        "register",
        "if (operation->kind == OPERATION_READ && operation->value == it->value) it->placed",
        "if (operation->kind == OPERATION_READ) it->placed",
    ),
    ("register", "if (operation->kind != OPERATION_WRITE && allows(operation, value)) return true;", ""),
    ("register", "if (sort->kind == OPERATION_CAS && sort->from == value &&", "if (false &&"),
    ("register", "then.placed |= (uint64_t)1 << other;", ""),
    ("register", "if (operation->kind != OPERATION_READ) then.value = operation->value;", ""),
    ("register", "(free->kind == OPERATION_CAS && free->from != it.value)", "false"),
    ("register", ">= free->called ||", "> free->called ||"),
    ("register", "then.value = free->value;", ""),
    ("register", "if (use[each].count > use_count(&search->uses, other, use[each].sort)) return false;", ""),
    ("register", "copy[place - 1].count++;", ""),
    ("register", "if (search->now.list[each].value == operation->value) search", "if (true) search"),
    ("register", "return sort->called++, true;", "return true;"),
    ("register", "sort->value != operation->value ||", ""),
    ("register", "sort->from != operation->from)", "false)"),
    ("register", "else expand(search, &it, slot);", ""),
    (
        "register",
        "if (operation->kind == OPERATION_READ) return true;\n        for (size_t each = 0; each < search->sort_count",
        "for (size_t each = 0; each < search->sort_count",
    ),
]
SHORT = slice(None) if os.environ.get("LOCKSTORM_MUTANTS") == "all" else slice(0, None, 8)
MODELS_OF = {
    "count": ("semaphore", "mutex"),
    "owner": ("fenced-mutex", "owner-mutex", "reentrant-mutex"),
    "register": ("register",),
}


@pytest.mark.parametrize("mutant", MUTANTS[SHORT], ids=lambda mutant: f"{mutant[0]}-{MUTANTS.index(mutant)}")
def test_a_planted_mistake_is_found(tmp_path: Path, mutant: tuple[str, str, str]) -> None:
    name, old, new = mutant
    shutil.copytree(paths.ROOT / "checkers", tmp_path / "checkers")
    source = tmp_path / "checkers" / f"linearizable_{name}.c"
    text = source.read_text()
    assert old in text, "the place where the mistake goes has changed"
    source.write_text(text.replace(old, new, 1))
    program = tmp_path / "oracle"
    parts = [
        "linearizable",
        "linearizable_count",
        "linearizable_owner",
        "linearizable_register",
        "operations",
        "limits",
    ]
    files = [str(tmp_path / "checkers" / f"{part}.c") for part in parts]
    oracle_source = str(paths.ROOT / "tests" / "c" / "linearizable_oracle.c")
    command = ["gcc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-w"]
    places = [f"-I{tmp_path}", f"-I{paths.ROOT}"]
    done = subprocess.run(
        [*command, *places, "-o", str(program), oracle_source, *files], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    words = [str(ORACLE_HISTORIES_MUTANTS), str(ORACLE_SEED_MUTANTS)]
    rare = [("fenced-mutex", str(10 * ORACLE_HISTORIES_MUTANTS), str(ORACLE_SEED_MUTANTS))] if name == "owner" else []
    lengths: list[tuple[str, ...]] = [(), ("long",)] if name == "owner" else [()]
    usual = [(model, *words, *length) for length in lengths for model in MODELS_OF[name]]
    assert any(is_found(str(program), *each) for each in usual + rare), mutant


def is_found(program: str, *words: str) -> bool:
    """By a disagreement, a crash, or a search that does not end."""
    try:
        return subprocess.run([program, *words], capture_output=True, timeout=120).returncode != 0
    except subprocess.TimeoutExpired:
        return True
