"""What a conformance run has found: the output of `adapter check --json` and `plugin check --json`."""

import msgspec


class DoneCheck(msgspec.Struct, frozen=True):
    name: str
    ok: bool
    wrong: str  # what to correct; empty if it is right


class Checks(msgspec.Struct, frozen=True, kw_only=True):
    checks: list[DoneCheck]
    ok: bool


class AdapterChecks(Checks, frozen=True, kw_only=True):
    adapter: str  # its path
    library: str


class PluginChecks(Checks, frozen=True, kw_only=True):
    plugin: str  # its path
    lock: str
    build: str  # a checksum of the file
