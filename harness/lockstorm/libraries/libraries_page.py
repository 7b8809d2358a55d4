"""docs/libraries.md: the tables of libraries and promises, and the findings. `make libraries` writes them anew."""

from collections.abc import Mapping

from lockstorm.base import paths
from lockstorm.base.atomic_file import write_text
from lockstorm.base.marked_pages import content_with
from lockstorm.libraries.finding import CONTROL, FOUND, PLACE, Finding, findings, program_of
from lockstorm.libraries.library_rows import LibraryRow, library_rows
from lockstorm.libraries.library_words import read_words
from lockstorm.libraries.promise_figures import LibraryTraits, PromiseFigures
from lockstorm.search.library_plan import PROMISES

PAGE = paths.ROOT / "docs" / "libraries.md"
TABLE = ("<!-- libraries: begin -->", "<!-- libraries: end -->")
TRAITS = ("<!-- traits: begin -->", "<!-- traits: end -->")
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
    lines = [
        f"| adapter | release | measured | schedules | {' | '.join(PROMISES)} |",
        f"|---|---|---|---|{'---|' * len(PROMISES)}",
    ]
    for row in rows.values():
        if row.figures:
            cells = [_cell(row.figures, promise) for promise in PROMISES]
            what = f"`{row.adapter}` | {row.release} | {row.figures.measured} | {row.figures.schedules:,}"
            lines.append(f"| {what} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def traits_table(rows: Mapping[str, LibraryRow]) -> str:
    titles = ("adapter", "servers", "waits by", "lease", "modes", "re-enters", "token", "fair", "cancel", "us", "port")
    lines = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    for row in rows.values():
        if row.figures and row.figures.traits:
            lines.append(f"| `{row.adapter}` | {' | '.join(_traits_cells(row.figures, row.figures.traits))} |")
    return "\n".join(lines) + "\n"


def _traits_cells(figures: PromiseFigures, traits: LibraryTraits) -> list[str]:
    lease = "watchdog" if traits.renews else "extended by the caller" if traits.extends else "given"
    cost = figures.cost
    return [
        f"{traits.nodes} x {figures.service}" if traits.nodes > 1 else figures.service,
        "does not" if traits.waits == "not" else traits.waits,
        lease if traits.lease else KEPT,
        ", ".join(traits.modes),
        "also reads" if "write-read" in traits.reenters else "yes" if traits.reenters else KEPT,
        *("yes" if each else KEPT for each in (traits.token, traits.fair, traits.cancels)),
        f"{cost.us:,.0f}" if cost else "",
        f"{cost.ratio:.1f} x `{cost.port}`" if cost else "",
    ]


def words_table(rows: Mapping[str, LibraryRow]) -> str:
    lines = ["| adapter | package, licence | may be used | beware |", "|---|---|---|---|"]
    for row in rows.values():
        words = row.words
        package = f"{words.package} ({words.language}), {words.licence}"
        lines.append(f"| `{row.adapter}` | {package} | {words.use} | {words.beware} |")
    lines += ["", "Not tried:", "", "| library | why |", "|---|---|"]
    lines += [f"| {each.name} | {each.why} |" for each in read_words()[1]]
    return "\n".join(lines) + "\n"


def _origin(finding: Finding) -> str:
    if not finding.found_by:
        return "Its schedule was written by hand, after the source was read."
    return f"Found by `{finding.found_by}`, schedule {finding.found_at:,}."


def finding_section(name: str, finding: Finding) -> str:
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
    rows = library_rows()
    sections = "\n".join(finding_section(name, finding) for name, finding in findings().items())
    content = PAGE.read_text()
    parts = (
        (promise_table(rows), TABLE),
        (traits_table(rows), TRAITS),
        (words_table(rows), WORDS),
        (sections, FINDINGS),
    )
    for part, marks in parts:
        content = content_with(content, part, *marks, PAGE)
    return content


if __name__ == "__main__":
    write_text(PAGE, libraries_text())
