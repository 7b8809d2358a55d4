"""Writing a report to files."""

from pathlib import Path
from typing import Any

from lockstorm.base.atomic_file import write_bytes
from lockstorm.base.errors import UsageError
from lockstorm.report.library_grid import libraries_page, libraries_sentence
from lockstorm.report.library_page import PlayedSchedule, library_page, library_picture
from lockstorm.report.matrix_page import matrix_page, matrix_sentence
from lockstorm.report.report_source import Recorded, is_libraries, read_recorded, read_source, table_word
from lockstorm.report.trial_page import trial_page, trial_picture


def write(
    source: Path,
    against: Path | None,
    page: Path | None,
    picture: Path | None,
    limit: int,
    around: int | None,
    version: str,
) -> dict[str, Any]:
    """Writes the page, the picture or both. Returns the files with their sizes, and the sentence of the verdict."""
    made = read_source(source)
    files = []
    if isinstance(made, Recorded):
        trials = [made] if against is None else [made, read_recorded(against)]
        if page:
            files.append(save(page, trial_page(trials, version, limit, around)))
        if picture and against:
            raise UsageError("--svg writes one diagram: leave AGAINST out")
        if picture:
            files.append(save(picture, trial_picture(made, limit, around)))
        return {"files": files, "sentence": made.verdict.sentence}
    if against or picture or around is not None:
        raise UsageError(f"{source} is a {table_word(made)}: AGAINST, --svg and --around are for histories")
    if is_libraries(made):
        files = [save(page, libraries_page(made, version))] if page else []
        return {"files": files, "sentence": libraries_sentence(made)}
    files = [save(page, matrix_page(made, version))] if page else []
    return {"files": files, "sentence": matrix_sentence(made)}


def write_library(
    played: PlayedSchedule, page: Path | None, picture: Path | None, limit: int, version: str
) -> dict[str, Any]:
    """The same for a schedule of a library."""
    files = [save(page, library_page(played, version, limit))] if page else []
    files += [save(picture, library_picture(played, limit))] if picture else []
    return {"files": files, "sentence": played.result["sentence"]}


def save(path: Path, text: str) -> dict[str, Any]:
    content = text.encode(errors="replace")
    try:
        write_bytes(path, content)
    except OSError as error:
        raise UsageError(f"{path} was not written: {error.strerror}") from None
    return {"path": str(path), "bytes": len(content)}
