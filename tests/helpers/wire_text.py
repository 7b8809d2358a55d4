"""Sessions as readable text, turned into bytes for build/tests/recognise, and the events that it prints.

A case is a block of lines; blank lines separate cases.

    case: a key with NX and a lease          its title
    redis                                    the service, and perhaps settings: "postgres database=shop"
    table 1001 users id                      as build/tests/recognise takes it; also "hint ..."
    script NAME                              the server had the script tests/recogniser/scripts/NAME.lua before
    1> SET user:1:lock ab12 NX PX 30000      session 1 asks; every line is 1 ms later than the one before
    1< OK                                    it is answered
    1 closes
    = 1 1 lock-asked "redis ..."             the next event, as build/tests/recognise prints it

Bytes of either service in hexadecimal: bytes 0000000804d2162f.

A command of Redis is words as a shell splits them; commands in one message stand between " | ". @NAME is the text of
tests/recogniser/scripts/NAME.lua, and #NAME its SHA1. A reply is OK, nil, :1, 'text' (or "text"), -ERR what, [a, list],
>[a, push].

Messages of PostgreSQL stand between " | ". Requests: query TEXT; parse NAME TYPES: TEXT (types as oids, or nothing);
bind NAME (VALUES); describe NAME; describe-portal; execute; sync; close NAME; startup user=U database=D. Values are
numbers, 'texts', null, or $HEX for binary ones. Answers: parsed, bound, closed, no-data, suspended;
parameters OID ...; columns TABLE.NAME:TYPE ... (TABLE is the oid, 0 for an expression); row VALUE ...; done TAG;
error SQLSTATE; ready I; ok (to a startup); copy-in.
"""

import hashlib
import re
import shlex
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent.parent / "recogniser" / "scripts"
STEP_NS = 1_000_000
PROTOCOL_3 = 196608
SIMPLE_MESSAGES = {"parsed": b"1", "bound": b"2", "closed": b"3", "no-data": b"n", "suspended": b"s"}


@dataclass
class WrittenSession:
    title: str
    service: str
    lines: list[str] = field(default_factory=list)  # for build/tests/recognise
    events: list[str] = field(default_factory=list)  # that are right
    has_bytes: bool = False  # it may not be of the service's protocol


def written_sessions(text: str) -> Iterator[WrittenSession]:
    for block in re.split(r"\n\s*\n", text):
        lines = [line for line in block.splitlines() if line.strip() and not line.startswith("#")]
        if lines:
            yield _session(lines)


def _session(lines: list[str]) -> WrittenSession:
    head, _, title = lines[0].partition(": ")
    assert head == "case", lines[0]
    service, *settings = lines[1].split()
    session = WrittenSession(title, service)
    given = dict(word.split("=") for word in settings)
    session.lines.append(f"settings {given.get('database', '-')} {given.get('isolation', '0')}")
    for number, line in enumerate(lines[2:], 1):
        if line.startswith("= "):
            session.events.append(line[2:])
        elif line.startswith(("table ", "hint ")):
            session.lines.append(line)
        elif line.startswith("script "):
            session.lines.append(f"script {_word('@' + line.split()[1]).hex()}")
        elif found := re.match(r"(\d+)([<>]) ?(.*)", line):
            name, way, said = found.groups()
            coded = encoded(service, way, said)
            session.has_bytes |= said.startswith("bytes ")
            session.lines.append(f"{way} {name} {number * STEP_NS} {coded.hex()}")
        elif found := re.fullmatch(r"(\d+) closes", line):
            session.lines.append(f"close {found[1]} {number * STEP_NS}")
        else:
            raise AssertionError(line)
    return session


def encoded(service: str, way: str, text: str) -> bytes:
    if text.startswith("bytes "):
        return bytes.fromhex(text.partition(" ")[2])
    parts = re.split(r" \| ", text)
    if service == "redis":
        return b"".join(redis_command(part) if way == ">" else redis_reply(part) for part in parts)
    return b"".join(postgres_request(part) if way == ">" else postgres_answer(part) for part in parts)


# --- Redis ---


def redis_command(text: str) -> bytes:
    words = [_word(word) for word in shlex.split(text)]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def _word(text: str) -> bytes:
    """@NAME is a script, and #NAME what Redis calls it."""
    if text[:1] not in ("@", "#"):
        return text.encode()
    script = (SCRIPTS / f"{text[1:]}.lua").read_bytes()
    return script if text[0] == "@" else hashlib.sha1(script).hexdigest().encode()


def redis_reply(text: str) -> bytes:
    value, rest = _reply(text.strip())
    assert not rest.strip(), text
    return value


def _reply(text: str) -> tuple[bytes, str]:
    if found := re.match(r"nil\b", text):
        return b"$-1\r\n", text[found.end() :]
    if found := re.match(r":(-?\d+)", text):
        return b":%s\r\n" % found[1].encode(), text[found.end() :]
    if found := re.match(r"""(["'])(.*?)\1""", text):
        return b"$%d\r\n%s\r\n" % (len(found[2]), found[2].encode()), text[found.end() :]
    if found := re.match(r"-(.*)", text):
        return b"-%s\r\n" % found[1].encode(), ""
    if found := re.match(r"(>?)\[", text):
        elements, rest = [], text[found.end() :].lstrip()
        while not rest.startswith("]"):
            element, rest = _reply(rest)
            elements.append(element)
            rest = rest.lstrip(", ")
        return (b">%d\r\n" if found[1] else b"*%d\r\n") % len(elements) + b"".join(elements), rest[1:]
    found = re.match(r"\w+", text)
    assert found, text
    return b"+%s\r\n" % found[0].encode(), text[found.end() :]


# --- PostgreSQL ---


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def _texts(*texts: str) -> bytes:
    return b"".join(text.encode() + b"\0" for text in texts)


def _values(text: str) -> list[tuple[bool, bytes | None]]:
    """Whether it is binary, and its bytes."""
    found: list[tuple[bool, bytes | None]] = []
    for quoted, binary, bare in re.findall(r"'((?:[^']|'')*)'|\$([0-9a-f]*)|([^\s,()]+)", text):
        if bare:
            found.append((False, None if bare == "null" else bare.encode()))
        elif binary:
            found.append((True, bytes.fromhex(binary)))
        else:
            found.append((False, quoted.replace("''", "'").encode()))
    return found


def _length_and(value: bytes | None) -> bytes:
    return struct.pack("!i", -1) if value is None else struct.pack("!I", len(value)) + value


def postgres_request(text: str) -> bytes:
    verb, _, rest = text.partition(" ")
    if verb == "startup":
        body = _texts(*(each for pair in rest.split() for each in pair.split("="))) + b"\0"
        return struct.pack("!II", len(body) + 8, PROTOCOL_3) + body
    if verb == "query":
        return message(b"Q", _texts(rest))
    if verb == "parse":
        head, _, statement = rest.partition(": ")
        name, *types = head.split() or [""]
        oids = [int(each) for each in types]
        return message(b"P", _texts(name, statement) + struct.pack(f"!H{len(oids)}I", len(oids), *oids))
    if verb == "bind":
        name, _, inside = rest.partition("(")
        values = _values(inside.rpartition(")")[0])
        formats = struct.pack(f"!H{len(values)}H", len(values), *(binary for binary, _ in values))
        body = b"".join(_length_and(value) for _, value in values)
        results = struct.pack("!HH", 1, 1) if "binary" in inside.rpartition(")")[2] else struct.pack("!H", 0)
        return message(b"B", _texts("", name.strip()) + formats + struct.pack("!H", len(values)) + body + results)
    if verb == "describe":
        return message(b"D", b"S" + _texts(rest))
    if verb == "describe-portal":
        return message(b"D", b"P" + _texts(""))
    if verb == "execute":
        return message(b"E", _texts("") + struct.pack("!I", 0))
    if verb == "close":
        return message(b"C", b"S" + _texts(rest))
    assert verb == "sync", text
    return message(b"S", b"")


def postgres_answer(text: str) -> bytes:
    verb, _, rest = text.partition(" ")
    if verb in SIMPLE_MESSAGES:
        return message(SIMPLE_MESSAGES[verb], b"")
    if verb == "ok":
        return message(b"R", struct.pack("!I", 0))
    if verb == "parameters":
        oids = [int(each) for each in rest.split()]
        return message(b"t", struct.pack(f"!H{len(oids)}I", len(oids), *oids))
    if verb == "columns":
        body = b""
        for each in rest.split():
            table, name, kind = re.split(r"[.:]", each)
            body += _texts(name) + struct.pack("!IHIHIH", int(table), 1, int(kind), 8, 0, 0)
        return message(b"T", struct.pack("!H", len(rest.split())) + body)
    if verb == "row":
        values = _values(rest)
        return message(b"D", struct.pack("!H", len(values)) + b"".join(_length_and(value) for _, value in values))
    if verb == "done":
        return message(b"C", _texts(rest))
    if verb == "error":
        return message(b"E", b"SERROR\0C" + _texts(rest) + b"Mno\0\0")
    if verb == "copy-in":
        return message(b"G", struct.pack("!BH", 0, 0))
    assert verb == "ready", text
    return message(b"Z", rest.encode())


def recognised(program: Path, service: str, lines: list[str], *options: str) -> list[str]:
    """The events that the program prints."""
    text = "".join(f"{line}\n" for line in lines)
    done = subprocess.run([program, service, *options], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
