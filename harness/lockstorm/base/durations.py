"""Durations as users write and read them: "500ms", "10s", "2min", "1h", and "forever" where there need be no end."""

import re

from lockstorm.base.errors import UsageError

UNITS_MS = {"h": 3_600_000, "min": 60_000, "s": 1_000, "ms": 1}
LONGEST_DIGITS = 15  # beyond any limit of an option, and within an integer of C
PATTERN = r"[0-9]*\.?[0-9]+(ms|s|min|m|h)"  # m: minutes, in policies of before
FOREVER_TEXT, FOREVER_MS = "forever", -1


def parse_duration_ms(text: str, usual_unit: str = "ms") -> int:
    """The duration in ms; a fraction of one is cut off. UsageError for anything else. The caller checks the range.
    `usual_unit`: for the hint about a bare number."""
    found = re.fullmatch(PATTERN, text, re.ASCII)
    if found and len(text) <= LONGEST_DIGITS:
        unit = found[1]
        return int(float(text.removesuffix(unit)) * UNITS_MS["min" if unit == "m" else unit])
    if text.isdecimal():
        raise UsageError(f"{text}: say the unit, as in {text}{usual_unit}")
    raise UsageError(f"{text!r}: a duration is a number and its unit, as in 500ms, 10s, 2min or 1h")


def duration_text(value_ms: int) -> str:
    """What parse_duration_ms reads, in the largest unit that needs no fraction."""
    if value_ms == FOREVER_MS:
        return FOREVER_TEXT
    unit = next(unit for unit in UNITS_MS if value_ms % UNITS_MS[unit] == 0) if value_ms else "ms"
    return f"{value_ms // UNITS_MS[unit]}{unit}"
