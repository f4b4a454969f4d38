r"""Post-processing steps that make raw estimates proportions: none negative, sum 1.

They cost no privacy. A raw estimate is unbiased; a processed one has less error where most shares are near 0,
and is biased there.

References
----------
Wang, Lopuhaä-Zwakenberg, Li, Skoric, Li (2020), "Locally differentially private frequency estimation with
consistency": the names. Duchi, Shalev-Shwartz, Singer, Chandra (2008): the projection onto the simplex.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import numpy as np
from scipy.special import ndtri

from sfumato import _check
from sfumato.local.frequency.variance import Array

__all__ = [
    "STEPS",
    "base_cut",
    "base_pos",
    "made_consistent",
    "nearest",
    "norm",
    "norm_cut",
    "norm_mul",
    "norm_sub",
]

_CUT_RISK: Final = 0.05


def base_pos(shares: Array, _: Array) -> Array:
    """Set negative estimates to 0; the sum is whatever it then is."""
    return np.asarray(np.maximum(shares, 0.0))


def base_cut(shares: Array, variances: Array) -> Array:
    """Set to 0 what chance may have made of a share of 0.

    What remains lies above the normal quantile at which 5 % of such questions would retain any value without
    respondents, all values together (Bonferroni's correction).
    """
    smallest = -float(ndtri(_CUT_RISK / len(shares))) * np.sqrt(variances)
    return np.asarray(np.where(shares > smallest, shares, 0.0))


def norm(shares: Array, _: Array) -> Array:
    """Add the same number to all, so that the sum is 1; some may stay negative."""
    return np.asarray(shares + (1.0 - shares.sum()) / len(shares))


def norm_mul(shares: Array, _: Array) -> Array:
    """Set negative estimates to 0, and multiply the rest so that the sum is 1; all alike if none is left."""
    retained = np.maximum(shares, 0.0)
    total = retained.sum()
    return np.asarray(retained / total) if total > 0 else np.full(len(shares), 1.0 / len(shares))


def norm_cut(shares: Array, variances: Array) -> Array:
    """Retain the largest estimates while their sum is at most 1, and set the others to 0.

    If all that are positive sum up to less, they all stay: the sum then stays below 1.
    """
    order = np.argsort(-shares, kind="stable")
    retained = np.zeros(len(shares), np.bool_)
    retained[order] = np.cumsum(np.maximum(shares[order], 0.0)) <= 1.0
    retained[order[0]] = True
    return np.clip(np.where(retained, shares, 0.0), 0.0, 1.0)


def norm_sub(shares: Array, _: Array) -> Array:
    """Subtract the same number from all and set what is negative to 0, so that the sum is 1.

    It is the nearest point of the simplex (in squared distance), and the most likely one if errors are normal
    and alike.
    """
    return np.asarray(nearest(shares[None, :])[0])


def nearest(tables: Array) -> Array:
    """Return the distributions nearest to tables, which are rows of cells: see `norm_sub`."""
    # Moved alike, all come out alike; so a sum is never lost beside huge ones.
    tables = tables - tables.max(axis=1, keepdims=True)
    falling = np.sort(tables, axis=1)[:, ::-1]
    over = np.cumsum(falling, axis=1) - 1.0
    count = np.arange(1, tables.shape[1] + 1)
    last = tables.shape[1] - 1 - np.argmax((falling * count > over)[:, ::-1], axis=1)
    lowered = over[np.arange(len(tables)), last] / (last + 1)
    return np.asarray(np.maximum(tables - lowered[:, None], 0.0))


STEPS: Final[Mapping[str, Callable[[Array, Array], Array]]] = MappingProxyType(
    {
        "base-pos": base_pos,
        "base-cut": base_cut,
        "norm": norm,
        "norm-mul": norm_mul,
        "norm-cut": norm_cut,
        "norm-sub": norm_sub,
        "simplex": norm_sub,
    }
)
"""From the name of a step to its function of estimates and their variances."""


def made_consistent(shares: Array, variances: Array, step: str) -> Array:
    """Return estimates after a named step.

    Parameters
    ----------
    shares, variances : array
        Raw estimates, and how far they would deviate from shares of 0.
    step : str
        One of `STEPS`.

    Examples
    --------
    >>> made_consistent(np.array([0.8, 0.5, -0.2]), np.zeros(3), "norm-sub").round(2).tolist()
    [0.65, 0.35, 0.0]
    """
    if step not in STEPS:
        _check.refuse("step", f"be one of {', '.join(STEPS)}", step, 'pass "norm-sub" if in doubt')
    return STEPS[step](shares, variances)
