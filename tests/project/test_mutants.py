"""What `make mutants` plants, and the lists that it goes by."""

import subprocess
from pathlib import Path

import pytest

from lockstorm.base import paths
from tests.helpers.mutant_grounds import GROUNDS, Ground, file_paths
from tests.helpers.mutant_yard import Yard, limited
from tests.helpers.mutants import chosen_mutants, equivalent_mutants, survivors
from tests.helpers.mutants_short import planted_mistakes
from tests.helpers.mutation import Mutant, mutants_of

C_CODE = """/* if (a < b) is a comment. */
static const int LIMITS[] = {0, 1};

static bool is_late(int64_t now_ns, int64_t until_ns) {
    if (now_ns >= until_ns && until_ns) return true; /* a == b */
    note(now_ns, "a < b");
    count++;
    return false;
}

static void look_for(struct place *place,
                     bool first) {
    place->seen |= first;
}

struct place {
    int seen;
};
"""
C_MISTAKES = {
    "if (now_ns > until_ns && until_ns) return true;",
    "if (now_ns >= until_ns || until_ns) return true;",
    "if (now_ns >= until_ns && until_ns) return false;",
    "if (!(now_ns >= until_ns && until_ns)) return true;",
    "(nothing): if (now_ns >= until_ns && until_ns) return true;",
    "count--;",
    "(nothing): count++;",
    "return true;",
    "place->seen = first;",
    "(nothing): place->seen |= first;",
}
PYTHON_CODE = '''LIMIT = 0


@cache(1)
def is_late(now, until):
    """now == until"""
    if until and now >= until:
        record("a == b")
    return [each for each in now if not each], 1 if now in until else 2
'''
PYTHON_MISTAKES = {
    "if not (until and now >= until):",
    "if until or now >= until:",
    "if until and now > until:",
    '(nothing): record("a == b")',
    "return [each for each in now if each], 1 if now in until else 2",
    "return [each for each in now if not each], 0 if now in until else 2",
    "return [each for each in now if not each], 1 if now not in until else 2",
}


@pytest.mark.parametrize("name,code,mistakes", [("x.c", C_CODE, C_MISTAKES), ("x.py", PYTHON_CODE, PYTHON_MISTAKES)])
def test_mistakes_are_planted_in_code_and_nowhere_else(
    tmp_path: Path, name: str, code: str, mistakes: set[str]
) -> None:
    path = tmp_path / name
    path.write_text(code)
    assert {mutant.mutated for mutant in mutants_of(path)} == mistakes


def test_every_ground_has_code_and_tests_that_exist() -> None:
    for ground in GROUNDS.values():
        assert ground.paths
        for word in (*ground.tests, *ground.quick_tests):
            assert not word.startswith("tests/") or (paths.ROOT / word.partition("::")[0]).exists(), word


def test_a_seed_names_its_sample() -> None:
    ground = GROUNDS["proxy"]
    one, again, other = (chosen_mutants(ground, (), 20, seed, None) for seed in (1, 1, 2))
    assert one == again != other
    assert len(one) == 20


def test_a_yard_is_as_it_was_after_each_mutant(tmp_path: Path) -> None:
    yard = Yard.__new__(Yard)  # without building it
    fence = tmp_path / file_paths()["fence"]
    (tmp_path / "scenarios").mkdir()
    fence.parent.mkdir(parents=True)
    fence.write_text("as it was\n")
    yard.root, yard.text = tmp_path, {"fence": "as it was\n"}
    yard.files = yard.found_files()
    fence.write_text("mutated\n")
    left = tmp_path / "scenarios" / "left.schedule"
    left.write_text("by a test that failed")
    yard.restore(Mutant("fence", 1, "as it was", "mutated"))
    assert fence.read_text() == "as it was\n"
    assert not left.exists()


def test_of_a_grounds_programs_the_first_that_fails_is_named(tmp_path: Path) -> None:
    """A mutant that computes for ever fails by its CPU time, however busy the machine is."""
    yard = Yard.__new__(Yard)  # without building it
    yard.root, yard.flags = tmp_path, ""
    yard.ground = Ground((), programs=(("true",), ("sh", "-c", "exit 3", "x"), ("false",)))
    assert yard.failed_program() == "sh -c exit 3 x"
    yard.ground = Ground((), programs=(("true",),))
    assert yard.failed_program() == ""
    endless = ("sh", "-c", "while :; do :; done")
    assert subprocess.run(limited(endless, cpu_s=1), timeout=300).returncode != 0


def test_what_survived_or_was_not_decided_can_be_tried_again(tmp_path: Path) -> None:
    log = tmp_path / "mutants.log"
    log.write_text(
        "2 of 2, seed 1\nsurvived: fence:12: a: b;  ->  c;\nkilled: fence:13: d;\nout of time: rule:4: e  ->  f\n"
    )
    assert survivors(log) == {"fence: a: b;  ->  c;", "rule: e  ->  f"}


def test_equivalent_mutants_are_mutants() -> None:
    """A line of the list that the code no longer has is to be removed from it."""
    planted = {(file, each.mutated) for file in file_paths() for each in mutants_of(paths.ROOT / file_paths()[file])}
    assert equivalent_mutants() - planted == set()


def test_mistakes_of_the_short_form_can_be_planted() -> None:
    for mutant, test in planted_mistakes():
        assert mutant.before != mutant.after
        assert (paths.ROOT / test.partition("::")[0]).exists(), test
