"""What `lockstorm compare --json` prints."""

import msgspec

from lockstorm.process.machine import Machine


class Spread(msgspec.Struct, frozen=True):
    """Of times in microseconds."""

    p50: float | None
    p99: float | None
    count: int


class HandOverSpread(Spread, frozen=True):
    unserved: int  # releases after which nobody was granted the lock


class CostCell(msgspec.Struct, kw_only=True):
    """One lock under one load. Fields that were not measured are None. `reason`: why, or a remark on the numbers."""

    lock: str
    clients: int
    rate: int | None
    work_ms: int
    processes: int  # in which these clients live
    measured: bool = False
    played_again: int = 0  # times that it was measured again, because the machine stood still
    window_s: float | None = None
    grants: int | None = None
    grants_per_s: float | None = None
    sustained: bool | None = None
    requests_per_grant: float | None = None
    commands_per_grant: float | None = None
    bytes_per_grant: float | None = None
    commands: dict[str, float] = {}
    client_cpu_us_per_grant: float | None = None
    server_cpu_us_per_grant: float | None = None
    wait_us: Spread | None = None
    hand_over_us: HandOverSpread | None = None
    next_grant_us: Spread | None = None
    overtakings_per_grant: float | None = None
    overtaken_most: int | None = None
    holders_most: int | None = None
    reference_us: float | None = None
    cost_ratio: float | None = None
    reason: str = ""


class Reference(msgspec.Struct, frozen=True, omit_defaults=True):
    """The medians of all measurements by redis-benchmark. Times are None without measurements."""

    commands: list[str]
    connections: int
    runs: int
    set_us: float | None
    evalsha_us: float | None
    us: float | None
    reason: str = ""


class Comparison(msgspec.Struct, frozen=True):
    cells: list[CostCell]
    machine: Machine
    reference: Reference
    duration_ms: int
