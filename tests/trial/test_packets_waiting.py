"""The number of packets that wait at the machine's processors, by the kernel's table: a line per processor that is
online. A read returns about one page of it."""

import ctypes
import socket

import pytest

from lockstorm.native.library import library

PAGE = 4096
OLD, NEW = 13, 15  # columns: the line's processor is the last one of 13; newer kernels have two more


def waiting_in(pieces: list[bytes]) -> int:
    """What packets_waiting_in reads from a file whose reads return one piece each."""
    reads = library().packets_waiting_in
    reads.restype, reads.argtypes = ctypes.c_uint64, [ctypes.c_int]
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
    with ours, theirs:
        for piece in pieces:
            ours.send(piece)
        ours.shutdown(socket.SHUT_WR)
        return int(reads(theirs.fileno()))


def line(processor: int, waiting: int, columns: int = NEW) -> bytes:
    numbers = [0x3F12E + processor, *[0xFFFFFFFF] * 10, waiting, processor, waiting, 0][:columns]
    return b" ".join(b"%08x" % number for number in numbers) + b"\n"


def pages(lines: list[bytes]) -> list[bytes]:
    """As the kernel returns them: whole lines, as many as fit into a page."""
    found = [b""]
    for each in lines:
        if len(found[-1]) + len(each) > PAGE:
            found.append(b"")
        found[-1] += each
    return found


@pytest.mark.parametrize("columns", [OLD, NEW])
@pytest.mark.parametrize("processors", [1, 2, 30, 31, 128, 512, 2048])
def test_packets_of_the_last_processor_count(processors: int, columns: int) -> None:
    lines = [line(each, 0, columns) for each in range(processors - 1)] + [line(processors - 1, 0xA, columns)]
    assert waiting_in(pages(lines)) == 10


def test_packets_of_all_processors_count_although_some_are_offline() -> None:
    """An offline processor has no line, so a line's number is not its processor's."""
    online = [each for each in range(256) if each % 3 and not 100 <= each < 140]
    assert waiting_in(pages([line(each, each) for each in online])) == sum(online)


def test_a_number_may_be_cut_by_the_end_of_a_read() -> None:
    whole = line(0, 0x12345678) + line(1, 0x1F) + line(7, 0)
    for at in range(1, len(whole)):
        assert waiting_in([whole[:at], whole[at:]]) == 0x12345678 + 0x1F, at


def test_a_kernel_that_does_not_say_has_no_packets_waiting() -> None:
    """Before 5.12 a line ended with the eleventh number."""
    assert waiting_in([line(0, 5, 11), line(1, 5, 11)]) == 0
    assert waiting_in([]) == 0
