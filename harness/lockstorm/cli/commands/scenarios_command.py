"""`lockstorm scenarios`."""

import click

from lockstorm.cli.listing import explain, show_list
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
    known = [
        {
            "name": each.name,
            "summary": each.summary,
            "needs": list(each.needs),
            "times": list(each.times),
            "source": each.source,
            "control": each.control,
        }
        for each in scenario_table().values()
    ]
    if name:
        wanted = scenario_named(name).name
        return explain(next(each for each in known if each["name"] == wanted), as_json, ("needs", "times", "control"))
    return show_list("scenarios", known, as_json, [], ("control", "control"))
