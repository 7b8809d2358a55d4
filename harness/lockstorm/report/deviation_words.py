"""The order of messages in words: what a deviation of a library's schedule, that is no fault, changes."""

import re

from lockstorm.results.call_event import PlayedDeviation

STEP = r"(?P<{0}>request|answer|call) (?P<{0}_client>client-\d+) (?:link|thread)-\d+"
LINE = re.compile(rf"before (?:{STEP.format('usual')}|clock) \d+: {STEP.format('instead')}")
HAPPENS = {
    "call": "calls {name}",
    "request": "its {name} reaches the server",
    "answer": "gets the answer to {name}",
}
MEANWHILE = {
    "call": "before {whose} next call, {name}",
    "request": "while {whose} {name} is on its way",
    "answer": "while the answer to {whose} {name} is on its way",
}
NAMELESS = {"call": "something", "request": "command", "answer": "a command"}


def deviation_words(deviation: PlayedDeviation) -> tuple[str, str]:
    """Who does something out of the usual order, and what: ("client-1", "calls release while the answer to its GET is
    on its way"). Empty words for a fault, which the story tells by itself."""
    found = LINE.fullmatch(deviation.line)
    if not found:
        return "", ""
    who = found["instead_client"]
    happens = HAPPENS[found["instead"]].format(name=deviation.instead or NAMELESS[found["instead"]])
    if not found["usual"]:
        return who, f"{happens}, and no time has passed"
    other = found["usual_client"]
    whose = "its" if other == who else f"{other}'s"
    name = deviation.usual or ("" if found["usual"] == "call" else "command")
    return who, f"{happens} {MEANWHILE[found['usual']].format(whose=whose, name=name)}".rstrip(", ")
