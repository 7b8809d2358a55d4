"""Durations as users write them, on a command line and in a policy: "500ms", "10s", "1.5m", "1h"."""

import re
from contextlib import suppress

UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}
DURATION = re.compile(r"(-?\d*\.?\d+)(ms|s|m|h)")


def parse_duration_ms(text: str) -> int | None:
    """The duration in ms, a fraction cut off; None for another text. A caller checks the range."""
    found = DURATION.fullmatch(text)
    if found:
        with suppress(OverflowError):
            return int(float(found[1]) * UNITS_MS[found[2]])
    return None
