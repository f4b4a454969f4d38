"""Chained unary encodings as frequency oracles: L-SUE, L-OUE, L-OSUE and L-SOUE."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.base.protocol import log_odds
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.longitudinal import l_ue as client
from sfumato.local.frequency.support import Support
from sfumato.local.frequency.unary import bits_set
from sfumato.local.longitudinal.oracle import TwoLayerOracle
from sfumato.privacy.leaves.support_response import SupportResponse
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["LongitudinalUnaryEncoding", "bit_odds"]


def bit_odds(memo: tuple[Fraction, Fraction], again: tuple[Fraction, Fraction], reports: int) -> Fraction:
    r"""Return the largest ratio of the chances of reports of two memoized bits, one of which is true.

    Parameters
    ----------
    memo : tuple of Fraction
        Chances of a memoized 1 where the bit is true, and where it is not.
    again : tuple of Fraction
        Chances of a reported 1 where the memoized bit is 1, and where it is 0.
    reports : int
        How many there are, of the same memo.

    Notes
    -----
    Of t reports of a bit the likelihood of a memoized 1 over that of a 0 is some :math:`\lambda`, largest,
    :math:`(p_2/q_2)^t`, where all are 1, and smallest, :math:`((1-p_2)/(1-q_2))^t`, where all are 0. The
    ratio :math:`\frac{p_1 \lambda + 1 - p_1}{q_1 \lambda + 1 - q_1}` rises with it; that of the other bit is
    its inverse.
    """
    (p, q), (high, low) = memo, again
    largest, smallest = (high / low) ** reports, ((1 - high) / (1 - low)) ** reports
    return (p * largest + 1 - p) / (q * largest + 1 - q) * (q * smallest + 1 - q) / (p * smallest + 1 - p)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LongitudinalUnaryEncoding(TwoLayerOracle[client.LongitudinalUnaryEncodingRandomizer]):
    r"""A bit for each category, turned over by chance once for good, and again for each report.

    Parameters
    ----------
    epsilon, domain, permanent_epsilon, max_memos
        See `TwoLayerOracle`; a report has as many bits as there are categories.
    chain : str
        ``"OSUE"``, the best; ``"SUE"`` (basic RAPPOR), ``"OUE"`` or ``"SOUE"``: see
        `sfumato.local.device.LongitudinalUnaryEncodingRandomizer`.

    Notes
    -----
    Guarantee: of one report `privacy_loss`, of all reports of a device `longitudinal_loss`, under the
    conditions of `LongitudinalProtocol`; see `sfumato.local.device.LongitudinalUnaryEncodingRandomizer`. A
    report of a device without earlier ones has the distribution of a unary encoding with the bits' chances P
    and Q, and so its loss.

    *The loss of t reports of one memo.* Bits are independent, and two values change the distributions of two:
    see `sfumato.local.longitudinal.l_ue.bit_odds`.

    References
    ----------
    Erlingsson, Pihur, Korolova (2014), "RAPPOR"; Arcolezi, Couchot, Al Bouna, Xiao (2022), "Improving the
    utility of locally differentially private protocols for longitudinal and multidimensional frequency
    estimates".

    Examples
    --------
    >>> from sfumato.local import Domain
    >>> oracle = LongitudinalUnaryEncoding(epsilon=1.0, permanent_epsilon=2.0, domain=Domain(range(100)))
    >>> round(oracle.variance(1), 2), [round(oracle.same_memo_loss(t).epsilon(0.0), 2) for t in (1, 2, 10)]
    (3.68, [1.0, 1.64, 2.0])
    """

    wire_name: ClassVar[str] = "longitudinal-unary-encoding"

    chain: str = "OSUE"

    def _loss(self, chances: tuple[Fraction, Fraction], epsilon: float) -> PrivacyLoss:
        p, q = chances
        return SupportResponse(log_odds(p * (1 - q) / (q * (1 - p)), epsilon), q, q * q)

    def _support(self, chances: tuple[Fraction, Fraction]) -> Support:
        p, q = chances
        return Support(true=p, other=q, with_true=p * q, both_others=q * q)

    def _odds_of(self, reports: int) -> Fraction:
        return bit_odds(self.device.memo_chances, self.device.fresh_chances, reports)

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Count the bits that are set, category by category.

        Parameters
        ----------
        records : uint8 array, shape (records, width)
            Well-formed records, one a row.

        Returns
        -------
        ndarray of int64, shape (totals,)
            What they add to the aggregator's totals.
        """
        return bits_set(records, len(self.domain))
