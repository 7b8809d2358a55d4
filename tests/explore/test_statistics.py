"""Intervals against what they promise: to contain the truth at least about 95 times in 100."""

import math

import pytest

from lockstorm.results.statistics import Rate, percent, unseen_in_words, upper_bound


@pytest.mark.parametrize(
    ("hits", "trials", "low", "high"),
    [
        (1, 10, 0.0179, 0.4042),  # R. G. Newcombe, Statistics in Medicine 17 (1998), and by hand
        (15, 148, 0.0624, 0.1605),
        (81, 263, 0.2553, 0.3662),
        (5, 5, 0.5655, 1.0),
    ],
)
def test_intervals_of_the_literature(hits: int, trials: int, low: float, high: float) -> None:
    rate = Rate(hits, trials)
    assert rate.low == pytest.approx(low, abs=1e-4)
    assert rate.high == pytest.approx(high, abs=1e-4)


def test_nothing_seen_is_the_rule_of_three() -> None:
    for trials in (30, 100, 3000, 10**6):
        bound = upper_bound(trials)
        assert bound < 3 / trials < bound * 1.06
        assert (1 - bound) ** trials == pytest.approx(0.05)
        assert Rate(0, trials).low == 0
        assert Rate(0, trials).high == bound
    assert upper_bound(0) == 1
    assert str(Rate(0, 3000)) == "0 in 3,000: under 0.1 % at 95 %"


def test_too_few_trials_bound_nothing() -> None:
    """Four without a hit leave a rate of a half possible, five do not: 1 - 0.05^(1/4) is 0.53, 1 - 0.05^(1/5) 0.45."""
    assert [Rate(0, trials).in_words for trials in (1, 2, 4)] == ["too few to say"] * 3
    assert [unseen_in_words(trials) for trials in (4, 5)] == ["too few to say", "under 45 % at 95 %"]


def chance(hits: int, trials: int, share: float) -> float:
    return math.comb(trials, hits) * share**hits * (1 - share) ** (trials - hits)


def test_intervals_cover_the_truth() -> None:
    """Exactly, over all that can come of 40 trials."""
    trials = 40
    covered = []
    for thousandth in range(20, 981, 20):
        share = thousandth / 1000
        within = (hits for hits in range(trials + 1) if Rate(hits, trials).low <= share <= Rate(hits, trials).high)
        covered.append(sum(chance(hits, trials, share) for hits in within))
    assert min(covered) > 0.9
    assert sum(covered) / len(covered) == pytest.approx(0.95, abs=0.015)


def test_ends_are_shares_and_lie_around_the_share() -> None:
    for trials in (1, 2, 7, 50):
        for hits in range(trials + 1):
            rate = Rate(hits, trials)
            assert 0 <= rate.low <= rate.share <= rate.high <= 1


def test_in_words() -> None:
    assert str(Rate(7, 20)) == "7 in 20: 35 %, 18 % to 57 % at 95 %"
    assert str(Rate(0, 0)) == "no trials"
    assert [percent(each) for each in (0, 0.00033, 0.046, 0.5)] == ["0 %", "0.033 %", "4.6 %", "50 %"]
    assert [percent(each) for each in (1, 1e-9, 0.0999)] == ["100 %", "0.0000001 %", "10 %"]
    assert (Rate(0, 0).low, Rate(0, 0).high) == (0, 1) and math.isnan(Rate(0, 0).share)
    with pytest.raises(ValueError, match="3 hits in 2"):
        Rate(3, 2)
