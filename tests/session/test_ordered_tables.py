"""Workloads with prefixes and ranges, from a session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import ParameterError
from sfumato.synthetic import Marginals, Ordered, TableDomain

DOMAIN = TableDomain(age=Ordered.integers(0, 31), sex=["f", "m"])


def people() -> pa.Table:
    ages = np.arange(6400) % 32
    return pa.table({"age": ages, "sex": np.where(np.arange(6400) < 3200, "f", "m")})


def test_ranges_are_charged_once_and_are_another_request_than_cells(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    cells = Marginals([("age", "sex")])
    workloads = [cells, cells.with_ranges("age")]
    with sf.connect(people(), privacy_unit=sf.ROW, epsilon=9.0, delta=1e-6, ledger=path) as session:
        found = [session.marginals(DOMAIN, each, epsilon=1.0, delta=1e-8) for each in workloads]
        assert len(session.ledger.entries()) == 2
        left = session.account.remaining()
        again = session.marginals(DOMAIN, cells.with_ranges("age"), epsilon=1.0, delta=1e-8)
        assert (again.receipt, session.account.remaining()) == (None, left)
        assert again.to_json() == found[1].to_json()
        with pytest.raises(ParameterError, match="column 'sex' must be ordered"):
            session.marginals(DOMAIN, cells.with_ranges("sex"), epsilon=1.0, delta=1e-8)
        with pytest.raises(ParameterError, match="column 'sex' must be ordered"):
            session.synthesize(DOMAIN, workload=cells.with_ranges("sex"), epsilon=1.0, delta=1e-8)
        assert len(session.ledger.entries()) == 2
    wanted = {"age": [(8, 23)]}
    ranges = [each.ranges("age", by=["sex"], between=wanted) for each in found]
    for table in ranges:
        off = np.abs(table.counts - 1600)
        assert (off < 7 * table.stddev).all()  # fails by chance once in 10**11
    assert ranges[1].stddev.max() < 0.85 * ranges[0].stddev.max()


def test_a_model_regards_ranges() -> None:
    with sf.connect(people(), privacy_unit=sf.ROW, epsilon=9.0, delta=1e-6, rng=3) as session:
        given: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-8}
        session.synthesize(DOMAIN, **given)
        model = session.synthesize(DOMAIN, **given, workload=Marginals.every(2).with_ranges("age"))
        assert model.receipt is not None
        assert len(session.ledger.entries()) == 2
        assert abs(model.marginal("age")[8:24].sum() - 3200) < 300
