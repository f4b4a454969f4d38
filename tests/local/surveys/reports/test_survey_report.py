"""The report of one survey: its numbers are the estimate's, and its page is whole, safe and accessible."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from fractions import Fraction
from typing import Any

import pytest

from sfumato.errors import ParameterError
from sfumato.local.surveys import (
    LANGUAGES,
    AdditiveScrambling,
    CheatingDetection,
    Crosswise,
    ForcedCategory,
    Mangat,
    SurveyReport,
    TwoCoins,
    UnrelatedNumber,
    UnrelatedQuestionTwoSamples,
)
from sfumato.local.surveys.sheets.words import words_of
from tests.cases import cases

QUESTION = 'Did you <script>alert(1)</script> & "that"?'
EVEN = dict.fromkeys(range(4), "1/4")
ESTIMATES: dict[str, Any] = {
    "prevalence": TwoCoins().estimate({"yes": 400, "no": 600}),
    "outside": TwoCoins().estimate({"yes": 150, "no": 850}),
    "crosswise": Crosswise(innocuous="1/4").estimate({"same": 650, "different": 350}),
    "certain": Mangat(truth="2/3").estimate({"yes": 500, "no": 500}),
    "shares": ForcedCategory(names=("<b>", "a & b", "often" * 9), truth="3/5").estimate(
        {"<b>": 500, "a & b": 300, "often" * 9: 200}
    ),
    "mean": UnrelatedNumber(lower=0, upper=3, truth="1/2", other=EVEN).estimate({0: 500, 1: 300, 3: 200}),
    "sum": AdditiveScrambling(lower=-2, upper=2, noise={0: "1/2", 1: "1/2"}).estimate([-2, 0, 3, 1] * 90),
    "one": TwoCoins().estimate(["yes"]),
    "none": TwoCoins().estimate([]),
}
EVERY = cases("name", list(ESTIMATES))


def made(name: str, **options: Any) -> SurveyReport:
    return SurveyReport(question=QUESTION, estimate=ESTIMATES[name], **options)


def cells(report: SurveyReport) -> list[list[list[str]]]:
    """The rows of each table of the page."""
    tables = ET.fromstring(report.html()).iter("table")
    return [[["".join(cell.itertext()) for cell in row] for row in table.iter("tr")] for table in tables]


@EVERY
@cases("language", LANGUAGES)
def test_the_page_is_whole_safe_and_accessible(name: str, language: str) -> None:
    html = made(name, language=language).html()
    page = ET.fromstring(html)
    assert page.attrib["lang"] == language
    tags = [element.tag.rpartition("}")[2] for element in page.iter()]
    assert not {"script", "link", "img", "iframe", "object", "form"} & set(tags)
    assert not re.search(r"\b(src|href|on\w+)=", html)
    assert QUESTION in "".join(page.itertext())
    assert tags.count("h1") == tags.count("main") == 1
    assert next(tag for tag in tags if tag in {"h1", "h2", "h3"}) == "h1"
    assert tags.count("h2") >= 5
    assert page.find("head/title").text == page.find(".//h1").text != ""  # type: ignore[union-attr]
    assert {cell.attrib["scope"] for cell in page.iter("th")} == {"col", "row"}
    assert all(row[0].tag == "th" for row in page.iter("tr"))
    for picture in page.iter("{http://www.w3.org/2000/svg}svg"):
        assert picture.attrib["role"] == "img"
        assert picture.attrib["aria-label"]
    assert tags.count("svg") == tags.count("figcaption") == (name != "none")
    words = words_of(language)
    assert words.report_not_promised in html
    assert "{" not in re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL).replace("{0:", "")


def test_control_characters_do_not_break_the_page() -> None:
    names = ("a\x00b", "c\x0bd")
    found = ForcedCategory(names=names, truth="1/2").estimate({names[0]: 5, names[1]: 5})
    report = SurveyReport(question="one\x1b\x00two", estimate=found)
    text = "".join(ET.fromstring(report.html()).itertext())
    assert "one\ufffd\ufffdtwo" in text
    assert "a\ufffdb" in text


def luminance(color: str) -> float:
    digits = color.lstrip("#")
    digits = "".join(digit * 2 for digit in digits) if len(digits) == 3 else digits
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_colors_have_contrast_and_the_page_is_made_to_be_printed() -> None:
    html = made("prevalence").html()
    text, ground = re.search(r"body \{[^}]*[ ;]color: (#\w+); background: (#\w+)", html).groups()  # type: ignore[union-attr]
    (fill,) = set(re.findall(r'<rect[^>]*fill="(#\w+)"', html))
    assert (luminance(ground) + 0.05) / (luminance(text) + 0.05) >= 7
    # The line of the interval is read on the bar and beside it.
    assert (luminance(fill) + 0.05) / (luminance("#000") + 0.05) >= 4.5
    assert "@media print" in html
    assert "@page" in html


@EVERY
def test_numbers_are_those_of_the_estimate_rounded_outward(name: str) -> None:
    estimate, level = ESTIMATES[name], 0.9
    first = cells(made(name, level=level))[0][1:]
    lower, upper, _ = estimate.interval(level)
    ends = [(float(lower), float(upper))] if len(first) == 1 else list(zip(lower, upper, strict=True))
    for row, (low, high) in zip(first, ends, strict=True):
        shown = float(Fraction(row[3])), float(Fraction(row[4]))
        assert low - 1e-4 < shown[0] <= low
        assert high <= shown[1] < high + 1e-4
    values = getattr(estimate, "shares", None)
    values = [getattr(estimate, "prevalence", getattr(estimate, "mean", None))] if values is None else values
    assert [row[1] for row in first] == [
        "-" if math.isnan(value) else f"{value:.4f}" for value in list(values)
    ]


def test_bars_have_the_lengths_of_the_estimates() -> None:
    page = ET.fromstring(made("shares").html())
    bars = [float(bar.attrib["width"]) for bar in page.iter("{http://www.w3.org/2000/svg}rect")]
    whole = 720 - 160 - 20
    assert bars == pytest.approx([whole * share for share in ESTIMATES["shares"].shares], abs=0.06)
    (negative,) = ET.fromstring(made("outside").html()).iter("{http://www.w3.org/2000/svg}rect")
    assert negative.attrib["width"] == "0.0"


def test_it_says_what_an_answer_shows_and_what_does_not_fit() -> None:
    text = " ".join(made("prevalence", left_out=3).text().split())
    assert "1000 people answered. Rows without an answer, left out: 3." in text
    assert "epsilon = 1.0987" in text
    assert "by more than a factor of 3." in text
    # 1/28 and 1/4, rounded outward.
    assert "at least 3.5 % and at most 25.0 % after the answer" in text
    assert "covers at least so often" in text
    assert "about so often" in " ".join(made("prevalence", method="wald").text().split())
    assert "do not fit the design" not in text
    outside = " ".join(made("outside").text().split())
    assert "would have a probability of at most 0.0001." in outside
    certain = " ".join(made("certain").text().split())
    assert "epsilon is infinite" in certain
    assert "after the answer." not in certain
    assert "The share of yes to the other question is 1/4" in " ".join(made("crosswise").text().split())
    assert "Write down your true number." in made("mean").text()


def test_counts_of_answers_and_the_likeliest_distribution_are_shown() -> None:
    assert cells(made("prevalence"))[1] == [["Answer", "Count"], ["no", "600"], ["yes", "400"]]
    shares = ESTIMATES["mean"].distribution.maximum_likelihood
    assert cells(made("mean"))[1][1:] == [[str(n), f"{share:.4f}"] for n, share in enumerate(shares)]
    assert cells(made("mean"))[2][1:] == [["0", "500"], ["1", "300"], ["2", "0"], ["3", "200"]]


TWO = UnrelatedQuestionTwoSamples(first="7/10", second="3/10", between=("1/4", "3/4"))


@cases(
    ("options", "part"),
    [
        ({"question": " "}, "question must be a text"),
        ({"question": 3}, "question must be a text"),
        ({"estimate": 0.2}, "estimate must be a Prevalence"),
        ({"estimate": TWO.estimate([1, 0], [1, 0])}, "estimate must be a Prevalence"),
        (
            {"estimate": CheatingDetection(yes=("1/4", "3/4")).estimate([1, 0], [1, 0])},
            "estimate must be a Prevalence",
        ),
        ({"level": 1.0}, "level must be"),
        ({"method": "exact"}, "method must be one of"),
        ({"left_out": -1}, "left_out must be"),
        ({"language": "xx"}, "language must be one of"),
    ],
)
def test_reports_that_cannot_be_made_are_refused(options: dict[str, Any], part: str) -> None:
    with pytest.raises(ParameterError) as error:
        SurveyReport(**({"question": QUESTION, "estimate": ESTIMATES["prevalence"]} | options))
    assert part in str(error.value)
