"""The JSON schemas are generated from the types. Recorded lines match that of a history, lines that `check` refuses do
not; what commands print matches that of results."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest
from msgspec import structs

from lockstorm.base import paths
from lockstorm.cli import schemas
from lockstorm.results.event import Event
from tests.helpers.support import lockstorm

SCHEMA = json.loads((paths.ROOT / "docs" / "history.schema.json").read_text())
HISTORIES = sorted((paths.ROOT / "tests" / "histories").glob("*.jsonl"))


@pytest.fixture(scope="module")
def validate() -> Callable[[Any], Any]:
    check: Callable[[Any], Any] = fastjsonschema.compile(SCHEMA)
    return check


def test_histories_written_by_hand(validate: Callable[[Any], Any]) -> None:
    assert HISTORIES
    for path in HISTORIES:
        for line in path.read_text().splitlines()[1:]:
            validate(json.loads(line))


def test_a_recorded_history(validate: Callable[[Any], Any], tmp_path: Path) -> None:
    recorded = tmp_path / "gc.history"
    lockstorm("run", "gc-pause", "--lock", "set-nx-px-fenced", "-o", str(recorded), "-q")
    done = subprocess.run(
        [paths.program("history"), "to-json", str(recorded)], capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert len(lines) > 50
    for line in lines:
        validate(json.loads(line))


@pytest.mark.parametrize(
    "line",
    [
        {"history": "lockstorm", "version": 2},
        {"history": "another", "version": 1},
        {"history": "lockstorm", "version": 1, "colour": "red"},
        {"kind": "acquire-invoke", "colour": "red"},
        {"kind": "steal"},
        {"actor": "A"},
        {"kind": "note", "index": -1},
        {"kind": "note", "op": 1 << 32},
        {"kind": "note", "value": "5"},
        {"kind": "note", "outcome": "perhaps"},
        {"kind": "text-more", "hex": "0g"},
        [],
    ],
)
def test_what_is_no_line(validate: Callable[[Any], Any], line: Any, tmp_path: Path) -> None:
    with pytest.raises(fastjsonschema.JsonSchemaException):
        validate(line)
    history = tmp_path / "history.jsonl"
    lines = [line] if "history" in line else [{"history": "lockstorm", "version": 1}, line]
    history.write_text("".join(json.dumps(each) + "\n" for each in lines))
    assert subprocess.run([paths.program("check"), str(history)], capture_output=True).returncode == 2


def test_every_kind_of_record_is_known() -> None:
    source = (paths.ROOT / "harness" / "history" / "history.c").read_text()
    kinds = re.findall(
        r'\[HISTORY_\w+\] = "([a-z-]+)"', source.split("KIND_NAMES[HISTORY_KIND_COUNT]")[1].split("};")[0]
    )
    known = SCHEMA["definitions"]["HistoryRecord"]["properties"]["kind"]["anyOf"][0]["enum"]
    assert sorted(known) == sorted([*kinds, "torn"])


def test_a_record_has_the_fields_of_an_event() -> None:
    """`value_name`, `extra_name` and `struck` are for a reader only."""
    fields = {field.name for field in structs.fields(Event)} - {"value_name", "extra_name", "struck"}
    assert set(SCHEMA["definitions"]["HistoryRecord"]["properties"]) == fields


@pytest.mark.parametrize("name", schemas.SCHEMAS)
def test_a_schema_is_what_is_generated(name: str) -> None:
    assert schemas.schema_file(name).read_text() == schemas.schema_text(name), "make schemas"


def test_every_schema_is_generated() -> None:
    assert {path.name for path in (paths.ROOT / "docs").glob("*.schema.json")} == {
        f"{name}.schema.json" for name in schemas.SCHEMAS
    }


@pytest.mark.parametrize(
    ("words", "kind", "name"),
    [
        (("locks",), "locks", "LockEntry"),
        (("faults",), "faults", "FaultEntry"),
        (("matrix", "--scenario", "gc-pause", "--lock", "set-nx-px"), None, "MatrixResult"),
        (("advise", "--for", "correctness"), None, "Advice"),
        (("run", "gc-pause", "--lock", "set-nx-px-fenced"), None, "TrialResult"),
        (("storm", "--lock", "set-nx-px", "--duration", "1s", "--trials", "2"), None, "TrialResult"),
    ],
)
def test_what_commands_print_keeps_to_that_schema(words: tuple[str, ...], kind: str | None, name: str) -> None:
    said = json.loads(lockstorm(*words, "--json").stdout)
    schema = {**schemas.results_schema(), "$ref": f"#/definitions/{name}"}
    for each in said[kind] if kind else [said]:
        fastjsonschema.validate(schema, each)
        with pytest.raises(fastjsonschema.JsonSchemaException):
            fastjsonschema.validate(schema, {**each, "colour": "red"})
