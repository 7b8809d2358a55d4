"""Every fuzzer runs for some seconds, from its seeds. `make fuzz` runs them for longer."""

import subprocess
from pathlib import Path

import pytest

from lockstorm.base import paths
from tests.helpers.building import make, need_clang

SEEDS = paths.ROOT / "tests" / "fuzz" / "corpus"
FUZZERS = sorted(path.stem.removesuffix("_fuzz") for path in SEEDS.parent.glob("*_fuzz.c"))


@pytest.fixture(scope="session")
def fuzzers() -> Path:
    need_clang()
    return make("fuzzers") / "fuzz"


@pytest.mark.slow("each fuzzer is built, once, and runs for some seconds", seconds=10)
@pytest.mark.parametrize("name", FUZZERS)
def test_fuzzer_finds_nothing(fuzzers: Path, tmp_path: Path, name: str) -> None:
    """With the options that `make fuzz` gives it: tests/fuzz/NAME.options and NAME.dict, where they exist."""
    seeds, options, words = (SEEDS / name, *(SEEDS.parent / f"{name}.{kind}" for kind in ("options", "dict")))
    assert list(seeds.iterdir())
    own = options.read_text().split() if options.exists() else []
    own += [f"-dict={words}"] if words.exists() else []
    limits = ("-max_total_time=5", "-timeout=10")
    command = [str(fuzzers / f"{name}_fuzz"), *limits, *own, str(tmp_path), str(seeds)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=600)
    assert done.returncode == 0, done.stderr[-4000:]
