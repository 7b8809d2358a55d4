"""The line of each key in a TOML file: tomllib gives values only, and messages name lines."""

import re

Path = tuple[str | int, ...]  # keys; in an array of tables also the number of the table, from 0

WORD = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
HEADER = re.compile(rf"^\s*(\[\[?)\s*({WORD}(?:\s*\.\s*{WORD})*)\s*\]\]?")
KEY = re.compile(rf"^\s*({WORD}(?:\s*\.\s*{WORD})*)\s*=")


def find_key_lines(text: str) -> dict[Path, int]:
    """The line, from 1, of every table and of every key at the beginning of a line. `text` must be valid TOML."""
    lines: dict[Path, int] = {(): 1}
    counts: dict[Path, int] = {}
    table: Path = ()
    inside = ""  # the quotes of the multi-line string that this line is in
    for number, line in enumerate(text.splitlines(), 1):
        begun = inside
        for quotes in ('"""', "'''"):
            if line.count(quotes) % 2 and inside in ("", quotes):
                inside = "" if inside else quotes
        if begun:
            continue
        if header := HEADER.match(line):
            table = split_dotted_key(header[2])
            if header[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                lines.setdefault(table, number)
                table = (*table, counts[table])
            lines.setdefault(table, number)
        elif key := KEY.match(line):
            lines.setdefault((*table, *split_dotted_key(key[1])), number)
    return lines


def split_dotted_key(dotted: str) -> Path:
    return tuple(word.strip("\"'") for word in re.findall(WORD, dotted))


def line_at(lines: dict[Path, int], path: Path) -> int:
    """The line of a path, or of the nearest enclosing table if the path is not in the file."""
    while path not in lines:
        path = path[:-1]
    return lines[path]
