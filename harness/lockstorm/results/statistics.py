"""How often something happens: a rate estimated from a number of trials, with its confidence interval.

No hit in N trials does not mean a rate of 0: with 95 % confidence the rate is below about 3 / N (the rule of three;
J. A. Hanley, A. Lippman-Hand, "If nothing goes wrong, is everything all right?", JAMA 1983). With hits, the interval is
that of E. B. Wilson (1927): it stays within 0 and 1 and keeps its confidence for few trials and for rare events.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

Z_95 = 1.959963984540054  # 97.5 % of a normal distribution lie below
WORTH_SAYING, TOO_FEW = 0.5, "too few to say"
ALWAYS_COUNTED = ("passed", "failed", "inconclusive")  # also where there is no such case


@dataclass(frozen=True)
class Rate:
    """The share of trials with a hit, and the bounds of the true rate at 95 % confidence."""

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
        """Without a hit: the exact bound that the rule of three approximates."""
        if not self.trials:
            return 1.0
        return _wilson(self.hits, self.trials, +1) if self.hits else upper_bound(self.trials)

    @property
    def in_words(self) -> str:
        if not self.trials:
            return "no trials"
        if not self.hits:
            return unseen_in_words(self.trials)
        return f"{percent(self.share)}, {percent(self.low)} to {percent(self.high)} at 95 %"

    def __str__(self) -> str:
        return f"{self.hits:,} in {self.trials:,}: {self.in_words}" if self.trials else self.in_words


def upper_bound(trials: int, confidence: float = 0.95) -> float:
    """The highest rate that is compatible, at this confidence, with no hit in `trials` trials: about 3 / trials."""
    if trials <= 0:
        return 1.0
    return -math.expm1(math.log1p(-confidence) / trials)


def unseen_in_words(trials: int) -> str:
    """What `trials` trials without a hit are worth: "under 3 % at 95 %", or that there are too few of them to bound the
    rate by a half."""
    high = upper_bound(trials)
    return f"under {percent(high)} at 95 %" if high < WORTH_SAYING else TOO_FEW


def percent(share: float) -> str:
    """A share as text with two significant digits: "0.033 %", "4.6 %", "97 %"."""
    value = share * 100
    if value == 0 or value >= 10:
        return f"{value:.0f} %"
    return f"{float(f'{value:.1e}'):.12f}".rstrip("0").rstrip(".") + " %"


def count_outcomes(outcomes: Iterable[str]) -> str:
    """How many of several cases had which outcome, as a sentence: "Of 5 cases: 3 passed, 2 failed, 0 inconclusive"."""
    counts = {**dict.fromkeys(ALWAYS_COUNTED, 0), **Counter(outcomes)}
    total = sum(counts.values())
    told = [f"{count} {outcome.replace('-', ' ')}" for outcome, count in counts.items()]
    return f"Of {total} case{'s' if total != 1 else ''}: {', '.join(told)}"


def _wilson(hits: int, trials: int, side: int) -> float:
    """One end of Wilson's score interval."""
    share, z2 = hits / trials, Z_95 * Z_95
    middle = share + z2 / (2 * trials)
    reach = Z_95 * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials * trials))
    return min(1.0, max(0.0, (middle + side * reach) / (1 + z2 / trials)))
