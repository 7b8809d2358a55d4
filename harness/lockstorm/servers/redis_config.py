"""A team's redis.conf: which of its settings the servers of a trial take, and which the trial has to choose itself.

Decision 0101.
"""

import glob
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import msgspec

from lockstorm.base.errors import Inconclusive, UsageError
from lockstorm.base.read_file import read_text
from lockstorm.base.toml_table import TomlTable

LAG = "in virtual time a replica counts as long as it is connected"
LAG_SETTINGS = ("min-replicas-max-lag", "min-slaves-max-lag")
LAG_OF_TRIAL_S = "1000000000"
LEAST_REPLICAS = ("min-replicas-to-write", "min-slaves-to-write")
REPEATED = ("client-output-buffer-limit",)  # a line for each kind of client
INCLUDE_DEPTH = 8
END = "lockstorm-end-of-settings"  # no directive: with it at their end the server reads all settings, and then ends
ASK_LIMIT_S = 30.0
REFUSED = re.compile(r">>> '(.*)'\n?(.*)")
FOR_MODULES = "Module Configuration detected without loadmodule directive"
LISTED = re.compile(r">>> '(.*)'")
NO_DIRECTIVE = "there is no such directive"
WORD = re.compile(r'"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\]|\\\')*)\'|(\S+)')


@dataclass(frozen=True)
class RedisSetting:
    """A line of the file: a directive in small letters, and the rest of it as it stands. Or a setting of another
    service's servers."""

    name: str
    value: str
    place: str  # FILE:LINE, or the key of a policy

    @property
    def line(self) -> str:
        return f"{self.name} {self.value}"


@dataclass(frozen=True)
class ChangedSetting:
    """A setting that the trial chooses itself, and why."""

    setting: RedisSetting
    why: str
    service: str = "redis"


def settings_in(table: TomlTable, *, dotted: bool = False) -> Iterator[tuple[str, RedisSetting]]:
    """The settings of a table of a policy, each with its key. `dotted`: TOML makes tables of names with dots in them,
    and a flag is true or false instead of yes or no."""
    yes, no = ("true", "false") if dotted else ("yes", "no")
    for key, value in table.values.items():
        for rest, each in value.items() if dotted and isinstance(value, dict) else [("", value)]:
            if isinstance(each, bool):
                text = yes if each else no
            elif isinstance(each, int) or (isinstance(each, str) and each.strip() and "\n" not in each):
                text = str(each).strip()
            else:
                raise table.error(key, f"{key} has to be a text, a number, or true or false")
            name = f"{key}.{rest}" if rest else key
            yield key, RedisSetting(name if dotted else name.lower(), text, f"{table.file}:{table.line(key)}")


def read_redis_config(file: Path, depth: int = 0) -> tuple[RedisSetting, ...]:
    """The settings in their order, with those of files that it includes. Raises UsageError with file and line."""
    text = read_text(file)
    if "\0" in text:
        raise UsageError(f"{file} is not text")
    return tuple(_settings_of(file, text, depth))


def _settings_of(file: Path, text: str, depth: int) -> Iterator[RedisSetting]:
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        name, _, value = line.partition(" ") if " " in line else line.partition("\t")
        place = f"{file}:{number}"
        if not value.strip():
            raise UsageError(f"{place}: {name!r} has no value")
        if name.lower() != "include":
            yield RedisSetting(name.lower(), value.strip(), place)
            continue
        if depth >= INCLUDE_DEPTH:
            raise UsageError(f"{place}: files include each other more than {INCLUDE_DEPTH} deep")
        pattern = words_of(value)[0]
        found = sorted(glob.glob(str(file.parent / pattern)))
        if not found and not glob.has_magic(pattern):
            raise UsageError(f"{place}: there is no {pattern}")
        for path in found:
            yield from read_redis_config(Path(path), depth + 1)


def words_of(value: str) -> list[str]:
    return ["".join(parts) for parts in WORD.findall(value)]


class ChosenSettings(msgspec.Struct, frozen=True):
    """Settings that a trial chooses itself, by service; and why."""

    why: str
    redis: tuple[str, ...] = ()
    etcd: tuple[str, ...] = ()
    zookeeper: tuple[str, ...] = ()


CHOSEN_FILE = Path(__file__).with_name("chosen_settings.toml")
CHOSEN = msgspec.toml.decode(CHOSEN_FILE.read_bytes(), type=dict[str, tuple[ChosenSettings, ...]])["chosen"]


def chosen_by_trial(name: str, service: str = "redis") -> str | None:
    """Why a trial chooses this setting itself; None: it takes the team's."""
    return next((row.why for row in CHOSEN if any(fnmatchcase(name, each) for each in getattr(row, service))), None)


def divide(settings: Iterable[RedisSetting]) -> tuple[tuple[RedisSetting, ...], tuple[ChangedSetting, ...]]:
    """The settings that a trial's servers take, the last of several with one name; and those that it changes."""
    kept: dict[str, RedisSetting] = {}
    changed: list[ChangedSetting] = []
    for each in settings:
        why = chosen_by_trial(each.name)
        if why:
            changed.append(ChangedSetting(each, why))
            continue
        key = f"{each.name} {words_of(each.value)[0]}" if each.name in REPEATED else each.name
        kept[key] = each
    return tuple(kept.values()), tuple(changed)


def replicas_needed(settings: Iterable[RedisSetting]) -> int:
    """How many replicas a master must have before it takes writes."""
    counts = [each.value for each in settings if each.name in LEAST_REPLICAS]
    return int(counts[-1]) if counts and counts[-1].isdigit() else 0


@cache
def check_redis_settings(program: str, settings: tuple[RedisSetting, ...]) -> None:
    """Raises UsageError, with its place, for the first setting that this server refuses."""
    text = "".join(f"{each.line}\n" for each in settings)
    try:
        with tempfile.TemporaryDirectory(prefix="lockstorm-config-") as place:
            command = [program, "-", "--port", "0", "--dir", place, f"--{END}", "yes"]
            done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=ASK_LIMIT_S)
    except (OSError, subprocess.SubprocessError) as error:
        raise Inconclusive(f"{program} does not say whether it takes these settings: {error}") from None
    said = done.stdout + done.stderr
    if FOR_MODULES in said:
        _check_unknown(settings, {line.split()[0].lower() for line in LISTED.findall(said)})
        return
    found = REFUSED.search(said)
    if not found or found[1].startswith(END):
        return
    refused = next((each for each in settings if each.line == found[1]), None)
    place = refused.place if refused else "a setting"
    raise UsageError(f"{place}: the server refuses {found[1]!r}: {found[2].strip() or NO_DIRECTIVE}")


def _check_unknown(settings: Iterable[RedisSetting], listed: set[str]) -> None:
    """redis-server 8 keeps a directive that it does not know for its modules, and lists what these have not taken;
    redis-server 7 does so only with a dot in the name, and lists nothing."""
    for each in settings:
        if each.name in listed or (END not in listed and "." in each.name):
            raise UsageError(f"{each.place}: the server refuses {each.line!r}: {NO_DIRECTIVE}")
