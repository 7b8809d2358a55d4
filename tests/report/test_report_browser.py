"""Reports in a real browser: no errors, every control works by mouse and by keyboard, and long histories open fast."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser, Page

from lockstorm.base import paths
from lockstorm.report.report import write
from lockstorm.report.window import ROWS_USUAL
from tests.helpers.browsing import browser, visit
from tests.helpers.building import make
from tests.helpers.support import lockstorm
from tests.report.test_report_pages import CELL, HOSTILE, hostile_history

OPEN_LIMIT_MS = 2000
LONG_RECORDS = 100_000
PNG_MAGIC = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as running:
        yield running


@pytest.fixture(scope="module")
def trial_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("browser")
    history = directory / "gc.history"
    assert lockstorm("run", "gc-pause", "--lock", "set-nx-px", "-q", "-o", str(history)).returncode == 1
    return page_of(history)


@pytest.fixture(scope="module")
def matrix_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = ("holds", "fenced", "violated", "stuck", "inconclusive")
    cells = []
    for number in range(40):
        lock, scenario = f"lock-{number // 8}", f"scenario-{number % 8}"
        result = results[number % len(results)]
        sentence = f"sentence {number} <b>&"
        cells.append(
            {**CELL, "lock": lock, "scenario": scenario, "result": result, "expected": result, "sentence": sentence}
        )
    cells[7]["ok"] = False
    path = tmp_path_factory.mktemp("browser") / "matrix.json"
    path.write_text(json.dumps({"cells": cells}))
    return page_of(path)


def page_of(source: Path) -> Path:
    target = source.with_suffix(".html")
    write(source, None, target, None, ROWS_USUAL, None)
    return target


def panel(page: Page) -> str:
    return page.inner_text(".panel")


def chosen_row(page: Page) -> int:
    return int(page.get_attribute(".event.chosen", "data-row") or -1)


# --- a trial ---


def test_pointing_at_an_event_shows_its_record(chromium: Browser, trial_page: Path) -> None:
    with visit(chromium, trial_page) as seen:
        late = seen.page.locator(".event", has_text="accepts 1 of client-1")
        late.locator("text.word").hover()
        assert "accepts 1 of client-1" in panel(seen.page)
        assert "store-write" in panel(seen.page)
        assert "lost update" in panel(seen.page)


def test_a_click_marks_the_same_row_of_the_table(chromium: Browser, trial_page: Path) -> None:
    with visit(chromium, trial_page) as seen:
        event = seen.page.locator(".event", has_text="held at before-write")
        event.locator("text.word").click()
        assert seen.page.inner_text("tr.chosen").split("\t")[1].strip() == "held at before-write"
        seen.page.locator("tr[data-row='0']").click()
        assert chosen_row(seen.page) == 0


def test_a_piece_of_evidence_leads_to_its_record(chromium: Browser, trial_page: Path) -> None:
    with visit(chromium, trial_page) as seen:
        seen.page.locator(".evidence button", has_text="stale write").click()
        assert "accepts 1 of client-1" in panel(seen.page)


def test_the_keyboard_reaches_every_control_and_every_event(chromium: Browser, trial_page: Path) -> None:
    with visit(chromium, trial_page) as seen:
        page = seen.page
        controls = page.locator("main button").count()
        reached = set()
        for _ in range(controls + 4):
            page.keyboard.press("Tab")
            reached.add(page.evaluate("document.activeElement.outerHTML.slice(0, 90)"))
        assert sum(focused.startswith("<button") for focused in reached) == controls
        assert any('class="event' in focused for focused in reached)
        assert any('class="scroll"' in focused for focused in reached)
        page.locator(".event").first.focus()
        walked = [chosen_row(page)]
        for _ in range(page.locator(".event").count() - 1):
            page.keyboard.press("ArrowDown")
            walked.append(chosen_row(page))
        assert walked == list(range(page.locator(".event").count()))


def test_keys_jump_through_the_evidence_and_to_the_ends(chromium: Browser, trial_page: Path) -> None:
    with visit(chromium, trial_page) as seen:
        page = seen.page
        bad = [int(each.get_attribute("data-row") or -1) for each in page.locator(".event.bad").all()]
        assert len(bad) == 4
        page.locator(".event").first.focus()
        for row in [*bad, bad[0]]:
            page.keyboard.press("n")
            assert chosen_row(page) == row
        page.keyboard.press("p")
        assert chosen_row(page) == bad[-1]
        page.keyboard.press("End")
        assert chosen_row(page) == page.locator(".event").count() - 1
        page.keyboard.press("ArrowDown")  # the last event has no successor
        assert chosen_row(page) == page.locator(".event").count() - 1
        page.keyboard.press("Home")
        assert chosen_row(page) == 0


def test_zoom_and_pan(chromium: Browser, trial_page: Path) -> None:
    with visit(chromium, trial_page, viewport={"width": 700, "height": 600}) as seen:
        page, diagram = seen.page, seen.page.locator("svg.diagram")

        def width() -> float:
            box = diagram.bounding_box()
            assert box
            return box["width"]

        before = width()
        page.locator("[data-do=in]").click()
        page.locator(".event").first.focus()
        page.keyboard.press("+")
        assert width() == pytest.approx(before * 1.25**2, rel=0.02)
        page.locator(".viewport").scroll_into_view_if_needed()
        box = page.locator(".viewport").bounding_box()
        assert box
        page.mouse.move(box["x"] + 400, box["y"] + 200)
        page.mouse.down()
        page.mouse.move(box["x"] + 300, box["y"] + 120)
        page.mouse.up()
        assert page.evaluate("document.querySelector('.viewport').scrollLeft") == pytest.approx(100, abs=3)
        page.keyboard.press("0")
        assert width() <= box["width"]


def test_the_diagram_is_saved_as_svg_and_as_png(chromium: Browser, trial_page: Path, tmp_path: Path) -> None:
    with visit(chromium, trial_page, color_scheme="dark") as seen:
        size = seen.page.evaluate(
            "(({width, height}) => [width, height])(document.querySelector('svg.diagram').viewBox.baseVal)"
        )
        for form in ("svg", "png"):
            with seen.page.expect_download() as download:
                seen.page.locator(f"[data-do={form}]").click()
            download.value.save_as(tmp_path / f"saved.{form}")
    svg = (tmp_path / "saved.svg").read_text()
    assert ElementTree.fromstring(svg).get("viewBox") == f"0 0 {size[0]:g} {size[1]:g}"
    assert "var(" not in svg and "#14171b" in svg  # the dark ground, written out
    png = (tmp_path / "saved.png").read_bytes()
    assert png.startswith(PNG_MAGIC)
    assert [int.from_bytes(png[at : at + 4], "big") for at in (16, 20)] == [2 * side for side in size]


def test_names_from_outside_do_nothing(chromium: Browser, tmp_path: Path) -> None:
    with visit(chromium, page_of(hostile_history(tmp_path / "hostile.jsonl"))) as seen:
        page = seen.page
        assert page.title() != "caught"
        assert page.locator("main img").count() == 0
        for event in page.locator(".event").all():
            event.focus()
        assert HOSTILE.replace("\u2028", "") in panel(page).replace("\u2028", "")
        assert page.title() != "caught" and page.locator("main img").count() == 0


@pytest.mark.slow("makes and opens a page of a long run", seconds=8)
def test_a_long_run_opens_at_once(chromium: Browser, tmp_path: Path) -> None:
    make("bench-programs")
    history = tmp_path / "long.history"
    program = paths.build() / "bench" / "make_history"
    subprocess.run([program, history, str(LONG_RECORDS)], check=True)
    page = page_of(history)
    assert page.stat().st_size < 1_000_000
    took_ms = []
    for _ in range(3):  # the best of three: the machine may be busy
        with visit(chromium, page) as seen:
            took_ms.append(seen.page.evaluate("performance.getEntriesByType('navigation')[0].loadEventStart"))
            assert "of 99,971 events are left out" in seen.page.inner_text("main")
    assert min(took_ms) < OPEN_LIMIT_MS


# --- a matrix ---


def test_a_click_opens_the_right_cell(chromium: Browser, matrix_page: Path) -> None:
    with visit(chromium, matrix_page) as seen:
        for number in (0, 7, 22, 39):
            seen.page.locator(f"td[data-cell='{number}']").click()
            shown = panel(seen.page)
            assert f"sentence {number} <b>&" in shown
            assert f"scenario-{number % 8} · lock-{number // 8}" in shown
            assert ("Not as expected" in shown) == (number == 7)
            assert "./lockstorm run gc-pause --lock set-nx-px --control" in shown


def test_a_promise_of_a_library_shows_what_was_found(chromium: Browser, tmp_path: Path) -> None:
    table = tmp_path / "libraries.json"
    table.write_text(lockstorm("libraries", "--json").stdout)
    title = "RedisLock(expire=None) deletes its key at once"
    with visit(chromium, page_of(table)) as seen:
        seen.page.locator("input[name=words]").fill("sherlock mutual_exclusion")
        seen.page.locator("td[data-cell]:not(.faded):visible").click()
        assert title in panel(seen.page) and "lockstorm explore --adapter sherlock" in panel(seen.page)
        assert "control" not in panel(seen.page)


def test_a_replay_command_is_copied_or_at_least_selected(chromium: Browser, matrix_page: Path) -> None:
    with visit(chromium, matrix_page) as seen:
        page = seen.page
        page.locator("td[data-cell='0']").click()
        page.locator("button.copy").first.click()
        copied = "document.querySelector('button.copy').textContent === 'Copied'"
        page.wait_for_function(f"{copied} || getSelection().toString().startsWith('./lockstorm')")


@pytest.mark.parametrize("width", [380, 1400])
def test_the_details_of_a_choice_are_visible(
    chromium: Browser, matrix_page: Path, trial_page: Path, width: int
) -> None:
    for path, thing in ((matrix_page, "td[data-cell='9']"), (trial_page, ".event.bad text.word")):
        with visit(chromium, path, viewport={"width": width, "height": 760}) as seen:
            seen.page.locator(thing).first.click()
            title = seen.page.locator(".panel h3").bounding_box()
            assert title and 0 <= title["y"] < 760 - title["height"]


def test_verdicts_are_filtered(chromium: Browser, matrix_page: Path) -> None:
    with visit(chromium, matrix_page) as seen:
        page = seen.page
        for result in ("holds", "fenced", "stuck", "inconclusive"):
            page.locator(f"input[value={result}]").uncheck()
        left = page.locator("td[data-cell]:not(.faded):visible")
        assert left.count() == 8
        assert all("violated" in (cell.get_attribute("class") or "") for cell in left.all())
        page.locator("input[name=words]").fill("lock-3")
        assert [cell.get_attribute("data-cell") for cell in left.all()] == ["27"]
        page.locator("input[name=words]").fill("")
        for result in ("holds", "fenced", "stuck", "inconclusive"):
            page.locator(f"input[value={result}]").check()
        page.locator("input[name=odd]").check()
        assert [cell.get_attribute("data-cell") for cell in left.all()] == ["7"]


def test_the_keyboard_walks_the_matrix(chromium: Browser, matrix_page: Path) -> None:
    with visit(chromium, matrix_page) as seen:
        page = seen.page
        for _ in range(page.locator("input").count() + 1):
            page.keyboard.press("Tab")
        visited = []
        for row in range(8):
            for step in range(5):
                visited.append(int(page.get_attribute("td.chosen", "data-cell") or -1))
                if step < 4:
                    page.keyboard.press("ArrowRight" if row % 2 == 0 else "ArrowLeft")
            page.keyboard.press("ArrowDown")
        assert sorted(visited) == list(range(40))
        page.keyboard.press("Home")
        assert page.get_attribute("td.chosen", "data-cell") == "7"
        page.keyboard.press("ArrowLeft")  # the name of the scenario is no cell
        assert page.get_attribute("td.chosen", "data-cell") == "7"


def test_the_keyboard_and_the_filters_respect_the_groups_of_scenarios(chromium: Browser, tmp_path: Path) -> None:
    names = ("clock-jump-server", "contention", "gc-pause", "packet-delay")
    path = tmp_path / "matrix.json"
    path.write_text(json.dumps({"cells": [{**CELL, "scenario": name} for name in names]}))
    with visit(chromium, page_of(path)) as seen:
        page = seen.page
        shown = page.locator("tr.kind:visible")
        assert [each.split(" ")[0] for each in shown.all_inner_texts()] == ["client", "network", "clock", "load"]
        page.locator("td[data-cell='2']").click()
        walked = []
        for _ in names:
            walked.append(page.get_attribute("td.chosen", "data-cell"))
            page.keyboard.press("ArrowDown")
        assert walked == ["2", "3", "0", "1"]
        page.locator("input[name=words]").fill("packet")
        assert [each.split(" ")[0] for each in shown.all_inner_texts()] == ["network"]


# --- how it looks ---


@pytest.mark.parametrize("width", [360, 1000, 1600])
def test_only_the_diagram_and_the_tables_scroll_sideways(
    chromium: Browser, trial_page: Path, matrix_page: Path, width: int
) -> None:
    for path in (trial_page, matrix_page):
        with visit(chromium, path, viewport={"width": width, "height": 800}) as seen:
            assert seen.page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_dark_theme_and_print(chromium: Browser, trial_page: Path) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    with visit(chromium, trial_page, color_scheme="dark") as seen:
        page = seen.page
        assert page.evaluate(ground) == "rgb(14, 16, 19)"
        page.emulate_media(media="print")
        assert page.evaluate(ground) == "rgb(255, 255, 255)"
        assert page.locator(".tools").is_hidden()
        assert page.evaluate("(box => box.scrollHeight <= box.clientHeight + 1)(document.querySelector('.viewport'))")
