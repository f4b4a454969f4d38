"""Plans: what they say against releases of made-up rows, which method they take, and what they refuse."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.privacy import Neighboring
from sfumato.synthetic import (
    AIM,
    MST,
    IndependentMarginals,
    Marginals,
    Ordered,
    ResidualMechanism,
    TableDomain,
    plan,
)
from sfumato.synthetic.domain.attributes import Codes
from sfumato.synthetic.generators.generator import Generator
from sfumato.synthetic.generators.private_table import PrivateTable
from sfumato.synthetic.marginals.table_counts import CountedRows
from sfumato.synthetic.planning.method_plans import PlanRequest
from sfumato.synthetic.planning.methods import METHODS

DOMAIN = TableDomain(a=list(range(4)), b=list(range(6)), c=[True, False])
ROWS = 48_000


def test_the_errors_of_a_plan_are_those_of_releases() -> None:
    """Over 60 simulated releases of evenly filled cells: deviations, and rows in wrong cells."""
    codes: Codes = np.array(list(np.ndindex(4, 6, 2)) * (ROWS // 48))
    made = plan(DOMAIN, Marginals.every(2), epsilon=0.5, delta=1e-9, rows=ROWS)
    request = PlanRequest(domain=DOMAIN, workload=Marginals.every(2), epsilon=0.5, delta=1e-9)
    counted, source = CountedRows(codes, DOMAIN.sizes), np.random.default_rng(8)
    for name, method in (("residual", ResidualMechanism), ("independent", IndependentMarginals)):
        mechanism: Any = method.calibrated(**request.guarantee)
        errors = {each.columns: each for each in made[name].errors}
        off: dict[tuple[str, ...], list[float]] = {columns: [] for columns in errors}
        for _ in range(60):
            released = mechanism.release(counted, rng=source)
            for columns in errors:
                if name == "residual":
                    found = released.marginal(*columns).counts
                else:
                    found = released.marginal(*columns)
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
    assert len(METHODS) == len(made.methods) == 4
    need = made["residual"].rows_needed()
    assert made["independent"].rows_needed() < need / 10
    for rows, name in ((need, "residual"), (need - 1, "aim"), (1, "aim")):
        asked = plan(domain, Marginals.every(2), epsilon=1.0, delta=1e-9, rows=rows)
        assert asked.recommended == name
        assert f"take: {name}." in str(asked)
    assert made["residual"].rows_needed(0.1) == pytest.approx(need / 2, rel=1e-3)
    assert made["residual"].unbiased
    assert not made["independent"].unbiased
    assert made["residual"].memory > 6 * 10_000 * 8


def test_noise_follows_the_guarantee_the_relation_and_the_rows_of_a_person() -> None:
    plain = plan(DOMAIN, Marginals.every(2), epsilon=1.0, delta=1e-9)
    for name in ("residual", "aim", "mst", "independent"):
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


def test_the_noise_of_a_generator_is_the_one_that_it_draws() -> None:
    """What it measures is watched: the noise of columns, of the first other table, and how many follow."""
    domain = TableDomain(a=list(range(9)), b=list(range(7)), c=list(range(5)), d=[0, 1], e=[0, 1, 2])
    source = np.random.default_rng(3)
    hidden = source.integers(0, 2, (20_000, 1))
    codes: Codes = (
        hidden * np.array([4, 3, 2, 1, 1]) + source.integers(0, [5, 4, 3, 1, 2], (20_000, 5))
    ).astype(np.int64)
    counted, measure = CountedRows(codes, domain.sizes), PrivateTable.measure
    for method, rows in ((AIM, 20_000), (AIM, 300), (MST, None), (IndependentMarginals, None)):
        generator: Generator = method.calibrated(domain, Marginals.every(2), epsilon=1.0, delta=1e-9)
        drawn: list[tuple[tuple[int, ...], float]] = []

        def spy(table: PrivateTable, clique: tuple[int, ...], sigma: Fraction, into: Any = drawn) -> Any:
            into.append((clique, float(sigma)))
            return measure(table, clique, sigma)

        few = CountedRows(codes[:300], domain.sizes) if rows == 300 else counted
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(PrivateTable, "measure", spy)
            generator.release(few, rng=5)
        noise = generator.public_noise(rows)
        columns = [sigma for clique, sigma in drawn if len(clique) == 1]
        assert columns[:5] == pytest.approx(noise.columns, rel=1e-5)
        others = [(clique, sigma) for clique, sigma in drawn if len(clique) > 1]
        assert (noise.measured > 0) <= len(others) <= 3 * noise.measured
        if method is MST:
            # Larger pairs of the tree get less noise than on average: the cost is that of equal ones.
            sigmas = np.array([sigma for _, sigma in others])
            assert (len(others), (sigmas**-2.0).sum()) == (
                4,
                pytest.approx(4 / noise.tables[0, 1] ** 2, rel=1e-3),
            )
        elif others:
            clique, sigma = others[0]
            # Cells were merged since: a table is not larger than the domain says, nor is its share.
            assert noise.tables[clique] == pytest.approx(sigma, rel=0.5)


def test_prefixes_and_ranges_are_planned() -> None:
    domain = TableDomain(age=Ordered.integers(0, 63), sex=["f", "m"])
    cells = plan(domain, Marginals([("age", "sex")]), epsilon=1.0, delta=1e-9)
    ranges = plan(domain, Marginals.ranges("age", by=["sex"]), epsilon=1.0, delta=1e-9)
    mechanism = ResidualMechanism.calibrated(
        domain, Marginals.ranges("age", by=["sex"]), epsilon=1.0, delta=1e-9
    )
    (error,) = ranges["residual"].errors
    assert error.stddev == mechanism.stddev("age", "sex")
    assert error.misplaced == pytest.approx(2 * math.sqrt(2 / math.pi) * error.stddev / 2)
    # The columns of a model are scaled to one number of rows: the covariance of cells, written out.
    (single,) = plan(domain, Marginals.ranges("age"), epsilon=1.0, delta=1e-9)["independent"].errors
    age, sex = IndependentMarginals.calibrated(domain, epsilon=1.0, delta=1e-9).public_noise().columns
    rows = 1 / (1 / (64 * age**2) + 1 / (2 * sex**2))
    covariance = age**2 * (np.eye(64) - 1 / 64) + rows / 64**2
    variances = [covariance[a : b + 1, a : b + 1].sum() for a in range(64) for b in range(a, 64)]
    assert single.stddev == pytest.approx(math.sqrt(np.mean(variances)), rel=1e-9)
    assert "about" in str(cells)
