"""Binary local hashing: everywhere matched by one-bit Hadamard response, whose reports are shorter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from sfumato.local.device.frequency.local_hashing import BinaryLocalHashingRandomizer
from sfumato.local.frequency.local_hashing import HashingOracle

__all__ = ["BinaryLocalHashing"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryLocalHashing(HashingOracle[BinaryLocalHashingRandomizer]):
    r"""Local hashing to two buckets.

    Parameters
    ----------
    epsilon, domain
        See `Oracle`.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one; see
    `sfumato.local.device.BinaryLocalHashingRandomizer`. The variance is :math:`\frac{(e^\epsilon + 1)^2}{n
    (e^\epsilon - 1)^2}`: close to that of `sfumato.local.OptimalLocalHashing` for a small epsilon only.

    References
    ----------
    Bassily, Smith (2015), "Local, private, efficient protocols for succinct histograms".

    Examples
    --------
    >>> from sfumato.local import Domain
    >>> round(BinaryLocalHashing(epsilon=1.0, domain=Domain(range(1024))).variance(1), 2)
    4.68
    """

    wire_name: ClassVar[str] = "binary-local-hashing"
