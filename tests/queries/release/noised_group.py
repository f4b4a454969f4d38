"""A query's answer for one group of stated exact integers, under any noise that is stated or drawn."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.numerics.distributions.truncated_laplace import TruncatedLaplaceDistribution
from sfumato.numerics.randomness.source import random_source
from sfumato.queries.plan.measure import RowSum
from sfumato.queries.plan.query import Column, ColumnType, Scan, Schema
from sfumato.queries.pricing.price import PricedQuery, price
from sfumato.queries.release.computed_columns import with_computed
from sfumato.queries.release.noise import add_noise
from sfumato.queries.release.table import TableRelease
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.catalog import Catalog
from tests.queries.noised import noised
from tests.queries.release.noise_lattice import lattice

ROWS = Schema(
    (
        Column("id", ColumnType.INTEGER),
        Column("g", ColumnType.TEXT),
        Column("i", ColumnType.INTEGER),
        Column("j", ColumnType.INTEGER),
        Column("x", ColumnType.FLOAT),
        Column("y", ColumnType.FLOAT),
    )
)


@dataclass(frozen=True, slots=True)
class NoisedGroup:
    """A release of one group: each row is another noise, and has a probability; the last row has no noise."""

    release: TableRelease
    masses: NDArray[np.float64]

    def covered(self, name: str, level: float) -> tuple[float, NDArray[np.float64]]:
        """Return the coverage of a column's intervals, and how wide these are."""
        table = self.release.to_arrow(intervals=True, level=level)
        *noisy, true = as_floats(table[name])
        low, high = (as_floats(table[f"{name}{end}"])[:-1] for end in ("_lower", "_upper"))
        slack = 1e-12 * max(1.0, abs(true))
        held = (low - slack <= true) & (true <= high + slack)
        assert len(noisy) == len(self.masses)
        return float(self.masses[held].sum()), high - low

    def values(self, name: str) -> NDArray[np.float64]:
        """Return the noisy values of a column."""
        return as_floats(self.release.to_arrow()[name])[:-1]


def as_floats(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Return a column as floats, NULL as NaN."""
    return np.array([np.nan if value is None else value for value in column.to_pylist()], dtype=np.float64)


def priced_query(select: str, options: str, *, grouped: bool = False) -> PricedQuery:
    """Price a SELECT list over rows of one unit each."""
    group = " GROUP BY g" if grouped else ""
    text = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({options}) {select} FROM data{group}"
    return price(read(text, Catalog({"data": Scan("data", ROWS, "id")})))


def exact_integers(priced: PricedQuery, rows: dict[str, NDArray[np.float64]]) -> list[int]:
    """Return the measures of rows of one unit each, all of which have all values."""
    found = []
    for measure in priced.measures:
        value = measure.value
        if isinstance(value, RowSum):
            terms = np.full(len(rows["x"]), 1.0)
            for factor in value.factors:
                (name,) = re.findall(r"(?:^|THEN )`(\w)`", factor.expression.sql)
                steps = np.round(rows[name] / 2.0**factor.exponent)
                terms *= np.clip(steps, factor.lower, factor.upper) - factor.center
            found.append(int((terms - value.offset).sum()))
        else:
            found.append(len(rows["x"]))
    return found


def _release(
    priced: PricedQuery, noisy: Sequence[NDArray[np.int64]], exact: Sequence[int], masses: NDArray[np.float64]
) -> NoisedGroup:
    if priced.threshold is not None:
        masses = masses * _chances(priced, noisy[0], exact[0])
    shown = masses > 0
    measures = [np.append(each[shown], true) for each, true in zip(noisy, exact, strict=True)]
    keys = {f"k{index}": pa.array(["a"] * len(measures[0])) for index in range(len(priced.query.keys))}
    table = pa.table(keys | {f"m{index}": pa.array(each) for index, each in enumerate(measures)})
    plain = replace(priced, query=replace(priced.query, computed=()))
    record = add_noise(plain, table.slice(0, 0), random_source(1), privacy_unit="id")
    record = with_computed(replace(record, table=table), priced.query.computed)
    return NoisedGroup(TableRelease(record, None, priced), masses[shown] / masses[shown].sum())


def _chances(priced: PricedQuery, noisy: NDArray[np.int64], exact: int) -> NDArray[np.float64]:
    """Return with which probability each noisy count is shown: at the threshold, by a coin."""
    threshold, noise = priced.threshold, noised(priced.mechanisms[0]).distribution
    assert threshold is not None
    coin = np.where(noisy == threshold.units, float(threshold.probability), 1.0)
    if isinstance(noise, TruncatedLaplaceDistribution) and noise.weight:
        lowest = (noisy == threshold.units) & (noisy - exact == -noise.limit)
        coin[lowest] = min(1.0, float(threshold.probability / (1 - threshold.probability)))
    return np.where(noisy < threshold.units, 0.0, coin)


def whole_lattice(priced: PricedQuery, exact: Sequence[int], outside: float = 1e-5) -> NoisedGroup:
    """Return the group under all values of its noise; only what passes the threshold, if there is one."""
    values, masses = lattice(*(noised(each).distribution for each in priced.mechanisms), outside=outside)
    noisy = [(one + true).astype(np.int64) for one, true in zip(values, exact, strict=True)]
    return _release(priced, noisy, exact, masses)


def drawn(priced: PricedQuery, exact: Sequence[int], draws: int, seed: int) -> NoisedGroup:
    """Return the group under some draws of its noise; only what passes the threshold, if there is one."""
    source = random_source(seed)
    noisy = [
        true + np.asarray(noised(mechanism).distribution.sample(draws, source), dtype=np.int64)
        for mechanism, true in zip(priced.mechanisms, exact, strict=True)
    ]
    return _release(priced, noisy, exact, np.ones(draws))
