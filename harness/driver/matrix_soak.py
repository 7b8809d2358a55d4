"""The matrix again and again beside something that burns a core: no trial may come out otherwise than expected.

    make soak MATRIX_REPEAT=20

In virtual time a busy machine may make a trial slow, never another one.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from harness.driver import paths
from harness.driver.cells import Trio
from harness.driver.expected import pairs
from harness.driver.matrix import matrix
from harness.driver.terminal import progress_of_done

BURN = "while True: pass"


@contextmanager
def burner() -> Iterator[subprocess.Popen[bytes]]:
    """A process that uses all of one core, and ends with this one."""
    process = subprocess.Popen([paths.program("leash"), sys.executable, "-c", BURN])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def soak(trios: list[Trio], repeat: int, seed: int, tell: Callable[[str], object]) -> dict[str, Any]:
    with burner():
        return matrix(trios, None, repeat, seed, tell)


def told(result: dict[str, Any]) -> list[str]:
    """What was seen, a line each; the last says whether it is clean."""
    wrong = [cell for cell in result["cells"] if not cell["ok"]]
    lines = [
        f"  {cell['scenario']} with {cell['lock']}/{cell['store']}: {cell['difference']}; again: ./{cell['replay']}"
        for cell in wrong
    ]
    count = 2 * result["repeat"] * len(result["cells"])
    flaky = sum("a flake" in cell["difference"] for cell in wrong)
    verdict = "clean" if result["ok"] else "FAILED"
    lines.append(f"{verdict}: {count} trials, {len(wrong)} cells not as expected, {flaky} of them flaky")
    return lines


@click.command()
@click.option("--repeat", type=click.IntRange(1, 1000), default=20, show_default=True, help="Trials a cell.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Of the first trial of a cell.")
@click.option("-o", "output", type=click.Path(path_type=Path), help="Write the JSON object here.")
def main(repeat: int, seed: int, output: Path | None) -> None:
    """The whole matrix, repeated; exit status 1 when one trial was not as expected."""
    if output and not output.parent.is_dir():
        raise click.ClickException(f"-o {output}: its directory does not exist")
    trios = pairs()
    with progress_of_done(len(trios) * 2 * repeat) as tell:
        result = soak(trios, repeat, seed, tell)
    if output:
        output.write_text(json.dumps(result, indent=2) + "\n")
    for line in told(result):
        click.echo(line)
    raise SystemExit(0 if result["ok"] else 1)


if __name__ == "__main__":
    main()
