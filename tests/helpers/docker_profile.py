"""Runs a program under what Docker's default seccomp profile forbids, of the calls that lockstorm or a library's
runtime could make. Usage: python docker_profile.py none|SYS_PTRACE PROGRAM [ARGUMENT]...; the word is the capability
given by --cap-add.

Source: profiles/seccomp/default.json of moby, and seccomp(2). The numbers of calls are those of x86-64."""

import ctypes
import os
import struct
import sys
from collections.abc import Sequence

LOAD, IS, HAS_BIT, RETURN = 0x20, 0x15, 0x45, 0x06  # BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_JMP|JSET|K, BPF_RET|K
NUMBER_AT, FIRST_ARGUMENT_AT = 0, 16  # in struct seccomp_data
# SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ERRNO | ENOSYS
ALLOW, NOT_PERMITTED, UNKNOWN = 0x7FFF0000, 0x00050001, 0x00050026
PR_SET_NO_NEW_PRIVS, SECCOMP, SECCOMP_SET_MODE_FILTER = 38, 317, 1
FOR_TRACERS = {"pidfd_getfd": 438, "kcmp": 312, "process_madvise": 440}
FORBIDDEN = {
    "unshare": 272,
    "setns": 308,
    "mount": 165,
    "userfaultfd": 323,
    "bpf": 321,
    "perf_event_open": 298,
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "keyctl": 250,
    "add_key": 248,
    "request_key": 249,
    "clock_settime": 227,
    "settimeofday": 164,
    "reboot": 169,
}
CLONE, CLONE3, PERSONALITY = 56, 435, 135
NAMESPACES = 0x7E020000  # CLONE_NEW*
PERSONALITIES = (0, 8, 0x20000, 0x20008, 0xFFFFFFFF)


def _line(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _on_call(number: int, body: Sequence[bytes]) -> list[bytes]:
    return [_line(IS, number, 0, len(body)), *body]


def profile(capability: str) -> list[bytes]:
    """The filter, as instructions."""
    forbidden = FORBIDDEN if capability == "SYS_PTRACE" else FORBIDDEN | FOR_TRACERS
    lines = [_line(LOAD, NUMBER_AT)]
    for number in forbidden.values():
        lines += _on_call(number, [_line(RETURN, NOT_PERMITTED)])
    lines += _on_call(CLONE3, [_line(RETURN, UNKNOWN)])
    answers = [_line(RETURN, NOT_PERMITTED), _line(RETURN, ALLOW)]
    lines += _on_call(CLONE, [_line(LOAD, FIRST_ARGUMENT_AT), _line(HAS_BIT, NAMESPACES, 0, 1), *answers])
    usual = [_line(IS, each, len(PERSONALITIES) - place) for place, each in enumerate(PERSONALITIES)]
    lines += _on_call(PERSONALITY, [_line(LOAD, FIRST_ARGUMENT_AT), *usual, *answers])
    return [*lines, _line(RETURN, ALLOW)]


def main() -> None:
    lines = profile(sys.argv[1])
    code = ctypes.create_string_buffer(b"".join(lines))
    program = struct.pack("=HxxxxxxQ", len(lines), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.syscall(SECCOMP, SECCOMP_SET_MODE_FILTER, 0, program):
        raise OSError(ctypes.get_errno(), "seccomp")
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
