"""The demonstration: Kleppmann's first case on a real redis-server, broken and then fenced."""

from typing import Any

from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from harness.driver.narrate import Event, show_result
from harness.driver.play import Wish, play

ACTS = (
    (
        "1. The lock as everybody writes it",
        "SET key value NX PX 30000, deleted by its owner only. Client 1 reads a counter under the lock and is stopped "
        "before it writes, as by a garbage collection. Its lease runs out.",
        Wish("gc-pause", "set-nx-px", "open"),
        {"mutual_exclusion": "violated", "integrity": "violated"},
        "Two clients were in the critical section, and one of two acknowledged increments is gone.",
    ),
    (
        "2. The same schedule, with a fencing token",
        "Every grant carries a number that only rises, and the store refuses whoever comes with an older one than it "
        "has seen.",
        Wish("gc-pause", "set-nx-px-fenced", "fence-reads-and-writes"),
        {"mutual_exclusion": "violated", "integrity": "holds", "fencing": "holds"},
        "The lock failed in the same way - no lease can prevent that - but the store did not take the damage.",
    ),
)


def perform(console: Console | None) -> dict[str, Any]:
    """Plays both acts; shows them on the console, if there is one. `exit`: 0 when each went as announced, 1 when one
    did not, 3 when one was inconclusive."""
    results = []
    status = 0
    for title, intro, wish, expected, moral in ACTS:
        events: list[Event] = []
        result = play(wish, story_to=events)
        as_announced = all(result["verdict"][name]["status"] == said for name, said in expected.items())
        if not as_announced:
            status = max(status, 3 if result["exit"] == 3 else 1)
        results.append({**result, "title": title, "as_announced": as_announced})
        if console:
            _show(console, title, intro, result, events, moral if as_announced else "This is not what was announced.")
    if console:
        _close(console, results)
    return {"trials": results, "ok": status == 0, "exit": status}


def _show(console: Console, title: str, intro: str, result: dict[str, Any], events: list[Event], moral: str) -> None:
    console.print(Rule(Text(title, "bold"), align="left"))
    console.print(intro)
    console.print()
    show_result(console, result, events)
    console.print(moral)
    console.print(Text(f"again: ./{result['replay']}", "dim"))
    console.print()


def _close(console: Console, results: list[dict[str, Any]]) -> None:
    lease_s = results[0]["lease_ms"] / 1000
    took_ms = sum(result["elapsed_ms"].get("scenario", 0.0) for result in results)
    console.print(
        f"A real redis-server {results[0]['versions'].get('redis-server', '')} under a virtual clock: "
        f"{len(results)} leases of {lease_s:g} s ran out in {took_ms:.0f} ms. "
        "The control, where the pause ends within the lease: ./lockstorm run gc-pause --lock set-nx-px --control"
    )
