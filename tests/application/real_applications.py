"""Applications that nobody here wrote (docs/examples/applications-real): which release has a published bug, and which
one has it no more."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from lockstorm.base import paths

PLACE = paths.ROOT / "docs" / "examples" / "applications-real"


@dataclass(frozen=True)
class RealApplication:
    """`found.schedule` beside the file shows the bug."""

    file: str
    wrong: str  # the release with the bug, which the file names
    right: str
    ready: str  # what `install` makes last
    faults: str
    threads: tuple[str, ...]  # where the bug was published, and its mend
    services: tuple[str, ...]


APPLICATIONS = {
    "bull": RealApplication(
        file="lockstorm-app.toml",
        wrong="1.0.0",
        right="1.1.3",
        ready="node_modules/.package-lock.json",
        faults="hold-request,hold-reply",
        threads=("OptimalBits/bull/issues/356", "OptimalBits/bull/pull/257", "OptimalBits/bull/pull/359"),
        services=("postgres", "redis"),
    ),
    "django-oscar": RealApplication(
        file="ship.toml",
        wrong="3.1",
        right="3.2.6",
        ready="tables.sql",
        faults="none",
        threads=("django-oscar/django-oscar/pull/3922",),
        services=("postgres",),
    ),
}


def install_release(name: str, release: str) -> str:
    """Installs it if it is not there. Why it could not be; empty: it is there."""
    usual = paths.ROOT / "build" / "applications"
    built = Path(os.environ.get("LOCKSTORM_APPLICATIONS", usual)) / f"{name}-{release}"
    if (built / APPLICATIONS[name].ready).exists():
        return ""
    done = subprocess.run([PLACE / name / "install", release], capture_output=True, text=True)
    said = (done.stderr or done.stdout).strip().splitlines()
    return f"{name} {release} was not installed: {said[-1] if said else done.returncode}" if done.returncode else ""


def write_release(name: str, release: str, directory: Path) -> Path:
    """The file of another release, in this directory."""
    application, place = APPLICATIONS[name], PLACE / name
    text = (place / application.file).read_text().replace(application.wrong, release)
    text = text.replace("[app]\n", f'[app]\ndirectory = "{place}"\n', 1)
    text = text.replace('setup = "', f'setup = "{place}/')
    file = directory / application.file
    file.write_text(text)
    return file
