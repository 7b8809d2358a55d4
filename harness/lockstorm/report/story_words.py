"""What a story says about each record. history_model.py follows leases and beliefs; this module has the words, and what
a sentence needs of earlier records."""

from lockstorm.native.library import FLAG_MADE, FOREVER, locks
from lockstorm.report.answers import EXTENSION, GRANT, RELEASE, answers_of
from lockstorm.results.event import Event

Told = tuple[str, str, str]  # who, what, the style of the words

HEARD_AT_ONCE_NS = 10_000_000  # an answer that takes longer has a line of its own
STANDING_STILL = ("pause-client", "stall-worker", "suspend-host")  # faults that stop a client or a thread of it
PROVED_LATER = ("stall-worker", "suspend-host")
# The sentences for a fault of a server and for its end; None: the fault ends at once.
DONE_TO_SERVER: dict[str, tuple[str, str | None]] = {
    "crash-server": ("is killed", "has been started again"),
    "flush": ("loses all its keys", None),
    "kill-connections": ("closes its clients' connections", None),
    "script-flush": ("forgets its scripts", None),
}
CLOCK_STANDS = 1  # `extra` of a validity that the driver records for a suspended client
# Why a store refuses a write, by the beginning of its mode; "table-" before it makes no difference. The second reason
# is for a write that lacks what the mode checks: a token, a grant (harness/resource/resource.c).
REFUSAL_REASONS = {
    "fence": ("it has seen a newer token", "it came without a token"),
    "compare-owner": ("the last read was under another grant", "it came without a grant"),
    "compare-and-set": ("it was not computed from the newest version",) * 2,
}


class StoryWords:
    """Takes the records of a history in their order."""

    def __init__(self, events: list[Event]) -> None:
        parameters = {str(event.name): event.value_name or "" for event in events if event.kind == "parameter"}
        self.server = parameters.get("service") or _server_of(parameters.get("lock", ""))
        self._store = parameters.get("store", "open")  # its mode
        self._announced: dict[str, int] = {}  # client -> the stamp at which its lock stated a validity
        self._answered_ns: dict[tuple[str, int], int] = {}  # (client, op) -> when the store showed it

    def told(self, event: Event, others: list[str]) -> Told | None:
        """None for a record without a line. `others`: with a grant, the clients that still believe in the lock although
        it has no permit for them."""
        if event.kind == "acquire-return":
            return self._granted(event, others)
        tell = getattr(self, "_" + event.kind.replace("-", "_"), None)
        told: Told | None = tell(event) if tell else None
        return told

    def _acquire_invoke(self, event: Event) -> Told | None:
        return event.who, "asks for the lock", "dim"

    def _granted(self, event: Event, others: list[str]) -> Told:
        if event.outcome != "ok":
            return event.who, f"does not get the lock ({event.outcome})", ""
        token = f", token {event.token}" if event.token else ""
        if not others:
            return event.who, f"is granted the lock{token}", "green"
        crowd = " and ".join(others) if len(others) < 3 else f"{len(others)} others"
        believe = f"still believe{'s' if len(others) == 1 else ''} in it"
        return event.who, f"is granted the lock{token} - and {crowd} {believe}", "bold red"

    def _answers(self, event: Event) -> Told | None:
        """What several servers answered; or what became of an extension by the watchdog."""
        answers = answers_of(event)
        if not answers.count:
            return self._watchdog_answered(event)
        what = {GRANT: "is answered", EXTENSION: "asks for a longer lease", RELEASE: "gives the lock back"}
        style = "yellow" if answers.silent or (answers.no and answers.asked != RELEASE) else "dim"
        return event.who, f"{what[answers.asked]}: {answers.sentence}", style

    def _watchdog_answered(self, event: Event) -> Told | None:
        actor = event.who
        if event.outcome == "refused":
            return actor, "cannot extend its lease any more: its watchdog was refused", "yellow"
        if event.outcome != "ok":
            return actor, "does not know whether its watchdog has extended its lease: no answer", "yellow"
        if self._announced.get(actor) == event.mono_ns:  # the lock has said so itself
            return None
        return actor, "extends its lease (watchdog)", "dim"

    def _renew_return(self, event: Event) -> Told | None:
        actor = event.who
        if event.outcome == "refused":
            return actor, "wants to extend its lease: refused", "yellow"
        if event.outcome != "ok":
            return actor, "wants to extend its lease: no answer", "yellow"
        return (actor, "extends its lease", "dim") if self._announced.get(actor) != event.mono_ns else None

    def _is_held(self, event: Event) -> Told | None:
        answer = {"ok": "yes", "refused": "no"}.get(str(event.outcome), "its lock cannot say")
        return event.who, f"asks whether it holds the lock: {answer}", "" if event.outcome == "ok" else "yellow"

    def _store_read(self, event: Event) -> Told | None:
        """A read stands where the store answered: what comes later is not in it, whenever its client hears of it."""
        client = str(event.name)
        self._answered_ns[client, event.op] = event.mono_ns
        if event.outcome != "ok":
            return client, f"is refused a read of {event.object}{self._refusal_reason(event)}", "yellow"
        return client, f"reads {event.object} = {event.value}", ""

    def _read_return(self, event: Event) -> Told | None:
        """The answer, if it is lost or comes later than the store gave it."""
        answered_ns = self._answered_ns.pop((event.who, event.op), None)
        if event.outcome == "unknown":
            return event.who, f"hears no answer to its read of {event.object}", "yellow"
        if answered_ns is not None and event.mono_ns - answered_ns < HEARD_AT_ONCE_NS:
            return None
        if event.outcome != "ok":
            return event.who, f"is refused a read of {event.object}", "yellow"
        heard = "reads" if answered_ns is None else "hears that it has read"
        return event.who, f"{heard} {event.object} = {event.value}", ""

    def _validity(self, event: Event) -> Told | None:
        actor = event.who
        if event.extra == CLOCK_STANDS:
            clock = "its clock stands" if event.value == FOREVER else "its clock stood meanwhile"
            return actor, f"still believes in its grant: {clock}", "dim"
        if event.outcome != "ok":
            return actor, "learns from its lock that its lease is lost", "yellow"
        self._announced[actor] = event.mono_ns
        return actor, "extends its lease", "dim"

    def _server_renewal(self, event: Event) -> Told | None:
        if event.extra:
            return "server", f"lengthens what {event.extra_name} holds, for a renewal of {event.actor}", "bold red"
        if event.flags & FLAG_MADE:
            return "server", f"makes a key for a renewal of {event.actor}", "yellow"
        return None

    def _store_write(self, event: Event) -> Told | None:
        token = f" with token {event.token}" if event.token else ""
        write = f"{event.object} = {event.value} from {event.name}{token}"
        if event.outcome == "ok":
            return "store", f"accepts {write}", ""
        return "store", f"refuses {write}{self._refusal_reason(event)}", "bold green"

    def _refusal_reason(self, event: Event) -> str:
        mode = self._store.removeprefix("table-")
        for name, (usual, lacking) in REFUSAL_REASONS.items():
            if mode.startswith(name):
                checked = event.token if name == "fence" else event.grant
                return f": {usual if checked else lacking}"
        return ""

    def _release_return(self, event: Event) -> Told | None:
        actor = event.who
        if event.outcome == "ok":
            return actor, "releases the lock", ""
        if event.outcome == "refused":
            return actor, "wants to release the lock: refused, it no longer holds it", "yellow"
        return actor, "wants to release the lock: no answer", "yellow"

    def _fault_inject(self, event: Event) -> Told | None:
        actor, name = str(event.value_name or ""), event.name
        if name == "kill-client" or (name in STANDING_STILL and name not in PROVED_LATER):
            return None  # the proof, or the end of the process, has the line
        if name in DONE_TO_SERVER:
            return actor, f"{DONE_TO_SERVER[name][0]} ({name})", "bold yellow"
        if name not in STANDING_STILL:
            return actor, event.struck or f"{name} begins", "bold yellow"
        return actor, f"stands still ({name})", "bold yellow"

    def _fault_prove(self, event: Event) -> Told | None:
        actor, proved = str(event.value_name or ""), "proved" if event.outcome == "ok" else "NOT proved"
        if event.name not in STANDING_STILL or event.name in PROVED_LATER:
            return actor, f"{event.name}: {proved}", "yellow"
        return actor, f"stands still ({event.name}, {proved})", "bold yellow"

    def _fault_heal(self, event: Event) -> Told | None:
        actor = str(event.value_name or "")
        if event.name == "kill-client":
            return None
        if event.name in DONE_TO_SERVER:
            healed = DONE_TO_SERVER[str(event.name)][1]
            return (actor, healed, "bold yellow") if healed else None
        if event.name not in STANDING_STILL:
            return actor, f"{event.name} is over", "bold yellow"
        return actor, "resumes, unaware that time has passed", "bold yellow"

    def _rule(self, event: Event) -> Told | None:
        return "proxy", f"{event.name}: fires on {event.extra_name or ''}", "yellow"

    def _released(self, event: Event) -> Told | None:
        return "proxy", f"{event.name}: delivers what it held on {event.extra_name or ''}", "yellow"

    def _note(self, event: Event) -> Told | None:
        return event.who, str(event.name), "bold"

    def _phase(self, event: Event) -> Told | None:
        return "trial", f"from here on: {event.name}", "dim"

    def _actor_exit(self, event: Event) -> Told | None:
        return str(event.name), "ends", "bold yellow"


def _server_of(lock: str) -> str:
    """The service that keeps the leases of a lock; redis for a lock that the table does not have."""
    return next((known.service for known in locks() if known.name == lock), "redis")
