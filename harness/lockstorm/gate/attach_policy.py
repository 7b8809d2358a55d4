"""[attach] of a policy: its trials are played on servers that are there already (docs/attach.md)."""

from dataclasses import dataclass
from pathlib import Path

from lockstorm.attach.server_address import ServerAddress, parse_address
from lockstorm.base.toml_table import TomlTable

KEYS = {"attach": ("url", "ca", "yes")}


@dataclass(frozen=True)
class AttachChoice:
    """The servers of a policy. `yes`: play although they are not empty."""

    address: ServerAddress
    ca: str
    yes: bool
    line: int


def read_attach(table: TomlTable, home: Path) -> AttachChoice | None:
    """None without the table. The file of certificates is relative to `home`."""
    if not table.values:
        return None
    url, ca = table.required_text("url"), table.text("ca")
    address = table.checked("url", lambda: parse_address(url))
    if ca and not address.tls:
        raise table.error("ca", f"ca = {ca!r} is for TLS, and {url} is without: leave it out")
    return AttachChoice(address, str((home / ca).resolve()) if ca else "", table.flag("yes", False), table.line())
