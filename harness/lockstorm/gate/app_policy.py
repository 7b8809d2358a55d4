"""[[app]] in a policy: an application whose schedules are searched, and what has to hold in them."""

import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lockstorm.base.errors import UsageError
from lockstorm.base.toml_table import TomlTable
from lockstorm.gate.policy_file import KEYS
from lockstorm.locks.lock_names import APP_PREFIX
from lockstorm.results.kept_run import PlannedSearch
from lockstorm.search.search_plan import SearchPlan, SearchRequest, plan_search
from lockstorm.search.search_result import search_command

OF_LOCKS = ("require", "deployment", "attach", "scenarios", "storm", "accept")  # tables that need a [[lock]]


@dataclass(frozen=True)
class AppChoice:
    """An application, and how it is searched."""

    title: str
    file: str  # as the policy names it
    line: int
    plan: SearchPlan

    @property
    def name(self) -> str:
        """Of its files in a kept run, without their extensions."""
        return re.sub(r"[^a-zA-Z0-9]+", "-", self.title).strip("-")

    def kept(self) -> PlannedSearch:
        """Its entry in run.json."""
        schedules = self.plan.request.schedules
        return PlannedSearch(
            name=self.name,
            title=self.title,
            file=self.file,
            line=self.line,
            required=list(self.plan.required),
            schedules=schedules,
            replay=search_command(self.plan, schedules),
        )


def read_apps(top: TomlTable, home: Path) -> tuple[AppChoice, ...]:
    """Raises UsageError, with the line, for the first mistake. `home`: the directory that their files are relative
    to."""
    found: list[AppChoice] = []
    for table in top.tables("app"):
        app = _read_app(table, home)
        if not app.name:
            raise table.error("name", f"the name {app.title!r} becomes that of a file: it needs a letter or a digit")
        if any(each.name == app.name for each in found):
            raise table.error("name", f"there are two applications called {app.title!r}: give one a name")
        found.append(app)
    return tuple(found)


def _read_app(table: TomlTable, home: Path) -> AppChoice:
    file = table.required_text("file")
    request = SearchRequest(f"{APP_PREFIX}{home / file}", **table.options(SearchRequest, KEYS["app"]))
    plan: SearchPlan = table.checked(None, partial(plan_search, request))
    return AppChoice(table.text("name") or plan.lock.name, file, table.line(), plan)


def check_has_locks(top: TomlTable) -> None:
    """Raises UsageError for a table about locks in a policy that has none."""
    for name in OF_LOCKS:
        if name in top.values:
            raise top.error(name, f"{name} is about locks, and this policy has no [[lock]]: leave it out, or add one")


def check_names_something(top: TomlTable) -> None:
    if not top.values.get("lock") and not top.values.get("app"):
        raise UsageError(
            f"{top.file} names no lock and no application: [[lock]] with a name (`lockstorm locks` lists them), or "
            "[[app]] with a file (`lockstorm app init` writes one)"
        )
