"""The ways of Python to wait and to tell the time; prints when each ended. Runs under the supervisor."""

import asyncio
import queue
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

BEGAN = time.monotonic_ns()


def show(step: str, result: object = "") -> None:
    now = time.monotonic_ns() - BEGAN
    print(f"{now // 10**9}.{now % 10**9:09} {step} {result}".rstrip(), flush=True)


def later(delay_s: float, action: Callable[..., object], *arguments: object) -> None:
    threading.Timer(delay_s, action, arguments).start()


def clocks() -> None:
    print(time.time_ns(), time.monotonic_ns(), time.perf_counter_ns(), time.process_time_ns())
    print(time.clock_gettime_ns(time.CLOCK_BOOTTIME), datetime.fromtimestamp(time.time()).year)


def threads() -> None:
    condition, event, lock = threading.Condition(), threading.Event(), threading.Lock()
    with condition:
        show("Condition.wait", condition.wait(5))
    show("Event.wait", event.wait(2.5))
    later(3, event.set)
    show("Event.wait, set", event.wait(60))
    with lock:
        show("Lock.acquire", lock.acquire(timeout=1.25))
    sleeper = threading.Thread(target=time.sleep, args=(8,))
    sleeper.start()
    sleeper.join(2)
    show("Thread.join", sleeper.is_alive())
    sleeper.join()
    show("Thread.join, ended", sleeper.is_alive())
    try:
        queue.Queue[int]().get(timeout=4)
    except queue.Empty:
        show("Queue.get")
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(time.sleep, [1, 2, 3, 1]))
    show("ThreadPoolExecutor")


async def tasks() -> None:
    await asyncio.gather(asyncio.sleep(10), asyncio.sleep(7))
    show("gather")
    try:
        await asyncio.wait_for(asyncio.Event().wait(), 3)
    except TimeoutError:
        show("wait_for")
    asyncio.get_running_loop().call_later(0.5, show, "call_later")
    await asyncio.to_thread(time.sleep, 1)
    show("to_thread")
    process = await asyncio.create_subprocess_exec("sleep", "6")
    show("subprocess", await process.wait())


def descriptors() -> None:
    one, other = socket.socketpair()
    one.settimeout(4)
    try:
        one.recv(1)
    except TimeoutError:
        show("socket timeout")
    later(6, other.send, b"z")
    one.settimeout(60)
    show("socket data", one.recv(1))
    show("select", select.select([one], [], [], 1.5)[0])
    poll = select.poll()
    poll.register(one, select.POLLIN)
    show("poll", poll.poll(2500))
    epoll = select.epoll()
    epoll.register(one, select.EPOLLIN)
    show("epoll", epoll.poll(0.75))


def interruptions() -> None:
    signal.signal(signal.SIGALRM, lambda *_: show("alarm"))
    signal.alarm(2)
    time.sleep(5)
    show("sleep goes on")
    signal.setitimer(signal.ITIMER_REAL, 1.5)
    signal.pause()
    show("pause")


def processes() -> None:
    try:
        subprocess.run(["sleep", "100"], timeout=7)
    except subprocess.TimeoutExpired as expired:
        show("run", float(expired.timeout))
    show("run", subprocess.run(["sleep", "9"]).returncode)
    code = "import time; time.sleep(2); print(time.monotonic_ns())"
    show("python", int(subprocess.check_output([sys.executable, "-c", code])) - BEGAN)


clocks()
show("start")
time.sleep(30)
show("sleep")
threads()
asyncio.run(tasks())
descriptors()
interruptions()
processes()
clocks()
