"""A stored release is read back by its number, without the data."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import LedgerCorrupt, LedgerUnavailable, ParameterError
from sfumato.ledger import Budget, Ledger
from sfumato.privacy import Laplace
from sfumato.queries import TableRelease
from sfumato.queries.planner.limit_record import LimitsRecord
from tests.run_time import run_time

DAY = dt.date(2026, 1, 1)
if run_time(__name__):
    DATA = pa.table({"id": range(3000), "g": [i % 3 for i in range(3000)], "day": [DAY] * 3000})

TEXT = (
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-7, max_groups_contributed=1) "
    "g, COUNT(*) AS n, SUM(id) AS s, COUNT(*) * 2 AS twice FROM data GROUP BY g HAVING n > 5"
)


def _ledger(path: Path) -> TableRelease:
    """Ask for an answer, limits, a counter, and an analyst's answer; return the first."""
    with sf.connect(DATA, privacy_unit="id", epsilon=20, delta=1e-4, ledger=path) as session:
        first = session.sql(TEXT)
        session.suggest_limits(TEXT, epsilon=1, groups=3)
        counting = session.table().agg(n=sf.count())
        session.counter(
            counting, moment="day", start=DAY, every="day", steps=2, epsilon=1, delta=1e-7, max_periods=1
        ).close()
        session.ledger.grant("ada", Budget.approximate(epsilon=5, delta=1e-5))
        session.ledger.charge(Laplace(4.0), delta=0.0)
    with sf.connect(DATA, privacy_unit="id", epsilon=20, delta=1e-4, ledger=path, analyst="ada") as ada:
        ada.sql(TEXT.replace("n > 5", "n > 6"))
        assert ada.account.release(5).to_arrow().num_rows == 3
        with pytest.raises(ParameterError, match="number must be that of a charge of ada"):
            ada.account.release(1)
    return first


def test_a_release_is_read_back_by_its_number(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    first = _ledger(path)
    with Ledger.read(path) as book:
        found, limits = book.release(1), book.release(2)
        assert isinstance(found, TableRelease)
        assert isinstance(limits, LimitsRecord)
        assert found.record.to_bytes() == first.record.to_bytes()
        assert found.to_arrow(intervals=True).equals(first.to_arrow(intervals=True))
        assert found.receipt == first.receipt
        assert found.replayed
        assert book.release(5).epsilon == 1
        assert len(book.entries()) == 5
    assert limits.to_arrow().num_rows > 10
    text = found.explain()
    for words in (
        "(1, 1e-07)-differential privacy", "n: COUNT(*)", "Groups: g", "twice: ", "Found for", "interval of n"
    ):  # fmt: skip
        assert words in text
    assert "<table" in found._repr_html_()
    assert f"{found}" == f"{first}"


def test_what_there_is_not_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    _ledger(path)
    with Ledger.read(path) as book:
        for number, words in (
            (0, "number must be an integer of at least 1"),
            (True, "number must be an integer"),
            ("1", "number must be an integer"),
            (6, "number must be that of a charge with a stored release"),
            (4, "number must be that of a charge with a stored release"),
            (3, "charge 3 must have a table stored"),
        ):
            with pytest.raises(ParameterError, match=words):
                book.release(number)  # type: ignore[arg-type]
    with pytest.raises((LedgerCorrupt, LedgerUnavailable)):
        book.release(1)
