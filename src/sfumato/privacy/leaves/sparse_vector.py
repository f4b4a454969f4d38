"""The sparse vector technique: which of many queries exceed a threshold, at a cost for those only."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

from sfumato._wire import BOOLEAN, INTEGER, NUMBER
from sfumato.privacy.leaves.bounded import BoundedLeaf
from sfumato.privacy.neighboring import RELATION, Neighboring
from sfumato.privacy.serialization import serialized_as

__all__ = ["SparseVector"]


@final
@serialized_as(
    "sparse-vector",
    threshold_noise=NUMBER,
    query_noise=NUMBER,
    positives=INTEGER,
    monotone=BOOLEAN,
    neighboring=RELATION,
)
@dataclass(frozen=True, slots=True, repr=False)
class SparseVector(BoundedLeaf):
    r"""Answers "above" or "below" to a stream of queries, stopping after some number of "above".

    One noisy threshold serves the whole run. A new threshold after each "above" is another mechanism:
    ``SparseVector(a, b) * positives``.

    Parameters
    ----------
    threshold_noise : float
        Scale of the threshold's noise over the sensitivity that all queries share; 0 is no noise.
    query_noise : float
        Scale of each query's noise over the same sensitivity; 0 is no noise.
    positives : int
        The run ends with this "above"; at least 1.
    monotone : bool
        Whether between any two neighbors all queries move in the same direction, as counts do under
        add/remove and under zero-out.
    neighboring : Neighboring
        The relation that the sensitivity is about.

    Raises
    ------
    ParameterError
        If ``monotone`` is claimed under replace-one.

    Notes
    -----
    Guarantee: pure DP with :math:`\epsilon = 1/a + 2c/b`, or :math:`1/a + c/b` for monotone queries, where
    :math:`a, b` are the two noise multipliers and :math:`c` is the number of positives; whatever the number
    of "below". Conditions: Laplace noise, or exponential noise (which is never negative), for the threshold
    and for the queries; fresh noise for each query; queries and public thresholds may be chosen from earlier
    answers; no noisy value is released but, with an "above", the gap between the noisy query and the noisy
    threshold. A number for an "above" needs fresh noise, added as its own loss. Gaussian noise is not priced
    by this leaf.

    *Proof.* Fix the answers, and let the noise of the threshold be :math:`z` for the first dataset and
    :math:`z + \Delta` for the second, where its density is at least :math:`e^{-1/a}` times as great. A query
    below on the first is then below on the second with the same noise, as it moves by at most :math:`\Delta`.
    One above needs at most :math:`2\Delta` more noise on the second, which has at least :math:`e^{-2/b}`
    times the probability; there are at most :math:`c`. For monotone queries: if they rise, then one above
    needs at most :math:`\Delta` more; if they fall, keep :math:`z`: below stays below, and one above needs at
    most :math:`\Delta` more. Only tails of the queries' noise and the density of :math:`z` on its own support
    were used, so exponential noise will do. With gaps the noise of an "above" moves by exactly as much as
    leaves the gap as it was, from 0 to :math:`2\Delta` (to :math:`\Delta` for monotone queries) and never
    down, so that its density serves in the place of the tail, for exponential noise too (Ding et al. 2023).

    References
    ----------
    Dwork, Roth (2014), section 3.6, AboveThreshold and Sparse; Lyu, Su, Li (2017), "Understanding the sparse
    vector technique for differential privacy", several positives and monotone queries; also variants that are
    broken; Ding, Wang, Xiao, Zhang, Kifer (2023), "Free gap estimates from the exponential mechanism, sparse
    vector, noisy max and related algorithms", gaps.

    Examples
    --------
    >>> SparseVector(2.0, 4.0).epsilon(0.0)
    1.0
    >>> SparseVector(2.0, 40.0, positives=10, monotone=True).epsilon(0.0)
    0.75
    """

    threshold_noise: float
    query_noise: float
    positives: int = field(default=1, kw_only=True)
    monotone: bool = field(default=False, kw_only=True)
    neighboring: Neighboring = field(default=Neighboring.ADD_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        self._set_rounded("threshold_noise", self.threshold_noise, up=False)
        self._set_rounded("query_noise", self.query_noise, up=False)
        remedy = "the run ends with the last of them"
        self._set_integers("positives", remedy=remedy)
        self._set_relation(self.neighboring)
        self._set_monotone(self.monotone)

    def pure_epsilon(self) -> float | Fraction:
        """Return the sum of the threshold's and the positives' epsilons, exact.

        Returns
        -------
        float or Fraction
            The epsilon of `pure`: exact as a Fraction, rounded up as a float.
        """
        if not (self.threshold_noise and self.query_noise):
            return math.inf
        per_positive = (1 if self.monotone else 2) * self.positives / Fraction(self.query_noise)
        return 1 / Fraction(self.threshold_noise) + per_positive
