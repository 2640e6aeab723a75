"""The page of a trace, in headless Chromium: it opens, shows what there is, and answers clicks, keys and searches."""
from __future__ import annotations

import linecache
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Page, browser, chromium

import mutagrad as mg
from mutagrad.explain.tracing import Trace

COLUMNS = sys.version_info >= (3, 11)  # Python says which expression of a line it is at
pytestmark = pytest.mark.skipif(chromium() is None, reason="needs Chromium: apt-get install chromium")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("profile")) as made:
        yield made


@pytest.fixture(autouse=True)
def no_errors(page: Page) -> Iterator[None]:
    """A page that raises, or asks for anything over the network, fails."""
    page.errors.clear()
    yield
    page.value("1")
    assert page.errors == []


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def program() -> None:
        x = mg.tensor([1., 2., 3.], requires_grad=True)
        w = mg.full((3,), 2.)
        y = x * w
        w.zero_()
        y[1] = 5.
        loss = (y * y).sum()
        loss.backward()

    with mg.trace(title="small.py") as t:
        program()
    return saved(t, tmp_path_factory)


def saved(t: Trace, folder: pytest.TempPathFactory) -> Path:
    path = folder.mktemp("page") / "trace.html"
    t.save(path)
    return path


def text(page: Page, selector: str) -> Any:
    return page.value(f"document.querySelector({selector!r}).innerText")


def block(page: Page, number: int) -> tuple[float, float]:
    """Where the middle of an event's block is, on the screen."""
    x, y = page.value(f"(() => {{ const i = mutagradTrace.events.findIndex(e => e.number === {number}), b = document.getElementById('canvas')"
                      ".getBoundingClientRect(), s = mutagradTrace.spot(i); return [b.x + s[0], b.y + s[1]]; })()")
    return x, y


def test_it_opens_and_says_what_matters_first(page: Page, small: Path) -> None:
    page.open(small)
    assert text(page, "#title") == "trace of small.py" and page.value("document.title") == "mutagrad trace of small.py"
    assert "13 events" in text(page, "#summary") and "5 storages" in text(page, "#summary")
    assert "w.zero_()" in text(page, ".finding") and "OVERWRITES A SAVED VALUE" in text(page, ".finding")
    assert [row["label"] for row in page.value("mutagradTrace.rows().map(r => ({label: r.label}))")] == ["x", "w", "y", "y * y" if COLUMNS else "loss", "loss"]
    assert "x: norm" in text(page, "#detail")


def test_a_click_on_a_block_shows_its_source_shape_and_values(page: Page, small: Path) -> None:
    page.open(small)
    page.click(*block(page, 3))
    shown = text(page, "#detail")
    assert shown.startswith("mul") and "y = x * w" in text(page, "#detail pre .here") and (not COLUMNS or text(page, "#detail pre mark") == "x * w")
    assert "(3,) float32" in shown and [cell.strip() for cell in text(page, "table.values").split("\t")] == ["2", "4", "6"]
    assert "saves" in shown and "what it saved is overwritten by zero_" in shown and "is reversed by ∂ mul" in shown
    assert page.value("mutagradTrace.view.selected") == 2
    page.click_on("#detail .links .hit")
    assert text(page, "#detail h2") == "zero_" and "overwrites a value saved by mul" in text(page, "#detail")


def test_a_click_on_an_adjoint_shows_its_norm(page: Page, small: Path) -> None:
    page.open(small)
    number = page.value("mutagradTrace.events.find(e => e.kind === 'backward' && e.name === 'copy').number")
    page.click(*block(page, number))
    shown = text(page, "#detail")
    assert shown.startswith("∂ copy") and "adjoint norm\n10" in shown and "reverses x[1] =" in shown
    page.key("b")
    assert text(page, "#detail h2") == "x[1] =" and "element 1 of 3; version 0 → 1" in text(page, "#detail")


def test_a_click_on_a_name_shows_the_history_of_a_storage(page: Page, small: Path) -> None:
    page.open(small)
    box = page.value("(b => [b.x, b.y])(document.getElementById('canvas').getBoundingClientRect())")
    page.click(box[0] + 60, block(page, 2)[1])
    shown = text(page, "#detail")
    assert shown.startswith("w") and "2 writes" in shown and "zero_" in shown and "full" in shown


def test_hovering_tells_and_moving_away_hides_it(page: Page, small: Path) -> None:
    page.open(small)
    page.move(*block(page, 4))
    assert page.value("document.getElementById('tip').hidden") is False and "w.zero_()" in text(page, "#tip")
    page.move(700, 5)
    assert page.value("document.getElementById('tip').hidden") is True


def test_findings_lead_to_their_events(page: Page, small: Path) -> None:
    page.open(small)
    page.click_on(".finding")
    assert text(page, "#detail h2") == "zero_"
    page.key("Escape")
    assert text(page, "#detail h2") == "What you see" and page.value("mutagradTrace.view.selected") is None
    page.key("f")
    assert page.value("mutagradTrace.view.selected") is not None


def test_searching(page: Page, small: Path) -> None:
    page.open(small)
    page.key("/")
    assert page.value("document.activeElement.id") == "search"
    for wanted, count in (("w.zero_", 1), ("mul", 4), ("nowhere", 0), ("loss backward", 3)):
        page.value("document.getElementById('search').select()")
        page.type(wanted)
        assert page.value("mutagradTrace.view.found.steps.length") == count, wanted
    page.value("document.getElementById('search').select()")
    page.type("zero_")
    page.key("Enter")
    assert text(page, "#detail h2") == "zero_" and text(page, "#matches") == "1 of 1"
    page.key("Escape")
    assert page.value("mutagradTrace.view.found") is None


def test_keys_go_from_event_to_event(page: Page, small: Path) -> None:
    page.open(small)
    page.key("ArrowRight")
    page.key("ArrowRight")
    assert page.value("mutagradTrace.view.selected") == 1
    page.key("ArrowLeft")
    assert page.value("mutagradTrace.view.selected") == 0
    page.key("?")
    assert page.value("document.getElementById('help').open") is True


def test_zooming_and_panning(page: Page, small: Path) -> None:
    page.open(small)
    span = "mutagradTrace.view.x1 - mutagradTrace.view.x0"
    before = page.value(span)
    x, y = block(page, 5)
    page.wheel(x, y, -300)
    page.value("new Promise(done => setTimeout(done, 80))")
    assert page.value(span) < before and abs(block(page, 5)[0] - x) < 12  # it stays under the pointer
    left = page.value("mutagradTrace.view.x0")
    page.drag(700, 250, 640, 250)
    assert page.value("mutagradTrace.view.x0") > left and page.value("mutagradTrace.view.selected") is None
    page.key("0")
    assert page.value(span) >= before * 0.99


def test_tables(page: Page, small: Path) -> None:
    page.open(small)
    assert "y = x * w" in text(page, "#table") and "forward" in text(page, "#table thead")
    page.click_on("[data-tab='sweeps']")
    assert [row.split("\t")[2] for row in text(page, "#table tbody").split("\n")] == ["sum", "mul", "copy", "mul", "leaf"]
    page.click_on("#table tbody tr", 2)
    assert text(page, "#detail h2") == "∂ copy"
    page.click_on("[data-tab='storages']")
    page.click_on("#table th", 3)
    assert text(page, "#table tbody").split("\n")[0].split("\t")[3] == "12 B"
    page.click_on("[data-tab='lines']")
    page.click_on("#table tbody tr")
    assert page.value("document.getElementById('search').value") != ""


def test_light_and_dark(page: Page, small: Path) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    page.open(small)
    light = page.value(background)
    page.open(small, dark=True)
    dark = page.value(background)
    assert light != dark and page.value("document.documentElement.dataset.theme") == "dark"
    page.click_on("#theme")
    assert page.value(background) == light


def test_what_a_program_writes_stays_text(page: Page, tmp_path_factory: pytest.TempPathFactory) -> None:
    source = "x = mg.ones(2); y = x * 2  # <img src=x onerror='window.hit=1'></script><script>window.hit=1</script>\n"
    linecache.cache["<img src=x onerror=window.hit=1>"] = (len(source), None, [source], "<img src=x onerror=window.hit=1>")
    with pytest.raises(ValueError), mg.trace(title="<img src=x onerror=window.hit=1>") as t:
        exec(compile(source, "<img src=x onerror=window.hit=1>", "exec"), {"mg": mg})
        raise ValueError("<img src=x onerror=window.hit=1>")
    page.open(saved(t, tmp_path_factory))
    page.value("mutagradTrace.select(1)")
    assert page.value("window.hit") is None and "</script>" in text(page, "#detail pre") and "<img" in text(page, "#notices")


def test_an_empty_trace_opens(page: Page, tmp_path_factory: pytest.TempPathFactory) -> None:
    with mg.trace() as t:
        pass
    page.open(saved(t, tmp_path_factory))
    assert "Nothing was recorded" in text(page, "#notices")
    page.key("ArrowRight")
    page.click(600, 300)
    page.click_on("[data-tab='sweeps']")


def test_many_events_are_folded_by_line_and_still_answer(page: Page, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Loops fill few rows, and what lies beyond the limit is said to be left out. (50,000 events take a browser no longer.)"""
    x = mg.ones(400, requires_grad=True)
    y = mg.zeros(400)
    with mg.trace(max_events=2000) as t:
        for i in range(1, 400):
            y[i] = y[i - 1] * 0.5 + x[i]
        y.sum().backward()
    page.open(saved(t, tmp_path_factory))
    assert page.value("mutagradTrace.events.length") == 2000 and page.value("mutagradTrace.rows().length") <= 8
    assert "events, in the middle, are only counted by line" in text(page, "#notices")
    first = page.value("mutagradTrace.events[0].number")
    page.value("mutagradTrace.select(0)")
    assert first == 1 and text(page, "#detail h2") == "x[i]"
    page.click(*block(page, page.value("mutagradTrace.events[3].number")))
    assert page.value("mutagradTrace.view.selected") is not None
    assert page.value("mutagradTrace.draw()") < 500


def test_narrow_windows(page: Page, small: Path) -> None:
    page.open(small, width=620, height=800)
    page.value("mutagradTrace.select(2)")
    assert page.value("document.documentElement.scrollWidth <= 620") is True
