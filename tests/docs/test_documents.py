"""The pages that a newcomer follows are run as they stand, and print what they say."""

import os
import re
import sys
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

from lockstorm.base import paths
from tests.helpers.running_documents import (
    DocumentShell,
    WrongPage,
    check_printed,
    document_blocks,
    gist,
    run_block,
    unfenced,
)
from tests.helpers.support import short_directory

RUN = ("gate", "pytest", "test-your-own-lock")
# They need the compilers and registries of their languages; tests/conformance tries the starters.
ELSEWHERE = re.compile(r"\b(?:Java|JavaScript|Node|Go|Rust)\b")
# What `pip install redis` fetches; the second one not since Python 3.11.3.
LIBRARIES = ("redis", "async-timeout")
PROGRAMS = {
    "lockstorm": "-m lockstorm",
    "pytest": "-m pytest -p lockstorm.testing.pytest_plugin",
    "python3": "",
}


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[DocumentShell]:
    """Of somebody who has installed lockstorm and pytest."""
    programs, wheels, home = tmp_path / "programs", tmp_path / "wheels", tmp_path / "home"
    for directory in (programs, wheels, home):
        directory.mkdir()
    for name, words in PROGRAMS.items():
        variables = f"PYTHONPATH={paths.python_path()} PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 " if words else ""
        text = f'#!/bin/sh\n{variables}exec {sys.executable} {words} "$@"\n'
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    for name in LIBRARIES:
        with suppress(PackageNotFoundError):
            pack_installed(name, wheels)
    kept = {key: value for key, value in os.environ.items() if key.startswith(("LOCKSTORM", "LANG", "LC_"))}
    environment = {
        **kept,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "TERM": "dumb",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheels),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    with short_directory() as short, DocumentShell(home, {**environment, "TMPDIR": str(short)}) as opened:
        yield opened


def pack_installed(name: str, directory: Path) -> None:
    """Makes the wheel again that this Python's library came in: nothing is fetched."""
    library = distribution(name)
    packed = directory / f"{name.replace('-', '_')}-{library.version}-py3-none-any.whl"
    with zipfile.ZipFile(packed, "w") as archive:
        for file in library.files or []:
            if not str(file).startswith("..") and "__pycache__" not in file.parts:
                archive.write(str(file.locate()), str(file))


@pytest.mark.lengthy("runs the commands of a page, some of them in real time")
@pytest.mark.parametrize("name", RUN)
def test_a_page_says_what_happens(name: str, shell: DocumentShell) -> None:
    page = (paths.ROOT / "docs" / f"{name}.md").read_text()
    blocks = [block for block in document_blocks(page) if not ELSEWHERE.search(block.heading)]
    assert len([block for block in blocks if block.language == "console"]) > 2
    renamed = {str(paths.ROOT / "lockstorm"): "lockstorm"}
    for block in blocks:
        run_block(shell, block, renamed)


@pytest.mark.parametrize("name", RUN)
def test_no_block_of_a_page_is_passed_over(name: str) -> None:
    page = (paths.ROOT / "docs" / f"{name}.md").read_text()
    parts = re.split(r"^(?=#{2,3} )", page, flags=re.MULTILINE)
    assert [line for part in parts if not ELSEWHERE.search(part.partition("\n")[0]) for line in unfenced(part)] == []


# --- what runs them ---

SMALL = """# A page

```console
$ echo 1.5 s; echo two words; (exit 1)
... s
two words
$ echo $?
1
```

```toml
# below/it.toml
key = 1
```

```console
$ cat below/it.toml; cd below
# below/it.toml
key = 1
$ echo 'echo from before'
echo from before
$ echo ... before
from before
```

```toml
...
key = 1
```
"""


def run_small(shell: DocumentShell, old: str = "", new: str = "") -> None:
    assert old in SMALL
    for block in document_blocks(SMALL.replace(old, new)):
        run_block(shell, block, {})


def test_a_right_page_is_run(shell: DocumentShell) -> None:
    run_small(shell)
    assert (shell.directory / "below" / "it.toml").read_text() == "# below/it.toml\nkey = 1\n"


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("two words\n$ echo $", "two words\nand more\n$ echo $", "line 4: .*it does not print 'and more' there"),
        ("... s", "2.5 s", "line 4: .*it does not print '2.5 s' there"),
        ("$ echo $?\n1", "$ echo $?\n0", "line 7: .*it does not print '0' there"),
        ("(exit 1)\n... s\n", "(exit 1)\n", "line 4: .*it does not print 'two words' there"),
        ("two words\n$", "$", "line 4: .*it prints more"),
        ("$ echo ... before", "$ echo ... behind", "fits 0 of the lines"),
        ("cd below", "cd nowhere", "No such file or directory"),
        ("; cd below", "; cd below; (exit 2)", "line 17: .*ended with status 2"),
        ("```toml\n...\nkey = 1", "```toml\n...\nkey = 2", "this block is a part of none of the files"),
        ("$ cat below", "cat below", "a console block begins with a command"),
    ],
)
def test_a_wrong_page_is_named_with_its_line(old: str, new: str, complaint: str, shell: DocumentShell) -> None:
    with pytest.raises(WrongPage, match=complaint):
        run_small(shell, old, new)


def test_gaps_and_blank_lines_are_not_compared() -> None:
    check_printed(gist(" a   b\n\n...\nd"), "a b\nc\n\n  d\n", "here")
    with pytest.raises(WrongPage, match="it prints more"):
        check_printed(gist("a b"), "a b\nc\n", "here")


def test_an_indented_block_is_noticed() -> None:
    assert unfenced("text\n\n    $ a\n    b\n\n- a list\n\n```console\n$ a\n\n    b\n```\n") == ["    $ a"]


def test_the_libraries_are_packed_as_they_are(tmp_path: Path) -> None:
    pack_installed("redis", tmp_path)
    (packed,) = tmp_path.iterdir()
    with zipfile.ZipFile(packed) as archive:
        assert "redis/__init__.py" in archive.namelist()
