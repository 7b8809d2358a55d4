"""Links of a trial without a proxy: a client reaches a server's socket through a symbolic link, which can be pointed at
another server later. Messages on such a link cannot be changed."""

from fnmatch import fnmatchcase
from pathlib import Path

from lockstorm.process.process import Sandbox

LINKS = "links"  # the directory of the sockets that clients connect to


def place_in(directory: Path, number: int, file: str) -> Path:
    """Where a link listens."""
    if not file:
        return directory / str(number)
    (directory / str(number)).mkdir(mode=0o700)
    return directory / str(number) / file


class DirectLinks:
    """The part of the proxy's interface (harness/lockstorm/trial/proxy.py) that works without one."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._directory = sandbox.directory / LINKS
        self._directory.mkdir(mode=0o700)
        self._paths: dict[str, Path] = {}

    def link(
        self, name: str, target: Path | str, *, listen: str | None = None, option: str = "", file: str = ""
    ) -> str:
        """Where to connect: for a port the address itself, for a socket the path of a symbolic link to it. `file`: the
        last part of that path, which then lies in a directory of its own."""
        if isinstance(target, str):
            return target
        path = place_in(self._directory, len(self._paths) + 1, file)
        self._paths[name] = path
        path.symlink_to(target)
        return str(path)

    def lead(self, pattern: str, target: Path) -> int:
        """Points the links that match at another target; open connections stay as they are. Returns how many links
        match."""
        matching = [path for name, path in self._paths.items() if fnmatchcase(name, pattern)]
        for path in matching:
            beside = path.with_suffix(".new")
            beside.symlink_to(target)
            beside.rename(path)
        return len(matching)
