"""The result of a search as a value that a test asserts something of."""

from typing import Any

from lockstorm.results.verdict import Judged, PropertyVerdict, property_verdict


class SearchVerdict(Judged, frozen=True, kw_only=True):
    """The verdict on all schedules that were tried. `json`: what `lockstorm explore --json` prints."""

    json: dict[str, Any]
    properties: dict[str, PropertyVerdict]
    sentence: str
    required: list[str]
    replay: str  # the command that repeats the search
    exit: int
    schedules: int  # that were tried
    schedule: str | None  # the smallest one that violates something, as the text of its file


def search_verdict(result: dict[str, Any]) -> SearchVerdict:
    found = result.get("found")
    return SearchVerdict(
        json=result,
        properties={name: property_verdict(each) for name, each in result["verdict"].items()},
        sentence=result["sentence"],
        required=list(result["required"]),
        replay=result["replay"],
        exit=result["exit"],
        schedules=result["schedules"],
        schedule=found["file"] if found else None,
    )
