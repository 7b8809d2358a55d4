"""Every fuzzer runs for some seconds, from its seeds. `make fuzz` runs them for longer."""

import subprocess
from pathlib import Path

import pytest

from lockstorm.base import paths
from tests.helpers.building import make, need_clang

SEEDS = paths.ROOT / "tests" / "fuzz" / "corpus"
FUZZERS = {
    "atlas": (f"-dict={SEEDS.parent / 'atlas.dict'}",),
    "check": ("-max_len=4096",),
    "edn": (f"-dict={SEEDS.parent / 'edn.dict'}",),
    "history": ("-max_len=8192",),
    "history_json": (f"-dict={SEEDS.parent / 'history_json.dict'}",),
    "library_schedule": ("-max_len=256",),
    "message_format": ("-max_len=1024",),
    "resp": ("-max_len=4096", f"-dict={SEEDS.parent / 'resp.dict'}"),
    "schedule": ("-max_len=256", f"-dict={SEEDS.parent / 'schedule.dict'}"),
}


@pytest.fixture(scope="session")
def fuzzers() -> Path:
    need_clang()
    return make("fuzzers") / "fuzz"


@pytest.mark.slow("each fuzzer is built, once, and runs for some seconds", seconds=10)
@pytest.mark.parametrize("name", sorted(FUZZERS))
def test_fuzzer_finds_nothing(fuzzers: Path, tmp_path: Path, name: str) -> None:
    seeds = SEEDS / name
    assert list(seeds.iterdir())
    command = [
        str(fuzzers / f"{name}_fuzz"),
        "-max_total_time=5",
        "-timeout=10",
        *FUZZERS[name],
        str(tmp_path),
        str(seeds),
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=600)
    assert done.returncode == 0, done.stderr[-4000:]
