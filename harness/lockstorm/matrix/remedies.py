"""What an expert does where no lock is enough, each with the cells that show it.

The actions are in advice.toml. Their results are read from the cells, so an action that the cells no longer support is
shown with the result that contradicts it, and a test fails.
"""

from collections.abc import Iterable

import msgspec

from lockstorm.locks.lock_names import lock_named
from lockstorm.matrix.advice_result import Candidate, Limit, Needs, RemedyRow, Seen
from lockstorm.matrix.candidates import ADVICE, Cells, cells_by_key, names_in_short, unpreventable
from lockstorm.results.matrix_result import MatrixCell

EXPERT = (
    "An expert would not look for a better lock alone: let the resource refuse stale writes (compare-and-set or a "
    "fencing token), or put the lock and the write into one database transaction."
)
CRASH, PAUSE = "crash-holder", "gc-pause"


class Remedy(msgspec.Struct, frozen=True, rename={"with_": "with"}):
    """What to do, in a scenario: advice.toml says what the fields mean."""

    name: str
    action: str
    scenario: str
    without: tuple[str, str]
    with_: tuple[str, str]
    limit: tuple[str, str] | None = None


REMEDIES = msgspec.convert(ADVICE["remedy"], tuple[Remedy, ...])


def remedies(needs: Needs, best: list[Candidate], cells: Iterable[MatrixCell]) -> list[RemedyRow]:
    """For correctness: what to do if nobody can prevent what the best candidate does not survive."""
    if needs.purpose != "correctness" or not unpreventable(best[0].damaged + best[0].stuck):
        return []
    by_key = cells_by_key(cells)
    return [remedy_row(remedy, by_key) for remedy in REMEDIES]


def remedy_row(remedy: Remedy, by_key: Cells) -> RemedyRow:
    limit = None
    if remedy.limit:
        scenario, note = remedy.limit
        shown = seen(scenario, remedy.with_, by_key)
        limit = Limit(shown.lock, shown.store, shown.result, shown.command, scenario, note)
    without, with_ = (seen(remedy.scenario, choice, by_key) for choice in (remedy.without, remedy.with_))
    return RemedyRow(remedy.name, remedy.action, remedy.scenario, without, with_, limit)


def seen(scenario: str, choice: tuple[str, str], by_key: Cells) -> Seen:
    lock, store = choice
    cell = by_key.get((scenario, lock, store))
    option = "" if store == "open" else f" --store {store}"
    return Seen(lock, store, cell.result if cell else None, f"lockstorm run {scenario} --lock {lock}{option}")


def cautions(needs: Needs, best: list[Candidate]) -> list[str]:
    """What has to be said in the same breath as the names of the best candidates."""
    after_crash = [option.lock for option in best if CRASH in option.stuck]
    endless = [name for name in after_crash if not lock_named(name).lease]
    forgotten = [name for name in after_crash if lock_named(name).lease]
    waiting = [option.lock for option in best if CRASH in option.survives and not lock_named(option.lock).lease]
    paused = [option.lock for option in best if PAUSE in option.damaged and needs.purpose == "correctness"]
    texts = (
        (endless, f"a holder that crashes blocks all others for ever, because the lock never expires ({CRASH})"),
        (forgotten, f"no waiter is served after a holder has crashed ({CRASH})"),
        (
            waiting,
            "a holder that hangs keeps all others waiting for as long as it hangs: the lock has no lease",
        ),
        (paused, f"a holder that is paused past its lease overwrites the work of the next one ({PAUSE})"),
    )
    return [f"With {names_in_short(dict.fromkeys(names))} {text}." for names, text in texts if names]
