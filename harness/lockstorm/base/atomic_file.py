"""Files that are replaced in one step: a reader sees the old content or the new one, even if the writer is killed."""

import json
import os
from pathlib import Path
from typing import Any

import msgspec


def write_text(path: Path, text: str) -> None:
    """Writes a temporary file in the same directory and renames it to `path`."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text)
    temporary.replace(path)


def write_json(path: Path, value: dict[str, Any] | msgspec.Struct, indent: int = 2) -> None:
    write_text(path, json.dumps(msgspec.to_builtins(value), indent=indent) + "\n")
