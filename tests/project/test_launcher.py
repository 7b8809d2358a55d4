"""./lockstorm itself: quick when everything is installed, clear when something is missing."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from lockstorm.base import paths

NEEDED = (
    "sh",
    "dirname",
    "readlink",
    "sed",
    "tr",
    "cat",
    "cksum",
    "cut",
    "flock",
    "mkdir",
    "make",
    "id",
    "tail",
    "grep",
)


def launch(*words: str, root: Path = paths.ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("LOCKSTORM_")}
    command = [str(root / "lockstorm"), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, env={**kept, **environment})


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A fresh checkout: only what belongs to the project, nothing built."""
    root = tmp_path / "checkout"
    root.mkdir()
    for name in ("harness", "faults", "checkers", "scenarios", "ci", "lockstorm", "Makefile"):
        source = paths.ROOT / name
        if source.is_dir():
            shutil.copytree(source, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, root / name)
    return root


@pytest.mark.slow("starts the launcher in a copy of the project", seconds=4)
def test_compiled_modules_are_kept_and_not_beside_the_sources(tmp_path: Path) -> None:
    """Also where the environment says that Python writes none."""
    done = launch("locks", PYTHONDONTWRITEBYTECODE="1", PYTHONPYCACHEPREFIX=str(tmp_path))
    assert done.returncode == 0, done.stderr
    kept = {path.name.partition(".")[0] for path in tmp_path.rglob("*.pyc")}
    assert {"lock_names", "library"} <= kept
    without = {key: value for key, value in os.environ.items() if key != "PYTHONPYCACHEPREFIX"}
    subprocess.run([str(paths.ROOT / "lockstorm"), "locks"], env=without, capture_output=True, check=True)
    assert list((paths.ROOT / "build" / "python").rglob("lock_names.*.pyc"))


def path_without(directory: Path, *missing: str) -> str:
    """A PATH with just enough tools."""
    directory.mkdir()
    for tool in NEEDED:
        found = shutil.which(tool)
        assert found, tool
        if tool not in missing:
            (directory / tool).symlink_to(found)
    return str(directory)


def test_a_second_call_is_silent() -> None:
    done = launch("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("lockstorm, version")


def test_it_works_from_anywhere_and_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(paths.ROOT / "lockstorm")
    done = subprocess.run([str(tmp_path / "linked"), "--version"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_without_apt_it_lists_what_is_missing(checkout: Path, tmp_path: Path) -> None:
    done = launch("demo", root=checkout, PATH=path_without(tmp_path / "bin"))
    assert done.returncode == 2
    assert "there is no apt-get to install it" in done.stderr
    assert "gcc" in done.stderr and "redis-server" in done.stderr
    assert not (checkout / ".venv").exists()


@pytest.mark.parametrize("word", ["--help", "-h", "--version"])
def test_a_fresh_checkout_answers_before_anything_is_installed(checkout: Path, tmp_path: Path, word: str) -> None:
    here = launch(word, root=checkout, PATH=path_without(tmp_path / "bin", "make", "flock"))
    assert (here.returncode, here.stderr) == (0, "")
    assert here.stdout == launch(word).stdout != ""
    assert not (checkout / ".venv").exists() and not (checkout / "build").exists()


def test_prepare_ends_when_everything_is_there() -> None:
    done = launch("--prepare")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.waits
def test_a_long_step_shows_how_far_it_is(checkout: Path, tmp_path: Path) -> None:
    """After ten seconds; the last line of the log."""
    once = tmp_path / "once"
    script = f"echo fetching gcc; [ -e {once} ] || {{ : >{once}; sleep 11; }}; exit 100"
    tools = tools_of_an_empty_machine(tmp_path / "bin", script)
    done = launch("demo", root=checkout, PATH=tools)
    assert "installing system packages, once" in done.stderr
    assert "  10 s: fetching gcc" in done.stderr


def test_it_installs_nothing_when_told_so(checkout: Path) -> None:
    done = launch("demo", root=checkout, LOCKSTORM_NO_INSTALL="1")
    assert done.returncode == 2
    assert "LOCKSTORM_NO_INSTALL is set" in done.stderr
    assert not (checkout / ".venv").exists()


def tools_of_an_empty_machine(directory: Path, apt_get: str) -> str:
    """A PATH of a machine that has none of the packages; `apt_get`: the script that is its apt-get."""
    tools = path_without(directory)
    fakes = {"apt-get": apt_get, "apt-cache": "exit 0", "dpkg-query": "exit 1", "sudo": 'exec "$@"'}
    for name, script in fakes.items():
        tool = directory / name
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(0o755)
    for name in ("chmod", "env", "rm", "sleep", "tee"):
        (directory / name).symlink_to(shutil.which(name) or "/missing")
    return tools


def test_packages_that_cannot_be_installed_are_named(checkout: Path, tmp_path: Path) -> None:
    """apt-get is there and fails: its own words are shown."""
    move_system_files(checkout, tmp_path)
    tools = tools_of_an_empty_machine(tmp_path / "bin", "echo E: no such thing as the network; exit 100")
    done = launch("demo", root=checkout, PATH=tools)
    assert done.returncode == 2
    assert "no such thing as the network" in done.stderr
    assert "libhiredis-dev" in done.stderr


def move_system_files(checkout: Path, tmp_path: Path) -> Path:
    """Makes this checkout's launcher use an empty directory where it names /usr/sbin. Returns that directory."""
    directory = tmp_path / "sbin"
    directory.mkdir()
    launcher = checkout / "lockstorm"
    launcher.write_text(launcher.read_text().replace("/usr/sbin", str(directory)))
    return directory


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_an_interrupted_installation_leaves_nothing_in_the_system(
    checkout: Path, tmp_path: Path, number: signal.Signals
) -> None:
    """A policy-rc.d that stays would keep every package that is installed later from starting its service."""
    directory = move_system_files(checkout, tmp_path)
    fifo = tmp_path / "begun"
    os.mkfifo(fifo)
    tools = tools_of_an_empty_machine(tmp_path / "bin", f"echo installs >{fifo}; exec sleep 60")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("LOCKSTORM_")}
    launcher = subprocess.Popen(
        [str(checkout / "lockstorm"), "demo"],
        env={**environment, "PATH": tools},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert fifo.read_text() == "installs\n"
    os.killpg(launcher.pid, number)  # as a terminal does: to all processes of the group
    assert launcher.wait(30) != 0
    assert list(directory.iterdir()) == []


# What the scripts of a package call to start its service; the service of this test only says so. The calls are made as
# on a machine with sysvinit, then as with systemd: in a private mount namespace, and without a policy-rc.d.
STARTS_A_SERVICE = """set -e
mount -t tmpfs tmpfs "$1"
mkdir "$1/sbin" "$1/sbin-work" "$1/etc" "$1/etc-work"
mount -t overlay o -o "lowerdir=/usr/sbin,upperdir=$1/sbin,workdir=$1/sbin-work" /usr/sbin
mount -t overlay o -o "lowerdir=/etc,upperdir=$1/etc,workdir=$1/etc-work" /etc
rm -f /usr/sbin/policy-rc.d
# A machine without an init system starts no service: it gets what invoke-rc.d asks for.
test -e /sbin/init || ln -s /bin/true /usr/sbin/init
RUNLEVEL=2 /sbin/runlevel >"$1/level" 2>&1 || {{
    rm -f /usr/sbin/runlevel # Debian 13 has one that knows no level unless systemd runs
    printf '#!/bin/sh\necho "N $RUNLEVEL"\n' >/usr/sbin/runlevel
}}
chmod 755 /usr/sbin/runlevel
printf '#!/bin/sh\n# Provides: probe\necho started\n' >/etc/init.d/probe
chmod 755 /etc/init.d/probe
for level in 2 3 4 5; do ln -s ../init.d/probe /etc/rc$level.d/S01probe; done
for level in 0 1 6; do ln -s ../init.d/probe /etc/rc$level.d/K01probe; done
mount -t tmpfs tmpfs /run
{{
    {environment} invoke-rc.d probe start
    mkdir -p /run/systemd/system
    {environment} deb-systemd-invoke start probe.service
    {environment} invoke-rc.d probe start
}} 2>&1
"""


def test_the_services_of_installed_packages_are_not_started(checkout: Path, tmp_path: Path) -> None:
    """apt-get gets an environment in which the tools that start services start none, with every init system."""
    noted = tmp_path / "noted"
    tools = tools_of_an_empty_machine(tmp_path / "bin", f"/usr/bin/env >{noted}; exit 100")
    launch("demo", root=checkout, PATH=tools)
    variables = [line for line in noted.read_text().splitlines() if line.startswith(("RUNLEVEL=", "SYSTEMD_OFFLINE="))]
    assert play_scripts_of_a_package("RUNLEVEL=2", tmp_path / "control").startswith("started\n"), "the control"
    shown = play_scripts_of_a_package(" ".join(variables), tmp_path / "mount")
    assert "started" not in shown
    if shutil.which("systemctl"):
        assert shown.count("ignoring command 'start'") == 2, shown


def with_rights() -> list[str]:
    """How an ordinary user may mount, here only or for all: a kernel makes no user's own namespace in a chroot."""
    own = ["unshare", *own_mounts(), *(["-r"] if os.getuid() else [])]
    possible = subprocess.run([*own, "true"], capture_output=True).returncode == 0
    return own if possible else ["sudo", "-n", "unshare", *own_mounts()]


def own_mounts() -> list[str]:
    """Options of unshare. In a chroot "/" is no mount that could be made private; where no mount is shared, none has to
    be."""
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    in_chroot = not any(mount.split()[4] == "/" for mount in mounts)
    return ["-m", *(["--propagation", "unchanged"] if in_chroot and " shared:" not in "".join(mounts) else [])]


def play_scripts_of_a_package(environment: str, directory: Path) -> str:
    """What STARTS_A_SERVICE prints."""
    directory.mkdir()
    script = STARTS_A_SERVICE.format(environment=environment)
    done = subprocess.run(
        [*with_rights(), "sh", "-c", script, "sh", str(directory)],
        capture_output=True,
        text=True,
        timeout=600,
    )
    return done.stdout


@pytest.mark.slow("compiles half of the programs in a new checkout", seconds=15)
def test_a_program_that_does_not_compile_is_shown(checkout: Path) -> None:
    shutil.copytree(paths.ROOT / ".venv", checkout / ".venv", symlinks=True)
    (checkout / "build").mkdir()
    shutil.copy2(paths.ROOT / "build" / "set-up", checkout / "build" / "set-up")
    source = checkout / "harness" / "process" / "spawn.c"
    source.write_text(source.read_text() + "\nthis is no C\n")
    done = launch("demo", root=checkout)
    assert done.returncode == 2
    assert "spawn.c" in done.stderr and "could not be compiled" in done.stderr


def test_every_shell_script_is_portable_shell() -> None:
    first = (paths.ROOT / "lockstorm").read_text().splitlines()[0]
    assert first == "#!/bin/sh"
    subprocess.run(["sh", "-n", str(paths.ROOT / "lockstorm")], check=True)
