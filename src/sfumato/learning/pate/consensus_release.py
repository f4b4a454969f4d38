"""A private release of what labels cost on the votes as they are."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sfumato import _check
from sfumato.learning.pate.aggregator import as_votes
from sfumato.learning.pate.consensus import Consensus
from sfumato.mechanisms.base.grid import LIMIT
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.release import Release
from sfumato.mechanisms.noise.gaussian import Gaussian
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.numerics.sampling.rounded_noise import normal, rounded
from sfumato.privacy.leaves.rdp_curve import RDPCurve
from sfumato.privacy.leaves.smooth_noise import SmoothGaussian
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["ConsensusRelease"]

_Steps = NDArray[np.int64]

_STEP: Final = 2.0**-30
_SMOOTH_SLACK: Final = 1e-9


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ConsensusRelease(Mechanism):
    r"""A bound on what labels cost, for the votes at hand, that may be published.

    Parameters
    ----------
    consensus : Consensus
        The aggregator, and the order of the divergence.
    questions : int
        How many votes there will be.
    smoothness : float, optional
        Of the bound on local sensitivity; ``0.4 / order`` unless given, so that the release has a divergence
        of that order.
    noise_multiplier : float
        Of the noise on the bound.
    log_stddev : float
        Of the noise on the log of the smooth sensitivity, in units of ``smoothness``.
    failure : float
        The probability that the released bound is below the true cost.

    Notes
    -----
    Guarantee: ``privacy_loss``, whatever the votes: that of smooth sensitivity with Gaussian noise
    (`sfumato.privacy.SmoothGaussian`), and of Gaussian noise on the log of the smooth sensitivity, which
    moves by at most ``smoothness``.

    *Smooth sensitivity.* A question's cost is a function of two whole numbers, the most votes and the gap
    (`Consensus.table_indices`). One teacher moves them by at most 1 and 2; so by how much a neighbor's cost
    differs at most, for any votes d units away, is the largest such difference in a window of the table.
    Summed over the questions, times :math:`e^{-\beta d}`, and maximized over d, this is :math:`\beta`-smooth
    and at least the local sensitivity (Nissim, Raskhodnikova, Smith 2007). Costs are whole steps, rounded
    up, so the sums are exact.

    It is worth its own cost where teachers are many and mostly agree: a sum of costs that is small because
    votes are a few hundred units away from an even one has a smooth sensitivity that is small too.

    *What is released*: the noisy sum, plus as much as its noise falls short of 0 but with half the chance of
    ``failure``, reckoned with a scale that is too small but with the other half.

    References
    ----------
    Papernot et al., "Scalable private learning with PATE" (ICLR 2018), the appendix on smooth sensitivity;
    Nissim, Raskhodnikova, Smith (2007), "Smooth sensitivity and sampling in private data analysis".

    Examples
    --------
    >>> from sfumato.learning.pate.gnmax import GNMax
    >>> consensus = Consensus(aggregator=GNMax(stddev=50), teachers=1000, classes=10, order=20.0)
    >>> bound = ConsensusRelease(consensus=consensus, questions=500)
    >>> votes = np.tile([960, 40] + [0] * 8, (500, 1))
    >>> cost = bound.release(votes, rng=1).value
    >>> round(bound.epsilon(cost, 1e-5), 2), round(GNMax(stddev=50).loss(questions=500).epsilon(1e-5), 2)
    (0.72, 2.59)
    """

    consensus: Consensus
    questions: int
    smoothness: float | None = None
    noise_multiplier: float = 16.0
    log_stddev: float = 10.0
    failure: float = 1e-3

    def __post_init__(self) -> None:
        _check.instance("consensus", self.consensus, Consensus, "pass Consensus(...)")
        object.__setattr__(self, "questions", _check.integer("questions", self.questions, minimum=1))
        beta = 0.4 / self.consensus.order if self.smoothness is None else self.smoothness
        object.__setattr__(self, "smoothness", _check.positive("smoothness", beta))
        for name in ("noise_multiplier", "log_stddev"):
            object.__setattr__(self, name, _check.positive(name, getattr(self, name)))
        object.__setattr__(self, "failure", _check.unit_interval("failure", self.failure))
        if not math.isfinite(self.privacy_loss.rdp(self.consensus.order)):
            remedy = "0.4 / order is small enough"
            _check.refuse("smoothness", "leave a divergence of the order", beta, remedy)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of the release, beside that of the labels."""
        noise = SmoothGaussian(
            self.noise_multiplier, smoothness=self._beta + _SMOOTH_SLACK, neighboring=self.neighboring
        )
        return noise + self._on_log.privacy_loss

    @property
    def neighboring(self) -> Neighboring:
        """Who is protected."""
        return self.consensus.aggregator.neighboring

    def release(self, value: Any, rng: Rng = None) -> Release:
        """Release a bound on the divergence of the labels on these votes.

        Parameters
        ----------
        value : array of int of shape (questions, classes)
            The votes, of all questions asked.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        Release
            Of a float: with probability ``1 - failure`` at least the sum of `Consensus.costs`.
        """
        votes = as_votes(value)
        if votes.shape != (self.questions, self.consensus.classes):
            rule = f"have shape ({self.questions}, {self.consensus.classes})"
            remedy = "pass one row of counts for each question"
            _check.refuse_state("votes", rule, f"their shape is {votes.shape}", remedy)
        source = random_source(rng)
        total, smooth = self._around(votes)
        noisy = total + rounded(normal, Fraction(self.noise_multiplier) * Fraction(smooth), LIMIT, source)
        scale = self._on_log.release(math.log(smooth), source)
        largest = math.exp(min(scale.value + self._margin, 700.0))
        bound = (noisy - float(ndtri(self.failure / 2)) * self.noise_multiplier * largest) * _STEP
        return Release(
            value=min(max(bound, 0.0), self.consensus.worst * self.questions),
            loss=self.privacy_loss,
            neighboring=self.neighboring,
            simulated=source.simulated,
        )

    def epsilon(self, bound: float, delta: float) -> float:
        """Return epsilon at a delta for these labels and this release together, if the released bound holds.

        Parameters
        ----------
        bound : float
            From `release`.
        delta : float

        Returns
        -------
        float
        """
        order = self.consensus.order
        own = self.privacy_loss.rdp(order)
        return RDPCurve([order], [(bound + own) * (1 + 1e-12)], neighboring=self.neighboring).epsilon(delta)

    def smooth_sensitivity(self, votes: Any) -> float:
        """Return the smooth bound on the local sensitivity: private.

        Parameters
        ----------
        votes : int64 array of shape (n, classes)
            Private; a vote a teacher in each row.

        Returns
        -------
        float
            In the unit of the cost; the noise of `release` follows from it.
        """
        return self._around(as_votes(votes))[1] * _STEP

    @property
    def _beta(self) -> float:
        return float(self.smoothness or 0.0)

    @property
    def _on_log(self) -> Gaussian:
        beta = self._beta + _SMOOTH_SLACK
        return Gaussian(sensitivity=beta, stddev=self.log_stddev * beta, neighboring=self.neighboring)

    @property
    def _margin(self) -> float:
        """How far the noise on the log falls short at most, but with half the chance of failure."""
        noise = self._on_log
        return float((noise.distribution.quantile_above(self.failure / 2) + 1) * noise.grid.step)

    def _around(self, votes: NDArray[np.int64]) -> tuple[int, float]:
        """Return the sum of the costs and its smooth sensitivity, both in steps."""
        table = np.ceil(self.consensus.table / _STEP).astype(np.int64)
        table_indices = self.consensus.table_indices(votes)
        best = 1.0
        for distance, differences in enumerate(_differences(table, self.consensus.aggregator.teachers_moved)):
            weight = math.exp(-self._beta * distance)
            if weight * float(differences.max()) * len(votes) <= best:
                break
            best = max(best, weight * float(differences[table_indices].sum()))
            if differences.min() == differences.max():  # further away there is only less weight
                break
        return int(table[table_indices].sum()), best


def _differences(table: _Steps, moved: int) -> Iterator[_Steps]:
    """Yield, for votes d = 0, 1, ... units away, by how much a cost differs from a neighbor's at most."""
    found = np.maximum(_windowed(table, moved) - table, table + _windowed(-table, moved))
    while True:
        yield found
        found = _windowed(found, moved)


def _windowed(table: _Steps, moved: int) -> _Steps:
    """Return the largest entry in reach of a unit: ``moved`` rows and twice as many columns."""
    return _along(_along(table, moved).T, 2 * moved).T


def _along(table: _Steps, reach: int) -> _Steps:
    """Return the largest entry within so many rows, from the largest of 2, 4, ... rows."""
    found, width, window = np.pad(table, ((reach, reach), (0, 0)), mode="edge"), 1, 2 * reach + 1
    while width < window:
        step = min(width, window - width)
        found = np.maximum(found[:-step], found[step:])
        width += step
    return found
