"""What the program of a search needs to run an application: a script for each instance, and the file that
application_file.c reads."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lockstorm.application.answer_model import ModelChoice
from lockstorm.application.application_file import (
    ADDRESSES,
    Application,
    Asked,
    CheckChoice,
    RequestChoice,
)
from lockstorm.base.atomic_file import write_json, write_text
from lockstorm.process.process import Sandbox

PARTS = {"{number}": '"$number"', "{uuid}": '"$uuid"'}
IS_INSTANCES = re.compile(r"\{(port|instance)\}")  # in the environment of instances only


def write_job(application: Application, sandbox: Sandbox, directory: Path) -> Path:
    """Writes both into the directory. Each instance has a port that nobody else gets while the sandbox is open."""
    instances = []
    for number in range(1, application.instances + 1):
        port, script = sandbox.hold_port(), directory / f"instance-{number}"
        write_text(script, _script(application, number, port))
        script.chmod(0o700)
        instances.append({"start": str(script), "port": port})
    starts = {}
    for each in application.requests:
        if each.command:
            starts[each.name] = directory / f"request-{each.name}"
            write_text(starts[each.name], _job_script(application, each))
            starts[each.name].chmod(0o700)
    file = directory / "application.json"
    write_json(file, _document(application, instances, starts))
    return file


def _script(application: Application, number: int, port: int) -> str:
    places = {"port": port, "instance": number, **ADDRESSES}

    def filled(text: str) -> str:
        for name, value in places.items():
            text = text.replace(f"{{{name}}}", str(value))
        return text

    words = [f"{name}={filled(value)}" for name, value in application.environment.items()]
    command = ["env", *words, *map(filled, application.command)]
    return "\n".join(["#!/bin/sh", f"cd {shlex.quote(str(application.directory))}", f"exec {shlex.join(command)}", ""])


def _job_script(application: Application, request: RequestChoice) -> str:
    """A file beside the script says what {number} and {uuid} are (application_jobs.c)."""

    def quoted(word: str) -> str:
        for name, value in ADDRESSES.items():
            word = word.replace(f"{{{name}}}", value)
        return "".join(PARTS.get(part, shlex.quote(part)) for part in re.split(r"(\{number\}|\{uuid\})", word) if part)

    words = [
        quoted(f"{name}={each}") for name, each in application.environment.items() if not IS_INSTANCES.search(each)
    ]
    command = ["env", *words, *map(quoted, request.command)]
    place = shlex.quote(str(application.directory))
    return "\n".join(["#!/bin/sh", 'read -r number uuid < "$0.places"', f"cd {place}", f"exec {' '.join(command)}", ""])


def _document(
    application: Application, instances: list[dict[str, Any]], starts: Mapping[str, Path]
) -> dict[str, Any]:  # JSON of the C program
    nodes = {service: number for number, service in enumerate(application.services)}

    def asked(each: Asked) -> dict[str, Any]:
        return {"node": nodes[each.service], "text": each.text}

    def request(each: RequestChoice) -> dict[str, Any]:
        said: dict[str, Any] = {"name": each.name, "times": each.times}
        if each.command:
            return said | {"start": str(starts[each.name])}
        if each.asked:
            return said | asked(each.asked)
        return said | {name: getattr(each, name) for name in ("method", "target", "head", "body")}

    def check(each: CheckChoice | ModelChoice) -> dict[str, Any]:
        if isinstance(each, CheckChoice):
            return {"kind": each.kind, "right": each.right, **asked(each.asked)}
        effects = [{"request": name, "effect": effect, "amount": amount} for name, effect, amount in each.effects]
        return {"kind": "model", "name": each.name, "starts": each.starts, "field": each.answer, "effects": effects}

    return {
        "name": application.name,
        "ready": application.ready,
        "lasts_ms": application.lasts_ms,
        "timers_ms": application.timers_ms,
        "instances": instances,
        "requests": [request(each) for each in application.requests],
        "checks": [check(each) for each in application.checks],
        "reset": [asked(each) for each in application.resets],
        "locks": [asdict(each) for each in application.hints],
    }
