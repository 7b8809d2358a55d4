"""A TOML file, read key by key: each message names the line."""

import datetime
import re
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from lockstorm.base.durations import duration_text
from lockstorm.base.errors import UsageError, at_place
from lockstorm.base.option_fields import Option, choose, options_of
from lockstorm.base.read_file import read_text

KeyPath = tuple[str | int, ...]  # keys; in an array of tables also the number of the table, from 0

WORD = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
HEADER = re.compile(rf"^\s*(\[\[?)\s*({WORD}(?:\s*\.\s*{WORD})*)\s*\]\]?")
KEY = re.compile(rf"^\s*({WORD}(?:\s*\.\s*{WORD})*)\s*=")


def find_key_lines(text: str) -> dict[KeyPath, int]:
    """The line, from 1, of every table and of every key at the beginning of a line. `text` must be valid TOML."""
    lines: dict[KeyPath, int] = {(): 1}
    counts: dict[KeyPath, int] = {}
    table: KeyPath = ()
    inside = ""  # the quotes of the multi-line string that this line is in
    for number, line in enumerate(text.splitlines(), 1):
        begun = inside
        for quotes in ('"""', "'''"):
            if line.count(quotes) % 2 and inside in ("", quotes):
                inside = "" if inside else quotes
        if begun:
            continue
        if header := HEADER.match(line):
            table = split_dotted_key(header[2])
            if header[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                lines.setdefault(table, number)
                table = (*table, counts[table])
            lines.setdefault(table, number)
        elif key := KEY.match(line):
            lines.setdefault((*table, *split_dotted_key(key[1])), number)
    return lines


def split_dotted_key(dotted: str) -> KeyPath:
    return tuple(word.strip("\"'") for word in re.findall(WORD, dotted))


class TomlTable:
    """A table of a file. Each method reads one key, and raises UsageError with the line of a wrong value. `keys`: those
    that each table may have, by its first name; "" is the top level. A table that is not there allows any key."""

    def __init__(
        self,
        file: Path,
        keys: Mapping[str, tuple[str, ...]],
        lines: dict[KeyPath, int],
        path: KeyPath,
        values: Any,
    ) -> None:
        self.file, self.keys, self.lines, self.path = file, keys, lines, path
        self.kind = ".".join(str(part) for part in path if isinstance(part, str))
        if not isinstance(values, dict):
            raise self.error(None, f"[{self.kind}] has to be a table")
        self.values: dict[str, Any] = {}  # of a file: each method checks the type of one
        known = self.keys.get(self.kind)
        for key, value in values.items():
            if known is None or key in known:
                self.values[key] = value
            elif (name := key.removesuffix("_ms")) in known and isinstance(value, int):
                self.values[name] = duration_text(value)  # lease_ms = 500: a file of before has lease = "500ms" so
            else:
                near = get_close_matches(key, known, n=1, cutoff=0.5)
                hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}"
                where = f" in [{self.kind}]" if self.kind else ""
                raise self.error(key, f"unknown key {key!r}{where}: {hint}")

    def line(self, key: str | None = None) -> int:
        """Of a key, or of the table; of the nearest enclosing table if it is not in the file."""
        path = self.path if key is None else (*self.path, key)
        while path not in self.lines:
            path = path[:-1]
        return self.lines[path]

    def error(self, key: str | None, what: object) -> UsageError:
        return UsageError(f"{self.file}:{self.line(key)}: {what}")

    def checked(self, key: str | None, check: Callable[[], Any]) -> Any:
        """The result of a check; its UsageError gets the line of this key (None: of the table)."""
        with at_place(f"{self.file}:{self.line(key)}"):
            return check()

    def text(self, key: str, default: str | None = None) -> str | None:
        value = self.values.get(key, default)
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise self.error(key, f"{key} has to be a text")
        if value is not None and "\0" in value:
            raise self.error(key, f"{key} has a character of code 0, which no name and no path has")
        return value

    def required_text(self, key: str) -> str:
        value = self.text(key)
        if value is None:
            raise self.error(None, f"[[{self.kind}]] lacks {key}")
        return value

    def name(self, key: str, kind: str, known: Collection[str], default: str | None = None) -> str:
        value = self.required_text(key) if default is None else self.text(key, default)
        return str(self.checked(key, lambda: choose(kind, str(value), list(known))))

    def names(self, key: str, kind: str, known: Collection[str]) -> tuple[str, ...] | None:
        """A list of names, or a single name; None: the key is missing."""
        value = self.values.get(key)
        if value is None:
            return None
        value = [value] if isinstance(value, str) else value
        if not isinstance(value, list) or not value or not all(isinstance(name, str) for name in value):
            raise self.error(key, f"{key} has to be a list of names")
        names = [name.replace("-", "_") if kind == "property" else name for name in value]
        return tuple(dict.fromkeys(self.checked(key, partial(choose, kind, name, list(known))) for name in names))

    def texts(self, key: str) -> list[str]:
        """A text or a list of them; nothing if the key is missing."""
        value = self.values.get(key, [])
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not all(isinstance(each, str) and each for each in texts):
            raise self.error(key, f"{key} has to be a text or a list of texts")
        if key in self.values and not texts:
            raise self.error(key, f"{key} is empty")
        return list(dict.fromkeys(texts))

    def options(self, owner: type, keys: Collection[str]) -> dict[str, Any]:
        """The fields of a dataclass with options that the table sets. `keys`: of the options that it may set."""
        chosen: dict[str, Any] = {}
        for name, option in options_of(owner).items():
            key = option.key
            if key not in self.values or key not in keys:
                continue
            match option.kind:
                case "number":
                    assert option.within, f"{option.flag} has no range"
                    chosen[name] = self.number(key, *option.within)
                case "duration":
                    chosen[name] = self.duration(key, option)
                case "flag":
                    chosen[name] = self.flag(key, False)
                case _:
                    chosen[name] = ",".join(self.texts(key))
        return chosen

    def number(self, key: str, low: int, high: int, default: int | None = None) -> int | None:
        value = self.values.get(key, default)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.error(key, f"{key} has to be a whole number from {low} to {high}")
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = self.values.get(key, default)
        if not isinstance(value, bool):
            raise self.error(key, f"{key} has to be true or false")
        return value

    def duration_ms(self, key: str, low_ms: int, high_ms: int) -> int | None:
        return self.duration(key, Option(key, "", "duration", within=(low_ms, high_ms)))

    def duration(self, key: str, option: Option) -> int | None:
        """The value of an option that is a duration, in the option's unit."""
        if key not in self.values:
            return None
        option = replace(option, flag=key)
        value = self.checked(key, lambda: option.read_duration(str(self.values[key])))
        self.checked(key, lambda: option.check(value))
        return int(value)

    def date(self, key: str) -> datetime.date:
        value = self.values.get(key)
        if not isinstance(value, datetime.date) or isinstance(value, datetime.datetime):
            raise self.error(key if key in self.values else None, f"{key} has to be a day, such as 2027-03-31")
        return value

    def table(self, key: str) -> "TomlTable":
        return TomlTable(self.file, self.keys, self.lines, (*self.path, key), self.values.get(key, {}))

    def tables(self, key: str) -> list["TomlTable"]:
        value = self.values.get(key, [])
        if not isinstance(value, list):
            raise self.error(key, f"write [[{key}]]: there may be several")
        return [
            TomlTable(self.file, self.keys, self.lines, (*self.path, key, number), each)
            for number, each in enumerate(value)
        ]


def read_toml(file: Path, keys: Mapping[str, tuple[str, ...]], how_to_get_one: str) -> tuple[str, TomlTable]:
    """The text of a file and its top level. Raises UsageError if it cannot be read or is no TOML."""
    text = read_text(file, how_to_get_one)
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file}: {error}") from None
    return text, TomlTable(file, keys, find_key_lines(text), (), values)
