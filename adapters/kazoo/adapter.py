"""kazoo's Lock on ZooKeeper: the first of the sequential nodes. With a word: its other locks."""

from kinds import IS_SEMAPHORE, KINDS, CancelledError, KazooClient, KazooState, Lock, LockTimeout, __version__

from lockstorm.adapter_program.limited import within
from lockstorm.adapter_program.lines import Line, ThreadProgram

*_, USUAL = KINDS
WAITS = {"acquire()": "forever", "acquire(timeout)": "time", "acquire(blocking=False)": "none", "with lock": "forever"}
HELLO = {
    "name": f"kazoo {' and '.join(kind.__name__ for kind in KINDS.values())}",
    "version": __version__,
    "source": "kazoo, recipe/lock.py",
    "service": "zookeeper",
    **dict.fromkeys(("tcp", "lease", "renews"), True),
    "semaphore": IS_SEMAPHORE,
    "waits": "push",
    "operations": ["status"],
}
HELLO_2 = {
    "threads": 8,
    "modes": list(KINDS),
    "owner": "object",
    "cancel": True,
    "forms": [{"form": form, "wait": [wait], "lease": ["renewed"]} for form, wait in WAITS.items()],
    "keeps": ["/{resource}", "/{resource}-__lock__"] if IS_SEMAPHORE else ["/{resource}"],
}
HELLO_3 = {"loss_notice": "lease"}  # the state LOST: the session has ended


class Library:
    def __init__(self) -> None:
        self.made = list[dict[str, Lock]]()

    def open(self, question: Line) -> Line:
        node = question["nodes"][0]
        self.options = {"max_leases": question["permits"]} if IS_SEMAPHORE else {}
        self.client = KazooClient(f"{node['host']}:{node['port']}", timeout=question["lease_ms"] / 1000)
        self.client.add_listener(lambda state: self.tell() if state == KazooState.LOST else None)
        return {"outcome": "ok" if self.client.start_async().wait(15) else "unknown"}

    def make(self, resource: str, question: Line) -> dict[str, Lock]:
        self.made.append({mode: kind(self.client, f"/{resource}", **self.options) for mode, kind in KINDS.items()})
        return self.made[-1]

    def tell(self) -> None:
        for locks in self.made:
            if any(lock.is_acquired for lock in locks.values()):
                self.lost(locks)

    def forget(self) -> None:
        self.made.clear()

    def acquire(self, locks: dict[str, Lock], question: Line) -> bool | Line:
        """Without an answer of its servers the library asks for ever. A client of version 1 gives up before it does."""
        lock = locks[question.get("mode", USUAL)]
        if "lock" in question:
            return self.acquire_as_asked(lock, question)
        limit_s = question["wait_ms"] / 1000 + 10 if question.get("wait_ms") is not None else 50
        return within(limit_s, lambda: self.acquire_as_asked(lock, question))

    def acquire_as_asked(self, lock: Lock, question: Line) -> bool | Line:
        wait_ms = question.get("wait_ms")
        try:
            if question.get("form") == "with lock":
                return lock.__enter__() is None
            return lock.acquire(blocking=wait_ms != 0, timeout=(wait_ms and wait_ms / 1000) or None)
        except LockTimeout:
            return False
        except CancelledError as error:
            return {"outcome": "refused", "cancelled": True, "error": str(error)}

    def cancel(self, locks: dict[str, Lock]) -> None:
        for lock in locks.values():
            lock.cancel()

    def release(self, locks: dict[str, Lock], question: Line) -> bool:
        return locks[question.get("mode", USUAL)].release()

    def status(self, locks: dict[str, Lock], question: Line) -> Line:
        return {"held": any(lock.is_acquired for lock in locks.values())}


ThreadProgram(Library(), (), HELLO, HELLO_2, HELLO_3).serve()
