"""Pages in a real browser: axe finds nothing, the keyboard reaches everything, paper has all rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import sfumato as sf
from sfumato import report
from tests.browser import Browser, browsing, text_of_pdf
from tests.report.making import GROUPS, kinds_of_pages, towns

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as opened:
        yield opened


def written(page: report.ReleasePage, folder: Path) -> Path:
    file = folder / "page.html"
    file.write_bytes(page.to_bytes())
    return file


def long_table(language: str = "en") -> report.ReleasePage:
    """A page whose table is longer than a sheet of paper, and wider than a telephone."""
    groups = {"town": [f"Town {town:02}" for town in range(50)]}
    with sf.connect(towns(50), privacy_unit="who", epsilon=9, delta=1e-5) as session:
        return report.release(session.sql(GROUPS, public_groups=groups), language=language)


@pytest.mark.parametrize("language", ["en", "de"])
def test_axe_finds_nothing_on_any_kind_of_page(browser: Browser, tmp_path: Path, language: str) -> None:
    """The other language's texts are longer: what they may break is on a telephone."""
    found = {}
    widths = (360, 1200) if language == "en" else (360,)
    for name, page in kinds_of_pages(language):
        browser.open(written(page, tmp_path))
        for width in widths:
            browser.resize(width)
            found[name, width] = browser.violations()
    assert len(found) >= 14 * len(widths)
    assert {name: each for name, each in found.items() if each} == {}


def test_axe_sees_what_is_wrong(browser: Browser, tmp_path: Path) -> None:
    page = long_table().html
    assert 'lang="en"' in page
    broken = page.replace(' lang="en"', "").replace("<th ", "<td ").replace("</th>", "</td>")
    (tmp_path / "page.html").write_text(
        broken.replace("<h2>", '<img src="x"/><h4>').replace("</h2>", "</h4>")
    )
    browser.open(tmp_path / "page.html")
    rules = {each.split()[1].rstrip(":") for each in browser.violations()}
    assert rules >= {"html-has-lang", "image-alt", "heading-order"}


def test_the_page_is_whole_without_scripts_and_runs_none(browser: Browser, tmp_path: Path) -> None:
    page = long_table()
    script = "<script>document.title = 'a script ran'</script></main>"
    (tmp_path / "page.html").write_text(page.html.replace("</main>", script))
    browser.open(tmp_path / "page.html")
    assert browser.driver.title == "Release 1"
    texts = []
    for on in (True, False):
        browser.scripts(on=on)
        try:
            browser.open(written(page, tmp_path))
            texts.append(browser.run("return document.body.innerText"))
        finally:
            browser.scripts(on=True)
    assert texts[0] == texts[1]
    assert "Town 49" in texts[0]


def test_the_keyboard_alone_reads_the_page(browser: Browser, tmp_path: Path) -> None:
    from selenium.webdriver.common.keys import Keys  # noqa: PLC0415

    browser.resize(320, 600)
    browser.open(written(long_table(), tmp_path))
    skip = "return document.querySelector('.skip').getBoundingClientRect().right > 0"
    assert not browser.run(skip)
    browser.press(Keys.TAB)
    assert browser.focused() == "a.skip"
    assert browser.run(skip)
    browser.press(Keys.ENTER)
    assert browser.focused() == "main#content"
    browser.press(Keys.TAB)
    assert browser.focused() == "div.scroll"
    table = "return document.querySelector('.scroll').scrollLeft"
    assert browser.run(table) == 0
    for _ in range(3):
        browser.press(Keys.ARROW_RIGHT)
    browser.wait_for(f"{table} > 0")
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")


def test_headings_and_tables_are_what_a_screen_reader_goes_by(browser: Browser, tmp_path: Path) -> None:
    for name, page in kinds_of_pages("en"):
        browser.open(written(page, tmp_path))
        levels = browser.run("return [...document.querySelectorAll('h1,h2,h3')].map(each => each.localName)")
        assert levels[0] == "h1", name
        assert levels[1] == "h2", name
        assert set(levels[1:]) <= {"h2", "h3"}, name
        unnamed = (
            "return [...document.querySelectorAll('table')].filter(table => !table.caption"
            " || [...table.querySelectorAll('th')].some(th => !th.scope)"
            " || !table.querySelector('thead th')).length"
        )
        assert browser.run(unnamed) == 0, name


@pytest.mark.parametrize("language", ["en", "de"])
def test_paper_has_all_rows_and_sections(browser: Browser, tmp_path: Path, language: str) -> None:
    page = long_table(language)
    browser.resize(360)
    browser.open(written(page, tmp_path))
    rows = browser.run(
        "return [...document.querySelectorAll('tr')].map(row => [...row.cells].map(each => each.innerText))"
    )
    headings = browser.run("return [...document.querySelectorAll('h1,h2')].map(each => each.innerText)")
    printed = text_of_pdf(browser.pdf())
    assert len(rows) > 55
    compact = printed.replace(" ", "")
    for texts in [*rows, headings]:
        for text in texts:
            assert "".join(text.split()) in compact
    skip = browser.run("return document.querySelector('.skip').textContent")
    assert skip not in printed
