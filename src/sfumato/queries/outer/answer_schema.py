"""The columns of an answer before it is there: the noise step over no rows says them, and no row is read."""

from __future__ import annotations

import pyarrow as pa

from sfumato.numerics.randomness.source import random_source
from sfumato.queries.plan.measure import BinCounts
from sfumato.queries.plan.query import FoundBounds
from sfumato.queries.plan.schema import ARROW_TYPES
from sfumato.queries.pricing.found_bounds import FALLBACK_BOUNDS, with_found_bounds
from sfumato.queries.pricing.price import PricedQuery
from sfumato.queries.release.noise import add_noise
from sfumato.queries.release.table import TableRelease

__all__ = ["answer_schema"]

_LEAVES = pa.list_(pa.struct([("leaf", pa.int64()), ("n", pa.int64())]))


def answer_schema(priced: PricedQuery) -> pa.Schema:
    """Return the columns that the answer of a priced query will have, with the ends of intervals.

    Parameters
    ----------
    priced : PricedQuery

    Returns
    -------
    pyarrow.Schema
    """
    fallback = {
        each.search: FoundBounds(each.search.words(), *FALLBACK_BOUNDS, found=False)
        for each in priced.searches
    }
    bounded = with_found_bounds(priced, fallback) if fallback else priced
    keys = [(f"k{i}", ARROW_TYPES[key.expression.type]) for i, key in enumerate(priced.query.keys)]
    measures = [
        (f"m{i}", _LEAVES if isinstance(measure.value, BinCounts) else pa.int64())
        for i, measure in enumerate(bounded.measures)
    ]
    nothing = pa.schema([*keys, *measures]).empty_table()
    record = add_noise(bounded, nothing, random_source(0), privacy_unit="", found=tuple(fallback.values()))
    schema = TableRelease(record, None, bounded).to_arrow(intervals=True).schema
    reports = {field.name: pa.string() for field in schema if pa.types.is_null(field.type)}  # texts, if any
    return pa.schema([(field.name, reports.get(field.name, field.type)) for field in schema])
