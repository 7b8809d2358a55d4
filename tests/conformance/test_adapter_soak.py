"""What a soak of adapters plays, what it keeps, and that two histories of one seed would be noticed."""

import json
from pathlib import Path

import pytest

from lockstorm.locks.adapter import shipped_adapters
from tests.soak import adapter_soak
from tests.soak.adapter_soak import Repeats, complaints, left_to_play, soak

KEPT = Path(__file__).parents[2] / "scenarios" / "repeats.json"


def test_each_pair_is_played_until_it_has_its_histories() -> None:
    rows = {"one": {"contention": Repeats({"a": 2})}, "two": {"contention": Repeats({}, unplayed=3)}}
    left = left_to_play(rows, ["one", "two"], ["contention"], 3)
    assert left == [("two", "contention"), ("two", "contention"), ("one", "contention"), ("two", "contention")]


def test_two_histories_and_too_few_are_said() -> None:
    rows = {"right": {"contention": Repeats({"a": 2})}, "wrong": {"contention": Repeats({"a": 1, "b": 1})}}
    rows["few"] = {"contention": Repeats({"a": 1}, unplayed=1, last_reason="no end in 900 s")}
    assert [line.split(":")[0] for line in complaints(rows, 2)] == ["few", "wrong"]


def test_a_run_without_a_history_is_counted_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = iter([("0123", ""), ("", "the machine stood still"), ("0123", "")])
    monkeypatch.setattr(adapter_soak, "play", lambda *_: next(said))
    rows = {"one": {"contention": Repeats()}}
    soak(rows, [("one", "contention")] * 3, 0, tmp_path / "rows.json")
    kept = json.loads((tmp_path / "rows.json").read_text())["one"]["contention"]
    assert kept == {"histories": {"0123": 2}, "unplayed": 1, "last_reason": "the machine stood still"}


def test_every_shipped_adapter_was_played_or_cannot_be() -> None:
    """And each that was had one history, ten times, in each of three scenarios."""
    rows = json.loads(KEPT.read_text())
    assert all(len(by_scenario) == len(adapter_soak.SCENARIOS) for by_scenario in rows.values())
    assert all(
        [*row["histories"].values()] >= [10] and len(row["histories"]) == 1
        for of in rows.values()
        for row in of.values()
    )
    left_out = {*shipped_adapters()} - {*rows}
    assert left_out == {
        *("etcd-election", "etcd-mutex", "etcd3", "etcd3gw", "jetcd", "tooz-etcd"),
        *("redis-py-cluster", "redis-py-sentinel", "redisson-cluster", "redisson-sentinel"),
    }
