"""L-GRR as a frequency oracle."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.base.protocol import log_odds
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.longitudinal import l_grr as client
from sfumato.local.frequency.support import Support
from sfumato.local.longitudinal.oracle import TwoLayerOracle
from sfumato.privacy.leaves.randomized_response import RandomizedResponse
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["LongitudinalRandomizedResponse", "response_odds"]


def response_odds(device: client.LongitudinalRandomizedResponseRandomizer, reports: int) -> Fraction:
    r"""Return the largest ratio of the chances of some reports of one memo.

    Notes
    -----
    Let the memo be one of k values, with probabilities :math:`p_1, q_1`, and each report the memo with
    probability :math:`r q_2` and each other value with :math:`q_2`. Up to a common factor the t reports have
    the probability :math:`q_1 W + (p_1 - q_1) w_v` for the value v, where :math:`w_m = r^{n_m}` for the
    number :math:`n_m` of reports of m, and W is the sum of all :math:`w_m`. The ratio for v and v' falls with
    W if :math:`w_v > w_{v'}`, and :math:`W \ge w_v + k - 1`; then it rises with :math:`w_v` and falls with
    :math:`w_{v'} \ge 1`. So it is largest where all reports are v: :math:`\frac{p_1 r^t + (k-1) q_1}{q_1 r^t
    + p_1 + (k - 2) q_1}`.
    """
    others = len(device.domain) - 1
    truth, again = device.permanent.truth.chance, device.again.chance
    weight, lie = (again * others / (1 - again)) ** reports, (1 - truth) / others
    return (truth * weight + others * lie) / (lie * weight + truth + (others - 1) * lie)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LongitudinalRandomizedResponse(TwoLayerOracle[client.LongitudinalRandomizedResponseRandomizer]):
    r"""Randomized response once for good, and again for each report: L-GRR, for few categories.

    Parameters
    ----------
    epsilon, domain, permanent_epsilon, max_memos
        See `TwoLayerOracle`.

    Notes
    -----
    Guarantee: of one report `privacy_loss`, of all reports of a device `longitudinal_loss`, under the
    conditions of `LongitudinalProtocol`; see `sfumato.local.device.LongitudinalRandomizedResponseRandomizer`.
    In one round it errs as `sfumato.local.RandomizedResponse` with the same epsilon.

    References
    ----------
    Arcolezi, Couchot, Al Bouna, Xiao (2022), "Improving the utility of locally differentially private
    protocols for longitudinal and multidimensional frequency estimates".

    Examples
    --------
    >>> from sfumato.local import Domain
    >>> oracle = LongitudinalRandomizedResponse(epsilon=1.0, permanent_epsilon=2.5, domain=Domain(range(3)))
    >>> oracle.longitudinal_loss(changes=1).epsilon(0.0), round(oracle.unmemoized_loss(30).epsilon(0.0), 6)
    (5.0, 30.0)
    """

    wire_name: ClassVar[str] = "longitudinal-randomized-response"

    def _loss(self, chances: tuple[Fraction, Fraction], epsilon: float) -> PrivacyLoss:
        return RandomizedResponse(log_odds(chances[0] / chances[1], epsilon), len(self.domain))

    def _support(self, chances: tuple[Fraction, Fraction]) -> Support:
        return Support(true=chances[0], other=chances[1], with_true=Fraction(0), both_others=Fraction(0))

    def _odds_of(self, reports: int) -> Fraction:
        return response_odds(self.device, reports)

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
        return _exchanged(counts, float(self.support.gap), generator)

    def _memo_totals(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        return _exchanged(counts, float(self.permanent_error_model.gap), generator)

    def _reported_totals(
        self, memos: NDArray[np.int64], reports: int, generator: np.random.Generator
    ) -> NDArray[np.int64]:
        high, low = self.device.fresh_chances
        return _exchanged(memos, float(high - low), generator)


def _exchanged(counts: NDArray[np.int64], gap: float, generator: np.random.Generator) -> NDArray[np.int64]:
    """Draw counts after randomized response: the truth with a probability, and else even draws from all."""
    retained = generator.binomial(counts, gap)
    even = generator.multinomial(int(counts.sum() - retained.sum()), np.full(len(counts), 1 / len(counts)))
    return np.asarray(retained + even, dtype=np.int64)
