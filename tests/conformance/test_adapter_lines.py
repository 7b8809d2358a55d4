"""The hello of version 2: the schema and the reader take and refuse the same, and an error names the key."""

import json
from typing import Any

import fastjsonschema
import msgspec
import pytest
from msgspec import structs

from lockstorm.base import paths
from lockstorm.locks import adapter_lines
from lockstorm.locks.adapter_lines import (
    NEWEST,
    AcquireForm,
    AdapterFacts,
    ProtocolError,
    check_answer,
    check_hello,
    parse_answer,
)

SCHEMA = json.loads((paths.ROOT / "docs" / "adapter.schema.json").read_text())
FORM = {"form": "tryLock", "wait": ["none", "time"], "lease": ["given", "renewed"]}
HELLO = {"id": 1, "outcome": "ok", "protocol": 2, "name": "mine", "owner": "thread", "forms": [FORM]}
FULL = {
    **HELLO,
    "version": "1",
    "lease": True,
    "token": True,
    "nodes": 3,
    "operations": ["renew", "is_held", "status", "token"],
    "threads": 4,
    "modes": ["read", "write"],
    "forms": [{**FORM, "lease_unit_ms": 1000, "wait_unit_ms": 10, "operations": ["is_held"]}],
    "reenters": ["same", "write-read"],
    "cancel": True,
    "of_object": ["form", "lease_ms", "wait_ms"],
    "renew_lease": True,
    "lease_key": "lock:{resource}",
    "watchdog_divisor": 2,
    "validity": True,
    "lenient_release": True,
    "parts": True,
    "timer_ms": 100,
    "place_ms": 5000,
    "poll_ms": 250,
    "keeps": ["tokens:{resource}", "queue:*"],
}
FULL_3 = {
    **FULL,
    "protocol": 3,
    "cancels": ["release", "renew"],
    "loss_notice": "lease",
    "holds_two": True,
    "silence_ms": 1000,
    "settings": [{"name": "capacity", "values": [100, "none"]}],
    "over": ["acquire", "release", "renew"],
}
# What a hello has in the place of what is right, and a part of the message.
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"protocol": 4}, "protocol must be from 1 to 3"),
    ({"protocol": "2"}, "protocol must be from 1 to 3"),
    ({"cancels": ["release"]}, "its hello has the unknown key 'cancels'"),
    ({"protocol": 3, "cancels": ["acquire"]}, "cancels must be a list of calls, of release, renew"),
    ({"protocol": 3, "loss_notice": "soon"}, "loss_notice must be one of never, renewal, lease"),
    ({"protocol": 3, "settings": [{"name": "a b", "values": [1]}]}, "settings must be a list of at most 6 objects"),
    ({"protocol": 3, "settings": [{"name": "a", "values": []}]}, "settings must be a list of at most 6 objects"),
    ({"protocol": 3, "holds_two": 2}, "holds_two must be true or false"),
    ({"protocol": 3, "silence_ms": -1}, "silence_ms must be a whole number from 0"),
    ({"protocol": 3, "over": True}, "over must be a list of calls, of acquire, release, renew"),
    ({"owner": None}, "owner must be one of thread, object, thread-object"),
    ({"owner": "process"}, "owner must be one of thread, object, thread-object"),
    ({"threads": 0}, "threads must be a whole number from 1 to 64"),
    ({"threads": True}, "threads must be a whole number"),
    ({"modes": []}, "modes must be a list of modes, of exclusive, read, write, permits"),
    ({"modes": "read"}, "modes must be a list of modes"),
    ({"reenters": ["all"]}, "reenters must be a list of kinds of re-entry, of same, write-read"),
    ({"operations": ["cancel"]}, "of renew, is_held, status, token"),
    ({"of_object": ["mode"]}, "of_object must be a list of keys of acquire, of lease_ms, form, wait_ms"),
    ({"lease_key": "lock"}, "lease_key must be a text with {resource} in it"),
    ({"cancel": "yes"}, "cancel must be true or false"),
    ({"renew_lease": 1}, "renew_lease must be true or false"),
    ({"watchdog_divisor": 1.5}, "watchdog_divisor must be a whole number from 1 to 1000"),
    ({"timer_ms": 0}, "timer_ms must be a whole number from 1 to 60000"),
    ({"place_ms": "soon"}, "place_ms must be a whole number from 1 to 3600000"),
    ({"poll_ms": 0}, "poll_ms must be a whole number from 1 to 60000"),
    ({"keeps": ["*"]}, "keeps must be a list of keys of the server"),
    ({"keeps": "tokens"}, "keeps must be a list of keys of the server"),
    ({"ownner": "thread"}, "its hello has the unknown key 'ownner'"),
    ({"forms": []}, "forms must be a list of objects, at least one"),
    ({"forms": ["tryLock"]}, 'forms[0] of its hello is "tryLock": it must be an object'),
    ({"forms": [FORM, {"form": "lock"}]}, "forms[1] of its hello lacks 'wait'"),
    ({"forms": [{**FORM, "wait": ["long"]}]}, "wait must be a list of waits, of none, time, forever"),
    ({"forms": [{**FORM, "wait": []}]}, 'forms[0] of its hello has {"wait": []}'),
    ({"forms": [{**FORM, "lease": ["own"]}]}, "lease must be a list of leases, of given, renewed, endless, default"),
    ({"forms": [{**FORM, "unit": 1}]}, "forms[0] of its hello has the unknown key 'unit'"),
    ({"forms": [{**FORM, "wait_unit_ms": 0}]}, "wait_unit_ms must be a whole number from 1 to 60000"),
    ({"forms": [{**FORM, "operations": ["acquire"]}]}, "operations must be a list of optional operations"),
    ({"forms": [{**FORM, "form": " "}]}, "form must be a text that is not empty"),
]
# What no schema of one line says.
WRONG_TOGETHER: list[tuple[dict[str, Any], str]] = [
    ({"forms": [FORM, FORM]}, "forms[1] of its hello has the name 'tryLock' again"),
    (
        {"forms": [{**FORM, "lease": ["renewed", "endless"]}]},
        "a lease_ms of null can only mean one of renewed, endless",
    ),
]


@pytest.mark.parametrize("hello", [HELLO, FULL, FULL_3], ids=["short", "full", "version 3"])
def test_a_right_hello_of_version_2_or_3(hello: dict[str, Any]) -> None:
    check_hello(hello, NEWEST)
    fastjsonschema.validate(SCHEMA, hello, use_default=False)
    facts = msgspec.convert(hello, AdapterFacts)
    assert facts.owner == "thread" and facts.forms[0].wait == ("none", "time")
    assert (facts.threads, facts.modes) == ((4, ("read", "write")) if "modes" in hello else (1, ("exclusive",)))


def test_every_key_of_a_full_hello_is_read() -> None:
    facts = json.loads(json.dumps(structs.asdict(msgspec.convert(FULL_3, AdapterFacts)), default=structs.asdict))
    assert {key: facts[key] for key in FULL_3 if key not in ("id", "outcome", "protocol")} == {
        key: value for key, value in FULL_3.items() if key not in ("id", "outcome", "protocol")
    }
    newer = set(adapter_lines.HELLO_KEYS_3) - set(adapter_lines.HELLO_KEYS)
    assert newer <= {field.name for field in structs.fields(AdapterFacts)} & set(FULL_3)
    assert set(adapter_lines.FORM_KEYS) == {field.name for field in structs.fields(AcquireForm)}


@pytest.mark.parametrize(("change", "message"), WRONG, ids=[message for _, message in WRONG])
def test_a_wrong_hello_names_the_key(change: dict[str, Any], message: str) -> None:
    hello = {**HELLO, **change}
    with pytest.raises(ProtocolError) as wrong:
        check_hello(hello, NEWEST)
    assert message in str(wrong.value)
    with pytest.raises(fastjsonschema.JsonSchemaException):
        fastjsonschema.validate(SCHEMA, hello, use_default=False)


@pytest.mark.parametrize(("change", "message"), WRONG_TOGETHER, ids=[message for _, message in WRONG_TOGETHER])
def test_forms_that_contradict_each_other(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ProtocolError) as wrong:
        check_hello({**HELLO, **change}, NEWEST)
    assert message in str(wrong.value)


@pytest.mark.parametrize("key", ["name", "owner", "forms"])
def test_a_hello_of_version_2_lacks_a_key(key: str) -> None:
    hello = {each: value for each, value in HELLO.items() if each != key}
    with pytest.raises(ProtocolError, match=f"its hello lacks '{key}'"):
        check_hello(hello, NEWEST)
    with pytest.raises(fastjsonschema.JsonSchemaException):
        fastjsonschema.validate(SCHEMA, hello, use_default=False)


def test_an_adapter_of_version_1_may_be_asked_for_2_and_not_the_other_way_round() -> None:
    old = {"id": 1, "outcome": "ok", "protocol": 1, "name": "mine"}
    check_hello(old, NEWEST)
    with pytest.raises(ProtocolError, match="unknown key 'owner'"):
        check_hello({**old, "owner": "thread"}, NEWEST)
    with pytest.raises(ProtocolError, match="protocol must be 1, the version that it speaks"):
        check_hello({"id": 1, "outcome": "ok", "protocol": 2, "name": "mine"}, 1)


def test_cancelled_is_a_key_of_version_2() -> None:
    line = b'{"id": 3, "outcome": "refused", "cancelled": true}'
    assert check_answer(line, 3, 2).cancelled is True
    with pytest.raises(ProtocolError, match="unknown key 'cancelled'"):
        check_answer(line, 3)
    with pytest.raises(ProtocolError, match='"cancelled" must be true or false'):
        parse_answer(line.replace(b"true", b"1"), NEWEST)
