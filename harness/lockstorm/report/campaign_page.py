"""A campaign as a page: a row for each entry, and what has come of the chosen one beside it. Its input is the
campaign's campaign.json."""

from lockstorm.report.cell_grid import Grid, GridCell
from lockstorm.results.campaign_result import CampaignResult, EntryState

WORDS = {
    "holds": "everything is as expected",
    "violated": "something is violated, or not as expected",
    "inconclusive": "no verdict was possible, or not yet: the campaign has not come so far",
}
RESULTS = {0: "holds", 1: "violated"}  # by exit status


def campaign_sentence(campaign: CampaignResult) -> str:
    found = sum(entry.exit == 1 for entry in campaign.entries)
    ended = sum(entry.exit is not None for entry in campaign.entries)
    return (
        f"{found} of {len(campaign.entries)} entries found something"
        f"{'' if ended == len(campaign.entries) else f'; {ended} have ended ({campaign.state})'}"
    )


def campaign_grid(campaign: CampaignResult) -> Grid:
    return Grid(
        title="What the campaign found",
        sentence=campaign_sentence(campaign),
        exit=3 if campaign.exit is None else campaign.exit,
        words=WORDS,
        cells=[_entry_cell(entry) for entry in campaign.entries],
        odd_word="not as expected",
        only_odd="only what is not as expected",
        axes="Entries down",
        searched="entry",
        facts=[("file", campaign.file), ("cases played", f"{campaign.played:,}"), ("engine", campaign.engine)],
    )


def _entry_cell(entry: EntryState) -> GridCell:
    result = RESULTS.get(3 if entry.exit is None else entry.exit, "inconclusive")
    return GridCell(
        lock=entry.name,
        store="",
        scenario="result",
        result=result,
        sentence=entry.sentence or "Not played to its end.",
        reason=f"{entry.cases:,} cases at most",
        replay=entry.again,
        odd=entry.exit == 1,
        mismatch="Something is violated, or not as expected." if entry.exit == 1 else "",
    )
