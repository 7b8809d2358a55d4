"""The answers of a campaign's cases, kept in a file as they come: a campaign that was interrupted goes on from there,
and every case counts once."""

import hashlib
import json
import os
import threading
from pathlib import Path

import msgspec

from lockstorm.base.errors import UsageError
from lockstorm.campaigns.campaign_case import CampaignCase, Plain

NAME = "cases.jsonl"


def case_key(entry: str, case: CampaignCase) -> str:
    """What identifies a case: its entry in the campaign's file, and all that it is."""
    text = msgspec.json.encode({"entry": entry, "case": case}, order="deterministic")
    return hashlib.sha256(text).hexdigest()[:32]


class CaseJournal:
    """A line per answer. Several threads may add to it."""

    def __init__(self, path: Path) -> None:
        """Reads what is there. A last line that was not written to its end is dropped. UsageError for any other."""
        self._answers: dict[str, Plain] = {}
        self._lock = threading.Lock()
        whole = self._read(path)
        self._file = path.open("ab")
        if whole < path.stat().st_size:
            os.truncate(path, whole)

    def _read(self, path: Path) -> int:
        """Returns the length of the whole lines, in bytes."""
        whole = 0
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        for number, line in enumerate(lines, 1):
            if not line.endswith(b"\n"):
                break
            try:
                read = json.loads(line)
                self._answers[read["case"]] = read["answer"]
            except (ValueError, KeyError, TypeError):
                raise UsageError(f"{path}:{number}: this is no answer of a case: the file was changed") from None
            whole += len(line)
        return whole

    def answer(self, key: str) -> Plain | None:
        """The answer of a case that was played; None: it was not."""
        return self._answers.get(key)

    def add(self, key: str, answer: Plain) -> bool:
        """False: the case has an answer already, which stays."""
        with self._lock:
            if key in self._answers:
                return False
            self._answers[key] = answer
            self._file.write(json.dumps({"case": key, "answer": answer}).encode() + b"\n")
            self._file.flush()
            return True

    def __len__(self) -> int:
        return len(self._answers)

    def close(self) -> None:
        self._file.close()
