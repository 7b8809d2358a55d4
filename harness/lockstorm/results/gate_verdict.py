"""The verdict of a gate (verdict.json): every output of the gate is written from it. docs/gate.md explains it."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from lockstorm.results.matrix_result import InapplicablePair
from lockstorm.results.properties import JUDGED
from lockstorm.results.verdict import DeploymentResult
from lockstorm.results.wire_access import RuleWarning

PropertyName = Annotated[str, Meta(extra_json_schema={"enum": list(JUDGED)})]
StoreName = Annotated[str, Meta(extra_json_schema={"enum": ["open", "fence-writes", "fence-reads-and-writes"]})]
StatusName = Annotated[str, Meta(extra_json_schema={"enum": ["holds", "violated", "inconclusive"]})]
ResultWord = Annotated[
    str, Meta(extra_json_schema={"enum": ["holds", "fenced", "violated", "stuck", "inconclusive"]})
]  # of the matrix
Statuses = Annotated[
    dict[PropertyName, StatusName],
    Meta(description="Of each required property that is asked for here, the worst of all trials."),
]
Time = Annotated[str, Meta(extra_json_schema={"enum": ["virtual", "real"]})]
Outcome = Literal["passed", "accepted", "failed", "inconclusive", "not-judged"]
AcceptanceState = Literal["used", "expired", "gone", "unknown"]
Day = Annotated[str, Meta(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]


class LockAdvice(msgspec.Struct, frozen=True):
    """An alternative that survives more of the policy."""

    lock: str
    store: StoreName
    broken: Annotated[
        list[str], Meta(description="Scenarios of the policy that break this one, too, or that nobody knows about.")
    ]
    text: str
    change: Annotated[str, Meta(description="What to write into the policy.")]


class Prevention(msgspec.Struct, frozen=True):
    """What would prevent a scenario that the advice does not help against."""

    scenario: str
    text: str


class GateLock(msgspec.Struct, frozen=True):
    """A lock of the policy."""

    name: str
    store: StoreName
    require: list[PropertyName]
    line: Annotated[int, Meta(description="In the policy.")]
    used: str | None
    advice: Annotated[LockAdvice | None, Meta(description="What survives more of this policy, where the lock failed.")]
    prevention: list[Prevention]
    cures: Annotated[
        list[str], Meta(description="What mends a mistake that a right lock of this kind does not make.")
    ] = []


def what_to_do(lock: GateLock) -> list[str]:
    """Advice about a lock of a verdict, in paragraphs: what mends its mistakes, an alternative, and what prevents the
    scenarios that remain."""
    paragraphs = [*lock.cures, *([lock.advice.text] if lock.advice else [])]
    if lock.prevention:
        other = "this choice does not help" if lock.advice else "no other choice that lockstorm knows helps"
        kept = "; ".join(f"{each.scenario} ({each.text})" for each in lock.prevention)
        paragraphs.append(
            f"Against these {other}; what would prevent each is given in brackets: {kept}. Leave a scenario out if it "
            "cannot happen to you ([scenarios] skip in the policy); accept it until a day if you can live with it "
            "([[accept]])."
        )
    return paragraphs or [
        "No other choice that lockstorm knows is known to do better here: the trial shows what happened."
    ]


class AcceptanceText(msgspec.Struct, frozen=True):
    """An acceptance of the policy."""

    lock: str
    store: str | None
    scenario: str
    properties: list[PropertyName]
    why: str
    until: Day
    line: int


class JudgedAcceptance(AcceptanceText, frozen=True):
    """used: the violation was seen; expired: it was seen after the last day; gone: it was not seen; unknown: it was not
    seen, but a trial is missing or inconclusive."""

    state: AcceptanceState


class GateTrial(msgspec.Struct, frozen=True):
    name: Annotated[str, Meta(description="trials/NAME.history in the kept run.")]
    control: bool
    seed: int
    statuses: Statuses
    sentence: str
    replay: str


class GateCell(msgspec.Struct, frozen=True, kw_only=True):
    """A lock under one scenario or storm."""

    lock: str
    store: StoreName
    scenario: Annotated[str, Meta(description="Or storm-NAME.")]
    time: Time
    outcome: Outcome
    ok: Annotated[bool, Meta(description="Neither failed nor inconclusive.")]
    statuses: Statuses
    violated: Annotated[list[PropertyName], Meta(description="The most harmful first.")]
    result: Annotated[ResultWord, Meta(description="The trials with the fault in a word of the matrix.")]
    expected: None
    control: Annotated[ResultWord, Meta(description="The trials without the fault.")]
    control_expected: None
    sentence: Annotated[str, Meta(description="Of the worst trial.")]
    in_short: str
    deployment: Annotated[
        DeploymentResult | None,
        Meta(
            description="The servers' settings, and what they changed compared with the defaults; "
            "null: nothing, or no [deployment]."
        ),
    ] = None
    happened: str
    baseline: Annotated[
        str, Meta(description="What a right lock of the same kind does here, and what mends a mistake; or empty.")
    ] = ""
    matters: str
    reason: Annotated[str, Meta(description="Of the table of expected verdicts.")]
    accepted: Annotated[list[AcceptanceText], Meta(description="Acceptances of what is violated, valid or not.")]
    replay: str
    control_replay: str
    shown: Annotated[str | None, Meta(description="The worst trial.")]
    trials: list[GateTrial]
    planned: Annotated[int, Meta(description="How many trials there were to be.")]
    took_s: float

    @property
    def in_full(self) -> str:
        """What happened, and what a right lock of the same kind does."""
        return " ".join(filter(None, (self.happened, self.baseline)))


class GateApplication(msgspec.Struct, frozen=True, kw_only=True):
    """A search of an application of the policy."""

    name: str
    file: Annotated[str, Meta(description="That describes it, as the policy names it.")]
    line: Annotated[int, Meta(description="In the policy.")]
    outcome: Outcome
    ok: Annotated[bool, Meta(description="Neither failed nor inconclusive.")]
    require: Annotated[list[str], Meta(description="docs/application-rules.md, and check and answer.")]
    violated: list[str]
    schedules: Annotated[int, Meta(ge=0, description="That were played and count.")]
    planned: Annotated[int | None, Meta(description="How many there were to be; null: the policy limits the time.")]
    sentence: str
    in_short: str
    happened: Annotated[str, Meta(description="What the smallest schedule shows, and its cause.")] = ""
    story: Annotated[list[str], Meta(description="What happened in it, a line each.")] = []
    matters: str = ""
    to_do: list[str] = []
    warnings: Annotated[list[RuleWarning], Meta(description="What can go wrong, by requests one after the other.")] = []
    schedule: Annotated[str | None, Meta(description="The file of the smallest schedule, in the kept run.")] = None
    replay: Annotated[str, Meta(description="Plays this schedule again; without one, the search.")]
    search: Annotated[str, Meta(description="The command that repeats the search.")]
    took_s: float


class UnjudgedProperty(msgspec.Struct, frozen=True):
    """A required property that no trial judges."""

    lock: str
    store: StoreName
    property: PropertyName


class PolicyDigest(msgspec.Struct, frozen=True):
    file: str
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class GateVerdict(msgspec.Struct, frozen=True, kw_only=True):
    run: Annotated[str, Meta(description="The name of the kept run.")]
    interrupted: bool
    policy: PolicyDigest
    format: Literal[1] = 1
    exit: Literal[0, 1, 3]
    sentence: str
    played_again: Annotated[
        int,
        Meta(ge=0, description="Times that a trial was played again in real time, because the machine stood still."),
    ] = 0
    locks: list[GateLock]
    cells: list[GateCell]
    applications: list[GateApplication] = []
    unjudged: Annotated[list[UnjudgedProperty], Meta(description="Required, and no trial judges it.")]
    inapplicable: Annotated[list[InapplicablePair], Meta(description="Scenarios that do not apply to a lock.")] = []
    acceptances: list[JudgedAcceptance]
    versions: dict[str, str]
    differences: Annotated[
        list[str] | msgspec.UnsetType,
        Meta(description="Of `check runs/ID`: what is judged unlike when it was played."),
    ] = msgspec.UNSET

    @property
    def outcomes(self) -> list[str]:
        """Of all cases."""
        return [*(cell.outcome for cell in self.cells), *(each.outcome for each in self.applications)]

    def cells_of(self, lock: GateLock) -> list[GateCell]:
        return [cell for cell in self.cells if (cell.lock, cell.store) == (lock.name, lock.store)]
