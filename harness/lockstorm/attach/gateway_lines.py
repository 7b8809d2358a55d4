"""The lines between the driver (gateway.py) and the gateway (gateway_main.py): a request a line, and its answer."""

import msgspec

from lockstorm.attach.server_survey import ServerSurvey
from lockstorm.attach.transport import Login


class Begin(msgspec.Struct, frozen=True):
    """The first line. `variables`: for the team's own commands."""

    url: str
    login: Login
    run: str
    variables: dict[str, str]


class GatewayRequest(msgspec.Struct, frozen=True, tag_field="do"):
    """Every other line of the driver."""


class Survey(GatewayRequest, frozen=True, tag="survey"):
    pass


class LeaseRange(GatewayRequest, frozen=True, tag="lease-range"):
    pass


class Remains(GatewayRequest, frozen=True, tag="remains"):
    pass


class BeginTrial(GatewayRequest, frozen=True, tag="begin-trial"):
    """Comes before the first client of a trial. Removes what an earlier trial has left."""


class BeginFault(GatewayRequest, frozen=True, tag="begin-fault"):
    """From now on the gateway would heal the fault, if the driver cannot."""

    fault: str
    heal: str
    limit_s: float


class EndFault(GatewayRequest, frozen=True, tag="end-fault"):
    fault: str


class BeginCommand(GatewayRequest, frozen=True, tag="begin-command"):
    """The process group of a command of the team, which must not outlive the driver."""

    group: int


class EndCommand(GatewayRequest, frozen=True, tag="end-command"):
    pass


AnyRequest = Survey | LeaseRange | Remains | BeginTrial | BeginFault | EndFault | BeginCommand | EndCommand


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
