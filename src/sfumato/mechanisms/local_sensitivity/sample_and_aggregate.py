"""Sample-and-aggregate: run an estimator on random blocks, and release a private median of its results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.additive import as_number
from sfumato.mechanisms.base.grid import Grid
from sfumato.mechanisms.base.measurement import Measurement
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.rational import Number, drawn_epsilon
from sfumato.mechanisms.base.release import Release
from sfumato.mechanisms.noise.laplace import Laplace
from sfumato.mechanisms.query.records import as_records
from sfumato.mechanisms.query.sums import Mean
from sfumato.mechanisms.statistics.quantile.quantiles import Quantile
from sfumato.numerics.decimals import outward
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.numerics.randomness.uniform import uniform_integers
from sfumato.privacy.leaves.discrete_laplace import DiscreteLaplace
from sfumato.privacy.leaves.exponential import Exponential
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["SampleAndAggregate"]

_MAX_BLOCKS: Final = 1 << 24


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SampleAndAggregate(Mechanism):
    r"""The private median, or mean, of what an estimator says of random blocks.

    Good where the estimator says about the same of every block: more blocks hide a unit better, larger ones
    estimate better.

    Parameters
    ----------
    estimator : callable
        From the records of a block, an array of shape (k, ...), to a real number. It sees one block at a
        time, and must not remember earlier ones.
    blocks : int
        How many, from 2 to 2**24; public.
    bounds : tuple of two numbers
        Public bounds of the answer; results are clamped to them.
    epsilon : int, float or Fraction
        What the answer costs.
    aggregate : {"median", "mean"}
        `Quantile`, or the mean with Laplace noise of scale ``(upper - lower) / (blocks epsilon)``.
    grid : Grid, optional
        Of the answers of the median.
    neighboring : Neighboring
        A unit is one record: one entry of the first axis.

    Notes
    -----
    Guarantee: the loss of the aggregate under *replace-one among the blocks*, stated under ``neighboring``,
    whichever it is. Proof: each record is put into a block of its own choice, uniformly and independently of
    all records. Fix these choices: then a record that is added, removed, replaced or zeroed changes the
    records of one block, so one of the results, whose number is public; the distributions of the answer on
    both datasets are those of the aggregate on neighbors. The choices' distribution is the same for both
    datasets (a record more just has a choice more), and hockey-stick divergences are jointly convex, Rényi
    divergences quasi-convex: the mixture over the choices has no greater one. (It need not be of bounded
    range, which no view of the leaf rests on.)

    Whatever the estimator does, one unit changes one result: a block without records, an exception and a
    result that is no real number count as NaN, which counts as 0 and is clamped. What it prints or how long
    it runs is not covered.

    References
    ----------
    Nissim, Raskhodnikova, Smith, "Smooth sensitivity and sampling in private data analysis" (STOC 2007),
    section 4; Smith, "Privacy-preserving statistical estimation with optimal convergence rates" (STOC 2011),
    a partition.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = SampleAndAggregate(
    ...     estimator=lambda block: np.quantile(block, 0.9), blocks=60, bounds=(0.0, 100.0), epsilon=1.0
    ... )
    >>> data = np.random.default_rng(0).normal(50, 1, 20_000)
    >>> round(mechanism.release(data, rng=1).value, 1)
    51.3
    """

    estimator: Callable[[NDArray[Any]], Any]
    blocks: int
    bounds: tuple[Number, Number]
    epsilon: Number
    aggregate: Literal["median", "mean"] = "median"
    grid: Grid | None = None
    neighboring: Neighboring = Neighboring.ADD_REMOVE

    def __post_init__(self) -> None:
        if not callable(self.estimator):
            _check.refuse_type("estimator", "be callable", self.estimator, "pass a function of an array")
        blocks = _check.integer("blocks", self.blocks, minimum=2)
        if blocks > _MAX_BLOCKS:
            _check.refuse(
                "blocks", "be at most 2**24", blocks, "pass about the square root of the number of records"
            )
        object.__setattr__(self, "blocks", blocks)
        object.__setattr__(self, "epsilon", as_number("epsilon", self.epsilon))
        if self.aggregate not in ("median", "mean"):
            remedy = "pass 'median' for robustness, 'mean' for averages"
            _check.refuse("aggregate", "be 'median' or 'mean'", self.aggregate, remedy)
        if self.aggregate == "mean" and self.grid is not None:
            _check.refuse("grid", "be left out for a mean", self.grid, "leave it out; the bounds choose it")
        _check.instance(
            "neighboring", self.neighboring, Neighboring, "pass Neighboring.ADD_REMOVE or another"
        )
        _ = self._aggregate  # it checks the rest

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release: the aggregate's, stated for records instead of blocks."""
        if self.aggregate == "median":
            return Exponential(outward(drawn_epsilon(self.epsilon)), neighboring=self.neighboring)
        among_blocks: Any = self._aggregate.privacy_loss
        return DiscreteLaplace(among_blocks.scale, among_blocks.sensitivity, neighboring=self.neighboring)

    def release(self, value: Any, rng: Rng = None) -> Release:
        """Release the middle of the estimates.

        Parameters
        ----------
        value : array of shape (n, ...), column, frame, or list of real numbers
            Records along the first axis; not changed. The estimator is given arrays; nulls are NaN there, 0
            among whole numbers.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        Release
            Of a float, or of an int for int bounds and the median.
        """
        value = as_records(value)
        source = random_source(rng)
        chosen = uniform_integers(self.blocks, len(value), source)
        order = np.argsort(chosen, kind="stable")
        ends = np.searchsorted(chosen[order], np.arange(1, self.blocks))
        found = np.array([self._estimate(block) for block in np.split(value[order], ends)])
        released = self._aggregate.release(found, source).value
        lower, upper = (float(bound) for bound in self.bounds)
        return self._release_as(
            Release,
            released if self.aggregate == "median" else max(lower, min(upper, float(released))),
            source,
        )

    def _estimate(self, block: NDArray[Any]) -> float:
        if not len(block):
            return np.nan
        try:
            return float(self.estimator(block))
        except Exception:  # whether an estimator fails depends on the records
            return np.nan

    @property
    def _aggregate(self) -> Quantile | Measurement:
        among_blocks = Neighboring.REPLACE_ONE
        if self.aggregate == "median":
            return Quantile(
                bounds=self.bounds,
                epsilon=self.epsilon,
                grid=self.grid,  # type: ignore[arg-type]
                neighboring=among_blocks,
            )
        mean = Mean(bounds=self.bounds, n=self.blocks)  # type: ignore[arg-type]
        return Laplace.for_query(mean, epsilon=float(Fraction(self.epsilon)), neighboring=among_blocks)
