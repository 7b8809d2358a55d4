"""What the adapter says of aioredlock."""

from importlib.metadata import version

DELAY_MS = 50  # between two tries
HELLO = {
    "name": "aioredlock",
    "version": version("aioredlock"),
    "source": "aioredlock, aioredlock/algorithm.py",
    **dict.fromkeys(("lease", "renews"), True),
    "waits": "polling",
    "nodes": 3,
    "operations": ["renew", "status"],
}
LEASE = {"lease": ["given", "renewed"]}  # lock(lock_timeout=...); without it a watchdog extends internal_lock_timeout
HELLO_2 = {
    "threads": 8,
    "owner": "object",
    "cancel": True,
    "forms": [
        {"form": "lock, retry_count 1", "wait": ["none"], **LEASE},
        {"form": "lock, retry_count", "wait": ["time", "forever"], "wait_unit_ms": DELAY_MS, **LEASE},
    ],
    "of_object": ["wait_ms"],
    "lease_key": "{resource}",
    "renew_lease": True,
    "poll_ms": DELAY_MS,
    "timer_ms": DELAY_MS,  # a wait is a number of tries, whose timers together may be late by one of them
    "watchdog_divisor": 1,  # rounded down: it extends after 0.6 of a lease
}
