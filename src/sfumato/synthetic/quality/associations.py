"""How strongly pairs of columns are associated: Cramer's V, corrected for bias."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.synthetic.domain.attributes import Codes
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.quality.cell_distributions import cell_distributions

__all__ = ["Association", "associations", "cramers_v"]


class Association(NamedTuple):
    """Cramer's V of two columns, from 0 (independent) to 1, corrected for bias.

    Attributes
    ----------
    columns : tuple of two str
    real, synthetic : float
        In the real and in the synthetic rows.
    bootstrap : float
        In real rows that were drawn with replacement.

    Examples
    --------
    >>> Association(("age", "sex"), real=0.3, synthetic=0.25, bootstrap=0.31).columns
    ('age', 'sex')
    """

    columns: tuple[str, str]
    real: float
    synthetic: float
    bootstrap: float


def cramers_v(
    proportions: NDArray[np.float64], first: NDArray[np.int64], second: NDArray[np.int64], rows: int
) -> float:
    r"""Return Cramer's V of two columns, corrected for bias.

    Parameters
    ----------
    proportions : float64 array of shape (cells,)
        The joint distribution of the rows.
    first, second : int64 array of shape (cells,)
        Of each cell, where in the first and in the second column it is.
    rows : int
        How many there are.

    Returns
    -------
    float
        0 for a column with one value; NaN for less than two rows.

    Notes
    -----
    With :math:`\varphi^2 = \chi^2/n`, for r and c values that occur,
    :math:`\tilde\varphi^2 = \max(0, \varphi^2 - (r-1)(c-1)/(n-1))`, :math:`\tilde r = r - (r-1)^2/(n-1)` and
    :math:`\tilde c` likewise, it is the root of :math:`\tilde\varphi^2/\min(\tilde r - 1, \tilde c - 1)`.

    References
    ----------
    Bergsma, "A bias-correction for Cramer's V and Tschuprow's T" (Journal of the Korean Statistical Society
    42, 2013).

    Examples
    --------
    >>> cells = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    >>> round(cramers_v(np.array([0.4, 0.1, 0.1, 0.4]), *cells, rows=1000), 4)
    0.5995
    """
    if rows < 2:
        return math.nan
    margins = [np.bincount(place, proportions) for place in (first, second)]
    r, c = (int((margin > 0).sum()) for margin in margins)
    some = proportions > 0
    expected = margins[0][first[some]] * margins[1][second[some]]
    phi = max(0.0, float((proportions[some] ** 2 / expected).sum()) - 1 - (r - 1) * (c - 1) / (rows - 1))
    most = min(each - 1 - (each - 1) ** 2 / (rows - 1) for each in (r, c))
    return min(1.0, math.sqrt(phi / most)) if most > 0 else 0.0


def associations(
    real: Codes, synthetic: Codes, domain: TableDomain, resample: NDArray[np.int64]
) -> tuple[Association, ...]:
    """Return the associations of all pairs of columns.

    Parameters
    ----------
    real, synthetic : int64 array of shape (rows, columns)
    domain : TableDomain
    resample : int64 array of shape (real rows,)
        How often a bootstrap sample holds each real row.

    Returns
    -------
    tuple of Association
    """
    names, found = list(domain), []
    rows: Sequence[int] = (len(real), len(synthetic), int(resample.sum()))
    for pair in combinations(range(len(domain)), 2):
        joint = cell_distributions([real, synthetic, real], domain.sizes, pair, [None, None, resample])
        values = [
            cramers_v(each, joint.cells[0], joint.cells[1], n)
            for each, n in zip(joint.proportions, rows, strict=True)
        ]
        found.append(Association((names[pair[0]], names[pair[1]]), *values))
    return tuple(found)
