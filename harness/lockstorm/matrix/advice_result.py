"""What `lockstorm advise --json` prints."""

import msgspec


class Needs(msgspec.Struct, frozen=True, rename={"purpose": "for"}):
    purpose: str
    resource: str = "plain"
    servers: str | None = None
    hold_ms: int | None = None
    contention: str | None = None


class Choice(msgspec.Struct, frozen=True):
    lock: str
    store: str

    @property
    def title(self) -> str:
        return self.lock if self.store == "open" else f"{self.lock} with {self.store}"


class Candidate(Choice, frozen=True):
    """A lock with a store mode, and its scenarios by outcome."""

    survives: tuple[str, ...]  # scenarios, including those in which the store refused the damage
    damaged: tuple[str, ...]
    stuck: tuple[str, ...]
    unknown: tuple[str, ...]  # never played, inconclusive, or a control that does not hold
    remarks: tuple[str, ...] = ()  # from the traits of the lock, not from the matrix

    @property
    def known(self) -> tuple[str, ...]:
        return self.survives + self.damaged + self.stuck

    @property
    def outcome(self) -> tuple[tuple[str, ...], ...]:
        return self.damaged, self.stuck, self.unknown


class Seen(Choice, frozen=True):
    """What a cell shows, and the command that plays it."""

    result: str | None  # None: it was not played
    command: str


class Limit(Seen, frozen=True):
    """A scenario that a remedy does not survive, and why."""

    scenario: str
    note: str


class RemedyRow(msgspec.Struct, frozen=True, rename={"with_": "with"}):
    """What to do, and a scenario without it and with it."""

    name: str
    action: str
    scenario: str
    without: Seen
    with_: Seen
    limit: Limit | None


class Break(msgspec.Struct, frozen=True):
    """A scenario that breaks the best lock of a kind."""

    scenario: str
    result: str
    summary: str
    reason: str
    prevention: str | None


class MeasuredCost(msgspec.Struct, frozen=True):
    """Of one client, by `lockstorm compare`."""

    requests_per_grant: float
    cost_ratio: float


class KindCost(msgspec.Struct, frozen=True):
    servers: int
    waits: str
    text: str  # from the lock's explanation
    measured: MeasuredCost | None


class KindRow(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of service, by its best lock."""

    kind: str
    title: str
    lock: str
    store: str
    equal: list[str]  # other locks that rank alike
    survives: tuple[str, ...]
    damaged: tuple[str, ...]
    stuck: tuple[str, ...]
    unknown: tuple[str, ...]
    shared: dict[str, str]  # the results of the scenarios that were played with every kind
    shared_survived: int
    cautions: list[str]
    properties: dict[str, dict[str, int]]  # number of scenarios by property and status
    breaks: list[Break]
    cost: KindCost

    @property
    def title_of_lock(self) -> str:
        return Choice(self.lock, self.store).title


class Kinds(msgspec.Struct, frozen=True):
    sentence: str
    cautions: list[str]
    shared: list[str]  # the scenarios that compare
    rows: list[KindRow]  # the best first


class Decision(msgspec.Struct, frozen=True, kw_only=True, rename={"purpose": "for"}):
    """The best candidates for a purpose, a resource and a kind of servers."""

    purpose: str
    resource: str
    servers: str
    best: list[Choice]
    damaged: tuple[str, ...]
    stuck: tuple[str, ...]
    unpreventable: list[str]
    unknown: tuple[str, ...]
    blocks_after_crash: bool


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    needs: Needs
    source: str  # of the cells
    sentence: str
    answer: list[str]  # its beginning: the recommended lock, and why
    cautions: list[str]
    remedies: list[RemedyRow]
    recommended: list[Choice]
    prevention: dict[str, str]  # by scenario
    unpreventable: list[str]
    options: list[Candidate]  # the best first
    kinds: Kinds
    decisions: list[Decision]
    not_measured: list[str]
