"""The discrepancy bound: who answers a workload too well shows who is in the data."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.bounds.colorings import coloring_sizes, hereditary_discrepancy
from sfumato.bounds.nuclear_norm import Floats
from sfumato.bounds.up_to_constants import UpToConstants
from sfumato.mechanisms.factorization.strategies.optimal_strategy import as_workload
from sfumato.numerics.rounding import fraction_down, mul_down, sub_down
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["DiscrepancyBound", "discrepancy_error_bound", "discrepancy_order"]

_TARGETS: Final = ("maximum", "mean")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DiscrepancyBound:
    """Every mechanism of a privacy loss errs so much on a workload, on some dataset.

    Parameters
    ----------
    error : float
        On some dataset the error is at least this with at least the probability ``failure``; rounded down, 0
        where nothing follows.
    failure : float
        Rounded down.
    columns : tuple of int
        Units that an answer with less error would give away.
    wrong : int
        Of how many of them at most the attack would be wrong.
    units : int
        How many units stand in each column.
    target : str
        ``"maximum"``: the error is that of the worst answer; ``"mean"``: the root of the mean square over
        all answers.
    mechanisms : str
        The class that the bound holds for.
    theorem : str
        What proves it.

    Examples
    --------
    >>> from sfumato.privacy import PureDP
    >>> bound = discrepancy_error_bound([[1.0, 1.0], [1.0, -1.0]], PureDP(0.5), failure=0.1)
    >>> bound.error, bound.columns, bound.wrong
    (0.5, (0,), 0)
    """

    error: float
    failure: float
    columns: tuple[int, ...]
    wrong: int
    units: int
    target: str
    mechanisms: str = "all mechanisms of that loss"
    theorem: str = "reconstruction by partial discrepancy (Muthukrishnan and Nikolov 2012)"

    @property
    def expected_error(self) -> float:
        """On some dataset the expected error is at least this."""
        return mul_down(self.error, self.failure)

    def __str__(self) -> str:
        return (
            f"{self.target.capitalize()} error of at least {self.error:.6g} with probability "
            f"{self.failure:.6g} on some dataset, for {self.mechanisms}. Proof: {self.theorem}."
        )


def discrepancy_error_bound(
    workload: ArrayLike,
    loss: PrivacyLoss,
    *,
    failure: float = 0.05,
    units: int = 1,
    target: str = "maximum",
) -> DiscrepancyBound:
    r"""Bound the error of every mechanism of a loss on a workload, by partial discrepancy.

    Parameters
    ----------
    workload : array of shape (queries, cells)
        A column is what a unit of that cell adds to the answers; at most 13 cells. Under replace-one it is
        by how much they change from one of a unit's values to another.
    loss : PrivacyLoss
        The loss, under its own relation, in which neighbors differ in one unit.
    failure : float
        How probable the error shall be at least, strictly between 0 and 1.
    units : int
        How many units a cell has or lacks together; more than 1 take `PrivacyLoss.group`, and pay where
        epsilon is far below 1.
    target : str
        ``"maximum"`` or ``"mean"``, as in `DiscrepancyBound`.

    Returns
    -------
    DiscrepancyBound
        The greatest error that follows for so probable a failure; 0 where none does, as for a loss so large
        that answers may be exact.

    Raises
    ------
    ParameterError
        If the workload is no matrix of finite numbers, all 0, or has too many cells.
    UnsupportedView
        If no theorem bounds the loss for groups.

    Notes
    -----
    Guarantee: for all mechanisms of the loss, biased or not, with explicit constants. Take s columns S and
    datasets :math:`x \in \{0, 1\}^S`, and let d be the least :math:`\|W z\|` over :math:`z \in \{-1, 0,
    1\}^S` with at least k entries that are not 0. Where the error is below d/2, any dataset whose answers
    are nearer than d/2 to the released ones has fewer than k bits wrong. But for uniform bits each one is
    guessed wrongly with at least half of :math:`1 - \delta(0)`, the overlap o of the outputs on neighbors.
    So :math:`s o / 2 \le (1 - f)(k - 1) + f s` for the probability f of a greater error: :math:`f \ge (s
    o/2 - k + 1)/(s - k + 1)`. All S are tried, with the largest k that fits. One column gives the bound of
    two points. Hereditary discrepancy would be k = s, which no loss allows: see `discrepancy_order`.

    References
    ----------
    Muthukrishnan, Nikolov (2012), "Optimal private halfspace counting via discrepancy"; Vadhan (2017), "The
    complexity of differential privacy", for the attack.

    Examples
    --------
    >>> from scipy.linalg import hadamard
    >>> from sfumato.privacy import Gaussian
    >>> discrepancy_error_bound(hadamard(8), Gaussian(4.0)).error
    1.0
    """
    matrix = as_workload(workload)
    _check.instance("loss", loss, PrivacyLoss, "pass a mechanism's privacy_loss")
    failure = _check.unit_interval("failure", failure, "pass how probable the error shall be, such as 0.05")
    if target not in _TARGETS:
        _check.refuse("target", "be 'maximum' or 'mean'", target, "pass one of them")
    units = _check.integer("units", units, minimum=1, remedy="pass how many units a cell has or lacks")
    wrong = Fraction(sub_down(1.0, loss.group(units).delta(0.0))) / 2
    sizes = coloring_sizes(matrix, mean=target == "mean")
    counts = np.array([subset.bit_count() for subset in range(len(sizes.least))])
    best, chosen = 0.0, (failure, 0, 0)
    for size in range(1, matrix.shape[1] + 1):
        found = _most_wrong(size, wrong, failure)
        if found is None:
            continue
        allowed, probability = found
        within = np.where(counts == size, _least_within(sizes.least, counts, allowed + 1), -1.0)
        at = int(within.argmax())
        if within[at] > best:
            best, chosen = float(within[at]), (probability, at, allowed)
    probability, subset, allowed = chosen
    return DiscrepancyBound(
        error=mul_down(sizes.interval(best).lower, units / 2),
        failure=probability,
        columns=tuple(column for column in range(matrix.shape[1]) if subset >> column & 1),
        wrong=allowed,
        units=units,
        target=target,
    )


def discrepancy_order(workload: ArrayLike) -> UpToConstants:
    """Return the order of the greatest error that hereditary discrepancy forces.

    Parameters
    ----------
    workload : array of shape (queries, cells)
        At most 13 cells; what each unit adds to the answers.

    Returns
    -------
    UpToConstants

    Notes
    -----
    `discrepancy_error_bound` has constants, for the user's own loss.

    References
    ----------
    Muthukrishnan, Nikolov (2012), "Optimal private halfspace counting via discrepancy"; Nikolov, Talwar,
    Zhang (2013), "The geometry of differential privacy: the sparse and approximate cases".

    Examples
    --------
    >>> from scipy.linalg import hadamard
    >>> discrepancy_order(hadamard(8)).without_constants
    '2.40449'
    """
    matrix = as_workload(workload)
    size = hereditary_discrepancy(matrix).hereditary.lower / max(1.0, float(np.log(matrix.shape[1])))
    return UpToConstants(
        quantity="error",
        formula="hereditary discrepancy / log(cells)",
        without_constants=f"{size:.6g}",
        mechanisms="all mechanisms of (epsilon, delta)-DP, with epsilon and delta below some constants",
        theorem="Muthukrishnan and Nikolov (2012)",
    )


def _most_wrong(size: int, wrong: Fraction, failure: float) -> tuple[int, float] | None:
    """Return how many wrong bits of that many still prove so probable a failure, and its probability."""
    for allowed in reversed(range(size)):
        probability = fraction_down((size * wrong - allowed) / (size - allowed))
        if probability >= failure:
            return allowed, probability
    return None


def _least_within(least: Floats, counts: NDArray[np.int64], many: int) -> Floats:
    """Return for each set of columns the least size over its subsets of at least so many."""
    found = np.where(counts >= many, least, np.inf)
    for column in range(len(least).bit_length() - 1):
        split = found.reshape(-1, 2, 1 << column)
        np.minimum(split[:, 1], split[:, 0], out=split[:, 1])
    return found
