"""The inverse sensitivity mechanism: scores an answer by how few records must change to make it true."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.additive import as_number, check_informative
from sfumato.mechanisms.base.grid import Grid
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.rational import Number, drawn_epsilon
from sfumato.mechanisms.base.release import Release
from sfumato.mechanisms.local_sensitivity.bounded_column import BoundedColumn, as_proportion
from sfumato.mechanisms.statistics.quantile.rank_sampling import uniform_below_each
from sfumato.numerics.decimals import outward
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.numerics.sampling.choice import choose
from sfumato.privacy.leaves.exponential import Exponential
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["InverseSensitivity"]

_MEAN_BITS: Final = 30


class _Runs(NamedTuple):
    """Runs of answers, each with the number of records that must change."""

    starts: NDArray[np.int64]
    counts: NDArray[np.int64]
    lengths: NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class InverseSensitivity(Mechanism):
    r"""A quantile or a mean, by the exponential mechanism over the inverse sensitivity.

    An answer's *length* is the smallest number of records that must be replaced until it is the true one; its
    probability is proportional to ``exp(-epsilon length / 2)``. That is nearly the best that can be done for
    the data at hand.

    Parameters
    ----------
    of : {"quantile", "mean"}
    bounds : tuple of two numbers
        Public bounds; records are clamped to them, and answers lie between them. Two ints mean whole answers.
    epsilon : int, float or Fraction
        What the answer costs; at least 2**-30.
    quantile : int, float or Fraction
        Strictly between 0 and 1. Of n records it is the one at rank ``ceil(quantile n)``.
    radius : int, float or Fraction
        Answers that are no further than this from one count as short as that one: what makes an exact hit
        likely on a fine grid.
    grid : Grid, optional
        What records and answers are rounded to: 1 for int bounds, else 2**-40 of the larger bound for a
        quantile, and 2**-30 for a mean.
    neighboring : Neighboring
        To be stated, as REPLACE_ONE or ZERO_OUT: the number of records is public. Under add/remove use
        `Quantile`.

    Notes
    -----
    Guarantee: epsilon-DP, of bounded range. The length is a Hamming distance to a set of datasets, so one
    replaced (or zeroed) record moves it by at most 1; and so it moves the smallest length within the radius.

    *Quantile.* Let r be the rank, L values below t and G above it. The value at rank r is t after as many
    values as needed were made t: :math:`\max(0, L - r + 1, G - n + r)`, and no fewer will do. *Mean.* With k
    records the sum rises most if the k smallest become the upper bound, and any whole number of steps up to
    that can be had; likewise for its fall. NaN counts as 0; of no records, all answers but the lower bound
    are equally likely.

    References
    ----------
    Asi, Duchi, "Instance-optimality in differential privacy via approximate inverse sensitivity mechanisms"
    (NeurIPS 2020).

    Examples
    --------
    >>> import numpy as np
    >>> median = InverseSensitivity(bounds=(0, 120), epsilon=1.0, neighboring=Neighboring.REPLACE_ONE)
    >>> median.release(np.arange(9000) % 90, rng=1).value, median.length_bound(0.05)
    (44, 16)
    """

    bounds: tuple[Number, Number]
    epsilon: Number
    of: Literal["quantile", "mean"] = "quantile"
    quantile: Number = Fraction(1, 2)
    radius: Number = 0
    grid: Grid = None  # type: ignore[assignment]  # settled in __post_init__
    neighboring: Neighboring = Neighboring.ADD_REMOVE

    def __post_init__(self) -> None:
        if self.of not in ("quantile", "mean"):
            _check.refuse(
                "of", "be 'quantile' or 'mean'", self.of, "pass of='quantile' with quantile=, or of='mean'"
            )
        bits = {"bits": _MEAN_BITS} if self.of == "mean" else {}
        column = BoundedColumn.settle(self.bounds, self.grid, **bits)
        object.__setattr__(self, "bounds", column.bounds)
        object.__setattr__(self, "grid", column.grid)
        object.__setattr__(self, "epsilon", as_number("epsilon", self.epsilon))
        check_informative(self.epsilon)
        object.__setattr__(self, "quantile", as_proportion("quantile", self.quantile))
        _check.non_negative("radius", self.radius)
        if self.neighboring not in (Neighboring.REPLACE_ONE, Neighboring.ZERO_OUT):
            remedy = "pass Neighboring.REPLACE_ONE, or use Quantile where the number of records is private"
            _check.refuse("neighboring", "be REPLACE_ONE or ZERO_OUT", self.neighboring, remedy)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release."""
        return Exponential(outward(drawn_epsilon(self.epsilon)), neighboring=self.neighboring)

    def length_bound(self, beta: float) -> int:
        """Return how much longer than the best the answer is at most, but with probability ``beta``.

        Parameters
        ----------
        beta : float
            Strictly between 0 and 1.

        Returns
        -------
        int
            In records to replace. The best answer has length 0, but for a mean that no answer is equal to.

        Notes
        -----
        Answers that are longer by t weigh at most their number times exp(-epsilon t / 2) times the best one.
        """
        lower, upper = self._column.ends
        odds = math.log(upper - lower + 1) - math.log(_check.unit_interval("beta", beta))
        return math.ceil(Fraction(odds * (1 + 1e-12)) * 2 / drawn_epsilon(self.epsilon))

    def release(self, value: Any, rng: Rng = None) -> Release:
        """Release the quantile or the mean of a column.

        Parameters
        ----------
        value : array, list or column of shape (n,)
            One real number per record; not changed.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        Release
            Of an int for int bounds, else of a float.
        """
        source = random_source(rng)
        return self._release_as(Release, self.outputs(value, 1, source)[0], source)

    def outputs(self, value: Any, size: int, rng: Rng = None) -> Any:
        """Draw many answers at once; see `Mechanism.outputs`.

        Parameters
        ----------
        value
            As in `release`; private.
        size : int
            How many independent releases are drawn.
        rng : int, numpy Generator or None
            None for the operating system's randomness; a seed is for simulation only.

        Returns
        -------
        array of shape (size,)
        """
        size = _check.integer("size", size, minimum=1)
        source, runs, column = random_source(rng), self._runs(value), self._column
        rate = drawn_epsilon(self.epsilon) / 2
        at = choose(runs.lengths, rate, multiplicity=runs.counts, size=size, rng=source)
        steps = runs.starts[at] + uniform_below_each(runs.counts[at], source)
        return [column.value(step) for step in steps.tolist()]

    @property
    def _column(self) -> BoundedColumn:
        return BoundedColumn(self.bounds, self.grid)

    def _runs(self, data: Any) -> _Runs:
        """Return all answers: those that k records can just reach, to the left and to the right."""
        column, (lower, upper) = self._column, self._column.ends
        if self.of == "mean":
            left, right = _reached(column.steps(data) - lower, upper - lower)
            left, right = left + lower, right + lower
        else:
            ranks = column.ranks(data)
            left, right = column.around(ranks, Fraction(self.quantile), ranks.size)
        radius = min(math.floor(Fraction(self.radius) / self.grid.step), upper - lower)
        left, right = np.maximum(left - radius, lower), np.minimum(right + radius, upper)
        centre = max(0, int(right[0] - left[0]) + 1)
        return _Runs(
            np.concatenate([left[:1], left[1:], right[:-1] + 1]),
            np.concatenate([[centre], left[:-1] - left[1:], right[1:] - right[:-1]]),
            np.concatenate([[0], np.arange(1, len(left)), np.arange(1, len(right))]),
        )


def _reached(steps: NDArray[np.int64], top: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the smallest and largest whole means after 0, 1, ... replacements of records from 0 to top."""
    size = len(steps)
    if not size:
        return np.array([0]), np.array([0, top])
    exact: NDArray[Any] = steps if size * top < 1 << 62 else steps.astype(object)
    total = exact.sum()
    risen = total + np.concatenate([[0], np.cumsum(top - exact)])
    fallen = total - np.concatenate([[0], np.cumsum(exact[::-1])])
    return (-(-fallen // size)).astype(np.int64), (risen // size).astype(np.int64)
