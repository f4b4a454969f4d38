from __future__ import annotations

import numpy as np
import pytest

from sfumato.anonymity.risk.reidentification import journalist_risk, prosecutor_risk, uniqueness


def test_risks_are_those_of_each_row() -> None:
    sizes, people = np.array([1, 2, 3]), np.array([4, 2, 9])
    rows = np.repeat(1 / people, sizes)
    found = journalist_risk(sizes, people)
    assert found.highest == rows.max() == 0.5
    assert found.average == pytest.approx(rows.mean(), rel=1e-12)
    assert found.rows_at_highest == 2
    alone = prosecutor_risk(sizes)
    assert (alone.highest, alone.average, alone.rows_at_highest) == (1.0, 0.5, 1)
    assert uniqueness(sizes) == pytest.approx(1 / 6, rel=1e-12)
