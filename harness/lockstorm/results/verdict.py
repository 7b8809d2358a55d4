"""The verdict on a history and the result of a trial. The JSON of `check`, `run` and `storm` is their serialised form,
without the fields that are None. docs/verdicts.md explains each property and status."""

from typing import TYPE_CHECKING, Any, Literal, Self

import msgspec

from lockstorm.base.errors import Inconclusive, UsageError
from lockstorm.base.paths import runnable
from lockstorm.results.storm_result import StormResult

Status = Literal["holds", "violated", "inconclusive"]


class Evidence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One cause of violations of a property."""

    text: str
    count: int  # violations that it explains
    records: list[int]  # indices in the history


class PropertyVerdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A property in a history."""

    status: Status
    count: int  # of violations
    evidence: list[Evidence]
    sorts: dict[str, int] = {}  # violations by sort (properties.SORTS); empty: there is one sort
    fenced: int | None = None  # stale accesses that the resource refused
    measures: dict[str, int | float] | None = None
    reason: str | None = None  # why it is inconclusive


def property_verdict(parsed: dict[str, Any]) -> PropertyVerdict:
    """A property from the JSON of `linearize` or `explore`, whose evidence has texts only."""
    evidence = [Evidence(piece["text"], 1, []) for piece in parsed["evidence"]]
    return PropertyVerdict(parsed["status"], parsed["count"], evidence, reason=parsed.get("reason"))


class Judged(msgspec.Struct, frozen=True):
    """What verdicts and results have in common: a test asserts something of their properties."""

    if TYPE_CHECKING:  # fields of the derived types

        @property
        def properties(self) -> dict[str, PropertyVerdict]: ...
        @property
        def sentence(self) -> str: ...
        @property
        def required(self) -> list[str]: ...

    def assert_holds(self, *names: str) -> Self:
        """Raises AssertionError with the evidence if one of these properties is violated; the default are those that
        are required. Raises Inconclusive if one of them was not judged."""
        __tracebackhide__ = True  # pytest shows the line of the test
        asked = self._asked(names)
        if any(each.status == "violated" for each in asked.values()):
            raise AssertionError(self._failure(asked))
        self._must_be_judged(asked)
        return self

    def assert_violated(self, *names: str) -> Self:
        """Raises AssertionError if one of these properties holds; without names, if no property that is required is
        violated. Raises Inconclusive if that was not judged."""
        __tracebackhide__ = True
        asked = self._asked(names)
        violated = [name for name, each in asked.items() if each.status == "violated"]
        held = [name for name, each in asked.items() if each.status == "holds"]
        if (names and held) or len(held) == len(asked):
            raise AssertionError(self._failure(asked))
        if names or not violated:
            self._must_be_judged(asked)
        return self

    def _asked(self, names: tuple[str, ...]) -> dict[str, PropertyVerdict]:
        asked = [name.replace("-", "_") for name in names] or self.required
        for name in asked:
            if name not in self.properties:
                raise UsageError(f"there is no property called {name!r}: there are {', '.join(self.properties)}")
        return {name: self.properties[name] for name in asked}

    def _must_be_judged(self, asked: dict[str, PropertyVerdict]) -> None:
        reasons = {name: each.reason for name, each in asked.items() if each.status == "inconclusive"}
        if reasons:
            names = " and ".join(name.replace("_", " ") for name in reasons)
            whys = "; ".join(dict.fromkeys(why for why in reasons.values() if why))
            raise Inconclusive(f"{names} could not be judged: {whys or self.sentence}")

    def _failure(self, asked: dict[str, PropertyVerdict]) -> str:
        """The sentence, its evidence, then what repeats it."""
        lines, replay = [self.sentence, *self._evidence_lines(asked)], getattr(self, "replay", None)
        return "\n".join([*lines, f"again: {runnable(replay)}"] if replay else lines)

    def _evidence_lines(self, asked: dict[str, PropertyVerdict]) -> list[str]:
        """A line for each property and each piece of its evidence."""
        lines: list[str] = []
        for name, each in asked.items():
            words = name.replace("_", " ")
            reason = f": {each.reason}" if each.status == "inconclusive" and each.reason else ""
            lines += [f"{words}: {piece.text}" for piece in each.evidence] or [f"{words}: {each.status}{reason}"]
        return lines


class PropertyStatus(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A property under one of several policies."""

    status: Status
    count: int


class VerdictPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the checkers interpreted a failed release and an acquire of unknown outcome."""

    release: str
    acquire_timeout: str


class PolicyVerdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"properties": "verdict"}):
    """The verdict under one policy, without evidence."""

    policy: VerdictPolicy
    properties: dict[str, PropertyStatus]
    sentence: str
    exit: int


class FaultSeen(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fault that the history records."""

    name: str
    target: str
    proved: bool


class HeardCommand(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a server heard from a client, and answered. In texts a byte that is no printable ASCII is \\xNN."""

    mono_ns: int
    client: int  # index, from 1
    watchdog: bool  # sent by the client's watchdog
    node: int  # index of the server, from 1; 0: the resource
    words: list[str]
    # answered; answer-lost: executed, and the answer did not reach the client; waits: a blocking command, which is
    # answered-late; late: executed when nobody waits for its answer; lost and refused: never executed
    fate: str
    answer: str | None = None
    answered_ns: int | None = None  # when the client got it, if later


class ScheduleLines(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A schedule as its file has it."""

    clients: int
    workload: list[str] = []  # of a library
    schedule: list[str] = []  # the deviations


class Verdict(
    Judged,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    kw_only=True,
    rename={"properties": "verdict", "inapplicable_reason": "unfit"},
):
    """The verdict of the program `check` on a history. The fields up to `steps` name what was judged; each command
    fills those that it knows."""

    file: str | None = None
    lock: str | int | None = None
    scenario: str | int | None = None
    store: str | int | None = None
    time: str | int | None = None
    struck_at: str | None = None  # with real processes: the checkpoint after which the fault struck client 1
    clients: int | None = None
    replicas: int | None = None
    turns: int | None = None
    lease_ms: int | None = None
    work_ms: int | None = None
    seed: str | int | None = None
    steps: int | None = None  # number of steps of a schedule
    commands: list[HeardCommand] | None = None  # of a schedule, with --commands
    choices: list[str] | None = None  # the deviations of a schedule, each with what it strikes or changes
    control: ScheduleLines | None = None  # nearly the same schedule, which violates nothing
    properties: dict[str, PropertyVerdict]
    sentence: str
    required: list[str]
    policy: VerdictPolicy
    faults: list[FaultSeen]
    records: int
    torn: int  # incomplete records
    dropped: int  # records for which there was no room
    grants: int
    failed_releases: int
    unknown_acquires: int
    parameters: dict[str, str | int] | None = None  # of the trial, from its history
    exit: int
    inapplicable_reason: str | None = None  # why the history cannot be judged; its key in JSON is `unfit`
    policies: list[PolicyVerdict] | None = None  # of --all-policies
    elsewhere: bool = False  # of a trial: a library was granted its lock, and nothing of it reached the lock's servers
    baseline: str | None = None  # of a user's lock that violates something: what a right lock of its kind does


class ChangedByTrial(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A setting of the team's servers that the trial chose itself."""

    setting: str  # name and value
    place: str  # FILE:LINE
    why: str


class SettingsEffect(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the team's settings changed, compared with the trial on servers with their defaults."""

    property: str
    status: Status
    usual: Status  # with the defaults
    because: list[str]  # the settings that are enough for it; empty: not looked for, or the server's program does it


class DeploymentResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The team's deployment in a trial."""

    settings: list[str]  # of every redis-server, as given: name and value
    changed: list[ChangedByTrial]
    replicas: int = 0  # of each redis-server
    effects: list[SettingsEffect] | None = None  # None: not compared


class TrialResult(
    Judged,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    kw_only=True,
    rename={"properties": "verdict"},
):
    """The result of a trial: the JSON of `run` and of `storm`."""

    lock: str
    scenario: str
    control: bool
    store: str | None
    time: str
    seed: int
    lease_ms: int | None = None
    properties: dict[str, PropertyVerdict]
    sentence: str
    required: list[str]
    policy: VerdictPolicy
    faults: list[FaultSeen]
    records: int
    grants: int
    replay: str  # the command that repeats it
    versions: dict[str, str]
    elapsed_ms: dict[str, float]
    exit: int
    played_again: int = 0  # times that the trial was played again in real time, because the machine stood still
    deployment: DeploymentResult | None = None  # of --config
    storm: StormResult | None = None  # None: a scenario
    took_s: float | None = None  # real time, in a kept run of the gate
    elsewhere: bool = False  # a library was granted its lock, and nothing of it reached the lock's servers
    baseline: str | None = None  # of a user's lock that violates something: what a right lock of its kind does

    @property
    def of_storm(self) -> StormResult:
        """Of a storm only."""
        assert self.storm
        return self.storm


def played_again_words(count: int) -> str:
    """What follows a sentence when trials were played again; empty if none was."""
    return f" (played again {count} time{'s' if count != 1 else ''}: the machine stood still)" if count else ""


def effects_sentence(deployment: DeploymentResult | None, *, always: bool = True) -> str:
    """What a team's settings changed in a trial, as one sentence without a full stop; empty if nothing is known.
    `always`: it also says that they changed nothing."""
    if deployment is None or deployment.effects is None:
        return ""
    if not deployment.effects:
        return "with the defaults of the server the verdict is the same" if always else ""
    groups: dict[tuple[str, str], list[str]] = {}
    for each in deployment.effects:
        groups.setdefault((each.status, each.usual), []).append(each.property.replace("_", " "))
    because = deployment.effects[0].because
    told = [_changed_words(names, status, usual) for (status, usual), names in groups.items()]
    return f"with {', '.join(because) if because else 'these settings'}: {'; '.join(told)}"


def _changed_words(names: list[str], status: str, usual: str) -> str:
    verbs = {"holds": "hold"} if len(names) > 1 else {"holds": "holds"}
    now, then = (verbs.get(each, f"{'are' if len(names) > 1 else 'is'} {each}") for each in (status, usual))
    return f"{' and '.join(names)} {now}, with the defaults {'they' if len(names) > 1 else 'it'} {then}"
