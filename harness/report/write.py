"""Writing a report to files."""

from pathlib import Path
from typing import Any

from harness.driver.errors import UsageError
from harness.report.matrix import matrix_page, sentence_of
from harness.report.page import trial_page, trial_picture
from harness.report.source import Recorded, read_recorded, read_source


def write(
    source: Path,
    against: Path | None,
    page: Path | None,
    picture: Path | None,
    limit: int,
    around: int | None,
    version: str,
) -> dict[str, Any]:
    """Writes the page, the picture or both; says which files, and the sentence that stands above."""
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
        return {"files": files, "sentence": made.verdict["sentence"]}
    if against or picture or around is not None:
        raise UsageError(f"{source} is a matrix: AGAINST, --svg and --around are for histories")
    if page:
        files.append(save(page, matrix_page(made, version)))
    return {"files": files, "sentence": sentence_of(made)}


def save(path: Path, text: str) -> dict[str, Any]:
    content = text.encode(errors="replace")
    try:
        path.write_bytes(content)
    except OSError as error:
        raise UsageError(f"{path} was not written: {error.strerror}") from None
    return {"path": str(path), "bytes": len(content)}
