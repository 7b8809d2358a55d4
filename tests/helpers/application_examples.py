"""The examples of applications (docs/examples/applications): each mistake must be found, and its right twin must meet
every check. `python -m tests.helpers.application_examples python other-key ...` measures these mistakes in this
framework, all of them without names, and keeps the figures in scenarios/applications.json. --twins N: schedules of each
twin."""

import argparse
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from lockstorm.base import paths
from lockstorm.base.atomic_file import write_json
from lockstorm.locks.lock_names import APP_PREFIX
from lockstorm.search.application_plan import REQUIRED, RULES
from lockstorm.search.explore import search_schedules
from lockstorm.search.search_plan import SearchRequest, plan_search
from lockstorm.search.search_result import SearchResult

EXAMPLES = paths.ROOT / "docs" / "examples" / "applications"
RECORD = paths.ROOT / "scenarios" / "applications.json"
FRAMEWORKS = ("python", "node", "go", "spring")
SEEDS = (1, 2, 3)  # of the published figures
WRONG_MOST = 500  # schedules
FAULTS = {"lock-lost-by-failover": "crash-server-empty"}  # of mistakes that the usual faults do not show


# The rule that says why; without one: no rule is about it.
RULE_OF = {
    "lock-lost-by-failover": "",
    "lock-of-one-process": "unprotected-write",
    "other-key": "unprotected-write",
    "two-orders": "lock-order",
}


class ExampleFigures(msgspec.Struct, frozen=True):
    """`found`: for each of SEEDS the number of the first schedule that shows the mistake; None: not found. `named`: how
    many of these say the right rule, as a warning or as the cause. `twin_warned`: schedules of the twin that break a
    rule, and warnings."""

    found: list[int | None]
    named: int = 0
    twin_warned: int = 0
    twin_schedules: int = 0
    twin_violations: int = 0
    twin_schedules_per_s: int = 0


def mistakes() -> list[str]:
    return sorted(file.stem for file in EXAMPLES.glob("*.toml"))


def write_twin(mistake: str, directory: Path) -> Path:
    """The file of the right twin: that of the mistake with other paths."""
    for name in ("start", "schema.sql"):
        (directory / name).symlink_to(EXAMPLES / name)
    file = directory / f"{mistake}-right.toml"
    file.write_text((EXAMPLES / f"{mistake}.toml").read_text().replace("/wrong", "/right"))
    return file


def search_example(file: Path, mistake: str, framework: str, schedules: int, seed: int, twin: bool) -> SearchResult:
    os.environ["FRAMEWORK"] = framework
    request = SearchRequest(
        f"{APP_PREFIX}{file}",
        seed=seed,
        faults=FAULTS.get(mistake),
        schedules=schedules,
        workers=1,
        keep_going=twin,
    )
    return search_schedules(plan_search(request), lambda _: None)


def says_rule(result: SearchResult, mistake: str) -> bool:
    rules = {each.rule for each in result.warnings}
    rules |= {each.promise for each in result.found.evidence} if result.found else set()
    return RULE_OF.get(mistake, mistake) in rules


def measured(framework: str, mistake: str, twin_schedules: int, seeds: Sequence[int]) -> ExampleFigures:
    wrong = EXAMPLES / f"{mistake}.toml"
    results = [search_example(wrong, mistake, framework, WRONG_MOST, seed, twin=False) for seed in seeds]
    found = [result.found.number if result.found and result.exit == 1 else None for result in results]
    named = sum(says_rule(result, mistake) for result in results)
    if twin_schedules == 0:
        return ExampleFigures(found, named)
    with tempfile.TemporaryDirectory() as directory:
        twin = search_example(write_twin(mistake, Path(directory)), mistake, framework, twin_schedules, 1, twin=True)
    violations = sum(twin.properties[name].count for name in REQUIRED)
    warned = len(twin.warnings) + sum(twin.properties[name].schedules.violated for name in RULES)
    return ExampleFigures(found, named, warned, twin.tried, violations, twin.schedules_per_s)


def example_figures() -> dict[str, dict[str, ExampleFigures]]:
    """The kept figures, by framework and mistake."""
    kept = dict[str, dict[str, ExampleFigures]]
    return msgspec.json.decode(RECORD.read_bytes(), type=kept) if RECORD.exists() else {}


def measure_examples(framework: str, names: Sequence[str], twin_schedules: int, seeds: Sequence[int]) -> None:
    for name in names:
        figures = measured(framework, name, twin_schedules, seeds)
        print(framework, name, msgspec.json.encode(figures).decode(), flush=True)
        record = example_figures()
        before = record.get(framework, {})
        if twin_schedules == 0 and name in before:
            figures = msgspec.structs.replace(before[name], found=figures.found, named=figures.named)
        record[framework] = dict(sorted({**before, name: figures}.items()))
        kept = {each: msgspec.to_builtins(record[each]) for each in FRAMEWORKS if each in record}
        write_json(RECORD, kept, indent=1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("framework", choices=FRAMEWORKS)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--twins", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="the first so many seeds")
    words = parser.parse_args()
    measure_examples(words.framework, words.names or mistakes(), words.twins, SEEDS[: words.seeds])
