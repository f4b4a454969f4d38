"""Bars: where they lie, and what an odd number does to them."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from sfumato.report.markup.bar_chart import Bar, axis, bar_chart

SVG = "{http://www.w3.org/2000/svg}"
finite = st.floats(allow_nan=False, allow_infinity=False)


def drawn(bars: list[Bar]) -> ET.Element:
    return ET.fromstring(bar_chart(bars, title="t", description="d", ends=("0", "1"), key="c"))


def test_a_bar_goes_from_zero_to_its_value_and_the_whisker_spans_the_interval() -> None:
    bars = [Bar(name="a", value=50, lower=25, upper=100), Bar(name="<b>", value=-100, lower=-100, upper=0)]
    made = drawn(bars)
    first, second = made.findall(f"{SVG}rect")
    middle = 190 + 438 / 2
    assert (float(first.get("x", "")), float(first.get("width", ""))) == (middle, 438 / 4)
    assert (float(second.get("x", "")), float(second.get("width", ""))) == (190, 438 / 2)
    whisker = made.find(f"{SVG}path")
    assert whisker is not None
    places = re.findall(r"[MH]([\d.]+)", whisker.get("d", ""))
    assert [float(x) for x in places[:2]] == [round(middle + 438 / 8, 1), 628.0]
    assert [text.text for text in made.findall(f"{SVG}text")][:2] == ["a", "<b>"]
    assert made.get("role") == "img"
    assert made.get("aria-labelledby") == "c-title c-desc"


def test_an_infinite_end_has_no_cap() -> None:
    made = drawn([Bar(name="a", value=1, lower=0, upper=float("inf"))])
    whisker = made.find(f"{SVG}path")
    assert whisker is not None
    assert whisker.get("d", "").count("V") == 1


@given(st.lists(st.tuples(finite, finite, finite).map(sorted), min_size=1, max_size=3))
def test_every_number_stays_in_the_picture(ends: list[list[float]]) -> None:
    bars = [Bar(name="a", value=value, lower=lower, upper=upper) for lower, value, upper in ends]
    low, high = axis(bars)
    assert low <= 0 <= high
    made = drawn(bars)
    for bar in made.findall(f"{SVG}rect"):
        x, width = float(bar.get("x", "")), float(bar.get("width", ""))
        assert x >= 190
        assert width >= 0
        assert x + width <= 628.2
