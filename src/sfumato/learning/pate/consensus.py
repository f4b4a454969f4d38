"""What a vote costs where the teachers agree: less than the worst vote, and private itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.learning.pate.aggregator import Aggregator, as_votes
from sfumato.learning.pate.confident import ConfidentGNMax
from sfumato.learning.pate.gnmax import GNMax

__all__ = ["Consensus"]

_Array = NDArray[np.float64]

_LOG_SLACK: Final = 1e-6
_SLACK: Final = 1 + 1e-9


@final
@dataclass(frozen=True, kw_only=True)
class Consensus:
    r"""Bounds on the Rényi divergence of labels that hold for the votes as they are.

    Everything it returns is private: it is for the data's owner, and for `ConsensusRelease`, which releases a
    bound privately. A ledger is always charged the loss of the worst votes.

    Parameters
    ----------
    aggregator : GNMax or ConfidentGNMax
    teachers : int
        How many vote.
    classes : int
        How many they choose from.
    order : float
        Of the divergence, above 1: from 10 to 40, for the deltas that are usual.

    Notes
    -----
    Guarantee: for the dataset D at hand and any neighbor D', the divergence of the labels on D from those on
    D' is at most the sum of `costs`. It is a statement on D, in one direction, and no differential privacy by
    itself.

    Let the likeliest label miss with probability at most :math:`q = e^{-L}` on D, and the mechanism be
    :math:`\rho`-zCDP. Then :math:`e^{(\lambda-1)D_\lambda}` is at most

    .. math:: (1 - \min(q, q^*))^\lambda \left(1 - e^{-(\sqrt L - \sqrt\rho)^2}\right)^{1-\lambda}
        + \exp\left(-L + \frac{(\lambda - 1)L}{u} + (\lambda-1)\rho(u+1)\right)

    for :math:`L > \rho` and every :math:`u \ge \lambda - 1`; the best is :math:`u = \sqrt{L/\rho}`. Here
    :math:`q^* = e^{-L^*}` is any number with :math:`r(L^*) \ge \lambda/(\lambda - 1)`, :math:`r(L) =
    e^{2\sqrt{L\rho} - \rho} (1 - \sqrt{\rho/L})`.

    *Proof* (after Papernot et al. 2018, Theorem 6 and Proposition 10). Let P, P' be the two distributions,
    and q, q' the chance of a miss on each. The divergence of order :math:`\mu` from P' to P bounds :math:`q'
    \le (q e^{\mu\rho})^{(\mu-1)/\mu}`, at the best :math:`\mu = \sqrt{L/\rho} \ge 1` as in the first term. So
    the likeliest label contributes :math:`P (P/P')^{\lambda-1} \le (1-q)^\lambda (1 - q')^{1-\lambda}`. The
    others contribute :math:`q\,E[(P/P')^{\lambda-1}]` given a miss, at most :math:`q
    (e^{u(u+1)\rho}/q)^{(\lambda-1)/u}` by Jensen's inequality and the divergence of order :math:`u + 1`,
    which falls as L grows. Let q be known by an upper bound only. The bound on q' has the slope :math:`r(L)`
    as a function of q, which rises with L, and :math:`(1-q)/(1-q') \ge 1`; so the logarithm of the first term
    has a slope of at least :math:`((\lambda-1) r - \lambda)/(1-q) \ge 0` for :math:`q \le q^*`, and beyond
    that its first factor is held. Both terms rise with q, and no further condition on the bound is needed.

    *The miss of an answer*: with a gap of g votes between the first two classes it is at most the number of
    other classes times :math:`P(Z - Z' \ge g)`. *The check* misses if it passes, or if it does not, by the
    tail of its noise. A question with both: the branch that is passed with an answer of cost b has its term
    times :math:`e^{(\lambda-1)b}`. The tails are those of the discrete distribution: the convolution has
    :math:`P(Z - Z' = k) \le e^{-k^2/4\sigma^2}\,(1 + 2\sum_j e^{-\pi^2\sigma^2j^2})/(2\sqrt\pi\sigma)`, by
    Poisson's summation formula.

    References
    ----------
    Papernot, Song, Mironov, Raghunathan, Talwar, Erlingsson, "Scalable private learning with PATE" (ICLR
    2018), Theorem 6, Proposition 10.

    Examples
    --------
    >>> from sfumato.learning.pate.gnmax import GNMax
    >>> owner = Consensus(aggregator=GNMax(stddev=40), teachers=250, classes=10, order=20.0)
    >>> votes = np.array([[250] + [0] * 9, [240, 10] + [0] * 8, [130, 120] + [0] * 8])
    >>> owner.costs(votes).round(5).tolist(), round(owner.worst, 5)
    ([6e-05, 0.00021, 0.0125], 0.0125)
    """

    aggregator: Aggregator
    teachers: int
    classes: int
    order: float

    def __post_init__(self) -> None:
        if not isinstance(self.aggregator, GNMax | ConfidentGNMax):
            remedy = "use GNMax(...)"
            _check.refuse_type("aggregator", "be a GNMax or ConfidentGNMax", self.aggregator, remedy)
        object.__setattr__(self, "teachers", _check.integer("teachers", self.teachers, minimum=1))
        object.__setattr__(self, "classes", _check.integer("classes", self.classes, minimum=2))
        order = _check.finite("order", self.order)
        if not 1 < order <= 1e6:
            _check.refuse("order", "be above 1, and at most 1e6", order, "use 20, say")
        object.__setattr__(self, "order", order)

    def costs(self, votes: NDArray[np.int64]) -> _Array:
        """Return the bound for each question: private.

        Parameters
        ----------
        votes : int64 array of shape (n, classes)

        Returns
        -------
        float64 array of shape (n,)
        """
        return np.asarray(self.table[self.table_indices(votes)])

    @property
    def worst(self) -> float:
        """The divergence of a question whatever the votes; public."""
        question = self.aggregator.question_loss
        rho = self.aggregator.answer_loss.zcdp().rho + (0.0 if question is None else question.zcdp().rho)
        return self.order * rho * _SLACK

    def table_indices(self, votes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where in the table each question is: private.

        The first index is the most votes (0 where they do not matter), the second how many more they are than
        the next. A teacher who votes otherwise moves the first by at most 1 and the second by at most 2.

        Parameters
        ----------
        votes : int64 array of shape (n, classes)
            Private; a vote a teacher in each row.

        Returns
        -------
        tuple of two int64 arrays of shape (n,)
            The first and the second index.
        """
        ordered = np.sort(np.clip(as_votes(votes), 0, self.teachers), axis=1)
        maximum, gap = ordered[:, -1], ordered[:, -1] - ordered[:, -2]
        return (maximum if isinstance(self.aggregator, ConfidentGNMax) else np.zeros_like(maximum)), gap

    @cached_property
    def table(self) -> _Array:
        """The cost by most votes and gap; public."""
        answer = self._answer
        if not isinstance(self.aggregator, ConfidentGNMax):
            return answer[None, :] * _SLACK
        check = self.aggregator.check
        rho, slope = check.privacy_loss.zcdp().rho, self.order - 1
        rounded = float(check.stddev) * (1 + 2.0**-52)
        distance = self.aggregator.threshold - np.arange(self.teachers + 1)
        size = max(self.teachers, self.aggregator.threshold) + 1
        tails = _log_tails(rounded**2, size)
        rarely = -np.where(distance >= 0, tails[np.maximum(distance, 0)], 0.0)[:, None]
        mostly = -np.where(distance < 1, tails[np.maximum(1 - distance, 0)], 0.0)[:, None]
        branch = slope * answer[None, :]
        joint = [
            np.logaddexp(self._hit(rarely, rho), self._missed(rarely, rho) + branch),
            np.logaddexp(self._hit(mostly, rho) + branch, self._missed(mostly, rho)),
        ]
        apart = answer[None, :] + self.order * rho
        return np.asarray(np.minimum(np.minimum(*joint) / slope, apart) * _SLACK)

    @property
    def _answer(self) -> _Array:
        """The cost of an answer by gap."""
        rho = self.aggregator.answer_loss.zcdp().rho
        stddev = float(getattr(self.aggregator, "stddev")) * (1 + 2.0**-52)  # noqa: B009
        tails = _log_tails(2 * stddev**2, self.teachers)
        lacks = np.maximum(0.0, -tails - math.log(self.classes - 1))
        found = np.logaddexp(self._hit(lacks, rho), self._missed(lacks, rho)) / (self.order - 1)
        return np.minimum(found, self.order * rho)

    def _hit(self, lacks: _Array, rho: float) -> _Array:
        """Return the log of the first term for each L."""
        root = np.maximum(np.sqrt(lacks) - math.sqrt(rho), 0.0)
        with np.errstate(divide="ignore"):
            likely = np.log1p(-np.exp(-np.maximum(lacks, _turn(rho, self.order))))
            return np.asarray(self.order * likely + (1 - self.order) * _log_rest(root**2))

    def _missed(self, lacks: _Array, rho: float) -> _Array:
        """Return the log of the second term for each L."""
        slope = self.order - 1
        u = np.maximum(np.sqrt(lacks / rho), slope)
        return np.asarray(-lacks + slope * lacks / u + slope * rho * (u + 1))


def _log_rest(lacks: _Array) -> _Array:
    """Return ``log(1 - exp(-L))`` for each L from 0 on, to its own last digits wherever it is near 0."""
    return np.asarray(
        np.where(lacks < math.log(2), np.log(-np.expm1(-lacks)), np.log1p(-np.exp(-np.maximum(lacks, 0.5))))
    )


@lru_cache(maxsize=64)
def _turn(rho: float, order: float) -> float:
    """Return an L from which on the first term rises with q; see the class's notes."""
    wanted = math.log(order / (order - 1)) + 1e-12
    low, high = rho, rho + 1.0

    def slope(lack: float) -> float:
        share = math.sqrt(rho / lack)
        return 2 * math.sqrt(lack * rho) - rho + (math.log1p(-share) if share < 1 else -math.inf)

    while slope(high) < wanted:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if slope(middle) >= wanted else (middle, high)
    return high


def _log_tails(variance: float, maximum: int) -> _Array:
    """Return bounds on the log of ``P(Z >= k)`` for k from 0 to ``maximum``, Z a discrete Gaussian.

    It also bounds the difference of two whose variances add up to ``variance``: see the notes of `Consensus`,
    where the sum over j is below the one for the sum of variances.
    """
    last = maximum + 1 + math.ceil(8 * math.sqrt(variance))
    k = np.arange(last + 1)
    wave = math.exp(-(math.pi**2) * variance / 2)
    height = (
        math.log1p(2 * wave / (1 - wave) if wave < 0.5 else 2 / (1 - wave))
        - math.log(2 * math.pi * variance) / 2
    )
    beyond = math.log(variance / last) - last**2 / (2 * variance)
    masses = np.append(-(k**2) / (2 * variance), beyond)
    sums = np.logaddexp.accumulate(masses[::-1])[::-1]
    return np.asarray(np.minimum(sums[: maximum + 1] + height + _LOG_SLACK, 0.0))
