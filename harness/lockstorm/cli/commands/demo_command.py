"""`lockstorm demo`: famous failures of distributed locks on real servers, and what prevents the damage of each."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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

# Records that the rendering omits: the verdict says whether a fault was proved, and partitions only choose a majority.
HIDDEN_KINDS = ("acquire-invoke", "checkpoint", "phase")
HIDDEN_RULES = {"fault-inject": ("partition",), "rule": ("partition", "failover")}
PROXY = "proxy"
MARGIN = 2
TEXT_WIDTH = 100

Statuses = dict[str, str]


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
    why: str = ""  # one would want to see it, where its servers have to be installed first


SCRIPT = Path(__file__).with_suffix(".toml")
ACTS = msgspec.toml.decode(SCRIPT.read_bytes(), type=dict[str, tuple[Act, ...]])["act"]


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
                print_paragraph(console, f"Left out: {act.title} ({reason}{how}). {act.why}".strip(), "dim")
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
    if kind == "note" and event.who == PROXY:
        return False  # how it passes on what servers send each other
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
