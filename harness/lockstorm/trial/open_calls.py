"""Calls that have not come back: what a trial in real time waits for."""

from collections.abc import Iterable

from lockstorm.results.event import Event

LONG_NS = 3_000_000_000
CALLS = ("acquire", "renew", "release")


def open_calls(events: Iterable[Event], now_ns: int) -> str:
    """ "client-2 has waited 4 s for its acquire"; empty: none is under way for so long."""
    began: dict[str, tuple[str, int]] = {}
    for event in events:
        call, _, step = event.kind.partition("-")
        if call in CALLS and step == "invoke":
            began[str(event.actor)] = call, event.mono_ns
        elif call in CALLS and step == "return":
            began.pop(str(event.actor), None)
        elif event.kind == "actor-exit":
            began.pop(str(event.name), None)
    late = {who: (call, now_ns - since_ns) for who, (call, since_ns) in began.items() if now_ns - since_ns >= LONG_NS}
    return ", ".join(f"{who} has waited {for_ns // 10**9} s for its {call}" for who, (call, for_ns) in late.items())
