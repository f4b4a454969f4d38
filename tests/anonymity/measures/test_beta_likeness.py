from __future__ import annotations

import math

import pytest

from sfumato.anonymity.measures.beta_likeness import basic_beta, enhanced_beta
from tests.anonymity.measures.tables import counted, frequencies, random_tables


def test_beta_is_the_smallest_that_the_definitions_allow() -> None:
    infinite = 0
    for groups in random_tables(6, 100):
        everyone = frequencies([value for group in groups for value in group], 6)
        gains = [
            ((q - p) / p, p)
            for group in groups
            for q, p in zip(frequencies(group, 6), everyone, strict=True)
            if q > p + 1e-12
        ]
        largest = max((gain for gain, _ in gains), default=0.0)
        allowed = all(gain <= -math.log(p) for gain, p in gains)
        infinite += not allowed
        counts = counted(groups, 6)
        assert basic_beta(counts) == pytest.approx(largest, abs=1e-12)
        assert enhanced_beta(counts) == pytest.approx(largest if allowed else math.inf, abs=1e-12)
    assert 0 < infinite < 100


def test_no_beta_allows_a_gain_above_the_logarithm() -> None:
    # A class of one value that half of the table has: the gain is 1 and -ln(1/2) is 0.69, so that no beta
    # makes definition 3 hold. pycanon 1.3.6 has the smaller of both, 0.69, for which the gain is too large.
    counts = counted([[0, 0], [1, 1]], 2)
    assert basic_beta(counts) == 1.0
    assert enhanced_beta(counts) == math.inf
