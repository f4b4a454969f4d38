"""Randomized response over any number of categories, as a frequency oracle."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.frequency import randomized_response as client
from sfumato.local.frequency.oracle import SupportOracle
from sfumato.local.frequency.support import Support
from sfumato.privacy.leaves import randomized_response as leaf
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["RandomizedResponse"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedResponse(SupportOracle[client.RandomizedResponseRandomizer]):
    r"""Each report is the true category, or any other by chance; best for few categories.

    Parameters
    ----------
    epsilon, domain
        See `Oracle`.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one; see
    `sfumato.local.device.RandomizedResponseRandomizer`. For k categories and a rare one the variance is about
    :math:`\frac{e^\epsilon + k - 2}{n (e^\epsilon - 1)^2}`: less than that of any protocol here while
    :math:`k < 3 e^\epsilon + 2`.

    References
    ----------
    Warner (1965); Kairouz, Bonawitz, Ramage (2016), "Discrete distribution estimation under local privacy".

    Examples
    --------
    >>> from sfumato.local import Domain
    >>> oracle = RandomizedResponse(epsilon=2.0, domain=Domain(["red", "green", "blue"]))
    >>> aggregator = oracle.aggregator()
    >>> aggregator.add_batch(oracle.randomize_batch(["red"] * 700 + ["blue"] * 300, rng=1))
    1000
    >>> aggregator.estimate().frequencies.round(2).tolist()
    [0.7, 0.02, 0.28]
    """

    wire_name: ClassVar[str] = "randomized-response"

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """Randomized response with the odds that are drawn."""
        truth, count = self.device.truth.chance, len(self.domain)
        return leaf.RandomizedResponse(self._bound(truth * (count - 1) / (1 - truth)), count)

    @property
    def support(self) -> Support:
        """A report supports the category that it names, and no other."""
        truth = self.device.truth.chance
        none = Fraction(0)
        return Support(
            true=truth, other=(1 - truth) / (len(self.domain) - 1), with_true=none, both_others=none
        )

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Count the categories that were named.

        Parameters
        ----------
        records : uint8 array, shape (records, width)
            Well-formed records, one a row.

        Returns
        -------
        ndarray of int64, shape (totals,)
            What they add to the aggregator's totals.
        """
        named = self.device.layout.unpack(records)
        return np.bincount(named.astype(np.int64), minlength=len(self.domain))

    def _simulate(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        # A report is the truth with probability p - q, and else drawn evenly from all categories.
        retained = generator.binomial(counts, float(self.support.gap))
        rest = int(counts.sum() - retained.sum())
        even = generator.multinomial(rest, np.full(len(counts), 1 / len(counts)))
        return np.asarray(retained + even, dtype=np.int64)
