"""Where a key stands in a TOML file: the parser tells values, a message has to tell lines."""

import re

Path = tuple[str | int, ...]  # keys and, in an array of tables, the number of the table

WORD = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
HEADER = re.compile(rf"^\s*(\[\[?)\s*({WORD}(?:\s*\.\s*{WORD})*)\s*\]\]?")
KEY = re.compile(rf"^\s*({WORD}(?:\s*\.\s*{WORD})*)\s*=")


def find_places(text: str) -> dict[Path, int]:
    """The line of every table and every key that begins a line. The text is known to be TOML."""
    places: dict[Path, int] = {(): 1}
    counts: dict[Path, int] = {}
    table: Path = ()
    inside = ""  # the quotes of the string of several lines that this line is in
    for number, line in enumerate(text.splitlines(), 1):
        begun = inside
        for quotes in ('"""', "'''"):
            if line.count(quotes) % 2 and inside in ("", quotes):
                inside = "" if inside else quotes
        if begun:
            continue
        if header := HEADER.match(line):
            table = words_of(header[2])
            if header[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                places.setdefault(table, number)
                table = (*table, counts[table])
            places.setdefault(table, number)
        elif key := KEY.match(line):
            places.setdefault((*table, *words_of(key[1])), number)
    return places


def words_of(dotted: str) -> Path:
    return tuple(word.strip("\"'") for word in re.findall(WORD, dotted))


def line_at(places: dict[Path, int], path: Path) -> int:
    """The line of what is there, or of the nearest that it is in."""
    while path not in places:
        path = path[:-1]
    return places[path]
