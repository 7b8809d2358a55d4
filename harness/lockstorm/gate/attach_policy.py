"""[attach] of a policy: its trials are played on servers that are there already (docs/attach.md)."""

from dataclasses import dataclass
from pathlib import Path

from lockstorm.attach.server_address import ServerAddress, parse_address
from lockstorm.attach.tls_files import TlsFiles, tls_files
from lockstorm.base.toml_table import TomlTable


@dataclass(frozen=True)
class AttachChoice:
    """The servers of a policy. `yes`: play although they are not empty."""

    address: ServerAddress
    files: TlsFiles
    yes: bool
    line: int


def read_attach(table: TomlTable, home: Path) -> AttachChoice | None:
    """None without the table. Files are relative to `home`."""
    if not table.values:
        return None
    url, names = table.required_text("url"), ("ca", "client_cert", "client_key")
    ca, certificate, key = (table.text(name) for name in names)
    address = table.checked("url", lambda: parse_address(url))
    files = tls_files(ca, certificate, key, home)
    chosen = next((name for name in names if name in table.values), "url")
    table.checked(chosen, lambda: files.check(address))
    return AttachChoice(address, files, table.flag("yes", False), table.line())
