"""`lockstorm attach` as tests run it."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lockstorm.base.errors import Inconclusive
from tests.helpers.proxying import wait_until
from tests.helpers.support import lockstorm


def attach_to(url: str, *words: str, status: int = 0, **more: Any) -> dict[str, Any]:
    """The JSON of a run that ends with this status."""
    done = lockstorm("attach", url, *words, "--json", **more)
    assert done.returncode == status, done.stderr + done.stdout
    assert done.stderr == ""
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def attach_refused(url: str, *words: str, **more: Any) -> str:
    """The sentence of a run that is refused."""
    done = lockstorm("attach", url, *words, **more)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "Traceback" not in done.stderr and done.stderr.count("\n") == 1
    return done.stderr.removeprefix("lockstorm: ").rstrip()


def wait_for_work(command: subprocess.Popen[str], at_work: Callable[[], object]) -> None:
    """Waits until a command that a test will end is at work. Raises Inconclusive if it gives up before, as it does
    beside a machine that stands still, with what it has said."""

    def is_over() -> bool:
        return command.poll() is not None

    wait_until(lambda: at_work() or is_over())
    if is_over():
        output, errors = command.communicate()
        raise Inconclusive(f"the command has ended with status {command.returncode}: {errors}{output[-500:]}")


def children_of(driver: int) -> set[int]:
    """All processes below the driver."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    below = {driver}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return below - {driver}


def traces_of_clients(driver: int) -> list[bytes]:
    """The command lines and environments of all processes below the driver, and the command line of the driver."""
    found = [Path(f"/proc/{driver}/cmdline").read_bytes()]
    for pid in children_of(driver):
        for name in ("cmdline", "environ"):
            try:
                found.append(Path(f"/proc/{pid}/{name}").read_bytes())
            except OSError:
                continue
    return found


def write_pause(directory: Path, pid: int) -> tuple[str, ...]:
    """Writes a file of faults with one that stops this process for a second. Returns the options that inject it."""
    file = directory / "attach.toml"
    file.write_text(
        f"""[fault.pause]
inject = "kill -STOP {pid}"
prove = '''grep -q 'State:.T' /proc/{pid}/status'''
heal = "kill -CONT {pid}"
lasts = "1s"
"""
    )
    return ("--fault", "pause", "--faults", str(file))
