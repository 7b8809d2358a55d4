"""Runs a page of the documentation as a reader does: its blocks in their order, in one shell and an empty directory.

A block is one of these:

- ```console: a line that begins with `$ ` is a command, and the lines below it are what it prints on both streams.
- A block of another language whose first line is a comment with the name of a file: that file.
- Any other block: a part of a file that is there.

Lines are compared without regard to blank ones and to the width of gaps. `...` alone in a line stands for any lines,
and within a line for any text. A command with `...` is the line that fits it among those that were printed before."""

import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#{1,6} (.*)$", re.MULTILINE)
INDENTED = re.compile(r"(?<=\n\n)    \S.*$", re.MULTILINE)
FILE_NAME = re.compile(r"^(?:#|//) ((?:[\w-]+/)*[\w.-]+\.\w+)$")
PROMPT = "$ "
LEFT_OUT = "..."
PROGRESS = re.compile(r"\d+ of \d+ done: ")  # every ten seconds, where there is no terminal
LIMIT_S = 150.0
END = "--- end of a command, status"
FAILED = 2  # the first status that is no verdict, beside INCONCLUSIVE
INCONCLUSIVE = 3


class WrongPage(AssertionError):
    """The page says something that is not so; the message names its line."""


@dataclass(frozen=True)
class DocumentBlock:
    line: int  # of its first line in the page
    heading: str  # that it is under
    language: str
    lines: tuple[str, ...]


def document_blocks(page: str) -> list[DocumentBlock]:
    found = []
    for match in FENCE.finditer(page):
        headings = HEADING.findall(FENCE.sub("", page[: match.start()]))
        line = page.count("\n", 0, match.start()) + 2
        found.append(DocumentBlock(line, headings[-1] if headings else "", match[1], tuple(match[2].splitlines())))
    return found


def unfenced(page: str) -> list[str]:
    """Blocks that are only indented, which nothing would run."""
    return INDENTED.findall(FENCE.sub("", page))


# --- what is printed ---


def gist(text: str) -> list[str]:
    """The lines that are not blank, with single spaces."""
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def pattern_of(shown: list[str]) -> str:
    """A regular expression for the lines of a page, each with its end."""
    lines = (
        r"(?:[^\n]*\n)*?" if line == LEFT_OUT else r"[^\n]*".join(map(re.escape, line.split(LEFT_OUT))) + r"\n"
        for line in shown
    )
    return "".join(lines)


def check_printed(shown: list[str], printed: str, where: str) -> None:
    """Raises WrongPage with the first line of `shown` up to which nothing fits."""
    found = "".join(f"{line}\n" for line in gist(printed) if not PROGRESS.match(line))
    if re.fullmatch(pattern_of(shown), found):
        return
    fits = next(length for length in range(len(shown), -1, -1) if re.match(pattern_of(shown[:length]), found))
    wrong = f"it does not print {shown[fits]!r} there" if fits < len(shown) else "it prints more"
    raise WrongPage(f"{where}: {wrong}; it printed:\n{printed}")


# --- a shell ---


class DocumentShell:
    """A bash in a directory; each command sees the directory and the status that the one before has left."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self.directory = directory
        self.printed: list[str] = []  # all lines
        self._shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=directory,
            env={**environment, "HOME": str(directory)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        self._shell.wait()
        assert self._shell.stdin and self._shell.stdout
        self._shell.stdin.close()
        self._shell.stdout.close()

    def _end(self) -> None:
        """With what it has started."""
        if self._shell.poll() is None:
            os.killpg(self._shell.pid, signal.SIGKILL)

    def run(self, command: str) -> tuple[str, int]:
        """What it prints, and its exit status."""
        assert self._shell.stdin and self._shell.stdout
        limit = threading.Timer(LIMIT_S, self._end)
        limit.start()
        try:
            self._shell.stdin.write(
                f"{{ {command}\n}} </dev/null\nlast=$?; printf '\\n{END} %d\\n' $last; (exit $last)\n"
            )
            self._shell.stdin.flush()
            lines: list[str] = []
            for line in self._shell.stdout:
                if line.startswith(END):
                    self.printed += lines
                    return "".join(lines), int(line.split()[-1])
                lines.append(line)
        finally:
            limit.cancel()
        raise WrongPage(f"`{command}` ended the shell, or took longer than {LIMIT_S:g} s:\n{''.join(lines)}")

    def printed_line(self, shown: str) -> str:
        """The one line that was printed before and fits a command with `...`."""
        found = [line for line in gist("".join(self.printed)) if re.fullmatch(pattern_of([shown]), f"{line}\n")]
        if len(set(found)) != 1:
            raise WrongPage(f"`{shown}` fits {len(set(found))} of the lines that were printed before")
        return found[0]

    @property
    def working(self) -> Path:
        return Path(self.run("pwd")[0].strip())


# --- a page ---


def commands_of(block: DocumentBlock) -> Iterator[tuple[int, str, list[str]]]:
    """The line, the command, and the lines below it."""
    starts = [place for place, line in enumerate(block.lines) if line.startswith(PROMPT)]
    if not starts or starts[0] != 0:
        raise WrongPage(f"line {block.line}: a console block begins with a command: {PROMPT}...")
    for start, end in zip(starts, [*starts[1:], len(block.lines)], strict=True):
        command = block.lines[start].removeprefix(PROMPT)
        yield block.line + start, command, gist("\n".join(block.lines[start + 1 : end]))


def run_console(shell: DocumentShell, block: DocumentBlock, renamed: Mapping[str, str]) -> None:
    """`renamed`: what the page calls otherwise."""
    commands = list(commands_of(block))
    for place, (line, command, shown) in enumerate(commands):
        where = f"line {line}: `{command}`"
        printed, status = shell.run(shell.printed_line(command) if LEFT_OUT in command else command)
        for name, word in renamed.items():
            printed = printed.replace(name, word)
        if shown:
            check_printed(shown, printed, where)
        following = commands[place + 1][1] if place + 1 < len(commands) else ""
        if status >= FAILED and status != INCONCLUSIVE and following != "echo $?":
            raise WrongPage(f"{where} ended with status {status}:\n{printed}")


def put_file(shell: DocumentShell, name: str, block: DocumentBlock) -> None:
    path = shell.working / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in block.lines))


def check_excerpt(shell: DocumentShell, block: DocumentBlock) -> None:
    shown = [LEFT_OUT, *gist("\n".join(block.lines)), LEFT_OUT]
    files = [path for path in sorted(shell.working.iterdir()) if path.is_file()]
    for path in files:
        text = "".join(f"{line}\n" for line in gist(path.read_text(errors="replace")))
        if re.fullmatch(pattern_of(shown), text):
            return
    names = ", ".join(path.name for path in files)
    raise WrongPage(f"line {block.line}: this block is a part of none of the files there ({names})")


def run_block(shell: DocumentShell, block: DocumentBlock, renamed: Mapping[str, str]) -> None:
    if block.language == "console":
        run_console(shell, block, renamed)
    elif name := FILE_NAME.match(block.lines[0]):
        put_file(shell, name[1], block)
    else:
        check_excerpt(shell, block)
