"""Unary encodings as frequency oracles: a bit for each category."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.frequency import unary as client
from sfumato.local.frequency.oracle import SupportOracle
from sfumato.local.frequency.support import Support
from sfumato.numerics import _kernels
from sfumato.privacy.leaves.support_response import SupportResponse
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["OptimizedUnaryEncoding", "SymmetricUnaryEncoding", "UnaryOracle", "bits_set"]

Device = TypeVar("Device", bound=client.UnaryRandomizer)


def bits_set(records: Records, size: int) -> NDArray[np.int64]:
    """Count for each of the first bits how many records have it set."""
    width = records.shape[1]
    counts = np.zeros(8 * width, np.int64)
    _kernels.count_bits(np.ascontiguousarray(records), width, counts)
    return counts[:size]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnaryOracle(SupportOracle[Device]):
    r"""A report is one bit for each category, and supports those whose bits are set.

    Notes
    -----
    The bits are independent. The shared distribution of `sfumato.privacy.SupportResponse` is that of bits
    which are all set with probability q, any two of them with :math:`q^2`; the likelihood of a report of x
    relative to it is :math:`p/q` where the bit of x is set, and :math:`(1-p)/(1-q)` elsewhere.
    """

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """Two independent bits, with the chances that are drawn; see the notes."""
        p, q = self.device.true.chance, self.device.other.chance
        return SupportResponse(self._bound(p * (1 - q) / (q * (1 - p))), q, q * q)

    @property
    def support(self) -> Support:
        """A report supports the categories whose bits are set."""
        p, q = self.device.true.chance, self.device.other.chance
        return Support(true=p, other=q, with_true=p * q, both_others=q * q)

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Count the bits that are set, category by category."""
        return bits_set(records, len(self.domain))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SymmetricUnaryEncoding(UnaryOracle[client.SymmetricUnaryEncodingRandomizer]):
    r"""Unary encoding that treats set and unset bits alike: the basic form of RAPPOR.

    Parameters
    ----------
    epsilon, domain
        See `Oracle`; a report has as many bits as there are categories.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one; see
    `sfumato.local.device.SymmetricUnaryEncodingRandomizer`. The variance is about
    :math:`\frac{e^{\epsilon/2}}{n (e^{\epsilon/2} - 1)^2}`, the same for rare and frequent values.

    References
    ----------
    Erlingsson, Pihur, Korolova (2014), "RAPPOR"; Wang, Blocki, Li, Jha (2017).

    Examples
    --------
    >>> from sfumato.local import Domain
    >>> oracle = SymmetricUnaryEncoding(epsilon=1.0, domain=Domain(range(100)))
    >>> round(oracle.variance(1), 2)
    3.92
    """

    wire_name: ClassVar[str] = "symmetric-unary-encoding"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizedUnaryEncoding(UnaryOracle[client.OptimizedUnaryEncodingRandomizer]):
    r"""Unary encoding with the smallest error for rare values.

    Parameters
    ----------
    epsilon, domain
        See `Oracle`; a report has as many bits as there are categories.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one; see
    `sfumato.local.device.OptimizedUnaryEncodingRandomizer`. The variance for a rare value is about
    :math:`\frac{4 e^\epsilon}{n (e^\epsilon - 1)^2}`, which no protocol beats by more than a little for many
    categories.

    References
    ----------
    Wang, Blocki, Li, Jha (2017), "Locally differentially private protocols for frequency estimation".

    Examples
    --------
    >>> from sfumato.local import Domain
    >>> oracle = OptimizedUnaryEncoding(epsilon=1.0, domain=Domain(range(100)))
    >>> round(oracle.variance(1), 2)
    3.68
    """

    wire_name: ClassVar[str] = "optimized-unary-encoding"
