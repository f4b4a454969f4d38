"""From cells back to values: labels, or numbers and dates drawn within bins."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.synthetic.domain.attributes import Attribute, Categorical, Codes, Ordered

__all__ = ["decoded_column"]

_EPOCH = dt.date(1970, 1, 1)


def decoded_column(attribute: Attribute, codes: Codes, rng: np.random.Generator | None = None) -> pa.Array:
    """Return cells of a column as values.

    Parameters
    ----------
    attribute : Categorical or Ordered
    codes : int64 array of shape (n,)
    rng : numpy Generator, optional
        Draws a uniform number or day of each bin that is not a whole number; unless given, the value is the
        bin's label.

    Returns
    -------
    pyarrow.Array
        Of the type of the declared values. The cell of undeclared values is the text ``"(other)"`` among
        texts, and else NULL.

    Examples
    --------
    >>> decoded_column(Ordered(0, 100, bins=4), np.array([0, 3])).to_pylist()
    ['[0, 25)', '[75, 100]']
    >>> drawn = decoded_column(Ordered(0, 100, bins=4), np.array([0, 3]), np.random.default_rng(1))
    >>> [round(value, 3) for value in drawn.to_pylist()]
    [12.796, 98.762]
    """
    if isinstance(attribute, Categorical):
        plain = isinstance(attribute.values[0], str)
        values = [label if plain or label != "(other)" else None for label in attribute.labels]
        return pa.array(values).take(pa.array(codes))
    if rng is None or isinstance(attribute.labels[0], int):
        return pa.array(attribute.labels).take(pa.array(codes))
    return _within_bins(attribute, codes, rng)


def _within_bins(attribute: Ordered, codes: Codes, rng: np.random.Generator) -> pa.Array:
    """Return a uniform number or day of each bin, NULL for the cell of NULL."""
    given: Any = attribute.edges
    dated = isinstance(given[0], dt.date)
    edges = np.array([(edge - _EPOCH).days if dated else float(edge) for edge in given], np.float64)
    missing = codes == len(edges) - 1
    cells = np.where(missing, 0, codes)
    lower, upper = edges[cells], edges[cells + 1]
    part = rng.random(len(codes))
    values = lower * (1 - part) + upper * part
    if dated:
        days = np.clip(np.floor(values), lower, upper - 1).astype(np.int32)
        return pa.array(days, mask=missing).cast(pa.date32())
    return pa.array(np.clip(values, lower, np.nextafter(upper, -np.inf)), mask=missing)
