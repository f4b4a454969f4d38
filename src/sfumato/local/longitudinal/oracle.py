"""Frequency oracles whose devices memoize: the covariance of rounds, and simulations of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.local.base.respondents import seeded
from sfumato.local.device.longitudinal.layers import MemoizedCategories, TwoLayerRandomizer
from sfumato.local.frequency.estimate import Estimate
from sfumato.local.frequency.oracle import Oracle, SupportOracle
from sfumato.local.frequency.support import Support
from sfumato.local.frequency.variance import Array, ErrorModel
from sfumato.local.longitudinal.protocol import LongitudinalProtocol
from sfumato.local.longitudinal.rounds import Rounds, checked_rounds
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["MemoizedOracle", "TwoLayerOracle"]

Device = TypeVar("Device", bound=MemoizedCategories)
TwoLayers = TypeVar("TwoLayers", bound=TwoLayerRandomizer)

_CLOSE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoizedOracle(Oracle[Device], LongitudinalProtocol):
    """An oracle whose devices memoize.

    Parameters
    ----------
    epsilon, domain
        See `Oracle`; epsilon is that of one report of a device.
    max_memos : int
        Most memos that a device draws, from 1 to 65,536: what all its reports lose is at most so many times
        what one memo does.

    Notes
    -----
    *One round* is estimated as if it were the only one: the reports of different devices are independent, and
    a report has the distribution that `privacy_loss` and `error_model` state. That holds for devices with no
    more than ``max_memos`` memos; beyond that they report what they memoized last, and the estimate is of
    that.

    *Rounds* are combined as `rounds` and `round_covariance` state.
    """

    added: ClassVar[tuple[int, int]] = (0, 1)
    """What one report adds to a total at least and at most."""

    max_memos: int = 4

    @property
    @abstractmethod
    def permanent_error_model(self) -> ErrorModel:
        """How far an estimate from memos themselves would deviate: the part that rounds share."""

    @property
    def _changed(self) -> tuple[Fraction, Fraction]:
        """Covariance of a device's parts in two rounds between which its value changes.

        For a category that is one of its two values, and for one that is neither; 0 where memos of different
        values are independent in every way.
        """
        return Fraction(0), Fraction(0)

    def rounds(self, estimates: Sequence[Estimate]) -> Rounds:
        """Return the estimates of rounds in which the same devices were asked, together.

        Parameters
        ----------
        estimates : sequence of Estimate
            One for each round, of this oracle.
        """
        held = checked_rounds(estimates, Estimate, self._of_this, "oracle")
        shares = np.array([np.clip(one.raw, 0.0, 1.0) for one in held])
        reports = np.array([one.reports for one in held], np.float64)[:, None]
        with np.errstate(divide="ignore"):
            variances, permanent = (
                np.where(reports > 0, error_model.variance(np.nan_to_num(shares)) / reports, np.inf)
                for error_model in (self.error_model, self.permanent_error_model)
            )
        return Rounds(
            values=np.array([one.raw for one in held]),
            variances=variances,
            permanent=np.where(reports > 0, permanent, 0.0),
            limits=(0.0, 1.0),
            loss=self.longitudinal_loss(),
            simulated=any(one.simulated for one in held),
        )

    def _of_this(self, estimate: Estimate) -> bool:
        return estimate.domain == self.domain and estimate.loss == self.privacy_loss

    def round_covariance(self, joint: ArrayLike, n: int) -> Array:
        r"""Return the covariance of the estimates of two rounds, for each category.

        Parameters
        ----------
        joint : array, shape (categories, categories)
            Shares of devices that have the one category in the first round and the other in the second.
        n : int
            How many devices there are, all of which report in both.

        Notes
        -----
        Devices are independent of one another. One that retains its value has the same memo in both rounds,
        and fresh randomization is independent: the covariance of its parts is the variance of the memo's own
        part in an estimate. One that changes it has another memo, drawn independently given what it drew for
        good. It holds for devices that have not used up ``max_memos``.
        """
        shares = np.asarray(joint, np.float64)
        size = len(self.domain)
        if shares.shape != (size, size) or not (shares >= 0).all() or abs(shares.sum() - 1) > _CLOSE:
            rule = f"be {size} times {size} shares that sum up to 1"
            _check.refuse_type("joint", rule, shares, "divide a table by its sum")
        count = _check.integer("n", n, minimum=1)
        retained = np.diag(shares)
        ends = self.permanent_error_model.variance(np.array([0.0, 1.0]))
        found = retained.sum() * ends[0] + retained * (ends[1] - ends[0])
        either = shares.sum(axis=0) + shares.sum(axis=1) - 2 * retained
        one, none = map(float, self._changed)
        return np.asarray(found + either * one + (1 - retained.sum() - either) * none) / count

    def simulate_rounds(
        self, true_counts: ArrayLike, rounds: int, rng: int | np.random.Generator = 0
    ) -> list[Estimate]:
        """Draw the estimates of several rounds in which nobody's value changes, whatever their number.

        Parameters
        ----------
        true_counts : array of int
            How many devices are in each category.
        rounds : int
            At least 1.
        rng : int or numpy Generator
            A seed: this simulates, for planning.
        """
        times = _check.integer("rounds", rounds, minimum=1)
        counts, generator = self.checked_counts(true_counts), seeded(rng)
        n = int(counts.sum())
        memos = self._memo_totals(counts, generator)
        drawn = (self._reported_totals(memos, n, generator) for _ in range(times))
        first = self.estimate(next(drawn), n, simulated=True)
        return [first, *(replace(first, raw=self.shares(totals, n)) for totals in drawn)]

    @abstractmethod
    def _memo_totals(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        """Draw what the memos of devices would add up to."""

    @abstractmethod
    def _reported_totals(
        self, memos: NDArray[np.int64], reports: int, generator: np.random.Generator
    ) -> NDArray[np.int64]:
        """Draw the totals of one report of each memo, given what those add up to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoLayerOracle(MemoizedOracle[TwoLayers], SupportOracle[TwoLayers]):
    """An oracle of a `TwoLayerRandomizer`, whose memos support values as reports do.

    Parameters
    ----------
    epsilon, domain, max_memos
        See `MemoizedOracle`.
    permanent_epsilon : float, optional
        That of a memo, and so of all reports made of it, however many: above epsilon, at most 40. Twice
        epsilon if left out.
    """

    permanent_epsilon: float | None = None

    @abstractmethod
    def _loss(self, chances: tuple[Fraction, Fraction], epsilon: float) -> PrivacyLoss:
        """Return the loss of one layer, or of both, from how likely the truth and any other are supported.

        ``epsilon`` is what the odds of these chances were proved not to exceed.
        """

    @abstractmethod
    def _support(self, chances: tuple[Fraction, Fraction]) -> Support:
        """Return how likely values are supported, given the same chances."""

    @property
    def _chances(self) -> tuple[Fraction, Fraction]:
        """How likely a report supports the truth, and any other, where no two values share a report."""
        return self.device.chances

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one report, with the odds that are drawn."""
        return self._loss(self._chances, self.epsilon)

    @property
    def permanent_loss(self) -> PrivacyLoss:
        """The loss of one memo, with the odds of the permanent layer."""
        return self._loss(self.device.memo_chances, self.permanent_epsilon or 0.0)

    @property
    def support(self) -> Support:
        """How likely reports support values, exactly."""
        return self._support(self._chances)

    @property
    def permanent_error_model(self) -> Support:
        """How far an estimate from memos would deviate: as their support says."""
        return self._support(self.device.memo_chances)

    def _memo_totals(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        return self.permanent_error_model.simulate(counts, generator)

    def _reported_totals(
        self, memos: NDArray[np.int64], reports: int, generator: np.random.Generator
    ) -> NDArray[np.int64]:
        high, low = map(float, self.device.fresh_chances)
        drawn = generator.binomial(memos, high) + generator.binomial(reports - memos, low)
        return np.asarray(drawn, dtype=np.int64)
