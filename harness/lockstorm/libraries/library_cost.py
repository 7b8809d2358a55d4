"""Measures what an acquire and release of each shipped library cost beside its C port, and what each lock is.
`python -m lockstorm.libraries.library_cost NAME...` keeps both in scenarios/libraries.json."""

import statistics
import sys
import time
from collections.abc import Sequence

import msgspec

from lockstorm.libraries.promise_figures import LibraryCost, keep_figures, promise_figures, traits_of
from lockstorm.locks.adapter import PREFIX, adapter_entry
from lockstorm.locks.lock_names import lock_named
from lockstorm.scenario.library_expected import adapters_in_trials, port_of
from lockstorm.scenario.play import prepare_by_hand
from lockstorm.trial.settings import Time, TrialSettings
from lockstorm.trial.trial import Trial

WARM_UP, TURNS, ROUNDS = 20, 200, 3
LEASE_MS = 30_000


def turn_us(lock: str, kind: Time, turns: int) -> float:
    """An acquire and release without a competitor, through the proxy, in us of the machine's time."""
    with Trial(prepare_by_hand(TrialSettings(lock, time=kind, lease_ms=LEASE_MS))) as trial:
        (one,) = trial.clients(1)
        for count in (WARM_UP, turns):
            one.start_hold(turns=count)
            began = time.perf_counter()
            one.finish()
        return (time.perf_counter() - began) * 1e6 / turns


def measured_cost(adapter: str) -> LibraryCost:
    """Raises NotInstalled."""
    port = port_of(adapter)
    pairs = [(turn_us(PREFIX + adapter, "real", TURNS), turn_us(port, "real", TURNS)) for _ in range(ROUNDS)]
    return LibraryCost(
        port=port,
        us=round(statistics.median(us for us, _ in pairs), 1),
        port_us=round(statistics.median(us for _, us in pairs), 1),
        ratio=round(statistics.median(us / of_port for us, of_port in pairs), 2),
    )


def measure_costs(names: Sequence[str]) -> None:
    """Measures these of the libraries that have figures, and keeps the figures of the others."""
    for name in names:
        adapter_entry(PREFIX + name)
        lock_named(port_of(name))
        figures = msgspec.structs.replace(promise_figures()[name], traits=traits_of(name), cost=measured_cost(name))
        keep_figures({name: figures})
        print(name, figures.cost, flush=True)


if __name__ == "__main__":
    measure_costs(sys.argv[1:] or [name for name in promise_figures() if name in adapters_in_trials()])
