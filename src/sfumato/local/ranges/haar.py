"""Haar histograms: signed coefficients of a binary tree, asked of some respondents each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.local.base.protocol import log_odds
from sfumato.local.device.base.bernoulli import checked_epsilon
from sfumato.local.device.base.randomizer import CategoricalRandomizer
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.domains.categories import Domain
from sfumato.local.device.domains.tree import Shape
from sfumato.local.device.frequency.signed_hadamard import SignedHadamardRandomizer
from sfumato.local.device.ranges import levels as client
from sfumato.local.frequency.block_design import simulated_numbers
from sfumato.local.frequency.local_hashing import OptimalLocalHashing
from sfumato.local.frequency.oracle import Oracle
from sfumato.local.frequency.randomized_response import RandomizedResponse
from sfumato.local.frequency.variance import Array
from sfumato.local.frequency.walsh_hadamard import walsh
from sfumato.local.ranges.consistency import from_coefficients
from sfumato.local.ranges.haar_variance import HaarErrorModel
from sfumato.local.ranges.level_moments import LevelMoments
from sfumato.local.ranges.protocol import RangeProtocol, checked_oracle, checked_size
from sfumato.privacy.leaves.support_response import SupportResponse
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["Coefficients", "HaarHistogram", "coefficients_of"]


class Coefficients(ABC):
    """The signed coefficients of one level: for each node, the share of plus less that of minus."""

    __slots__ = ()

    @property
    @abstractmethod
    def device(self) -> CategoricalRandomizer:
        """The client half, of a category 2v or 2v + 1 for a plus or a minus at v."""

    @property
    @abstractmethod
    def totals(self) -> int:
        """How many whole numbers."""

    @property
    @abstractmethod
    def privacy_loss(self) -> PrivacyLoss:
        """Of a report about this level."""

    @property
    @abstractmethod
    def moments(self) -> LevelMoments:
        """How far the differences deviate; what two have in common is the product of their means alone."""

    @abstractmethod
    def tally(self, records: Records) -> NDArray[np.int64]:
        """Return what some records add to the totals."""

    @abstractmethod
    def simulate_counts(self, true_counts: ArrayLike, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw totals, given how many respondents are in each category."""

    @abstractmethod
    def differences(self, totals: NDArray[np.int64], reports: int) -> Array:
        """Return unbiased estimates of the differences."""


@final
class SignedBits(Coefficients):
    r"""Signed Hadamard response: one bit of a row of a Hadamard matrix, times the sign.

    Notes
    -----
    With the truth reported with probability p, the entry at v of the reported column times the reported sign,
    over :math:`2p - 1`, is 1 on average if v is true with a plus, -1 with a minus, and 0 elsewhere. Its
    square is constant, and two rows are orthogonal: so two differences have in common their means alone.
    """

    __slots__ = ("_device",)

    def __init__(self, epsilon: float, nodes: int) -> None:
        self._device = SignedHadamardRandomizer(epsilon=epsilon, domain=Domain(range(2 * nodes)))

    @property
    def device(self) -> SignedHadamardRandomizer:
        """The client half."""
        return self._device

    @property
    def totals(self) -> int:
        """One number for each report there is."""
        return self._device.number

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """An even distribution and halves of it; the two signs of a node have no report in common."""
        device = self._device
        return SupportResponse(log_odds(device.odds, device.epsilon), device.part, Fraction(0))

    @property
    def _gap(self) -> float:
        return float(2 * self._device.truth.chance - 1)

    @property
    def moments(self) -> LevelMoments:
        """A constant square for each."""
        return LevelMoments(own=1 / self._gap**2, share=0.0)

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Count the reports by number."""
        numbers = self._device.layout.unpack(records).astype(np.int64)
        return np.bincount(numbers, minlength=self.totals)

    def simulate_counts(self, true_counts: ArrayLike, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw totals, given how many respondents are in each category."""
        return simulated_numbers(self._device, np.asarray(true_counts), rng)

    def differences(self, totals: NDArray[np.int64], reports: int) -> Array:
        """Return unbiased estimates of the differences."""
        signs = totals.reshape(-1, 2)
        surplus = walsh((signs[:, 0] - signs[:, 1]).reshape(1, -1))[0, : len(self._device.domain) // 2]
        return np.asarray(surplus / (reports * self._gap))


@final
class OracleDifferences(Coefficients):
    """Any frequency oracle over nodes and signs."""

    __slots__ = ("_moments", "_oracle")

    def __init__(self, oracle: Oracle[Any]) -> None:
        self._oracle, one = oracle, LevelMoments.of(oracle)
        self._moments = LevelMoments(own=2 * one.own, share=one.share)

    @property
    def device(self) -> CategoricalRandomizer:
        """The client half."""
        device: CategoricalRandomizer = self._oracle.device
        return device

    @property
    def totals(self) -> int:
        """Those of the oracle."""
        return self._oracle.totals

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """That of the oracle."""
        return self._oracle.privacy_loss

    @property
    def moments(self) -> LevelMoments:
        """Both categories of a node by themselves; what all have in common cancels."""
        return self._moments

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Count with the oracle."""
        return self._oracle.tally(records)

    def simulate_counts(self, true_counts: ArrayLike, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw totals, given how many respondents are in each category."""
        return self._oracle.simulate_counts(true_counts, rng)

    def differences(self, totals: NDArray[np.int64], reports: int) -> Array:
        """Return unbiased estimates of the differences."""
        shares = self._oracle.shares(totals, reports).reshape(-1, 2)
        return np.asarray(shares[:, 0] - shares[:, 1])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HaarHistogram(RangeProtocol[client.HaarHistogramRandomizer]):
    r"""Each respondent reports a signed Haar coefficient of their value, of one level drawn by chance.

    Parameters
    ----------
    epsilon, domain, weights
        See `RangeProtocol`; the levels are those above the leaves of a binary tree, the root first.
    oracle : type of Oracle, optional
        The frequency oracle over nodes and signs; if left out, for each level that with the smallest error of
        signed Hadamard response (one bit; best for small epsilon), randomized response and
        `OptimalLocalHashing`. See `HierarchicalHistogram` for which may be given.

    Attributes
    ----------
    levels : tuple
        What is counted of each level, the root's first.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one: the level does not depend on the value, and
    the report about it has all of epsilon; see `sfumato.local.device.HaarHistogramRandomizer`.

    *Error.* The coefficients make a distribution without any step of consistency. Only those of nodes that
    meet an end of a range count for it, at most two a level.

    References
    ----------
    Cormode, Kulkarni, Srivastava (2019), "Answering range queries under local differential privacy", HaarHRR.

    Examples
    --------
    >>> from sfumato.local import Domain
    >>> ages = HaarHistogram(epsilon=1.0, domain=Domain(range(100)))
    >>> len(ages.levels), ages.device.width
    (7, 6)
    >>> estimate = ages.simulate(np.full(100, 10_000), rng=1)
    >>> round(estimate.range(18, 64).share, 2), estimate.quantile(0.5)
    (0.48, 49)
    """

    wire_name: ClassVar[str] = "haar-histogram"

    oracle: type[Oracle[Any]] | None = None
    levels: tuple[Coefficients, ...] = field(init=False, repr=False, compare=False)

    def _levels(self) -> tuple[Coefficients, ...]:
        epsilon, given = checked_epsilon(self.epsilon), self.oracle
        checked_oracle(given)
        shape = Shape(checked_size(self.domain), 2)
        return tuple(coefficients_of(epsilon, shape.nodes(at), given) for at in range(shape.levels))

    def error_model(self, reports: Sequence[float]) -> HaarErrorModel:
        """Return the error model of estimates from so many reports of each level.

        Parameters
        ----------
        reports : sequence of float
            In the order of `levels`.

        Returns
        -------
        HaarErrorModel
            The variances of ranges.
        """
        moments = tuple(level.moments for level in self.levels)
        return HaarErrorModel(shape=self.device.shape, moments=moments, reports=tuple(reports))

    def _leaves(self, totals: list[NDArray[np.int64]], asked: list[int]) -> Array:
        parts = zip(self.levels, totals, asked, strict=True)
        found = [
            level.differences(own, count) if count else np.zeros(len(level.device.domain) // 2)
            for level, own, count in parts
        ]
        return from_coefficients(self.device.shape, found)


@lru_cache(maxsize=256)
def coefficients_of(epsilon: float, nodes: int, kind: type[Oracle[Any]] | None) -> Coefficients:
    """Return the coefficients of a level: by the oracle asked for, or with the smallest error of three."""
    domain = Domain(range(2 * nodes))
    if kind is not None:
        return OracleDifferences(kind(epsilon=epsilon, domain=domain))
    found: list[Coefficients] = [
        SignedBits(epsilon, nodes),
        OracleDifferences(OptimalLocalHashing(epsilon=epsilon, domain=domain)),
    ]
    if nodes < 3 * np.exp(epsilon) + 2:
        found.append(OracleDifferences(RandomizedResponse(epsilon=epsilon, domain=domain)))
    return min(found, key=lambda level: level.moments.even(nodes))
