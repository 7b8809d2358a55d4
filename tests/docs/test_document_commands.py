"""Each command that a document or a finding shows is one: its name, its options, and their values."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from lockstorm.base import paths
from lockstorm.cli.main import cli

# A line of a block, or a span of code in a sentence, that begins with the command.
IN_BLOCK = re.compile(r"^(?:[$#] |    (?:\$ )?)?(?:\./|\$LOCKSTORM/)?lockstorm (\S.*)$", re.MULTILINE)
IN_SENTENCE = re.compile(r"`(?:\./)?lockstorm ([^`]+)`")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"[a-z]+")
ENDS = ("&&", "||", "|", ";", ">", ">>", "2>&1")
PLACEHOLDER = re.compile(r"^[A-Z/]+$|\.\.\.|…")


def pages() -> list[Path]:
    own = [paths.ROOT / name for name in ("README.md", "ARCHITECTURE.md")]
    return [*own, *sorted(paths.ROOT.glob("docs/*.md")), *sorted(paths.ROOT.glob("*/README.md"))]


def commands_in(page: str) -> Iterator[list[str]]:
    blocks = "\n".join(FENCED.findall(page)) + "\n" + "\n".join(re.findall(r"^    .*$", page, re.MULTILINE))
    for line in [*IN_BLOCK.findall(blocks), *IN_SENTENCE.findall(FENCED.sub("", page).replace("\n", " "))]:
        try:
            words = shlex.split(line, comments=True)
        except ValueError:  # a sentence
            continue
        ends = [place for place, word in enumerate(words) if word in ENDS]
        if words and COMMAND.fullmatch(words[0]):
            yield words[: ends[0]] if ends else words


def complaint(words: list[str]) -> str:
    """Why the command line cannot be right; empty: it can. What a reader has to fill in is not looked at."""
    group = click.Context(cli, info_name="lockstorm")
    found: click.Command = cli
    while isinstance(found, click.Group) and words:
        name, words = words[0], words[1:]
        command = found.get_command(group, name)
        if command is None:
            return f"there is no command {name}"
        found = command
    if found.context_settings.get("ignore_unknown_options"):
        return ""
    if any(PLACEHOLDER.search(word) for word in words) or (words and words[-1].startswith("-")):
        known = {"--help", *(flag for each in found.params for flag in (*each.opts, *each.secondary_opts))}
        wrong = [word.partition("=")[0] for word in words if word.startswith("--")]
        return ", ".join(f"there is no option {word}" for word in wrong if word not in known)
    try:
        found.make_context("lockstorm", list(words), parent=group).close()
    except click.MissingParameter:  # a sentence names the command only
        return ""
    except click.UsageError as error:
        return error.format_message()
    return ""


@pytest.mark.parametrize("path", pages(), ids=lambda path: str(path.relative_to(paths.ROOT)))
def test_commands_of_a_page_are_right(path: Path) -> None:
    wrong = {shlex.join(words): why for words in commands_in(path.read_text()) if (why := complaint(words))}
    assert wrong == {}


def test_what_is_wrong_is_noticed() -> None:
    page = "`lockstorm runs --keep N`, `lockstorm rum x`\n```\n$ ./lockstorm run gc-pause --locks a  # it\n```\n"
    told = [complaint(words) for words in commands_in(page)]
    assert "--locks" in told[0] and told[1:] == ["", "there is no command rum"]
    assert "a duration is a number and its unit" in complaint(["explore", "--time-limit", "ten"])
    assert complaint(["runs", "--kept", "N"]) == "there is no option --kept"
    assert complaint(["adapter", "init"]) == "" == complaint(["replay", "--as"])
