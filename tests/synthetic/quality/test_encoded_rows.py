"""Rows from frames, labels, cells and released models."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import ParameterError, SourceError
from sfumato.mechanisms import Laplace, Release
from sfumato.privacy import Neighboring
from sfumato.synthetic import (
    Categorical,
    Marginals,
    Ordered,
    TableDomain,
    WorkloadError,
    curator_quality_report,
)
from sfumato.synthetic.quality.encoded_rows import encoded, rows_of
from tests.synthetic.quality.test_marginal_distances import SMALL, drawn

DOMAIN = TableDomain(
    bins=Ordered(0, 0.3, bins=3, missing=True),
    whole=Ordered.integers(17, 90),
    days=Ordered(edges=[dt.date(2020, 1, 1), dt.date(2020, 2, 1), dt.date(2021, 1, 1)], missing=True),
    sex=Categorical(["f", "m"], other=True, missing=True),
)


def test_cells_are_taken_as_they_are_and_others_are_refused() -> None:
    codes = drawn(SMALL, 17, 1)
    assert encoded("real", SMALL, codes) is codes
    wrong: Any
    for wrong in (codes[:, :2], codes.astype(float), codes + 5, codes - 5, codes[0]):
        with pytest.raises(ParameterError, match=r"^real must") as caught:
            encoded("real", SMALL, wrong)
        assert "17" not in str(caught.value)


def test_labels_have_the_cells_that_they_name() -> None:
    codes = drawn(DOMAIN, 200, 2)
    table = DOMAIN.decode(codes)
    for wide in (table, table.cast(pa.schema([(n, _wide(k)) for n, k in _fields(table)]))):
        assert np.array_equal(encoded("synthetic", DOMAIN, wide), codes)
    unknown = table.set_column(0, "bins", pa.array(["[7, 8)"] * 200))
    missing = DOMAIN.sizes[0] - 1
    assert (encoded("synthetic", DOMAIN, unknown)[:, 0] == missing).all()


def _fields(table: pa.Table) -> list[tuple[str, pa.DataType]]:
    return [(field.name, field.type) for field in table.schema]


def _wide(kind: pa.DataType) -> pa.DataType:
    return pa.large_string() if kind == pa.string() else kind


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Model(Release):
    """A released model as generators return them: it draws rows of labels."""

    def sample(self, rows: int, *, rng: Any = None) -> pa.Table:
        return DOMAIN.decode(self.value[np.random.default_rng(rng).integers(0, len(self.value), rows)])

    def table(self, rows: int | None = None, *, rng: Any = None) -> Any:  # type: ignore[override]
        return self.sample(300, rng=rng)


def test_a_released_model_is_a_table_of_rows_that_it_draws() -> None:
    cells = drawn(DOMAIN, 500, 3)
    loss = Laplace(sensitivity=1, scale=1).privacy_loss
    model = Model(value=cells, loss=loss, neighboring=Neighboring.ADD_REMOVE)
    reports = [curator_quality_report(cells, model, DOMAIN, rng=4) for _ in range(2)]
    assert str(reports[0]) == str(reports[1])
    assert reports[0].synthetic == (300, 300)
    query = WorkloadError(domain=DOMAIN, synthetic=model, workload=Marginals.every(1), rows=500)
    assert query.synthetic.shape == (300, 4)
    assert 0 < query(DOMAIN.decode(cells[:0]).cast(_values())) <= 1


def _values() -> pa.Schema:
    kinds = (pa.float64(), pa.int64(), pa.date32(), pa.string())
    return pa.schema(list(zip(DOMAIN, kinds, strict=True)))


def test_a_release_of_numbers_is_no_table_of_rows() -> None:
    number = Laplace(sensitivity=1, scale=1).release(3, rng=1)
    with pytest.raises(SourceError):
        rows_of("synthetic", number)
