"""The explorer's soak, shortened: correct combinations hold, and a search resumes where it was stopped."""

from pathlib import Path

import click
import pytest

from lockstorm.search.campaign import read_campaign
from tests.soak.explore_soak import COMBINATIONS, soak_explorer


@pytest.mark.parametrize("name", [*COMBINATIONS])
def test_no_alarm(name: str, tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    for schedules in (60, 120):
        result = soak_explorer(name, schedules, None, kept)
        assert (result.exit, result.schedules) == (0, schedules), result.sentence
    assert result.injected["pause-client"] > 100
    assert read_campaign(kept).done(1) == 120


def test_what_is_kept_of_another_campaign_is_not_gone_on_with(tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    soak_explorer("fenced", 20, None, kept)
    with pytest.raises(click.ClickException, match="is of another campaign"):
        soak_explorer("redlock", 20, None, kept)
