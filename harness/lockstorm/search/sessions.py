"""Sessions: schedules of a library that are played one after the other with the same programs. Starting a program
takes as long as some tens of schedules. The first few are short, so that a short search has several for its jobs."""

SHORT_SESSION, SHORT_SESSIONS, SESSION = 50, 4, 200  # schedules in one of the first; their number; in a later one
SESSION_OPTIONS = {"session": SESSION, "short-session": SHORT_SESSION, "short-sessions": SHORT_SESSIONS}  # of explore


def session_numbers(session: int) -> range:
    """The schedules of a session; both are counted from 0."""
    if session < SHORT_SESSIONS:
        return range(session * SHORT_SESSION, (session + 1) * SHORT_SESSION)
    begin = SHORT_SESSIONS * SHORT_SESSION + (session - SHORT_SESSIONS) * SESSION
    return range(begin, begin + SESSION)


def whole_sessions(schedules: int) -> int:
    """The least number of schedules that is not below `schedules` and ends with a session."""
    short = SHORT_SESSIONS * SHORT_SESSION
    unit = SHORT_SESSION if schedules <= short else SESSION
    begin = 0 if schedules <= short else short
    return begin + -(-(schedules - begin) // unit) * unit
