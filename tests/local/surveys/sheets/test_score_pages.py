"""Sheets of several questions to each person."""

from __future__ import annotations

from typing import Any

import pytest

from sfumato.errors import ParameterError
from sfumato.local.surveys import (
    LANGUAGES,
    Crosswise,
    Mangat,
    SumScore,
    TwoCoins,
    Warner,
    instruction_sheet,
)
from sfumato.privacy._outward import text_above
from tests.cases import cases

SCORE = SumScore(designs=[TwoCoins(), TwoCoins(), Warner(truth="3/4")])
ASKED = ["Have you ever copied?", "Have you ever let copy?", "Have you ever bought an essay?"]


@cases("language", LANGUAGES)
def test_each_question_has_a_page_and_the_analyst_sees_the_epsilon_of_all(language: str) -> None:
    sheet = instruction_sheet(SCORE, question=ASKED, language=language)
    assert len(sheet.pages) == 4
    *pages, last = sheet.text().split("\f")
    for number, (page, question) in enumerate(zip(pages, ASKED, strict=True), 1):
        assert question in page
        assert f"{number} " in page.splitlines()[3]
        assert "3" in page.splitlines()[3]
        assert question in last
        # Three to one by each answer, 27 to 1 by all: a tenth becomes 27 / (27 + 9).
        assert {"10", "75"} <= set(page.strip().split("\n\n")[-1].split())
    assert f"epsilon = {text_above(SCORE.epsilon, 5)}" in last
    assert last.count("TwoCoins(") == 1  # once for neighbors with one design
    assert "Warner(" in last
    assert sheet.html().startswith("<!DOCTYPE html>")


@cases(
    "design, options, rule",
    [
        (SCORE, {"question": ASKED[:2]}, "question must be a list of 3 texts"),
        (SCORE, {"question": "Have you?"}, "question must be a list of 3 texts"),
        (SCORE, {"question": [*ASKED[:2], " "]}, "question must be a list of 3 texts"),
        (SCORE, {"question": ASKED, "other": "Is it?"}, "other must be left out"),
        (SumScore(designs=[Crosswise(innocuous="1/4")] * 2), {"question": ASKED[:2]}, "use a device alone"),
        (SumScore(designs=[Mangat(truth="2/3")] * 2), {"question": ASKED[:2]}, "leave every answer possible"),
        (TwoCoins(), {"question": ASKED}, "question must be a text"),
    ],
)
def test_bad_input_is_refused(design: Any, options: dict[str, Any], rule: str) -> None:
    with pytest.raises(ParameterError, match=rule):
        instruction_sheet(design, **options)
