"""Counts of a secret sample, of which those that reach a threshold are shown."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato._wire import INTEGER, NUMBER
from sfumato.errors import NeighboringMismatch
from sfumato.numerics.rounding import fraction_up
from sfumato.privacy._outward import UNIT, above
from sfumato.privacy.leaves.discrete_pair import RationalLeaf
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import RELATION, Neighboring
from sfumato.privacy.pairs.bins import NO_ATOMS, Bins, Mass, Points
from sfumato.privacy.pairs.finite import log_of
from sfumato.privacy.pairs.pair import AtomicPair, UncutPair, no_loss
from sfumato.privacy.serialization import serialized_as

__all__ = ["ThresholdedSampling"]

_LEAST: Final = 2.0**-10
_LARGEST: Final = 1024
_LOG_TAIL: Final = 650.0
"""What lies beyond the last outcome has a mass below the exponential of minus this."""
_LOG_RARE: Final = 60.0
_SINGLE: Final = 4096
"""So many outcomes stand alone, up to those with the logarithm of the mass above; later ones are binned."""
_Extended = NDArray[np.longdouble]
_BINS: Final = 2048
_REMEDY: Final = "pass the chance with which each holder is sampled"


@final
@serialized_as("thresholded-sampling", sampling_probability=NUMBER, threshold=INTEGER, neighboring=RELATION)
@dataclass(frozen=True, slots=True, repr=False)
class ThresholdedSampling(RationalLeaf):
    r"""A count of the sampled holders of a value, shown if it reaches a threshold; of every value.

    Parameters
    ----------
    sampling_probability : float
        With which each unit is in the sample, independently of all others; 0, or from 2**-10 to 1.
    threshold : int
        The smallest count that is shown, from 1 to 1024.
    neighboring : Neighboring
        Add/remove, or zero-out, where a neutral unit holds no value.

    Notes
    -----
    Guarantee: exact, over all numbers of holders. A unit holds one value at most; the sample stays secret,
    and is drawn anew for each run. Whether the counts are shown or only which values reached the threshold
    makes no difference.

    *Theorem.* Let W be the number of trials up to the success number :math:`\tau`, each a success with
    probability q (negative binomial). The pair :math:`(W - 1, W)` dominates in both orders and is tight.

    *Proof.* The counts of the values are independent, and one unit moves that of its own value only. Ask the
    n holders of that value one after the other. The threshold is reached if W is at most n; given W, what the
    holders after number W add is binomial. So the output is :math:`g(W - 1)` on n holders and :math:`g(W)` on
    n - 1, where :math:`g(w)` is nothing if :math:`w > n - 1`, and else
    :math:`\tau + \mathrm{Bin}(n - 1 - w, q)`: one post-processing of the pair's two distributions, which is
    domination for each n. The quotient of their masses at w is :math:`w(1-q)/(w - \tau + 1)`, which falls in
    w. So every hockey-stick divergence of the pair, in either order, is the difference of the probabilities
    of an event :math:`w \le m` or of its complement: that a value of m + 1 holders is shown, or is not.

    The mass :math:`q^\tau` has an infinite loss: all of :math:`\tau` holders were sampled. Elsewhere the loss
    is between :math:`\log(1-q)` and :math:`\log(\tau(1-q))`.

    A smaller probability is ``PoissonSubsampled(ThresholdedSampling(2**-10, threshold), 2**10 * q)``, an
    upper bound: who is in the smaller sample is drawn twice. Replace-one is the chain of two steps.

    References
    ----------
    Zhu, Kairouz, McMahan, Sun, Li (2020), "Federated heavy hitters discovery with differential privacy", and
    Cormode, Bharadwaj (2022), "Sample-and-threshold differential privacy": the mechanism, with upper bounds;
    Zhu, Dong, Wang (2022), dominating pairs. The theorem is proved here.

    Examples
    --------
    >>> loss = ThresholdedSampling(0.25, 20)
    >>> round(loss.epsilon(1e-6), 3), round((loss * 4).epsilon(1e-6), 3)
    (0.596, 0.858)
    """

    sampling_probability: float
    threshold: int
    neighboring: Neighboring = field(default=Neighboring.ADD_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        probability = _check.share("sampling_probability", self.sampling_probability, _REMEDY)
        if 0 < probability < _LEAST:
            remedy = "sample twice: PoissonSubsampled of this loss at 2**-10"
            _check.refuse("sampling_probability", "be 0, or at least 2**-10", probability, remedy)
        self._set("sampling_probability", probability + 0.0)
        remedy = "pass the smallest count that is shown"
        self._set("threshold", _check.integer("threshold", self.threshold, minimum=1, remedy=remedy))
        if self.threshold > _LARGEST:
            _check.refuse("threshold", f"be at most {_LARGEST}", self.threshold, "a lower one already hides")
        self._set_relation(self.neighboring)
        if self.neighboring not in (Neighboring.ADD_REMOVE, Neighboring.ZERO_OUT):
            raise NeighboringMismatch(
                f"neighboring must be add/remove or zero-out, got {self.neighboring}; a replaced unit "
                "moves two values: call under(Neighboring.REPLACE_ONE)"
            )
        self._set_pair(Fraction(probability), self.threshold)

    def _set_pair(self, q: Fraction, threshold: int) -> None:
        """Work out the atoms and the bounds on them."""
        self._set("_common", ())
        mass = q**threshold
        self._set("_mass", fraction_up(mass))
        if q in (0, 1):
            nothing = Points(*(np.zeros(0),) * 4)
            whole = AtomicPair(nothing, only_p=1.0, only_q=1.0, symmetric=True)
            self._set("_pair", whole if q else no_loss())
            self._set("_loss", 0.0)
            self._set("_inner", 0.0)
            return
        ends = 1 - q, threshold * (1 - q)
        self._set("_loss", _size(*ends))
        self._set("_inner", _size(*(end / (1 - mass) for end in ends)))
        self._set("_pair", _waiting_time_pair(float(q), threshold, self._mass))

    def split(self) -> tuple[float, tuple[tuple[PrivacyLoss, int], ...]]:
        """Return no mass and this loss, or all mass where every holder is sampled.

        Returns
        -------
        mass : float
            Probability of total failure.
        terms : tuple of (PrivacyLoss, int)
            What runs otherwise.
        """
        return (1.0, ()) if self.sampling_probability == 1 else (0.0, self.terms)


def _size(*ratios: Fraction) -> float:
    """Return the largest absolute logarithm, rounded up."""
    return max(above(abs(log_of(ratio)), 32.0) if ratio != 1 else 0.0 for ratio in ratios)


def _last(q: float, threshold: int) -> int:
    """Return how many trials have fewer successes than the threshold with the tail's mass only (Chernoff)."""
    mean = float(threshold)
    while mean - threshold - threshold * math.log(mean / threshold) < _LOG_TAIL:
        mean *= 1.0625
    return math.ceil(mean / q)


@lru_cache(maxsize=32)
def _waiting_time_pair(q: float, threshold: int, infinite: float) -> _WaitingTimePair:
    return _WaitingTimePair(q, threshold, infinite)


class _WaitingTimePair(UncutPair):
    """The pair (W - 1, W): early outcomes alone, late ones in bins of the loss."""

    __slots__ = ("_bins", "_swapped")

    def __init__(self, q: float, threshold: int, infinite: float) -> None:
        trials = np.arange(threshold, _last(q, threshold) + 1, dtype=np.longdouble)
        rest = np.log1p(-np.longdouble(q))
        loss = np.log(trials / (trials - threshold + 1)) + rest
        # Q(w + 1) / Q(w) is P(w) / Q(w): the mass of P at w is that of Q one trial later.
        log_q = np.cumsum(np.concatenate([[threshold * np.log(np.longdouble(q))], loss[:-1]]))
        size = float(np.abs(log_q).max()) + 1
        error = (8 * float(np.finfo(np.longdouble).eps) * len(trials) + 8 * UNIT) * size
        late = int(np.argmax(log_q)) + int(np.searchsorted(-log_q[np.argmax(log_q) :], _LOG_RARE))
        single = min(_SINGLE, late)
        points, edges = _binned(log_q[single:], loss[single:], error)
        self._bins = Bins(
            points,
            edges,
            16 * UNIT * (np.abs(edges) + 1),
            atoms=_points(log_q[:single] + loss[:single], loss[:single], error),
            low=Mass(1.0 - _LOG_TAIL, 1.0 - _LOG_TAIL),
            only_p=infinite,
        )
        self._swapped = self._bins.swapped()

    @property
    def symmetric(self) -> bool:
        """No."""
        return False

    @property
    def supremum(self) -> float:
        """The largest loss of the early outcomes."""
        points = self._bins.atoms
        loss = np.concatenate([points.loss, -points.loss])
        return max(0.0, float(loss.max()) - 1e-9)

    def bins(self, cuts: NDArray[np.float64], *, swapped: bool) -> Bins:
        """Return the outcomes."""
        del cuts
        return self._swapped if swapped else self._bins


def _points(log_p: _Extended, loss: _Extended, error: float) -> Points:
    """Return outcomes from the smallest loss to the largest."""
    down = loss[::-1].astype(float)
    return Points(log_p[::-1].astype(float), down, np.full(len(down), error), 8 * UNIT * (np.abs(down) + 1))


def _binned(log_q: _Extended, loss: _Extended, error: float) -> tuple[Points, NDArray[np.float64]]:
    """Return bins of outcomes, later ones by their ratios longer, and their edges."""
    if not len(loss):
        return NO_ATOMS, np.zeros(0)
    starts = np.unique(np.geomspace(1, len(loss), _BINS).astype(int)) - 1
    lengths = np.diff(np.append(starts, len(loss)))
    top = np.maximum.reduceat(log_q, starts)
    q = np.add.reduceat(np.exp(log_q - np.repeat(top, lengths)), starts)
    p = np.add.reduceat(np.exp(log_q + loss - np.repeat(top, lengths)), starts)
    ends = np.append(loss[starts], loss[-1])[::-1].astype(float)
    mean = np.clip(np.log(p / q), loss[starts + lengths - 1], loss[starts])
    return _points(np.log(p) + top, mean, error + 8 * UNIT), ends
