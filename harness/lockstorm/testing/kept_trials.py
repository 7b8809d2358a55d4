"""The histories that the trials of a test leave, and their HTML reports."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from lockstorm.base.errors import LockstormError
from lockstorm.base.paths import runnable

MADE_OF_NAME = re.compile(r"[^\w.\[\]=+-]+")


@dataclass
class KeptTrial:
    """One of them. `save` writes the history of a trial that is still open; a played one has saved its own."""

    history: Path
    save: Callable[[Path], None] | None = None
    schedule: Path | None = None

    def lines(self) -> list[str]:
        """Writes what is missing; lines that name the files, and the command to look at them."""
        from lockstorm.report.report import write  # few tests fail, and its templates take their time
        from lockstorm.report.window import ROWS_USUAL

        found = [f"schedule: {self.schedule}", f"replay: {runnable(f'lockstorm replay {self.schedule}')}"]
        lines = found if self.schedule else []
        page = self.history.with_suffix(".html")
        try:
            if self.save:
                self.history.unlink(missing_ok=True)
                self.save(self.history)
                self.save = None
            if not self.history.exists():
                return lines  # the trial did not come to its end
            lines += [f"history: {self.history}", f"show: {runnable(f'lockstorm show {self.history}')}"]
            write(self.history, None, page, None, ROWS_USUAL, None)
        except LockstormError as error:
            return [*lines, f"no report: {error}"]
        return [*lines, f"report: {page}"]


@dataclass
class KeptTrials:
    """Those of a test. `report`: the directory of --lockstorm-report; None: they are in the test's own, which `own`
    makes, when the first file is written."""

    nodeid: str
    report: str | None
    own: Callable[[], Path]
    every: list[KeptTrial] = field(default_factory=list)

    @property
    def directory(self) -> Path:
        if self.report is None:
            return self.own()
        Path(self.report).mkdir(parents=True, exist_ok=True)
        return Path(self.report)

    def add(self, save: Callable[[Path], None] | None = None) -> KeptTrial:
        number = len(self.every) + 1
        of_test = MADE_OF_NAME.sub("-", self.nodeid.removesuffix(".py"))[-180:]
        stem = "trial" if self.report is None else of_test
        name = stem if number == 1 else f"{stem}-{number}"
        kept = KeptTrial(self.directory / f"{name}.history", save)
        kept.history.unlink(missing_ok=True)
        self.every.append(kept)
        return kept

    def lines(self) -> list[str]:
        return [line for each in self.every for line in each.lines()]
