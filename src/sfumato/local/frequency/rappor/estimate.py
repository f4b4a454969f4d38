"""The estimate from RAPPOR's reports: how many filters have each bit, cohort by cohort."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.device.frequency.rappor import RapporRandomizer
from sfumato.local.frequency.rappor.decoding import Decoded, decoded
from sfumato.local.frequency.variance import Array
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["RapporEstimate"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RapporEstimate:
    r"""Counts of bits, and unbiased estimates of what they were before randomization.

    Parameters
    ----------
    device : sfumato.local.device.RapporRandomizer
        The client half.
    clients : int64 array, shape (cohorts,)
        Reports of each cohort.
    counts : int64 array, shape (cohorts, bits)
        How often each bit is 1 in them.
    reports : int
        How many were accepted.
    loss : PrivacyLoss
        Of each report.
    simulated : bool
        Whether a report's randomness followed from a seed.

    Notes
    -----
    With :math:`p^*, q^*` the chances of a 1 where the filter's bit is not set and where it is, the share of
    filters with a bit is estimated by :math:`\frac{c/N - p^*}{q^* - p^*}`, of N reports c of which have a 1.

    Examples
    --------
    >>> from sfumato.local import Rappor
    >>> estimate = Rappor(cohorts=8).simulate({"blue": 60_000, "red": 40_000}, rng=1)
    >>> estimate.reports, estimate.shares.shape
    (100000, (8, 128))
    >>> estimate.decode(["blue", "green", "red"]).detected[:2]
    ['blue', 'red']
    """

    device: RapporRandomizer
    clients: NDArray[np.int64]
    counts: NDArray[np.int64]
    reports: int
    loss: PrivacyLoss
    simulated: bool = False

    @property
    def shares(self) -> Array:
        """Unbiased estimates of the share of a cohort's filters that have a bit; NaN without reports."""
        p, q = map(float, self.device.chances)
        clients = np.where(self.clients > 0, self.clients, np.nan)[:, None]
        return np.asarray((self.counts / clients - p) / (q - p))

    @property
    def variances(self) -> Array:
        r"""Estimated variances of `shares`, for devices drawn by chance; infinite without reports.

        Notes
        -----
        They are :math:`\frac{\rho(1-\rho)}{N (q^*-p^*)^2}`, :math:`\rho` being the part of reports with a 1,
        clipped to between :math:`p^*` and :math:`q^*`.
        """
        p, q = map(float, self.device.chances)
        clients = np.maximum(self.clients, 1)[:, None]
        rate = np.clip(self.counts / clients, p, q)
        found = rate * (1 - rate) / clients / (q - p) ** 2
        return np.asarray(np.where(self.clients[:, None] > 0, found, np.inf))

    def decode(
        self, candidates: Sequence[str | bytes], *, level: float = 0.95, correction: str = "bonferroni"
    ) -> Decoded:
        """Return which candidates are among the strings that were reported, and how frequent they are.

        Parameters
        ----------
        candidates : sequence of str or bytes
            Different strings that may have been reported; strings that are none of them do no harm, as long
            as none is very frequent.
        level : float
            One less the chance of naming any candidate wrongly (``"bonferroni"``), or the wanted part of
            right ones among the named (``"fdr"``).
        correction : str
            ``"bonferroni"`` or ``"fdr"``, for as many tests as there are candidates.

        Returns
        -------
        Decoded
            In the order of the candidates.
        """
        return decoded(
            self.device,
            self.shares,
            self.variances,
            self.reports,
            candidates,
            level=level,
            correction=correction,
        )
