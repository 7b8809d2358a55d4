"""The structure: rooms of limited size, a README in each, and unique names."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstorm.base import paths

UNITS_MOST = 25
FLAT_LISTS = {"harness/lockstorm/cli/commands": 40}  # of like things, one a file
C_LINES_MOST, PYTHON_LINES_MOST = 70, 50
TOPS = ("harness", "faults", "checkers")
TYPE = re.compile(r"^(?:typedef )?(?:struct|enum|union) (\w+) \{", re.MULTILINE)
# The first line of a definition begins at the margin, as clang-format writes it.
C_FUNCTION = re.compile(r"^(?!typedef|#|extern)[a-z_][\w *]*?\b(\w+)\([^;{}]*\)\s*\{", re.MULTILINE)
ENTRY_POINTS = {"main"}  # of the programs and of `python -m`
# The same check of an adapter and of a plug-in has the same name, in two tables of checks.
TWINS = {"lockstorm/conformance/adapter_check.py", "lockstorm/conformance/plugin_check.py"}


def rooms() -> list[Path]:
    folders = {
        path.parent for top in TOPS for kind in ("*.c", "*.h", "*.py") for path in (paths.ROOT / top).rglob(kind)
    }
    return sorted(folder for folder in folders if "__pycache__" not in folder.parts)


def units(room: Path) -> set[str]:
    return {path.stem for path in room.iterdir() if path.suffix in (".c", ".h", ".py") and path.stem != "__init__"}


def python_files() -> list[Path]:
    return sorted((paths.ROOT / "harness" / "lockstorm").rglob("*.py"))


def c_files() -> Iterator[Path]:
    for top in TOPS:
        yield from sorted((paths.ROOT / top).rglob("*.[ch]"))


@pytest.mark.parametrize("room", rooms(), ids=lambda room: str(room.relative_to(paths.ROOT)))
def test_a_room_can_be_overlooked(room: Path) -> None:
    most = FLAT_LISTS.get(str(room.relative_to(paths.ROOT)), UNITS_MOST)
    assert len(units(room)) <= most, sorted(units(room))
    readme = room / "README.md"
    assert readme.is_file(), f"{readme} is missing: what it is, its smallest file, how to add one"


def test_no_python_function_is_longer_than_one_can_see() -> None:
    for path in python_files():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                length = (node.end_lineno or 0) - node.lineno + 1
                assert length <= PYTHON_LINES_MOST, f"{path.name}: {node.name} has {length} lines"


def test_a_python_class_or_function_name_occurs_once() -> None:
    places: dict[str, set[str]] = defaultdict(set)
    for path in python_files():
        where = str(path.relative_to(paths.ROOT / "harness"))
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_"):
                places[node.name].add(where)
    twice = {name: where for name, where in places.items() if len(where) > 1 and not where <= TWINS}
    assert {name: where for name, where in twice.items() if name not in ENTRY_POINTS} == {}


def test_a_c_type_name_occurs_once() -> None:
    places: dict[str, set[str]] = defaultdict(set)
    for path in c_files():
        for name in TYPE.findall(path.read_text()):
            places[name].add(path.name)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_a_c_function_name_occurs_once() -> None:
    """Static ones too: a search for a name finds one function, and a drawing of the calls no false arrow."""
    places: dict[str, set[str]] = defaultdict(set)
    for path in c_files():
        for name in C_FUNCTION.findall(path.read_text()):
            places[name].add(str(path.relative_to(paths.ROOT)))
    assert len(places) > 3000, "the definitions are not recognised"
    assert {name: where for name, where in places.items() if len(where) > 1 and name not in ENTRY_POINTS} == {}


def returned(text: str) -> Iterator[str]:
    """What each return of a C file returns, without texts, comments and what stands in brackets."""
    text = re.sub(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'""", "", text, flags=re.DOTALL)
    for found in re.findall(r"\breturn\b([^;]*);", text):
        bare, before = found, ""
        while bare != before:
            bare, before = re.sub(r"\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}", "", bare), bare
        yield bare


def test_a_return_does_one_thing() -> None:
    """`return step(), value;` hides the step."""
    assert list(returned("return (a, b), c; return f(a, (b, c)); return ',';")) == [" , c", " f", " "], "a control"
    hidden = {path.name for path in c_files() if any("," in value for value in returned(path.read_text()))}
    assert hidden == set()


def test_a_file_name_occurs_once() -> None:
    """A .c and its .h are one; a Python module and a C file may be about the same thing."""
    for kinds in ((".c", ".h"), (".py",)):
        found: dict[str, set[Path]] = defaultdict(set)
        for room in rooms():
            for path in room.iterdir():
                if path.suffix in kinds and path.stem != "__init__":
                    found[path.stem].add(room)
        assert {name: where for name, where in found.items() if len(where) > 1} == {}
