"""LOLOHA as a frequency oracle."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.base.protocol import log_odds
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.longitudinal import loloha as client
from sfumato.local.frequency.local_hashing import supports_of
from sfumato.local.frequency.support import Support
from sfumato.local.longitudinal.l_grr import response_odds
from sfumato.local.longitudinal.oracle import TwoLayerOracle
from sfumato.privacy.leaves.randomized_response import RandomizedResponse
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["LongitudinalLocalHashing"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LongitudinalLocalHashing(TwoLayerOracle[client.LongitudinalLocalHashingRandomizer]):
    r"""Local hashing with one hash function a device: LOLOHA, a few bytes and few memos for any domain.

    Parameters
    ----------
    epsilon, domain, permanent_epsilon, max_memos
        See `TwoLayerOracle`; at most :math:`2^{32}` categories.
    buckets : int, optional
        The g: 2 is BiLOLOHA, the smallest loss over time; left out it is :math:`\mathrm{round}(e^\epsilon) +
        1`, the smallest error (OLOLOHA).

    Notes
    -----
    Guarantee: of one report `privacy_loss`, of all reports of a device `longitudinal_loss`: at most g memos,
    as values of one bucket share theirs. Conditions are those of `LongitudinalProtocol`, with buckets instead
    of values; see `sfumato.local.device.LongitudinalLocalHashingRandomizer`. Reports of a device are
    linked by its seed.

    Estimates rest on the hash function as those of `sfumato.local.OptimalLocalHashing` do, and have its error
    in one round. Devices retain their hash functions: where a device changes its value the two rounds still
    have a little in common, which `round_covariance` counts.

    References
    ----------
    Arcolezi, Pinzón, Palamidessi, Gambs (2023), "Frequency estimation of evolving data under local
    differential privacy".

    Examples
    --------
    >>> from sfumato.local import Domain
    >>> oracle = LongitudinalLocalHashing(epsilon=1.0, domain=Domain(range(10_000)), buckets=2)
    >>> oracle.longitudinal_loss().epsilon(0.0), round(oracle.variance(1), 2)
    (4.0, 4.68)
    """

    wire_name: ClassVar[str] = "longitudinal-local-hashing"

    buckets: int | None = None

    @property
    def _chances(self) -> tuple[Fraction, Fraction]:
        return self.device.inner.chances

    def _loss(self, chances: tuple[Fraction, Fraction], epsilon: float) -> PrivacyLoss:
        return RandomizedResponse(log_odds(chances[0] / chances[1], epsilon), self.device.max_keys)

    def _support(self, chances: tuple[Fraction, Fraction]) -> Support:
        even = Fraction(1, self.device.max_keys)
        return Support(true=chances[0], other=even, with_true=chances[0] * even, both_others=even * even)

    def _odds_of(self, reports: int) -> Fraction:
        return response_odds(self.device.inner, reports)

    @property
    def _changed(self) -> tuple[Fraction, Fraction]:
        r"""Covariances of a device that changes its value, by what its hash function does.

        Notes
        -----
        Both values are in one bucket, with one memo, with probability 1/g, and else in two with independent
        ones. With probabilities :math:`p, q` of a memo the mean product of the indicators that the two memos
        support a category is, for one of the two values, :math:`\frac pg + (1 - \frac1g) p q`, less
        :math:`\frac pg`; for any other, :math:`\frac1{g^2} + (1 - \frac1g) \frac{2pq + (g-2)q^2}{g}`, less
        :math:`\frac1{g^2}`.
        """
        even, (p, q) = Fraction(1, self.device.max_keys), self.device.memo_chances
        scale = (1 - even) / (p - even) ** 2
        return scale * p * q, scale * even * (2 * p * q + (1 / even - 2) * q * q)

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Count for each category the records that support it.

        Parameters
        ----------
        records : uint8 array, shape (records, width)
            Well-formed records, one a row.

        Returns
        -------
        ndarray of int64, shape (totals,)
            What they add to the aggregator's totals.
        """
        return self.supports(records, np.arange(len(self.domain)))

    def supports(self, records: Records, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count for some categories the records that support them.

        Parameters
        ----------
        records : uint8 array, shape (records, width)
            Well-formed records, one a row.
        codes : int64 array
            Indices in the domain.

        Returns
        -------
        ndarray of int64
            One count for each index.
        """
        return supports_of(*self.device.opened(records), self.device.max_keys, codes)
