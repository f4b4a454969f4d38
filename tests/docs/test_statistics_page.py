"""The page "Which statistic?": its table is that of its benchmark, and names what is there."""

from __future__ import annotations

import re
from pathlib import Path

import sfumato.mechanisms
from benchmarks.which_statistic import BEGIN, END, QUESTIONS, SIZES, cell
from tests.cases import cases

PAGE = (Path(__file__).parents[2] / "docs" / "statistics.md").read_text(encoding="utf-8")
ROWS = [
    [part.strip() for part in line.strip("|").split("|")]
    for line in PAGE.partition(BEGIN)[2].partition(END)[0].splitlines()
    if line.startswith("|")
]
FIGURE = re.compile(r"[\d,]+(\.\d+)?( \([\d,]+(\.\d+)?\))?")
CHEAP = ("a mean, between 0 and 100", "a share, in percentage points", "counts of 50 listed groups")


def numbers(figure: str) -> list[float]:
    return [float(number.replace(",", "")) for number in re.findall(r"[\d.,]+", figure)]


def agrees(one: str, other: str) -> bool:
    """Whether figures are of one error; seeds are fixed, so a quarter allows for other draws of it."""
    pairs = zip(numbers(one), numbers(other), strict=True)
    return all(abs(found - stated) <= 0.25 * stated for found, stated in pairs)


def test_the_table_has_a_row_for_each_question_and_a_figure_for_each_size() -> None:
    assert ROWS[0] == ["question", "use", "epsilon", *(f"{n:,}" for n in SIZES)]
    assert [row[:3] for row in ROWS[2:]] == [[each.text, each.use, each.cost] for each in QUESTIONS]
    for row in ROWS[2:]:
        assert len(row) == 3 + len(SIZES)
        assert all(FIGURE.fullmatch(figure) for figure in row[3:]), row


@cases("text", CHEAP)
def test_the_figures_of_the_page_are_those_of_the_benchmark(text: str) -> None:
    question = next(each for each in QUESTIONS if each.text == text)
    stated = next(row for row in ROWS if row[0] == text)[3:]
    for n, figure in zip(SIZES[:2], stated, strict=False):
        assert agrees(cell(question, n), figure)
    # Half the epsilon has twice the error, and would be noticed.
    twice = [2 * number for number in numbers(stated[0])]
    assert not agrees(" ".join(map(str, twice)), stated[0])


def test_what_the_page_names_is_public() -> None:
    lists = PAGE.partition("## Choosing")[2].partition("\n\nAn example")[0]
    named = re.findall(r"`([A-Za-z_]+)(?:\.\w+)?`", lists + " ".join(row[1] for row in ROWS[2:]))
    methods = {"coefficient_errors"}
    assert set(named) - methods <= set(sfumato.mechanisms.__all__)
    assert len(set(named)) > 25


def test_the_example_of_the_page_runs() -> None:
    for block in re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE):
        exec(block, {})
