"""The libraries as a page: a row for each adapter, a column for each promise, and the details of the chosen cell. Its
input is what `lockstorm libraries --json` prints."""

from lockstorm.report.cell_grid import Grid, GridCell
from lockstorm.results.library_table import LibraryTable, ListedFigures, ListedLibrary

WORDS = {
    "kept": "no schedule broke the promise",
    "faults": "schedules with faults broke the promise",
    "calls": "schedules broke the promise by calls alone, without any fault",
    "finding": "these schedules kept the promise, and a finding breaks it",
    "not-made": "the library does not make the promise",
}
ICONS = {"kept": "✓", "faults": "▲", "calls": "✕", "finding": "◆", "not-made": "-"}


def libraries_sentence(libraries: LibraryTable) -> str:
    measured = [figures for _, figures in libraries.measured]
    kept = sum(not figures.broken for figures in measured)
    schedules = sum(figures.schedules for figures in measured)
    return f"{kept} of {len(measured)} locks kept every promise, in {schedules:,} schedules of all together"


def libraries_grid(libraries: LibraryTable) -> Grid:
    promises = libraries.promises
    cells = [_cell(each, figures, promise) for each, figures in libraries.measured for promise in promises]
    return Grid(
        title="Lock libraries and the promises of their calls",
        sentence=libraries_sentence(libraries),
        exit=1 if any(cell.result not in ("kept", "not-made") for cell in cells) else 0 if cells else 3,
        words=WORDS,
        icons=ICONS,
        cells=cells,
        odd_word="described by a finding",
        only_odd="only with a finding",
        axes="Libraries down, promises across",
        searched="library or promise",
        column_words=promises,
    )


def _cell(library: ListedLibrary, figures: ListedFigures, promise: str) -> GridCell:
    broken = figures.broken.get(promise, 0)
    alone = promise in figures.by_calls
    told = [each for each in library.findings.values() if promise in each.breaks]
    unbroken = "finding" if told else "not-made" if promise in library.inapplicable else "kept"
    result = "calls" if alone else "faults" if broken else unbroken
    share = f"Broken in {broken:,} of {figures.schedules:,} schedules"
    return GridCell(
        lock=library.adapter,
        store="",
        scenario=promise,
        result=result,
        sentence=f"{share}{', also without any fault' if alone else ''}." if broken else library.sentence,
        reason=f"{figures.library} {figures.version}: {library.use} {library.beware}".strip(),
        replay=f"lockstorm explore --adapter {library.adapter} --require {promise}" if broken else "",
        odd=bool(told),
        mismatch="A finding describes this, below." if told else "",
        more=tuple((each.title, f"{each.what} A way round it: {each.workaround}") for each in told),
    )
