"""The tables of lockstorm.toml and their keys: docs/lockstorm.schema.json is made from these types, and they say which
keys there are. gate_policy.py reads a file, and says which line of it is wrong."""

from typing import Annotated

import msgspec
from msgspec import Meta

from lockstorm.base.table_fields import DURATION, LEFT_OUT, AnyNames, Names, about, keys_of, number, text
from lockstorm.results.gate_verdict import Day, StoreName, Time
from lockstorm.results.properties import JUDGED
from lockstorm.search.application_plan import APPLICATION_PROPERTIES
from lockstorm.search.search_plan import SCHEDULES_MOST
from lockstorm.servers.deployment_tables import DeploymentTable
from lockstorm.trial.settings import PERMIT_LIMIT

REPEAT_LIMIT = 1_000
CLIENTS_LIMIT = 64
NAME = "[a-z0-9]+(-[a-z0-9]+)*"  # of a storm


PropertyWord = Annotated[
    str, Meta(extra_json_schema={"enum": list(dict.fromkeys([*JUDGED, *(name.replace("_", "-") for name in JUDGED)]))})
]
PropertyNames = PropertyWord | Annotated[list[PropertyWord], Meta(min_length=1)]
RuleWord = Annotated[str, Meta(extra_json_schema={"enum": list(APPLICATION_PROPERTIES)})]
RuleNames = RuleWord | Annotated[list[RuleWord], Meta(min_length=1)]
OF_STORE = "Of locks with this store mode."


class LockTable(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A lock that the project relies on, and what has to hold."""

    name: Annotated[str, text("`lockstorm locks` lists them.")] = LEFT_OUT
    adapter: Annotated[
        str,
        text(
            "In the place of name: a lock library through an adapter, as a path from the policy, or the name of "
            "a shipped one."
        ),
    ] = LEFT_OUT
    plugin: Annotated[
        str, text("In the place of name: your own lock in C, a shared object, as a path from the policy.")
    ] = LEFT_OUT
    store: Annotated[StoreName, Meta(description="What the protected resource does with late writes.")] = "open"
    require: Annotated[PropertyNames, about("Instead of what [require] says for this store mode.")] = LEFT_OUT
    used: Annotated[
        str, text("Where the project chooses it, for annotations: path, or path:line, relative to the policy.")
    ] = LEFT_OUT
    lease: Annotated[str, text("How long a grant lasts that nobody renews.", DURATION)] = LEFT_OUT
    permits: Annotated[int, number("How many may hold a semaphore at once.", 1, PERMIT_LIMIT)] = LEFT_OUT
    fixed_lease: Annotated[bool, about("Of locks with a watchdog: the lease is fixed, nothing renews it.")] = LEFT_OUT
    checks_validity: Annotated[
        bool,
        about(
            "Clients look at their clock before each write, and do not write when the validity that the lock "
            "stated is over."
        ),
    ] = LEFT_OUT


class AppTable(
    msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, rename={"excepted": "except"}
):
    """An application that the project runs: its schedules are searched (docs/applications.md)."""

    file: Annotated[str, Meta(min_length=1, description="lockstorm-app.toml, as a path from the policy.")]
    name: Annotated[str, text("Of the case. Default: the name of the application.")] = LEFT_OUT
    require: Annotated[RuleNames, about("What has to hold. Default: check and answer.")] = LEFT_OUT
    excepted: Annotated[RuleNames, about("Of what is required, all but these.")] = LEFT_OUT
    schedules: Annotated[int, number("Number of schedules to play.", 1, SCHEDULES_MOST)] = LEFT_OUT
    time_limit: Annotated[str, text("Longest time to search. Default without schedules: 60s.", DURATION)] = LEFT_OUT
    seed: Annotated[int, number("The same seed tries the same schedules. Default: 1.", 0)] = LEFT_OUT
    faults: Annotated[Names, about("As --faults of explore has them: none, usual, or FAULT=N. Default: usual.")] = (
        LEFT_OUT
    )


class RequireTable(
    msgspec.Struct,
    forbid_unknown_fields=True,
    omit_defaults=True,
    rename={"fence_writes": "fence-writes", "fence_reads_and_writes": "fence-reads-and-writes"},
):
    """The properties that have to hold, by what the resource does with late writes."""

    open: Annotated[PropertyNames, about(OF_STORE)] = LEFT_OUT
    fence_writes: Annotated[PropertyNames, about(OF_STORE)] = LEFT_OUT
    fence_reads_and_writes: Annotated[PropertyNames, about(OF_STORE)] = LEFT_OUT


class AttachTable(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Servers that are there already: the trials are played on them, in real time (docs/attach.md)."""

    url: Annotated[
        str,
        Meta(min_length=1, description="redis://, postgresql://, etcd:// or zookeeper://, without a password."),
    ]
    ca: Annotated[str, text("File with the certificates that sign the servers' (TLS), relative to the policy.")] = (
        LEFT_OUT
    )
    client_cert: Annotated[
        str, text("File with your own certificate for the servers (TLS), relative to the policy.")
    ] = LEFT_OUT
    client_key: Annotated[str, text("File with its key. Default: the file of the certificate.")] = LEFT_OUT
    yes: Annotated[bool, about("Play although the database, or its equivalent, is not empty.")] = LEFT_OUT


class ScenariosTable(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The scenarios to play with every lock to which they apply."""

    play: Annotated[AnyNames, about('"all" (default), a name, or names. `lockstorm scenarios` lists them.')] = LEFT_OUT
    skip: Annotated[AnyNames, about("All but these.")] = LEFT_OUT
    repeat: Annotated[int, number("Trials of each, with consecutive seeds. Default: 1.", 1, REPEAT_LIMIT)] = LEFT_OUT
    seed: Annotated[int, number("Of the first trial; the others count on.", 0)] = LEFT_OUT
    time: Annotated[Time, Meta(description="Default: virtual where possible, else real.")] = LEFT_OUT
    controls: Annotated[bool, about("Also play each without its fault. Default: true.")] = LEFT_OUT


class StormTable(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Random faults while clients work, drawn from a seed."""

    name: Annotated[str, Meta(pattern=f"^{NAME}$", description="It is called storm-NAME elsewhere.")]
    faults: Annotated[Names, about('Which faults; "all" (default): all that apply. `lockstorm faults` lists them.')] = (
        LEFT_OUT
    )
    trials: Annotated[int, number("Number of storms, with consecutive seeds. Default: 1.", 1)] = LEFT_OUT
    duration: Annotated[str, text("Default: 10s.", DURATION)] = LEFT_OUT
    clients: Annotated[int, number("How many want the lock. Default: 4.", 1, CLIENTS_LIMIT)] = LEFT_OUT
    lease: Annotated[str, text("Default: the lock's, or 1s.", DURATION)] = LEFT_OUT
    seed: Annotated[int, number("Of the first trial; the others count on.", 0)] = LEFT_OUT
    time: Time = LEFT_OUT


class BudgetTable(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What a gate may take."""

    time: Annotated[str, text("What has not been played by then is inconclusive.", DURATION)] = LEFT_OUT
    trials: Annotated[int, number("A policy that asks for more is an error.", 1)] = LEFT_OUT


class AcceptTable(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A violation that is known."""

    lock: Annotated[str, Meta(min_length=1)]
    store: Annotated[StoreName, Meta(description="Left out: in every store mode.")] = LEFT_OUT
    scenario: Annotated[str, Meta(min_length=1, description="A scenario, or storm-NAME.")]
    property: Annotated[PropertyNames, about("What is violated; anything else still fails.")]
    why: Annotated[str, Meta(min_length=1, description="Why it is accepted.")]
    until: Annotated[Day, Meta(description="The last day on which it is accepted; after that it fails.")]


class RunsTable(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Where runs are kept."""

    directory: Annotated[str, text("Beside this file. Default: runs.")] = LEFT_OUT
    keep: Annotated[int, number("Number of runs to keep, the newest. Default: all.", 1)] = LEFT_OUT


class PolicyTables(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """The policy of `lockstorm gate`, which names locks or applications: docs/gate.md explains it. In TOML dates are
    written without quotes."""

    lock: Annotated[list[LockTable], Meta(min_length=1)] = LEFT_OUT
    app: Annotated[list[AppTable], Meta(min_length=1)] = LEFT_OUT
    require: RequireTable = LEFT_OUT
    deployment: DeploymentTable = LEFT_OUT
    attach: AttachTable = LEFT_OUT
    scenarios: ScenariosTable = LEFT_OUT
    storm: list[StormTable] = []
    budget: BudgetTable = LEFT_OUT
    accept: list[AcceptTable] = []
    runs: RunsTable = LEFT_OUT


KEYS = keys_of(PolicyTables)  # by table; "" is the top level
