"""The files that TLS needs: options of `lockstorm attach`, or keys of [attach] in a policy."""

from dataclasses import dataclass
from pathlib import Path

from lockstorm.attach.server_address import ServerAddress
from lockstorm.base.errors import UsageError


@dataclass(frozen=True)
class TlsFiles:
    """Full paths, or empty. `ca`: the certificates that sign the servers'. `certificate`, `key`: a client's
    own; the key may be in the file of the certificate."""

    ca: str = ""
    certificate: str = ""
    key: str = ""

    @property
    def options(self) -> list[str]:
        """As words of a command line."""
        named = (("--ca", self.ca), ("--client-cert", self.certificate), ("--client-key", self.key))
        return [word for option, file in named if file for word in (option, file)]

    def check(self, address: ServerAddress) -> None:
        """Raises UsageError for files that would not be used."""
        if self.options and not address.tls:
            option, file, *_ = self.options
            raise UsageError(f"{option} {file} is for rediss:// and the like: {address.url} is without TLS")
        if self.key and not self.certificate:
            raise UsageError(f"--client-key {self.key} is the key of a certificate: name that by --client-cert")


def tls_files(ca: str | Path | None, certificate: str | Path | None, key: str | Path | None, home: Path) -> TlsFiles:
    """The files of a user, relative to a directory."""
    return TlsFiles(*(str((home / each).resolve()) if each else "" for each in (ca, certificate, key)))
