"""The lines between the driver (gateway.py) and the gateway (gateway_main.py): a request a line, and its answer."""

from typing import Literal

import msgspec

from lockstorm.attach.server_access import ServerSurvey
from lockstorm.attach.transport import Login

Request = Literal[
    "survey",
    "lease-range",
    "remains",
    "begin-trial",  # comes before the first client of a trial; removes what an earlier trial has left
    "begin-fault",  # from now on the gateway would heal the fault, if the driver cannot
    "end-fault",
    "begin-command",  # of the team: its process group must not outlive the driver
    "end-command",
]


class Begin(msgspec.Struct, frozen=True):
    """The first line. `variables`: for the team's own commands."""

    url: str
    login: Login
    run: str
    variables: dict[str, str]


class GatewayRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Every other line of the driver."""

    do: Request
    fault: str = ""
    heal: str = ""
    limit_s: float = 0.0
    group: int = 0


class GatewayAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Each answer has the fields of its request; the last one says what was cleaned up."""

    error: str = ""
    socket: str = ""
    survey: ServerSurvey | None = None
    lease_range_ms: tuple[int, int] = (0, 0)
    remains: dict[str, int] = {}
    removed: int = 0
    healed: dict[str, str] = {}
    failures: dict[str, int] = {}
