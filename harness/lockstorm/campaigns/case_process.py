"""A process that plays cases for a worker of the engine: `python -m lockstorm.campaigns.case_process CORE`. It reads a
case per line from its standard input, and answers each with a line. A case that goes wrong cannot take the worker with
it, and whatever a case has started ends when the worker ends."""

import sys

from lockstorm.campaigns.campaign_case import CampaignCase, Plain, case_time, play_case
from lockstorm.scenario.worker_pool import Worker, work_off

MODULE = "lockstorm.campaigns.case_process"


class CaseProcess:
    """The process, seen from its worker. It is started for the first case, and again after it has died."""

    def __init__(self, core: int) -> None:
        self._core = core
        self._process: Worker | None = None

    def play(self, case: Plain) -> Plain:
        """The answer to a case, both as JSON; {"error": reason} of one that could not be played."""
        process = self._process = self._process or Worker(self._core, MODULE)
        process.begin(0, case)
        _, answer = process.answer()
        if answer is not None:
            return answer
        status = process.process.wait()
        process.end()
        self._process = None
        return {"error": f"the process that played it ended (status {status})"}


if __name__ == "__main__":
    work_off(int(sys.argv[1]), CampaignCase, case_time, play_case)  # type: ignore[arg-type]  # msgspec decodes unions
