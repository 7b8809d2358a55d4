"""The advice of `lockstorm advise`: the answer to some needs, what it leaves open, and the table of decisions.

Decision 0054.
"""

from msgspec import structs

from lockstorm.locks.lock_names import lock_named
from lockstorm.matrix.advice_result import Advice, Candidate, Choice, Decision, Needs
from lockstorm.matrix.candidates import (
    ADVICE,
    PREVENTION,
    SERVERS,
    best_of,
    expires_too_early,
    names_in_short,
    options_for,
    unpreventable,
)
from lockstorm.matrix.remedies import CRASH, EXPERT, cautions, remedies
from lockstorm.matrix.service_kinds import Costs, compare_kinds
from lockstorm.results.matrix_result import MatrixCell


def remarks_on(option: Candidate, needs: Needs) -> tuple[str, ...]:
    """Remarks that follow from the traits of a lock, not from the matrix."""
    lock, remarks = lock_named(option.lock), []
    if needs.hold_ms and expires_too_early(lock, needs):
        remarks.append(f"it has no watchdog: its lease has to be longer than {needs.hold_ms / 1000:g} s")
    if needs.hold_ms and lock.renews:
        remarks.append("a watchdog renews it as long as its process runs, even if the worker is stuck")
    if needs.contention == "high" and lock.waits == "polling":
        remarks.append("its waiters poll: many waiters load the server")
    if needs.contention == "high" and not lock.fair:
        remarks.append("a waiter may be overtaken")
    return tuple(remarks)


def advise_locks(needs: Needs, cells: list[MatrixCell], source: str, costs: Costs | None = None) -> Advice:
    options = options_for(needs, cells)
    best = best_of(needs, options)
    kinds = compare_kinds(needs, cells, costs or {})
    harmful = sorted({name for option in best for name in option.damaged + option.stuck})
    return Advice(
        needs=needs,
        source=source,
        sentence=advice_sentence(needs, best, kinds.sentence),
        cautions=cautions(needs, best),
        remedies=remedies(needs, best, cells),
        recommended=[Choice(option.lock, option.store) for option in best],
        prevention={name: PREVENTION[name] for name in harmful if name in PREVENTION},
        unpreventable=unpreventable(harmful),
        options=[structs.replace(option, remarks=remarks_on(option, needs)) for option in options],
        kinds=kinds,
        decisions=decisions(cells),
        not_measured=ADVICE["not-measured"],
    )


def advice_sentence(needs: Needs, best: list[Candidate], elsewhere: str) -> str:
    """The answer in a few sentences: no name without what has to be said about it. `elsewhere`: about other kinds of
    services, for a reader who has not chosen one."""
    first = best[0]
    if not first.known:
        return "Nothing is known about what could be used here."
    harm = first.stuck if needs.purpose == "efficiency" else first.damaged + first.stuck
    sentences = [outcome_sentence(needs, best, harm), *cautions(needs, best)]
    if needs.purpose == "efficiency":
        sentences.append("What they do not survive costs work that is done twice.")
    elif unpreventable(harm):
        sentences += [EXPERT] if needs.servers else [EXPERT, elsewhere]
    return " ".join(sentences)


def outcome_sentence(needs: Needs, best: list[Candidate], harm: tuple[str, ...]) -> str:
    kept = "let the next client in" if needs.purpose == "efficiency" else "survived"
    if not harm:
        return f"These {kept} in every scenario that was played."
    if not unpreventable(harm):
        return f"These {kept} in every scenario but {len(harm)}, which can be prevented."
    names = names_in_short(dict.fromkeys(option.lock for option in best))
    where = "" if needs.servers else " on Redis"
    return (
        f"Nothing{where} {kept} in every scenario. The closest, {names}, failed in {len(harm)}, "
        f"and {len(unpreventable(harm))} of these cannot be prevented."
    )


def decisions(cells: list[MatrixCell]) -> list[Decision]:
    rows = []
    for purpose, resource in (("efficiency", "plain"), ("correctness", "plain"), ("correctness", "checks-tokens")):
        for servers in SERVERS:
            needs = Needs(purpose, resource, servers)
            best = best_of(needs, options_for(needs, cells))
            rows.append(
                Decision(
                    purpose=purpose,
                    resource=resource,
                    servers=servers,
                    best=[Choice(option.lock, option.store) for option in best],
                    damaged=best[0].damaged,
                    stuck=best[0].stuck,
                    unpreventable=unpreventable(best[0].damaged + best[0].stuck),
                    unknown=best[0].unknown,
                    blocks_after_crash=CRASH in best[0].stuck,
                )
            )
    return rows
