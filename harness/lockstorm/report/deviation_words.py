"""The order of steps in words: what a deviation that is no fault changes."""

import re
from collections.abc import Mapping

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


# --- of a C lock ---

TASK = r"client-\d+(?:-watchdog)?"
LOCK_LINE = re.compile(rf"before (?P<usual>{TASK}|clock) \d+: (?P<instead>{TASK})")
STEPS = {
    "request": "{whose} {name} reaches the server",
    "answer": "{who} gets the answer to its {name}",
    "wake": "{who} wakes up",
    "message": "{who} hears a message",
    "on": "{who} goes on",
}
OTHERWISE = {
    "request": "while {whose} {name} is on its way",
    "answer": "while the answer to {whose} {name} is on its way",
    "wake": "before {who} wakes up",
    "message": "before {who} hears a message",
    "on": "before {who} goes on",
}


def lock_deviation_words(deviation: PlayedDeviation) -> str:
    """What happens out of the usual order: "client-2's SET reaches the server while client-1's EVALSHA is on its way".
    Empty for steps that are not a client's."""
    found = LOCK_LINE.fullmatch(deviation.line)
    if not found or not deviation.instead:
        return ""
    happens = _lock_step(STEPS, found["instead"], deviation.instead)
    if found["usual"] == "clock":
        return f"{happens}, and no time has passed"
    return f"{happens} {_lock_step(OTHERWISE, found['usual'], deviation.usual)}" if deviation.usual else happens


def _lock_step(words: Mapping[str, str], task: str, step: str) -> str:
    kind, _, name = step.partition(" ")
    who = task.replace("-watchdog", "'s watchdog")
    return words[kind].format(who=who, whose=f"{who}'s", name=name)
