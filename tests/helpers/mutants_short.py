"""`make mutants-short`: plants each mistake of tests/planted_mistakes.txt, and the test beside it must find it."""

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.helpers.mutant_grounds import BUILT, GROUNDS, ROOT, Ground, file_paths
from tests.helpers.mutant_yard import Yard
from tests.helpers.mutation import Mutant

PLANTED = ROOT / "tests" / "planted_mistakes.txt"
ALL = Ground(tuple(place for ground in GROUNDS.values() for place in ground.places), BUILT)


def planted_mistakes() -> Iterator[tuple[Mutant, str]]:
    """With the test that must find each."""
    for line in PLANTED.read_text().splitlines():
        if line.startswith("#"):
            continue
        file, before, after, test = line.split(" | ")
        lines = (ROOT / file_paths()[file]).read_text().splitlines()
        places = [number for number, each in enumerate(lines, 1) if each.strip() == before]
        assert places, f"{file} has no such line any more, choose another mistake: {before}"
        whole = lines[places[0] - 1]
        yield Mutant(file, places[0], whole, whole.replace(before, after)), test


def main() -> None:
    began, mistakes = time.monotonic(), list(planted_mistakes())
    with tempfile.TemporaryDirectory(prefix="mutants-", dir=ROOT / "build") as directory:
        yard = Yard(Path(directory), ALL, flags="")
        failure = yard.failure(sorted({test for _, test in mistakes}))
        assert not failure, f"the original itself does not pass: {failure}"
        missed = 0
        for mutant, test in mistakes:
            why_not = yard.plant(mutant)
            found = not why_not and yard.failure([test])
            yard.restore(mutant)
            if not found:
                print(f"not found: {mutant}  {why_not or test}", flush=True)
                missed += 1
    print(f"{len(mistakes) - missed} of {len(mistakes)} planted mistakes found; {time.monotonic() - began:.0f} s")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
