"""What a team's settings change: the same trial on servers with their defaults, and the settings that make up the
difference."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from msgspec import structs

from lockstorm.locks.lock_names import lock_named
from lockstorm.results.properties import JUDGED
from lockstorm.results.verdict import SettingsEffect, Status, TrialResult
from lockstorm.scenario.play import deployment_of, play
from lockstorm.servers.redis_config import RedisSetting
from lockstorm.trial.settings import TrialSettings

Item = TypeVar("Item")
TRIALS_MOST = 40  # to find the settings


def play_deployed(request: TrialSettings, result: TrialResult) -> TrialResult:
    """The result of a trial with a deployment, with what the deployment changed; any other result as it is. Plays the
    trial with the defaults, and in virtual time, where a property differs, again with some of the settings."""
    deployment = deployment_of(request)
    service = lock_named(request.lock).service
    if not deployment or not result.deployment or not deployment.is_about(service):
        return result

    def statuses(settings: Sequence[RedisSetting] | None) -> dict[str, Status]:
        own = None if settings is None else deployment.only(service, settings)
        server, without = request.server or deployment.server, request.without or deployment.without
        played = play(replace(request, config=None, deployment=own, server=server, without=without))
        return {name: played.properties[name].status for name in JUDGED}

    usual, now = statuses(None), {name: result.properties[name].status for name in JUDGED}
    differing = [name for name in JUDGED if now[name] != usual[name]]
    because: list[str] = []
    if differing and result.time == "virtual":
        found = fewest(deployment.of(service), lambda some: statuses(some) == now)
        because = [each.line for each in found]
    effects = [SettingsEffect(name, now[name], usual[name], because) for name in differing]
    return structs.replace(result, deployment=structs.replace(result.deployment, effects=effects))


def fewest(items: Sequence[Item], is_enough: Callable[[Sequence[Item]], bool]) -> list[Item]:
    """A minimal part of the items that is enough; all, if they are not enough or it takes
    too many questions."""
    kept, size, asked = list(items), max(1, len(items) // 2), 0
    while kept:
        smaller = False
        for start in range(0, len(kept), size):
            some = kept[:start] + kept[start + size :]
            asked += 1
            if asked > TRIALS_MOST:
                return kept
            if is_enough(some):
                kept, smaller = some, True
                break
        if not smaller and size == 1:
            return kept
        if not smaller:
            size = max(1, size // 2)
        size = min(size, max(1, len(kept)))
    return kept
