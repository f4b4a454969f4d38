"""Local hashing as frequency oracles: a few bytes for any domain, and all work on the server."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.base.threads import in_pieces
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.frequency import local_hashing as client
from sfumato.local.frequency.oracle import SupportOracle
from sfumato.local.frequency.support import Support
from sfumato.numerics import _kernels
from sfumato.privacy.leaves.randomized_response import RandomizedResponse
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["HashingOracle", "OptimalLocalHashing", "supports_of"]

Device = TypeVar("Device", bound=client.HashingRandomizer)

_WORTH: Final = 1 << 24
"""Hashes for which a thread is worth its start."""


def supports_of(
    seeds: NDArray[np.uint32], named: NDArray[np.uint32], buckets: int, codes: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Count for some indices in a domain the seeds that hash them to the bucket that is named with each."""
    edges = -(-(np.arange(buckets + 1, dtype=np.int64) << 32) // buckets)
    low, span = edges[:-1].astype(np.uint32)[named], np.diff(edges).astype(np.uint32)[named]
    keys, counts = client.keys_of(codes), np.zeros(len(codes), np.int64)

    def count(part: slice) -> None:
        _kernels.count_hashes(seeds, low, span, keys[part], counts[part])

    in_pieces(count, len(codes), each=-(-_WORTH // max(1, len(seeds))))
    return counts


@dataclass(frozen=True, slots=True, kw_only=True)
class HashingOracle(SupportOracle[Device]):
    r"""A report supports all values that its seed hashes to the bucket that it names.

    Notes
    -----
    *What privacy rests on.* Not the hash: given the seed, a report is randomized response over g buckets, and
    values in one bucket look alike. Shuffled, the blanket is that of randomized response over g buckets: the
    even distribution over seeds and buckets supports each value with probability 1/g exactly, and overlaps
    only help (the proof in `sfumato.privacy.SupportResponse`).

    *What the estimate rests on.* That for a random seed any two values are hashed alike with probability 1/g
    (then it is unbiased, with the stated variance), and any three independently (then covariances are as
    stated). The hash is a fixed mixer with seeds of 32 bits and not a random function. Of pairs of indices,
    the worst that its form suggests among them, none was off by more than sampling explains at sixteen
    million seeds; that leaves open a bias below a thousandth of another value's share. In domains of more
    than :math:`2^{20}` values one pair in a million may be hashed alike some percent too often or too rarely.
    """

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """Randomized response over the buckets, with the odds that are drawn."""
        truth, buckets = self.device.truth.chance, self.device.buckets
        return RandomizedResponse(self._bound(truth * (buckets - 1) / (1 - truth)), buckets)

    @property
    def support(self) -> Support:
        """A report supports what its seed hashes to its bucket."""
        truth, even = self.device.truth.chance, Fraction(1, self.device.buckets)
        return Support(true=truth, other=even, with_true=truth * even, both_others=even * even)

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Count for each category the records that support it."""
        return self.supports(records, np.arange(len(self.domain)))

    def supports(self, records: Records, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count for some categories the records that support them.

        Parameters
        ----------
        records : uint8 array
            Well-formed ones.
        codes : int64 array
            Indices in the domain.

        Returns
        -------
        ndarray of int64
            One count for each index.
        """
        return supports_of(*self.device.opened(records), self.device.buckets, codes)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OptimalLocalHashing(HashingOracle[client.OptimalLocalHashingRandomizer]):
    r"""Local hashing to :math:`\mathrm{round}(e^\epsilon) + 1` buckets: short reports, small error.

    Parameters
    ----------
    epsilon, domain
        See `Oracle`.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one; see
    `sfumato.local.device.OptimalLocalHashingRandomizer`. The variance for a rare value is about
    :math:`\frac{4 e^\epsilon}{n (e^\epsilon - 1)^2}`. The server hashes each category once for each report.

    References
    ----------
    Wang, Blocki, Li, Jha (2017), "Locally differentially private protocols for frequency estimation".

    Examples
    --------
    >>> from sfumato.local import Domain
    >>> oracle = OptimalLocalHashing(epsilon=1.0, domain=Domain(range(1024)))
    >>> reports = oracle.randomize_batch([7] * 6000 + [8] * 4000, rng=1)
    >>> aggregator = oracle.aggregator()
    >>> aggregator.add_batch(reports)
    10000
    >>> [place for place, _ in aggregator.estimate().top(2)]
    [7, 8]
    """

    wire_name: ClassVar[str] = "optimal-local-hashing"
