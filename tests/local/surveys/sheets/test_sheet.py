"""Sheets: what they tell follows from the design, in every language and format."""

from __future__ import annotations

import re
import string
import tomllib
import xml.etree.ElementTree as ET
from dataclasses import fields
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import ParameterError
from sfumato.local.surveys import (
    LANGUAGES,
    Crosswise,
    Design,
    ForcedCategory,
    ForcedResponse,
    TwoCoins,
    UnrelatedQuestion,
    UnrelatedQuestionTwoSamples,
    Warner,
    instruction_sheet,
    respondents_for_margin,
    sheets,
)
from sfumato.local.surveys.sheets.blocks import Page, Spinner, Table, Text
from sfumato.local.surveys.sheets.devices import instructions
from sfumato.local.surveys.sheets.html import html_text
from sfumato.local.surveys.sheets.words import Words, words_of
from tests.cases import cases
from tests.local.surveys.catalogue import DESIGNS

QUESTION = "Did you <ever> take & keep “something”?"
OTHER = "Was your mother born in spring?"
EVERY = cases("language", LANGUAGES)
ENGLISH = words_of("en")
LANGUAGE_FILES = Path(sheets.__file__).parent / "languages"


def sheet(design: Design | UnrelatedQuestionTwoSamples, **more: Any) -> Any:
    harmless = isinstance(design, Crosswise | UnrelatedQuestion | UnrelatedQuestionTwoSamples)
    return instruction_sheet(design, question=QUESTION, other=OTHER if harmless else "", **more)


def holes(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


@EVERY
def test_every_language_is_a_file_that_says_the_same(language: str) -> None:
    table = tomllib.loads((LANGUAGE_FILES / f"{language}.toml").read_text("utf-8"))
    assert list(table) == [field.name for field in fields(Words)][1:]
    for name, text in table.items():
        assert text.strip() == text != "", name
        assert holes(text) == holes(getattr(ENGLISH, name)), name
    assert words_of(language) == Words(language=language, **table)


def test_each_file_is_a_language_and_english_is_the_first() -> None:
    assert LANGUAGES[0] == "en"
    assert {"de", "en", "es", "fr"} <= set(LANGUAGES) == {file.stem for file in LANGUAGE_FILES.iterdir()}
    with pytest.raises(ParameterError, match="language must be one of 'en', 'de'"):
        words_of("xx")


@EVERY
@cases("design", DESIGNS.values(), ids=DESIGNS)
def test_all_formats_have_the_question_and_all_answers(design: Design, language: str) -> None:
    made = sheet(design, language=language)
    text, picture = made.text(), ET.fromstring(made.svg())
    drawn = "\n".join(picture.itertext())
    assert QUESTION in text
    assert QUESTION in drawn
    assert "&lt;ever&gt; take &amp; keep" in made.html()
    assert "{" not in re.sub(r"<style>.*?</style>", "", made.html(), flags=re.DOTALL).replace(
        repr(design), ""
    )
    for name in design.answers:
        if not isinstance(name, str) or language == "en":
            assert f"[ ] {name}" in text
    assert text.count("\f") == 1


class Checker(HTMLParser):
    """Sees that all that is opened is closed, and that nothing is fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.sections = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in {"script", "link", "img", "iframe", "object"}
        assert not {name for name, _ in attrs} & {"src", "href", "onclick", "onload"}
        self.sections += tag == "section"
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in {"path", "circle", "meta", "br"}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@cases("design", DESIGNS.values(), ids=DESIGNS)
def test_the_page_is_whole_and_needs_nothing_else(design: Design) -> None:
    checker = Checker()
    checker.feed(sheet(design).html())
    checker.close()
    ET.fromstring(sheet(design).html())
    assert checker.open == []
    assert checker.sections == 2


def parts(design: Design, device: str) -> dict[str, Fraction]:
    """The chance of each task by what the sheet says of the device's results."""
    tasks = [(task.chance, f"task {place}") for place, task in enumerate(design.tasks)]
    _, blocks = instructions(tasks, ENGLISH, device)  # type: ignore[arg-type]
    (table,) = (block for block in blocks if isinstance(block, Table))
    spinners = [block for block in blocks if isinstance(block, Spinner)]
    if spinners:
        return {task: area[1] for area, (_, task) in zip(spinners[0].areas, table.rows, strict=True)}
    results = [(result.split(" / "), task) for result, task in table.rows]
    count = sum(len(names) for names, _ in results)
    assert len({name for names, _ in results for name in names}) == count
    assert count in {2, 4, 6, 8}
    return {task: Fraction(len(names), count) for names, task in results}


@cases(
    ("design", "device"),
    [
        (TwoCoins(), "auto"),
        (TwoCoins(), "spinner"),
        (TwoCoins(truth="3/4", yes="1/2"), "coin"),
        (ForcedResponse(yes="1/6", no="1/6"), "auto"),
        (ForcedResponse(yes="1/6", no="1/6"), "die"),
        (UnrelatedQuestion(sensitive="2/3", innocuous="1/4"), "die"),
        (Warner(truth="3/4"), "coin"),
        (Warner(truth="7/10"), "auto"),
        (ForcedCategory(names=tuple(range(32)), truth="1/2"), "auto"),
    ],
)
def test_a_device_gives_the_chances_of_the_design(design: Design, device: str) -> None:
    found = parts(design, device)
    assert found == {f"task {place}": task.chance for place, task in enumerate(design.tasks)}


def test_the_spinners_areas_have_their_angles() -> None:
    picture = ET.fromstring(sheet(Warner(truth="3/4"), device="spinner").svg())
    paths = [part.attrib["d"] for part in picture.iter("{http://www.w3.org/2000/svg}path")]
    assert paths == [
        "M0 0L0.000 -100.000A100 100 0 1 1 -100.000 0.000Z",
        "M0 0L-100.000 0.000A100 100 0 0 1 -0.000 -100.000Z",
    ]


def test_the_risk_is_told_in_plain_words() -> None:
    first, second = sheet(TwoCoins()).text().split("\f")
    plain = " ".join(first.split())
    assert "whose true answer is no, about 25 tick “yes”" in plain
    assert "of 100 whose true answer is yes, about 75 do" in plain
    assert "25 in 100 after “yes”, and 3.6 in 100 after “no”" in plain
    assert "epsilon = 1.0987" in second
    assert "prevalence = (r - 1/4) / (1/2)" in second
    size = respondents_for_margin(TwoCoins(), 0.03).respondents
    assert f"± 3 %                         {size // 1000} {size % 1000}" in second


def test_forced_answers_are_ticked_by_chance_in_as_many_of_100() -> None:
    text = " ".join(sheet(DESIGNS["three"]).text().split())
    assert "about 40 tick a box only because chance named it" in text


def test_two_samples_have_a_page_each() -> None:
    design = UnrelatedQuestionTwoSamples(first="7/10", second="3/10", between=("1/4", "3/4"))
    pages = sheet(design).text().split("\f")
    assert len(pages) == 3
    assert "Sample 1" in pages[0]
    assert "Sample 2" in pages[1]
    assert "A  7/10" in pages[0]
    assert "A  3/10" in pages[1]
    assert "prevalence = ((7/10) r1 - (3/10) r2) / (2/5)" in pages[2]


def test_conditions_on_the_harmless_question_are_told_to_the_analyst() -> None:
    assert "The share of yes to the other question is 1/4" in " ".join(
        sheet(Crosswise(innocuous="1/4")).text().split()
    )
    assert "other question" not in sheet(TwoCoins()).text()


@cases(
    ("design", "arguments"),
    [
        (TwoCoins(), {"question": ""}),
        (TwoCoins(), {"question": None}),
        (TwoCoins(), {"question": QUESTION, "other": OTHER}),
        (TwoCoins(), {"question": QUESTION, "language": "tlh"}),
        (TwoCoins(), {"question": QUESTION, "device": "cards"}),
        (TwoCoins(), {"question": QUESTION, "device": "die"}),
        (Warner(truth="7/10"), {"question": QUESTION, "device": "coin"}),
        (Crosswise(innocuous="1/4"), {"question": QUESTION}),
    ],
)
def test_sheets_that_cannot_be_made_are_refused(design: Design, arguments: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=" must "):
        instruction_sheet(design, **arguments)


def test_the_risk_of_two_samples_is_that_of_the_worse_share_for_each_answer() -> None:
    design = UnrelatedQuestionTwoSamples(first="7/10", second="3/10", between=("1/10", "3/4"))
    plain = " ".join(sheet(design).text().split("\f")[0].split())
    # Before 1/10; "yes" shows most where few say so to the harmless question, "no" where few say that.
    worst = [
        UnrelatedQuestion(sensitive="7/10", innocuous=end).risk("1/10").posterior for end in design.between
    ]
    yes, no = max(part["yes"] for part in worst), min(part["no"] for part in worst)
    assert (f"{100 * float(yes):.1f}", f"{100 * float(no):.1f}") == ("73.0", "1.1")
    assert "gives it 73 in 100 after “yes”, and 1.1 in 100 after “no”" in plain
    assert "whose true answer is no, about 3 - 22.5 tick “yes”" in plain


def test_on_a_page_a_loud_text_stands_out_and_a_formula_keeps_its_spaces() -> None:
    texts = Text("Did you?", loud=True), Text("Throw a\ndie."), Text("x  =\n1", formula=True)
    page = html_text((Page("A sheet", texts),), language="en")
    assert '<p class="loud">Did you?</p>\n<p>Throw a<br/>die.</p>\n<p class="formula">x  =\n1</p>' in page
