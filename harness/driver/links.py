"""Links of a trial without a proxy: a client's way to a server is a symbolic link to its socket, so that it can lead to
another server later. What passes cannot be touched."""

from fnmatch import fnmatchcase
from pathlib import Path

from harness.driver.process import Nursery

LINKS = "links"  # the directory of what clients connect to


def place_in(directory: Path, number: int, file: str) -> Path:
    """Where a link listens."""
    if not file:
        return directory / str(number)
    (directory / str(number)).mkdir(mode=0o700)
    return directory / str(number) / file


class DirectLinks:
    """The same face as the proxy's (harness/driver/proxy.py), as far as it goes."""

    def __init__(self, nursery: Nursery) -> None:
        self._directory = nursery.directory / LINKS
        self._directory.mkdir(mode=0o700)
        self._paths: dict[str, Path] = {}

    def link(
        self, name: str, target: Path | str, *, listen: str | None = None, option: str = "", file: str = ""
    ) -> str:
        """Where to connect: the address itself for a port, for a socket a path that can be led elsewhere. `file`: that
        path's last part, in a directory of its own."""
        if isinstance(target, str):
            return target
        path = place_in(self._directory, len(self._paths) + 1, file)
        self._paths[name] = path
        path.symlink_to(target)
        return str(path)

    def lead(self, pattern: str, target: Path) -> int:
        """Links that match lead elsewhere from now on; connections that are open stay. How many links."""
        matching = [path for name, path in self._paths.items() if fnmatchcase(name, pattern)]
        for path in matching:
            beside = path.with_suffix(".new")
            beside.symlink_to(target)
            beside.rename(path)
        return len(matching)
