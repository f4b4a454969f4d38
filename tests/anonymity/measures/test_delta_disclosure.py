from __future__ import annotations

import math

import pytest

from sfumato.anonymity.measures.delta_disclosure import delta_disclosure
from tests.anonymity.measures.tables import counted, frequencies, random_tables


def test_delta_follows_the_definition_over_all_values_or_those_present() -> None:
    infinite = 0
    for groups in random_tables(7, 60, cardinality=3):
        everyone = frequencies([value for group in groups for value in group], 3)
        logs = [
            abs(math.log(q / p)) if q else math.inf
            for group in groups
            for q, p in zip(frequencies(group, 3), everyone, strict=True)
            if p
        ]
        present = max(each for each in logs if each < math.inf)
        counts = counted(groups, 3)
        assert delta_disclosure(counts) == pytest.approx(max(logs), abs=1e-12)
        # Only over the values that a class has, as pycanon 1.3.6: the definition's logarithm of 0 is out.
        assert delta_disclosure(counts, present_only=True) == pytest.approx(present, abs=1e-12)
        infinite += max(logs) == math.inf
    assert 0 < infinite < 60
