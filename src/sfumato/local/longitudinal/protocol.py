"""What protocols share that memoize: the loss of one report, and of all that a device ever sends."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.base.protocol import LocalProtocol, ReportProtocol, log_odds
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.base.report_batch import ReportBatch
from sfumato.numerics.decimals import outward
from sfumato.numerics.randomness.source import Rng
from sfumato.privacy.leaves.declared import PureDP
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["LongitudinalProtocol", "MemoizedProtocol"]

_MANY: Final = 512
"""Reports of one memo after which its own loss is stated."""


class LongitudinalProtocol(ReportProtocol[Any, Any]):
    r"""The losses of a protocol whose devices memoize.

    Notes
    -----
    All are under replace-one, of whole histories: what one person's device has over all time is exchanged for
    any other history *that is alike in its changes* (equal at two times in both, or different in both), the
    time and number of its reports being the same. Between such histories the reports are post-processing of
    one memo for each different key: the theorem and its proof are in
    `sfumato.local.device.longitudinal.memory`. That a value changed, when, and whether it came back is not
    protected. With ``max_memos=1`` no change is ever reported, and the loss holds for any two histories.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def permanent_loss(self) -> PrivacyLoss:
        """The loss of one memo, and so of all reports made of it, however many."""

    @abstractmethod
    def _odds_of(self, reports: int) -> Fraction:
        """Return the largest ratio of chances of so many reports of one memo."""

    def randomize_rounds(self, rounds: Sequence[Any], rng: Rng = None) -> list[ReportBatch]:
        """Return what many devices send in several rounds; see `MemoizingRandomizer.randomize_rounds`."""
        made: list[ReportBatch] = self.device.randomize_rounds(rounds, rng)
        return made

    def longitudinal_loss(self, changes: int | None = None) -> PrivacyLoss:
        """Return the loss of all reports of a device together, however many.

        Parameters
        ----------
        changes : int, optional
            How often what is memoized becomes something new; as often as the protocol's cap allows, if left
            out. A return to something earlier is no new memo, and costs nothing.

        Returns
        -------
        PrivacyLoss
            That of one memo, times how many there are; see the notes of the class for the relation.
        """
        memos: int = self.device.memo_limit
        if changes is not None:
            memos = min(memos, _check.integer("changes", changes) + 1)
        return self.permanent_loss * memos

    def same_memo_loss(self, reports: int) -> PrivacyLoss:
        r"""Return the loss of some reports of one memo: from that of one report up to that of the memo.

        Parameters
        ----------
        reports : int
            At least 1.

        Notes
        -----
        The odds are the exact largest ratio of the chances of such reports, for up to 512; beyond that the
        memo's own loss is returned.
        """
        count = _check.integer("reports", reports, minimum=1)
        if count == 1:
            return self.privacy_loss
        if count > _MANY:
            return self.permanent_loss
        bound = log_odds(self._odds_of(count), self.permanent_loss.epsilon(0.0))
        return PureDP(outward(bound), neighboring=Neighboring.REPLACE_ONE)

    def unmemoized_loss(self, reports: int) -> PrivacyLoss:
        """Return the loss of some reports that are each drawn anew, without memos: to compare.

        Parameters
        ----------
        reports : int
            At least 1.
        """
        return self.privacy_loss * _check.integer("reports", reports, minimum=1)


class MemoizedProtocol(LocalProtocol[Any, Any], LongitudinalProtocol):
    """A longitudinal protocol whose reports, in one round, are those of a protocol without memos.

    Attributes
    ----------
    inner : LocalProtocol
        The distribution of one round, and what its reports estimate.
    permanent : LocalProtocol
        The distribution of memos.
    """

    __slots__ = ()

    inner: Any
    permanent: Any

    def _prepare(self) -> None:
        self._set(inner=self._without_memos(self.device.epsilon))
        self._set(permanent=self._without_memos(self.device.permanent_epsilon))

    @abstractmethod
    def _without_memos(self, epsilon: float) -> LocalProtocol[Any, Any]:
        """Return the protocol without memos of an epsilon."""

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one report of a device: that of `inner`, with the odds that are drawn."""
        loss: PrivacyLoss = self.inner.privacy_loss
        return loss

    @property
    def permanent_loss(self) -> PrivacyLoss:
        """The same of a memo."""
        loss: PrivacyLoss = self.permanent.privacy_loss
        return loss

    @property
    def totals(self) -> int:
        """How many whole numbers an aggregator stores: as many as for `inner`."""
        count: int = self.inner.totals
        return count

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Return what some records add to an aggregator's `totals` numbers, as `inner` counts them.

        Parameters
        ----------
        records : uint8 array, shape (records, width)
            Well-formed records, one a row.

        Returns
        -------
        ndarray of int64, shape (totals,)
            What they add to the aggregator's totals.
        """
        return np.asarray(self.inner.tally(records), np.int64)

    def estimate(self, totals: NDArray[np.int64], reports: int, *, simulated: bool = False) -> Any:
        """Return what the totals of one round estimate, as `inner` does; mostly called by an aggregator.

        Parameters
        ----------
        totals : int64 array, shape (totals,)
            An aggregator's totals.
        reports : int
            How many reports were accepted.
        simulated : bool
            Whether the randomness of any report followed from a seed.

        Returns
        -------
        object
            The estimate of one round; `rounds` combines several.
        """
        return self.inner.estimate(totals, reports, simulated=simulated)
