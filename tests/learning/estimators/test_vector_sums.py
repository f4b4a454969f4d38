"""Sums on a grid: what rounding adds to a row, and no more."""

from __future__ import annotations

import math

from sfumato.learning.estimators.vector_sums import SumSpecification


def test_rounding_takes_between_one_step_and_two_beyond_half_the_root_of_the_entries() -> None:
    for entries in range(1, 500):
        beyond = math.isqrt(SumSpecification(norm=1.0, entries=entries).max_squared_norm) - 2**20
        assert 1 <= beyond - math.sqrt(entries) / 2 <= 2, entries
