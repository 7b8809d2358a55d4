"""What makes two trials the same trial: the one value that the command line, a policy, a storm and a test fill in.

Decision 0004.
"""

from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from lockstorm.attach.gateway import Gateway
from lockstorm.base.durations import FOREVER_MS
from lockstorm.base.option_fields import option
from lockstorm.results.lock_entry import LockEntry, Topology
from lockstorm.results.properties import PROPERTIES, REQUIRED
from lockstorm.servers.deployment import ENSEMBLES, Deployment
from lockstorm.servers.ensemble_settings import lease_late_by_settings_ms
from lockstorm.servers.lacking_commands import LACKING_HELP
from lockstorm.servers.services import LEASE_LATE_MS
from lockstorm.servers.topology import Elections

Time = Literal["virtual", "real"]
Store = Literal[
    "open",
    "fence-writes",
    "fence-reads-and-writes",
    "compare-owner",
    "compare-and-set",
    "table-open",
    "table-fence-writes",
    "table-fence-reads-and-writes",
    "table-compare-owner",
    "table-compare-and-set",
]
Persistence = Literal["none", "aof", "deployed"]
TIMES: tuple[Time, ...] = ("virtual", "real")
STORES: tuple[Store, ...] = get_args(Store)
TOKEN_STORES = tuple(store for store in STORES if "fence" in store)  # refuse a client without a token

RESOURCE = b"account"  # the name of what the lock protects
VIRTUAL_LEASE_MS = 30_000
BY_HAND = "by-hand"  # the scenario of a trial that a test or a program plays step by step
LEASE_LIMIT_MS = 24 * 24 * 3600 * 1000  # 24 days: beyond that a TTL in ms overflows 31 bits in some servers
SEED_LIMIT = 2**63 - 1
CLIENT_LIMIT = 128  # a process each
GROUPED_CLIENT_LIMIT = 20_000  # where groups of them share a process (client_groups.py)
PERMIT_LIMIT = 64
WAIT_FOR_EVER = FOREVER_MS  # until the lock is granted
DURATION_LIMIT_MS = 3_600_000
SERVER_HELP = (
    "Server that the locks on Redis live on: a path, or the name of a program on the PATH, such as valkey-server. "
    "Default: redis-server, or the variable LOCKSTORM_REDIS_SERVER."
)
CONFIG_HELP = (
    "How the servers are configured: a redis.conf, or a policy (.toml) whose table [deployment] says it, also of "
    "PostgreSQL, etcd and ZooKeeper. Default: nothing is written to disk, no replicas, and short timeouts."
)
ATTACHED_OPTIONS = (  # of `lockstorm attach`: those that need no server of the trial's own
    *("seed", "store", "lease_ms", "clients", "duration_ms", "require", "permits"),
    *("control", "fixed_lease", "checks_validity"),
)
REPLY_LIMIT_MS = 1000  # how long a client waits for an ordinary answer (client.c)


@dataclass(frozen=True)
class TrialSettings:
    """The fields with an option are what a user chooses, where None is the usual value; `prepare_trial`
    (scenario/play.py) fills it in, and with it what the lock and the scenario need. A test sets any field itself."""

    lock: str
    scenario: str = BY_HAND
    seed: int = option(
        "--seed",
        "Seed of all random choices; the same seed gives the same history. Default: 1.",
        "number",
        default=1,
        within=(0, SEED_LIMIT),
        is_repeated=True,
    )
    time: str = option(
        "--time",
        "Kind of time. Default: virtual; real for locks whose servers' clocks cannot be moved.",
        default="virtual",
        metavar="virtual|real",
        is_repeated=True,
    )
    store: str | None = option(
        "--store",
        "What the resource refuses. open (default): nothing; fence-writes, fence-reads-and-writes: stale fencing "
        "tokens; compare-owner: writes by a client that was not the last reader; compare-and-set: writes based on an "
        "old version. table-open and so on: the same in a PostgreSQL table.",
        metavar="MODE",
    )
    lease_ms: int | None = option(
        "--lease",
        "Lease of the lock, such as 500ms. Default: 30s in virtual time, shorter in real time.",
        "duration",
        within=(1, LEASE_LIMIT_MS),
    )
    clients: int | None = option(
        "--clients",
        "Number of clients, in scenarios that let you choose (contention). More than "
        f"{CLIENT_LIMIT} share a few processes, in real time.",
        "number",
        within=(1, GROUPED_CLIENT_LIMIT),
    )
    duration_ms: int | None = option(
        "--duration",
        "Length of the workload, in scenarios that let you choose (contention).",
        "duration",
        within=(1, DURATION_LIMIT_MS),
    )
    require: str | None = option(
        "--require",
        f"Properties that decide the exit status, of {', '.join(PROPERTIES)}. Default: {', '.join(REQUIRED)}, as far "
        "as they apply.",
        "names",
        metavar="PROPERTY",
    )
    permits: int | None = option(
        "--permits",
        "Number of clients that may hold a semaphore at once, or of messages in an outbox. Default: 1.",
        "number",
        within=(1, PERMIT_LIMIT),
    )
    server: str | None = option("--server", SERVER_HELP, metavar="PROGRAM")
    without: str | None = option("--without", LACKING_HELP, "names", metavar="COMMAND")
    config: str | None = option("--config", CONFIG_HELP, metavar="FILE")
    control: bool = option(
        "--control", "Play the schedule without its fault, or with the fault inside the lease.", "flag"
    )
    fixed_lease: bool = option("--fixed-lease", "Disable the lock's watchdog: nothing renews the lease.", "flag")
    checks_validity: bool = option(
        "--checks-validity",
        "Let clients look at their clock before each write, and not write when the stated validity is over. "
        "Without a stated validity they always write.",
        "flag",
    )
    counter: int = 0
    nodes: int = 1
    replicas: int = 0  # of each node
    topology: Topology = "single"  # or a master under three sentinels, or a cluster of three masters: in real time
    direct: bool = False  # links lead straight to the servers: no fault can change messages
    settable_clocks: bool = False  # in real time: redis-servers read a clock that faults can set
    persistence: Persistence = "none"  # of every redis-server; deployed: what `deployment` says, or aof
    server_options: tuple[str, ...] = ()  # of every redis-server: ("--maxmemory", "100mb")
    pooled: bool = False  # clients reach PostgreSQL through PgBouncer, in transaction mode; in a control, session mode
    resource: bytes = RESOURCE
    history_records: int = 1 << 18
    parameters: dict[str, int] = field(default_factory=dict)
    command: str = ""  # what repeats the trial, where the parameters in its history do not say it
    compared_with: str = ""  # the right lock whose expected verdicts a violation is compared with
    also_require: tuple[str, ...] = ()  # properties that decide besides the usual ones
    deployment: Deployment | None = None  # what `config` says
    elections: Elections = field(default_factory=Elections)
    attached: Gateway | None = None  # to servers that the trial does not start; in real time
    grouped_clients: int = 0  # more than 0: so many clients at most share a few processes (client_groups.py)
    pace: int = 1  # in real time: on a machine that stands still, clients wait this many times as long for an answer


def deployed(settings: TrialSettings, service: str) -> TrialSettings:
    """The settings of a trial on the servers that its `deployment` describes: the servers' program, the replicas that a
    master needs to take writes, and what is written to disk. A control has the file on disk that it asks for."""
    deployment, nodes = (
        settings.deployment.on(service, settings.time, settings.nodes)
        if settings.deployment
        else (None, settings.nodes)
    )
    decides = deployment is not None and deployment.is_redis_configured and not settings.control
    if settings.persistence == "deployed":
        settings = replace(settings, persistence="none" if decides else "aof")
    if not deployment:
        return settings
    if service in ENSEMBLES:
        return replace(settings, deployment=deployment, nodes=nodes)
    if service == "postgres":
        replicas = max(settings.replicas, int(deployment.waits_for_standby))
        return replace(settings, deployment=deployment, replicas=replicas)
    return replace(
        settings,
        deployment=deployment,
        server=settings.server or deployment.server,
        without=settings.without or deployment.without,
        replicas=max(settings.replicas, deployment.replicas),
        elections=deployment.elections,
    )


def lease_late_in(settings: TrialSettings, lock: LockEntry) -> int:
    """How long after its end a lease may still keep other clients out, on the servers of this trial."""
    given = settings.deployment.given(lock.service) if settings.deployment else {}
    return LEASE_LATE_MS.get(lock.service, 0) + lease_late_by_settings_ms(lock.service, given)


def at_pace(settings: TrialSettings, pace: int, *, lease_is_chosen: bool = False) -> TrialSettings:
    """The settings of a trial that is played again because the machine stood still: it bears stalls that are `pace`
    times as long. Clients wait longer for answers, and a lease that is shorter than that becomes longer too, unless
    the user has chosen it."""
    if settings.time != "real" or pace == 1:
        return settings
    lease_ms = settings.lease_ms
    if lease_ms and not lease_is_chosen:
        lease_ms = max(lease_ms, pace * min(lease_ms, REPLY_LIMIT_MS))
    return replace(settings, lease_ms=lease_ms, pace=pace)
