"""Files as users and commands write them: each that cannot be read is a UsageError with a sentence."""

from pathlib import Path
from typing import TypeVar

import msgspec

from lockstorm.base.errors import UsageError

Read = TypeVar("Read")


def read_json(path: Path, kind: type[Read], origin: str) -> Read:
    """`origin`: what writes such a file, of JSON."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {error}: {origin}") from None
    except ValueError:
        raise UsageError(f"{path} is not JSON: {origin}") from None


def read_text(path: Path, how_to_get_one: str = "") -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        raise UsageError(f"there is no {path}: {how_to_get_one}".removesuffix(": ")) from None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not text in UTF-8") from None
