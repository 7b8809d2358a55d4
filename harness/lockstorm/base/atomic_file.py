"""Files that are written in one step: a reader sees the old content or the new one, even if the writer is killed. A
writer that is killed by SIGKILL can leave its temporary file, `.lockstorm-PID-...`, beside it."""

import contextlib
import errno
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec

NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EMLINK)  # of a file system without hard links


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a temporary file in the same directory and renames it to `path`, whose permissions stay. What is no
    regular file, such as /dev/stdout, cannot be replaced and is written to."""
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    path = Path(os.path.realpath(path))  # a symbolic link stays one
    with temporary_beside(path) as temporary:
        temporary.write_bytes(content)
        if path.exists():
            shutil.copymode(path, temporary)
        temporary.replace(path)


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode())


def write_json(path: Path, value: object, indent: int = 2) -> None:
    write_text(path, json.dumps(msgspec.to_builtins(value), indent=indent) + "\n")


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Yields the path of a temporary file, which the block makes and writes. When the block has ended without an
    exception the file is called `path`. Raises FileExistsError if there is a file of that name by then."""
    with temporary_beside(path) as temporary:
        yield temporary
        try:
            os.link(temporary, path)
        except OSError as error:
            if error.errno not in NO_LINKS or path.exists():
                raise
            temporary.rename(path)


@contextlib.contextmanager
def temporary_beside(path: Path) -> Iterator[Path]:
    """A new name in the directory of `path`; a file of that name is removed when the block ends."""
    temporary = path.with_name(f".lockstorm-{os.getpid()}-{os.urandom(4).hex()}")
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
