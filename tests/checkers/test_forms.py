"""The readers and writers of histories byte by byte: what is nested, what one event leaves for the next, what an export
looks like, how a format is told from another."""

import json
import subprocess
from pathlib import Path

import pytest

from lockstorm.base import paths
from lockstorm.native.library import Message, Settings, library
from lockstorm.trial.trial_scheduler import must_succeed
from tests.checkers.test_linearizable import linearized, program_at_hand, status
from tests.checkers.test_outside import refusal, written

DEEP = 200_000
EVIDENCE_KEPT = 8  # checker.h
NAME_SHOWN, LOCK_SHOWN = 63, 251  # operations_write.c; operations_read.c, where a byte may take four
CONVERTER = paths.build() / "bin" / "history"  # not the one with a planted mistake


def edn_of(path: Path, model: str = "fenced-mutex") -> list[str]:
    """The history as we write it."""
    command = [paths.program("linearize"), f"--model={model}", "--write=edn", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


# --- EDN ---


@pytest.mark.parametrize("opening", ["#_", "^", "^a ", "#x ", "[", "(", "{", "{:a ", "#{"])
@pytest.mark.parametrize("place", ["{", "{:x ", "{:value ", "{:value [", "{:value {:a ", "{:value {", "#_"])
def test_what_is_nested_too_deeply_is_refused(tmp_path: Path, place: str, opening: str) -> None:
    """Without a limit the stack would end first."""
    assert "nested deeper than" in refusal(written(tmp_path / "h.edn", place + opening * DEEP))


def test_discarded_forms_may_follow_each_other(tmp_path: Path) -> None:
    text = "{:type :invoke, :process 1, :f :acquire " + "#_ 1 " * DEEP + "}"
    assert linearized(written(tmp_path / "h.edn", text), "--model=mutex")["events"] == 1


def acquire(kind: str, process: int, more: str) -> str:
    return f"{{:type :{kind}, :process {process}, :f :acquire, {more}}}\n"


def test_what_an_event_does_not_say_is_not_what_the_one_before_it_said(tmp_path: Path) -> None:
    """A token, the word of an error, the name of a lock, the kind of a form."""
    text = acquire("invoke", 1, "") + acquire("ok", 1, ":value {:token 5}")
    text += acquire("invoke", 2, "") + acquire("ok", 2, ":value {:other 7}")
    assert [line.split(":value ")[1].split(",")[0] for line in edn_of(written(tmp_path / "a.edn", text))] == [
        "nil",
        "5",
        "nil",
        "nil",
    ]
    for later in ("", ":error []", ':error ""', ":error #x 5"):
        text = acquire("invoke", 1, "") + acquire("fail", 1, ":error :timeout")
        text += acquire("invoke", 2, "") + acquire("fail", 2, later)
        assert linearized(written(tmp_path / "b.edn", text), "--model=mutex")["unknown"] == 1, later
    names = ('"s"', '"longer"', '"s"')
    text = "".join(acquire("invoke", number, f":lock {name}") for number, name in enumerate(names))
    assert linearized(written(tmp_path / "c.edn", text), "--model=mutex")["objects"] == 2
    text = acquire("invoke", 1, "") + acquire("ok", 1, "").replace(":process 1", ":process #uuid 1")
    assert linearized(written(tmp_path / "d.edn", text), "--model=mutex")["events"] == 1, "it has a process: no number"


def test_blanks_before_the_end_of_a_map(tmp_path: Path) -> None:
    text = acquire("invoke", 1, "") + acquire("ok", 1, ":value {:token 5 } ")
    assert edn_of(written(tmp_path / "h.edn", text))[1].count(":value 5,") == 1
    assert "a key that has no value" in refusal(written(tmp_path / "bad.edn", "{:type :invoke, :x }"))


def test_only_keywords_are_keys(tmp_path: Path) -> None:
    text = acquire("invoke", 1, '"type" :ok, type :bad, 5 6') + acquire("ok", 1, "[:type] :fail, {:a 1} 2")
    assert status(linearized(written(tmp_path / "h.edn", text), "--model=mutex")) == "holds"


def test_a_release_may_have_any_value(tmp_path: Path) -> None:
    text = acquire("invoke", 1, "") + acquire("ok", 1, "")
    text += (acquire("invoke", 1, ":value 5") + acquire("ok", 1, ":value 5")).replace(":acquire", ":release")
    assert status(linearized(written(tmp_path / "h.edn", text), "--model=mutex")) == "holds"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("[1]", "a vector of two numbers"),
        ("[1 2 3]", "a vector of two numbers"),
        ("[1 x]", "a vector of two numbers"),
        ("[x 1]", "a vector of two numbers"),
        ("[1 2 x]", "a vector of two numbers"),
        ("[[1] 2]", "a vector of two numbers"),
        ("{1 2}", "a vector of two numbers"),
    ],
)
def test_what_a_cas_compares_and_sets(tmp_path: Path, value: str, words: str) -> None:
    event = f"{{:type :invoke, :process 1, :f :cas, :value {value}}}\n"
    assert words in refusal(written(tmp_path / "h.edn", event))
    good = written(tmp_path / "good.edn", event.replace(value, "[nil 2]"))
    assert edn_of(good, "register")[0].count(":value [nil 2]") == 1


@pytest.mark.parametrize("where", [":value [1 }", ":value {1 2 ]}", ":value (1 ]", ":x {1}", ":value {1 #}"])
def test_a_mistake_within_a_form_is_named_where_it_is(tmp_path: Path, where: str) -> None:
    """Whatever follows it, also an end that would fit."""
    head = "{:type :invoke, :process 1, :f :read, "
    said = refusal(written(tmp_path / "h.edn", f"{head}{where}}} {{:type :bad}}"))
    byte = int(said.split("byte ")[1].split(":")[0].split(" ")[0].rstrip(","))
    assert len(head) <= byte <= len(head) + len(where) + 1, said


# --- how a history is written ---

REGISTER = """
{:type :invoke, :process 5, :f :write, :value 3}
{:type :invoke, :process 9, :f :read}
{:type :ok, :process 9, :f :read, :value nil}
{:type :ok, :process 5, :f :write, :value 3}
{:type :invoke, :process 5, :f :cas, :value [3 4]}
{:type :info, :process 5, :f :cas, :value [3 4]}
{:type :invoke, :process 5, :f :write, :value 8}
{:type :fail, :process 5, :f :write, :value 8}
{:type :invoke, :process 9, :f :read}
{:type :ok, :process 9, :f :read, :value 4}
{:type :invoke, :process 9, :f :write, :value 1}
"""
WRITTEN = """
{:index 0, :type :invoke, :process 0, :f :write, :value 3, :client "process 5"}
{:index 1, :type :invoke, :process 1, :f :read, :value nil, :client "process 9"}
{:index 2, :type :ok, :process 1, :f :read, :value nil, :client "process 9"}
{:index 3, :type :ok, :process 0, :f :write, :value 3, :client "process 5"}
{:index 4, :type :invoke, :process 0, :f :cas, :value [3 4], :client "process 5"}
{:index 5, :type :info, :process 0, :f :cas, :value [3 4], :client "process 5"}
{:index 6, :type :invoke, :process 2, :f :write, :value 8, :owner 0, :client "process 5"}
{:index 7, :type :fail, :process 2, :f :write, :value 8, :owner 0, :client "process 5"}
{:index 8, :type :invoke, :process 1, :f :read, :value nil, :client "process 9"}
{:index 9, :type :ok, :process 1, :f :read, :value 4, :client "process 9"}
{:index 10, :type :invoke, :process 1, :f :write, :value 1, :client "process 9"}
"""
LOCKS = r"""
{:type :invoke, :process 1, :f :acquire, :lock "a\"b\\c"}
{:type :invoke, :process 2, :f :acquire, :lock :other}
{:type :ok, :process 1, :f :acquire, :value 7}
{:type :invoke, :process 1, :f :renew, :lock "a\"b\\c"}
{:type :ok, :process 1, :f :renew}
{:type :info, :process 2, :f :acquire}
{:type :invoke, :process 1, :f :release, :lock "a\"b\\c"}
{:type :ok, :process 1, :f :release, :value 7}
{:type :invoke, :process 2, :f :release, :lock :other}
{:type :info, :process 2, :f :release}
{:type :invoke, :process 2, :f :acquire, :lock :other}
"""
LOCKS_WRITTEN = r"""
{:index 0, :type :invoke, :process 0, :f :acquire, :value nil, :client "process 1", :lock "a\"b\\c"}
{:index 1, :type :invoke, :process 1, :f :acquire, :value nil, :client "process 2", :lock "other"}
{:index 2, :type :ok, :process 0, :f :acquire, :value 7, :client "process 1", :lock "a\"b\\c"}
{:index 3, :type :invoke, :process 0, :f :renew, :value nil, :client "process 1", :lock "a\"b\\c"}
{:index 4, :type :ok, :process 0, :f :renew, :value nil, :client "process 1", :lock "a\"b\\c"}
{:index 5, :type :info, :process 1, :f :acquire, :value nil, :client "process 2", :lock "other"}
{:index 6, :type :invoke, :process 0, :f :release, :value nil, :client "process 1", :lock "a\"b\\c"}
{:index 7, :type :ok, :process 0, :f :release, :value nil, :client "process 1", :lock "a\"b\\c"}
{:index 8, :type :invoke, :process 2, :f :release, :value nil, :owner 1, :client "process 2", :lock "other"}
{:index 9, :type :info, :process 2, :f :release, :value nil, :owner 1, :client "process 2", :lock "other"}
{:index 10, :type :invoke, :process 3, :f :acquire, :value nil, :owner 1, :client "process 2", :lock "other"}
"""


@pytest.mark.parametrize(
    ("model", "text", "expected"),
    [("register", REGISTER, WRITTEN), ("fenced-mutex", LOCKS, LOCKS_WRITTEN), ("mutex", "", "")],
)
def test_an_export_word_for_word(tmp_path: Path, model: str, text: str, expected: str) -> None:
    assert edn_of(written(tmp_path / "h.edn", text), model) == expected.strip().splitlines()


def test_an_export_for_porcupine_word_for_word(tmp_path: Path) -> None:
    command = [paths.program("linearize"), "--model=register", "--write=porcupine", str(tmp_path / "h.edn")]
    written(tmp_path / "h.edn", REGISTER)
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [json.loads(line) for line in lines] == [
        {"client": 0, "call": 0, "return": 3, "kind": "write", "outcome": "ok", "value": 3},
        {"client": 1, "call": 1, "return": 2, "kind": "read", "outcome": "ok"},
        {"client": 0, "call": 4, "return": 11, "kind": "cas", "outcome": "unknown", "value": 4, "from": 3},
        {"client": 1, "call": 8, "return": 9, "kind": "read", "outcome": "ok", "value": 4},
        {"client": 1, "call": 10, "return": 11, "kind": "write", "outcome": "unknown", "value": 1},
    ]


def test_an_export_that_cannot_be_written_fails(tmp_path: Path) -> None:
    command = [paths.program("linearize"), "--model=register", "--write=edn", str(tmp_path / "h.edn")]
    written(tmp_path / "h.edn", REGISTER)
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done


# --- which format it is ---

ATLAS = '{"type":"invoke","f":"lock","value":"a","process":1}'


@pytest.mark.parametrize("blanks", ["", " ", "\n", "\t", "\r", " \r\n\t "])
def test_blanks_before_and_between_the_first_brackets(tmp_path: Path, blanks: str) -> None:
    array = f"{blanks}[{blanks}{{{blanks}{ATLAS[1:]}]"
    for text in (array, f"{blanks}{{{blanks}{ATLAS[1:]}"):
        assert linearized(written(tmp_path / "h", text), "--model=owner-mutex")["policies"]["leases"] is True, text
    edn = f"{blanks}[{blanks}{{{blanks}:type :invoke, :process 1, :f :acquire}}]"
    assert linearized(written(tmp_path / "h", edn), "--model=owner-mutex")["policies"]["leases"] is False


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('x"type"', "unexpected 'x' where the map of an operation should be"),
        ('["type"]', "where the map of an operation should be"),
        ('[x"type"', "unexpected 'x' where the map of an operation should be"),
        ("[", "the file ends before ']'"),
        ("[ ", "the file ends before ']'"),
        ("{", "a map that does not end"),
        ("[{", "a map that does not end"),
        ('{"history":5', "near end of file"),
    ],
)
def test_what_begins_like_another_format(tmp_path: Path, text: str, words: str) -> None:
    assert words in refusal(written(tmp_path / "h", text))


# --- lockstorm's own ---

HEAD = '{"history": "lockstorm", "version": 1}\n'
GRANT = '{"kind": "acquire-%s", "actor": "%s", "name": "stock", "outcome": "%s"}\n'
PAIRS = "".join(GRANT % ("invoke", each, "unknown") + GRANT % ("return", each, "ok") for each in "AB")
RECORD_BYTES, HEADER_BYTES = 64, 4096


def binary(directory: Path, text: str) -> Path:
    source, out = written(directory / "source.jsonl", HEAD + text.lstrip()), directory / "h.history"
    out.unlink(missing_ok=True)
    subprocess.run([CONVERTER, "from-json", source, out], check=True, capture_output=True)
    return out


def test_a_binary_history_is_judged_as_its_text(tmp_path: Path) -> None:
    path = binary(tmp_path, PAIRS)
    said = linearized(path, "--model=owner-mutex")
    text = linearized(tmp_path / "source.jsonl", "--model=owner-mutex")
    assert status(said) == "violated" and said["verdict"] == text["verdict"] and said["events"] == 4
    assert "B's acquire" in said["verdict"]["linearizable"]["evidence"][0]["text"]
    for count in ("events", "operations", "unknown", "objects"):
        assert said[count] == text[count], count
    torn = linearized(binary(tmp_path, PAIRS[: len(PAIRS) // 2] + '{"kind": "torn"}\n'), "--model=owner-mutex")
    assert "1 records are torn, 0 found no room" in torn["verdict"]["linearizable"]["reason"]


def test_a_record_that_was_changed_is_named_with_its_byte(tmp_path: Path) -> None:
    path = binary(tmp_path, PAIRS)
    content = bytearray(path.read_bytes())
    at = content.index(b"stock")
    content[at] ^= 1
    record = (at - HEADER_BYTES) // RECORD_BYTES
    said = refusal(written(path, bytes(content)))
    assert f"damaged record {record} at byte {HEADER_BYTES + record * RECORD_BYTES}" in said


def test_a_binary_history_that_cannot_be_opened(tmp_path: Path) -> None:
    assert "h.history: " in refusal(written(tmp_path / "h.history", b"lckstorm and then something else"))


def test_lines_that_are_no_records(tmp_path: Path) -> None:
    assert "h.jsonl: " in refusal(written(tmp_path / "h.jsonl", HEAD + '{"kind": "nothing like it"}\n'))


def test_reading_ends_at_the_limit(tmp_path: Path) -> None:
    many = "".join(GRANT % ("invoke", f"actor-{each}", "unknown") for each in range(3000))
    for path in (binary(tmp_path, many), tmp_path / "source.jsonl"):
        said = linearized(path, "--model=owner-mutex", "--memory-limit=0.04")
        assert (status(said), said["memory_bytes"] <= 1 << 16) == ("inconclusive", True)
        assert "more than the 0.0 MiB of memory" in said["verdict"]["linearizable"]["reason"]


def test_a_register_begins_with_nothing_unless_it_is_ours(tmp_path: Path) -> None:
    reads = "{{:type :invoke, :process 1, :f :read}}\n{{:type :ok, :process 1, :f :read, :value {value}}}\n"
    for value, verdict in (("nil", "holds"), ("0", "violated"), ("1", "violated")):
        path = written(tmp_path / "h.edn", reads.format(value=value))
        assert status(linearized(path, "--model=register")) == verdict, value


# --- AtlasDB's JSON ---


def atlas_events(path: Path, *events: str) -> Path:
    """ "lock:a" and its answer "lock=token" of one process."""
    lines = []
    for event in events:
        kind = "invoke" if ":" in event else "ok"
        word, value = event.replace("=", ":").split(":")
        lines.append(json.dumps({"type": kind, "f": word, "value": value, "process": 1}))
    return written(path, "\n".join(lines))


@pytest.mark.parametrize(("words", "verdict"), [("unlock refresh", "violated"), ("unlock unlock", "violated")])
@pytest.mark.parametrize("before", ["", "refresh ", "refresh refresh "])
def test_an_unlock_ends_a_hold_and_a_refresh_does_not(tmp_path: Path, before: str, words: str, verdict: str) -> None:
    def judged(said: str) -> str:
        events = [event for word in said.split() for event in (f"{word}:a", f"{word}=t")]
        return status(linearized(atlas_events(tmp_path / "h", *events), "--model=owner-mutex"))

    assert judged(f"lock {before}{words}") == verdict
    assert judged(f"lock {before}{words.split()[0]}") == "holds"
    assert judged(f"lock {before}unlock lock refresh unlock") == "holds"


@pytest.mark.parametrize("text", ["[]", "[ ]", " [ \n ] "])
def test_an_empty_array_is_a_history_of_nothing(tmp_path: Path, text: str) -> None:
    said = linearized(written(tmp_path / "h", text), "--format=atlas", "--model=owner-mutex")
    assert (status(said), said["events"]) == ("inconclusive", 0)


def test_a_history_that_contradicts_itself_is_not_judged(tmp_path: Path) -> None:
    """Two hold the lock at once, and then somebody is answered who never asked."""
    orphan = GRANT % ("return", "C", "ok")
    for text in (PAIRS + orphan, orphan + PAIRS):
        said = linearized(written(tmp_path / "h.jsonl", HEAD + text), "--model=owner-mutex")
        assert (status(said), said["verdict"]["linearizable"]["count"]) == ("inconclusive", 0)
        assert "never invoked" in said["verdict"]["linearizable"]["reason"]
    reasons = []
    for text in (orphan, orphan + GRANT % ("return", "D", "ok")):
        said = linearized(written(tmp_path / "h.jsonl", HEAD + text), "--model=owner-mutex")
        reasons.append(said["verdict"]["linearizable"]["reason"])
    assert reasons[0] == reasons[1] and reasons[0].startswith("record "), "the first mistake is told"


def test_of_many_locks_that_are_violated_the_first_are_shown(tmp_path: Path) -> None:
    text = "".join(
        acquire(kind, 10 * lock + process, f":lock :l{lock}")
        for lock in range(9)
        for process in (1, 2)
        for kind in ("invoke", "ok")
    )
    said = linearized(written(tmp_path / "h.edn", text), "--model=mutex")["verdict"]["linearizable"]
    assert (said["count"], len(said["evidence"])) == (9, EVIDENCE_KEPT)


# Of each kind of record one pair; the counter is another object than the register, and an acquire of an actor that is
# killed stays open when another one begins.
RECORDS = """
{"kind": "lock-open", "actor": "A", "name": "stock", "value": 30000}
{"kind": "store-read", "actor": "store", "object": "register", "name": "A", "value": 5}
{"kind": "store-write", "actor": "store", "object": "register", "name": "A", "value": 5}
{"kind": "note", "actor": "driver", "name": "from here on"}
{"kind": "validity", "actor": "A", "name": "stock", "value": 7, "outcome": "ok"}
{"kind": "acquire-invoke", "actor": "A", "name": "stock", "outcome": "unknown"}
{"kind": "acquire-return", "actor": "A", "name": "stock", "outcome": "ok", "token": 7}
{"kind": "read-invoke", "actor": "A", "object": "register", "outcome": "unknown"}
{"kind": "read-return", "actor": "A", "object": "register", "outcome": "ok", "value": 5}
{"kind": "renew-invoke", "actor": "A", "name": "stock", "outcome": "unknown"}
{"kind": "renew-return", "actor": "A", "name": "stock", "outcome": "ok", "token": 9}
{"kind": "acquire-invoke", "actor": "B", "name": "stock", "outcome": "unknown"}
{"kind": "acquire-return", "actor": "B", "name": "stock", "outcome": "refused"}
{"kind": "write-invoke", "actor": "A", "object": "register", "outcome": "unknown", "value": 6}
{"kind": "write-return", "actor": "A", "object": "register", "outcome": "refused", "value": 8}
{"kind": "write-invoke", "actor": "A", "object": "counter", "outcome": "unknown", "value": 6}
{"kind": "write-return", "actor": "A", "object": "counter", "outcome": "ok", "value": 8}
{"kind": "release-invoke", "actor": "A", "name": "stock", "outcome": "unknown"}
{"kind": "release-return", "actor": "A", "name": "stock", "outcome": "unknown"}
{"kind": "acquire-invoke", "actor": "B", "name": "stock", "outcome": "unknown"}
{"kind": "acquire-invoke", "actor": "B", "name": "stock", "outcome": "unknown"}
{"kind": "acquire-return", "actor": "B", "name": "stock", "outcome": "ok"}
{"kind": "read-invoke", "actor": "B", "object": "register", "outcome": "unknown"}
{"kind": "read-return", "actor": "B", "object": "register", "outcome": "unknown", "value": 4}
"""
OF_THE_LOCK = """
{:index 0, :type :invoke, :process 0, :f :acquire, :value nil, :client "A", :lock "stock"}
{:index 1, :type :ok, :process 0, :f :acquire, :value 7, :client "A", :lock "stock"}
{:index 2, :type :invoke, :process 0, :f :renew, :value nil, :client "A", :lock "stock"}
{:index 3, :type :ok, :process 0, :f :renew, :value nil, :client "A", :lock "stock"}
{:index 4, :type :invoke, :process 1, :f :acquire, :value nil, :client "B", :lock "stock"}
{:index 5, :type :fail, :process 1, :f :acquire, :value nil, :client "B", :lock "stock"}
{:index 6, :type :invoke, :process 0, :f :release, :value nil, :client "A", :lock "stock"}
{:index 7, :type :info, :process 0, :f :release, :value nil, :client "A", :lock "stock"}
{:index 8, :type :invoke, :process 1, :f :acquire, :value nil, :client "B", :lock "stock"}
{:index 9, :type :invoke, :process 3, :f :acquire, :value nil, :owner 1, :client "B", :lock "stock"}
{:index 10, :type :ok, :process 3, :f :acquire, :value nil, :owner 1, :client "B", :lock "stock"}
"""
OF_THE_REGISTER = """
{:index 0, :type :invoke, :process 0, :f :read, :value nil, :client "A", :lock "register"}
{:index 1, :type :ok, :process 0, :f :read, :value 5, :client "A", :lock "register"}
{:index 2, :type :invoke, :process 0, :f :write, :value 6, :client "A", :lock "register"}
{:index 3, :type :fail, :process 0, :f :write, :value 6, :client "A", :lock "register"}
{:index 4, :type :invoke, :process 1, :f :read, :value nil, :client "B", :lock "register"}
{:index 5, :type :info, :process 1, :f :read, :value nil, :client "B", :lock "register"}
"""


@pytest.mark.parametrize(("model", "expected"), [("fenced-mutex", OF_THE_LOCK), ("register", OF_THE_REGISTER)])
def test_each_kind_of_record_is_an_operation_of_its_model(tmp_path: Path, model: str, expected: str) -> None:
    path = binary(tmp_path, RECORDS)
    assert edn_of(path, model) == edn_of(tmp_path / "source.jsonl", model) == expected.strip().splitlines()


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("A", "A"),
        ("a b", "a b"),
        ("tab\tand \u00e9", "tab\\x09and \\xc3\\xa9"),
        ("n" * 56, "n" * 56),
        ("n" * 57, "n" * 57),
        ("n" * 300, "n" * LOCK_SHOWN),
    ],
)
def test_the_names_of_an_actor_and_a_lock(tmp_path: Path, name: str, shown: str) -> None:
    """A name lies in pieces; what cannot be printed is written as its bytes, and a long name is cut."""
    word = json.dumps(name)[1:-1]
    text = GRANT % ("invoke", word, "unknown") + GRANT % ("return", word, "ok")
    (line, _) = edn_of(binary(tmp_path, text.replace("stock", word)), "owner-mutex")
    client, lock = line.removesuffix("}").split(":client ")[1].split(", :lock ")
    assert (client, lock) == tuple(f'"{each}"'.replace("\\", "\\\\") for each in (shown[:NAME_SHOWN], shown))


@pytest.mark.parametrize("model", ["owner-mutex", "register"])
def test_reading_records_gives_its_memory_back(tmp_path: Path, model: str) -> None:
    command = [str(program_at_hand("linearizable_each")), model, "1", "0", "0", "0", str(binary(tmp_path, RECORDS))]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


# --- numbers ---


def test_a_number_of_another_event_is_forgotten(tmp_path: Path) -> None:
    """One that is too large stands where nobody reads it."""
    nemesis = "{:type :info, :process :nemesis, :f :start, :value 99999999999999999999}\n"
    text = acquire("invoke", 1, "") + nemesis + acquire("ok", 1, ":value 5")
    assert edn_of(written(tmp_path / "h.edn", text))[1].count(":value 5,") == 1


@pytest.mark.parametrize("word", ["N", "-N", "+", "-", "5NN", "5x", "0x5", "99999999999999999999"])
def test_a_word_that_is_no_number(tmp_path: Path, word: str) -> None:
    event = f"{{:type :invoke, :process 1, :f :write, :value {word}}}\n"
    assert "must be a number in 64 bits or nil" in refusal(written(tmp_path / "h.edn", event))


def test_records_that_found_no_room_are_told_of(tmp_path: Path) -> None:
    head = HEAD.replace("}", ', "dropped": 3}')
    source, out = written(tmp_path / "h.jsonl", head + PAIRS[: len(PAIRS) // 2]), tmp_path / "h.history"
    subprocess.run([CONVERTER, "from-json", source, out], check=True, capture_output=True)
    for path in (source, out):
        said = linearized(path, "--model=owner-mutex")["verdict"]["linearizable"]
        assert (said["status"], said["reason"]) == ("inconclusive", "0 records are torn, 3 found no room"), path


@pytest.mark.parametrize(("value", "verdict"), [(0, "holds"), (1, "violated")])
def test_the_register_of_our_own_histories_begins_with_0(tmp_path: Path, value: int, verdict: str) -> None:
    read = '{"kind": "read-%s", "actor": "A", "object": "register", "outcome": "%s", "value": %d}\n'
    path = binary(tmp_path, read % ("invoke", "unknown", 0) + read % ("return", "ok", value))
    for each in (path, tmp_path / "source.jsonl"):
        assert status(linearized(each, "--model=register")) == verdict


def test_a_history_whose_writers_were_killed_ends_where_it_ends(tmp_path: Path) -> None:
    """It was never ended, and most of its slots are unused."""
    path, message = tmp_path / "h.history", Message()
    head = Settings(time=1, seed=1, capacity=1000)
    must_succeed(library().history_create(bytes(path), head, message), message)
    history = must_succeed(library().history_open(bytes(path), message), message)
    library().history_text(history, b"client-1", 8, 0, 0)
    library().history_close(history)
    said = linearized(path, "--model=owner-mutex")
    assert (status(said), said["events"], said["verdict"]["linearizable"]["reason"]) == (
        "inconclusive",
        0,
        "nobody was granted the lock",
    )
