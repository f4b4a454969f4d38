"""Subset selection as a frequency oracle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.frequency import subset_selection as client
from sfumato.local.frequency.block_design import balanced, kept_share
from sfumato.local.frequency.oracle import SupportOracle
from sfumato.local.frequency.support import Support
from sfumato.numerics import _kernels
from sfumato.privacy.leaves.support_response import SupportResponse
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["SubsetSelection"]

_CELLS: Final = 1 << 23
_CROWD: Final = 1 << 29


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetSelection(SupportOracle[client.SubsetSelectionRandomizer]):
    r"""Each report is a set of categories, most likely with the truth in it; the smallest variance of all.

    Parameters
    ----------
    epsilon, domain
        See `Oracle`; at most 2**20 categories.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one; see `sfumato.local.device`.

    For d categories and a rare one the variance is about :math:`\frac{4 e^\epsilon}{n (e^\epsilon - 1)^2}`,
    and less for small d; with sets of one it is randomized response. Reports are long: d bits, or
    :math:`d/(e^\epsilon+1)` indices.

    References
    ----------
    Ye, Barg (2018), "Optimal schemes for discrete distribution estimation under locally differential
    privacy".

    Examples
    --------
    >>> from sfumato.local import Domain
    >>> oracle = SubsetSelection(epsilon=1.0, domain=Domain(range(128)))
    >>> round(oracle.variance(1), 3)
    3.61
    """

    wire_name: ClassVar[str] = "subset-selection"

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """An even distribution on the sets, with the odds that are drawn."""
        one, two, _ = self.device.parts
        return SupportResponse(self._bound(self.device.odds), one, two)

    @property
    def support(self) -> Support:
        """A report supports its members."""
        _, two, three = self.device.parts
        return balanced(self.device, two, three)

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Count in how many sets each category is.

        Parameters
        ----------
        records : uint8 array, shape (records, width)
            Well-formed records, one a row.

        Returns
        -------
        ndarray of int64, shape (totals,)
            What they add to the aggregator's totals.
        """
        device, count = self.device, len(self.domain)
        if not device.listed:
            bits = np.zeros(8 * records.shape[1], np.int64)
            _kernels.count_bits(np.ascontiguousarray(records), records.shape[1], bits)
            return bits[:count]
        found = np.zeros(count, np.int64)
        rows = max(1, _CELLS // (8 * device.width))
        for at in range(0, len(records), rows):
            found += np.bincount(device.members(records[at : at + rows]).ravel(), minlength=count)
        return found

    def _simulate(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        parts = -(-int(counts.sum()) // _CROWD)
        if parts <= 1:
            return self._crowd(counts, generator)
        share = counts // parts
        drawn = [self._crowd(share, generator) for _ in range(parts - 1)]
        return np.asarray(sum(drawn, self._crowd(counts - (parts - 1) * share, generator)))

    def _crowd(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        """Draw totals category by category, from how many reports still lack how many members.

        Notes
        -----
        A report is an even draw from all sets, or else from those with the truth in them. Of the latter,
        those whose truth is still to come lack members whatever it is: so when it comes, its respondents are
        any of them.
        """
        count, size = len(counts), self.device.subset_size
        retained = generator.binomial(counts, kept_share(self.device))
        free, waiting = np.zeros(size + 1, np.int64), np.zeros(size + 1, np.int64)
        free[size], waiting[size - 1] = counts.sum() - retained.sum(), retained.sum()
        lack, totals = np.arange(size + 1), np.zeros(count, np.int64)
        for at in range(count):
            left = count - at
            come = generator.multivariate_hypergeometric(waiting, int(retained[at]), method="marginals")
            waiting = waiting - come
            joined = generator.binomial(free, np.minimum(lack / left, 1.0))
            beside = generator.binomial(waiting, np.minimum(lack / max(1, left - 1), 1.0))
            totals[at] = retained[at] + joined.sum() + beside.sum()
            free = free + come + np.append(joined[1:], 0) - joined
            waiting = waiting + np.append(beside[1:], 0) - beside
        return totals
