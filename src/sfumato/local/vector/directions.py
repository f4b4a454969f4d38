r"""Directions as protocols for a mean vector."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Final, Generic, TypeVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, gammaln, ndtr

from sfumato import _check
from sfumato.local.base.protocol import LocalProtocol, log_odds
from sfumato.local.base.respondents import respondents, seeded
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.vector import directions as client
from sfumato.local.device.vector.random_vectors import UNIT
from sfumato.local.frequency.variance import Array
from sfumato.local.vector.estimate import VectorEstimate
from sfumato.local.vector.simulation import (
    Reported,
    normal_reports,
    opposite_reports,
    reported_sums,
    sphere_reports,
)
from sfumato.local.vector.sums import VectorMoments
from sfumato.privacy.leaves.support_response import SupportResponse
from sfumato.privacy.loss import PrivacyLoss

__all__ = [
    "DirectionProtocol",
    "PrivUnit",
    "PrivUnitG",
    "SphereSampling",
    "halves",
    "largest_heights",
    "normal_heights",
    "sphere_heights",
]

_POINTS: Final = 40_001


def largest_heights(
    heights: Array, masses: Array, below: Array, count: int, near: int
) -> tuple[float, float]:
    r"""Return the mean and mean square of the ``near`` largest of ``count`` heights.

    Notes
    -----
    A height at the point with F below it is among the w largest of K if at most w - 1 of the K - 1 others are
    greater: with the probability :math:`I_F(K - w, w)`, the incomplete beta function.
    """
    # All of them are among all, which older scipy calls NaN.
    among = betainc(count - near, near, below) if near < count else 1.0
    weights = masses * among * count / near
    return float(weights @ heights), float(weights @ heights**2)


def normal_heights(count: int, near: int) -> tuple[float, float]:
    """Return the mean and mean square height of the nearest of normal vectors."""
    heights = np.linspace(-12.0, 12.0, _POINTS)
    masses = np.exp(-heights * heights / 2) / math.sqrt(2 * math.pi) * (heights[1] - heights[0])
    return largest_heights(heights, masses, ndtr(heights), count, near)


def sphere_heights(count: int, near: int, dimension: int) -> tuple[float, float]:
    r"""Return the same of vectors that are even on a sphere of radius :math:`\sqrt d`.

    Notes
    -----
    With the angle a to the given vector the height is :math:`\sqrt d \cos a`, and a has a density
    proportional to :math:`\sin^{d-2} a`.
    """
    angles = (np.arange(_POINTS) + 0.5) * (math.pi / _POINTS)
    masses = np.exp((dimension - 2) * np.log(np.sin(angles)))
    cosines, half = np.cos(angles), (dimension - 1) / 2
    below = betainc(half, half, (1 + cosines) / 2)
    return largest_heights(math.sqrt(dimension) * cosines, masses / masses.sum(), below, count, near)


def halves(dimension: int) -> tuple[float, float]:
    """Return the same of the nearer of two opposite vectors on that sphere."""
    log = float(gammaln(dimension / 2) - gammaln((dimension + 1) / 2))
    return math.sqrt(dimension / math.pi) * math.exp(log), 1.0


Device = TypeVar("Device", bound=client.DirectionRandomizer)


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectionProtocol(LocalProtocol[Device, VectorEstimate], Generic[Device]):
    r"""A protocol that estimates the mean of vectors of bounded Euclidean norm.

    Parameters
    ----------
    epsilon : float
        Bound on the loss of each report, from above 0 to 40.
    dimension : int
        Numbers in a vector, from 2 to 2^16.
    radius : float
        The maximum norm that a true vector can have; public.
    pairs : bool
        Whether aggregators store products of all pairs of parts, up to 1024 dimensions, so that the estimate
        has a covariance matrix. Devices know nothing of it.

    Attributes
    ----------
    device : DirectionRandomizer
        The client half, which a device makes again from ``device.specification()``.
    moments : VectorMoments
        Which sums aggregators store.

    Notes
    -----
    The distribution of a seed's vectors changes with no rotation, and the order of them is that along the
    truth u. So the vector V that is reported has a mean along u, :math:`E\,V = g u` with a gain g that
    follows from the mean height of the w nearest of K, and V/g is unbiased.
    """

    epsilon: float
    dimension: int
    radius: float = 1.0
    pairs: bool = False
    device: Device = field(init=False, repr=False, compare=False)
    moments: VectorMoments = field(init=False, repr=False, compare=False)
    gain: float = field(init=False, repr=False, compare=False)
    power: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        device = self._make()  # what it makes of `candidates` stays there
        self._set(device=device, epsilon=device.epsilon, radius=device.radius)
        self._set(moments=VectorMoments(device.dimension, self.pairs))
        first, second = self._heights()
        near, far = (
            float(device.inside.chance),
            float(1 - device.inside.chance) / (device.count - device.near),
        )
        # All K vectors together have mean height 0 and mean square 1.
        self._set(gain=first * (near - far * device.near))
        square = near * second + far * (device.count - device.near * second)
        self._set(power=self._power(square))

    @abstractmethod
    def _heights(self) -> tuple[float, float]:
        """Return the mean and mean square of how far the nearest vectors point along the truth."""

    def _power(self, square: float) -> float:
        """Return the mean squared norm of what is reported, given the mean squared height."""
        return float(self.dimension)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        r"""The odds that are drawn.

        Notes
        -----
        Given the seed a report supports the truths among whose nearest vectors it is. The shared distribution
        of `sfumato.privacy.SupportResponse` is the even one over seeds and numbers, under which that has the
        chance :math:`w/K \le 1/2`; opposite truths may have no near vector in common.
        """
        bound = log_odds(self.device.odds, self.epsilon)
        return SupportResponse(bound, Fraction(self.device.near, self.device.count))

    @property
    def totals(self) -> int:
        """Sums for each dimension, and sums of squares or of products."""
        return self.moments.size

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Sum up the vectors that are reported, and the squares of their parts or products of two."""
        seeds, numbers = self.device.opened(records)
        sums = np.zeros(self.totals, np.int64)
        for start in range(0, len(seeds), self.moments.rows):
            part = slice(start, start + self.moments.rows)
            sums += self.moments.of(
                self.device.vectors(seeds[part], numbers[part, None])[:, 0].astype(np.int64)
            )
        return sums

    def estimate(self, totals: NDArray[np.int64], reports: int, *, simulated: bool = False) -> VectorEstimate:
        """Return the estimate from totals; mostly called by an aggregator."""
        scale = self.radius / (self.gain * UNIT)
        mean = totals[: self.dimension] / reports if reports else np.full(self.dimension, np.nan)
        variances = np.full(self.dimension, np.inf)
        matrix = np.full((self.dimension, self.dimension), np.nan) if self.pairs else None
        if reports > 1:
            variances = (self.moments.squares(totals) / reports - mean * mean) / (reports - 1)
            if self.pairs:
                matrix = (self.moments.products(totals) / reports - np.outer(mean, mean)) / (reports - 1)
                matrix *= scale**2
        return VectorEstimate(
            reports=reports,
            mean=mean * scale,
            variances=variances * scale**2,
            matrix=matrix,
            radius=self.radius,
            loss=self.privacy_loss,
            simulated=simulated,
        )

    @staticmethod
    @abstractmethod
    def _reports() -> Reported:
        """Return what draws the vectors that are reported, without candidates."""

    def simulate_counts(
        self, vectors: Any, counts: ArrayLike | None = None, rng: int | np.random.Generator = 0
    ) -> NDArray[np.int64]:
        """Draw an aggregator's totals: distributed as if everybody reported, with no candidates to make.

        Parameters
        ----------
        vectors : array, shape (kinds, dimension)
            True vectors, of norms up to the radius.
        counts : array of int, optional
            How many respondents have each; one if left out.
        rng : int or numpy Generator
            A seed: this simulates, for planning.

        Returns
        -------
        ndarray of int64
            `totals` numbers.

        Notes
        -----
        A reported vector is drawn for each respondent, from its height along the truth (one of the order
        statistics of all heights) and evenly across: some seconds for a million of 100 numbers. Sums of
        squares have no distribution that counts alone would give; `variance` plans for any number of people.
        """
        rows = self.device._checked(vectors)  # noqa: SLF001 - the other half of one protocol
        people = respondents(counts, len(rows))
        return reported_sums(
            self.device, self.moments, rows, people, reported=self._reports(), generator=seeded(rng)
        )

    def simulate(
        self, vectors: Any, counts: ArrayLike | None = None, rng: int | np.random.Generator = 0
    ) -> VectorEstimate:
        """Return an estimate as it might come of so many respondents; see `simulate_counts`."""
        people = len(vectors) if counts is None else int(np.sum(counts))
        return self.estimate(self.simulate_counts(vectors, counts, rng), people, simulated=True)

    def variance(self, n: int, norm: float = 0.0) -> float:
        """Return the mean squared distance of the estimate from the true mean, for ``n`` reports.

        Parameters
        ----------
        n : int
            At least 1.
        norm : float
            Of all true vectors; the short ones have the largest variance.
        """
        count = _check.integer("n", n, minimum=1)
        length = _check.non_negative("norm", norm)
        if length > self.radius:
            _check.refuse("norm", f"be at most {self.radius}", norm, "take a larger radius")
        return (self.power * (self.radius / self.gain) ** 2 - length**2) / count


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivUnit(DirectionProtocol[client.PrivUnitRandomizer]):
    r"""A unit vector near the truth, of some that a seed makes: nearly the smallest error, in seven bytes.

    Parameters
    ----------
    epsilon, dimension, radius, pairs
        See `DirectionProtocol`.
    candidates : int, optional
        Vectors that a seed makes, from 2 to 2^12; left out, the smallest power of two that is at least
        :math:`8 e^\epsilon`, and from 64 to 2^12.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one, exactly; see
    `sfumato.local.device.PrivUnitRandomizer`.

    References
    ----------
    Bhowmick, Duchi, Freudiger, Kapoor, Rogers (2018), "Protection against reconstruction and its applications
    in private federated learning"; Shah, Chen, Balle, Kairouz, Theis (2022).

    Examples
    --------
    >>> protocol = PrivUnit(epsilon=2.0, dimension=3)
    >>> aggregator = protocol.aggregator()
    >>> aggregator.add_batch(protocol.randomize_batch([[0.6, 0.0, 0.8]] * 20_000, rng=1))
    20000
    >>> bool((abs(aggregator.estimate().mean - [0.6, 0.0, 0.8]) < 0.1).all())
    True
    """

    wire_name: ClassVar[str] = "privunit"

    candidates: int | None = None

    @staticmethod
    def _reports() -> Reported:
        return sphere_reports

    def _heights(self) -> tuple[float, float]:
        return sphere_heights(self.device.count, self.device.near, self.dimension)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivUnitG(DirectionProtocol[client.PrivUnitGRandomizer]):
    r"""`PrivUnit` with normal vectors: the same error for many dimensions.

    Parameters
    ----------
    epsilon, dimension, radius, pairs, candidates
        See `PrivUnit`.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one, exactly; see
    `sfumato.local.device.PrivUnitGRandomizer`.

    References
    ----------
    Asi, Feldman, Talwar (2022), "Optimal algorithms for mean estimation under local differential privacy".

    Examples
    --------
    >>> round(PrivUnitG(epsilon=4.0, dimension=100).variance(1000), 3)
    0.045
    """

    wire_name: ClassVar[str] = "privunit-g"

    candidates: int | None = None

    @staticmethod
    def _reports() -> Reported:
        return normal_reports

    def _heights(self) -> tuple[float, float]:
        return normal_heights(self.device.count, self.device.near)

    def _power(self, square: float) -> float:
        return self.dimension - 1 + square


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SphereSampling(DirectionProtocol[client.SphereSamplingRandomizer]):
    r"""A random unit vector and a bit that says whether it points along the truth: best for a small epsilon.

    Parameters
    ----------
    epsilon, dimension, radius, pairs
        See `DirectionProtocol`.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one, exactly; see
    `sfumato.local.device.SphereSamplingRandomizer`.

    References
    ----------
    Duchi, Jordan, Wainwright (2018), "Minimax optimal procedures for locally private estimation", section
    4.2.3.

    Examples
    --------
    >>> round(SphereSampling(epsilon=1.0, dimension=100).variance(1000), 3)
    0.732
    """

    wire_name: ClassVar[str] = "sphere-sampling"

    @staticmethod
    def _reports() -> Reported:
        return opposite_reports

    def _heights(self) -> tuple[float, float]:
        return halves(self.dimension)
