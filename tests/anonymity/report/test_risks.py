from __future__ import annotations

import numpy as np

from sfumato.anonymity.report.risks import Risks


def test_risks_are_listed_by_name() -> None:
    found = Risks(np.array([1, 3]), np.array([2, 4]), 100).to_dict()
    assert found["uniqueness"] == 0.25
    assert found["prosecutor"] == {"highest": 1.0, "average": 0.5, "rows_at_highest": 1}
    assert found["journalist"] == {"highest": 0.5, "average": 0.3125, "rows_at_highest": 1}
    assert found["marketer"] == 0.3125
    assert found["population_uniqueness"]["population_size"] == 100
