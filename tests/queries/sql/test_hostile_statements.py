"""No hostile statement gets another library's exception, or an answer that could not be computed."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest

from tests.drawing import SEED
from tests.queries.sql.hostile_statements import outcome, statements


@pytest.mark.sharpest("0", "1")
@pytest.mark.parametrize("half", [0, 1])
def test_each_statement_is_answered_or_refused(half: int) -> None:
    """Others by every commit, 2,000 in all; ``python -m benchmarks hostile`` takes a hundred thousand."""
    found: Counter[str] = Counter()
    count = 1000
    for text in itertools.islice(statements(random.Random(f"hostile {half} {SEED}")), count):
        try:
            found[outcome(text)] += 1
        except Exception as error:
            raise AssertionError(text) from error
    assert found["refused"] > count / 2
    assert found["answered"] > count / 100
