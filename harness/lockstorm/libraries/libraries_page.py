"""docs/libraries.md: the tables of libraries and promises, and the findings. `make libraries` writes them anew."""

from collections.abc import Mapping

from lockstorm.base import paths
from lockstorm.base.atomic_file import write_text
from lockstorm.base.marked_pages import content_with
from lockstorm.libraries.finding import CONTROL, FOUND, PLACE, Finding, findings, program_of
from lockstorm.libraries.library_rows import LibraryRow, left_out_libraries, library_rows
from lockstorm.libraries.promise_figures import PromiseFigures
from lockstorm.library_search.library_plan import PROMISES

PAGE = paths.ROOT / "docs" / "libraries.md"
TABLE = ("<!-- libraries: begin -->", "<!-- libraries: end -->")
WORDS = ("<!-- words: begin -->", "<!-- words: end -->")
FINDINGS = ("<!-- findings: begin -->", "<!-- findings: end -->")
KEPT = "·"


def _cell(figures: PromiseFigures, promise: str) -> str:
    """One in how many schedules broke the promise; bold: also without a fault."""
    count = figures.broken.get(promise, 0)
    if not count:
        return KEPT
    share = f"1:{max(1, round(figures.schedules / count)):,}"
    return f"**{share}**" if promise in figures.by_calls else share


def promise_table(rows: Mapping[str, LibraryRow]) -> str:
    """Libraries x promises."""
    lines = [
        f"| adapter | release | schedules | {' | '.join(PROMISES)} |",
        f"|---|---|---|{'---|' * len(PROMISES)}",
    ]
    for row in rows.values():
        if row.figures:
            cells = [_cell(row.figures, promise) for promise in PROMISES]
            lines.append(f"| `{row.adapter}` | {row.release} | {row.figures.schedules:,} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def words_table(rows: Mapping[str, LibraryRow]) -> str:
    """When to use which, and what was not tried."""
    lines = ["| adapter | package, licence | may be used | beware |", "|---|---|---|---|"]
    for row in rows.values():
        words = row.words
        package = f"{words.package} ({words.language}), {words.licence}"
        lines.append(f"| `{row.adapter}` | {package} | {words.use} | {words.beware} |")
    lines += ["", "Not tried:", "", "| library | why |", "|---|---|"]
    lines += [f"| {each.name} | {each.why} |" for each in left_out_libraries()]
    return "\n".join(lines) + "\n"


def _origin(finding: Finding) -> str:
    if not finding.found_by:
        return "Its schedule was written by hand, after the source was read."
    return f"Found by `{finding.found_by}`, schedule {finding.found_at:,}."


def finding_section(name: str, finding: Finding) -> str:
    """A finding in words."""
    directory = f"../findings/{name}"
    program = program_of(PLACE / name)
    absent = f"; not in {', '.join(finding.absent_in)}" if finding.absent_in else ""
    lines = [
        f"### {finding.title}",
        "",
        f"**{finding.library}** {', '.join(finding.shown_in)}{absent} · breaks "
        f"{', '.join(f'`{each}`' for each in finding.breaks)} · adapter `{finding.adapter}`",
        "",
        f"Promised: “{finding.promise}” ([source]({finding.promise_at})).",
        "",
        f"{finding.what} {finding.consequence}",
        "",
        f"- A way round it: {finding.workaround}",
        f"- What would mend it: {finding.change}",
        f"- {_origin(finding)} Again: `lockstorm replay findings/{name}/{FOUND}`; [its control]({directory}/{CONTROL}) "
        "keeps the promise.",
    ]
    if program:
        link = f"[{program.name}]({directory}/{program.name})"
        lines.append(f"- Without lockstorm: {link}, which showed it in {finding.natively} runs of {finding.natively}.")
    near = f": {', '.join(f'[{_short(each)}]({each})' for each in finding.threads)}" if finding.threads else ""
    said = {
        "not found": "no public thread was found",
        "something near": "something near it is known",
        "known": "it is known",
    }
    lines.append(f"- Reported: {said[finding.reported]}{near} ({finding.looked_on}).")
    return "\n".join(lines) + "\n"


def _short(link: str) -> str:
    """redisson/redisson#4217 of a link to a thread."""
    parts = link.rstrip("/").split("/")
    return f"{'/'.join(parts[-4:-2])}#{parts[-1]}" if len(parts) > 4 else link


def libraries_text() -> str:
    """The up-to-date text of the page."""
    rows = library_rows()
    sections = "\n".join(finding_section(name, finding) for name, finding in findings().items())
    content = PAGE.read_text()
    for part, marks in ((promise_table(rows), TABLE), (words_table(rows), WORDS), (sections, FINDINGS)):
        content = content_with(content, part, *marks, PAGE)
    return content


if __name__ == "__main__":
    write_text(PAGE, libraries_text())
