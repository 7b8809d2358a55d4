"""Shared by the adapters of Python's libraries: the protocol (docs/adapters.md)."""

import json
import os
import sys
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

Line = dict[str, Any]


def unknown(error: Exception) -> Line:
    return {"outcome": "unknown", "error": f"{type(error).__name__}: {error}"}


class ThreadCaller:  # a thread of protocol 2, which executes its calls one after the other
    def __init__(self, program: "ThreadProgram") -> None:
        self.program, self.calls, self.asked, self.answered = program, SimpleQueue[Line | None](), 0, 0
        self.call: Line = {}  # that is under way
        self.thread = Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        while (question := self.calls.get()) is not None:
            self.call = question
            answer = self.program.answer(question)
            self.call, self.answered = {}, self.answered + 1
            self.program.write(question, answer)


class ThreadProgram:
    """A library has `open`, `make`, which returns a lock object, and operations on a lock object, as its question says;
    perhaps `forget`, after which it needs no lock object any more.
    `refusals`: its exceptions for "not granted" and "not yours". `hello_2`, `hello_3`: what these versions add."""

    def __init__(self, library: Any, refusals: Any, hello: Line, hello_2: Line, hello_3: Line | None = None) -> None:
        self.library, self.refusals, self.protocol = library, refusals, 1
        self.hellos = {1: {"protocol": 1, **hello}, 2: {"protocol": 2, **hello, **hello_2}}
        if hello_3 is not None:
            self.hellos[3] = {**self.hellos[2], "protocol": 3, **hello_3}
        self.locks, self.callers = dict[int, Any](), dict[int, ThreadCaller]()
        self.acquires = dict[int, Line]()  # the latest one of each lock object
        self.making, self.writing = Lock(), Lock()
        library.lost = self.lost

    def serve(self) -> None:
        for question in map(json.loads, sys.stdin):
            if question["op"] in ("hello", "open", "forget", "cancel"):
                self.write(question, getattr(self, question["op"])(question))
            elif self.protocol == 1:
                self.write(question, self.answer(question))
            else:
                number = question.get("thread", 1)
                caller = self.callers[number] = self.callers.get(number) or ThreadCaller(self)
                caller.asked += 1
                caller.calls.put(question)

    def write(self, question: Line, answer: Line) -> None:
        with self.writing:
            os.write(1, json.dumps({"id": question["id"], "outcome": "ok", **answer}).encode() + b"\n")

    def lost(self, lock: Any) -> None:
        """The library tells that the hold of a lock object is lost."""
        for number, question in list(self.acquires.items()):
            if self.protocol > 2 and self.locks.get(number) is lock:
                where = {key: question[key] for key in ("thread", "lock", "resource") if key in question}
                with self.writing:
                    os.write(1, json.dumps({"notice": "lost", **where}).encode() + b"\n")

    def hello(self, question: Line) -> Line:
        self.protocol = min(max(self.hellos), question["protocol"])
        return self.hellos[self.protocol]

    def open(self, question: Line) -> Line:
        self.opened = question
        try:
            return self.library.open(question) or {}
        except Exception as error:  # of a library that connects at once
            return unknown(error)

    def cancel(self, question: Line) -> Line:
        """A library that can has `cancel`, which ends the acquire of a lock object."""
        for call in (caller.call for caller in self.callers.values()):
            if call.get("id") == question["call"] and call.get("lock", 1) in self.locks:
                return self.library.cancel(self.locks[call.get("lock", 1)]) or {}
        return {"outcome": "refused", "error": "that call is not under way"}

    def forget(self, question: Line) -> Line:
        """Ends the threads and drops the lock objects; Python cannot end a thread with a call under way."""
        if any(caller.asked != caller.answered for caller in self.callers.values()):
            return {"outcome": "refused", "error": "a call is under way"}
        for caller in self.callers.values():
            caller.calls.put(None)
            caller.thread.join()
        self.callers, self.locks, self.acquires = {}, {}, {}
        getattr(self.library, "forget", lambda: None)()
        return {}

    def answer(self, question: Line) -> Line:
        try:
            with self.making:
                if (number := question.get("lock", 1)) not in self.locks:
                    self.locks[number] = self.library.make(question.get("resource", self.opened["resource"]), question)
            if question["op"] == "acquire":
                self.acquires[number] = question
            done = getattr(self.library, question["op"])(self.locks[number], question)
        except self.refusals as error:
            return {"outcome": "refused", "error": str(error)}
        except Exception as error:  # the server may have executed the command
            return unknown(error)
        return done if isinstance(done, dict) else {"outcome": "ok" if done else "refused"}
