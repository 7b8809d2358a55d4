"""`lockstorm locks`."""

import click

from lockstorm.cli.listing import explain, show_list
from lockstorm.cli.options import json_option
from lockstorm.locks.lock_names import lock_named
from lockstorm.native.library import locks as lock_table


@click.command("locks")
@click.argument("name", required=False)
@json_option
def locks_command(name: str | None, as_json: bool) -> int:
    """List the locks; with NAME, explain one.

    \b
    Example: lockstorm locks set-nx-px
    """
    known = lock_table()
    if name:
        return explain(
            lock_named(name),
            as_json,
            ("lease", "renews", "token", "reentrant", "fair", "waits", "capacity", "nodes", "replicas"),
        )
    traits = [("lease", "lease"), ("token", "token"), ("re-entrant", "reentrant"), ("fair", "fair")]
    return show_list("locks", known, as_json, traits, ("waits", "waits"))
