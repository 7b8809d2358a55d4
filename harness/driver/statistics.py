"""What a number of trials says about how often something happens.

Nothing seen in N trials does not mean never: with 95 % confidence it happens in fewer than about 3 in N (the rule of
three; J. A. Hanley, A. Lippman-Hand, "If nothing goes wrong, is everything all right?", JAMA 1983). For what was seen,
the interval of E. B. Wilson (1927), which stays within 0 and 1 and is honest for few trials and for rare events.
"""

import math
from dataclasses import dataclass

Z_95 = 1.959963984540054  # 97.5 % of a normal distribution lie below


@dataclass(frozen=True)
class Rate:
    """How often something happened, and between which rates the truth lies with 95 % confidence."""

    hits: int
    trials: int

    def __post_init__(self) -> None:
        if not 0 <= self.hits <= self.trials:
            raise ValueError(f"{self.hits} hits in {self.trials} trials")

    @property
    def share(self) -> float:
        return self.hits / self.trials if self.trials else math.nan

    @property
    def low(self) -> float:
        return _wilson(self.hits, self.trials, -1) if self.hits else 0.0

    @property
    def high(self) -> float:
        """With no hit at all: the rule of three, exactly."""
        if not self.trials:
            return 1.0
        return _wilson(self.hits, self.trials, +1) if self.hits else upper_bound(self.trials)

    @property
    def said(self) -> str:
        """What the number of hits says, in words."""
        if not self.trials:
            return "no trials"
        if not self.hits:
            return f"under {percent(self.high)} at 95 %"
        return f"{percent(self.share)}, {percent(self.low)} to {percent(self.high)} at 95 %"

    def __str__(self) -> str:
        return f"{self.hits:,} in {self.trials:,}: {self.said}" if self.trials else self.said


def upper_bound(trials: int, confidence: float = 0.95) -> float:
    """The rate that is too high, with this confidence, to have shown itself in no trial: about 3 / trials."""
    if trials <= 0:
        return 1.0
    return -math.expm1(math.log1p(-confidence) / trials)


def percent(share: float) -> str:
    """With two digits that mean something: "0.033 %", "4.6 %", "97 %"."""
    value = share * 100
    if value == 0 or value >= 10:
        return f"{value:.0f} %"
    return f"{float(f'{value:.1e}'):.12f}".rstrip("0").rstrip(".") + " %"


def _wilson(hits: int, trials: int, side: int) -> float:
    """One end of Wilson's score interval."""
    share, z2 = hits / trials, Z_95 * Z_95
    middle = share + z2 / (2 * trials)
    reach = Z_95 * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials * trials))
    return min(1.0, max(0.0, (middle + side * reach) / (1 + z2 / trials)))
