"""serve() in Python, JavaScript, Go and Java (adapter_program/): programs of a few functions, without any library."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstorm.base import paths
from lockstorm.locks import adapter
from lockstorm.locks.adapter import BUILDS, SHIPPED, AdapterProgram, library_environment
from lockstorm.locks.adapter_lines import AdapterAnswer, AdapterFacts, ProtocolError

PYTHON = f"""#!{sys.executable}
import asyncio
from lockstorm import serve
forgotten = []
class Refusal(Exception): pass
async def acquire(lock, wait):
    urls, resource, lease = lock
    if resource == "refuses": raise Refusal("taken")
    if resource == "fails": raise OSError("no answer")
    if resource == "returns nothing": return None
    if resource == "prints": print("noise")
    if resource == "waits": await asyncio.sleep(1000)
    return resource != "first" or (urls == ["unix:///nowhere"] and lease == 1 and wait == 0.5)
serve(
    make=lambda urls, resource, lease: (urls, resource, lease),
    acquire=acquire,
    release=lambda lock: lock[1] != "stolen",
    is_held=lambda lock: bool(forgotten),
    token=lambda lock: 7,
    lost=lambda lock, tell: lock[1] == "told" and tell(),
    forget=forgotten.append,
    refused=Refusal,
    owner="object",
    fair=True,
)
"""
NODE = """#!/usr/bin/env node
const { serve } = require("lockstorm");
class Refusal extends Error {}
let forgotten = 0;
serve({
  make: (urls, resource, lease) => ({ urls, resource, lease }),
  async acquire({ urls, resource, lease }, wait, signal) {
    if (resource === "refuses") throw new Refusal("taken");
    if (resource === "fails") throw new Error("no answer");
    if (resource === "returns nothing") return undefined;
    if (resource === "prints") console.log("noise");
    if (resource === "waits") await new Promise((_, reject) => (signal.onabort = () => reject(signal.reason)));
    return resource !== "first" || (urls[0] === "unix:///nowhere" && lease === 1000 && wait === 500);
  },
  release: ({ resource }) => resource !== "stolen",
  is_held: () => forgotten > 0,
  token: () => 7,
  lost: ({ resource }, tell) => resource === "told" && tell(),
  forget: () => void forgotten++,
  refused: Refusal,
  fair: true,
});
"""
GO = """package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

type probe struct {
	urls     []string
	resource string
	lease    time.Duration
}

var taken, forgotten = errors.New("taken"), 0

func (lock *probe) acquire(ctx context.Context, wait time.Duration) (bool, error) {
	switch lock.resource {
	case "refuses":
		return false, fmt.Errorf("Refusal: %w", taken)
	case "fails":
		panic("no answer")
	case "prints":
		fmt.Println("noise")
	case "waits":
		<-ctx.Done()
		return false, ctx.Err()
	case "first":
		return lock.urls[0] == "unix:///nowhere" && lock.lease == time.Second && wait == 500*time.Millisecond, nil
	}
	return true, nil
}

func main() {
	Serve(Adapter[*probe]{
		Make: func(urls []string, resource string, lease time.Duration) (*probe, error) {
			return &probe{urls, resource, lease}, nil
		},
		Acquire: (*probe).acquire,
		Release: func(lock *probe, ctx context.Context) (bool, error) { return lock.resource != "stolen", nil },
		IsHeld:  func(lock *probe, ctx context.Context) (bool, error) { return forgotten > 0, nil },
		Token:   func(lock *probe, ctx context.Context) (int64, error) { return 7, nil },
		Lost: func(lock *probe, tell func()) {
			if lock.resource == "told" {
				tell()
			}
		},
		Forget:  func(lock *probe) { forgotten++ },
		Refused: []error{taken},
		Hello:   map[string]any{"fair": true},
	})
}
"""
JAVA = """import java.time.Duration;
import java.util.List;
import lockstorm.Adapter;

class LockAdapter {
    record Probe(List<String> urls, String resource, Duration lease) {}
    static class Refusal extends Exception {
        Refusal() { super("taken"); }
    }
    static int forgotten;

    static Object acquire(Probe lock, Duration wait) throws Exception {
        switch (lock.resource) {
            case "refuses" -> throw new Refusal();
            case "fails" -> throw new IllegalStateException("no answer");
            case "returns nothing" -> { return null; }
            case "prints" -> System.out.println("noise");
            case "waits" -> Thread.sleep(wait.toMillis());
            case "first" -> { return lock.equals(new Probe(List.of("unix:///nowhere"), "first", Duration.ofSeconds(1)))
                && wait.equals(Duration.ofMillis(500)); }
            default -> { }
        }
        return true;
    }

    public static void main(String[] arguments) throws Exception {
        Adapter.make(Probe::new).acquire(LockAdapter::acquire).release(lock -> !lock.resource.equals("stolen"))
            .isHeld(lock -> forgotten > 0).token(lock -> 7)
            .lost((lock, tell) -> { if (lock.resource.equals("told")) tell.run(); })
            .forget(lock -> forgotten++).refused(Refusal.class)
            .hello("owner", "object").hello("cancel", true).hello("fair", true).serve();
    }
}
"""
# The tool that a language needs, the source of a program, its name, and what starts it; empty: the program itself.
PROGRAMS = {
    "python": ("python3", PYTHON, "lock-adapter", ""),
    "node": ("node", NODE, "lock-adapter.cjs", ""),
    "go": ("go", GO, "lock-adapter.go", "lock-adapter-go.sh"),
    "java": ("javac", JAVA, "LockAdapter.java", "lock-adapter-java.sh"),
}
COMPILED = ["go", pytest.param("java", marks=pytest.mark.lengthy("compiles Java"))]
LANGUAGES = ["python", "node", *COMPILED]
OPEN = {"resource": "first", "lease_ms": 1000, "permits": 1, "fixed_lease": False, "nodes": [{"unix": "/nowhere"}]}


def written(directory: Path, language: str, was: str = "", becomes: str = "") -> Path:
    """The program in this language, in which one text may be another; skips without its tools."""
    tool, text, name, starter = PROGRAMS[language]
    if not shutil.which(tool, path=f"{paths.search_path()}:/usr/local/go/bin"):
        pytest.skip(f"{tool} is not installed")
    assert text.count(was) == 1 or not was
    path = directory / name
    path.write_text(text.replace(was, becomes) if was else text)
    if starter:
        path = Path(shutil.copy(SHIPPED / "starters" / starter, directory / "lock-adapter"))
    path.chmod(0o755)
    return path


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """Of a program; what is built of it goes when the test ends."""
    yield tmp_path
    shutil.rmtree(paths.cache("adapters") / "own" / tmp_path.relative_to("/"), ignore_errors=True)


class Dialogue:
    """Calls of a program; each asks for a lock object of its own."""

    def __init__(self, program: AdapterProgram) -> None:
        self.program, self.number = program, 0

    def send(self, verb: str, **more: object) -> int:
        self.program.send(verb, **more)
        return self.program.number

    def answer(self, number: int) -> AdapterAnswer:
        answer = self.program.receive_one(number, 30)
        assert answer
        return answer

    def ask(self, verb: str, **more: object) -> AdapterAnswer:
        return self.answer(self.send(verb, **more))

    def acquire(self, resource: str, wait_ms: int | None = 0, thread: int = 1) -> int:
        self.number += 1
        return self.send("acquire", thread=thread, lock=self.number, resource=resource, wait_ms=wait_ms)

    def acquired(self, resource: str, wait_ms: int | None = 0) -> tuple[str, str]:
        answer = self.answer(self.acquire(resource, wait_ms))
        return answer.outcome, answer.error or ""


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_program_of_a_few_functions_speaks_the_protocol(directory: Path, language: str) -> None:
    with AdapterProgram(str(written(directory, language)), BUILDS) as program:
        facts = program.hello(3)
        assert isinstance(facts, AdapterFacts) and (facts.protocol, facts.name, facts.lease) == (3, "my lock", True)
        assert (facts.threads, facts.owner, facts.cancel, facts.fair) == (8, "object", True, True)
        assert facts.operations == ("is_held", "token") and facts.loss_notice == "lease" and facts.token
        calls = Dialogue(program)
        assert calls.ask("open", **OPEN).outcome == "ok"
        assert calls.answer(calls.acquire("first", 500)).token == 7
        assert calls.ask("token", lock=1).token == 7
        assert calls.acquired("first", 499)[0] == "refused"
        outcome, error = calls.acquired("refuses")
        assert outcome == "refused" and error.removeprefix("Refusal: ").startswith("taken"), error
        outcome, error = calls.acquired("fails")
        assert outcome == "unknown" and error.endswith(": no answer")
        if language != "go":  # whose functions return a bool
            outcome, error = calls.acquired("returns nothing")
            assert outcome == "unknown" and "acquire returned " in error
            assert "return true when the lock was" in error.lower()
        assert calls.acquired("prints") == ("ok", "")
        assert calls.ask("release", lock=calls.number).outcome == "ok"
        assert calls.acquired("stolen") == ("ok", "")
        assert calls.ask("release", lock=calls.number).outcome == "refused"


@pytest.mark.parametrize("language", LANGUAGES)
def test_calls_wait_beside_each_other_are_cancelled_and_forgotten(directory: Path, language: str) -> None:
    with AdapterProgram(str(written(directory, language)), BUILDS) as program:
        program.hello(3)
        calls = Dialogue(program)
        calls.ask("open", **OPEN)
        waiting = calls.acquire("waits", None, thread=2)
        assert calls.acquired("told") == ("ok", "")
        notice = program.next_notice(30)
        assert notice and (notice.thread, notice.lock, notice.resource) == (1, calls.number, "told")
        assert calls.ask("forget").outcome == "refused"
        assert calls.ask("is_held", lock=calls.number).outcome == "refused"
        assert calls.ask("cancel", call=waiting).outcome == "ok"
        answer = calls.answer(waiting)
        assert (answer.outcome, answer.cancelled) == ("refused", True)
        assert calls.ask("cancel", call=waiting).outcome == "refused"
        assert calls.acquired("first", 500) == ("ok", ""), "a thread outlives a call that was cancelled"
        assert calls.ask("forget").outcome == "ok"
        assert calls.ask("is_held", lock=1, resource="another").outcome == "ok", "it was told what was forgotten"
        assert program.end_input() == 0


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("protocol", [1, 2])
def test_older_versions_are_answered(directory: Path, language: str, protocol: int) -> None:
    with AdapterProgram(str(written(directory, language)), BUILDS) as program:
        facts = program.hello(protocol)
        assert facts.protocol == protocol and facts.operations == ("is_held", "token")[:protocol]
        assert program.ask("open", 10, **OPEN).outcome == "ok"
        answer = program.ask("acquire", 10, wait_ms=500)
        assert (answer.outcome, answer.token) == ("ok", 7)
        assert program.ask("release", 10).outcome == "ok"


@pytest.mark.parametrize("language", COMPILED)
def test_a_program_is_compiled_when_it_is_described_and_has_changed(directory: Path, language: str) -> None:
    path = written(directory, language)

    def fair(**more: str) -> bool:
        with AdapterProgram(str(path), more) as program:
            return program.hello().fair

    was, becomes = '"fair": true' if language == "go" else '"fair", true', '"reentrant": true'
    assert fair(), "the first start builds it"
    written(directory, language, was, becomes if language == "go" else becomes.replace(":", ","))
    assert fair() and not fair(**BUILDS) and not fair()
    written(directory, language, was, "nonsense")
    with pytest.raises(ProtocolError, match=r"it ended with status 1: .*(lock-adapter\.go|LockAdapter\.java):\d+"):
        fair(**BUILDS)
    assert not fair(), "what was built before is still there"


def test_a_function_that_does_not_exist_is_named(directory: Path) -> None:
    for was, becomes, error in (
        ("is_held:", "isHeld:", "serve() knows no function isHeld: there are make, acquire, release, renew, is_held"),
        ("make: (", "made: 1, no: (", "serve() knows no function no"),
        ("  make: (urls, resource, lease) => ({ urls, resource, lease }),\n", "", "serve() needs the function make"),
    ):
        with AdapterProgram(str(written(directory, "node", was, becomes))) as program:
            with pytest.raises(ProtocolError) as raised:
                program.hello()
            assert error in str(raised.value)


def test_what_a_user_has_set_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_PATH", "/mine:/other")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    environment = library_environment()
    assert environment["NODE_PATH"] == f"/mine:/other:{adapter.SERVE / 'node'}"
    assert environment["PYTHONPATH"] == str(paths.cache("python"))


@pytest.mark.parametrize("language", COMPILED)
def test_a_program_started_by_hand_says_what_starts_it(directory: Path, language: str) -> None:
    path = written(directory, language)
    environment = {name: value for name, value in os.environ.items() if name != "LOCKSTORM_SERVE"}
    done = subprocess.run([path], env=environment, capture_output=True, text=True)
    assert done.returncode == 2 and "is set by lockstorm, which starts this program" in done.stderr
