"""Shared by the adapters of libraries for asyncio: the protocol (docs/adapters.md), whose threads are tasks."""

import asyncio
import contextvars
import json
import os
import sys
from typing import Any

Line = dict[str, Any]


def cancelled(question: Line) -> Line:  # a release or renewal may have reached the server
    outcome = "refused" if question["op"] == "acquire" else "unknown"
    return {"outcome": outcome, "cancelled": True, "error": "CancelledError"}


class TaskCaller:  # a thread of protocol 2: a context, in which its calls are executed one after the other, a task each
    def __init__(self, program: "TaskProgram") -> None:
        self.program, self.calls, self.asked, self.answered = program, asyncio.Queue[Line](), 0, 0
        self.call: Line = {}  # that is under way
        self.runner, self.context = asyncio.create_task(self.run()), contextvars.copy_context()

    async def run(self) -> None:
        while True:
            self.call = await self.calls.get()
            self.task = asyncio.create_task(self.program.answer(self.call), context=self.context)
            await asyncio.wait([self.task])
            question, self.call, self.answered = self.call, {}, self.answered + 1
            self.program.write(question, cancelled(question) if self.task.cancelled() else self.task.result())


class TaskProgram:
    """A library has `open`, `make`, which returns a lock object, operations on a lock object, as its question says, and
    perhaps `forget`, after which it needs no lock object any more; all but `make` are coroutines. `refusals`: its
    exceptions for "not granted" and "not yours". `hello_2`, `hello_3`: what these versions add to `hello`."""

    def __init__(self, library: Any, refusals: Any, hello: Line, hello_2: Line, hello_3: Line | None = None) -> None:
        self.library, self.refusals = library, refusals
        self.hellos = {1: {"protocol": 1, **hello}, 2: {"protocol": 2, **hello, **hello_2}}
        if hello_3:
            self.hellos[3] = {**self.hellos[2], "protocol": 3, **hello_3}
        self.locks, self.callers = dict[int, Any](), dict[int, TaskCaller]()
        self.acquires = dict[int, Line]()  # the latest one of each lock object
        library.lost = self.lost

    async def serve(self) -> None:
        lines = asyncio.StreamReader(limit=1 << 17)
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        while line := await lines.readline():
            question = json.loads(line)
            if question["op"] in ("hello", "open", "forget", "cancel"):
                self.write(question, await getattr(self, question["op"])(question))
                continue
            number = question.get("thread", 1)
            caller = self.callers[number] = self.callers.get(number) or TaskCaller(self)
            caller.asked += 1
            caller.calls.put_nowait(question)
        os._exit(0)

    def write(self, question: Line, answer: Line) -> None:
        os.write(1, json.dumps({"id": question["id"], "outcome": "ok", **answer}).encode() + b"\n")

    def lost(self, lock: Any) -> None:
        """The library tells that the hold of a lock object is lost."""
        for number, question in self.acquires.items():
            if self.locks[number] is lock:
                where = {key: question[key] for key in ("thread", "lock", "resource") if key in question}
                os.write(1, json.dumps({"notice": "lost", **where}).encode() + b"\n")

    async def hello(self, question: Line) -> Line:
        return self.hellos[min(max(self.hellos), question["protocol"])]

    async def open(self, question: Line) -> Line:
        self.opened = question
        return await self.library.open(question) or {}

    async def cancel(self, question: Line) -> Line:
        for caller in self.callers.values():
            if caller.call.get("id") == question["call"]:
                caller.task.cancel()
                return {}
        return {"outcome": "refused", "error": "that call is not under way"}

    async def forget(self, question: Line) -> Line:
        """Ends the threads and drops the lock objects."""
        if any(caller.asked != caller.answered for caller in self.callers.values()):
            return {"outcome": "refused", "error": "a call is under way"}
        for caller in self.callers.values():
            caller.runner.cancel()
        self.callers, self.locks, self.acquires = {}, {}, {}
        if hasattr(self.library, "forget"):
            await self.library.forget()
        return {}

    async def answer(self, question: Line) -> Line:
        try:
            if (number := question.get("lock", 1)) not in self.locks:
                self.locks[number] = self.library.make(question.get("resource", self.opened["resource"]), question)
            if question["op"] == "acquire":
                self.acquires[number] = question
            if question.get("over"):
                call = asyncio.current_task()
                assert call
                asyncio.get_running_loop().call_soon(call.cancel)  # where the call first waits
            done = await getattr(self.library, question["op"])(self.locks[number], question)
        except self.refusals as error:
            return {"outcome": "refused", "error": str(error)}
        except Exception as error:  # the server may have executed the command
            return {"outcome": "unknown", "error": f"{type(error).__name__}: {error}"}
        return done if isinstance(done, dict) else {"outcome": "ok" if done else "refused"}
