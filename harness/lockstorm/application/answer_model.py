"""Checks of answers, `[[check]] model = "counter"` (docs/applications.md): a number that requests read and change."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lockstorm.base.toml_table import TomlTable

MODEL_KEYS = ("model", "starts", "add", "writes", "reads", "answer")
MODELS: Mapping[str, tuple[str, str, str]] = {  # the key of requests that change it, not that of the other, and which
    "counter": ("add", "writes", "add = { consume = -1 }"),
    "register": ("writes", "add", 'writes = ["put"]'),
}
MODEL_NUMBER_MOST = 1_000_000_000  # application_file.c
ANSWER = re.compile(r"[^.]+(\.[^.]+)*")


@dataclass(frozen=True)
class ModelChoice:
    """A number that requests read and change: their answers are judged (application_model.c)."""

    name: str
    starts: int
    answer: str  # where an answer has the number: a key of its JSON, "a.b", or "" for all of it
    effects: tuple[tuple[str, str, int], ...]  # of requests: reads, adds an amount, writes


def read_model(table: TomlTable, requests: Mapping[str, str | None]) -> ModelChoice:
    """`requests`: what each sends by HTTP; None: it is sent otherwise."""
    name = table.name("model", "model of answers", list(MODELS))
    changes, foreign, example = MODELS[name]
    for key in table.values:
        if key not in MODEL_KEYS or key == foreign:
            raise table.error(key, f"{key} is not a key of a check with model = {name!r}")
    answer = table.text("answer") or ""
    if answer and not ANSWER.fullmatch(answer):
        raise table.error(
            "answer", f"answer {answer!r} has to be a key of the JSON in an answer, or as in data.remaining"
        )
    if len(answer) > 90:
        raise table.error("answer", "answer has more than 90 letters")
    effects = _adds(table) if changes == "add" else [(each, "writes", 0) for each in _names(table, "writes")]
    if not effects:
        raise table.error(None, f"a {name} needs the requests that change it, as in {example}")
    effects += [(each, "reads", 0) for each in _names(table, "reads")]
    _check_effects(table, changes, effects, requests)
    starts = table.values.get("starts", 0)
    return ModelChoice(name, _whole(table, "starts", starts), answer, tuple(effects))


def _names(table: TomlTable, key: str) -> tuple[str, ...]:
    if key not in table.values:
        return ()
    value = table.values[key]
    if not isinstance(value, list) or not value or not all(isinstance(each, str) for each in value):
        raise table.error(key, f'{key} has to be a list of requests, as in {key} = ["consume"]')
    return tuple(value)


def _adds(table: TomlTable) -> list[tuple[str, str, int]]:
    value = table.values.get("add", {})
    if not isinstance(value, dict):
        raise table.error("add", "add has to be a table of requests and numbers, as in add = { consume = -1 }")
    return [(each, "adds", _whole(table, "add", amount)) for each, amount in value.items()]


def _whole(table: TomlTable, key: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > MODEL_NUMBER_MOST:
        raise table.error(key, f"{key}: {value!r} has to be a whole number of at most 10^9")
    return value


def _check_effects(
    table: TomlTable, changes: str, effects: Sequence[tuple[str, str, int]], requests: Mapping[str, str | None]
) -> None:
    seen: set[str] = set()
    for name, effect, _ in effects:
        key = "reads" if effect == "reads" else changes
        if name not in requests:
            raise table.error(key, f"{name}: there is no such request; there are {', '.join(requests)}")
        if name in seen:
            raise table.error(key, f"{name} is named twice")
        sent = requests[name]
        if sent is None:
            raise table.error(key, f"{name} has no answer: a model judges requests with http")
        if effect == "writes" and "{number}" not in sent:
            raise table.error(key, f"{name} has to write {{number}}: its path or body lacks it")
        seen.add(name)
