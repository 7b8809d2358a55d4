"""A machine that lacks a library of the project's programs is told which one, and what has it."""

import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from lockstorm.base import paths, shared_objects
from lockstorm.base.errors import Inconclusive
from lockstorm.cli.commands import doctor_command as doctor
from lockstorm.native import library
from lockstorm.servers import services
from lockstorm.servers.services import PACKAGES

LACKING = "int lacking(void);\nint main(void) { return lacking(); }\n"
SENTENCE = (
    "liblacking-3.so.1.2 is not installed: on Debian and Ubuntu install liblacking-3-1.2; if there is no such package, "
    "lockstorm was built on another system: run make clean, then ./lockstorm"
)


@pytest.fixture
def orphan(tmp_path: Path) -> Path:
    """A program, and beside it a library, both linked with a library that is not there any more."""
    (tmp_path / "lib.c").write_text("int lacking(void) { return 0; }\n")
    (tmp_path / "main.c").write_text(LACKING)
    gone, made, loaded = tmp_path / "liblacking-3.so.1.2", tmp_path / "program", tmp_path / "program.so"
    subprocess.run(["cc", "-shared", "-fPIC", f"-Wl,-soname,{gone.name}", "-o", gone, tmp_path / "lib.c"], check=True)
    for result, words in ((made, []), (loaded, ["-shared", "-fPIC"])):
        subprocess.run(["cc", *words, "-o", result, tmp_path / "main.c", gone], check=True)
    gone.unlink()
    return made


def test_a_program_that_lacks_a_library(orphan: Path) -> None:
    assert shared_objects.missing_for_files([orphan, Path("/bin/sh")]) == ["liblacking-3.so.1.2"]
    with pytest.raises(Inconclusive) as said:
        shared_objects.check_started(subprocess.run([orphan], capture_output=True, text=True))
    assert str(said.value) == SENTENCE
    shared_objects.check_started(subprocess.run(["sh", "-c", "exit 127"], capture_output=True, text=True))


def test_the_library_of_the_project_that_lacks_one(orphan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = orphan.parent / "lib"
    place.mkdir()
    orphan.with_suffix(".so").rename(place / "liblockstorm.so")
    monkeypatch.setattr(paths, "build", lambda: orphan.parent)
    with pytest.raises(Inconclusive) as said:
        library.library.__wrapped__()
    assert str(said.value) == SENTENCE


@pytest.mark.parametrize(
    ("library_", "package"),
    [("libhiredis.so.0.14", "libhiredis0.14"), ("libev.so.4", "libev4"), ("libjansson.so.4", "libjansson4")],
)
def test_the_package_of_a_library(library_: str, package: str) -> None:
    assert shared_objects.package_of(library_) == package


def test_doctor_names_one_reason_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacks() -> str:
        raise Inconclusive(SENTENCE)

    rows = [(name, lacks if name == doctor.PROGRAMS else find, *rest) for name, find, *rest in doctor.EXAMINED]
    monkeypatch.setattr(doctor, "EXAMINED", [row for row in rows if row[0] != doctor.REDIS])
    found = {each.name: each for each in doctor.examine()}
    assert (found["programs"].found, found["programs"].help) == (SENTENCE, "")
    others = {each.found for name, each in found.items() if name not in ("programs", "private directory")}
    assert others == {"not examined: it needs programs"}


def test_what_only_other_services_need_does_not_concern_locks_on_redis(monkeypatch: pytest.MonkeyPatch) -> None:
    programs = {paths.program(name) for name in paths.SERVICE_PROGRAMS}

    def lacking(files: Iterable[Path]) -> list[str]:
        return ["libpq.so.5"] if {str(file) for file in files} & programs else []

    for module in (doctor, services):
        monkeypatch.setattr(module, "missing_for_files", lacking)
    assert doctor.find_programs().startswith("built in ")
    assert services.missing.__wrapped__("redis") == ""
    for service in PACKAGES:
        reason = services.missing.__wrapped__(service)
        assert reason.startswith("libpq.so.5 is not installed: on Debian and Ubuntu install libpq5;")


def test_the_packages_of_services_are_those_of_the_list() -> None:
    lines = [line.split() for line in (paths.ROOT / "ci" / "packages").read_text().splitlines()]
    listed = {line[1] for line in lines if line and line[0] == "service"}
    assert {name for names in PACKAGES.values() for name in names} == listed
