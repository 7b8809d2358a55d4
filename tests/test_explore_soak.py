"""The explorer's soak in a short form: correct combinations hold, and go on where they were stopped."""

from pathlib import Path

import click
import pytest

from harness.driver.campaign import read_campaign
from harness.driver.explore_soak import COMBINATIONS, soak


@pytest.mark.parametrize("name", [*COMBINATIONS])
def test_no_alarm(name: str, tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    for schedules in (60, 120):
        result = soak(name, schedules, None, kept)
        assert (result["exit"], result["schedules"]) == (0, schedules), result["sentence"]
    assert result["injected"]["pause"] > 100
    assert read_campaign(kept).done(1) == 120


def test_what_is_kept_of_another_campaign_is_not_gone_on_with(tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    soak("fenced", 20, None, kept)
    with pytest.raises(click.ClickException, match="is of another campaign"):
        soak("redlock", 20, None, kept)
