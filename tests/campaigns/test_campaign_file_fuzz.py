"""Whatever stands in the file of a campaign, it is read, or refused with a sentence that names the file."""

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstorm.base.errors import UsageError
from lockstorm.campaigns.campaign_entries import count_cases
from lockstorm.campaigns.campaign_file import KEYS, read_campaign_file

WORDS = (
    "set-nx-px",
    "redis-py",
    "redlock",
    "gc-pause",
    "pause-client,kill-client",
    "usual",
    "none",
    "all",
    "virtual",
    "3s",
    "1/2",
    "a\x00b",
)
VALUES = st.one_of(
    st.sampled_from(WORDS).map(json.dumps),
    st.lists(st.sampled_from(WORDS), max_size=3).map(json.dumps),
    st.integers(-3, 50).map(str),
    st.sampled_from(
        ("9223372036854775807", "-9223372036854775808", "0", "1e9", "nan", "inf", "true", "false", '""', "[]")
    ),
    st.sampled_from(("{a = 1}", "[1, 2]", "2026-11-28", "07:00:00", '[["a"]]', "'''\n'''", "0x10")),
)


@st.composite
def entries(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(KEYS[""]))
    keys = draw(st.lists(st.sampled_from((*KEYS[kind], "nonsense")), max_size=5, unique=True))
    return f"[[{kind}]]\n" + "".join(f"{key} = {draw(VALUES)}\n" for key in keys)


def read_or_refused(text: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "it.toml"
        file.write_bytes(text)
        try:
            campaign = read_campaign_file(file)
        except UsageError as refusal:
            assert str(file) in str(refusal)
        else:
            assert all(count_cases(entry) >= 0 for entry in campaign.entries)


@settings(max_examples=400, deadline=None, derandomize=True, database=None)
@given(st.lists(entries(), min_size=1, max_size=3))
@pytest.mark.lengthy("reads 400 files")
def test_entries_of_any_keys_and_values(several: list[str]) -> None:
    read_or_refused("\n".join(several).encode())


VALID = (
    b'[[explore]]\nlock = ["set-nx-px", "fair"]\nschedules = 1000\nfaults = ["pause-client"]\n[[zoo]]\nbug = "all"\n'
)


@settings(max_examples=600, deadline=None, derandomize=True, database=None)
@given(
    st.lists(st.tuples(st.integers(0, len(VALID)), st.integers(0, 4), st.binary(max_size=4)), min_size=1, max_size=4)
)
def test_a_file_with_other_bytes_in_it(changes: list[tuple[int, int, bytes]]) -> None:
    text = VALID
    for at, gone, new in changes:
        text = text[:at] + new + text[at + gone :]
    read_or_refused(text)
