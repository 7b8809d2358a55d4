"""ci/: what pipelines run, run here: in a clone of the project, over a project that has a policy."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lockstorm.base import paths
from lockstorm.base.version import VERSION

CI = paths.ROOT / "ci"
POLICY = """[[lock]]
name = "{lock}"
require = ["mutual_exclusion", "integrity"]
[scenarios]
play = "crash-holder"
"""
EXPRESSION = re.compile(r"\$\{\{\s*([\w.]+)\s*\}\}")
TOP = ("checkers", "ci", "faults", "harness", "scenarios", "LICENSE", "Makefile", "lockstorm")


def copy_project(root: Path, names: Iterator[str] | tuple[str, ...] = TOP) -> None:
    """Copies these parts of the checkout, and all that the launcher would install and build."""
    for name in names:
        source, target = paths.ROOT / name, root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, target)
    (root / ".venv").symlink_to((paths.ROOT / ".venv").resolve())
    (root / "build").mkdir()
    for name in ("bin", "lib"):
        shutil.copytree(paths.build() / name, root / "build" / name)
    asked = [root / "ci" / "packages", *sorted((root / "ci").glob("requirements*.txt")), root / "lockstorm"]
    summed = subprocess.run(["cksum"], input=b"".join(path.read_bytes() for path in asked), capture_output=True)
    (root / "build" / "set-up").write_text(f"{summed.stdout.split()[0].decode()} test\n")


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A `make` that finds everything built, and an `apt-get` that must not be needed."""
    directory = tmp_path_factory.mktemp("tools")
    for name, script in {"make": "exit 0", "apt-get": "echo apt-get was called >&2; exit 100"}.items():
        (directory / name).write_text(f"#!/bin/sh\n{script}\n")
        (directory / name).chmod(0o755)
    return directory


@pytest.fixture(scope="module")
def lockstorm_repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of lockstorm to clone from."""
    root = tmp_path_factory.mktemp("origin") / "lockstorm"
    root.mkdir()
    copy_project(root)
    git = ["git", "-C", str(root), "-c", "user.name=test", "-c", "user.email=test@localhost"]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    subprocess.run([*git, "add", "-A", "-f"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "all"], check=True)
    subprocess.run([*git, "tag", f"v{VERSION}"], check=True)
    return root


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that passes its own policy."""
    directory = tmp_path / "project"
    directory.mkdir()
    (directory / "lockstorm.toml").write_text(POLICY.format(lock="set-nx-px"))
    return directory


def run_script(script: str, project: Path, tools: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """As CI runners do: a shell that ends with the first command that fails."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("LOCKSTORM_")}
    whole = {**kept, **environment, "PATH": f"{tools}:{os.environ['PATH']}"}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(command, cwd=project, env=whole, capture_output=True, text=True, timeout=600)


# --- the GitHub action ---


def run_action(project: Path, tools: Path, root: Path, **inputs: str) -> tuple[int, dict[str, str], str]:
    """Runs the steps one after the other. Returns the status, the outputs and the summary."""
    said = yaml.safe_load((root / "ci" / "action.yml").read_text())
    assert said["runs"]["using"] == "composite"
    temp = project.parent / "temp"
    temp.mkdir()
    known = {"github.action_path": str(root / "ci"), "runner.temp": str(temp)}
    known |= {f"inputs.{name}": str(inputs.get(name, each["default"])) for name, each in said["inputs"].items()}
    files = {"GITHUB_OUTPUT": temp / "output", "GITHUB_STEP_SUMMARY": temp / "summary"}
    for file in files.values():
        file.touch()
    status = 0
    for step in said["runs"]["steps"]:
        assert set(step) <= {"name", "id", "shell", "env", "run"} and step["shell"] == "bash"
        assert not EXPRESSION.search(step["run"]), "an expression in a script is a script that somebody else writes"
        environment = {key: EXPRESSION.sub(lambda found: known[found[1]], value) for key, value in step["env"].items()}
        done = run_script(step["run"], project, tools, **environment, **{key: str(file) for key, file in files.items()})
        status = done.returncode
        if status:
            break
    outputs = dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())
    for name, output in said["outputs"].items():
        assert output["value"] == f"${{{{ steps.gate.outputs.{name} }}}}" and name in outputs
    return status, outputs, files["GITHUB_STEP_SUMMARY"].read_text()


def test_the_action_passes_a_safe_choice(project: Path, tools: Path, lockstorm_repository: Path) -> None:
    status, outputs, summary = run_action(project, tools, lockstorm_repository)
    assert status == 0, summary
    assert summary.startswith("## ✅ Safe")
    assert json.loads(Path(outputs["results"], "verdict.json").read_text())["exit"] == 0


def test_the_action_fails_with_a_summary_and_results(project: Path, tools: Path, lockstorm_repository: Path) -> None:
    unsafe = POLICY.format(lock="setnx").replace('["mutual_exclusion", "integrity"]', '["liveness"]')
    (project / "other policy.toml").write_text(unsafe)
    status, outputs, summary = run_action(project, tools, lockstorm_repository, policy="other policy.toml")
    assert status == 1
    assert summary.startswith("## ❌ Not safe") and "What to do." in summary
    names = {path.name for path in Path(outputs["results"]).iterdir()}
    assert names == {"verdict.json", "junit.xml", "lockstorm.sarif", "summary.md"}


def test_the_action_fails_for_a_policy_that_is_wrong(project: Path, tools: Path, lockstorm_repository: Path) -> None:
    assert run_action(project, tools, lockstorm_repository, policy="none.toml")[0] == 2


# --- the GitLab template, and one line ---


@pytest.mark.slow("installs as a pipeline does; the action is tried every day", seconds=5)
def test_the_gitlab_template(project: Path, tools: Path, lockstorm_repository: Path) -> None:
    job: dict[str, Any] = yaml.safe_load((CI / "gitlab.yml").read_text())["lockstorm"]
    script = "\n".join(job["script"])
    done = run_script(script, project, tools, **job["variables"], LOCKSTORM_REPOSITORY=f"file://{lockstorm_repository}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (project / job["artifacts"]["reports"]["junit"]).exists()
    assert all((project / path).exists() for path in job["artifacts"]["paths"])
    assert job["artifacts"]["when"] == "always"


@pytest.mark.slow("installs as a pipeline does; the action is tried every day", seconds=5)
def test_one_line_is_enough(project: Path, tools: Path, lockstorm_repository: Path) -> None:
    (line,) = re.findall(r"^git clone .*$", (CI / "README.md").read_text(), re.MULTILINE)
    done = run_script(line, project, tools, LOCKSTORM=f"file://{lockstorm_repository}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Safe, as far as this policy asks" in done.stdout


# --- the container ---


def stages() -> list[list[tuple[str, str]]]:
    """The instructions and their words, by stage."""
    text = (CI / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]
    found: list[list[tuple[str, str]]] = []
    for name, words in lines:
        if name == "FROM":
            found.append([])
        found[-1].append((name, words))
    return found


def copy_into_image(copied: str, target: str, image: Path) -> None:
    """As COPY does: a directory's contents, or a file into the directory."""
    source, there = paths.ROOT / copied, image / target.strip("/")
    if source.is_dir():
        shutil.copytree(source, there, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        there.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, there)


@pytest.mark.slow("builds the wheel", seconds=30)
def test_the_container_has_all_that_a_gate_needs(project: Path, tools: Path, tmp_path: Path) -> None:
    """What its first stage copies is enough for the wheel, and a gate runs from the wheel. Without optimization the
    programs are compiled in half the time."""
    for words in [words.split() for name, words in stages()[0] if name == "COPY"]:
        for copied in words[:-1]:
            copy_into_image(copied, words[-1], tmp_path)
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
    install = [*pip, "install", "--no-deps", "--no-build-isolation", "--target", str(tmp_path / "installed")]
    subprocess.run([*install, str(tmp_path / "src")], check=True, env={**os.environ, "EXTRA": "-O0"})
    done = run_script(f"PYTHONPATH={tmp_path / 'installed'} {sys.executable} -m lockstorm gate", project, tools)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_container_installs_what_the_programs_are_linked_with() -> None:
    """Its second stage has the packages of the libraries, and the server that ci/packages lists."""
    first, second = stages()
    assert first[0] == ("FROM", "debian:12-slim AS built") and second[0] == ("FROM", "debian:12-slim")
    (installing,) = [words.split() for name, words in second if name == "RUN"]
    listed = [line.split()[1] for line in (CI / "packages").read_text().splitlines() if line.startswith("run ")]
    assert "redis-server" in listed and "redis-server" in installing
    programs = [paths.program(name) for name in ("client", "store", "check")]
    linked = subprocess.run(["ldd", *programs], capture_output=True, text=True).stdout
    for library, package in (("libhiredis", "libhiredis0.14"), ("libev", "libev4"), ("libjansson", "libjansson4")):
        assert f"{library}.so" in linked and package in installing


def test_every_pipeline_names_the_version() -> None:
    for file in ("action.yml", "gitlab.yml", "README.md"):
        named = re.findall(r"(?:@|ref: |REF: |--branch )(v\S+|main)", (CI / file).read_text())
        assert set(named) == {f"v{VERSION}"}, file


def test_files_that_pipelines_read_are_yaml_with_nothing_unknown() -> None:
    action = yaml.safe_load((CI / "action.yml").read_text())
    assert set(action) == {"name", "description", "inputs", "outputs", "runs"}
    job = yaml.safe_load((CI / "gitlab.yml").read_text())["lockstorm"]
    assert set(job) == {"stage", "image", "variables", "script", "artifacts"}
