"""`lockstorm scenarios`."""

import click

from lockstorm.cli.listing import ScenarioEntry, explain, show_list
from lockstorm.cli.options import json_option
from lockstorm.scenario.play import scenario_named
from lockstorm.scenario.scenario import scenarios as scenario_table


@click.command("scenarios")
@click.argument("name", required=False)
@json_option
def scenarios_command(name: str | None, as_json: bool) -> int:
    """List the scenarios; with NAME, explain one.

    \b
    Example: lockstorm scenarios gc-pause
    """
    known = {
        each.name: ScenarioEntry(
            each.name, each.kind, each.summary, list(each.needs), list(each.times), each.source, each.control
        )
        for each in scenario_table().values()
    }
    if name:
        return explain(known[scenario_named(name).name], as_json, ("kind", "needs", "times", "control"))
    return show_list("scenarios", list(known.values()), as_json, [], ("control", "control"))
