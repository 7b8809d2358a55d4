"""What ci/campaign has for clusters: that it can be read, and that its commands are those of lockstorm."""

import ast
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from lockstorm.base import paths
from lockstorm.base.version import VERSION

PLACE = paths.ROOT / "ci" / "campaign"
YAML = sorted(path.name for path in PLACE.glob("*.y*ml"))


def documents(name: str) -> list[Any]:
    return list(yaml.safe_load_all((PLACE / name).read_text()))


@pytest.mark.parametrize("name", YAML)
def test_it_is_yaml(name: str) -> None:
    assert all(isinstance(each, dict) for each in documents(name))


def test_the_kinds_of_kubernetes() -> None:
    kinds = {name: [each["kind"] for each in documents(name)] for name in YAML if name.startswith("kubernetes")}
    assert kinds == {
        "kubernetes-dask.yaml": ["DaskCluster", "PersistentVolumeClaim", "Job"],
        "kubernetes-job.yaml": ["PersistentVolumeClaim", "Job"],
    }


def shell_of(job: dict[str, Any]) -> str:
    (container,) = job["spec"]["template"]["spec"]["containers"]
    (script,) = container["args"]
    return str(script)


def run_shell(script: str, directory: Path, **variables: str) -> int:
    """Runs it with this checkout's lockstorm, and with a directory of the test as /results."""
    (directory / "lockstorm").write_text(f'#!/bin/sh\nexec "{paths.ROOT}/lockstorm" "$@"\n')
    (directory / "lockstorm").chmod(0o755)
    environment = {**os.environ, **variables, "PATH": f"{directory}:{os.environ['PATH']}"}
    return subprocess.run(
        ["sh", "-c", script.replace("/results", str(directory))], env=environment, cwd=directory, capture_output=True
    ).returncode


@pytest.mark.slow("runs the command of an indexed Job with every index, twice", seconds=15)
def test_the_shards_of_an_indexed_job_are_the_whole(tmp_path: Path) -> None:
    job = documents("kubernetes-job.yaml")[1]
    of = job["spec"]["completions"]
    assert of == job["spec"]["parallelism"] and f"/{of}" in shell_of(job)
    for index in range(of):
        variables = {"JOB_COMPLETION_INDEX": str(index), "LOCK": "fair", "SCHEDULES": "160"}
        assert run_shell(shell_of(job), tmp_path, **variables) == 0
    variables["SCHEDULES"] = "240"  # the last index again: it goes on
    assert run_shell(shell_of(job), tmp_path, **variables) == 0
    assert run_shell("lockstorm merge *.json -o whole", tmp_path) in (0, 1)


@pytest.mark.parametrize("name", YAML)
def test_every_step_is_a_command_of_the_shell(name: str) -> None:
    scripts = [line for line in (PLACE / name).read_text().splitlines() if "lockstorm " in line]
    assert scripts
    commands = set(re.findall(r"(?:^|[ /])lockstorm (\w+) ", "\n".join(scripts)))
    known = subprocess.run([paths.ROOT / "lockstorm", "--help"], capture_output=True, text=True).stdout
    assert [each for each in commands if f"\n  {each} " not in known and each not in ("search", "lockstorm")] == []


def test_the_version_is_this_one() -> None:
    assert f"--branch v{VERSION} " in (PLACE / "github-matrix.yml").read_text()


def test_the_script_for_slurm_is_python() -> None:
    ast.parse((PLACE / "slurm_cluster.py").read_text())


def test_the_document_says_of_each_what_was_tried() -> None:
    page = (paths.ROOT / "docs" / "campaigns.md").read_text()
    names = [path.name for path in PLACE.iterdir() if path.name != "README.md"]
    assert [name for name in names if f"| `{name}` |" not in page] == []
