"""ci/: what pipelines run, run here: in a clone of the project, over a project that has a policy."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lockstorm.base import paths

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


def test_the_gitlab_template(project: Path, tools: Path, lockstorm_repository: Path) -> None:
    job: dict[str, Any] = yaml.safe_load((CI / "gitlab.yml").read_text())["lockstorm"]
    script = "\n".join(job["script"])
    done = run_script(script, project, tools, **job["variables"], LOCKSTORM_REPOSITORY=f"file://{lockstorm_repository}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (project / job["artifacts"]["reports"]["junit"]).exists()
    assert all((project / path).exists() for path in job["artifacts"]["paths"])
    assert job["artifacts"]["when"] == "always"


def test_one_line_is_enough(project: Path, tools: Path, lockstorm_repository: Path) -> None:
    (line,) = re.findall(r"^git clone .*$", (CI / "README.md").read_text(), re.MULTILINE)
    done = run_script(line, project, tools, LOCKSTORM=f"file://{lockstorm_repository}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Safe, as far as this policy asks" in done.stdout


# --- the container ---


def instructions() -> list[tuple[str, str]]:
    text = (CI / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in lines]


def test_the_container_has_all_that_a_gate_needs(project: Path, tools: Path, tmp_path: Path) -> None:
    """The copied files are enough: the launcher finds its lists, and the gate runs."""
    copied = [word for name, words in instructions() if name == "COPY" for word in words.split()[:-1]]
    assert all((paths.ROOT / name).exists() for name in copied)
    root = tmp_path / "image"
    copy_project(root, tuple(copied))
    done = run_script(f"{root}/lockstorm gate", project, tools)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_container_installs_what_the_lists_say_and_nothing_else() -> None:
    """Its base image is one that ci/packages is written for, and the launcher installs the packages."""
    said = instructions()
    assert said[0] == ("FROM", "debian:12-slim")
    (run,) = [words for name, words in said if name == "RUN"]
    assert run.split("&&")[1].strip() == "/opt/lockstorm/lockstorm --version"
    assert "apt-get install" not in run and "pip" not in run
    wanted = (paths.ROOT / "lockstorm").read_text()
    copied = {word for name, words in said if name == "COPY" for word in words.split()[:-1]}
    assert {"ci/packages", "ci/requirements.txt"} <= copied
    assert "sed -e 's/#.*//' \"$here/ci/packages\"" in wanted, "the launcher reads the list that is copied"


def test_files_that_pipelines_read_are_yaml_with_nothing_unknown() -> None:
    action = yaml.safe_load((CI / "action.yml").read_text())
    assert set(action) == {"name", "description", "inputs", "outputs", "runs"}
    job = yaml.safe_load((CI / "gitlab.yml").read_text())["lockstorm"]
    assert set(job) == {"stage", "image", "variables", "script", "artifacts"}
