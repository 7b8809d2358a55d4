"""Templates of texts that are no HTML: programs, policies, Markdown. Nothing in them is escaped by itself."""

from collections.abc import Callable
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template


def text_template(path: Path, **filters: Callable[..., str]) -> Template:
    environment = Environment(
        loader=FileSystemLoader(path.parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters |= filters
    return environment.get_template(path.name)
