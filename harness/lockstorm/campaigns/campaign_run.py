"""Runs a campaign: all entries of its file at once, on one engine, into one directory.

campaign.toml   the file, as it was
campaign.json   what has come of it: CampaignResult
cases.jsonl     the answer of each case, as it came
NAME.json       the result of an entry, as its command prints it (a search: as `lockstorm explore --result` keeps it)
NAME.schedule   the smallest schedule of a search that has found something
NAME.history    the first history of storms in which something is violated
runs/           the kept runs of policies
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec

from lockstorm.base.atomic_file import write_bytes, write_json, write_text
from lockstorm.base.errors import Inconclusive, UsageError
from lockstorm.base.version import VERSION
from lockstorm.campaigns import case_journal
from lockstorm.campaigns.campaign_entries import EntryResult, count_cases, play_entry
from lockstorm.campaigns.campaign_file import CampaignFile, read_campaign_file
from lockstorm.campaigns.case_journal import CaseJournal
from lockstorm.campaigns.case_pool import CasePool
from lockstorm.campaigns.dask_engine import DaskEngine, EngineLost
from lockstorm.results.campaign_result import FORMAT, CampaignResult, EntryState

FILE, RESULT = "campaign.toml", "campaign.json"
LOOK_EVERY_S = 0.2


OnEvent = Callable[[str, EntryState | None], object]


class CampaignRun:
    """A campaign and its directory. `on_event` is called with "case" after each case, and with "ended" and an entry."""

    def __init__(self, campaign: CampaignFile, directory: Path, place: Path) -> None:
        self.campaign, self.directory = campaign, directory
        self.result = CampaignResult(
            file=str(campaign.file),
            place=str(place),
            entries=[EntryState(name=entry.name, cases=count_cases(entry)) for entry in campaign.entries],
        )

    @property
    def cases(self) -> int:
        return sum(entry.cases for entry in self.result.entries)

    def play(self, engine: DaskEngine, on_event: OnEvent) -> CampaignResult:
        """Plays what the journal has no answer for. An interrupt (SIGINT), and the loss of the scheduler, end it; what
        has an answer is kept."""
        self.result.engine = engine.title
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"-o {self.directory}: {error.strerror}") from None
        write_text(self.directory / FILE, self.campaign.text)
        self._write()
        journal = CaseJournal(self.directory / case_journal.NAME)
        on_case = partial(on_event, "case", None)
        threads = ThreadPoolExecutor(len(self.campaign.entries))
        running = {
            threads.submit(play_entry, entry, CasePool(engine, journal, entry.name, on_case), self.directory): state
            for entry, state in zip(self.campaign.entries, self.result.entries, strict=True)
        }
        try:
            self._await(running, on_event)
        except KeyboardInterrupt:
            self.result.state = "interrupted"
            engine.give_up()
        finally:
            threads.shutdown(wait=True, cancel_futures=True)
            journal.close()
            self.result.played = len(journal)
            self._write()
        return self.result

    def _await(self, running: dict["Future[EntryResult]", EntryState], on_event: OnEvent) -> None:
        left = set(running)
        while left:
            done, left = wait(left, timeout=LOOK_EVERY_S)
            for future in done:
                self._end(running[future], future)
                on_event("ended", running[future])
                self._write()
        exits = {entry.exit for entry in self.result.entries}
        self.result.exit = 1 if 1 in exits else 3 if exits & {3, None} else 0
        self.result.state = "lost" if None in exits else "complete"

    def _end(self, state: EntryState, future: "Future[EntryResult]") -> None:
        try:
            ended = future.result()
        except EngineLost as reason:
            state.sentence = str(reason)
            return
        except Inconclusive as reason:
            state.exit, state.sentence = Inconclusive.exit_status, f"Inconclusive: {reason}"
            return
        state.exit, state.sentence, state.again = ended.exit, ended.sentence, ended.again
        write_json(self.directory / f"{state.name}.json", ended.result, indent=1)
        for suffix, content in ended.files.items():
            write_bytes(self.directory / f"{state.name}.{suffix}", content)

    def _write(self) -> None:
        write_json(self.directory / RESULT, msgspec.to_builtins(self.result))


def begin_campaign(file: Path, directory: Path) -> CampaignRun:
    """A new campaign. UsageError if its file is wrong, or the directory is not new or empty."""
    campaign = read_campaign_file(file)
    if (directory / RESULT).exists():
        raise UsageError(f"-o {directory}: there is a campaign already; --resume {directory} goes on with it")
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"-o {directory}: this is no directory")
    if directory.exists() and any(directory.iterdir()):
        raise UsageError(f"-o {directory}: the directory is not empty")
    return CampaignRun(campaign, directory, file.parent.resolve())


def resume_campaign(directory: Path) -> CampaignRun:
    """What is left of a campaign. UsageError if the directory has none, or one of another version."""
    found = read_campaign_result(directory)
    if found.state == "complete" and found.exit != Inconclusive.exit_status:
        raise UsageError(f"--resume {directory}: this campaign is complete")
    place, as_given = Path(found.place), Path(found.file).parent
    if as_given.resolve() == place:  # a case is known by its paths, as they were written when it was played
        place = as_given
    campaign = replace(read_campaign_file(directory / FILE, place), file=Path(found.file))
    return CampaignRun(campaign, directory, place.resolve())


def read_campaign_result(directory: Path) -> CampaignResult:
    """UsageError if the directory has no campaign of this version."""
    path = directory / RESULT
    try:
        found = msgspec.json.decode(path.read_bytes(), type=CampaignResult)
    except OSError as error:
        raise UsageError(f"{directory} has no campaign: {RESULT}: {error.strerror}") from None
    except msgspec.MsgspecError as error:
        raise UsageError(f"{path} is not what lockstorm campaign writes: {error}") from None
    if (found.format, found.version) != (FORMAT, VERSION):
        raise UsageError(
            f"{path} was written by lockstorm {found.version} (format {found.format}), and this is {VERSION} (format "
            f"{FORMAT}): the same seed may mean other schedules there"
        )
    return found


def exit_status(result: CampaignResult) -> int:
    """0 everything as expected, 1 a violation or a mismatch, 3 something could not be judged, 130 interrupted."""
    return 130 if result.state == "interrupted" else int(result.exit or 0)
