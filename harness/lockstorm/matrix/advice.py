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
from lockstorm.matrix.service_kinds import Costs, compare_kinds, simplicity
from lockstorm.results.matrix_result import MatrixCell

OTHERS_SHOWN = 3


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


def blocks_after_crash(option: Candidate) -> bool:
    """A lock that nobody gets any more after its holder has crashed damages little, because it never lets go. It is not
    recommended for that."""
    return CRASH in option.stuck


def advise_locks(needs: Needs, cells: list[MatrixCell], source: str, costs: Costs | None = None) -> Advice:
    options = sorted(options_for(needs, cells), key=blocks_after_crash)
    best = best_of(needs, options)
    kinds = compare_kinds(needs, cells, costs or {})
    harmful = sorted({name for option in best for name in option.damaged + option.stuck})
    return Advice(
        needs=needs,
        source=source,
        sentence=advice_sentence(needs, best, kinds.sentence),
        answer=answer_lines(needs, best),
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


def answer_lines(needs: Needs, best: list[Candidate]) -> list[str]:
    """The recommended lock, and why, in a line each."""
    first = min(best, key=simplicity)
    if not first.known:
        return ["Nothing is known about what could be used here."]
    efficient = needs.purpose == "efficiency"
    harm = first.stuck if efficient else first.damaged + first.stuck
    others = [option.title for option in best if option is not first]
    same = f" (as good: {names_in_short(others, OTHERS_SHOWN)})" if others else ""
    kept = "lets the next client in," if efficient else "survives"
    count, left = len(first.known), unpreventable(harm)
    what = "scenarios that were played"
    why = f"Why: it {kept} {'in ' if efficient else ''}{count - len(harm)} of the {count} {what}"
    if not harm:
        return [f"Use {first.title}{same}.", f"{why}."]
    if not left:
        return [f"Use {first.title}{same}.", f"{why}, and the others can be prevented: {names_in_short(harm)}."]
    where = "" if needs.servers else " on Redis"
    return [
        f"No lock alone is enough here. The closest{where} is {first.title}{same}.",
        f"{why}. In {len(left)} of the others nobody can prevent the harm: {names_in_short(left, OTHERS_SHOWN)}.",
    ]


def advice_sentence(needs: Needs, best: list[Candidate], elsewhere: str) -> str:
    """The answer, and in the same breath what has to be said about these locks. `elsewhere`: about other kinds of
    services, for a reader who has not chosen one."""
    first, sentences = best[0], answer_lines(needs, best)
    if not first.known:
        return sentences[0]
    sentences += cautions(needs, best)
    if needs.purpose == "efficiency":
        sentences.append("What they do not survive costs work that is done twice.")
    elif unpreventable(first.damaged + first.stuck):
        sentences += [EXPERT] if needs.servers else [EXPERT, elsewhere]
    return " ".join(sentences)


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
