"""Total variation distances of marginals, beside a bootstrap and beside independent columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.synthetic.domain.attributes import Codes
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.marginals.workload import Clique
from sfumato.synthetic.quality.cell_distributions import cell_distributions, total_variation

__all__ = ["MarginalDistance", "k_marginal_score", "marginal_distances"]


class MarginalDistance(NamedTuple):
    """Total variation distances from the marginal of the real rows, each from 0 to 1.

    Attributes
    ----------
    columns : tuple of str
    synthetic : float
        Of the synthetic rows.
    bootstrap : float
        Of real rows that were drawn with replacement, as many as the synthetic rows: the floor.
    independent : float
        Of independent columns with the real one-way marginals: no synthesis of pairs.

    Examples
    --------
    >>> MarginalDistance(("age", "sex"), synthetic=0.05, bootstrap=0.02, independent=0.11).synthetic
    0.05
    """

    columns: tuple[str, ...]
    synthetic: float
    bootstrap: float
    independent: float


def k_marginal_score(distances: Iterable[float]) -> float:
    """Return NIST's k-marginal score of total variation distances.

    Parameters
    ----------
    distances : iterable of float
        One for each marginal of k columns.

    Returns
    -------
    float
        From 0, where no cell is shared, to 1000, where all marginals are the same.

    Notes
    -----
    The score is :math:`1000 (1 - d/2)` with d the mean, over marginals, of the sum over cells of the absolute
    differences of proportions, which is twice the total variation distance.

    References
    ----------
    Task, Bhagat, Streat, Simpson, Howarth, "SDNist: benchmark data and evaluation tools for data
    synthesizers" (NIST, 2023): the k-marginal metric.

    Examples
    --------
    >>> k_marginal_score([0.02, 0.06])
    960.0
    """
    found = list(distances)
    return 1000 * (1 - math.fsum(found) / len(found)) if found else math.nan


def marginal_distances(
    real: Codes,
    synthetic: Codes,
    domain: TableDomain,
    cliques: Sequence[Clique],
    resamples: Sequence[NDArray[np.int64]],
) -> tuple[MarginalDistance, ...]:
    """Return the distances of marginals.

    Parameters
    ----------
    real, synthetic : int64 array of shape (rows, columns)
    domain : TableDomain
    cliques : sequence of tuple of int
        The marginals' columns.
    resamples : sequence of int64 array of shape (real rows,)
        How often each bootstrap sample holds a real row; distances are averaged over them.

    Returns
    -------
    tuple of MarginalDistance
        In the order of the cliques; NaN if there are no real rows, or no synthetic ones.
    """
    sizes, names, found = domain.sizes, list(domain), []
    if not (len(real) and len(synthetic)):
        columns = [tuple(names[place] for place in clique) for clique in cliques]
        return tuple(MarginalDistance(each, math.nan, math.nan, math.nan) for each in columns)
    ones = [cell_distributions([real], sizes, (place,)) for place in range(len(sizes))]
    singles = [_by_cell(each.proportions[0], each.cells[0], n) for each, n in zip(ones, sizes, strict=True)]
    for clique in cliques:
        tables = [real, synthetic, *([real] * len(resamples))]
        (truth, made, *drawn), cells = cell_distributions(tables, sizes, clique, [None, None, *resamples])
        product = np.ones_like(truth)
        for place, cell in zip(clique, cells, strict=True):
            product = product * singles[place][cell]
        floor = [total_variation(truth, each) for each in drawn]
        found.append(
            MarginalDistance(
                tuple(names[place] for place in clique),
                total_variation(truth, made),
                math.fsum(floor) / len(floor) if floor else math.nan,
                total_variation(truth, product),
            )
        )
    return tuple(found)


def _by_cell(proportions: NDArray[np.float64], cells: NDArray[np.int64], size: int) -> NDArray[np.float64]:
    """Return proportions for all cells of a column."""
    full = np.zeros(size)
    full[cells] = proportions
    return full
