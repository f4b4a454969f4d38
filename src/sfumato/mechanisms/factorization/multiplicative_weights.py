"""MWEM: a synthetic histogram that learns from the queries it answers worst."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Final, final

import numpy as np

from sfumato import _check
from sfumato.mechanisms.base.additive import as_number
from sfumato.mechanisms.base.calibration import PrivacyTarget, cheapest_noise
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.rational import Number, plain
from sfumato.mechanisms.base.release import Release, read_only
from sfumato.mechanisms.factorization.strategies.integer_strategy import Array, Integers
from sfumato.mechanisms.noise.laplace import Laplace
from sfumato.mechanisms.query.linear_workload import LinearWorkload
from sfumato.mechanisms.selection.exponential import Exponential
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["MultiplicativeWeights", "MultiplicativeWeightsRelease"]

_PASSES: Final = 20
_CLAMP: Final = 2.0**61


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MultiplicativeWeightsRelease(Release):
    """Answers of a synthetic histogram.

    Parameters
    ----------
    value : array of shape (queries,)
        The workload's answers on the synthetic histogram.
    cells : array of shape (cells,)
        The synthetic histogram: positive numbers that sum to the noisy total.
    measured : tuple of (int, float)
        Which query was measured in each round, and its noisy answer.
    loss, neighboring, receipt, simulated, labels
        As in `Release`.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.mechanisms import Histogram
    >>> halves = LinearWorkload(matrix=[[1, 1, 0, 0], [0, 0, 1, 1]], histogram=Histogram(categories=range(4)))
    >>> mechanism = MultiplicativeWeights.calibrated(workload=halves, rounds=1, epsilon=1.0)
    >>> release = mechanism.release(np.repeat([0, 3], [50, 400]), rng=7)
    >>> isinstance(release, MultiplicativeWeightsRelease), len(release.cells), len(release.measured)
    (True, 4, 1)
    """

    cells: Array
    measured: tuple[tuple[int, float], ...]

    def __post_init__(self) -> None:
        for name in ("value", "cells"):
            object.__setattr__(self, name, read_only(getattr(self, name)))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MultiplicativeWeights(Mechanism):
    r"""Answers to very many queries from a few measurements of those that are answered worst (MWEM).

    Parameters
    ----------
    workload : LinearWorkload
        The queries.
    rounds : int
        How many are measured. More rounds follow the data more closely, with more noise.
    scale : int, float or Fraction
        Each of the ``2 rounds + 1`` steps costs an epsilon of ``1 / scale``.
    neighboring : Neighboring

    Notes
    -----
    Guarantee: first the number of records in the cells is released with Laplace noise. A round chooses a
    query by the exponential mechanism, scored by how far the synthetic answer is off, then answers it with
    Laplace noise: the loss is the sum of these steps', each exact on whole numbers. A synthetic answer is
    computed from what was released before and rounded to a whole step, so one unit moves a score by no more
    than it moves the answer: at most the largest entry of the workload (twice under replace-one, as
    `LinearWorkload` knows). No step reads the data otherwise.

    *Error.* For n records, m queries with entries in [0, 1] and k cells, T rounds at :math:`\epsilon/2T` a
    step and the average of all rounds' histograms, every answer is within :math:`2n\sqrt{\ln(k)/T} +
    10\,T \ln(m)/\epsilon` with probability :math:`1 - 2T/m` (Hardt, Ligett, McSherry, Theorem 2.2). Here the
    last histogram answers, which is better in practice, and has learnt from every measurement again and
    again. There is no interval, as errors depend on the data; and only where queries are very many for the
    records and cells is it better than `MatrixMechanism`.

    References
    ----------
    Hardt, Ligett, McSherry (2012), "A simple and practical algorithm for differentially private data
    release"; Hardt, Rothblum (2010), "A multiplicative weights mechanism for privacy-preserving data
    analysis", the update.

    Examples
    --------
    >>> import numpy as np
    >>> ranges = LinearWorkload(matrix=[[float(i <= k <= j) for k in range(8)] for i in range(8) for j in
    ...                                 range(i, 8)])
    >>> mechanism = MultiplicativeWeights.calibrated(workload=ranges, rounds=4, epsilon=1.0)
    >>> release = mechanism.release(np.repeat([1, 2, 6], [500, 400, 100]), rng=7)
    >>> release.loss.epsilon() <= 1.0, release.cells.shape, len(release.measured)
    (True, (8,), 4)
    """

    workload: LinearWorkload
    rounds: int
    scale: Number
    neighboring: Neighboring = Neighboring.ADD_REMOVE
    _largest: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        workload: object = self.workload
        if not isinstance(workload, LinearWorkload):
            _check.refuse_type(
                "workload", "be a LinearWorkload", workload, "pass LinearWorkload(matrix=..., histogram=...)"
            )
        _check.integer("rounds", self.rounds, minimum=1, remedy="pass at least 1; each measures one query")
        _check.instance(
            "neighboring", self.neighboring, Neighboring, "pass Neighboring.ADD_REMOVE or another"
        )
        remedy = "pass epsilon= to MultiplicativeWeights.calibrated to have it chosen"
        object.__setattr__(self, "scale", as_number("scale", self.scale, remedy))
        object.__setattr__(self, "_largest", self.workload.shift(self.neighboring).linf)
        _ = self.privacy_loss  # the steps check their scales and the relation

    @classmethod
    def calibrated(
        cls,
        *,
        workload: LinearWorkload,
        rounds: int,
        epsilon: float,
        delta: float = 0.0,
        neighboring: Neighboring = Neighboring.ADD_REMOVE,
    ) -> MultiplicativeWeights:
        """Return the mechanism with the smallest noise that meets (epsilon, delta).

        Parameters
        ----------
        epsilon : float
        delta : float
            With one, the rounds' composition takes less noise.
        workload, rounds, neighboring
            As in the class.

        Returns
        -------
        MultiplicativeWeights
        """
        request = PrivacyTarget(epsilon=epsilon, delta=delta)
        count = 2 * _check.integer("rounds", rounds, minimum=1) + 1
        start = count / request.exact_epsilon
        template = cls(workload=workload, rounds=rounds, scale=start, neighboring=neighboring)

        def price(scale: Fraction) -> PrivacyLoss:
            return replace(template, scale=plain(scale)).privacy_loss

        return replace(template, scale=plain(cheapest_noise(price, request, start)))

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of the total and of all rounds."""
        each = self._choice().privacy_loss + self._answer().privacy_loss
        return self._total().privacy_loss + each * self.rounds

    def release(self, value: Any, rng: Rng = None) -> MultiplicativeWeightsRelease:
        """Run all rounds on data.

        Parameters
        ----------
        value : array
            The data: one record per entry, as the histogram takes it.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        MultiplicativeWeightsRelease
        """
        source = random_source(rng)
        exact = self.workload.steps(value)
        counted = int(self.workload.histogram.steps(value).sum())
        total = max(1.0, float(self._total().release(counted, source).value))
        choice, answer = self._choice(), self._answer()
        # From here on the data is read by the two mechanisms only.
        weights = self.workload.weights().astype(np.float64)
        shares = np.full(weights.shape[1], 1 / weights.shape[1])
        released: list[tuple[int, float]] = []
        for _ in range(self.rounds):
            index = choice.release(self._scores(exact, total * (weights @ shares)), source).value
            released.append((index, float(answer.release(int(exact[index]), source).value)))
            shares = self._learn(shares, weights, released, total)
        step = float(self.workload.step)
        return self._release_as(
            MultiplicativeWeightsRelease,
            total * (weights @ shares) * step,
            source,
            cells=total * shares,
            measured=tuple((index, noisy * step) for index, noisy in released),
        )

    @staticmethod
    def _scores(exact: Integers, synthetic: Array) -> Integers:
        return np.abs(exact - np.rint(np.clip(synthetic, -_CLAMP, _CLAMP)).astype(np.int64))

    def _learn(self, shares: Array, weights: Array, released: list[tuple[int, float]], total: float) -> Array:
        """Return shares moved towards all that was released, the latest first."""
        largest = float(np.abs(weights).max())
        for _ in range(_PASSES):
            for index, noisy in reversed(released):
                row = weights[index] / largest
                off = noisy / largest / total - float(row @ shares)
                # An answer far out of range counts as one at the border: what could be moved is moved.
                shares = shares * np.exp(row * min(1.0, max(-1.0, off)) / 2)
                shares = shares / shares.sum()
        return shares

    def _total(self) -> Laplace:
        return Laplace(sensitivity=1, scale=plain(Fraction(self.scale)), neighboring=self.neighboring)

    def _choice(self) -> Exponential:
        scale = plain(2 * self._largest * Fraction(self.scale))
        return Exponential(sensitivity=self._largest, scale=scale, neighboring=self.neighboring)

    def _answer(self) -> Laplace:
        scale = plain(self._largest * Fraction(self.scale))
        return Laplace(sensitivity=self._largest, scale=scale, neighboring=self.neighboring)
