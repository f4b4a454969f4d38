"""What a refusal offers for a query with stated parts fits as it is typed."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import BudgetExceeded
from tests.run_time import run_time

if run_time(__name__):
    TABLE = pa.table({"id": range(60), "g": ["a"] * 60, "x": [0.5] * 60})
SUM = "SUM(x, contribution_bounds_per_group => (0, 1), epsilon => {}) AS s"


def text(epsilon: object, n: object, s: object, options: str = "delta=0") -> str:
    head = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon={epsilon}, {options})"
    return f"{head} COUNT(*, epsilon => {n}) AS n, {SUM.format(s)} FROM data"


def refusal(session: sf.Session, query: str) -> str:
    with pytest.raises(BudgetExceeded) as refused:
        session.sql(query)
    return str(refused.value)


@pytest.mark.parametrize(
    ("budget", "delta"),
    [({"epsilon": 0.5}, "0"), ({"epsilon": 0.5, "delta": 1e-6}, "1e-8"), ({"rho": 0.02}, "1e-8")],
)
def test_the_parts_that_are_offered_fit_as_they_are_typed(budget: dict[str, float], delta: str) -> None:
    with sf.connect(TABLE, privacy_unit="id", rng=1, **budget) as session:  # type: ignore[call-overload]
        said = refusal(session, text(0.9, 0.3, 0.6, f"delta={delta}"))
        numbers = r"at most ([0-9.e-]+).*: epsilon => ([0-9.e-]+) for n, epsilon => ([0-9.e-]+) for s"
        offered = re.search(numbers, said)
        assert offered is not None, said
        whole, n, s = offered.groups()
        assert float(n) + float(s) <= float(whole)
        assert 2 * float(n) == pytest.approx(float(s), rel=1e-4)
        session.sql(text(whole, n, s, f"delta={delta}"))
        assert len(session.ledger.entries()) == 1


def test_the_aggregates_that_fit_as_they_were_asked_are_named() -> None:
    with sf.connect(TABLE, privacy_unit="id", rng=1, epsilon=0.5) as session:
        said = refusal(session, text(0.9, 0.3, 0.6))
        assert "; or ask for n alone, which fits at epsilon 0.3 with its part as it is" in said
        session.sql(text(0.9, 0.3, 0.6).partition(", SUM")[0].replace("0.9", "0.3") + " FROM data")
        assert session.ledger.remaining().epsilon == pytest.approx(0.2)
        said = refusal(session, text(0.9, 0.3, 0.6))
        assert "alone" not in said


def test_what_chooses_groups_has_its_part_in_the_offer() -> None:
    query = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.9, delta=1e-8, max_groups_contributed=1, "
        "group_selection_epsilon=0.3) g, COUNT(x, epsilon => 0.2) AS n FROM data GROUP BY g"
    )
    with sf.connect(TABLE, privacy_unit="id", rng=1, epsilon=0.3, delta=1e-6) as session:
        said = refusal(session, query)
        assert re.search(r": epsilon => 0\.\d+ for n, group_selection_epsilon=0\.\d+", said), said
        plain = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=9, delta=0) COUNT(*) AS n FROM data"
        assert "proportion" not in refusal(session, plain)
