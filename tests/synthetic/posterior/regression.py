"""People of whom one column follows a logistic regression on two others, and its coefficients."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.synthetic import TableDomain

__all__ = ["DOMAIN", "SHARE", "TRUTH", "Array", "coefficients", "people"]

Array = NDArray[np.float64]
DOMAIN = TableDomain(a=[0, 1], b=[0, 1], y=[0, 1])
TRUTH = np.array([-0.5, 0.8, -0.6])
SHARE = 0.4
"""Probability that a is 1."""


def people(rng: np.random.Generator, rows: int) -> pa.Table:
    """Rows with the logit of y -0.5 + 0.8 a - 0.6 b."""
    a = rng.random(rows) < SHARE
    b = rng.random(rows) < np.where(a, 0.6, 0.3)
    y = rng.random(rows) < 1 / (1 + np.exp(-(TRUTH[0] + TRUTH[1] * a + TRUTH[2] * b)))
    return pa.table({"a": a.astype(int), "b": b.astype(int), "y": y.astype(int)})


def coefficients(rows: pa.Table) -> tuple[Array, Array]:
    """The coefficients of y on a and b, and their variances as if rows were people, by Newton's method."""
    codes = np.stack([rows[name].to_numpy() for name in "aby"])
    counts = np.bincount(codes[0] * 4 + codes[1] * 2 + codes[2], minlength=8).reshape(4, 2)
    design = np.array([[1, 0, 0], [1, 0, 1], [1, 1, 0], [1, 1, 1]], float)
    found, total = np.zeros(3), counts.sum(axis=1)
    for _ in range(15):
        p = 1 / (1 + np.exp(-design @ found))
        information = design.T @ (design * (total * p * (1 - p))[:, None])
        found = found + np.linalg.solve(information, design.T @ (counts[:, 1] - total * p))
    return found, np.diag(np.linalg.inv(information))
