"""serve(): a lock library behind the protocol of docs/adapters.md, from a few functions. Calls are made by threads, or
by the tasks of asyncio if one of the functions is a coroutine."""

import asyncio
import inspect
import sys
from collections.abc import Callable
from typing import Any

from lockstorm.adapter_program import lines, tasks

Line = dict[str, Any]
WAITS = ("none", "time", "forever")
FIRST = {"name", "version", "source", "service", "lease", "token", "reentrant", "fair", "renews", "semaphore", "tcp"}
FIRST |= {"waits", "nodes", "topology", "lease_unit_ms"}  # keys of hello in version 1
OPTIONAL = ("renew", "is_held", "token", "lost", "forget")  # functions
THIRD = {"cancels", "over", "loss_notice", "holds_two", "silence_ms", "settings"}  # ... that only version 3 has


def url_of(node: Line, service: str) -> str:
    if "unix" in node:
        return f"unix://{node['unix']}"
    place = f"{node['host']}:{node['port']}"
    if service == "postgres":
        return f"postgresql://lockstorm@{place}/postgres?sslmode=disable&gssencmode=disable"
    return {"redis": f"redis://{place}", "etcd": f"http://{place}"}.get(service, place)


class MadeLock:
    """What `make` returned for a lock object, what its latest acquire returned, the token of that, and how many grants
    were not given back."""

    def __init__(self, made: Any) -> None:
        self.made, self.granted, self.held = made, None, 0
        self.token: Line = {}


class ServedLibrary:
    """Calls the functions. Its methods are coroutines; without asyncio they never wait."""

    def __init__(self, service: str, functions: dict[str, Callable[..., Any]]) -> None:
        self.service, self.functions = service, functions
        self.holds = list[MadeLock]()
        self.write_notice: Callable[[MadeLock], None]
        self.is_async = any(inspect.iscoroutinefunction(each) for each in functions.values())

    async def call(self, name: str, hold: MadeLock, *more: Any) -> Any:
        if isinstance(hold.made, asyncio.Future):
            hold.made = await hold.made
        done = self.functions[name](hold.made, *more)
        if not inspect.isawaitable(done):
            return done
        if not self.is_async:
            getattr(done, "close", bool)()
            raise TypeError(f"{name} has to wait for asyncio: write that function with async def")
        return await done

    async def open(self, question: Line) -> None:
        self.opened, self.urls = question, [url_of(node, self.service) for node in question["nodes"]]

    def make(self, resource: str, question: Line) -> MadeLock:
        lease_ms = question.get("lease_ms", self.opened["lease_ms"])
        made = self.functions["make"](self.urls, resource, lease_ms and lease_ms / 1000)
        hold = MadeLock(asyncio.ensure_future(made) if self.is_async and inspect.iscoroutine(made) else made)
        self.holds.append(hold)
        return hold

    async def acquire(self, hold: MadeLock, question: Line) -> bool | Line:
        wait_ms = question.get("wait_ms")
        granted = await self.call("acquire", hold, None if wait_ms is None else wait_ms / 1000)
        if granted is None:
            raise TypeError("acquire returned None: return True when the lock was granted, and False when it was not")
        if granted is False:
            return False
        hold.granted, hold.held = granted, hold.held + 1
        if "lost" in self.functions and hold.held == 1:
            await self.call("lost", hold, lambda: self.tell(hold))
        if "token" in self.functions:
            hold.token = {"token": await self.call("token", hold, *self.granted_for("token", hold))}
        return {"outcome": "ok", **hold.token}

    async def token(self, hold: MadeLock, question: Line) -> Line:
        return {"outcome": "ok", **hold.token}

    async def release(self, hold: MadeLock, question: Line) -> bool:
        hold.held = max(0, hold.held - 1)  # a release says by itself that there was nothing to release
        return await self.call("release", hold, *self.granted_for("release", hold)) is not False

    async def renew(self, hold: MadeLock, question: Line) -> bool:
        return await self.call("renew", hold, *self.granted_for("renew", hold)) is not False

    async def is_held(self, hold: MadeLock, question: Line) -> bool:
        return bool(await self.call("is_held", hold, *self.granted_for("is_held", hold)))

    def tell(self, hold: MadeLock) -> None:
        if hold.held > 0:
            hold.held = 0  # one notice a hold
            self.write_notice(hold)

    async def forget(self) -> None:
        dropped, self.holds = self.holds, []
        if "forget" in self.functions:
            for hold in dropped:
                if not isinstance(hold.made, asyncio.Future):  # else `make` has failed
                    await self.call("forget", hold)

    def granted_for(self, name: str, hold: MadeLock) -> tuple[Any, ...]:
        """What acquire returned, for a function that takes a second argument."""
        takes = inspect.signature(self.functions[name]).parameters
        return (hold.granted,) if len(takes) > 1 else ()


class WithoutLoop:
    """The same library for a program of threads."""

    def __init__(self, library: ServedLibrary) -> None:
        self.library, self.make = library, library.make

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.library, name)

        def called(*arguments: Any) -> Any:
            try:
                method(*arguments).send(None)
            except StopIteration as done:
                return done.value
            raise AssertionError("it waits")

        return called


def serve(
    *,
    make: Callable[..., Any],
    acquire: Callable[..., Any],
    release: Callable[..., Any] = lambda lock: lock.release(),
    refused: type[Exception] | tuple[type[Exception], ...] = (),
    waits_for: tuple[str, ...] = WAITS,
    **more: Any,
) -> None:
    """Answers lockstorm's questions until standard input ends.

    make(urls, resource, lease): the lock object. `urls` of the servers to connect to; `lease` in s, None: endless.
    acquire(lock, wait): True or what was granted; False: refused. `wait` in s; 0: one try, None: without a limit.
    release(lock), renew(lock), is_held(lock): False if it is not ours. A second parameter gets what acquire returned.
    token(lock): the fencing token of the hold; asked once after each grant.
    lost(lock, tell): called after a grant, unless it is nested in another one; call `tell()` when the library says by
        itself that the hold is lost.
    forget(lock): lockstorm drops the lock object, and the program lives on: end what it has started, as a renewal.
    refused: the exceptions that say that another client holds the lock. After all others the outcome is unknown.
    waits_for: the waits that acquire supports, of none, time and forever.

    All other keywords are keys of hello (docs/adapters.md): service, nodes, renews, fair, owner, lease_key, ...
    """
    sys.stdout = sys.stderr  # what the library prints; answers have standard output for themselves
    optional = {name: more.pop(name, None) for name in OPTIONAL}
    optional = {name: function for name, function in optional.items() if function}
    functions = {"make": make, "acquire": acquire, "release": release, **optional}
    lease = more.setdefault("lease", True)
    more = {"name": "my lock", **more, "token": "token" in optional}
    hello = {key: more.pop(key) for key in list(more) if key in FIRST}
    hello["operations"] = [name for name in ("renew", "is_held") if name in optional]
    kind = "renewed" if hello.get("renews") else "given" if lease else "endless"
    form = {"form": "acquire", "wait": list(waits_for), "lease": [kind]}
    third = {key: more.pop(key) for key in list(more) if key in THIRD}
    second = {"owner": "object", "threads": 8 if "owner" in more else 1, "forms": [form], "of_object": ["lease_ms"]}
    second |= {"operations": [*hello["operations"], *(["token"] if "token" in optional else [])], **more}
    if "lost" in optional:
        third.setdefault("loss_notice", "lease")
    library = ServedLibrary(hello.get("service", "redis"), functions)
    if library.is_async:
        calls = [name for name in ("release", "renew") if name in functions]
        third = {"cancels": calls, "over": ["acquire", *calls], **third}
        of_tasks = tasks.TaskProgram(library, refused, hello, {"cancel": True, **second}, third)
        library.write_notice = of_tasks.lost
        asyncio.run(of_tasks.serve())
    else:
        of_threads = lines.ThreadProgram(WithoutLoop(library), refused, hello, second, third)
        library.write_notice = of_threads.lost
        of_threads.serve()
