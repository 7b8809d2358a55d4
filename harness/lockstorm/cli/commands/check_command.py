"""`lockstorm check`: a recorded history, or a kept run of the gate."""

from pathlib import Path
from typing import Any

import click
from rich.text import Text

from lockstorm.base.durations import UNITS_MS
from lockstorm.base.errors import UsageError
from lockstorm.base.paths import runnable
from lockstorm.cli.options import duration_option, field_options, json_option
from lockstorm.cli.terminal import console, print_json, waiting
from lockstorm.native.linearizability import MODELS, LinearizeSettings, linearize, needs_model
from lockstorm.report.story import policy_sentence, policy_table, sentence_text, verdict_table
from lockstorm.results.gate_verdict import GateApplication
from lockstorm.results.properties import ACQUIRE_POLICIES, REFUSAL_POLICIES, RELEASE_POLICIES
from lockstorm.results.verdict import property_verdict
from lockstorm.scenario.play import judge_file
from lockstorm.trial.settings import TrialSettings


@click.command("check")
@click.argument("file", type=click.Path())
@field_options(TrialSettings, "require")
@click.option(
    "--release-policy",
    type=click.Choice(RELEASE_POLICIES),
    help="Count a refused release, or one of unknown outcome, as this. Default: released; with --model: unknown.",
)
@click.option(
    "--acquire-timeout",
    type=click.Choice(ACQUIRE_POLICIES),
    help="Count an acquire of unknown outcome as this. Default: not-happened; with --model: unknown.",
)
@click.option(
    "--all-policies", is_flag=True, help="Also print the verdict under each combination of those two policies."
)
@click.option("--model", type=click.Choice(MODELS), help="Judge whether the history is linearizable as this model.")
@click.option("--permits", type=click.IntRange(1), help="With --model semaphore: its number of permits. Default: 1.")
@click.option("--initial", metavar="N|nil", help="With --model register: its initial value.")
@click.option(
    "--refused-renewal",
    type=click.Choice(REFUSAL_POLICIES),
    help="With --model: read a refused renewal or release as this; lost: its client does not hold the lock any more. "
    "Default: unknown.",
)
@click.option("--leases", is_flag=True, help="With --model: let a hold expire when no operation confirms it any more.")
@click.option(
    "--memory-limit",
    metavar="MIB",
    type=click.FloatRange(0),
    help="With --model: give up, inconclusive, beyond this memory in MiB; 0: no limit. Default: 4096.",
)
@duration_option(
    "--time-limit",
    "time_limit_ms",
    "With --model: give up, inconclusive, after this time; 0s: no limit. Default: 5min.",
    0,
    24 * UNITS_MS["h"],
)
@json_option
def check_command(
    file: str,
    require: str | None,
    release_policy: str | None,
    acquire_timeout: str | None,
    all_policies: bool,
    as_json: bool,
    model: str | None,
    **reading: Any,
) -> int:
    """Judge a recorded history: FILE is a binary history (run -o FILE), its JSON Lines form, or - with --model - Jepsen
    EDN or AtlasDB-style JSON. Or judge a kept run of the gate (runs/ID) again, by its own policy.

    \b
    Example: lockstorm run gc-pause --lock set-nx-px -o gc.history; lockstorm check gc.history
             lockstorm check jepsen.edn --model owner-mutex --release-policy released
    `lockstorm docs linearizable` defines the models.
    """
    if Path(file).is_dir():
        if require or release_policy or acquire_timeout or all_policies or model or any(reading.values()):
            raise UsageError(f"{file} is a kept run: it is judged by its own policy; leave the options out")
        return check_run(Path(file), as_json)
    if not model and needs_model(file):
        raise UsageError(f"{file}: another tool's history needs --model: {', '.join(MODELS)}")
    given = [f"--{name.removesuffix('_ms').replace('_', '-')}" for name, value in reading.items() if value]
    if given and not model:
        raise UsageError(f"{given[0]} is for --model")
    if model and all_policies:
        raise UsageError("--all-policies is not for --model: name one with --release-policy and --acquire-timeout")
    if model:
        settings = LinearizeSettings(model, release_policy=release_policy, acquire_timeout=acquire_timeout, **reading)
        return check_linearizable(file, settings, as_json)
    verdict = judge_file(file, require, release_policy or "released", acquire_timeout or "not-happened", all_policies)
    if as_json:
        print_json(verdict)
        return verdict.exit
    out = console()
    out.print(verdict_table(verdict.properties, verdict.required), "")
    if verdict.policies:
        out.print(policy_table(verdict.policies), "")
    out.print(Text(policy_sentence(verdict), "dim"))
    out.print(sentence_text(verdict.sentence, verdict.exit))
    if verdict.baseline:
        out.print(Text(verdict.baseline))
    return verdict.exit


def check_linearizable(file: str, settings: LinearizeSettings, as_json: bool) -> int:
    result = linearize(file, settings)
    if as_json:
        print_json(result)
    else:
        out = console()
        properties = {name: property_verdict(each) for name, each in result["verdict"].items()}
        out.print(verdict_table(properties, result["required"]), "")
        out.print(sentence_text(result["sentence"], result["exit"]))
    return int(result["exit"])


def check_run(directory: Path, as_json: bool) -> int:
    """`lockstorm check runs/ID`. The gate is loaded for that alone."""
    from lockstorm.gate.gate import judge_again
    from lockstorm.gate.gate_text import show_verdict

    with waiting(f"{directory} ..."):
        verdict = judge_again(directory)
    if as_json:
        print_json(verdict)
    else:
        out = console()
        show_verdict(out, verdict)
        for each in verdict.differences or ():
            out.print(Text(f"differs from the verdict of the run: {each}", "bold yellow"))
        if not verdict.differences and verdict.cells:
            out.print(Text("every trial has the same verdict as in the run", "dim"))
        for case in verdict.applications:
            out.print(Text(not_judged_again(case), "dim"), soft_wrap=True)
    return verdict.exit


def not_judged_again(case: GateApplication) -> str:
    """A search keeps no histories."""
    how = "plays its schedule again" if case.schedule else "searches again"
    again = runnable(case.replay if case.schedule else case.search)
    return f"{case.name}: the verdict of the run, as a search keeps no histories; this {how}: {again}"
