"""The tables of lockstorm.toml and their keys: docs/lockstorm.schema.json is made from these types, and they say which
keys there are. gate_policy.py reads a file, and says which line of it is wrong."""

from typing import Annotated

import msgspec
from msgspec import Meta

from lockstorm.base.table_fields import DURATION, AnyNames, Names, about, keys_of, number, text
from lockstorm.results.gate_verdict import Day, StoreName, Time
from lockstorm.results.properties import JUDGED
from lockstorm.servers.deployment_tables import DeploymentTable
from lockstorm.trial.settings import PERMIT_LIMIT

REPEAT_LIMIT = 1_000
CLIENTS_LIMIT = 64
NAME = "[a-z0-9]+(-[a-z0-9]+)*"  # of a storm


PropertyWord = Annotated[
    str, Meta(extra_json_schema={"enum": list(dict.fromkeys([*JUDGED, *(name.replace("_", "-") for name in JUDGED)]))})
]
PropertyNames = PropertyWord | Annotated[list[PropertyWord], Meta(min_length=1)]
OF_STORE = "Of locks with this store mode."


class LockTable(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A lock that the project relies on, and what has to hold."""

    name: Annotated[str, text("`lockstorm locks` lists them.")] | None = None
    adapter: (
        Annotated[
            str,
            text(
                "In the place of name: a lock library through an adapter, as a path from the policy, or the name of "
                "a shipped one."
            ),
        ]
        | None
    ) = None
    plugin: (
        Annotated[str, text("In the place of name: your own lock in C, a shared object, as a path from the policy.")]
        | None
    ) = None
    store: Annotated[StoreName, Meta(description="What the protected resource does with late writes.")] = "open"
    require: Annotated[PropertyNames, about("Instead of what [require] says for this store mode.")] | None = None
    used: (
        Annotated[
            str, text("Where the project chooses it, for annotations: path, or path:line, relative to the policy.")
        ]
        | None
    ) = None
    lease: Annotated[str, text("How long a grant lasts that nobody renews.", DURATION)] | None = None
    permits: Annotated[int, number("How many may hold a semaphore at once.", 1, PERMIT_LIMIT)] | None = None
    fixed_lease: Annotated[bool, about("Of locks with a watchdog: the lease is fixed, nothing renews it.")] | None = (
        None
    )
    checks_validity: (
        Annotated[
            bool,
            about(
                "Clients look at their clock before each write, and do not write when the validity that the lock "
                "stated is over."
            ),
        ]
        | None
    ) = None


class RequireTable(
    msgspec.Struct,
    forbid_unknown_fields=True,
    omit_defaults=True,
    rename={"fence_writes": "fence-writes", "fence_reads_and_writes": "fence-reads-and-writes"},
):
    """The properties that have to hold, by what the resource does with late writes."""

    open: Annotated[PropertyNames, about(OF_STORE)] | None = None
    fence_writes: Annotated[PropertyNames, about(OF_STORE)] | None = None
    fence_reads_and_writes: Annotated[PropertyNames, about(OF_STORE)] | None = None


class AttachTable(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Servers that are there already: the trials are played on them, in real time (docs/attach.md)."""

    url: Annotated[
        str,
        Meta(min_length=1, description="redis://, postgresql://, etcd:// or zookeeper://, without a password."),
    ]
    ca: (
        Annotated[str, text("File with the certificates that sign the servers' (TLS), relative to the policy.")] | None
    ) = None
    client_cert: (
        Annotated[str, text("File with your own certificate for the servers (TLS), relative to the policy.")] | None
    ) = None
    client_key: Annotated[str, text("File with its key. Default: the file of the certificate.")] | None = None
    yes: Annotated[bool, about("Play although the database, or its equivalent, is not empty.")] | None = None


class ScenariosTable(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The scenarios to play with every lock to which they apply."""

    play: Annotated[AnyNames, about('"all" (default), a name, or names. `lockstorm scenarios` lists them.')] | None = (
        None
    )
    skip: Annotated[AnyNames, about("All but these.")] | None = None
    repeat: Annotated[int, number("Trials of each, with consecutive seeds. Default: 1.", 1, REPEAT_LIMIT)] | None = None
    seed: Annotated[int, number("Of the first trial; the others count on.", 0)] | None = None
    time: Annotated[Time, Meta(description="Default: virtual where possible, else real.")] | None = None
    controls: Annotated[bool, about("Also play each without its fault. Default: true.")] | None = None


class StormTable(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Random faults while clients work, drawn from a seed."""

    name: Annotated[str, Meta(pattern=f"^{NAME}$", description="It is called storm-NAME elsewhere.")]
    faults: (
        Annotated[Names, about('Which faults; "all" (default): all that apply. `lockstorm faults` lists them.')] | None
    ) = None
    trials: Annotated[int, number("Number of storms, with consecutive seeds. Default: 1.", 1)] | None = None
    duration: Annotated[str, text("Default: 10s.", DURATION)] | None = None
    clients: Annotated[int, number("How many want the lock. Default: 4.", 1, CLIENTS_LIMIT)] | None = None
    lease: Annotated[str, text("Default: the lock's, or 1s.", DURATION)] | None = None
    seed: Annotated[int, number("Of the first trial; the others count on.", 0)] | None = None
    time: Time | None = None


class BudgetTable(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What a gate may take."""

    time: Annotated[str, text("What has not been played by then is inconclusive.", DURATION)] | None = None
    trials: Annotated[int, number("A policy that asks for more is an error.", 1)] | None = None


class AcceptTable(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A violation that is known."""

    lock: Annotated[str, Meta(min_length=1)]
    store: Annotated[StoreName, Meta(description="Left out: in every store mode.")] | None = None
    scenario: Annotated[str, Meta(min_length=1, description="A scenario, or storm-NAME.")]
    property: Annotated[PropertyNames, about("What is violated; anything else still fails.")]
    why: Annotated[str, Meta(min_length=1, description="Why it is accepted.")]
    until: Annotated[Day, Meta(description="The last day on which it is accepted; after that it fails.")]


class RunsTable(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Where runs are kept."""

    directory: Annotated[str, text("Beside this file. Default: runs.")] | None = None
    keep: Annotated[int, number("Number of runs to keep, the newest. Default: all.", 1)] | None = None


class PolicyTables(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """The policy of `lockstorm gate`: docs/gate.md explains it. In TOML dates are written without
    quotes."""

    lock: Annotated[list[LockTable], Meta(min_length=1)]
    require: RequireTable | None = None
    deployment: DeploymentTable | None = None
    attach: AttachTable | None = None
    scenarios: ScenariosTable | None = None
    storm: list[StormTable] = []
    budget: BudgetTable | None = None
    accept: list[AcceptTable] = []
    runs: RunsTable | None = None


KEYS = keys_of(PolicyTables)  # by table; "" is the top level
