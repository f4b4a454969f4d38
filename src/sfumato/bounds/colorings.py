"""The discrepancy of small matrices by enumeration of all colorings, hereditary and partial ones too."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike

from sfumato import _check
from sfumato.bounds.nuclear_norm import Floats, to_unit
from sfumato.mechanisms.factorization.strategies.optimal_strategy import as_workload
from sfumato.numerics.interval import Interval
from sfumato.numerics.rounding import fraction_down, fraction_up

__all__ = ["ColoringSizes", "Discrepancy", "coloring_sizes", "hereditary_discrepancy"]

_MOST: Final = 13
_UNIT: Final = Fraction(1, 1 << 52)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Discrepancy:
    """The discrepancy of a matrix, and the greatest discrepancy of some of its columns.

    Parameters
    ----------
    whole : Interval
        Of all columns. For matrices of whole numbers both ends are equal.
    hereditary : Interval
        Of the columns for which it is greatest.
    columns : tuple of int
        Those columns.

    Examples
    --------
    >>> import numpy as np
    >>> found = hereditary_discrepancy(np.ones((1, 4)))
    >>> found.whole.lower, found.hereditary.lower, found.columns
    (0.0, 1.0, (0,))
    """

    whole: Interval
    hereditary: Interval
    columns: tuple[int, ...]


def hereditary_discrepancy(workload: ArrayLike) -> Discrepancy:
    r"""Return the discrepancy of a matrix and its hereditary discrepancy, by enumeration.

    Parameters
    ----------
    workload : array of shape (queries, cells)
        At most 13 cells, which take a part of a second for twenty queries.

    Returns
    -------
    Discrepancy

    Raises
    ------
    ParameterError
        If the workload is no matrix of finite numbers, all 0, or has too many cells.

    Notes
    -----
    The discrepancy of W is the least :math:`\|W z\|_\infty` over all z of signs; the hereditary one is the
    greatest discrepancy of a subset of its columns. Guarantee: exact for whole numbers up to sums of
    :math:`2^{53}`; else between bounds that pay for the rounding of sums. All :math:`3^n` signs and zeros
    are tried.

    References
    ----------
    Lovasz, Spencer, Vesztergombi (1986), "Discrepancy of set-systems and matrices".

    Examples
    --------
    >>> import numpy as np
    >>> hereditary_discrepancy(np.array([[1, 1], [1, -1]])).hereditary.lower
    2.0
    """
    matrix = as_workload(workload)
    found = coloring_sizes(matrix)
    at = int(found.least.argmax())
    return Discrepancy(
        whole=found.interval(found.least[-1]),
        hereditary=found.interval(found.least[at]),
        columns=tuple(column for column in range(matrix.shape[1]) if at >> column & 1),
    )


@final
class ColoringSizes(NamedTuple):
    """For each set of columns the least size of ``matrix @ z``, where z has signs there and 0 elsewhere.

    Attributes
    ----------
    least : float64 array
        Indexed by the bits of the set; in units of a power of two.
    lost : Fraction
        By how much each is off at most, in that unit.
    unit : Fraction
    """

    least: Floats
    lost: Fraction
    unit: Fraction

    def interval(self, size: float) -> Interval:
        """Return the bounds of a size."""
        return Interval(
            fraction_down(max(Fraction(0), Fraction(size) - self.lost) * self.unit),
            fraction_up((Fraction(size) + self.lost) * self.unit),
        )


def coloring_sizes(matrix: Floats, *, mean: bool = False) -> ColoringSizes:
    """Enumerate all colorings of all sets of columns.

    Parameters
    ----------
    matrix : float64 array
    mean : bool
        Whether a vector's size is the root of its mean square, and not its greatest magnitude.

    Returns
    -------
    ColoringSizes
    """
    queries, cells = matrix.shape
    if cells > _MOST:
        remedy = "pass some of the columns, whose bound holds for all; or use determinant_bound"
        _check.refuse_state("workload", f"have at most {_MOST} cells", f"it has {cells}", remedy)
    scaled, unit = to_unit(matrix)
    sizes = np.zeros(3**cells)
    for row in scaled:
        sums = np.zeros(1)
        for entry in row:
            sums = np.concatenate([sums, sums + entry, sums - entry])
        sizes = sizes + sums * sums if mean else np.maximum(sizes, np.abs(sums))
    if mean:
        sizes = np.sqrt(sizes / queries)
    for column in reversed(range(cells)):
        split = sizes.reshape(-1, 3, 3**column)
        sizes = np.stack([split[:, 0], np.minimum(split[:, 1], split[:, 2])], axis=1).reshape(-1)
    lost = Fraction(0) if not mean and _exact(matrix) else (cells + queries + 8) * cells * _UNIT
    return ColoringSizes(sizes, lost, unit)


def _exact(matrix: Floats) -> bool:
    """Return whether all sums are of whole numbers that floats hold."""
    return bool((matrix == np.rint(matrix)).all() and np.abs(matrix).max() < 2.0**53 / matrix.shape[1])
