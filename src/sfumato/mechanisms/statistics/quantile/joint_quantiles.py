"""Joint quantiles: the exponential mechanism chooses several quantiles together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, cast, final

import numpy as np

from sfumato import _check
from sfumato.mechanisms.base.rational import Number, drawn_epsilon
from sfumato.mechanisms.base.release import Release
from sfumato.mechanisms.statistics.quantile.joint_sampling import (
    MAX_JOINT,
    MAX_JOINT_EPSILON,
    JointSampler,
    joint_sampler,
    parts_of,
)
from sfumato.mechanisms.statistics.quantile.quantiles import as_quantiles, quantile_labels, without_nan
from sfumato.mechanisms.statistics.quantile.rank_mechanism import RankMechanism
from sfumato.numerics.decimals import outward
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.privacy.leaves.exponential import Exponential
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["JointQuantiles"]

_MAX_PARTS: Final = 1 << 62


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class JointQuantiles(RankMechanism):
    r"""Several quantiles of a column at once, chosen together by how many records lie between them.

    Parameters
    ----------
    quantiles : sequence of int, float or Fraction
        Strictly between 0 and 1, each above the one before it, at most 32. Taken as the nearest fractions
        with a denominator of at most 2**20.
    bounds, grid, neighboring
        As in `Quantile`.
    epsilon : int, float or Fraction
        Of all answers together, at most 2**16; taken as the exact rational.
    parts : int, optional
        Into how many parts a point is cut; more let answers tie where records do, for more time. Unless
        given, as many as make up 2**14 between the bounds, or 1. Where a fine grid is needed, yet one value
        is that of as many records as lie between two quantiles (zeros among incomes), pass a few for each
        quantile: with 1, such data tells little.

    Notes
    -----
    Guarantee: epsilon-DP; the loss is that of one choice of bounded range (`sfumato.privacy.Exponential`).
    The candidates are all m-tuples of points, and what is released is the chosen one in order. With
    :math:`p_j` the difference of the quantiles j and j - 1 (0 before the first, 1 after the last),
    :math:`c_j` the number of records above the answer j - 1 and at most at the answer j, and n the private
    size, a tuple weighs :math:`\exp(-\frac{\epsilon}{2 s} \sum_j |c_j - p_j n|)`. Proof of the sensitivity s:
    one record more or less moves one :math:`c_j` by 1 and every :math:`p_i n` by :math:`p_i`, so the sum by
    at most :math:`1 - p_j + \sum_{i \ne j} p_i = 2(1 - p_j) \le 2(1 - \min p)`; a record that is replaced or
    zeroed moves two of the counts by 1, so the sum by at most 2. The draw is exact; see the notes of
    `JointSampler`.

    *Parts.* Each point is cut into parts, and each record counts as much in each part of its point: so
    several answers can share one value that many records have. The counts :math:`c_j` then move by shares of
    one record that sum up to 1, and what the sum moves by is convex in them: at most what it is for a whole
    record in one of them.

    Errors are far smaller than those of halving where records are replaced or zeroed (`Quantiles` draws
    jointly then, unless it is asked not to), or tie; else both are alike. NaN counts as 0. Time is of the
    order of m k log k + m^2 k for k different values times parts; use `Quantiles` for more answers, or
    large data.

    References
    ----------
    Gillenwater, Joseph, Kulesza, "Differentially private quantiles" (ICML 2021), here on a grid, with exact
    draws, for any number of equal records.

    Examples
    --------
    >>> import numpy as np
    >>> quartiles = JointQuantiles(quantiles=(0.25, 0.5, 0.75), bounds=(0.0, 1.0), epsilon=1.0)
    >>> quartiles.release(np.linspace(0, 1, 1001), rng=2).value.round(2).tolist()
    [0.25, 0.5, 0.75]
    """

    quantiles: Sequence[Number] = ()
    parts: int = None  # type: ignore[assignment]  # settled with the rates

    def _check_rates(self) -> None:
        object.__setattr__(self, "quantiles", as_quantiles(self.quantiles))
        if len(self.quantiles) > MAX_JOINT:
            _check.refuse_state(
                "quantiles", f"be at most {MAX_JOINT}", f"there are {len(self.quantiles)}", "use Quantiles"
            )
        if self.epsilon > MAX_JOINT_EPSILON:
            _check.refuse(
                "epsilon", "be at most 2**16", self.epsilon, "pass a smaller one; larger ones protect nobody"
            )
        lower, upper = self._ends()
        points, given = upper - lower + 1, cast("int | None", self.parts)
        parts = parts_of(points) if given is None else _check.integer("parts", given, minimum=1)
        if parts * points > _MAX_PARTS:
            remedy = "pass fewer parts, or a coarser grid"
            _check.refuse("parts", "make up at most 2**62 parts between the bounds", parts, remedy)
        object.__setattr__(self, "parts", parts)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release."""
        return Exponential(outward(drawn_epsilon(self.epsilon)), neighboring=self.neighboring)

    def release(self, value: Any, rng: Rng = None) -> Release:
        """Release the quantiles of a column.

        Parameters
        ----------
        value : array, list or column of shape (n,)
            One real number per record; not changed.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        Release
            Of an array of shape (m,), not falling.
        """
        source = random_source(rng)
        lower, upper = self._ends()
        steps = np.clip(self.grid.round(without_nan(value)), lower, upper)
        found = self._distribution().points(steps - lower, self.parts, source)
        return self._release_as(
            Release,
            np.array([self._value(lower + at) for at in found]),
            source,
            labels=quantile_labels(self.quantiles),
        )

    def _distribution(self) -> JointSampler:
        """Return the distribution over the parts, with a part of a record as the unit."""
        lower, upper = self._ends()
        quantiles = tuple(Fraction(quantile) for quantile in self.quantiles)
        epsilon = drawn_epsilon(self.epsilon)
        return joint_sampler(quantiles, epsilon, self.neighboring, upper - lower + 1, self.parts)
