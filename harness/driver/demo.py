"""The tour: famous ways in which a distributed lock fails, on real servers, and what saves each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from harness.driver.matrix_table import STYLE
from harness.driver.narrate import STANDING_STILL, Event, story_table
from harness.driver.play import Wish, lock_named, play
from harness.driver.services import missing

FENCE = "fence-reads-and-writes"
# What a reader of the story does not need: that a fault was proved is in the verdict, cuts only choose a majority.
UNTOLD_KINDS = ("acquire-invoke", "checkpoint", "phase")
UNTOLD_RULES = {"fault-inject": ("partition",), "rule": ("partition", "failover")}
MARGIN = 2
TEXT_WIDTH = 100

Statuses = dict[str, str]
BOTH_BROKEN: Statuses = {"mutual_exclusion": "violated", "integrity": "violated"}
FENCED: Statuses = {"mutual_exclusion": "violated", "integrity": "holds", "fencing": "holds"}
SAFE: Statuses = {"mutual_exclusion": "holds", "integrity": "holds"}


@dataclass(frozen=True)
class Scene:
    """One trial: what it is about, what it comes to, and what to think of that."""

    wish: Wish
    lock: str  # for the summary
    announced: Statuses
    word: str
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
        "SET key value NX PX 30000, deleted by its owner only: the lock as everybody writes it. Client 1 reads a "
        "counter under the lock and is stopped before it writes, as by a garbage collection. Its lease runs out.",
        Scene(
            Wish("gc-pause", "set-nx-px", "open"),
            "SET NX PX",
            BOTH_BROKEN,
            "violated",
            "Two clients were in the critical section, and one of two acknowledged increments is gone.",
        ),
        Scene(
            Wish("gc-pause", "set-nx-px-fenced", FENCE),
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
        "Nobody is paused and no lease runs out. Client 1's write stays in the network; it gives up waiting, releases, "
        "and client 2 does its work. Then the write arrives. No lock service can prevent this.",
        Scene(
            Wish("packet-delay", "set-nx-px", "open"),
            "SET NX PX",
            {"mutual_exclusion": "holds", "integrity": "violated"},
            "violated",
            "Mutual exclusion held all the time, and the update is lost all the same.",
        ),
        Scene(
            Wish("packet-delay", "set-nx-px-fenced", FENCE),
            "fencing token",
            {**SAFE, "fencing": "holds"},
            "holds",
            "With a token the store knows the late write for what it is.",
        ),
    ),
    Act(
        "3. The clock that jumps",
        "a clock that jumps",
        "Redlock: a majority of five independent servers. Client 1 has nodes 1, 2 and 3. The clock of node 3 jumps "
        "past the lease, and nodes 3, 4 and 5 are a majority for client 2.",
        Scene(
            Wish("clock-jump-node", "redlock", "open"),
            "Redlock",
            BOTH_BROKEN,
            "violated",
            "Nobody was slow and nobody crashed: one clock of five was enough.",
        ),
        Scene(
            Wish("clock-jump-node", "redlock", "open", control=True),
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
            Wish("pause-after-validity-check", "redlock", "open"),
            "Redlock",
            {"mutual_exclusion": "holds", "integrity": "violated"},
            "violated",
            "It knew until when its grant was valid, so it no longer believed in it. It wrote all the same: between "
            "any check and the write there is room for a pause.",
        ),
        Scene(
            Wish("pause-after-validity-check", "set-nx-px-fenced", FENCE),
            "fencing token",
            FENCED,
            "fenced",
            "Only whoever takes the write can look at the right moment: the store does not even let it read.",
        ),
    ),
    Act(
        "5. The failover",
        "a failover",
        "A fencing token, and a store that checks it. But the master that grants the lock and counts the tokens fails "
        "before its replica has heard of either; the replica takes over.",
        Scene(
            Wish("failover-unreplicated", "set-nx-px-fenced", FENCE),
            "fencing token",
            {**BOTH_BROKEN, "fencing": "violated"},
            "violated",
            "The counter went back with the lock: both clients have token 1, and the store cannot tell them apart. A "
            "token is as good as the counter it comes from.",
        ),
        Scene(
            Wish("failover-unreplicated", "replica-wait", "open"),
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
        "What everybody is told to use instead: ZooKeeper's recipe, an ephemeral node in a queue, in a session that "
        "heartbeats keep. Client 1 is stopped before it writes, and its heartbeats with it. The session runs out.",
        Scene(
            Wish("gc-pause", "zookeeper", "open"),
            "ZooKeeper",
            BOTH_BROKEN,
            "violated",
            "ZooKeeper loses exclusion, too: its node went with the session, and nobody could tell a client that stood "
            "still. A consensus protocol makes the lock's server right, not its clients.",
        ),
        Scene(
            Wish("gc-pause", "zookeeper", FENCE),
            "and its token",
            FENCED,
            "fenced",
            "Its token saves you: the czxid, the number of the change that created the node, rises over everything "
            "that can happen to a server. But only a resource that looks at it refuses the late write.",
        ),
    ),
)


def perform(console: Console | None) -> dict[str, Any]:
    """Plays all acts; shows them on the console, if there is one. `exit`: 0 when each went as announced, 1 when one
    did not, 3 when one was inconclusive."""
    results = []
    acts = [act for act in ACTS if not missing_for(act)]
    for act in acts:
        if console:
            headline(console, act.title)
            say(console, act.intro)
        for scene in (act.broken, act.saved):
            events: list[Event] = []
            result = play(scene.wish, story_to=events)
            as_announced = all(result["verdict"][name]["status"] == said for name, said in scene.announced.items())
            results.append({**result, "title": act.title, "word": scene.word, "as_announced": as_announced})
            if console:
                show_scene(console, scene, result, events, as_announced, whole=scene is act.broken)
    strange = [result["exit"] for result in results if not result["as_announced"]]
    if console:
        for act in ACTS:
            if reason := missing_for(act):
                say(console, f"Left out: {act.title} ({reason}).", "dim")
        show_summary(console, acts, results)
    return {"trials": results, "ok": not strange, "exit": 0 if not strange else 3 if set(strange) == {3} else 1}


def missing_for(act: Act) -> str:
    """Why it cannot be played here; empty: it can."""
    return missing(lock_named(act.broken.wish.lock)["service"])


def headline(console: Console, text: str) -> None:
    console.print(Rule(Text(text, "bold"), align="left"), width=min(console.width, TEXT_WIDTH))


def say(console: Console, text: str, style: str = "") -> None:
    """A paragraph of a width that reads well."""
    console.print(Text(text, style), width=min(console.width, TEXT_WIDTH), soft_wrap=False)


def show_scene(
    console: Console, scene: Scene, result: dict[str, Any], events: list[Event], as_announced: bool, whole: bool
) -> None:
    """Its story - of what saves only the verdict -, its verdict, its moral."""
    console.print()
    if whole or not as_announced:
        console.print(story_table(events, told=is_told))
        console.print()
    style = STYLE[scene.word] if as_announced else "bold yellow"
    console.print(Text(f"{result['sentence']}.", style))
    say(console, scene.moral if as_announced else "This is not what was announced.")
    console.print(Text(f"again: ./{in_short(scene.wish)}", "dim"), soft_wrap=True)
    if not whole:
        console.print()


def is_told(event: Event) -> bool:
    """Whether a record belongs in the story of a tour."""
    name, kind = str(event.get("name")), event["kind"]
    if kind in ("fault-prove", "fault-heal"):
        return name in STANDING_STILL
    return kind not in UNTOLD_KINDS and not (kind in ("fault-inject", "rule") and name.startswith(UNTOLD_RULES[kind]))


def in_short(wish: Wish) -> str:
    """The command, without what is usual."""
    store = f" --store {wish.store}" if wish.store != "open" else ""
    return f"lockstorm run {wish.scenario} --lock {wish.lock}{store}{' --control' if wish.control else ''}"


def show_summary(console: Console, acts: Sequence[Act], results: list[dict[str, Any]]) -> None:
    """What was seen, in a table, and where to go on."""
    headline(console, "What you have seen")
    table = Table(box=None, padding=(0, MARGIN, 0, 0), show_header=False)
    for number, act in enumerate(acts):
        cells: list[Text] = [Text(act.short)]
        for scene, result in zip((act.broken, act.saved), results[2 * number :], strict=False):
            word = scene.word if result["as_announced"] else "not as announced"
            cells += [Text(f"{scene.lock}:", "dim"), Text(word, STYLE.get(word, "bold yellow"))]
        table.add_row(*cells)
    console.print(table)
    console.print()
    versions = {name: version for result in results for name, version in result["versions"].items()}
    on_what = ", ".join(f"{name} {version}" for name, version in versions.items() if name != "java")
    took_s = sum(sum(result["elapsed_ms"].values()) for result in results) / 1000
    say(
        console,
        f"{len(results)} trials on real servers ({on_what}) in {took_s:.1f} s: under a "
        "virtual clock a lease of 30 s runs out in milliseconds, and the same seed gives the same history, byte for "
        "byte.",
    )
    console.print()
    following: tuple[tuple[str, str], ...] = (
        ("./lockstorm matrix --lock redlock", "one lock in every story"),
        ("./lockstorm advise", "which lock survives what"),
        ("./lockstorm storm --lock set-nx-px", "random faults"),
        ("./lockstorm scenarios", "the stories, with their sources"),
    )
    steps = Table(box=None, padding=(0, MARGIN, 0, 0), show_header=False)
    for command, meaning in following:
        steps.add_row(Text(command, "bold"), meaning)
    console.print(steps)
