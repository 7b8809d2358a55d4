"""`lockstorm demo`: famous failures of distributed locks on real servers, and what prevents the damage of each."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

import click
import msgspec
from msgspec import structs
from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from lockstorm.base import paths
from lockstorm.base.paths import runnable
from lockstorm.cli.options import json_option
from lockstorm.cli.terminal import console, print_json, waiting
from lockstorm.locks.lock_names import lock_named
from lockstorm.matrix.matrix_table import STYLE
from lockstorm.report.story import story_table
from lockstorm.report.story_words import STANDING_STILL
from lockstorm.results.event import Event
from lockstorm.results.verdict import TrialResult
from lockstorm.scenario.play import play
from lockstorm.servers.services import missing
from lockstorm.trial.settings import TrialSettings

FENCE = "fence-reads-and-writes"
# Records that the rendering omits: the verdict says whether a fault was proved, and partitions only choose a majority.
HIDDEN_KINDS = ("acquire-invoke", "checkpoint", "phase")
HIDDEN_RULES = {"fault-inject": ("partition",), "rule": ("partition", "failover")}
MARGIN = 2
TEXT_WIDTH = 100

Statuses = dict[str, str]
BOTH_BROKEN: Statuses = {"mutual_exclusion": "violated", "integrity": "violated"}
FENCED: Statuses = {"mutual_exclusion": "violated", "integrity": "holds", "fencing": "holds"}
SAFE: Statuses = {"mutual_exclusion": "holds", "integrity": "holds"}


@dataclass(frozen=True)
class Scene:
    """One trial: its request, the expected statuses and result, and what they mean."""

    request: TrialSettings
    lock: str  # for the summary
    announced: Statuses
    result: str
    moral: str


@dataclass(frozen=True)
class Act:
    title: str
    short: str  # for the summary
    intro: str
    broken: Scene
    saved: Scene


ACTS = (
    Act(
        "1. The pause",
        "a pause",
        "SET key value NX PX 30000, deleted by its owner only: the usual lock. Client 1 reads a counter "
        " under the lock and is stopped before it writes, as by a garbage collection. Its lease runs out.",
        Scene(
            TrialSettings("set-nx-px", "gc-pause", store="open"),
            "SET NX PX",
            BOTH_BROKEN,
            "violated",
            "Two clients were in the critical section, and one of two acknowledged increments is gone.",
        ),
        Scene(
            TrialSettings("set-nx-px-fenced", "gc-pause", store=FENCE),
            "fencing token",
            FENCED,
            "fenced",
            "The same with a fencing token: a number that rises with every grant. The lock failed just the same - no "
            "lease can prevent that - but the store had seen token 2 and refused token 1.",
        ),
    ),
    Act(
        "2. The packet that comes late",
        "a late packet",
        "No process is paused and no lease runs out. Client 1's write stays in the network; it gives up waiting, "
        "releases, and client 2 does its work. Then the write arrives. No lock service can prevent this.",
        Scene(
            TrialSettings("set-nx-px", "packet-delay", store="open"),
            "SET NX PX",
            {"mutual_exclusion": "holds", "integrity": "violated"},
            "violated",
            "Mutual exclusion held all the time, and the update is lost all the same.",
        ),
        Scene(
            TrialSettings("set-nx-px-fenced", "packet-delay", store=FENCE),
            "fencing token",
            {**SAFE, "fencing": "holds"},
            "holds",
            "With a token, the store recognises the late write and refuses it.",
        ),
    ),
    Act(
        "3. The clock that jumps",
        "a clock that jumps",
        "Redlock: a majority of five independent servers. Client 1 has nodes 1, 2 and 3. The clock of node 3 jumps "
        "past the lease, and nodes 3, 4 and 5 are a majority for client 2.",
        Scene(
            TrialSettings("redlock", "clock-jump-node", store="open"),
            "Redlock",
            BOTH_BROKEN,
            "violated",
            "No process was slow and none crashed: one clock of five was enough.",
        ),
        Scene(
            TrialSettings("redlock", "clock-jump-node", store="open", control=True),
            "steady clocks",
            SAFE,
            "holds",
            "The same schedule with a clock that stays: client 2 gets two nodes of five and waits. Redlock gives no "
            "token that a store could check, so its safety rests on the clocks.",
        ),
    ),
    Act(
        "4. The pause after the check",
        "a pause after the check",
        "Redlock measures how long the majority took and does not accept a grant that is too old. Client 1 passes that "
        "check - and is stopped right after it.",
        Scene(
            TrialSettings("redlock", "pause-after-validity-check", store="open"),
            "Redlock",
            {"mutual_exclusion": "holds", "integrity": "violated"},
            "violated",
            "It knew until when its grant was valid, so it no longer believed in it. It wrote all the same: between "
            "any check and the write there is room for a pause.",
        ),
        Scene(
            TrialSettings("set-nx-px-fenced", "pause-after-validity-check", store=FENCE),
            "fencing token",
            FENCED,
            "fenced",
            "Only the store can check at the right moment, when the write arrives. Here it refuses even the read.",
        ),
    ),
    Act(
        "5. The failover",
        "a failover",
        "A fencing token, and a store that checks it. But the master that grants the lock and counts the tokens fails "
        "before its replica has heard of either; the replica takes over.",
        Scene(
            TrialSettings("set-nx-px-fenced", "failover-unreplicated", store=FENCE),
            "fencing token",
            {**BOTH_BROKEN, "fencing": "violated"},
            "violated",
            "The counter went back with the lock: both clients have token 1, and the store cannot tell them apart. A "
            "token is as good as the counter it comes from.",
        ),
        Scene(
            TrialSettings("replica-wait", "failover-unreplicated", store="open"),
            "WAIT for a replica",
            SAFE,
            "holds",
            "A lock that is only granted when the replica has it survives this one. With two replicas the other one "
            "may take over: see failover-half-replicated.",
        ),
    ),
    Act(
        "6. The pause, on ZooKeeper",
        "a pause, on ZooKeeper",
        "The usual advice is to use ZooKeeper instead: its recipe is an ephemeral node in a queue, in a session that "
        "heartbeats keep. Client 1 is stopped before it writes, and its heartbeats with it. The session runs out.",
        Scene(
            TrialSettings("zookeeper", "gc-pause", store="open"),
            "ZooKeeper",
            BOTH_BROKEN,
            "violated",
            "ZooKeeper loses exclusion, too: its node went with the session, and a stopped client cannot be notified. "
            "A consensus protocol makes the lock's server right, not its clients.",
        ),
        Scene(
            TrialSettings("zookeeper", "gc-pause", store=FENCE),
            "and its token",
            FENCED,
            "fenced",
            "Its token saves you: the czxid, the number of the change that created the node, rises over everything "
            "that can happen to a server. But only a resource that looks at it refuses the late write.",
        ),
    ),
)


class SceneResult(TrialResult, frozen=True, kw_only=True, omit_defaults=True, rename={"properties": "verdict"}):
    title: str  # of the act
    word: str  # the expected result
    as_announced: bool


class Tour(msgspec.Struct, frozen=True):
    """What `lockstorm demo --json` prints."""

    trials: list[SceneResult]
    ok: bool
    exit: int  # 0: every trial went as announced; 1: one did not; 3: every deviation is inconclusive


def perform(console: Console | None) -> Tour:
    """Plays all acts; shows them on the console, if there is one."""
    results = []
    acts = [act for act in ACTS if not missing_for_demo(act)]
    for act in acts:
        if console:
            headline(console, act.title)
            print_paragraph(console, act.intro)
        for scene in (act.broken, act.saved):
            events: list[Event] = []
            result = play(scene.request, story_to=events)
            as_announced = all(result.properties[name].status == status for name, status in scene.announced.items())
            in_tour = structs.asdict(result)
            results.append(SceneResult(**in_tour, title=act.title, word=scene.result, as_announced=as_announced))
            if console:
                show_scene(console, scene, result, events, as_announced, whole=scene is act.broken)
    strange = [result.exit for result in results if not result.as_announced]
    if console:
        for act in ACTS:
            if reason := missing_for_demo(act):
                how = "" if paths.IS_INSTALLED else "; make deps-all installs it"
                print_paragraph(console, f"Left out: {act.title} ({reason}{how}).", "dim")
        show_summary(console, acts, results)
    return Tour(results, not strange, 0 if not strange else 3 if set(strange) == {3} else 1)


def missing_for_demo(act: Act) -> str:
    """Why this machine cannot play the act; empty if it can."""
    return missing(lock_named(act.broken.request.lock).service)


def headline(console: Console, text: str) -> None:
    console.print(Rule(Text(text, "bold"), align="left"), width=min(console.width, TEXT_WIDTH))


def print_paragraph(console: Console, text: str, style: str = "") -> None:
    console.print(Text(text, style), width=min(console.width, TEXT_WIDTH), soft_wrap=False)


def show_scene(
    console: Console, scene: Scene, result: TrialResult, events: list[Event], as_announced: bool, whole: bool
) -> None:
    """Prints the rendered history (`whole`, or if it is not as announced), the verdict and the moral."""
    console.print()
    if whole or not as_announced:
        console.print(story_table(events, is_shown=is_shown), "")
    style = STYLE[scene.result] if as_announced else "bold yellow"
    console.print(Text(f"{result.sentence}.", style))
    print_paragraph(console, scene.moral if as_announced else "This is not what was announced.")
    console.print(Text(f"again: {runnable(demo_words(scene.request))}", "dim"), soft_wrap=True)
    if not whole:
        console.print()


def is_shown(event: Event) -> bool:
    name, kind = str(event.name), event.kind
    if kind in ("fault-prove", "fault-heal"):
        return name in STANDING_STILL
    return kind not in HIDDEN_KINDS and not (kind in ("fault-inject", "rule") and name.startswith(HIDDEN_RULES[kind]))


def demo_words(request: TrialSettings) -> str:
    """The command of the trial, without options that have their default."""
    store = f" --store {request.store}" if request.store != "open" else ""
    return f"lockstorm run {request.scenario} --lock {request.lock}{store}{' --control' if request.control else ''}"


def show_summary(console: Console, acts: Sequence[Act], results: list[SceneResult]) -> None:
    headline(console, "What you have seen")
    table = Table(box=None, padding=(0, MARGIN, 0, 0), show_header=False)
    for number, act in enumerate(acts):
        cells: list[Text] = [Text(act.short)]
        for scene, result in zip((act.broken, act.saved), results[2 * number :], strict=False):
            text = scene.result if result.as_announced else "not as announced"
            cells += [Text(f"{scene.lock}:", "dim"), Text(text, STYLE.get(text, "bold yellow"))]
        table.add_row(*cells)
    console.print(table, "")
    versions = {name: version for result in results for name, version in result.versions.items()}
    on_what = ", ".join(f"{name} {version}" for name, version in versions.items() if name != "java")
    took_s = sum(sum(result.elapsed_ms.values()) for result in results) / 1000
    print_paragraph(
        console,
        f"{len(results)} trials on real servers ({on_what}) in {took_s:.1f} s: under a "
        "virtual clock a lease of 30 s runs out in milliseconds, and the same seed gives the same history, byte for "
        "byte.",
    )
    console.print()
    following: tuple[tuple[str, str], ...] = (
        ("lockstorm matrix --lock redlock", "one lock in every scenario"),
        ("lockstorm advise", "which lock survives what"),
        ("lockstorm storm --lock set-nx-px", "random faults"),
        ("lockstorm scenarios", "the scenarios, with their sources"),
    )
    steps = Table(box=None, padding=(0, MARGIN, 0, 0), show_header=False)
    for command, meaning in following:
        steps.add_row(Text(runnable(command), "bold"), meaning)
    console.print(steps)


@click.command("demo")
@json_option
def demo_command(as_json: bool) -> int:
    """Play famous failures of distributed locks on real servers, and what prevents the damage of each.

    \b
    Example: lockstorm demo
    """
    with waiting("ten trials ...") if as_json else contextlib.nullcontext():
        done = perform(None if as_json else console())
    if as_json:
        print_json(done)
    return int(done.exit)
