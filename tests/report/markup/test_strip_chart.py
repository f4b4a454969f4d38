"""Strips: marks stand where their values are, near ones share a label, and the end holds the rest."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET

import pytest

from sfumato.report.markup.strip_chart import strip_chart

SVG = "{http://www.w3.org/2000/svg}"


def test_marks_stand_in_proportion_and_near_ones_share_a_label() -> None:
    marks = [0.0, 1.0, 1.01, 2.0, 9.0, math.inf]
    scale = [(0.0, "1 to 1"), (4.0, "<many>")]
    words = {"title": "Odds <i>", "description": "marks", "key": "k"}
    root = ET.fromstring(strip_chart(2.0, marks, top=4.0, scale=scale, **words))
    places = [
        float(re.match(r"M([\d.]+) ", each.get("d") or "")[1])  # type: ignore[index]
        for each in root.iter(f"{SVG}path")
    ]
    left, right = places[0], places[-1]
    assert places[4] == right
    assert (places[3] - left) / (right - left) == pytest.approx(0.5, abs=1e-3)
    assert (places[1] - left) / (right - left) == pytest.approx(0.25, abs=1e-3)
    labels = [each.text for each in root.iter(f"{SVG}text")]
    assert labels == ["1", "2, 3", "4", "5, 6", "1 to 1", "<many>"]
    (bar,) = root.iter(f"{SVG}rect")
    assert float(bar.get("x") or 0) + float(bar.get("width") or 0) == pytest.approx(places[3], abs=0.1)
    assert root.get("aria-labelledby") == "k-title k-desc"
    # A mark is a line: without a stroke of its own it is not to be seen, on paper either.
    assert all(each.get("stroke") and each.get("fill") == "none" for each in root.iter(f"{SVG}path"))
    assert bar.get("fill") != root.get("fill")
    assert not any(each.get("class") for each in root.iter())
