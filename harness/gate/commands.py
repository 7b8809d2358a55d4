"""The commands of the gate: init, gate, runs, and the judging of a kept run."""

import sys
from pathlib import Path

import click
from rich.table import Table
from rich.text import Text

from harness.driver.errors import UsageError
from harness.driver.library import locks
from harness.driver.play import choose
from harness.driver.terminal import console, json_option, print_json, progress_of_done, waiting
from harness.driver.version import VERSION
from harness.gate.gate import judge_again, run_gate, write_outputs
from harness.gate.plan import plan_gate
from harness.gate.policy import USUAL_FILE, read_policy
from harness.gate.runs import list_runs, remove_old
from harness.gate.show import show_verdict
from harness.gate.starter import PURPOSES, RESOURCES, ask_questions, write_starter

INTERRUPTED = 130
file_option = click.option(
    "-f", "--file", type=click.Path(path_type=Path), default=USUAL_FILE, show_default=True, help="The policy."
)


@click.command()
@file_option
@click.option("-o", "output", type=click.Path(path_type=Path), help="Write the results into this directory, too.")
@click.option("--keep", type=click.IntRange(1), help="Then remove all but so many runs. Default: what the policy says.")
@click.option("--workers", type=click.IntRange(1, 64), help="Trials side by side. Default: cores + 1.")
@json_option
def gate(file: Path, output: Path | None, keep: int | None, workers: int | None, as_json: bool) -> int:
    """Is the lock choice of a project safe? Plays what its policy says, and keeps the run.

    \b
    Example: lockstorm init; lockstorm gate
    Exit status: 0 all that is required holds, 1 something is violated and not accepted, 2 the policy is wrong,
                 3 nothing is violated, but something could not be judged
    docs/gate.md explains the policy and the results: verdict.json, junit.xml, lockstorm.sarif, summary.md.
    """
    policy = read_policy(file)
    plan = plan_gate(policy)
    if output:
        make_output(output)
    with progress_of_done(len(plan.jobs)) as tell:
        verdict, directory = run_gate(policy, plan, VERSION, tell, workers=workers)
    if output:
        write_outputs(verdict, output)
    if keep or policy.keep:
        remove_old(policy.runs, keep or policy.keep or 1)
    if as_json:
        print_json(verdict)
    else:
        show_verdict(console(), verdict)
        console().print(Text(f"kept: {directory}; judge it again: ./lockstorm check {directory}", "dim"))
    return INTERRUPTED if verdict["interrupted"] else int(verdict["exit"])


def make_output(output: Path) -> None:
    """It is known before the work begins whether the results can be written."""
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"-o {output}: {error.strerror}") from None


@click.command()
@click.option("-d", "--directory", type=click.Path(path_type=Path), help="Of the runs. Default: as the policy says.")
@click.option(
    "-f", "--file", type=click.Path(path_type=Path), default=USUAL_FILE, show_default=True, help="The policy."
)
@click.option("--keep", type=click.IntRange(0), help="Remove all but the newest so many; never one that is going on.")
@json_option
def runs(directory: Path | None, file: Path, keep: int | None, as_json: bool) -> int:
    """The runs of the gate that are kept, the newest first.

    \b
    Example: lockstorm runs --keep 20
    """
    where = directory or (read_policy(file).runs if file.exists() else file.parent / "runs")
    removed = remove_old(where, keep) if keep is not None else []
    known = list_runs(where)
    if as_json:
        print_json({"runs": known, "removed": removed})
        return 0
    table = Table(box=None, padding=(0, 1), header_style="dim")
    for title in ("id", "state", "exit", "trials", ""):
        table.add_column(title, no_wrap=title == "id")
    for each in known:
        status = "" if each["exit"] is None else str(each["exit"])
        table.add_row(Text(each["id"], "bold"), each["state"], status, str(each["trials"]), Text(each["sentence"]))
    console().print(table if known else Text(f"no runs in {where}", "dim"))
    if removed:
        console().print(Text(f"removed: {', '.join(removed)}", "dim"))
    return 0


def check_run(directory: Path, as_json: bool) -> int:
    """`lockstorm check runs/ID`."""
    with waiting(f"{directory} ..."):
        verdict, differences = judge_again(directory)
    if as_json:
        print_json({**verdict, "differences": differences})
    else:
        out = console()
        show_verdict(out, verdict)
        for each in differences:
            out.print(Text(f"otherwise than when it was played: {each}", "bold yellow"))
        if not differences:
            out.print(Text("every trial is judged as it was when it was played", "dim"))
    return int(verdict["exit"])


@click.command()
@click.option("--lock", help="The lock that the project uses; `lockstorm locks` lists them.")
@click.option("--for", "purpose", help=f"What it is for: {' or '.join(PURPOSES)}.")
@click.option("--resource", help=f"What it protects: {', '.join(RESOURCES)}.")
@click.option("-f", "--file", type=click.Path(path_type=Path), default=USUAL_FILE, show_default=True, help="To write.")
def init(lock: str | None, purpose: str | None, resource: str | None, file: Path) -> int:
    """Write a first lockstorm.toml, commented. Asks three questions, or is told by options; never overwrites.

    \b
    Example: lockstorm init --lock set-nx-px --for correctness --resource plain
    """
    if file.exists():
        raise UsageError(f"{file} exists already: nothing was written")
    given = {"lock": lock, "for": purpose, "resource": resource}
    missing = [f"--{name}" for name, value in given.items() if value is None]
    if missing and not sys.stdin.isatty():
        raise UsageError(f"there is no terminal to ask on: give {', '.join(missing)}")
    summaries = {known["name"]: known["summary"] for known in locks() if known["name"] != "none"}
    answers = ask_questions(given, ask_on_terminal, summaries)
    write_starter(file, answers)
    console().print(f"written: {file}; now: ./lockstorm gate" + ("" if file == Path(USUAL_FILE) else f" -f {file}"))
    return 0


def ask_on_terminal(question: str, answers: dict[str, str], usual: str) -> str:
    """Until the answer is one that there is."""
    table = Table(box=None, padding=(0, 1), show_header=False)
    for name, meaning in answers.items():
        table.add_row(Text(name, "bold"), Text(meaning))
    console().print(Text(question, "bold"))
    console().print(table)
    while True:
        said = str(click.prompt("  ", default=usual, prompt_suffix="> ")).strip()
        try:
            return choose("answer", said, list(answers))
        except UsageError as error:
            click.echo(f"  {error}")
