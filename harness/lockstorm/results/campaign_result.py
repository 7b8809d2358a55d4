"""What has come of a campaign: its `campaign.json`."""

import msgspec

from lockstorm.base.version import VERSION

FORMAT = 1


class EntryState(msgspec.Struct, kw_only=True):
    """What has come of an entry. `exit` is None until it has ended."""

    name: str
    cases: int  # at most
    exit: int | None = None
    sentence: str = ""
    again: str = ""  # the command that shows what was found, from the campaign's directory


class CampaignResult(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """campaign.json. `state`: running, complete, interrupted, or lost: the scheduler is gone."""

    format: int = FORMAT
    version: str = VERSION
    file: str  # where it was read
    place: str  # what paths in it are relative to
    state: str = "running"
    engine: str = ""
    played: int = 0  # cases with an answer
    entries: list[EntryState]
    exit: int | None = None
