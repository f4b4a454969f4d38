"""Plans: what they say against releases of made-up rows, which method they take, and what they refuse."""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.privacy import Neighboring
from sfumato.synthetic import Marginals, Ordered, TableDomain, plan
from sfumato.synthetic.domain.attributes import Codes
from sfumato.synthetic.marginals.table_counts import CountedRows
from sfumato.synthetic.planning.method_plans import METHODS, PlanRequest

DOMAIN = TableDomain(a=list(range(4)), b=list(range(6)), c=[True, False])
ROWS = 48_000


def test_the_errors_of_a_plan_are_those_of_releases() -> None:
    """Over 60 simulated releases of evenly filled cells: deviations, and rows in wrong cells."""
    codes: Codes = np.array(list(np.ndindex(4, 6, 2)) * (ROWS // 48))
    made = plan(DOMAIN, Marginals.every(2), epsilon=0.5, delta=1e-9, rows=ROWS)
    request = PlanRequest(domain=DOMAIN, workload=Marginals.every(2), epsilon=0.5, delta=1e-9)
    counted, source = CountedRows(codes, DOMAIN.sizes), np.random.default_rng(8)
    for name, workload in (("residual", Marginals.every(2)), ("independent", Marginals.every(1))):
        mechanism, errors = request.residuals(workload), {each.columns: each for each in made[name].errors}
        off: dict[tuple[str, ...], list[float]] = {columns: [] for columns in errors}
        for _ in range(60):
            released = mechanism.release(counted, rng=source)
            for columns in errors:
                if name == "residual":
                    found = released.marginal(*columns).counts
                else:
                    single = [released.marginal(column).counts / ROWS for column in columns]
                    found = reduce(np.multiply.outer, single) * ROWS
                off[columns] += (found - ROWS / found.size).ravel().tolist()
        for columns, each in errors.items():
            drawn = np.array(off[columns])
            assert drawn.std() == pytest.approx(each.stddev, rel=0.2), (name, columns)
            misplaced = np.abs(drawn).mean() * each.cells / 2
            if name == "residual":
                assert misplaced == pytest.approx(each.misplaced, rel=0.2)
            else:
                assert 0.4 * each.misplaced < misplaced < 1.1 * each.misplaced


def test_few_rows_in_many_cells_are_for_products_and_many_for_residuals() -> None:
    domain = TableDomain({f"c{i}": Ordered.integers(0, 99) for i in range(4)})
    made = plan(domain, Marginals.every(2), epsilon=1.0, delta=1e-9)
    assert made.recommended is None
    assert len(METHODS) == len(made.methods) == 2
    need = made["residual"].rows_needed()
    assert made["independent"].rows_needed() < need / 10
    for rows, name in ((need, "residual"), (need - 1, "independent"), (1, "independent")):
        asked = plan(domain, Marginals.every(2), epsilon=1.0, delta=1e-9, rows=rows)
        assert asked.recommended == name
        assert f"take: {name}." in str(asked)
    assert made["residual"].rows_needed(0.1) == pytest.approx(need / 2, rel=1e-3)
    assert made["residual"].unbiased
    assert not made["independent"].unbiased
    assert made["residual"].memory > 6 * 10_000 * 8


def test_noise_follows_the_guarantee_the_relation_and_the_rows_of_a_person() -> None:
    plain = plan(DOMAIN, Marginals.every(2), epsilon=1.0, delta=1e-9)
    for name in ("residual", "independent"):
        several = plan(DOMAIN, Marginals.every(2), epsilon=1.0, delta=1e-9, max_rows_contributed=3)
        assert several[name].misplaced == pytest.approx(3 * plain[name].misplaced, rel=1e-3)
        relation = Neighboring.REPLACE_ONE
        replaced = plan(DOMAIN, Marginals.every(2), epsilon=1.0, delta=1e-9, neighboring=relation)
        assert replaced[name].misplaced > 1.3 * plain[name].misplaced
    many = TableDomain({f"c{i}": [0, 1] for i in range(13)})
    assert "and 70 more tables" in str(plan(many, Marginals.every(2), epsilon=1.0, delta=1e-9))


def test_a_method_whose_tables_are_too_large_is_left_out_and_none_is_an_error() -> None:
    domain = TableDomain({f"c{i}": Ordered.integers(0, 9999) for i in range(2)})
    made = plan(domain, Marginals.every(2), epsilon=1.0, delta=1e-9)
    assert [method.name for method in made.methods] == ["independent"]
    with pytest.raises(ParameterError, match="name must be one of"):
        _ = made["residual"]
    for share in (0, -1, math.nan):
        with pytest.raises(ParameterError, match="share must be positive"):
            made["independent"].rows_needed(share)
    refused: list[tuple[dict[str, Any], str]] = [
        ({"epsilon": -1.0}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"rows": 0}, "rows must be positive"),
        ({"rows": math.nan}, "rows must be"),
        ({"max_rows_contributed": 0}, "max_rows_contributed must be"),
        ({"workload": Marginals([("x",)])}, "column must be one of"),
    ]
    for given, part in refused:
        with pytest.raises(ParameterError, match=part):
            plan(**{"domain": DOMAIN, "workload": Marginals.every(2), "epsilon": 1.0, "delta": 1e-9, **given})
