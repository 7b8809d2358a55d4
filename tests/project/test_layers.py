"""Dependencies run one way: for every room, C and Python, the rooms that it may use; and no circle of files."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from lockstorm.base import paths

INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^">]+)[">]', re.MULTILINE)
OWN = ("harness/", "faults/", "checkers/")
EXTERNAL = ("hiredis/", "jansson.h", "ev.h", "curl/", "libpq-fe.h", "zookeeper/")
FORBIDDEN_IN_LOCKS = ("time.h", "sys/", "unistd.h", "pthread.h", "poll.h", "netinet/", "arpa/", "signal.h", "threads.h")

# Room -> rooms and single headers of the project, then libraries, that its C files may include besides its own.
C_ROOMS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "harness/history": ((), ("jansson.h",)),
    "harness/process": ((), ()),
    "harness/process/preload": (("harness/process/zygote_service.h",), ()),
    "harness/scheduler": (
        ("harness/history", "harness/process/preload/clock_page.h", "harness/process/proc_file.h"),
        ("hiredis/",),
    ),
    "harness/environment": (
        ("harness/history", "harness/scheduler"),
        ("hiredis/", "curl/", "libpq-fe.h", "zookeeper/"),
    ),
    "harness/supervisor": (("harness/process/proc_file.h", "harness/scheduler"), ()),
    "harness/locks/common": (("harness/environment/env.h", "harness/history/outcome.h"), ("jansson.h",)),
    "harness/locks": (("harness/locks/common",), ()),
    "harness/locks/adapter": (("harness/locks/common",), ("jansson.h",)),
    "harness/locks/etcd": (("harness/locks/common",), ("jansson.h",)),
    "harness/locks/postgres": (("harness/locks/common",), ()),
    "harness/locks/redis": (("harness/locks/common",), ()),
    "harness/locks/redisson": (("harness/locks/common",), ()),
    "harness/locks/redlock": (("harness/locks/common", "harness/locks/redis/set_nx_px.h"), ()),
    "harness/locks/zookeeper": (("harness/locks/common",), ()),
    "harness/locks/zoo": (("harness/locks/common",), ()),
    "harness/locks/zoo/redis": (("harness/locks/common", "harness/locks/redis", "harness/locks/zoo"), ()),
    "harness/locks/zoo/redisson": (("harness/locks/common", "harness/locks/redisson", "harness/locks/zoo"), ()),
    "harness/locks/zoo/redlock": (("harness/locks/common", "harness/locks/redlock", "harness/locks/zoo"), ()),
    "harness/lock_adapter": (("harness/environment/env_live.h", "harness/locks/common"), ("jansson.h",)),
    "harness/resp_service": ((), ("ev.h", "hiredis/")),
    "harness/resource": (
        (
            "harness/history",
            "harness/process/arguments.h",
            "harness/process/descriptor_limit.h",
            "harness/process/zygote_service.h",
            "harness/resp_service",
            "harness/scheduler/actor.h",
            "harness/scheduler/shared_page.h",
        ),
        ("hiredis/", "libpq-fe.h"),
    ),
    "harness/client": (
        (
            "harness/environment",
            "harness/history",
            "harness/locks/common",
            "harness/locks/redis/set_nx_px.h",
            "harness/locks/redis/signal_list.h",
            "harness/locks/zookeeper/zookeeper_queue.h",
            "harness/process/arguments.h",
            "harness/process/zygote_service.h",
            "harness/scheduler",
        ),
        ("hiredis/", "jansson.h"),
    ),
    "harness/simulation": (
        (
            "checkers/engine/judge.h",
            "harness/client/client.h",
            "harness/client/drawn_work.h",
            "harness/environment/env_ops.h",
            "harness/environment/env_reply.h",
            "harness/environment/redis_push.h",
            "harness/process/preload/clock_page.h",
            "harness/resource/resource.h",
            "harness/scheduler",
            "harness/search",
        ),
        ("hiredis/", "jansson.h"),
    ),
    "harness/client_group": (
        (
            "harness/client/live_client.h",
            "harness/process/descriptor_limit.h",
            "harness/process/zygote_service.h",
            "harness/scheduler",
            "harness/simulation/coroutine.h",
        ),
        (),
    ),
    "harness/search": (
        (
            "checkers/engine/checker.h",
            "checkers/promises/promises.h",
            "faults/names",
            "harness/scheduler/clock.h",
            "harness/scheduler/grown.h",
            "harness/scheduler/random.h",
        ),
        ("jansson.h",),
    ),
    "harness/explore": (
        (
            "harness/application",
            "harness/client/plugin.h",
            "harness/library",
            "harness/scheduler/clock.h",
            "harness/search",
            "harness/simulation",
        ),
        ("jansson.h",),
    ),
    "checkers/rules": (("harness/recogniser/wire_event.h",), ()),
    "harness/application": (
        (
            "checkers/linearizability",
            "checkers/rules",
            "harness/recogniser/recogniser.h",
            "harness/library",
            "harness/library_service",
            "harness/scheduler",
            "harness/search",
        ),
        ("jansson.h",),
    ),
    "harness/library": (
        (
            "checkers/promises/promises.h",
            "harness/library_service",
            "harness/resp_service/address.h",
            "harness/scheduler",
            "harness/search",
        ),
        ("jansson.h",),
    ),
    "harness/library_service": (
        (
            "faults/proxy/resp.h",
            "faults/proxy/server_wait.h",
            "harness/process/postgres_memory.h",
            "harness/resp_service/address.h",
            "harness/scheduler",
            "harness/simulation/node.h",
            "harness/supervisor",
        ),
        ("hiredis/", "jansson.h"),
    ),
    "harness/recogniser": (
        ("faults/proxy/resp.h", "harness/recogniser/lua", "harness/recogniser/sql", "harness/recogniser/text"),
        (),
    ),
    "harness/recogniser/lua": (("faults/proxy/resp.h", "harness/recogniser/text", "harness/scheduler/grown.h"), ()),
    "harness/recogniser/sql": (
        (
            "faults/proxy/resp.h",
            "harness/recogniser/text",
            "harness/recogniser/wire_event.h",
            "harness/scheduler/grown.h",
        ),
        (),
    ),
    "harness/recogniser/text": (("faults/proxy/resp.h",), ()),
    "harness/lockstorm/native": (
        ("checkers/commands/render.h", "faults/common/fault.h", "harness/history/history.h", "harness/locks/common"),
        ("jansson.h",),
    ),
    "faults": (("faults/common", "faults/names"), ()),
    "faults/names": ((), ()),
    "faults/common": (
        ("faults/names", "harness/process/proc_file.h", "harness/scheduler/hang_limit.h"),
        ("hiredis/",),
    ),
    "faults/client": (("faults/common", "harness/scheduler/hang_limit.h"), ("hiredis/",)),
    "faults/clock": (("faults/common", "harness/scheduler/hang_limit.h"), ("hiredis/",)),
    "faults/network": (("faults/common",), ("hiredis/",)),
    "faults/replication": (("faults/common", "harness/scheduler/hang_limit.h"), ("hiredis/",)),
    "faults/server": (
        ("faults/common", "faults/proxy/resp.h", "harness/process/proc_file.h", "harness/scheduler/hang_limit.h"),
        ("hiredis/",),
    ),
    "faults/proxy": (
        (
            "harness/history/history.h",
            "harness/process/arguments.h",
            "harness/process/descriptor_limit.h",
            "harness/process/zygote_service.h",
            "harness/resp_service",
            "harness/scheduler/actor.h",
            "harness/scheduler/clock.h",
            "harness/scheduler/random.h",
            "harness/scheduler/shared_page.h",
            "harness/scheduler/timer_heap.h",
        ),
        ("ev.h", "hiredis/"),
    ),
    "checkers": (("checkers/engine/checker.h",), ()),
    "checkers/engine": (("harness/history/history.h",), ()),
    "checkers/properties": (("checkers/engine/checker.h",), ()),
    "checkers/promises": (("harness/history/outcome.h",), ()),
    "checkers/linearizability": (
        ("checkers/engine/checker.h", "checkers/engine/hash.h", "harness/history/outcome.h"),
        (),
    ),
    "checkers/formats": (("checkers/linearizability", "harness/history"), ()),
    "checkers/commands": (
        ("checkers/engine", "checkers/formats", "checkers/linearizability", "harness/history"),
        ("jansson.h",),
    ),
}

# Room of the Python package -> the other rooms whose modules its own may import.
PYTHON_ROOMS: dict[str, tuple[str, ...]] = {
    "adapter_program": (),
    "base": (),
    "results": ("base",),
    "native": ("base", "results"),
    "process": ("base", "native"),
    "servers": ("base", "native", "process", "results"),
    "locks": ("base", "native", "results"),
    "attach": ("base", "process", "results", "servers"),
    "trial": ("attach", "base", "locks", "native", "process", "results", "servers"),
    "scenario": ("attach", "base", "locks", "native", "results", "servers", "trial"),
    "report": ("base", "native", "results", "scenario", "trial"),
    "matrix": ("base", "locks", "native", "results", "scenario", "servers", "trial"),
    "storm": ("base", "locks", "native", "results", "scenario", "servers", "trial"),
    "application": ("base", "process", "servers"),
    "search": (
        "application",
        "base",
        "locks",
        "native",
        "process",
        "report",
        "results",
        "scenario",
        "servers",
        "trial",
    ),
    "libraries": ("base", "locks", "scenario", "search", "trial"),
    "compare": ("base", "native", "process", "results", "servers", "trial"),
    "conformance": ("base", "locks", "native", "process", "results", "scenario", "search", "servers", "trial"),
    "zoo": ("base", "locks", "matrix", "native", "results", "scenario", "search", "trial"),
    "gate": (
        "attach",
        "base",
        "locks",
        "matrix",
        "native",
        "process",
        "results",
        "scenario",
        "search",
        "servers",
        "storm",
        "trial",
    ),
    "campaigns": (
        "application",
        "base",
        "gate",
        "locks",
        "matrix",
        "process",
        "results",
        "scenario",
        "search",
        "storm",
        "trial",
        "zoo",
    ),
    "cli": (
        "application",
        "attach",
        "base",
        "campaigns",
        "compare",
        "conformance",
        "gate",
        "libraries",
        "locks",
        "matrix",
        "native",
        "process",
        "report",
        "results",
        "scenario",
        "search",
        "servers",
        "storm",
        "trial",
        "zoo",
    ),
    "testing": (
        "base",
        "gate",
        "locks",
        "report",
        "results",
        "scenario",
        "search",
        "storm",
        "trial",
    ),
}
PACKAGE = paths.ROOT / "harness" / "lockstorm"
PLUGIN = "lockstorm.testing.pytest_plugin"
FRONT = ("lockstorm.__init__", "lockstorm.__main__")  # imported by scenarios; the command: may import all rooms

Graph = Mapping[str, Iterable[str]]


def c_files() -> list[Path]:
    return [path for top in OWN for path in sorted((paths.ROOT / top).rglob("*.[ch]"))]


def room_of(path: Path) -> str:
    return str(path.parent.relative_to(paths.ROOT))


def includes(path: Path) -> list[str]:
    return INCLUDE.findall(path.read_text())


def unit_of(file: str) -> str:
    """A .c and its .h are one unit."""
    return file.removesuffix(".c").removesuffix(".h")


def imports_of(path: Path) -> set[str]:
    """Full names of the modules that a module imports, and of the names that it imports from them."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def python_modules() -> dict[str, Path]:
    return {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path for path in sorted(PACKAGE.rglob("*.py"))
    }


def c_graph() -> Graph:
    graph: dict[str, set[str]] = {}
    for path in c_files():
        unit = unit_of(str(path.relative_to(paths.ROOT)))
        known = {unit_of(name) for name in includes(path) if name.startswith(OWN)}
        graph[unit] = graph.get(unit, set()) | known - {unit}
    return graph


def python_graph() -> Graph:
    modules = python_modules()
    return {name: imports_of(path) & set(modules) for name, path in modules.items() if name not in FRONT}


def reachable(graph: Graph, start: str) -> set[str]:
    found: set[str] = set()
    ahead = set(graph.get(start, ()))
    while ahead:
        found |= ahead
        ahead = {after for name in ahead for after in graph.get(name, ())} - found
    return found


def circles(graph: Graph) -> list[list[str]]:
    """The groups of files that depend on each other, each once."""
    reached = {name: reachable(graph, name) for name in graph}
    groups = {tuple(sorted(b for b in reached[a] if a in reached.get(b, ()))) for a in graph if a in reached[a]}
    return sorted(list(group) for group in groups)


def test_a_circle_is_found() -> None:
    assert circles({"a": ["b"], "b": ["c"], "c": ["b"], "d": ["a"]}) == [["b", "c"]]
    assert circles({"a": ["b"], "b": ["c"], "c": []}) == []


def test_no_c_files_need_each_other_in_a_circle() -> None:
    assert circles(c_graph()) == []


def test_no_python_modules_need_each_other_in_a_circle() -> None:
    """Imports for type checkers count as well."""
    assert circles(python_graph()) == []


def test_every_room_is_listed() -> None:
    assert {room_of(path) for path in c_files()} == set(C_ROOMS)
    rooms = {path.parent.name for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE}
    assert rooms - {"commands", "kept"} == set(PYTHON_ROOMS)


@pytest.mark.parametrize("room", sorted(C_ROOMS))
def test_a_c_room_includes_only_what_it_may_know(room: str) -> None:
    ours, libraries = C_ROOMS[room]
    for path in c_files():
        if room_of(path) != room:
            continue
        for name in includes(path):
            if name.startswith(OWN):
                known = name.rpartition("/")[0] in (room, *ours) or name in ours
                assert known, f"{path.name} includes {name}"
            if name.startswith(EXTERNAL):
                assert name.startswith(libraries or "nothing"), f"{path.name} includes {name}"


@pytest.mark.parametrize("room", sorted(PYTHON_ROOMS))
def test_a_python_room_imports_only_what_it_may_know(room: str) -> None:
    may_know = {room, *PYTHON_ROOMS[room]}
    for path in sorted((PACKAGE / room).rglob("*.py")):
        for name in imports_of(path):
            if name.startswith("lockstorm."):
                assert name.split(".")[1] in may_know, f"{path.name} imports {name}"
            assert name.split(".")[0] not in ("tests", "scenarios"), f"{path.name} imports {name}"
            if room != "testing":  # the plug-in for pytest; nobody else needs it to be installed
                assert name.split(".")[0] not in ("pytest", "_pytest"), f"{path.name} imports {name}"
            assert name != "lockstorm", f"{path.name} imports the front of the package"


def test_the_plug_in_for_pytest_imports_nothing_of_a_trial_before_it_is_needed() -> None:
    """pytest loads it in every suite of an environment that has lockstorm."""
    code = f"import sys, {PLUGIN}; print(*sorted(name for name in sys.modules if name.startswith('lockstorm')))"
    command = [sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONPATH": paths.python_path()}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    light = ("pytest_plugin", "trial_outcome", "item_state")
    rooms = ("lockstorm", "lockstorm.base", "lockstorm.base.errors", "lockstorm.testing")
    assert done.stdout.split() == sorted([*rooms, *(f"lockstorm.testing.{name}" for name in light)])


def test_locks_take_time_randomness_and_sockets_only_from_their_environment() -> None:
    for path in sorted((paths.ROOT / "harness" / "locks").rglob("*.[ch]")):
        text = path.read_text()
        for included in INCLUDE.findall(text):
            assert not included.startswith(FORBIDDEN_IN_LOCKS), f"{path.name} includes {included}"
        for call in ("rand(", "random(", "usleep(", "nanosleep(", "clock_gettime(", "socket("):
            own = [match for match in re.findall(r"\b\w*" + re.escape(call), text) if not match.startswith("env_")]
            assert not own, f"{path.name} calls {own}"


def test_scenarios_know_only_the_front_of_the_package() -> None:
    for path in sorted((paths.ROOT / "scenarios").glob("test_*.py")):
        assert {name.split(".")[0] for name in imports_of(path)} <= {"lockstorm"}, path.name
        assert {".".join(name.split(".")[:2]) for name in imports_of(path) if name.count(".") > 1} == set(), path.name


def test_what_writes_a_verdict_down_plays_nothing() -> None:
    writers = ("junit.py", "markdown.py", "sarif.py", "gate_text.py", "gate_judge.py", "app_judge.py", "messages.py")
    effects = {
        "lockstorm.trial.trial",
        "lockstorm.scenario.worker_pool",
        "lockstorm.gate.worker",
        "lockstorm.gate.runs",
    }
    for name in writers:
        assert not imports_of(PACKAGE / "gate" / name) & {*effects, "subprocess"}, name
