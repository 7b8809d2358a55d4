"""lockstorm as pip installs it: outside any checkout, where nobody may write, for a user without privileges."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from lockstorm.base import paths
from lockstorm.base.version import VERSION
from tests.conformance.test_serve_languages import PROGRAMS, written

NOBODY = 65534
PYTEST = ("pytest", "iniconfig", "packaging", "pluggy", "pytest-xdist", "execnet")  # of ci/requirements-test.txt
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
SOURCES = ("adapters", "checkers", "ci", "docs", "faults", "harness", "scenarios")
FILES = ("LICENSE", "Makefile", "README.md", "pyproject.toml")

pytestmark = pytest.mark.slow("builds and installs the package", seconds=60)


@dataclass(frozen=True)
class Installed:
    """A virtual environment with lockstorm, and an empty directory of a user to work in."""

    programs: Path
    home: Path

    def run(
        self, *words: str, on_path: bool = True, cwd: Path | None = None, program: str = "lockstorm", **more: str
    ) -> "subprocess.CompletedProcess[str]":
        """Runs lockstorm, or another program beside it, as a user without privileges; stdout and stderr together."""
        here = f"{self.programs}:" if on_path else ""
        environment = {"HOME": str(self.home), "PATH": f"{here}/usr/bin:/bin", "TERM": "dumb", "COLUMNS": "200", **more}
        return subprocess.run(
            [str(self.programs / program), *words],
            cwd=cwd or self.home,
            env=environment,
            user=NOBODY if os.geteuid() == 0 else None,
            group=NOBODY if os.geteuid() == 0 else None,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the source distribution: both have all that is needed."""
    top = tmp_path_factory.mktemp("sources")
    sources, built = top / "lockstorm", top / "built"
    for name in SOURCES:
        shutil.copytree(paths.ROOT / name, sources / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
    for name in FILES:
        shutil.copy2(paths.ROOT / name, sources)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(built)]
    subprocess.run(build, cwd=sources, check=True, capture_output=True)
    (archive,) = built.glob("*.tar.gz")
    subprocess.run([*PIP, "wheel", "--no-deps", "--no-build-isolation", "-w", str(built), str(archive)], check=True)
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Iterator[Installed]:
    top = Path(tempfile.mkdtemp(prefix="lockstorm-installed-"))
    top.chmod(0o755)
    environment, home = top / "environment", top / "home"
    home.mkdir()
    if os.geteuid() == 0:
        os.chown(home, NOBODY, NOBODY)
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", str(environment)], check=True)
    libraries = next((environment / "lib").glob("python3*/site-packages"))
    install = [*PIP, "--python", str(environment / "bin" / "python"), "install", "--no-deps"]
    locked = re.findall(r"^([\w-]+)(==[^ ;]+)", (paths.ROOT / "ci" / "requirements-test.txt").read_text(), re.MULTILINE)
    pytests = [name + version for name, version in locked if name in PYTEST]
    assert len(pytests) == len(PYTEST)
    subprocess.run([*install, "-r", str(paths.ROOT / "ci" / "requirements.txt")], check=True)
    subprocess.run([*install, *pytests, str(wheel)], check=True)  # a wheel has no hash in a list
    subprocess.run(["chmod", "-R", "a-w", str(libraries)], check=True)
    try:
        yield Installed(environment / "bin", home)
    finally:
        subprocess.run(["chmod", "-R", "u+w", str(top)], check=True)
        shutil.rmtree(top)


def test_the_wheel_has_what_runs_and_nothing_else(wheel: Path) -> None:
    assert re.fullmatch(rf"lockstorm-{VERSION}-py3-none-linux_\w+\.whl", wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        modes = {each.filename: each.external_attr >> 16 for each in archive.infolist()}
    top = {name.split("/")[0] for name in names}
    assert top == {"lockstorm", f"lockstorm-{VERSION}.dist-info"}
    for program in paths.PROGRAMS:
        assert modes[f"lockstorm/installed/build/bin/{program}"] & 0o111
    assert modes["lockstorm/installed/adapters/redis-py/run"] & 0o111
    for language in ("go", "java"):
        assert modes[f"lockstorm/adapter_program/{language}/run"] & 0o111
    serves = ("node/lockstorm/package.json", "node/lockstorm/serve.js", "go/serve.go", "java/Adapter.java")
    assert {f"lockstorm/adapter_program/{name}" for name in serves} <= set(names)
    assert "lockstorm/installed/build/include/lockstorm.h" in names
    assert not [name for name in names if "__pycache__" in name or name.endswith((".o", ".d"))]


def test_a_trial_and_its_replay(installed: Installed) -> None:
    done = installed.run("run", "gc-pause", "--lock", "set-nx-px", "-q")
    assert done.returncode == 1, done.stdout
    assert "\nagain: lockstorm run gc-pause --lock set-nx-px --seed 1" in done.stdout
    elsewhere = installed.run("run", "gc-pause", "--lock", "set-nx-px", "-q", on_path=False)
    (again,) = re.findall(r"^again: (\S+) run", elsewhere.stdout, re.MULTILINE)
    assert again == str(installed.programs / "lockstorm")


def test_what_is_made_once_is_in_the_cache_of_the_user(installed: Installed) -> None:
    done = installed.run("run", "gc-pause", "--lock", "pg-advisory", "-q")
    assert done.returncode == 0, done.stdout
    assert len(list(installed.home.glob(".cache/lockstorm/*/templates/postgres-*"))) == 1


def test_without_a_cache_it_says_how_to_get_one(installed: Installed) -> None:
    """Templates of servers are made there, and what adapters find serve() by."""
    for lock in (("--lock", "pg-advisory"), ("--adapter", "redis-py"), ("--adapter", "lock:set-nx-px")):
        done = installed.run("run", "gc-pause", *lock, "-q", XDG_CACHE_HOME="/proc/nowhere")
        assert done.returncode == 3, done.stdout
        told = done.stdout
        assert "/proc/nowhere/lockstorm/" in told and "set XDG_CACHE_HOME to a directory" in told, told


def test_all_its_programs_are_found(installed: Installed) -> None:
    found = {each["name"]: each for each in json.loads(installed.run("doctor", "--json").stdout)["findings"]}
    assert found["programs"]["ok"] and "lockstorm/installed/build" in found["programs"]["found"]
    assert found["virtual time"]["ok"]


def test_the_matrix_the_zoo_and_the_explorer(installed: Installed) -> None:
    for words, shown in (
        (("matrix", "--scenario", "gc-pause", "--lock", "redlock"), "4 cells, all as expected"),
        (("explore", "--lock", "fair", "--schedules", "50", "--faults", "none"), "50 schedules"),
        (("zoo", "--bug", "redis-py-818"), ""),
    ):
        done = installed.run(*words)
        assert done.returncode == 0, done.stdout
        assert shown in done.stdout


def test_a_gate(installed: Installed) -> None:
    written = installed.run("init", "--lock", "set-nx-px-fenced", "--for", "correctness", "--resource", "plain")
    assert "now: lockstorm gate" in written.stdout, written.stdout
    (installed.home / "lockstorm.toml").write_text(
        '[[lock]]\nname = "set-nx-px-fenced"\nrequire = ["mutual_exclusion"]\n[scenarios]\nplay = "crash-holder"\n'
    )
    done = installed.run("gate", "-o", "results")
    assert done.returncode == 0, done.stdout
    assert json.loads((installed.home / "results" / "verdict.json").read_text())["exit"] == 0


def test_a_library_and_a_plug_in(installed: Installed) -> None:
    done = installed.run("run", "gc-pause", "--adapter", "redis-py", "-q")
    assert done.returncode == 1 and "Mutual exclusion violated" in done.stdout, done.stdout
    written = installed.run("plugin", "init")
    (compile_it,) = re.findall(r"^cc .*$", written.stdout, re.MULTILINE)
    subprocess.run(compile_it, shell=True, cwd=installed.home, check=True)
    done = installed.run("plugin", "check", "./lock-plugin.so")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("language", PROGRAMS)
def test_serve_in_another_language(installed: Installed, language: str) -> None:
    """The program finds what lockstorm brings, and is compiled in the cache of the user. Its lock locks nothing."""
    home = installed.home / language
    home.mkdir()
    done = installed.run("adapter", "check", str(written(home, language)))
    assert done.returncode == 1 and done.stdout.startswith("my lock (") and " checks, " in done.stdout, done.stdout


def test_the_plug_in_for_pytest(installed: Installed) -> None:
    page = (paths.ROOT / "docs" / "pytest.md").read_text()
    example = page.partition("```python\n")[2].partition("```")[0]
    chosen = 'adapter="./lock-adapter"'
    assert chosen in example
    suite = installed.home / "suite"
    suite.mkdir()
    (suite / "test_stock.py").write_text(example.replace(chosen, 'adapter="redis-py"'))
    run = partial(installed.run, "-m", "pytest", "-p", "no:cacheprovider", program="python", cwd=suite)
    for words in ((), ("-n", "2")):
        done = run(*words)
        assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout
    refused = run("--markers", "-p", "no:lockstorm")
    assert "@pytest.mark.lockstorm" not in refused.stdout and "@pytest.mark.lockstorm" in run("--markers").stdout
    (suite / "test_stock.py").write_text(example.replace(chosen, 'lock="fair"').replace("holds", "violated"))
    failed = run()
    assert failed.returncode == 1 and "\nshow: lockstorm show /" in failed.stdout, failed.stdout


def test_its_own_tests_need_a_checkout(installed: Installed) -> None:
    done = installed.run("test")
    assert (done.returncode, done.stdout) == (
        2,
        "lockstorm: the project's tests are not installed: run ./lockstorm test in a checkout\n",
    )


def test_a_build_that_fails_names_the_packages(tmp_path: Path) -> None:
    environment = {**os.environ, "CC": "false"}
    for name in (*SOURCES, *FILES):
        (tmp_path / name).symlink_to(paths.ROOT / name)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "built")]
    done = subprocess.run(build, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode != 0
    assert "apt-get install gcc libc6-dev make libhiredis-dev" in done.stdout + done.stderr
