"""`lockstorm gate`."""

import shlex
from pathlib import Path

import click
from rich.text import Text

from lockstorm.base.errors import UsageError
from lockstorm.base.paths import runnable
from lockstorm.cli.options import failed_only_option, json_option, path_option, policy_option
from lockstorm.cli.terminal import console, print_json, progress_of_done
from lockstorm.gate.gate import run_gate, write_outputs
from lockstorm.gate.gate_plan import plan_gate
from lockstorm.gate.gate_policy import read_policy, used_place
from lockstorm.gate.gate_text import show_verdict
from lockstorm.gate.runs import remove_old_runs

INTERRUPTED = 130
FILE_SUFFIXES = {".html", ".json", ".md", ".sarif", ".toml", ".xml"}  # such a name is not meant for a directory


def kept_words(run: Path) -> str:
    place = shlex.quote(str(run))
    page, again = (runnable(f"lockstorm {command} {place}") for command in ("report", "check"))
    return f"kept: {run}\n  as a page: {page}\n  judge it again: {again}"


@click.command("gate")
@policy_option("Policy file to read.")
@path_option("-o", "output", help="Also write the results into this directory.")
@click.option(
    "--keep",
    type=click.IntRange(1),
    help="Number of runs to keep; older runs are removed. Default: [runs] keep of the policy, or all.",
)
@click.option("--workers", type=click.IntRange(1, 64), help="Number of trials played side by side. Default: cores + 1.")
@failed_only_option
@json_option
def gate_command(
    file: Path, output: Path | None, keep: int | None, workers: int | None, quiet: bool, as_json: bool
) -> int:
    """Judge the lock choice of a project: play the trials of its policy, search its applications, and keep the run.

    \b
    Example: lockstorm init; lockstorm gate
    Exit status: 0 every required property holds, 1 a violation is not accepted, 2 the policy is wrong,
                 3 no violation, but a required property could not be judged
    `lockstorm docs gate` explains the policy and the results: verdict.json, junit.xml, lockstorm.sarif, summary.md.
    """
    policy = read_policy(file)
    plan = plan_gate(policy)
    for lock in policy.locks:
        if lock.used and not (file.parent / used_place(lock.used)[0]).exists():
            click.echo(f"lockstorm: warning: {file}:{lock.line}: used = {lock.used!r}: there is no such file", err=True)
    if output:
        if output.suffix in FILE_SUFFIXES:
            raise UsageError(
                f"-o {output}: the results are several files: name a directory, such as -o results; "
                "`lockstorm report` writes a page of a kept run"
            )
        try:  # before any trial is played
            output.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"-o {output}: {error.strerror}") from None
    with progress_of_done(len(plan.jobs) + len(policy.apps)) as report:
        verdict, directory = run_gate(policy, plan, report, workers=workers)
    if output:
        write_outputs(verdict, output)
    if keep or policy.keep:
        remove_old_runs(policy.runs, keep or policy.keep or 1)
    if as_json:
        print_json(verdict)
    else:
        show_verdict(console(), verdict, quiet=quiet)
        console().print(Text(kept_words(directory), "dim"))
    return INTERRUPTED if verdict.interrupted else verdict.exit
