"""The structure: rooms of limited size, a README in each, and unique names."""

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from lockstorm.base import paths
from lockstorm.base.marked_pages import page_with
from lockstorm.cli.commands.faults_command import markdown_table, target_table
from lockstorm.native.library import faults
from lockstorm.results.fault_entry import FaultEntry

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
# Words of a sentence that has to be read twice: "there is no X", a clause of its own, or "a client that" is plainer.
HABITS = re.compile(r"\b(?:is|are) none\b|\b[Ww]hoever\b|\b[Oo]f which\b|\b[Oo]therwise than\b")
# Where a sentence, or a text of C or Python, goes on in the next line.
SENTENCE_GOES_ON = re.compile(r"""\n[ \t]*(?:\*(?!/)|\#|//)?[ \t]*|["']\n\s*f?["']""")
WRITTEN_IN = (*TOPS, "adapters", "bench", "ci", "docs", "findings", "scenarios", "tests")
WRITTEN_AS = {".c", ".h", ".py", ".md", ".toml", ".java", ".go", ".js", ".mjs", ".cs", ".rb"}
BUILT = {"node_modules", "target", "build"}

# The Python that chooses faults by name. Their names, meanings and proofs are in faults/names/fault_rows.c alone.
CHOOSES_FAULTS = {
    "cli/commands/demo_command.py": "shows two of them",
    "cli/commands/doctor_command.py": "tries what a trial needs",
    "conformance/plugin_check.py": "breaks a plug-in's connection",
    "matrix/candidates.py": "asks what a lock does in two",
    "native/fault_names.py": "reads an old name by its target",
    "report": "draws each in its own way",
    "scenario/attached_play.py": "leaves one out",
    "search": "which a search draws, and what a right lock survives",
    "storm": "how a storm draws each",
    "trial/fault.py": "a method for each that scenarios inject",
}


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
    assert len(places) > 2000, "the definitions are not recognised"
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


def texts() -> Iterator[Path]:
    """All that people read: documents, help texts, messages, comments; without this file, which has the controls."""
    yield from (path for path in paths.ROOT.iterdir() if path.suffix == ".md" or path.name == "Makefile")
    for folder in WRITTEN_IN:
        for path in sorted((paths.ROOT / folder).rglob("*")):
            ours = path.suffix in WRITTEN_AS and not BUILT & set(path.parts)
            if ours and path.is_file() and path.name != "test_house.py":
                yield path


def hard_to_read(text: str) -> list[str]:
    joined = SENTENCE_GOES_ON.sub(" ", text)
    return [joined[max(0, each.start() - 60) : each.end() + 30] for each in HABITS.finditer(joined)]


def test_sentences_are_plain() -> None:
    """Three habits that cost a reader time."""
    controls = ("NULL: there is none.", "a client, of\n * which", "/* Whoever\n * asks */", '"other" "wise than"')
    assert [len(hard_to_read(text)) for text in controls] == [1, 1, 1, 0], "a control"
    found = {}
    for path in texts():
        place = str(path.relative_to(paths.ROOT))
        if sentences := hard_to_read(path.read_text()):
            found[place] = sentences
    assert found == {}


def test_decisions_have_a_status_and_a_line_in_the_index() -> None:
    folder = paths.ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text()
    files = {path.name: path.read_text() for path in folder.glob("0*.md")}
    assert sorted(re.findall(r"\]\((\d{4}-[^)]*)\)", index)) == sorted(files)
    for name, text in files.items():
        status = text.splitlines()[2]
        assert re.match(r"Status: (stands|replaced by \d{4})\b", status), name


def test_a_decision_that_is_cited_exists() -> None:
    numbers = {path.name[:4] for path in (paths.ROOT / "docs" / "decisions").glob("0*.md")}
    cited: dict[str, set[str]] = defaultdict(set)
    for path in texts():
        for number in re.findall(r"(?:\b[Dd]ecisions? |decisions/)(0\d{3})\b", path.read_text()):
            cited[number].add(path.name)
        if path.parent.name == "decisions":
            text = re.sub(r"^Status: .*", "", path.read_text(), flags=re.MULTILINE)
            for number in re.findall(r"[(\[](0\d{3})\b", text):
                cited[number].add(path.name)
    assert len(cited) > 20, "the citations are not recognised"
    assert {number: where for number, where in cited.items() if number not in numbers} == {}


def test_faults_are_named_in_one_table() -> None:
    """A second list would have to be kept in step by hand."""
    known = {fault.name for fault in faults()}
    for path in c_files():
        if path.name != "fault_rows.c":
            code = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
            assert not known & set(re.findall(r'"([a-z-]+)"', code)), path
    top = paths.ROOT / "harness" / "lockstorm"
    for path in python_files():
        place = path.relative_to(top)
        if place.parts[0] not in CHOOSES_FAULTS and str(place) not in CHOOSES_FAULTS:
            assert not known & set(re.findall(r'"([a-z-]+)"', path.read_text())), path


@pytest.mark.parametrize(("name", "table"), [("faults.md", markdown_table), ("pytest.md", target_table)])
def test_pages_show_the_tables_of_faults(name: str, table: Callable[[Sequence[FaultEntry]], str]) -> None:
    page = paths.ROOT / "docs" / name
    whole = page_with(page, table(faults()), "<!-- faults -->", "<!-- /faults -->")
    assert page.read_text() == whole, "./lockstorm faults --markdown prints the table"
