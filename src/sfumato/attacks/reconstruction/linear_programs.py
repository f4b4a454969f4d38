"""Linear programs for secret bits on HiGHS: all that fits an error bound, or the least sum of errors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, hstack, vstack

from sfumato import _check

__all__ = ["feasible_point", "least_absolute_errors"]

Floats = NDArray[np.float64]


def feasible_point(queries: Any, answers: Floats, error_bound: float) -> Floats:
    """Return a point of the box whose answers are all within the bound (Dinur, Nissim 2003).

    Raises
    ------
    ParameterError
        If there is none: some error is above the bound.
    """
    matrix: Any = csr_array(queries, dtype=np.float64)
    both: Any = vstack([matrix, -matrix])
    # The objective only makes the choice definite: the point with the least sum.
    found: Any = linprog(
        np.ones(matrix.shape[1]),
        A_ub=both,
        b_ub=np.concatenate([answers + error_bound, error_bound - answers]),
        bounds=(0, 1),
        method="highs",
    )
    if found.x is None:
        remedy = "pass a greater error_bound, or use method='l1'"
        rule = "be as large as the largest error"
        _check.refuse_state("error_bound", rule, "no bits fit all answers", remedy)
    return np.asarray(found.x, dtype=np.float64)


def least_absolute_errors(queries: Any, answers: Floats) -> Floats:
    """Return a point of the box with the least sum of absolute errors (Dwork, McSherry, Talwar 2007)."""
    matrix: Any = csr_array(queries, dtype=np.float64)
    count, people = matrix.shape
    one = eye_array(count, format="csr")
    split: Any = hstack([matrix, one, -one])
    within: Any = [(0, 1)] * people + [(0, None)] * (2 * count)
    found: Any = linprog(
        np.concatenate([np.zeros(people), np.ones(2 * count)]),
        A_eq=split,
        b_eq=answers,
        bounds=within,
        method="highs",
    )
    return np.asarray(found.x[:people], dtype=np.float64)
