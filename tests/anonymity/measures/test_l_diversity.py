from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from sfumato.anonymity.measures.l_diversity import distinct_values, entropy_values, recursive_ratios
from tests.anonymity.measures.tables import counted, frequencies, random_tables


def test_each_class_follows_the_definitions() -> None:
    for groups in random_tables(4, 60):
        counts = counted(groups, 6)
        assert distinct_values(counts).tolist() == [len(set(group)) for group in groups]
        entropies = [-sum(p * math.log(p) for p in frequencies(group, 6) if p) for group in groups]
        np.testing.assert_allclose(entropy_values(counts), np.exp(entropies), rtol=1e-12)
        for l in (2, 3):  # noqa: E741 - the paper's name
            for group, found in zip(groups, recursive_ratios(counts, l), strict=True):
                ranked = sorted(Counter(group).values(), reverse=True)
                rest = sum(ranked[l - 1 :])
                assert found == pytest.approx(ranked[0] / rest if rest else math.inf, rel=1e-12)


def test_equally_frequent_values_have_an_integer_l() -> None:
    # e to the entropy, in floats, is below it for some: pycanon 1.3.6 rounds these down to l - 1.
    below = 0
    for l in range(2, 60):  # noqa: E741 - the paper's name
        assert entropy_values(counted([list(range(l)) * 7], l))[0] == l
        below += math.exp(-sum([1 / l * math.log(1 / l)] * l)) < l
    assert below


def test_the_most_frequent_value_is_compared_with_the_rarest_ones() -> None:
    # pycanon 1.3.6 sorts the counts upwards, and so has 1 / 10 and a c of 1: by definition 5 the most
    # frequent value comes first, and an attacker who excludes nothing is right about it 10 times in 11.
    assert recursive_ratios(counted([[0] * 10 + [1]], 2), 2).tolist() == [10.0]
