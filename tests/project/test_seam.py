"""The C library as Python sees it (harness/lockstorm/native/seam.py) has the layouts and values of C."""

import ctypes
import runpy
import subprocess
from enum import Enum
from pathlib import Path

from lockstorm.base import paths
from lockstorm.native import seam
from lockstorm.native.library import library

HEADERS = [*runpy.run_path(str(paths.ROOT / "ci" / "seam.py"))["HEADERS"], "checkers/engine/policy.h"]


def _classes(kind: type) -> list[type]:
    every = [each for each in vars(seam).values() if isinstance(each, type) and issubclass(each, kind)]
    return [each for each in every if each.__module__ == seam.__name__]


def _from_c(expressions: list[str], directory: Path) -> dict[str, int]:
    """The value of each expression, by the C compiler."""
    lines = [f'    printf("%lld ", (long long)({expression}));' for expression in expressions]
    includes = [f'#include "{header}"' for header in HEADERS]
    text = "\n".join([*includes, "#include <stdio.h>", "int main(void) {", *lines, "}"])
    program, source = directory / "values", directory / "values.c"
    source.write_text(text)
    subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-I", paths.ROOT, "-o", program, source], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    return dict(zip(expressions, map(int, done.stdout.split()), strict=True))


def test_structs_have_the_sizes_and_offsets_of_c(tmp_path: Path) -> None:
    here: dict[str, int] = {}
    for each in _classes(ctypes.Structure):
        struct = str(each.__doc__)
        here[f"sizeof({struct})"] = ctypes.sizeof(each)
        for name, *_ in each._fields_:  # type: ignore[attr-defined]
            if name != "_pad":
                field = getattr(each, name)
                here[f"offsetof({struct}, {name})"] = field.offset
                here[f"sizeof((({struct} *)0)->{name})"] = field.size
    assert len(here) > 200
    assert here == _from_c(list(here), tmp_path)


def test_enumerators_have_the_values_of_c(tmp_path: Path) -> None:
    here = {
        str(each.__doc__).partition(": ")[2].removesuffix("*") + name: int(member)
        for each in _classes(Enum)
        for name, member in vars(each)["_member_map_"].items()
    }
    assert len(here) > 80
    assert here == _from_c(list(here), tmp_path)


def test_a_shorter_sentence_fits_where_c_writes_one(tmp_path: Path) -> None:
    """Python has one class for both."""
    sizes = _from_c(["sizeof(struct history_error)", "sizeof(struct fault_report)"], tmp_path)
    assert max(sizes.values()) == ctypes.sizeof(seam.Message)


def test_the_library_has_every_function() -> None:
    assert [name for name in seam.SIGNATURES if not hasattr(library(), name)] == []


def test_the_file_is_what_the_headers_say() -> None:
    """`make` writes it anew when a header changes."""
    made = runpy.run_path(str(paths.ROOT / "ci" / "seam.py"))
    assert made["TARGET"].read_text() == made["seam"](), "run `make build`"
