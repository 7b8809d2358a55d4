"""Processes of a trial: started on a leash, so that none outlives the driver, and told to the warden, so that nothing
of theirs stays behind."""

import contextlib
import fcntl
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from harness.driver import paths
from harness.driver.errors import Inconclusive

PREFIX = "lockstorm-"


class Nursery:
    """A private directory (mode 0700), the processes that live in it, and the warden that removes both.

    The directory is made below $TMPDIR (/tmp). It is removed when the nursery is closed and when the driver dies,
    however it dies.
    """

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix=PREFIX))
        self.processes: list[subprocess.Popen[bytes]] = []
        self._warden = subprocess.Popen(
            [paths.program("warden"), str(self.directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        assert self._warden.stdin and self._warden.stdout and self._warden.stderr
        if self._warden.stdout.readline() != b"ready\n":
            reason = self._warden.communicate()[1].decode(errors="replace").strip()
            self.directory.rmdir()
            raise Inconclusive(f"no private directory: {reason}")

    def start(
        self,
        name: str,
        command: Sequence[str],
        *,
        environment: Sequence[str] = (),
        inherit: Sequence[int] = (),
        near: bool = False,
    ) -> subprocess.Popen[bytes]:
        """Starts a process whose output goes to NAME.log. `inherit`: descriptors that it keeps, by the same number.
        `near`: in this session, as harness/leash.c explains."""
        with (self.directory / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [paths.program("leash"), *(["--near"] if near else []), *environment, "--", *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=inherit,
                env={**os.environ, "LOCKSTORM_PARENT": str(os.getpid())},
            )
        self.processes.append(process)
        assert self._warden.stdin
        self._warden.stdin.write(b"%d\n" % process.pid)
        return process

    def log_tail(self, name: str, lines: int = 3) -> str:
        """The last lines that a process wrote, for a message."""
        with contextlib.suppress(OSError):
            text = (self.directory / f"{name}.log").read_text(errors="replace")
            return "; ".join(line.strip() for line in text.strip().splitlines()[-lines:])
        return ""

    def logs(self) -> dict[str, str]:
        """What each process has written that wrote anything."""
        texts = {path.stem: path.read_text(errors="replace") for path in sorted(self.directory.glob("*.log"))}
        return {name: text if text.endswith("\n") else f"{text}\n" for name, text in texts.items() if text}

    def close(self) -> None:
        """Kills what is left and returns when directory and processes are gone."""
        assert self._warden.stdin
        for process in self.processes:
            if process.poll() is None:
                process.kill()
        for process in self.processes:
            process.wait()
        with contextlib.suppress(OSError):
            self._warden.stdin.close()
        self._warden.wait()
        for stream in (self._warden.stdout, self._warden.stderr):
            if stream:
                stream.close()


def inheritable(descriptor: int) -> int:
    """A descriptor that the C side owns, checked to be open (it is passed on, never closed here)."""
    fcntl.fcntl(descriptor, fcntl.F_GETFD)
    return descriptor
