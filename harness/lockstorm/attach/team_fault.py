"""Faults of the team: commands in attach.toml that break a server, prove it, and heal it."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lockstorm.base.errors import UsageError
from lockstorm.base.option_fields import Option, choose

USUAL_FILE = Path("attach.toml")
COMMANDS = ("inject", "prove", "heal")
DURATIONS = {"limit": "30s", "lasts": "2s"}  # key -> its default
DURATION_MOST_MS = 600_000


@dataclass(frozen=True)
class TeamFault:
    """`heal` is empty where nothing has to be healed. `limit_ms`: of each command, and until `prove` succeeds.
    `lasts_ms`: between proof and heal."""

    name: str
    inject: str
    prove: str
    heal: str
    limit_ms: int
    lasts_ms: int


def read_team_faults(file: Path) -> dict[str, TeamFault]:
    """Raises UsageError for the first mistake."""
    try:
        values = tomllib.loads(file.read_text())
    except OSError as error:
        reason = (error.strerror or "it cannot be read").lower()
        raise UsageError(f"{file}: {reason}: --faults names the file with the tables [fault.NAME]") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{file}: {error}") from None
    unknown = [key for key in values if key != "fault"]
    tables = values.get("fault", {})
    if unknown or not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        what = f"{unknown[0]} is not known" if unknown else "fault is no table"
        raise UsageError(f"{file}: {what}: write tables such as [fault.failover] with inject, prove and heal")
    return {name: _read_fault(file, name, table) for name, table in tables.items()}


def _read_fault(file: Path, name: str, table: Mapping[str, object]) -> TeamFault:
    where = f"{file}: [fault.{name}]"
    for key, value in table.items():
        if key not in (*COMMANDS, *DURATIONS):
            raise UsageError(f"{where}: {key} is not known: there are {', '.join((*COMMANDS, *DURATIONS))}")
        if not isinstance(value, str) or not value.strip():
            raise UsageError(f"{where}: {key} has to be a text in quotes that is not empty")
    for key in ("inject", "prove"):
        if key not in table:
            raise UsageError(f"{where} has no {key}: a command whose exit status is 0 when it has done its work")
    texts = {key: str(value) for key, value in table.items()}
    times = {key: _read_duration(where, key, texts.get(key, usual)) for key, usual in DURATIONS.items()}
    commands = {key: texts.get(key, "") for key in COMMANDS}
    return TeamFault(name, **commands, limit_ms=times["limit"], lasts_ms=times["lasts"])


def _read_duration(where: str, key: str, text: str) -> int:
    option = Option(f"{where}: {key}", "", "duration", within=(1, DURATION_MOST_MS))
    value_ms = option.read_duration(text)
    option.check(value_ms)
    return value_ms


def chosen_faults(file: Path | None, names: tuple[str, ...]) -> list[TeamFault]:
    """Those that the user named. Raises UsageError for a name that the file does not have."""
    if not names:
        return []
    known = read_team_faults(file or USUAL_FILE)
    return [known[choose("fault", name, list(known))] for name in dict.fromkeys(names)]
