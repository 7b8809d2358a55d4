"""A file of JSON that a command wrote, as a type."""

from pathlib import Path
from typing import TypeVar

import msgspec

from lockstorm.base.errors import UsageError

Read = TypeVar("Read")


def read_json(path: Path, kind: type[Read], origin: str) -> Read:
    """Raises UsageError with a sentence. `origin`: what writes such a file."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {error}: {origin}") from None
    except ValueError:
        raise UsageError(f"{path} is not JSON: {origin}") from None
