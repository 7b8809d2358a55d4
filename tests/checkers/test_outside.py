"""Histories of other tools: what is read, what is refused and at which byte; round trips, leases, limits, command."""

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lockstorm.base import paths
from lockstorm.native.linearizability import MODELS
from tests.checkers.test_linearizable import HISTORIES, POLICIES, about, linearized, status, write_events
from tests.helpers.support import lockstorm

RECORDED = sorted((paths.ROOT / "tests" / "histories").glob("*.jsonl"))
ONE = "{:type :invoke, :process 0, :f :acquire, :value nil} {:type :ok, :process 0, :f :acquire, :value nil}\n"
EVENTS_IN_BOUNDED_MEMORY = 300_000
MIB = 1 << 20
TEXT_BUFFER = 1 << 16


def run(path: Path | str, *words: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [paths.program("linearize"), "--model=mutex", *words, str(path)], capture_output=True, timeout=600, **options
    )


def refusal(path: Path | str, *words: str) -> str:
    """The message with which the input was refused, which is one line."""
    done = run(path, *words)
    said = done.stderr.decode(errors="replace")
    assert (done.returncode, done.stdout) == (2, b""), (done, said)
    assert said.count("\n") == 1, said
    return said


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


# --- EDN ---


@pytest.mark.parametrize(
    "text",
    [
        ONE,
        f"[{ONE}]",
        f"({ONE})",
        f"; a comment\n\n[ {ONE} ; another\n ]",
        f"#_{{:type :bad}} {ONE} #_ #_ 1 [2]",
        ONE.replace("{", "#jepsen.history.Op{"),
        ONE.replace(":value nil", ':value nil, :error [:x {:a #{1 \\a \\newline}} "a \\" }" ##NaN #inst "2026"]'),
        ONE + '{:type :info, :process :nemesis, :f :start, :value [:isolated {"n1" #{"n2"}}]}',
        ONE.replace(":acquire", ":lock").replace(" 0", " 12345678901"),
        ONE.replace(":process 0", ":process -7N"),
        ONE.replace(":value nil", ':exception {:via [{:type java.lang.X :message "timeout"}]}'),
        ONE.replace("{", "{:client ^:x [1], "),
    ],
)
def test_forms_that_edn_has(tmp_path: Path, text: str) -> None:
    said = linearized(written(tmp_path / "history.edn", text), "--model=mutex")
    assert (status(said), said["events"]) == ("holds", 2)


@pytest.mark.parametrize(
    "text, byte, words",
    [
        ("{:type :invoke", 0, "a map that does not end"),
        ("[" + ONE, len(ONE) + 1, "the file ends before ']'"),
        (ONE + "]", len(ONE), "unexpected ']'"),
        (ONE + "x", len(ONE), "unexpected 'x'"),
        (ONE + "\x00", len(ONE), "unexpected byte 0x00"),
        ("{:type :invoke, :f :acquire, :process}", 29, "a key that has no value"),
        ("{:type :invoke, :process 0}", 0, "a map without :f"),
        ("{:f :acquire, :process 0}", 0, "a map without :type"),
        ("{:f :acquire, :type :ok}", 0, "a map without :process"),
        ("{:type :done, :f :acquire, :process 0}", 7, ":type must be"),
        ("{:type :invoke, :f :steal, :process 0}", 19, ":f must be"),
        ("{:type :invoke, :f :acquire, :f :read, :process 0}", 29, ":f stands twice"),
        ("{:type :ok, :process 0, :f :acquire}", 0, "never invoked"),
        (ONE + ONE.split("} ")[0] + "} " + ONE.split("} ")[0] + "}", 2 * len(ONE) - 49, "under way"),
        ("{:type :invoke, :f :acquire, :process 0} {:type :ok, :f :release, :process 0}", 41, "another operation"),
        ("{:type :invoke, :f :write, :process 0, :value :x}", 46, "must be a number"),
        ("{:type :invoke, :f :write, :process 0, :value 9223372036854775808}", 46, "must be a number"),
        ("{:type :invoke, :f :cas, :process 0, :value 5}", 0, "a vector of two numbers"),
        ("{:type :invoke, :f :cas, :process 0, :value [5 :x]}", 0, "a vector of two numbers"),
        ('{:type "x', 7, "a string that does not end"),
        ("{:x " + "[" * 2000, 4 + 999, "nested deeper than 1000"),
        ("{:x {:a}}", 4, "no value"),
        ("{:type :ok :owner [] :f :acquire :process 0}", 18, ":owner must be a name"),
    ],
)
def test_edn_that_is_refused(tmp_path: Path, text: str, byte: int, words: str) -> None:
    said = refusal(written(tmp_path / "history.edn", text), "--format=edn")
    assert words in said, said
    assert f": byte {byte}: " in said, said


HEAD = "{:type :invoke, :f :acquire, :process 0"


@pytest.mark.parametrize(
    "text, words",
    [
        (HEAD + ", :x foo@\x7f}", "unexpected byte 0x7f in a word"),
        (HEAD + ", :x foo@\x1f}", "unexpected byte 0x1f in a word"),
        (HEAD + ", :x @)}", "unexpected ')' where a value should be"),
        (HEAD + ", :x @]}", "unexpected ']' where a value should be"),
        (HEAD + ", :x @", "the file ends where a value should be"),
        ("@" + HEAD + " ; }", "a map that does not end"),
        (HEAD + ', :x @"}', "a string that does not end"),
        (HEAD + ', :x @"\\', "a string that does not end"),
        (HEAD + ', :x #@"\\', "a string that does not end"),
        (HEAD + ", :x @(1 2", "what begins here does not end"),
        (HEAD + ", :x @[1 2", "what begins here does not end"),
        (HEAD + ", :value @(1 2", "what begins here does not end"),
        (HEAD + ", :value @{:a 2", "what begins here does not end"),
        (HEAD + ", :x @{:a 2", "what begins here does not end"),
        (HEAD + ", :x #@{1 2", "what begins here does not end"),
        (HEAD + ", :x @{1 2 3}}", "a map with a key that has no value"),
        (HEAD + ", :x @{1}}", "a map with a key that has no value"),
        (HEAD + ", @:value}", "a key that has no value"),
        (HEAD + ", @:x}", "a key that has no value"),
        (HEAD + ", @5}", "a key that has no value"),
        (HEAD + ", :x #@ 1}", "unexpected byte 0x20 after #"),
        (HEAD + ", :x \\@", "the file ends in a character"),
        (HEAD + ", :x #@", "the file ends where a value should be"),
        (HEAD + ", :x #foo @}", "unexpected '}' where a value should be"),
        (HEAD + ", :x ^a @}", "unexpected '}' where a value should be"),
        (HEAD + ", :x ^@}", "unexpected '}' where a value should be"),
        (HEAD + ", #_ @} :x 1}", "unexpected '}' where a value should be"),
        (HEAD + ", :value {:a @}}", "unexpected '}' where a value should be"),
        (HEAD + ", :x [1 @}", "unexpected '}' where a value should be"),
        (HEAD + ", :value [1 @}", "unexpected '}' where a value should be"),
        (HEAD + ", @:f :acquire}", ":f stands twice"),
        (HEAD + ", :token 1, @:fence 1}", ":fence stands twice"),
        ("@{:f :acquire, :process 0}", "a map without :type"),
        ("{:type @5, :f :acquire, :process 0}", ":type must be"),
        ('{:type @"invoke", :f :acquire, :process 0}', ":type must be"),
        ('{:type :invoke, :f @"acquire", :process 0}', ":f must be"),
        ("@{:type :invoke, :process 0, :error 1}", "a map without :f"),
        (HEAD + ", :owner @nil}", ":owner must be a name"),
        (HEAD + ', :owner @""}', ":owner must be a name"),
        (HEAD + ", :owner @:" + 254 * "n" + "}", ":owner must be a name"),
        (HEAD + ", :time 1, :ttl @0}", ":ttl must be the length of a lease"),
        (HEAD + ', :time 1, :ttl @"30s"}', ":ttl must be the length of a lease"),
        (HEAD + ", :time 1, :ttl @9223372036855}", ":ttl must be the length of a lease"),
        ("@" + HEAD + ", :ttl 1}", "a lease's length needs the time of every event"),
        (HEAD + ", :time 5, :ttl 1} @{:type :ok, :f :acquire, :process 0}", "needs the time of every event"),
        (HEAD + ", :time 5, :ttl 1} @{:type :ok, :f :acquire, :process 0, :time 4}", "before that of an event above"),
        (HEAD + ", :lock @{}}", ":lock must be a name"),
        (HEAD + ', :lock @""}', ":lock must be a name"),
        (HEAD + ", :lock @:" + 254 * "n" + "}", ":lock must be a name"),
        (HEAD + ', :lock @"' + 254 * "n" + '"}', ":lock must be a name"),
        (HEAD + ', :lock @"' + 999 * "n" + '"}', ":lock must be a name"),
        (HEAD + ", :lock @:" + 999 * "n" + "}", ":lock must be a name"),
        (HEAD + "} @5", "unexpected '5' where the map of an operation should be"),
        (HEAD + "} @}", "unexpected '}' where the map of an operation should be"),
        ("[" + HEAD + "} @)", "unexpected ')' where the map of an operation should be"),
        ("(" + HEAD + "} @]", "unexpected ']' where the map of an operation should be"),
        ("[" + HEAD + "} @[", "unexpected '[' where the map of an operation should be"),
        ("(" + HEAD + "} @", "the file ends before ')'"),
        ("#@ " + HEAD + "}", "unexpected byte 0x20 after #"),
        ("#@", "the file ends after #"),
        ('@#"x"', "unexpected '#' where the map of an operation should be"),
        ("@#{1}", "unexpected '#' where the map of an operation should be"),
        ("#foo@\x01" + HEAD + "}", "unexpected byte 0x01 in a word"),
        ("#_ @", "the file ends where a value should be"),
        ("{:type :invoke, :f :write, :process 0, :value @-9223372036854775808}", "stands for nil"),
        ("{:type :invoke, :f :read, :process 0, :value @-}", "must be a number"),
        ("{:type :invoke, :f :read, :process 0, :value @:5}", "must be a number"),
        ("{:type :invoke, :f :write, :process 0, :value @1.5}", "must be a number"),
        ("{:type :invoke, :f :write, :process 0, :value @5NN}", "must be a number"),
        ("{:type :invoke, :f :write, :process 0, :value @5M}", "must be a number"),
        ("{:type :invoke, :f :write, :process 0, :value @/5}", "must be a number"),
        ("{:type :invoke, :f :write, :process 0, :value @-:5}", "must be a number"),
        ("@{:type :invoke, :f :cas, :process 0, :value [5]}", "a vector of two numbers"),
        ("@{:type :invoke, :f :cas, :process 0, :value [5 6 7]}", "a vector of two numbers"),
        ("@{:type :invoke, :f :cas, :process 0, :value {5 6}}", "a vector of two numbers"),
        ("@{:type :invoke, :f :cas, :process 0}", "a vector of two numbers"),
        (HEAD + ", :x " + 999 * "[" + "@[", "nested deeper than 1000"),
        (HEAD + ", :x " + 998 * "{:y " + "{@:y", "nested deeper than 1000"),
        (HEAD + ", :x " + 499 * "#y [" + "#y@ [", "nested deeper than 1000"),
    ],
)
def test_where_edn_is_refused(tmp_path: Path, text: str, words: str) -> None:
    """The @ stands where the message says."""
    before, after = text.split("@")
    said = refusal(written(tmp_path / "history.edn", before + after), "--format=edn", "--model=register")
    assert words in said, said
    assert f": byte {len(before)}: " in said, said


def an_acquire(more: str = "", type_: str = "ok") -> str:
    return f"{HEAD}}} {{:type :{type_}, :f :acquire, :process 0{more}}}"


EVERY_FORM = [
    *("nil", "-5", "+5N", "1.5", "word", ":key", ":a/b", '"text"', '"a\\"b\\\\"', "\\a", "\\newline", "\\(", "\\ "),
    *('\\"', "[]", "()", "{}", "#{}", "[1 [2 {3 4}] (5)]", "{:a {:b [1 2]} 5 #{6}}", "#tag 5", '#inst "2026"'),
    *("#tag [1 2]", "##Inf", "#foo/bar {:a 1}", '#"a \\" b"', "^meta 5", "^{:a 1} [5]", "#_ 1 2", "#_#_ 1 2 3"),
    *("; x\n 5", "a#b", "it's", "[1,2,,3]", "(1 2 #_ 3)", '["}" "]"]', "{:a ; }\n 1}", "[#_ 1]", "1;", "[;]\n]", "\\;"),
    "#{#{1} 2}",
]


@pytest.mark.parametrize("key", (":x", ":value", ":error", "[1]"))
def test_every_form_of_edn_ends_where_it_ends(tmp_path: Path, key: str) -> None:
    """Whether it is kept or skipped, and whatever stands behind it."""
    for form in EVERY_FORM:
        comment = form.endswith(";")
        for behind in ("\n",) if comment else ("", " ", "\t", "\n", "\v", "\f", "\r", ",", " ; }\n"):
            path = written(tmp_path / "history.edn", an_acquire(f", {key} {form}{behind}"))
            said = linearized(path, "--model=mutex")
            assert (status(said), said["operations"]) == ("holds", 1), (form, behind)


@pytest.mark.parametrize("end", ("", "\t", "\n", "\v", "\f", "\r", " ", ",", ";\n", "(1)", "[1]", "{1 2}", '"x"'))
@pytest.mark.parametrize("word", (":a", "5", "a"))
def test_what_ends_a_word_of_edn(tmp_path: Path, word: str, end: str) -> None:
    """In a sequence, so that what follows may touch it."""
    for lead in (":value", ":x"):
        path = written(tmp_path / "history.edn", an_acquire(f", {lead} [{word}{end}]"))
        assert status(linearized(path, "--model=mutex")) == "holds"


TOKENS = {
    ":value 2": 2,
    ":value {:fence 2}": 2,
    ":value {:token 2, :x 9}": 2,
    ":value {:x 9, 5 6, :token 2}": 2,
    ":value {:fence :x, :token 2}": 2,
    ":token 2": 2,
    ":fence 2": 2,
    ":value 9, :token 2": 2,
    ":value {:fence 9}, :fence 2": 2,
    ":value nil": None,
    ":value {:x 2}": None,
    ':value {"fence" 2}': None,
    ":value {:fence :x}": None,
    ":value [2]": None,
    ":token :x": None,
    "": None,
}


@pytest.mark.parametrize("said_so", TOKENS)
def test_where_a_token_stands_in_edn(tmp_path: Path, said_so: str) -> None:
    path = written(tmp_path / "history.edn", an_acquire(f", {said_so}"))
    if TOKENS[said_so] is None:
        assert "a grant without a token" in refusal(path, "--model=fenced-mutex")
    else:
        done = run(path, "--model=fenced-mutex", "--write=porcupine")
        assert json.loads(done.stdout)["value"] == TOKENS[said_so]


@pytest.mark.parametrize(
    "events, verdict",
    (
        ("invoke write 5; ok write 5; invoke read nil; ok read 5", "holds"),
        ("invoke write 5; ok write 5; invoke read nil; ok read 6", "violated"),
        ("invoke write 5; ok write 5; invoke read nil; ok read nil", "violated"),
        ("invoke read nil; ok read nil", "holds"),
        ("invoke read 5; ok read nil", "holds"),  # what was read is what the answer says
        ("invoke write 5; ok write nil; invoke read nil; ok read 5", "holds"),
        ("invoke write 5; ok write 6; invoke read nil; ok read 6", "holds"),
        ("invoke write nil; ok write nil; invoke read nil; ok read nil", "holds"),
        ("invoke cas [nil 5]; ok cas [nil 5]; invoke read nil; ok read 5", "holds"),
        ("invoke cas (nil 5); ok cas nil; invoke read nil; ok read 5", "holds"),
        ("invoke cas [nil 5]; ok cas true; invoke read nil; ok read 5", "holds"),
        ("invoke cas [1 5]; ok cas [1 5]; invoke read nil; ok read 5", "violated"),
        ("invoke cas [1 5]; ok cas [nil 5]; invoke read nil; ok read 5", "holds"),
        ("invoke cas [1 5]; fail cas [1 5]; invoke read nil; ok read nil", "holds"),
        ("invoke cas [1 5]; info cas :timed-out; invoke write 1; ok write 1; invoke read 1; ok read 5", "holds"),
    ),
)
def test_values_of_a_register_in_edn(tmp_path: Path, events: str, verdict: str) -> None:
    lines = ["{{:type :{}, :f :{}, :value {}, :process 0}}".format(*each.split(" ", 2)) for each in events.split("; ")]
    path = written(tmp_path / "history.edn", "\n".join(lines))
    assert status(linearized(path, "--model=register")) == verdict


def test_a_form_may_lie_anywhere_in_the_buffers(tmp_path: Path) -> None:
    """The buffer of the reader ends within each byte of these forms in turn."""
    forms = an_acquire(', :x "a\\"b", #_ [1] :error [:y \\a #{1}], :token 7N ; x\n')
    for before in range(TEXT_BUFFER - len(forms), TEXT_BUFFER + 1):
        for text in (" " * before + forms, ";" + "x" * (before - 2) + "\n" + forms):
            done = run(written(tmp_path / "history.edn", text), "--model=fenced-mutex", "--write=porcupine")
            assert json.loads(done.stdout)["value"] == 7, before
    lines = LOCK + '{"type":"ok","f":"lock","process":0,"x":[1.5,{"y":"\\n"}],"value":"t"}'
    for before in range(TEXT_BUFFER - len(lines), TEXT_BUFFER + 1):
        path = written(tmp_path / "history.json", " " * before + lines)
        assert linearized(path, "--model=owner-mutex", "--format=atlas")["operations"] == 1, before


@pytest.mark.parametrize("seed", range(20))
def test_damaged_edn_never_crashes(tmp_path: Path, seed: int) -> None:
    """Cut, flipped, doubled, shuffled: a verdict or a refusal that names the byte."""
    noise = random.Random(seed)
    for _ in range(25):
        text = bytearray(noise.choice(HISTORIES).read_bytes())
        cut = noise.randrange(len(text))
        match noise.randrange(4):
            case 0:
                del text[cut:]
            case 1:
                text[cut] = noise.randrange(256)
            case 2:
                text[cut:cut] = text[noise.randrange(len(text)) :]
            case _:
                text[cut:cut] = noise.randbytes(noise.randrange(1, 9))
        done = run(written(tmp_path / "history.edn", bytes(text)), "--format=edn")
        assert done.returncode in (0, 1, 2, 3)
        if done.returncode == 2:
            assert b": byte " in done.stderr or b": event " in done.stderr, done


def test_what_cannot_be_read(tmp_path: Path) -> None:
    assert "No such file" in refusal(tmp_path / "nowhere.edn")
    assert "Is a directory" in refusal(tmp_path)
    assert "not a usable value: glue" in refusal(tmp_path, "--model=glue")
    assert "is no operation of a mutex" in refusal(write_events(tmp_path / "register.edn", "0+read"))
    tokenless = write_events(tmp_path / "mutex.edn", "0+acquire 0=acquire")
    assert "a grant without a token" in refusal(tokenless, "--model=fenced-mutex")
    second = write_events(tmp_path / "second.edn", "0+acquire 0=acquire:1 0+release 0=release 1+acquire 1=acquire")
    assert "event 5: a grant without a token" in refusal(second, "--model=fenced-mutex")
    second = write_events(tmp_path / "second.edn", "0+acquire 0=acquire 1+read")
    assert "event 2: read is no operation of a mutex" in refusal(second)


def test_nothing_is_inconclusive(tmp_path: Path) -> None:
    for text in ("", "[]", "; nothing\n", '{"history": "lockstorm", "version": 1}\n'):
        said = linearized(written(tmp_path / "history", text), "--model=mutex")
        assert said["verdict"]["linearizable"]["reason"] == "nobody was granted the lock", text


def test_the_history_may_come_through_a_pipe() -> None:
    for text, expected in ((ONE, 0), ("", 3), ("{", 2)):
        assert run("/dev/stdin", input=text.encode()).returncode == expected


def test_tokens_owners_and_locks(tmp_path: Path) -> None:
    """The keys that our export adds, and the ways in which other tools write a token."""
    lines = [
        "{:type :invoke, :process 0, :f :acquire, :lock :a} {:type :ok, :process 0, :f :acquire, :value {:fence 2}}",
        "{:type :invoke, :process 7, :owner 0, :f :release, :lock :a} {:type :ok, :process 7, :owner 0, :f :release}",
        '{:type :invoke, :process 1, :f :acquire, :lock "b"} {:type :ok, :process 1, :f :acquire, :token 1}',
    ]
    said = linearized(written(tmp_path / "history.edn", "\n".join(lines)), "--model=fenced-mutex")
    assert (status(said), said["objects"], said["operations"]) == ("holds", 2, 3)
    together = written(tmp_path / "one.edn", "\n".join(lines).replace('"b"', ":a"))
    assert status(linearized(together, "--model=fenced-mutex")) == "violated"
    strangers = written(tmp_path / "two.edn", "\n".join(lines).replace(":owner 0, ", ""))
    assert status(linearized(strangers, "--model=fenced-mutex")) == "violated"


def operations(*lines: str) -> str:
    """ "0 acquire ok :owner 1": both events of an operation, one after the other. What comes before "|" is for the
    invocation alone, what comes after it for the answer alone."""
    text = ""
    for line in lines:
        process, f, answer, *rest = line.split(" ", 3)
        before, _, after = (rest[0] if rest else "").partition("|")
        both = "" if "|" in line else before
        text += f"{{:type :invoke, :process {process}, :f :{f} {before}}}\n"
        text += f"{{:type :{answer}, :process {process}, :f :{f} {after or both}}}\n"
    return text


@pytest.mark.parametrize("owner, other", ((":a", ":b"), ('"A"', '"B"'), ("a", "b"), ("-7", "8"), ('"7"', "7")))
def test_an_owner_is_a_word_or_a_number(tmp_path: Path, owner: str, other: str) -> None:
    """Processes 1 and 2 speak for it. The word "7" is another one than the number."""
    path = tmp_path / "h.edn"
    lines = [f"1 acquire ok :owner {owner}", f"2 release ok :owner {owner}", f"1 acquire ok :owner {other}"]
    assert status(linearized(written(path, operations(*lines)), "--model=owner-mutex")) == "holds"
    lines = [f"1 acquire ok :owner {owner}", f"2 release ok :owner {other}"]
    said = linearized(written(path, operations(*lines)), "--model=owner-mutex")
    assert status(said) == "violated"
    name = f"process {other}" if other.lstrip("-").isdigit() else other.strip(':"')
    assert f"{name}'s release (events 2 to 3)" in said["verdict"]["linearizable"]["evidence"][0]["text"]


@pytest.mark.parametrize("lock, other", ((":a", ":b"), ('"A"', '"B"'), ("a", "b"), ("7", "8")))
def test_a_lock_is_a_word_or_a_number(tmp_path: Path, lock: str, other: str) -> None:
    for second, expected in ((other, "holds"), (lock, "violated")):
        text = operations(f"1 acquire ok :lock {lock}", f"2 acquire ok :lock {second}")
        assert status(linearized(written(tmp_path / "h.edn", text), "--model=owner-mutex")) == expected


def test_an_owner_that_only_the_answer_names(tmp_path: Path) -> None:
    """As of a lock service that makes a session for each grant."""
    path = tmp_path / "h.edn"
    granted = '1 acquire ok |:owner "A"'
    for release, expected in (
        ('2 release ok :owner "A"', "holds"),
        ("1 release ok", "holds"),  # the process speaks for the owner that it was given
        ('1 release ok |:owner "A"', "holds"),
        ('1 release ok :owner "B"', "violated"),
        ("2 release ok", "violated"),
    ):
        said = linearized(written(path, operations(granted, release)), "--model=owner-mutex")
        assert status(said) == expected, release
    both = operations(granted, '2 acquire ok |:owner "B"')
    assert status(linearized(written(path, both), "--model=owner-mutex")) == "violated"
    again = operations(granted, '1 acquire ok |:owner "A"')
    assert status(linearized(written(path, again), "--model=reentrant-mutex")) == "holds"
    another = operations(granted, '1 acquire ok |:owner "B"')
    assert status(linearized(written(path, another), "--model=reentrant-mutex")) == "violated"


def test_a_grant_without_an_answer_may_be_anybodys_where_answers_name_the_owner(tmp_path: Path) -> None:
    path = tmp_path / "h.edn"
    lines = ['1 acquire ok |:owner "A"', '1 release ok :owner "A"', "2 acquire info", '3 renew ok :owner "B"']
    said = linearized(written(path, operations(*lines)), "--model=owner-mutex")
    assert status(said) == "inconclusive"
    assert "the renew of event 6 is of an owner that may have been granted the lock by the acquire of event 4" in str(
        said
    )
    lines[2] = "2 acquire fail"
    assert status(linearized(written(path, operations(*lines)), "--model=owner-mutex")) == "violated"
    lines[2] = '2 acquire info |:owner "C"'
    assert status(linearized(written(path, operations(*lines)), "--model=owner-mutex")) == "violated"
    lines[2:] = ["2 acquire info", '3 acquire ok |:owner "B"', '4 acquire ok |:owner "C"']
    assert status(linearized(written(path, operations(*lines)), "--model=owner-mutex")) == "violated"


@pytest.mark.parametrize(
    "events, words",
    (
        (["1+:owner 1", "2+:owner 1"], "its owner has another operation under way"),
        (["1+:owner 1", "1=:owner 2"], "it completes an operation of another owner"),
        (["1+", "2+:owner :a", "1=:owner :a"], "its owner had another operation under way"),
        (["1+", "2+:owner :a", "2=:owner :a", "1=:owner :a"], "its owner had another operation under way"),
    ),
)
def test_an_owner_does_one_operation_at_a_time(tmp_path: Path, events: list[str], words: str) -> None:
    types = {"+": "invoke", "=": "ok"}
    text = "".join(f"{{:type :{types[it[1]]}, :process {it[0]}, :f :acquire, {it[2:]}}}" for it in events)
    said = refusal(written(tmp_path / "h.edn", text))
    assert words in said and f"byte {text.rindex('{')}: " in said, said


def test_an_acquire_that_says_that_it_timed_out_may_have_been_granted(tmp_path: Path) -> None:
    text = "{:type :invoke, :process 0, :f :acquire} {:type :fail, :process 0, :f :acquire, :error ERROR}\n"
    text += "{:type :invoke, :process 0, :f :release} {:type :ok, :process 0, :f :release}\n"
    text += ONE.replace(":process 0", ":process 1")
    for error, expected in ((":timeout", "holds"), ('[:timed-out "x"]', "holds"), (":refused", "violated")):
        path = written(tmp_path / "history.edn", text.replace("ERROR", error))
        assert status(linearized(path, "--model=mutex")) == expected
        assert status(linearized(path, "--model=mutex", "--acquire-timeout=not-happened")) == "violated"


# --- leases ---


def atlas(path: Path, *events: str) -> Path:
    """ "0+lock:bob", "0=lock:token" """
    kinds = {"+": "invoke", "=": "ok", "-": "fail"}
    lines = []
    for number, event in enumerate(events):
        head, _, value = event.partition(":")
        lines.append({"type": kinds[head[1]], "f": head[2:], "value": value, "process": int(head[0]), "time": number})
    path.write_text(json.dumps(lines))
    return path


def test_a_lease_may_end_after_it_was_last_confirmed(tmp_path: Path) -> None:
    two = ("0+lock:bob", "0=lock:t1", "1+lock:bob", "1=lock:t2")
    refreshed = ("0+refresh:bob", "0=refresh:t1")
    not_refreshed = ("0+refresh:bob", "0=refresh:")
    path = tmp_path / "history.json"
    assert status(linearized(atlas(path, *two), "--model=owner-mutex")) == "holds"
    assert status(linearized(atlas(path, *two, *refreshed), "--model=owner-mutex")) == "violated"
    assert status(linearized(atlas(path, *two, *not_refreshed), "--model=owner-mutex")) == "holds"
    assert status(linearized(atlas(path, *two, "0+unlock:bob", "0=unlock:true"), "--model=owner-mutex")) == "violated"
    assert status(linearized(atlas(path, *two, "0+unlock:bob", "0=unlock:false"), "--model=owner-mutex")) == "holds"
    other = [event.replace("bob", "eve") if event.startswith("1") else event for event in (*two, *refreshed)]
    assert status(linearized(atlas(path, *other), "--model=owner-mutex")) == "holds"


def test_a_refresh_is_confirmed_at_its_call(tmp_path: Path) -> None:
    """The lock was held when the refresh was made, which is at its call at the earliest."""
    path = atlas(tmp_path / "h", "0+lock:b", "0=lock:t", "0+refresh:b", "1+lock:b", "1=lock:u", "0=refresh:t")
    assert status(linearized(path, "--model=owner-mutex")) == "holds"
    path = atlas(tmp_path / "h", "0+lock:b", "0=lock:t", "1+lock:b", "1=lock:u", "0+refresh:b", "0=refresh:t")
    assert status(linearized(path, "--model=owner-mutex")) == "violated"


def test_a_hold_without_an_owner_may_end_by_itself_until_it_was_released(tmp_path: Path) -> None:
    """The lease of a hold that was released ends no other hold."""
    path = write_events(tmp_path / "h.edn", "0+lock 0=lock 0+unlock 0=unlock 1+lock 1=lock 2+lock 2=lock")
    assert status(linearized(path, "--model=mutex", "--leases")) == "holds"
    path.write_text(path.read_text() + write_events(tmp_path / "more.edn", "1+unlock 1=unlock").read_text())
    assert status(linearized(path, "--model=mutex", "--leases")) == "violated"


def test_leases_in_a_history_of_any_form(tmp_path: Path) -> None:
    path = write_events(tmp_path / "h.edn", "0+lock 0=lock 1+lock 1=lock")
    assert status(linearized(path, "--model=owner-mutex")) == "violated"
    assert status(linearized(path, "--model=owner-mutex", "--leases")) == "holds"
    path = write_events(tmp_path / "h.edn", "0+lock 0=lock 1+lock 1=lock 0+renew 0=renew")
    assert status(linearized(path, "--model=owner-mutex", "--leases")) == "violated"


def timed(*words: str, ttl: str = "") -> str:
    """ "2s 1+acquire": an event of process 1 two seconds after the beginning. `ttl`: of each grant, in ms."""
    types, text = {"+": "invoke", "=": "ok", "-": "fail"}, ""
    for at, event in zip(words[::2], words[1::2], strict=True):
        f, _, more = event[2:].partition(":")
        more = f":{more}" if more else f":ttl {ttl}" if ttl and f == "acquire" and event[1] == "=" else ""
        time = int(float(at.removesuffix("s")) * 1e9)
        text += f"{{:type :{types[event[1]]}, :process {event[0]}, :f :{f}, :time {time}, {more}}}\n"
    return text


FIRST = ("0s", "1+acquire", "1s", "1=acquire")


@pytest.mark.parametrize("model", ("owner-mutex", "reentrant-mutex", "mutex", "semaphore"))
@pytest.mark.parametrize(
    "taken, expected",
    (("2", "violated"), ("29.997", "violated"), ("29.998", "holds"), ("30", "holds"), ("31", "holds")),
)
def test_a_lease_of_known_length_ends_no_sooner(tmp_path: Path, model: str, taken: str, expected: str) -> None:
    """It runs from the call on, at least; servers' clocks have a grain of 2 ms. It ends by itself without --leases, and
    with it no sooner."""
    text = timed(*FIRST, "1.5s", "2+acquire", f"{taken}s", "2=acquire", ttl="30000")
    for words in ([], ["--leases"]):
        said = linearized(written(tmp_path / "h.edn", text), "--model", model, *words)
        assert status(said) == expected, words
        assert "leases of 30000 to 30000 ms" in said["sentence"]
    asked = "".join(line.replace(":ttl 30000", "").replace("}", ":ttl 30000}" if ":invoke" in line else "}") + "\n"
                    for line in text.splitlines())  # fmt: skip
    assert status(linearized(written(tmp_path / "h.edn", asked), "--model", model)) == expected


@pytest.mark.parametrize("model", ("owner-mutex", "reentrant-mutex", "mutex", "semaphore"))
def test_a_renewal_begins_the_lease_anew(tmp_path: Path, model: str) -> None:
    renewed = (*FIRST, "20s", "1+renew", "21s", "1=renew", "22s", "2+acquire")
    for taken, expected in (("31", "violated"), ("49.9", "violated"), ("50", "holds")):
        text = timed(*renewed, f"{taken}s", "2=acquire", ttl="30000")
        assert status(linearized(written(tmp_path / "h.edn", text), "--model", model)) == expected, taken
    shorter = timed(
        *(word + ":ttl 5000" if word == "1=renew" else word for word in renewed), "25s", "2=acquire", ttl="30000"
    )
    assert status(linearized(written(tmp_path / "h.edn", shorter), "--model", model)) == "holds"
    refused = timed(*(word.replace("1=renew", "1-renew") for word in renewed), "31s", "2=acquire", ttl="30000")
    assert status(linearized(written(tmp_path / "h.edn", refused), "--model", model)) == "holds"


def test_a_renewal_that_is_answered_after_the_lock_was_taken_over(tmp_path: Path) -> None:
    """It was made before, so the lease ran on; it is the renewal's answer that shows it."""
    text = timed(*FIRST, "29s", "1+renew", "30s", "2+acquire", "31s", "2=acquire", "33s", "1=renew", ttl="30000")
    said = linearized(written(tmp_path / "h.edn", text), "--model=owner-mutex")
    assert said["verdict"]["linearizable"]["evidence"][0]["prefix"] == 5
    before = text.replace("29000000000", "1500000000").replace("33000000000", "31000000000").splitlines(keepends=True)
    before[4], before[5] = before[5], before[4]
    assert status(linearized(written(tmp_path / "h.edn", "".join(before)), "--model=owner-mutex")) == "violated"
    late = timed(*FIRST, "1.5s", "1+renew", "30s", "2+acquire", "32s", "2=acquire", "33s", "1=renew", ttl="30000")
    assert status(linearized(written(tmp_path / "h.edn", late), "--model=owner-mutex")) == "holds"


def test_a_lease_that_is_over_proves_nothing_of_a_later_renewal(tmp_path: Path) -> None:
    taken = (*FIRST, "31s", "2+acquire", "32s", "2=acquire")
    text = timed(*taken, "33s", "1+renew", "34s", "1=renew", ttl="30000")
    assert status(linearized(written(tmp_path / "h.edn", text), "--model=owner-mutex")) == "violated"
    text = timed(*taken, "33s", "2+release", "34s", "2=release", "35s", "1+acquire", "36s", "1=acquire", ttl="30000")
    for model in ("owner-mutex", "mutex"):
        assert status(linearized(written(tmp_path / "h.edn", text), "--model", model)) == "holds"


def test_leases_of_known_length_cannot_be_written(tmp_path: Path) -> None:
    path = written(tmp_path / "h.edn", timed(*FIRST, ttl="30000"))
    assert "leases cannot be written" in refusal(path, "--write=porcupine")


# --- tokens of renewals ---


@pytest.mark.parametrize(
    "events, expected",
    (
        ("1=acquire:10 1=renew:20 1=release 2=acquire:15", "violated"),
        ("1=acquire:10 1=renew:20 1=release 2=acquire:20", "violated"),
        ("1=acquire:10 1=renew:20 1=release 2=acquire:21", "holds"),
        ("1=acquire:10 1=renew:10 1=release 2=acquire:11", "holds"),
        ("1=acquire:10 1=renew:nil 1=release 2=acquire:11", "holds"),
        ("1=acquire:10 1=renew:9", "violated"),
        ("1=acquire:10 1=renew:12 1=renew:11", "violated"),
        ("1=acquire:10 1=renew:12 1=renew:12 1=release 2=acquire:13", "holds"),
        ("1=acquire:10 1+renew 2+acquire 1.renew:20 1=release 2.acquire:15", "violated"),  # it waits all the time
        ("1=acquire:10 1+renew 2+acquire 1.renew:14 1=release 2.acquire:15", "holds"),
        ("2?acquire 1=acquire:10 1=renew:20 1=release 2=release 1=acquire:21", "violated"),  # 2's has none above 20
        ("2?acquire 1=acquire:10 1=renew:20 1=release 2=release 1=acquire:22", "holds"),
        ("2?acquire 1=acquire:10 1?release 2=renew:12 2=release 1=acquire:12", "violated"),
        ("2?acquire 1=acquire:10 1?release 2=renew:12 2=release 1=acquire:13", "holds"),
        ("2?acquire 1=acquire:10 1?release 2=renew:10", "violated"),
    ),
)
def test_the_token_of_a_renewal_is_judged(tmp_path: Path, events: str, expected: str) -> None:
    """It is that of the hold, or a larger one; and a later grant has one that is larger still."""
    words = []
    for event in events.split():  # "1=acquire:10": invoked and answered; "1.acquire:10": answered
        f = event[2:].partition(":")[0]
        words += [f"{event[0]}+{f}"] if event[1] in "=?" else []
        words += [event.replace(".", "=")]
    path = write_events(tmp_path / "h.edn", " ".join(words))
    for words_ in ([], ["--leases"]):
        assert status(linearized(path, "--model=fenced-mutex", *words_)) == expected
    assert status(linearized(path, "--model=owner-mutex")) == "holds"  # where tokens do not count


# --- refused, and granted afterwards ---


@pytest.mark.parametrize(
    "refused, then", (("refresh", "refresh"), ("refresh", "unlock"), ("unlock", "refresh")), ids=" then ".join
)
def test_what_is_granted_after_a_refusal_is_a_matter_of_reading(tmp_path: Path, refused: str, then: str) -> None:
    """The three histories that AtlasDB's own checker of a process in isolation refuses (its unit tests have them)."""
    events = ("1+lock:bob", "1=lock:t", f"1+{refused}:bob", f"1={refused}:", f"1+{then}:bob", f"1={then}:t")
    path = atlas(tmp_path / "h.json", *events)
    assert status(linearized(path, "--model=owner-mutex")) == "holds"
    said = linearized(path, "--model=owner-mutex", "--refused-renewal=lost")
    assert status(said) == "violated"
    assert said["policies"]["refused_renewal"] == "lost"
    assert "refused renewals and releases as lost" in said["sentence"]
    again = atlas(path, *events[:4], "1+lock:bob", "1=lock:u", *events[4:])
    assert status(linearized(again, "--model=owner-mutex", "--refused-renewal=lost")) == "holds"
    other = atlas(path, *events[:4], "1+lock:eve", "1=lock:u", *events[4:])
    assert status(linearized(other, "--model=owner-mutex", "--refused-renewal=lost")) == "violated"


def test_what_a_refusal_that_says_lost_means(tmp_path: Path) -> None:
    path = tmp_path / "h.edn"
    lost = "--refused-renewal=lost"
    for model in ("owner-mutex", "reentrant-mutex", "fenced-mutex"):
        # Another client may be granted it, whatever the lease; not before the refused call.
        taken = write_events(path, "1+acquire 1=acquire:1 1+renew 1-renew 2+acquire 2=acquire:2")
        assert [status(linearized(taken, "--model", model, each)) for each in (lost, "--refused-renewal=unknown")] == [
            "holds",
            "violated",
        ]
        before = write_events(path, "1+acquire 1=acquire:1 2+acquire 2=acquire:2 1+renew 1-renew")
        assert status(linearized(before, "--model", model, lost)) == "violated"
        during = write_events(path, "1+acquire 1=acquire:1 1+renew 2+acquire 2=acquire:2 1-renew")
        assert status(linearized(during, "--model", model, lost)) == "holds"
        # Of another lease that was over, nothing is required; an answer that did not come says nothing.
        silent = write_events(path, "1+acquire 1=acquire:1 1+renew 1?renew 1+renew 1=renew")
        assert status(linearized(silent, "--model", model, lost)) == "holds"
        never = write_events(path, "2+acquire 2=acquire:1 1+renew 1-renew 2+renew 2=renew")
        assert status(linearized(never, "--model", model, lost)) == "holds"
        # A release that failed as the policy says otherwise is read as that says.
        released = write_events(path, "1+acquire 1=acquire:1 1+release 1-release 1+renew 1=renew")
        assert status(linearized(released, "--model", model, lost)) == "violated"
        assert status(linearized(released, "--model", model, lost, "--release-policy=not-happened")) == "holds"
    deep = write_events(path, "1+acquire 1=acquire 1+acquire 1=acquire 1+renew 1-renew 2+acquire 2=acquire")
    assert status(linearized(deep, "--model=reentrant-mutex", lost)) == "holds"
    mutex = write_events(path, "1+acquire 1=acquire 1+renew 1-renew 2+acquire 2=acquire")
    assert [status(linearized(mutex, "--model=mutex", *words)) for words in ([lost], [])] == ["holds", "violated"]
    assert "refusals read as lost cannot be written" in refusal(mutex, "--write=edn", lost)


@pytest.mark.parametrize(
    "text, byte, words",
    [
        ("[", 1, "the file ends"),
        ("[{]", 2, "where a key should be"),
        ('[{"type":"invoke","f":"lock","value":"a","process":0} {}]', 54, "where a ',' or the end should be"),
        ('[{"type":"invoke","f":"lock","value":"a","process":0}] 1', 55, "unexpected '1'"),
        ('{"type":"invoke","f":"lock","value":5,"process":0}', 0, "must name a lock"),
        ('{"type":"invoke","f":"steal","value":"a","process":0}', 0, '"f" must be'),
        ('{"type":"x","f":"lock","value":"a","process":0}', 0, '"type" must be'),
        ('{"type":"ok","f":"lock","value":"a","process":0}', 0, "never invoked"),
        ('{"type":"ok","type":"ok"}', 13, "stands twice"),
        ('{"type":"ok","x":tru}', 17, "not a value of JSON"),
        ('{"type":"o\\q"}', 11, "an escape"),
        ('{"x":{5:1}}', 6, "where a key should be"),
        ('{"x":{"y":[1,{"z" 2}]}}', 18, "where a ':' should be"),
        ('{"x":[1,]}', 8, "where a value should be"),
        ("{ }", 0, '"type" must be'),  # an object all the same
        ('{"type":"o\n"}', 10, "byte 0x0a in a string"),
    ],
)
def test_json_that_is_refused(tmp_path: Path, text: str, byte: int, words: str) -> None:
    said = refusal(written(tmp_path / "history.json", text), "--format=atlas")
    assert words in said, said
    assert f": byte {byte}: " in said, said


LOCK = '{"type":"invoke","f":"lock","value":"a","process":0}'


@pytest.mark.parametrize(
    "text, words",
    [
        ('{"type":@"o', "a string that does not end"),
        ('{"type":"o@\\', "an escape"),
        ('{"type":"o\\@\0"}', "an escape"),
        ('{"x":"a@\x1f"}', "byte 0x1f in a string"),
        ('{"x":@za}', "not a value of JSON: za"),
        ('{"x":@az}', "not a value of JSON: az"),
        ('{"x":@+9}', "not a value of JSON: +9"),
        ('{"x":@.9}', "not a value of JSON: .9"),
        ('{"x":@9z}', "not a value of JSON: 9z"),
        ('{"x":@A}', "unexpected 'A' where a value should be"),
        ('{"x":@\x7f}', "unexpected byte 0x7f"),
        ('{"x":@\x80}', "unexpected byte 0xc2"),
        ('{"x":@', "the file ends where a value should be"),
        ('{"x":1 @', "the file ends where a ',' or the end should be"),
        ('@{"f":"lock","value":"a","process":0}', '"type" must be'),
        ('@{"type":5,"f":"lock","value":"a","process":0}', '"type" must be'),
        ('@{"type":"invoke","f":"lock","value":"a"}', 'an object without "process"'),
        ('@{"type":"invoke","f":"lock","value":"","process":0}', "must name a lock"),
        ('{"type":"invoke","f":"lock","value":"a","process":@1.5}', "must be a whole number"),
        ('{"type":"invoke","f":"lock","value":"a","process":@9223372036854775808}', "must be a whole number"),
        ('{"process":1,"type":"invoke","f":"lock","value":@"' + 255 * "n" + '"}', "less than 255 bytes"),
        ('{"process":1,"type":"invoke","f":"lock","value":@"' + 999 * "n" + '"}', "less than 255 bytes"),
        ('{"process":1,"type":"invoke","f":"lock","value":@"' + 999 * "\\n" + '"}', "less than 255 bytes"),
        ('@{"process":1,"type":"invoke","f":"' + 256 * "n" + '","value":"a"}', '"f" must be'),
        ('@{"process":1,"type":"invoke","f":"' + 128 * "\\n" + '","value":"a"}', '"f" must be'),
        ('@{"process":1,"type":"invoke","f":' + 256 * "1" + ',"value":"a"}', '"f" must be'),
        (LOCK + "@]", "unexpected ']' where the object"),
        (LOCK + "@5", "unexpected '5' where the object"),
        ("@5", "unexpected '5' where the object"),
        ("[@5]", "unexpected '5' where the object"),
        ("[" + LOCK + ",@]", "unexpected ']' where the object"),
        ("[" + LOCK + "@", "the file ends where a ',' or the end"),
        ("[" + LOCK + "@" + LOCK + "]", "unexpected '{' where a ',' or the end"),
        ("[]@" + LOCK, "unexpected '{' where the object"),
        ("[" + LOCK + "]@" + LOCK, "unexpected '{' where the object"),
        ("[" + LOCK + "]@]", "unexpected ']' where the object"),
        (LOCK + '@{"type":"ok","f":"unlock","value":"true","process":0}', "another operation"),
        ('{"x":' + 1000 * "[" + "@[", "nested deeper than 1000"),
        ('{"x":' + 999 * '{"y":' + "{@", "nested deeper than 1000"),
    ],
)
def test_where_json_is_refused(tmp_path: Path, text: str, words: str) -> None:
    """The @ stands where the message says."""
    before, after = text.split("@")
    said = refusal(written(tmp_path / "history.json", before + after), "--format=atlas")
    assert words in said, said
    assert f": byte {len(before)}: " in said, said


GRANTED = ('"t"', '"true"', "true", "0", "-1.5E+3", "[]", "{}", '"False"', '"f\\u0041lse"')
NOT_GRANTED = ('""', '"false"', "false", "null", None)


@pytest.mark.parametrize("answer", GRANTED + NOT_GRANTED)
@pytest.mark.parametrize("type_", ("ok", "fail", "info"))
def test_what_an_answer_in_json_says(tmp_path: Path, type_: str, answer: str | None) -> None:
    """Only ok says anything: AtlasDB logs any exception as fail. An unlock proves that the lock was held."""
    value = f',"value":{answer}' if answer is not None else ""
    lines = [
        *(LOCK, f'{{"type":"{type_}","f":"lock","process":0{value}}}'),
        *(LOCK.replace("lock", "unlock"), '{"type":"ok","f":"unlock","value":"true","process":0}'),
        *(LOCK.replace("0}", "1}"), '{"type":"ok","f":"lock","value":"t","process":1}'),
    ]
    said = linearized(written(tmp_path / "history.json", "\n".join(lines)), "--model=owner-mutex")
    refused = type_ == "ok" and answer in NOT_GRANTED
    assert (status(said), said["operations"]) == (("violated", 2) if refused else ("holds", 3))


@pytest.mark.parametrize("blank", (" ", "\t", "\n", "\r", " \n\t\r "))
def test_blanks_of_json(tmp_path: Path, blank: str) -> None:
    text = json.dumps([json.loads(LOCK), {"x": [1, {}], "process": "nemesis", "type": "info"}])
    for sign in "[]{},:":
        text = text.replace(sign, f"{blank}{sign}{blank}")
    said = linearized(written(tmp_path / "history.json", text), "--format=atlas", "--model=owner-mutex")
    assert said["events"] == 1


def test_locks_whose_names_are_as_long_as_can_be(tmp_path: Path) -> None:
    """Two locks, whose names differ in their last byte."""
    for name in (254 * "n", 252 * "n" + "\\n"):
        lines = [LOCK.replace('"a"', f'"{name[:-1]}{last}"').replace("0}", f"{ord(last)}}}") for last in "nb"]
        path = written(tmp_path / "history.json", "".join(lines))
        assert linearized(path, "--model=owner-mutex")["objects"] == 2
    for name in (f":{252 * 'n'}%s", f'"{252 * "n"}%s"'):
        path = written(tmp_path / "history.edn", "".join(HEAD + f"{last}, :lock {name % last}}}" for last in "12"))
        assert linearized(path, "--model=owner-mutex")["objects"] == 2


def test_what_happened_or_may_have_happened_counts_as_an_operation(tmp_path: Path) -> None:
    path = write_events(tmp_path / "h.edn", "0+lock 0=lock 1+lock 1?lock 2+lock 2-lock")
    said = linearized(path, "--model=owner-mutex")
    assert (said["operations"], said["unknown"]) == (2, 1)


def test_other_keys_of_json_are_skipped_whatever_they_hold(tmp_path: Path) -> None:
    lines = ['"type":"invoke","f":"lock","value":"a","process":%d', '"type":"ok","f":"lock","value":"7","process":%d']
    events = [line % process for process in (0, 1) for line in lines]
    extra = ',"x":{"y":[1,{"z":null},[ ]],"w":{ }, "v" : {"u":"}"}}'
    for more in ("", extra):
        path = written(tmp_path / "history.json", "[" + ",".join(f"{{{event}{more}}}" for event in events) + "]")
        assert status(linearized(path, "--format=atlas", "--model=owner-mutex")) == "holds"  # its leases may have ended
        assert linearized(path, "--format=atlas", "--model=owner-mutex")["operations"] == 2


# --- lockstorm's own ---


def test_recorded_histories_and_what_is_missing_in_them(tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    head = '{"history": "lockstorm", "version": 1}\n'
    grant = '{"kind": "acquire-%s", "actor": "%s", "name": "stock", "outcome": "%s"}\n'
    pair = grant % ("invoke", "A", "unknown") + grant % ("return", "A", "ok")
    assert status(linearized(written(history, head + pair), "--model=owner-mutex")) == "holds"
    torn = linearized(written(history, head + pair + '{"kind": "torn"}\n'), "--model=owner-mutex")
    assert "1 records are torn" in torn["verdict"]["linearizable"]["reason"]
    other = grant % ("invoke", "B", "unknown") + grant % ("return", "B", "ok")
    said = linearized(written(history, head + pair + other + '{"kind": "torn"}\n'), "--model=owner-mutex")
    assert status(said) == "violated"
    assert "B's acquire" in said["verdict"]["linearizable"]["evidence"][0]["text"]
    crashed = head + grant % ("invoke", "A", "unknown") + '{"kind": "actor-exit", "name": "A"}\n' + pair
    assert status(linearized(written(history, crashed), "--model=owner-mutex")) == "holds"
    orphan = linearized(written(history, head + grant % ("return", "A", "ok")), "--model=owner-mutex")
    assert "never invoked" in orphan["verdict"]["linearizable"]["reason"]


# --- round trips ---


def to_edn(path: Path, model: str, out: Path) -> Path:
    done = subprocess.run(
        [paths.program("linearize"), f"--model={model}", "--write=edn", str(path)], capture_output=True
    )
    assert done.returncode == 0, done
    return written(out, done.stdout)


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
def test_written_and_read_again_the_verdict_is_the_same(path: Path, tmp_path: Path) -> None:
    first = about(path)
    once = to_edn(path, first["model"], tmp_path / "once.edn")
    twice = to_edn(once, first["model"], tmp_path / "twice.edn")
    for policy in POLICIES:
        words = ("--model", first["model"], *first.get("args", []), policy)
        said = [status(linearized(each, *words)) for each in (path, once, twice)]
        assert len(set(said)) == 1, (policy, said)
    busy: set[str] = set()
    for line in once.read_text().splitlines():  # as Jepsen wants it: a process that went silent says nothing more
        process, kind = line.split(":process ")[1].split(",")[0], line.split(":type :")[1].split(",")[0]
        assert f"gone {process}" not in busy
        if kind == "info":
            busy.add(f"gone {process}")


def test_lockstorms_own_histories_as_edn(tmp_path: Path) -> None:
    seen = set()
    for path in RECORDED:
        history = written(tmp_path / "history.jsonl", path.read_text().split("\n", 1)[1])
        direct = run(history, "--model=owner-mutex")
        if b"inconclusive" in direct.stdout or direct.returncode == 2:
            continue
        edn = to_edn(history, "owner-mutex", tmp_path / "history.edn")
        assert run(edn, "--model=owner-mutex").returncode == direct.returncode, path.name
        seen.add(direct.returncode)
    assert seen == {0, 1}


def test_for_porcupine(tmp_path: Path) -> None:
    path = write_events(
        tmp_path / "h.edn", "0+acquire 1+acquire 0=acquire:4 0+release 0?release 1=acquire:5 2+acquire 2-acquire"
    )
    done = run(path, "--write=porcupine")
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"client": 0, "call": 0, "return": 2, "kind": "acquire", "outcome": "ok", "value": 4},
        {"client": 1, "call": 1, "return": 5, "kind": "acquire", "outcome": "ok", "value": 5},
        {"client": 0, "call": 3, "return": 8, "kind": "release", "outcome": "unknown"},
    ]


def test_a_failed_release_is_written_for_porcupine_as_the_policy_reads_it(tmp_path: Path) -> None:
    path = write_events(tmp_path / "h.edn", "0+acquire 0=acquire 0+release 0-release 1+acquire 1=acquire")
    release = {"client": 0, "call": 2, "kind": "release"}
    readings = {"unknown": [release | {"return": 6, "outcome": "unknown"}], "not-happened": [],
                "released": [release | {"return": 3, "outcome": "ok"}]}  # fmt: skip
    for policy, expected in readings.items():
        done = run(path, "--write=porcupine", "--model=owner-mutex", f"--release-policy={policy}")
        said = [json.loads(line) for line in done.stdout.splitlines()]
        assert [each for each in said if each["kind"] == "release"] == expected, policy


def test_renewals_are_written_where_holds_have_owners(tmp_path: Path) -> None:
    path = write_events(tmp_path / "h.edn", "0+acquire 0=acquire 0+renew 0=renew 0+renew 0-renew 0+renew 0?renew")
    done = run(path, "--write=porcupine", "--model=owner-mutex")
    acquire, renewal = (json.loads(line) for line in done.stdout.splitlines())
    assert acquire["kind"] == "acquire"
    assert renewal == {"client": 0, "call": 2, "return": 3, "kind": "renew", "outcome": "ok"}
    assert [json.loads(line) for line in run(path, "--write=porcupine").stdout.splitlines()] == [acquire]


# --- limits ---


def test_a_limit_is_never_passed_and_never_guessed_beyond(tmp_path: Path) -> None:
    # Any of a million subsets may have been written when the impossible value is read.
    events = " ".join(f"{each}+write:{each}" for each in range(20)) + " 30+read 30=read:77"
    path = write_events(tmp_path / "h.edn", events + " " + " ".join(f"{each}=write:{each}" for each in range(20)))
    said = linearized(path, "--model=register", "--memory-limit=1")
    assert (status(said), said["memory_bytes"] <= MIB) == ("inconclusive", True)
    assert "more than the 1.0 MiB" in said["verdict"]["linearizable"]["reason"]
    assert "longer than" in linearized(path, "--model=register", "--time-limit=0.05")["sentence"]
    many = write_events(tmp_path / "many.edn", " ".join(f"{each}+acquire" for each in range(20_000)) + " 0=acquire")
    said = linearized(many, "--model=mutex", "--memory-limit=0.25")
    assert (status(said), said["memory_bytes"] <= MIB // 4) == ("inconclusive", True)
    assert "more than the 0.2 MiB of memory" in said["verdict"]["linearizable"]["reason"]
    assert status(linearized(many, "--model=mutex", "--memory-limit=0", "--time-limit=0")) == "holds"
    said = linearized(many, "--model=mutex", "--time-limit=0.000001")
    assert "longer than the 1e-06 s" in said["verdict"]["linearizable"]["reason"]


def test_a_violation_that_was_seen_on_another_lock_stays(tmp_path: Path) -> None:
    text = "".join(
        f"{{:type :{kind}, :process {process}, :f :acquire, :lock {lock}}}\n"
        for lock in (1, 2)
        for process in (10 * lock, 10 * lock + 1)
        for kind in ("invoke", "ok")
    )
    said = linearized(written(tmp_path / "h.edn", text), "--model=mutex")
    assert said["verdict"]["linearizable"]["count"] == 2
    assert [piece["text"][:6] for piece in said["verdict"]["linearizable"]["evidence"]] == ["on 1, ", "on 2, "]


def test_a_violation_stays_when_another_lock_reaches_the_limit(tmp_path: Path) -> None:
    """The first lock is held twice; to judge the second one takes more memory than there is."""
    first = "".join(
        f"{{:type :{kind}, :process {process}, :f :write, :value {process}, :lock 1}}\n"
        for process in (91,)
        for kind in ("invoke", "ok")
    )
    first += "{:type :invoke, :process 92, :f :read, :lock 1}\n{:type :ok, :process 92, :f :read, :value 7, :lock 1}\n"
    second = "".join(f"{{:type :invoke, :process {each}, :f :write, :value {each}, :lock 2}}\n" for each in range(20))
    second += "{:type :invoke, :process 93, :f :read, :lock 2}\n{:type :ok, :process 93, :f :read, :value 7, :lock 2}\n"
    second += (
        "{:type :invoke, :process 94, :f :read, :lock 2}\n{:type :ok, :process 94, :f :read, :value 99, :lock 2}\n"
    )
    second += "".join(f"{{:type :ok, :process {each}, :f :write, :value {each}, :lock 2}}\n" for each in range(20))
    alone = linearized(written(tmp_path / "b.edn", second), "--model=register", "--memory-limit=1")
    assert (status(alone), alone["memory_bytes"] <= MIB) == ("inconclusive", True)
    said = linearized(written(tmp_path / "h.edn", first + second), "--model=register", "--memory-limit=1")
    assert (status(said), said["verdict"]["linearizable"]["count"]) == ("violated", 1)


def test_reading_takes_no_memory_for_what_is_not_judged(tmp_path: Path) -> None:
    """Hundreds of thousands of events that are no operations: the process does not grow."""
    line = b"{:type :info, :process :nemesis, :f :start, :value {:a [1 2 3]}, :time 123456789}\n"
    path = written(tmp_path / "h.edn", line * EVENTS_IN_BOUNDED_MEMORY + ONE.encode())
    said = linearized(path, "--model=mutex")
    assert (status(said), said["events"]) == ("holds", 2)
    assert said["resident_bytes"] < 8 * MIB


# --- the command ---


def test_the_command_checks_histories_of_other_tools(tmp_path: Path) -> None:
    good, bad = (next(p for p in HISTORIES if p.stem == f"owner-mutex-{name}") for name in ("turns", "two-at-once"))
    done = lockstorm("check", str(good), "--model", "owner-mutex")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Linearizable as an owner-mutex: holds" in done.stdout
    done = lockstorm("check", str(bad), "--model=owner-mutex", "--json")
    assert (done.returncode, json.loads(done.stdout)["verdict"]["linearizable"]["status"]) == (1, "violated")
    etcd = next(p for p in HISTORIES if p.stem == "owner-mutex-etcd-failed-release")
    assert lockstorm("check", str(etcd), "--model=owner-mutex", "--release-policy=not-happened").returncode == 1
    done = lockstorm("check", str(good))
    assert done.returncode == 2
    assert all(model in done.stderr for model in MODELS)
    done = lockstorm("check", str(tmp_path / "any.history"), "--leases")
    assert (done.returncode, "--leases is for --model" in done.stderr) == (2, True)
    done = lockstorm("check", str(written(tmp_path / "broken.edn", "{:type")), "--model=mutex")
    assert (done.returncode, "byte 6: the file ends" in done.stderr) == (2, True)


def test_the_command_judges_and_exports_its_own_histories(tmp_path: Path) -> None:
    recorded = tmp_path / "gc.history"
    lockstorm("run", "gc-pause", "--lock", "set-nx-px-fenced", "-o", str(recorded), "-q")
    done = lockstorm("check", str(recorded), "--model", "fenced-mutex")
    assert done.returncode == 1, done
    assert "client-2's acquire" in done.stdout
    edn = written(tmp_path / "gc.edn", lockstorm("history", "to-edn", str(recorded)).stdout)
    assert lockstorm("check", str(edn), "--model", "fenced-mutex").returncode == 1
    lines = lockstorm("history", "to-porcupine", str(recorded)).stdout.splitlines()
    assert all(json.loads(line)["object"] for line in lines)
    outcomes = [(json.loads(line)["kind"], json.loads(line)["outcome"]) for line in lines]
    assert outcomes.count(("acquire", "ok")) == 2
    assert sorted(outcomes)[2:] == [("release", "ok"), ("release", "unknown")], "a release that failed may still happen"
    again = tmp_path / "again.edn"
    assert lockstorm("history", "to-edn", str(recorded), "-o", str(again)).returncode == 0
    assert again.read_bytes() == edn.read_bytes()
    done = lockstorm("history", "to-edn", str(recorded), "-o", str(again))
    assert done.returncode == 2 and "exists" in done.stderr
    assert again.read_bytes() == edn.read_bytes()
    done = lockstorm("history", "to-edn", str(tmp_path / "nowhere"), "-o", str(tmp_path / "new"))
    assert done.returncode == 2 and not (tmp_path / "new").exists()
    done = lockstorm("history", "to-edn", str(tmp_path / "nowhere"))
    assert (done.returncode, done.stdout) == (2, "")
