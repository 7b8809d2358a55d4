"""Linearizability: histories written by hand, the definition tried in all orders, and planted mistakes.

LOCKSTORM_LINEARIZABLE_HISTORIES=10000000   number of random histories per model with --all (default 200,000)
LOCKSTORM_LINEARIZABLE_SEED=7               seed of the first one (a failure names the seed; default 1)
LOCKSTORM_MUTANTS=all                       plant all mistakes (default: every eighth)
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

from lockstorm.base import paths
from lockstorm.native.linearizability import MODELS
from tests.helpers.building import make

HISTORIES = sorted((paths.ROOT / "tests" / "linearizable").glob("*.edn"))
RANDOM_HISTORIES = int(os.environ.get("LOCKSTORM_LINEARIZABLE_HISTORIES", "200000"))
SOME = 20_000  # in every test run
SEED = int(os.environ.get("LOCKSTORM_LINEARIZABLE_SEED", "1"))
POLICIES = ("--release-policy=unknown", "--release-policy=not-happened", "--release-policy=released")
EXIT = {"holds": 0, "violated": 1, "inconclusive": 3}
OWNED = ("fenced-mutex", "owner-mutex", "reentrant-mutex")
ORACLE_SEED_MUTANTS, ORACLE_HISTORIES_MUTANTS = 1, 200_000

Json = dict[str, Any]


def linearized(path: Path, *words: str) -> Json:
    """The verdict on a file; the exit status must agree with it."""
    done = subprocess.run([paths.program("linearize"), *words, str(path)], capture_output=True, text=True, timeout=600)
    assert done.stdout, (path, done.returncode, done.stderr)
    said: Json = json.loads(done.stdout)
    assert said["exit"] == done.returncode == EXIT[status(said)]
    assert done.stderr == ""
    return said


def status(said: Json) -> str:
    return str(said["verdict"]["linearizable"]["status"])


def about(path: Path) -> Json:
    first: Json = json.loads(path.read_text().splitlines()[0].removeprefix("; "))
    assert set(first) <= {"about", "model", "args", "expect", "under"}, path.name
    return first


def write_events(path: Path, events: str) -> Path:
    """Events in short: "0+acquire 0=acquire:5" is an invocation by process 0, answered ok with the value 5."""
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
    said = linearized(path, "--model", first["model"], *first.get("args", []))
    assert status(said) == first["expect"], (first["about"], said)
    for policy, expected in first.get("under", {}).items():
        assert status(linearized(path, "--model", first["model"], policy)) == expected, (first["about"], policy)
    evidence = said["verdict"]["linearizable"]["evidence"]
    assert len(evidence) == said["verdict"]["linearizable"]["count"] == (first["expect"] == "violated")
    if evidence:
        check_evidence(path, first, evidence[0], tmp_path)


def check_evidence(path: Path, first: Json, evidence: Json, tmp_path: Path) -> None:
    """The named prefix is not linearizable, and the prefix one event shorter is."""
    lines = path.read_text().splitlines(keepends=True)[1:]
    assert lines[evidence["prefix"]].startswith("{:type :ok"), "only an answer makes a history impossible"
    assert evidence["prefix"] in evidence["records"]
    assert evidence["operation"] in evidence["text"]
    assert all(words in evidence["text"] for words in evidence["in_the_way"])
    for length, expected in ((evidence["prefix"], ("holds", "inconclusive")), (evidence["prefix"] + 1, ("violated",))):
        cut = tmp_path / "cut.edn"
        cut.write_text("".join(lines[:length]))
        assert status(linearized(cut, "--model", first["model"], *first.get("args", []))) in expected, (length, first)


def program_at_hand(name: str) -> Path:
    """The one with a planted mistake, where there is one."""
    if os.environ.get("LOCKSTORM_PROGRAMS"):
        return Path(os.environ["LOCKSTORM_PROGRAMS"]) / "tests" / name
    return make(f"build/tests/{name}") / "tests" / name


def test_the_memory_of_a_history_is_given_back() -> None:
    program = program_at_hand("linearizable_each")
    for path in HISTORIES:
        first = about(path)
        leases = "1" if "--leases" in first.get("args", []) else "0"
        words = [first["model"], "1", leases, "0", "0", str(path)]
        done = subprocess.run([program, *words], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), path.stem


def test_limits_and_what_they_count() -> None:
    done = subprocess.run([program_at_hand("search_limits")], capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    assert len(said) == 21 and all(said.values()), said


IN_TURN = " ".join(
    f"{each}+acquire {each}=acquire:{each + 1} {each}+renew {each}=renew {each}+release {each}=release"
    for each in range(70)
)
VALUES = " ".join(f"{each}+write:{each}" for each in range(8)) + " 20+read 20=read:5 20+cas:[5,7] 20=cas:[5,7]"


@pytest.mark.parametrize("model", ("mutex", *OWNED, "semaphore", "register"))
@pytest.mark.parametrize("leases", (False, True), ids=("", "leases"))
def test_wherever_the_memory_ends_the_verdict_is_inconclusive(tmp_path: Path, model: str, leases: bool) -> None:
    """The limit is anywhere below what is needed: neither a crash nor a verdict."""
    path = write_events(tmp_path / "h.edn", VALUES if model == "register" else IN_TURN)
    text = path.read_text().replace(":process ", ":lock :a-name, :process 1")
    path.write_text(text + text.replace("a-name", "another-name").replace(":process 1", ":process 2"))
    words = ["--model", model, *["--leases"][: leases and model != "register"]]
    peak = linearized(path, *words)["memory_bytes"]
    for most in (*range(1, 4000, 150), *range(4000, peak, peak // 40), peak - 1):
        said = linearized(path, *words, f"--memory-limit={(most + 0.5) / (1 << 20):.12f}")
        assert status(said) == "inconclusive" and said["memory_bytes"] <= most, most
    assert status(linearized(path, *words, f"--memory-limit={(peak + 0.5) / (1 << 20):.12f}")) == "holds"


def test_many_processes_are_told_apart(tmp_path: Path) -> None:
    """All of them have an operation under way at once, and the first or the last is granted the lock."""
    for granted in (0, 199):
        words = [f"{each}+acquire" for each in range(200)]
        words += [f"{each}{'=' if each == granted else '-'}acquire" for each in range(200)]
        words += [f"{each}+release {each}{'=' if each == granted else '-'}release" for each in range(200)]
        said = linearized(write_events(tmp_path / "h.edn", " ".join(words)), "--model=owner-mutex")
        assert (status(said), said["operations"], said["unknown"]) == ("holds", 2, 0)


def test_good_and_bad_in_equal_number() -> None:
    counts = Counter((about(path)["model"], about(path)["expect"]) for path in HISTORIES)
    for model in MODELS:
        assert counts[model, "holds"] == counts[model, "violated"] >= 5, (model, counts)


def test_the_verdict_on_a_failed_release_is_a_matter_of_reading() -> None:
    """The public etcd case: how a failed release is read decides."""
    path = next(path for path in HISTORIES if path.stem == "owner-mutex-etcd-failed-release")
    verdicts = [status(linearized(path, "--model=owner-mutex", policy)) for policy in POLICIES]
    assert verdicts == ["holds", "violated", "holds"]
    said = linearized(path, "--model=owner-mutex", "--release-policy=not-happened")
    assert said["policies"]["release"] == "not-happened"
    assert "failed releases read as not-happened" in said["sentence"]


# What process 0 did before it renews or releases lock A: such that it holds it, and such that it does not.
HELD_AND_NOT = {
    "never granted": ("0?A", ""),
    "refused": ("1=A 1-A 0=A", "1=A 0-A"),
    "released": ("0=A 0-A 0=A", "0=A 0-A"),
    "of another lock": ("0=B 0=A", "0=B 1=A"),
}
KINDS = {"=": ("acquire", "ok"), "?": ("acquire", "info"), "-": ("release", "ok")}


def write_grants(path: Path, words: str, proof: str) -> Path:
    """ "0=A" process 0 is granted A, "0?A" perhaps, "0-A" releases it, or is refused it while another holds it."""
    events, holders = list[str](), dict[str, str]()
    for token, word in enumerate([*words.split(), "0" + proof]):
        process, lock = word[0], "A" if word[1:] == proof else word[2]
        kind, answer = (proof, "ok") if word[1:] == proof else KINDS[word[1]]
        if word[1] == "-" and holders.get(lock) != process:
            kind, answer = "acquire", "fail"
        elif kind == "acquire":
            holders[lock] = process
        value = f"{token + 1}" if (kind, answer) == ("acquire", "ok") else "nil"
        for type_ in ("invoke", answer):
            events.append(f"{{:type :{type_}, :process {process}, :f :{kind}, :value {value}, :lock :{lock}}}\n")
    path.write_text("".join(events))
    return path


@pytest.mark.parametrize("leases", ([], ["--leases"]), ids=("", "leases"))
@pytest.mark.parametrize("case", HELD_AND_NOT)
@pytest.mark.parametrize("proof", ("renew", "release"))
@pytest.mark.parametrize("model", ("owner-mutex", "reentrant-mutex", "fenced-mutex"))
def test_who_holds_nothing_can_neither_renew_nor_release(
    tmp_path: Path, model: str, proof: str, case: str, leases: list[str]
) -> None:
    held, not_held = HELD_AND_NOT[case]
    path = write_grants(tmp_path / "held.edn", held, proof)
    if case != "never granted":
        assert status(linearized(path, "--model", model, *leases)) == "holds"
    else:  # nothing was granted for certain
        assert status(linearized(path, "--model", model, *leases)) == "inconclusive"
    path = write_grants(tmp_path / "not-held.edn", not_held, proof)
    said = linearized(path, "--model", model, *leases)
    assert status(said) == "violated"
    last = len(path.read_text().splitlines()) - 1
    assert (
        said["verdict"]["linearizable"]["evidence"][0]["operation"]
        == f"process 0's {proof} (events {last - 1} to {last})"
    )


@pytest.mark.parametrize("model", ("owner-mutex", "reentrant-mutex"))
@pytest.mark.parametrize(
    "then, most",
    (("{0}+acquire {0}=acquire {0}+release {0}=release", 3), ("", 1), ("{0}+acquire", 1), ("{0}+renew {0}?renew", 1)),
    ids=("", "the last that they do", "the last that is answered", "the last that is answered ok"),
)
def test_an_ambiguity_that_is_over_costs_nothing(tmp_path: Path, then: str, most: int, model: str) -> None:
    """In each round three processes are granted the lock at once, and each has a release that may have happened: any
    two of these did, so any of the three may hold the lock. The first that is granted it again ends that. Where they
    do nothing more that is certain, it does not matter which of them holds it."""
    words = list[str]()
    for round_ in range(12):
        three = range(3 * round_, 3 * round_ + 3)
        words += [f"{each}+release {each}?release" for each in three]
        words += [f"{each}+acquire" for each in three] + [f"{each}=acquire" for each in three]
        words += [then.format(each) for each in three]
    path = write_events(tmp_path / "h.edn", " ".join(words))
    for leases in ([], ["--leases"])[: 1 + (most > 1)]:
        said = linearized(path, "--model", model, *leases)
        assert (status(said), said["configurations"]) == ("holds", most), leases


def test_a_hold_that_nobody_else_wants_is_not_ended(tmp_path: Path) -> None:
    """A release may have happened between two grants to one process, but no other operation needs that it did."""
    path = write_events(tmp_path / "h.edn", "0+release 0?release 0+acquire 0=acquire 0+acquire 0=acquire")
    said = linearized(path, "--model=reentrant-mutex")
    assert (status(said), said["configurations"]) == ("holds", 1)


@pytest.mark.parametrize("model", ("owner-mutex", "reentrant-mutex"))
@pytest.mark.parametrize("holder", range(3))
def test_what_only_one_of_three_can_have_used(tmp_path: Path, holder: int, model: str) -> None:
    """Three processes are granted the lock at once, and two of their three releases happened. A renewal tells whose did
    not: it makes way for one more grant, and for no other."""
    words = [f"{each}+release {each}?release" for each in range(3)]
    words += [f"{each}+acquire" for each in range(3)] + [f"{each}=acquire" for each in range(3)]
    words += [f"{holder}+renew {holder}=renew 3+acquire 3=acquire"]
    path = write_events(tmp_path / "h.edn", " ".join(words))
    assert status(linearized(path, "--model", model)) == "holds"
    path = write_events(tmp_path / "h.edn", " ".join([*words, "4+acquire 4=acquire"]))
    assert status(linearized(path, "--model", model)) == "violated"


def test_an_ambiguous_renewal_that_is_over_costs_nothing(tmp_path: Path) -> None:
    """In each round an acquire and a release that may have happened explain a renewal: before the grant that came while
    it was under way, or after it. The next grant ends that."""
    words, token = list[str](), 0
    for round_ in range(12):
        one, other = 2 * round_, 2 * round_ + 1
        words += [f"{one}+acquire {one}?acquire {one}+release {one}?release {other}+release {other}?release"]
        words += [f"{one}+renew {other}+acquire {other}=acquire:{token + 10} {one}=renew"]
        for each in (one, other):
            words += [f"{each}+acquire {each}=acquire:{token + 20 + each} {each}+release {each}=release"]
        token += 100
    path = write_events(tmp_path / "h.edn", " ".join(words))
    for leases in ([], ["--leases"]):
        said = linearized(path, "--model=fenced-mutex", *leases)
        assert (status(said), said["configurations"]) == ("holds", 2), leases


def test_what_is_in_the_way_of_a_grant_that_comes_too_late(tmp_path: Path) -> None:
    """Of the grants with larger tokens, the one that was answered first."""
    events = "0+acquire 0=acquire:4 0+release 0=release 1+acquire 1=acquire:9 1+release 1=release"
    late = "2+acquire 2=acquire:10 3+acquire 3=acquire:8"
    said = linearized(write_events(tmp_path / "h.edn", f"{events} {late}"), "--model=fenced-mutex")
    evidence = said["verdict"]["linearizable"]["evidence"][0]
    assert evidence["operation"] == "process 3's acquire (events 10 to 11, token 8)"
    assert evidence["in_the_way"] == ["process 1's acquire (events 4 to 5, token 9)"]
    assert "a larger token had been granted before it was called" in evidence["text"]


@pytest.mark.parametrize("newest, verdict", ((2**63 - 2, "holds"), (2**63 - 1, "violated")))
def test_a_grant_without_an_answer_needs_a_token_that_there_is(tmp_path: Path, newest: int, verdict: str) -> None:
    """Not a file in tests/linearizable: Porcupine would try all tokens up to the largest."""
    events = f"1+acquire 1?acquire 0+acquire 0=acquire:{newest} 0+release 0=release 1+release 1=release"
    assert status(linearized(write_events(tmp_path / "h.edn", events), "--model=fenced-mutex")) == verdict


def test_a_hold_without_an_answer_has_a_token_that_a_free_lock_lacks(tmp_path: Path) -> None:
    """Process 2's first grant has a token below 13, process 0's has 14; process 2 holds the lock with 15, until 16 is
    granted. Where its first grant came after 13 instead, 14 and 15 are used up, and it cannot hold the lock again."""
    strays = "2+acquire 2?acquire 2+acquire 2?acquire 0+acquire 0?acquire"
    strays += " 2+release 2?release 2+release 2?release 1+release 1?release"
    events = "2+renew 1+acquire 2=renew 1=acquire:13 2+renew 1+acquire 0+release 0=release 2=renew 2+renew"
    path = write_events(tmp_path / "h.edn", f"{strays} {events} 1=acquire:16 2=renew")
    assert status(linearized(path, "--model=fenced-mutex")) == "holds"
    path = write_events(tmp_path / "h.edn", f"{strays} {events} 1=acquire:15 2=renew")
    assert status(linearized(path, "--model=fenced-mutex")) == "violated"


@pytest.mark.parametrize(
    "leases, events",
    (
        (  # 4's grant, the renewal, 4's release, 17, 3's release; 18, 19 and 20 are of 2, 3 and 0; 21
            [],
            "4+acquire 4?acquire 4+release 4?release 3+release 3?release 2+acquire 2?acquire 0+acquire 0?acquire "
            "3+acquire 3?acquire 3+release 3?release 4+renew 3+acquire 3=acquire:17 2+release 4=renew 4+acquire "
            "3+renew 2=release 0+release 3=renew 4=acquire:21 0=release",
        ),
        (  # the grants and renewals of 2 and 4, 15, 3's release, 1's grant and release, 19, 20
            ["--leases"],
            "2+acquire 2?acquire 4+acquire 4?acquire 1+acquire 1?acquire 3+acquire 3?acquire 2+renew 4+renew 0+acquire "
            "3+acquire 3=acquire:15 1+release 4=renew 3+release 2=renew 2+acquire 2=acquire:19 3=release 1=release "
            "0=acquire:20",
        ),
    ),
    ids=("", "leases"),
)
def test_a_renewal_may_have_had_its_token_before_a_known_one(tmp_path: Path, leases: list[str], events: str) -> None:
    """Later, what was under way then needs all that is left. The comments have an order that explains the events."""
    path = write_events(tmp_path / "h.edn", events)
    assert status(linearized(path, "--model=fenced-mutex", *leases)) == "holds"


def test_every_choice_of_writes_that_may_have_happened_is_kept_once(tmp_path: Path) -> None:
    """Ten reads are under way at once, each of a value that one write of unknown outcome may have set. When the first
    is answered, any of the nine others may have happened before it. Then another read shows that none has. Before all
    this either of two values may have been the last, which makes no difference."""
    values = range(12)
    words = [f"1{each}+write:{each} 1{each}?write:{each}" for each in values]
    words += ["0+read 1+read 0=read:0 1=read:1"]
    words += [f"{each}+read" for each in values[2:]] + ["2=read:2"]
    words += [f"20+read 20=read:{each} {each}=read:{each}" for each in values[3:]]
    said = linearized(write_events(tmp_path / "h.edn", " ".join(words)), "--model=register")
    assert (status(said), said["configurations"]) == ("holds", 2**9)
    words += ["21+read 21=read:0"]
    assert status(linearized(write_events(tmp_path / "h.edn", " ".join(words)), "--model=register")) == "violated"


@pytest.mark.parametrize(("count", "held"), [(1, "0"), (2, "0, 1"), (4, "0, 1, 2, 3"), (8, "0, 1, 2, 3")])
def test_what_a_register_could_have_held_is_told(tmp_path: Path, count: int, held: str) -> None:
    """Any of the writes that overlapped may have been the last one. Four values are told at most."""
    words = [f"1{each}+write:{each}" for each in range(count)] + [f"1{each}=write:{each}" for each in range(count)]
    path = write_events(tmp_path / "h.edn", " ".join([*words, "1+read 1=read:77"]))
    (piece,) = linearized(path, "--model=register")["verdict"]["linearizable"]["evidence"]
    why = "nothing that may have happened by its return leaves the value that it read"
    assert piece["text"].endswith(f"{why}; before it, the register can hold {held}")


@pytest.mark.parametrize(("first", "second"), [(1, 2), (2, 1)])
def test_a_read_decides_which_of_two_writes_was_the_last(tmp_path: Path, first: int, second: int) -> None:
    words = "1+write:1 2+write:2 1=write:1 2=write:2"
    for then, verdict in ((first, "holds"), (second, "violated")):
        path = write_events(tmp_path / "h.edn", f"{words} 3+read 3=read:{first} 4+read 4=read:{then}")
        assert status(linearized(path, "--model=register")) == verdict, then


def test_what_a_register_holds_before_the_first_write_is_nil(tmp_path: Path) -> None:
    path = write_events(tmp_path / "h.edn", "1+cas:[5,7] 1=cas:[5,7]")
    (piece,) = linearized(path, "--model=register")["verdict"]["linearizable"]["evidence"]
    assert piece["text"].endswith("leaves the value that it expected; before it, the register can hold nil")


def test_with_more_operations_under_way_than_can_be_judged_nothing_is_said(tmp_path: Path) -> None:
    """Not even that what comes then is impossible."""
    words = [f"{100 + each}+write:{each}" for each in range(65)] + ["1+read 1=read:777"]
    words += [f"{100 + each}=write:{each}" for each in range(65)]
    said = linearized(write_events(tmp_path / "h.edn", " ".join(words)), "--model=register")
    assert status(said) == "inconclusive"
    assert "more than 64 operations are under way at once" in said["verdict"]["linearizable"]["reason"]


@pytest.mark.parametrize("pending", (0, 1, 2))
def test_who_has_used_fewer_writes_replaces_who_is_in_the_same_state(tmp_path: Path, pending: int) -> None:
    """Each time 1 is read, either the write of 1 that is under way has set it, or one of unknown outcome. When that
    write returns both are in the same state, and the second has used a write more. So only these choices are left:
    whether it has happened already, and each of those that stay under way."""
    words = [f"2{each}+write:1" for each in range(6)] + [f"4{each}+write:{7 + each}" for each in range(pending)]
    words += ["1+write:2 1=write:2 1+write:1 2+read 2=read:1 1=write:1"] * 6
    words += [f"4{each}=write:{7 + each}" for each in range(pending)]
    said = linearized(write_events(tmp_path / "h.edn", " ".join(words)), "--model=register")
    assert (status(said), said["configurations"]) == ("holds", 2 ** (1 + pending))


@pytest.mark.parametrize("seen, verdict", ((3, "holds"), (4, "violated")))
def test_a_write_that_may_have_happened_did_so_once(tmp_path: Path, seen: int, verdict: str) -> None:
    words = [f"1{each}+write:1 1{each}?write:1" for each in range(3)]
    words += ["0+read 0=read:1 0+write:2 0=write:2"] * seen
    assert status(linearized(write_events(tmp_path / "h.edn", " ".join(words)), "--model=register")) == verdict


HOLDS_NOT = "its process does not hold the lock, and no acquire of unknown outcome makes up for it"


@pytest.mark.parametrize(
    "model, events, why, blockers",
    (
        (
            "owner-mutex",
            "0+acquire 0=acquire 1+acquire 1=acquire",
            "the lock is held until it returns, and no release of unknown outcome makes up for it",
            {"process 0's acquire (events 0 to 1)"},
        ),
        (
            "fenced-mutex",
            "0+acquire 0=acquire:1 1+acquire 1=acquire:2",
            "with tokens rising, the lock is held by another when it would have to be granted",
            {"process 0's acquire (events 0 to 1, token 1)"},
        ),
        (  # not the renewal itself
            "owner-mutex",
            "0+acquire 0?acquire 1+acquire 1=acquire 0+renew 0=renew",
            HOLDS_NOT,
            {"process 1's acquire (events 2 to 3)"},
        ),
        (
            "fenced-mutex",
            "0+acquire 0?acquire 1+acquire 1=acquire:3 0+renew 0=renew",
            HOLDS_NOT,
            {"process 1's acquire (events 2 to 3, token 3)"},
        ),
        (  # the first four that are under way
            "register",
            " ".join(f"{each}+write:{each}" for each in range(6))
            + " 9+read 9=read:77 "
            + " ".join(f"{each}=write:{each}" for each in range(6)),
            "nothing that may have happened by its return leaves the value that it read",
            {f"process {each}'s write (events {each} to {each + 8}, value {each})" for each in range(4)},
        ),
        (  # what comes later is wrong for another reason
            "fenced-mutex",
            "0+acquire 0=acquire:5 1+acquire 1=acquire:6 2+acquire 2=acquire:4",
            "with tokens rising, the lock is held by another when it would have to be granted",
            {"process 0's acquire (events 0 to 1, token 5)"},
        ),
        (  # it would have to be granted before the one with the larger token
            "fenced-mutex",
            "2+acquire 0+acquire 0=acquire:1 0+release 0=release 1+acquire 1=acquire:5 2=acquire:3",
            "when it has happened, there is no place for what is in its way",
            {"process 1's acquire (events 5 to 6, token 5)"},
        ),
        ("owner-mutex", "0+acquire 0=acquire 1+release 1=release", HOLDS_NOT, {"process 0's acquire (events 0 to 1)"}),
        (  # three configurations and those that the renewal makes of them: each grant is named once
            "reentrant-mutex",
            "0+release 0?release 1+release 1?release 2+acquire 2?acquire 2+release 2?release "
            "0+acquire 1+acquire 0=acquire 3+acquire 1=acquire 0+acquire 0=acquire 2+renew 2=renew 3=acquire",
            HOLDS_NOT,
            {"process 0's acquire (events 8 to 10)", "process 0's acquire (events 13 to 14)"},
        ),
        (  # one of the two holds the lock; both do something later
            "owner-mutex",
            "0+release 0?release 1+release 1?release 0+acquire 1+acquire 0=acquire 1=acquire 2+release 2=release "
            "0+acquire 0=acquire 1+acquire 1=acquire",
            HOLDS_NOT,
            {"process 0's acquire (events 4 to 6)", "process 1's acquire (events 5 to 7)"},
        ),
    ),
)
def test_why_an_operation_cannot_be_placed(
    tmp_path: Path, model: str, events: str, why: str, blockers: set[str]
) -> None:
    said = linearized(write_events(tmp_path / "h.edn", events), "--model", model)
    evidence = said["verdict"]["linearizable"]["evidence"][0]
    assert why in evidence["text"] and sorted(evidence["in_the_way"]) == sorted(blockers)


IN_THE_WAY = "until it returns, and no {} is under way or of unknown outcome"


@pytest.mark.parametrize(
    "permits, events, why, blockers",
    (
        ("", "0+acquire 0=acquire 1+acquire 1=acquire", "the lock is held " + IN_THE_WAY.format("release"), ["0 0 1"]),
        (
            "",
            "0+acquire 0=acquire 0+release 0=release 1+release 1=release",
            "the lock is free " + IN_THE_WAY.format("acquire"),
            ["0 2 3"],
        ),
        ("", "1+acquire 1-acquire 0+release 0=release", "the lock is free", []),
        (  # not the grant before the one that holds it
            "",
            "2+acquire 2=acquire 2+release 2=release 0+acquire 0=acquire 1+acquire 1=acquire",
            "the lock is held " + IN_THE_WAY.format("release"),
            ["0 4 5"],
        ),
        (
            "--permits=2",
            "0+acquire 0=acquire 1+acquire 1=acquire 2+acquire 2=acquire",
            "all 2 permits are taken " + IN_THE_WAY.format("release"),
            ["1 2 3", "0 0 1"],
        ),
        (
            "--permits=3",
            "0+acquire 0=acquire 0+release 0=release 1+release 1=release",
            "no permit is taken " + IN_THE_WAY.format("acquire"),
            ["0 2 3"],
        ),
        (
            "--permits=6",
            " ".join(f"{each}+acquire {each}=acquire" for each in range(7)),
            "all 6 permits are taken " + IN_THE_WAY.format("release"),
            ["5 10 11", "4 8 9", "3 6 7", "2 4 5"],
        ),
    ),
)
def test_why_a_permit_is_missing(tmp_path: Path, permits: str, events: str, why: str, blockers: list[str]) -> None:
    """The latest of those that are in the way, as many as there are permits, and four at most."""
    words = ["--model=semaphore", permits] if permits else ["--model=mutex"]
    said = linearized(write_events(tmp_path / "h.edn", events), *words)
    evidence = said["verdict"]["linearizable"]["evidence"][0]
    assert why in evidence["text"]
    kind = evidence["operation"].split(" ")[2]
    expected = [each.split() for each in blockers]
    assert evidence["in_the_way"] == [f"process {a}'s {kind} (events {b} to {c})" for a, b, c in expected]


# --- the definition, and mistakes that it must find ---


@pytest.fixture(scope="session")
def oracle() -> Path:
    return make("test-programs") / "tests" / "linearizable_oracle"


MANY = pytest.mark.slow("judges 200,000 histories or more", seconds=8)
COUNTS = (pytest.param(SOME, id="some"), pytest.param(RANDOM_HISTORIES, marks=MANY, id="many"))


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("model", ("owner-mutex", "reentrant-mutex", "fenced-mutex"))
def test_nothing_is_lost_with_the_configurations_that_are_dropped(oracle: Path, model: str, count: int) -> None:
    """Histories too long for all orders: the same verdict and prefix when every configuration is kept."""
    command = [str(oracle), model, str(count), str(SEED), "long"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_a_renewal_may_bind_a_hold_that_was_taken_for_as_good_as_none(oracle: Path) -> None:
    """One of 200,000 random histories: with leases of known length a held lock took the place of a free one."""
    done = subprocess.run([str(oracle), "reentrant-mutex", "1", "199027", "long"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("model", MODELS)
def test_the_definition_tried_in_all_orders(oracle: Path, model: str, count: int) -> None:
    command = [str(oracle), model, str(count), str(SEED)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    violated = int(re.search(r"(\d+) of them not linearizable", done.stdout)[1])  # type: ignore[index]
    assert count / 10 < violated < count * 9 / 10, "both verdicts must be common"


def counted(what: str, said: str) -> int:
    return int(re.search(rf"(\d+) (?:of them )?{what}", said)[1])  # type: ignore[index]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("model", OWNED)
def test_what_a_simulated_lock_did_holds_until_something_impossible_is_added(model: str, count: int) -> None:
    program = make("test-programs") / "tests" / "linearizable_simulated"
    done = subprocess.run([program, model, str(count), str(SEED)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert counted("with several configurations", done.stdout) > count / 3, "one alone is not compared with others"
    assert counted("made impossible", done.stdout) > count / 2


# File, what stands there, what is planted instead; all must be found by the random histories of a model.
MUTANTS: list[tuple[str, str, str]] = [
    ("linearizable_count", "counts->taken < counts->permits", "counts->taken <= counts->permits"),
    ("linearizable_count", "counts->taken > 0)", "counts->taken >= 0)"),
    ("linearizable_count", "kind->due[place - 1] < end", "kind->due[place - 1] > end"),
    ("linearizable_count", "if (kind->due_count > 0) return kind->due_count--, true;", ""),
    ("linearizable_count", "if (kind->free > 0) return kind->free--, true;", ""),
    ("linearizable_count", "return kind->free--, true;", "return true;"),
    ("linearizable_count", "== STANDS_FREE) kind->free++", "== STANDS_FREE) kind->free += 2"),
    ("linearizable_count", "own->due[own->due_count - 1] == position", "true"),
    ("linearizable_count", "own->due_count -= unplaced;", "own->due_count -= unplaced && own->due_count > 1;"),
    ("linearizable_count", "!place_another(other)", "!place_another(own)"),
    (
        "owner_configurations",
        "+ it->depth <= sweep->releases.called[it->holder]",
        "<= sweep->releases.called[it->holder]",
    ),
    ("owner_configurations", "+ it->depth <= sweep->releases.called", "+ it->depth < sweep->releases.called"),
    ("owner_configurations", "->releases += it->depth;", "->releases += 1;"),
    ("owner_configurations", "->releases += it->depth;", "->releases += 0;"),
    (
        "owner_configurations",
        "operation->call < before && (sweep->timed || operation->call >= after);",
        "operation->call >= before;",
    ),
    (
        "owner_configurations",
        "if (operation->process != process && called)",
        "if (operation->process == process && called)",
    ),
    ("owner_configurations", "if (process == it->holder || sweep->last_firm", "if (sweep->last_firm"),
    ("owner_configurations", "sweep->last_firm[process] > sweep->position) continue;", "false) continue;"),
    (
        "owner_configurations",
        "if (!found || found->releases < releases) releases",
        "if (found && found->releases < releases) releases",
    ),
    (
        "owner_configurations",
        "if (!found || found->acquires < acquires) acquires",
        "if (found && found->acquires < acquires) acquires",
    ),
    ("owner_configurations", "sweep->releases.used[process] += releases;", ""),
    ("owner_configurations", "sweep->acquires.used[process] += acquires;", ""),
    ("owner_configurations", "!found->acquires && !found->owes) *found", "!found->acquires) *found"),
    ("owner_configurations", "if (mine->releases > (theirs ? theirs->releases : 0) || mine", "if (mine"),
    ("owner_configurations", "one->since >= other->since ||", "true ||"),
    ("owner_configurations", "one->since >= other->since ||", "one->since <= other->since ||"),
    ("owner_configurations", "!owner_called_between(sweep, one->holder, one->since, other->since);", "true;"),
    (
        "linearizable_owner",
        "if (it->holder != operation->process) owner_difference_get",
        "if (it->holder == NOBODY) owner_difference_get",
    ),
    ("linearizable_owner", "else if (releases && --it->depth == 0) owner", "else if (releases) owner"),
    ("linearizable_owner", "difference->owes = false;", ""),
    ("linearizable_owner", "difference->acquires++;", ""),
    ("linearizable_owner", "if (!owner_owes_any(it)) it->tokens.gap_count = 0;", "it->tokens.gap_count = 0;"),
    ("linearizable_owner", "if (place->newest < next->value - 1) break;", "break;"),
    ("linearizable_owner", "if (place->newest < next->value - 1) break;", "if (place->newest < next->value) break;"),
    ("linearizable_owner", "if (place->newest >= next->value) return false;", ""),
    ("linearizable_owner", "if (next->call > moment) return false;", ""),
    ("linearizable_owner", "if (next->call > moment) return false;", "return false;"),
    (
        "linearizable_owner",
        ">= sweep->releases.called[next->process])",
        "> sweep->releases.called[next->process])",
    ),
    ("linearizable_owner", "place->newest = next->value;", ""),
    ("linearizable_owner", "place->newest = next->value;", "place->newest = next->value + 1;"),
    ("linearizable_owner", "    place->newest++;\n", ""),
    ("linearizable_owner", "|| it->since <= operation->call) return false;", ") return false;"),
    (
        "linearizable_owner",
        "return sweep->model != MODEL_FENCED_MUTEX || owner_is_free_hold(sweep, it);",
        "return sweep->model != MODEL_FENCED_MUTEX;",
    ),
    ("linearizable_owner", "|| owner_is_free_hold(sweep, it);", "|| true;"),
    ("linearizable_owner", "take_token(sweep, it, it->since)", "true"),
    ("linearizable_owner", "if (it->holder != NOBODY && !owner_can_let_go(sweep, it)) return false;", ""),
    ("linearizable_owner", "if (it->holder != NOBODY) owner_let_go(sweep, it);", ""),
    ("linearizable_owner", "if (!take_token(sweep, it, sweep->position)) return false;", ""),
    ("linearizable_owner", "< sweep->acquires.called[process];", "<= sweep->acquires.called[process];"),
    ("linearizable_owner", "(!pay_back_then(sweep, it, operation) && !pay_now", "(!pay_now"),
    ("linearizable_owner", "(!pay_back_then(sweep, it, operation) && !pay_now(sweep, it, operation))", "false"),
    (
        "linearizable_owner",
        "sweep->list[each].dead = !can_pay(sweep, &sweep->list[each], process);",
        "sweep->list[each].dead = false;",
    ),
    ("linearizable_owner", "by_itself || owner_releases_used", "owner_releases_used"),
    ("linearizable_owner", "by_itself || owner_releases_used", "false && owner_releases_used"),
    ("linearizable_owner", "now->dead = !pay_now(sweep, now, operation);", "now->dead = lapses;"),
    ("linearizable_owner", "now->dead = !pay_now(sweep, now, operation);", "pay_now(sweep, now, operation);"),
    ("linearizable_owner", "it->holder = operation->process;", "it->holder = NOBODY;"),
    ("linearizable_owner", "it->depth = 1;", "it->depth = 2;"),
    ("linearizable_owner", "it->grant = index;", ""),
    ("linearizable_owner", "if (lapses) then->dead = !pay_back_then", "if (lapses) then->dead = pay_back_then"),
    ("linearizable_owner", "if (lapses && !by_itself) owner_difference_get", "if (false) owner_difference_get"),
    ("linearizable_owner", "if (operation->kind == OPERATION_RENEW) return;", ""),
    ("linearizable_owner", "(uint64_t)place->newest - 1 + back_then;", "(uint64_t)place->newest - 1;"),
    ("linearizable_owner", "(uint64_t)place->newest - 1 + back_then;", "(uint64_t)place->newest + back_then;"),
    ("linearizable_owner", "    place->next++;\n", ""),
    ("linearizable_owner", "if (place->newest >= token) return false;", "if (place->newest > token) return false;"),
    ("linearizable_owner", "if (room > 0 && owner_owes_any(it))", "if (false)"),
    ("linearizable_owner", "return !back_then || take_token(sweep, it, it->since);", "return true;"),
    ("linearizable_owner", "return sweep->leases ? operation->end + 1 : OPERATION_OPEN;", "return operation->end + 1;"),
    ("linearizable_owner", "return sweep->leases ? operation->end + 1", "return sweep->leases ? operation->call + 1"),
    ("owner_configurations", "if (!owner_may_lapse(sweep, it)) owner_difference_get", "owner_difference_get"),
    ("owner_configurations", "return other->holder == NOBODY && owner_may_lapse(sweep, one);", "return true;"),
    ("owner_configurations", "return other->holder == NOBODY && owner_may", "return owner_may"),
    ("owner_configurations", "if (sweep->leases && one->depth < other->depth) return false;", ""),
    ("token_order", "if (place->gaps[each].end <= start || place", "if (place"),
    ("token_order", "place->gaps[each].room == 0) continue;", "false) continue;"),
    ("token_order", "place->gaps[each].room--;", ""),
    (
        "linearizable_owner",
        "it->since = sweep->position;",
        "it->since = sweep->timeline->object->list[index].call;",
    ),
    ("linearizable_owner", "owner_releases_used(sweep, it, process) < sweep->releases.called[process];", "true;"),
    ("linearizable_owner", "if (it->holder == process || !was_free_since(sweep, it, operation)) return false;", ""),
    (
        "linearizable_owner",
        "struct owner_configuration *other = moment ?",
        "struct owner_configuration *other = false ?",
    ),
    (
        "linearizable_owner",
        "struct owner_configuration *other = owner_can_let_go(sweep, it) ? owner_fork(sweep, each) : NULL;",
        "struct owner_configuration *other = NULL;",
    ),
    ("linearizable_owner", "owner_difference_get(sweep, it, operation->process)->releases++;", ""),
    (
        "linearizable_owner",
        "if (sweep->model == MODEL_FENCED_MUTEX) it->dead = !grant_next(sweep, it, operation->value);\n}",
        "}",
    ),
    ("linearizable_owner", "} else if (fits_back_then(sweep, it, operation)) {", "} else if (false) {"),
    ("linearizable_owner", "        } else if (owner_can_let_go(sweep, it)) {", "        } else if (false) {"),
    ("linearizable_owner", "sweep->list[each].depth++;", ""),
    ("token_order", "if (list[order->grants[each]].end < earliest) earliest", "earliest"),
    ("token_order", "if (list[index].call < order->deadlines[each]) continue;", "continue;"),
    ("token_order", "if (one->value != two->value) return one->value < two->value ? -1 : 1;", ""),
    (
        "linearizable_owner",
        "if (violated_here) found = tried, bad = middle;",
        "if (violated_here) found = tried, bad = middle, good = middle - 1;",
    ),
    ("linearizable_owner", "sweep->timeline->prefix = middle;", ""),
    (
        "linearizable_owner",
        "order->deadlines[order->due] == sweep->position",
        "order->deadlines[order->due] >= sweep->position",
    ),
    ("linearizable_owner", "&& it->tokens.next != sweep->order.due)", "&& false)"),
    (
        "linearizable_register",
        "if (kind == OPERATION_READ) return *value == operand;",
        "if (kind == OPERATION_READ) return true;",
    ),
    ("linearizable_register", "if (kind == OPERATION_CAS && *value != from) return false;", ""),
    (
        "linearizable_register",
        "if (operation->kind == OPERATION_READ && operation->value == it->value) it->placed",
        "if (operation->kind == OPERATION_READ) it->placed",
    ),
    (
        "linearizable_register",
        "if (operation->kind != OPERATION_WRITE && register_allows(operation, value)) return true;",
        "",
    ),
    ("linearizable_register", "if (sort->kind == OPERATION_CAS && sort->from == value &&", "if (false &&"),
    ("linearizable_register", "then.placed |= (uint64_t)1 << other;", ""),
    ("linearizable_register", "!__builtin_add_overflow(*value, operand, value);", "true;"),
    ("linearizable_register", "if (search->has_adds) return true;", ""),
    ("linearizable_register", ">= free->called ||", "> free->called ||"),
    (
        "linearizable_register",
        "if (use[each].count > use_count(&search->uses, other, use[each].sort)) return false;",
        "",
    ),
    ("linearizable_register", "copy[place - 1].count++;", ""),
    ("linearizable_register", "if (search->now.list[each].value == operation->value) search", "if (true) search"),
    ("linearizable_register", "sort->called++;", ""),
    ("linearizable_register", "sort->value != operation->value ||", ""),
    ("linearizable_register", "sort->from != operation->from)", "false)"),
    ("linearizable_register", "else expand(search, &it, slot);", ""),
]
# ... and what random histories hardly meet, with the history written by hand that finds it.
RARE_MUTANTS: list[tuple[str, str, str, str]] = [
    (
        "linearizable_owner",
        "owner_difference_get(sweep, it, next->process)->releases++;",
        "",
        "fenced-mutex-renewed-hold-behind-a-grant-then-held",
    ),
    (
        "linearizable_owner",
        "take_token(sweep, it, it->since)",
        "take_token(sweep, it, sweep->position)",
        "fenced-mutex-renewed-hold-not-behind-a-later-grant",
    ),
    (
        "linearizable_owner",
        "back_then ? it->since : sweep->position, room",
        "sweep->position, room",
        "fenced-mutex-renewed-hold-and-a-release-after-it",
    ),
]
# ... and what shows only where much is ambiguous and tokens are tight: how far two configurations have come in the
# order of tokens, and whether one has a token left for the hold of the other.
TIGHT_MUTANTS: list[tuple[str, str, str]] = [
    (
        "owner_configurations",
        "if (lacks_token && other->holder != NOBODY && one->holder != other->holder) return false;",
        "",
    ),
    ("owner_configurations", "|| !token_place_is_as_good(&one->tokens, &other->tokens)", ""),
    ("token_order", " || one->newest > other->newest", ""),
]
SHORT = slice(None) if os.environ.get("LOCKSTORM_MUTANTS") == "all" else slice(0, None, 8)
MODELS_OF = {
    "linearizable_count": ("semaphore", "mutex"),
    "linearizable_owner": OWNED,
    "owner_configurations": OWNED,
    "token_order": OWNED,
    "linearizable_register": ("register",),
}


def planted(tmp_path: Path, name: str, old: str, new: str, *sources: str) -> str:
    """The program of these sources and the algorithms, with a mistake in one of them."""
    shutil.copytree(paths.ROOT / "checkers", tmp_path / "checkers")
    source = tmp_path / "checkers" / "linearizability" / f"{name}.c"
    text = source.read_text()
    assert old in text, "the place where the mistake goes has changed"
    source.write_text(text.replace(old, new, 1))
    files = [str(part) for part in sorted(source.parent.glob("*.c"))]
    places = [f"-I{tmp_path}", f"-I{paths.ROOT}"]
    command = ["gcc", "-std=c11", "-D_GNU_SOURCE", "-O0", "-w", *places, "-o", str(tmp_path / "program"), *files]
    command += [str(paths.ROOT / each) for each in sources]
    done = subprocess.run([*command, "-ljansson"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return str(tmp_path / "program")


RARE_IN = ("linearizable_owner", "owner_configurations")
RARE = pytest.mark.slow("the mistake shows in one of many thousand histories", seconds=20)


@pytest.mark.parametrize("mutant", RARE_MUTANTS, ids=lambda mutant: mutant[3])
def test_a_planted_mistake_is_found_by_hand(tmp_path: Path, mutant: tuple[str, str, str, str]) -> None:
    *place, stem = mutant
    room = paths.ROOT / "checkers"
    names = [*room.glob("formats/*.c"), room / "commands/linearize_main.c"]
    names += [paths.ROOT / "harness/history" / each for each in ("history.c", "history_json.c")]
    program = planted(tmp_path, *place, *map(str, names))
    path = next(path for path in HISTORIES if path.stem == stem)
    done = subprocess.run([program, f"--model={about(path)['model']}", str(path)], capture_output=True)
    assert done.returncode not in (EXIT[about(path)["expect"]], 2), done


@pytest.mark.parametrize(
    "mutant",
    [pytest.param(each, marks=RARE if each[0] in RARE_IN else []) for each in MUTANTS[SHORT]],
    ids=lambda mutant: f"{mutant[0]}-{MUTANTS.index(mutant)}",
)
def test_a_planted_mistake_is_found(tmp_path: Path, mutant: tuple[str, str, str]) -> None:
    name = mutant[0]
    program = planted(tmp_path, *mutant, "tests/c/linearizable_oracle.c")
    words = [str(ORACLE_HISTORIES_MUTANTS), str(ORACLE_SEED_MUTANTS)]
    owned = MODELS_OF[name] == OWNED
    rare = [("fenced-mutex", str(3 * ORACLE_HISTORIES_MUTANTS), str(ORACLE_SEED_MUTANTS))] if owned else []
    lengths: list[tuple[str, ...]] = [(), ("long",)] if owned else [()]
    usual = [(model, *words, *length) for length in lengths for model in MODELS_OF[name]]
    assert any(is_found(program, *each) for each in usual + rare), mutant


@pytest.mark.parametrize("mutant", TIGHT_MUTANTS, ids=lambda mutant: f"{mutant[0]}-{TIGHT_MUTANTS.index(mutant)}")
def test_a_planted_mistake_is_found_where_an_order_is_known(tmp_path: Path, mutant: tuple[str, str, str]) -> None:
    program = planted(tmp_path, *mutant, "tests/c/linearizable_simulated.c")
    assert is_found(program, "fenced-mutex", str(ORACLE_HISTORIES_MUTANTS), str(ORACLE_SEED_MUTANTS))


def is_found(program: str, *words: str) -> bool:
    """By a disagreement, a crash, or a search that does not end: the rare ones take a minute of a processor's time."""
    try:
        return subprocess.run([program, *words], capture_output=True, timeout=900).returncode != 0
    except subprocess.TimeoutExpired:
        return True
