"""Many storms, of rising seeds, and what they come to together."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.driver.statistics import Rate
from harness.driver.storm import StormWish, blow, plan


def blow_many(
    storm: StormWish,
    tell: Callable[[str], object],
    *,
    save: Path | None = None,
    save_schedule: Path | None = None,
) -> dict[str, Any]:
    """Plays as many storms as are wanted, of rising seeds. The history and the schedule that are saved are those of the
    first storm in which something is violated."""
    summary = Summary(storm)
    for number in range(storm.trials):
        planned = plan(storm, storm.wish.seed + number)
        tell(f"{planned.settings.lock}, seed {planned.schedule.seed}")
        result = blow(planned, save=save)
        if result["exit"] == 1:
            if save_schedule and not summary.first:
                planned.schedule.save(save_schedule)
            save = None
        elif save:
            save.unlink(missing_ok=True)
        summary.add(result)
    return summary.as_json()


class Summary:
    """The results of several storms as one object."""

    def __init__(self, storm: StormWish) -> None:
        self.storm = storm
        self.first: dict[str, Any] | None = None  # in which something was violated
        self.unclear: dict[str, Any] | None = None  # the first that is inconclusive
        self.last: dict[str, Any] = {}
        self.counts = {"holds": 0, "violated": 0, "inconclusive": 0}
        self.properties: dict[str, dict[str, int]] = {}
        self.faults: dict[str, dict[str, Any]] = {}

    def add(self, result: dict[str, Any]) -> None:
        outcome = {0: "holds", 1: "violated"}.get(result["exit"], "inconclusive")
        self.counts[outcome] += 1
        self.last = result
        if outcome == "violated":
            self.first = self.first or result
        if outcome == "inconclusive":
            self.unclear = self.unclear or result
        for name in result["required"]:
            count = self.properties.setdefault(name, {"holds": 0, "violated": 0, "inconclusive": 0})
            count[result["verdict"][name]["status"]] += 1
        for fault in result["storm"]["faults"]:
            sums = self.faults.setdefault(fault["name"], {"name": fault["name"]})
            for key, value in fault.items():
                if key != "name":
                    sums[key] = sums.get(key, 0) + value

    @property
    def rate(self) -> Rate:
        """How often something was violated, among the storms that could be judged."""
        return Rate(self.counts["violated"], self.counts["violated"] + self.counts["holds"])

    @property
    def sentence(self) -> str:
        trials, rate = self.storm.trials, self.rate
        unclear = f", {self.counts['inconclusive']} inconclusive" if self.counts["inconclusive"] else ""
        if not rate.trials:
            return f"Inconclusive: none of {trials} storms could be judged"
        if rate.hits:
            return f"{rate.hits} of {trials} storms violated{unclear}: {rate.said}"
        return f"0 violations in {rate.trials} storms: {rate.said}{unclear}"

    def as_json(self) -> dict[str, Any]:
        shown = self.first or self.unclear or self.last
        exit_status = 1 if self.first else 3 if self.unclear else 0
        result = {key: value for key, value in shown.items() if key != "storm"}
        storm = shown["storm"]
        first = self.first and {key: self.first[key] for key in ("seed", "sentence", "replay")}
        return result | {
            "seed": self.storm.wish.seed,
            "verdict": shown["verdict"],
            "sentence": self.sentence,
            "exit": exit_status,
            "storm": {
                "duration_ms": storm["duration_ms"],
                "trials": self.storm.trials,
                "clients": storm["clients"],
                "shown_seed": shown["seed"],  # whose verdict and schedule these are
                "verdicts": self.counts,
                "rate": {"low": self.rate.low, "high": self.rate.high},  # of violations, at 95 %
                "properties": self.properties,
                "first_violation": first,
                "faults": [self.faults[name] for name in sorted(self.faults)],
                "schedule": storm["schedule"],
            },
        }
