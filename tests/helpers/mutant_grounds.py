"""Where `make mutants` plants mistakes, and what has to find them."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.helpers.mutation import name_of

ROOT = Path(__file__).resolve().parents[2]
CHECKERS = "checkers"
HEADERS = tuple(f"checkers/engine/{name}.h" for name in ("participants", "assumptions", "checker", "hash"))  # with code
LEAVE_OUT = {"explore_main", "explore_options", "proxy_main", "linearize_main", "check_main"}  # command lines


@dataclass(frozen=True)
class Ground:
    """Folders and single files, the targets of the Makefile that are built of them, and what has to find a mutant: the
    programs and the quick tests are asked first, since they cost a second and find most; the others only meet what
    these leave. Where there are neither, the verdicts are compared with the definitions."""

    places: tuple[str, ...]
    targets: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()  # words for pytest, which runs in namespaces of its own
    programs: tuple[tuple[str, ...], ...] = ()  # programs of the tree and their arguments; failing is finding
    quick_tests: tuple[str, ...] = ()  # words for pytest; tests of programs that start no others and use no network

    @property
    def paths(self) -> list[Path]:
        """The source files, from the root of the tree."""
        found: set[Path] = set()
        for place in self.places:
            here = ROOT / place
            found |= {*here.glob("*.c"), *here.glob("*.py")} if here.is_dir() else {here}
        kept = (path for path in found if path.stem not in LEAVE_OUT and path.name != "__init__.py")
        return sorted(path.relative_to(ROOT) for path in kept)


BUILT = ("build", "test-programs")
ORACLE, SIMULATED = (f"build/tests/linearizable_{name}" for name in ("oracle", "simulated"))
FEW_HISTORIES, MORE_HISTORIES = "3000", "20000"  # per model; the tests take 200,000
OWNED = ("owner-mutex", "reentrant-mutex", "fenced-mutex")
LONG = "all_orders or nothing_is_lost or simulated or never_crashes or read_again"  # tests that take seconds
OF_HISTORIES = (*(f"tests/checkers/test_{name}.py" for name in ("outside", "linearizable", "forms")), "-k")
GROUNDS = {
    CHECKERS: Ground(("checkers/engine", "checkers/properties", "checkers/commands/render.c", *HEADERS), ("judge",)),
    "linearizability": Ground(
        ("checkers/linearizability",),
        ("build/bin/linearize", "build/tests/linearizable_each", "build/tests/search_limits", ORACLE, SIMULATED),
        (*OF_HISTORIES, f"{LONG} or command"),
        (
            *((ORACLE, model, FEW_HISTORIES, "1") for model in ("mutex", "semaphore", "register", *OWNED)),
            *((ORACLE, model, FEW_HISTORIES, "1", "long") for model in OWNED),
            *((SIMULATED, model, MORE_HISTORIES, "1") for model in OWNED),
        ),
        ("tests/checkers/test_porcupine.py", *OF_HISTORIES, f"not ({LONG} or command or planted)"),
    ),
    "formats": Ground(
        ("checkers/formats",),
        ("build/bin/linearize", "build/tests/linearizable_each", "build/tests/search_limits"),
        (*OF_HISTORIES, "never_crashes or read_again or command"),
        (),
        (*OF_HISTORIES, f"not ({LONG} or command or planted)"),
    ),
    "scheduler": Ground(
        ("harness/scheduler",),
        BUILT,
        (
            *("tests/trial/test_scheduler.py", "tests/project/test_c_programs.py", "tests/trial/test_quiet.py"),
            "tests/trial/test_trial.py",
            "tests/faults/test_faults_clients.py::test_what_a_stalled_worker_had_begun_goes_on_when_it_is_healed",
            *("tests/faults/test_faults_clocks.py", "tests/trial/test_determinism.py", "-k"),
            "not threads and not messages and not never_comes and not beside_a_cpu",
        ),
    ),
    "proxy": Ground(
        ("faults/proxy", "harness/resp_service"),
        BUILT,
        ("tests/proxy", "tests/project/test_c_programs.py", "-k", "not threads"),
    ),
    "explorer": Ground(
        ("harness/search", "harness/simulation/simulated_search.c", "harness/simulation/world_choices.c"),
        BUILT,
        (
            "tests/project/test_c_programs.py::test_the_quiet_phase_begins_when_no_fault_lasts",
            "tests/project/test_c_programs.py::test_an_exhaustive_search_has_an_option_for_everything_that_can_happen",
            *("tests/explore/test_strategies.py", "tests/explore/test_shrinking.py", "tests/explore/test_found.py"),
            *("tests/explore/test_explore.py", "-k"),
            "not command and not bad_usage and not real and not busy_processor and not page and not every_lock"
            " and not acknowledgement and not other_servers and not failover and not wrong",
        ),
    ),
    "gate": Ground(
        tuple(f"harness/lockstorm/gate/gate_{part}.py" for part in ("policy", "plan", "judge", "advice")),
        ("build",),
        ("tests/gate/test_gate_policy.py", "tests/gate/test_gate_verdict.py"),
    ),
}


@cache
def file_paths() -> dict[str, Path]:
    """Every file in which mistakes are planted, by its name."""
    found = [path for ground in GROUNDS.values() for path in ground.paths]
    named = {name_of(path): path for path in found}
    assert len(named) == len(found), "two files have the same name"
    return named
