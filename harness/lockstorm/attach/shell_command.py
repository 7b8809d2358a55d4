"""A shell command of the team: started, waited for, ended at its limit."""

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, cast

OUTPUT_MOST = 400  # characters that are shown of what it printed
NAP_S = 0.05
# Nothing of the command runs before its process group is known to who would end it, nor if its driver dies until then.
WHEN_KNOWN = 'read -r _ && exec /bin/sh -c "$0" </dev/null'


@dataclass(frozen=True)
class Done:
    """`status`: None if it was ended at its limit. `output`: the end of what it printed."""

    status: int | None
    output: str

    @property
    def ok(self) -> bool:
        return self.status == 0

    def explained(self, limit_s: float) -> str:
        how = f"did not end within {limit_s:g} s" if self.status is None else f"ended with status {self.status}"
        return f"{how}: {self.output}" if self.output else f"{how} and printed nothing"


def run_shell(
    command: str,
    limit_s: float,
    variables: Mapping[str, str],
    meanwhile: Callable[[float], object] = time.sleep,
    started: Callable[[int], object] = lambda group: None,
) -> Done:
    """Runs it with /bin/sh in a session of its own. `variables`: added to its environment; their values are passwords
    and not shown. `meanwhile`: what to do, for some seconds, again and again until it ends. `started`: is told its
    process group."""
    environment = {**os.environ, **variables}
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            ["/bin/sh", "-c", WHEN_KNOWN, command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        until_s = time.monotonic() + limit_s
        try:
            with contextlib.suppress(BrokenPipeError), cast(IO[bytes], process.stdin) as known:
                started(process.pid)
                known.write(b"\n")
            while process.poll() is None and time.monotonic() < until_s:
                meanwhile(NAP_S)
            status = process.poll()
        finally:
            if process.poll() is None:
                end_group(process.pid)
                process.wait()
        output.seek(0)
        return Done(status, _shown(output.read().decode(errors="replace"), variables))


def end_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _shown(text: str, variables: Mapping[str, str]) -> str:
    for secret in filter(None, variables.values()):
        text = text.replace(secret, "***")
    words = " ".join(text.split())
    return words if len(words) <= OUTPUT_MOST else f"… {words[-OUTPUT_MOST:]}"
