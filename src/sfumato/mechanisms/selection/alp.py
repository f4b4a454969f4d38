"""Counts of keys from a huge domain under pure DP, in space for those that occur: the ALP mechanism."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc

from sfumato import _check
from sfumato.mechanisms.base.additive import as_number
from sfumato.mechanisms.base.calibration import PrivacyTarget, minimum_pure_noise
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.rational import Number, plain
from sfumato.mechanisms.base.release import Release, read_only
from sfumato.mechanisms.selection.key_counts import encoded_key, positive_counts
from sfumato.numerics.decimals import outward
from sfumato.numerics.interval import Interval
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
from sfumato.numerics.randomness.uniform import uniform_integers
from sfumato.privacy.leaves.declared import PureDP
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["ALP", "ALPRelease"]

_SEED_BYTES: Final = 16
_FINEST: Final = 1 << 31
_MOST_BITS: Final = 1 << 32
_SLACK: Final = 1e-9
_Bits = NDArray[np.bool_]
_Array = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ALPRelease(Release):
    """Noisy bits from which the count of any key can be estimated.

    Parameters
    ----------
    value : bool array of shape (columns, width)
        Each key has one place in each column.
    seed : bytes
        Of the hash that finds the places; public, drawn for this release.
    unit : Fraction
        What each column is worth, in counts.
    flip : Fraction
        The probability with which each bit was flipped.
    density : float
        The most of a column's places that other keys take, if there are no more than was expected.
    maximum : int
        Larger counts were clamped to this.
    loss, neighboring, receipt, simulated, labels
        As in `Release`.

    Examples
    --------
    >>> mechanism = ALP.calibrated(epsilon=1.0, maximum=1000, keys=2)
    >>> release = mechanism.release({"red": 600, "blue": 20}, rng=1)
    >>> isinstance(release, ALPRelease), release.estimate(["red"]).round()
    (True, array([597.]))
    """

    seed: bytes
    unit: Fraction
    flip: Fraction
    density: float
    maximum: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", read_only(self.value))

    def estimate(self, keys: Iterable[Hashable]) -> _Array:
        """Return the estimated counts of keys, whether they occur or not; post-processing.

        Parameters
        ----------
        keys : iterable of str, bytes or int

        Returns
        -------
        float64 array of shape (keys,)
            A count is a number of ones at the start of a key's bits, with noise on them and behind them: the
            length at which most bits agree, the mean of all such lengths where they tie.
        """
        agreeing = np.cumsum(2 * self._bits(keys).astype(np.int64) - 1, axis=1)
        scores = np.concatenate([np.zeros((len(agreeing), 1), np.int64), agreeing], axis=1)
        best = scores == scores.max(axis=1, keepdims=True)
        lengths = (best * np.arange(scores.shape[1])).sum(axis=1) / best.sum(axis=1)
        return np.asarray(np.minimum(lengths * float(self.unit), float(self.maximum)), np.float64)

    def interval(self, keys: Iterable[Hashable], level: float = 0.95) -> Interval[Any]:
        """Return an interval for the clamped count of each key.

        Parameters
        ----------
        keys : iterable of str, bytes or int
        level : float
            Wanted coverage for each key, strictly between 0 and 1.

        Returns
        -------
        Interval
            Of arrays. It covers with at least the level over noise and hash, if no more keys occur than the
            mechanism expected; its upper end always does.

        Notes
        -----
        With a count of n units or more the first n bits were ones before they were flipped, so the zeros
        among them have a binomial distribution: lengths are refused from the longest down. With fewer than n,
        each bit from the n-th on is one with at most the probability of a bit that other keys took, or that
        was flipped, independently: lengths are refused from 0 up, by the ones among the next 1, 2, 4, ...
        bits (Bonferroni). Either order of hypotheses is nested: each end errs with half of the error at most.
        """
        bits, error = self._bits(keys), (1 - _check.unit_interval("level", level)) / 2
        columns, p = bits.shape[1], float(self.flip)
        ones = np.concatenate([np.zeros((len(bits), 1), np.int64), np.cumsum(bits, axis=1)], axis=1)
        lengths = np.arange(columns + 1)
        # P(at least that many zeros among the first n)
        long = bdtrc(lengths - ones - 1.0, lengths, p) * (1 + _SLACK) > error
        longest = columns - long[:, ::-1].argmax(axis=1)
        often = self.density * (1 - p) + (1 - self.density) * p
        windows = 1 << np.arange(max(1, columns.bit_length()))
        refused = np.zeros(ones.shape, np.bool_)
        for window in windows.tolist():
            ends = np.minimum(lengths + window, columns)
            found = ones[:, ends] - ones
            refused |= bdtrc(found - 1.0, ends - lengths, often) * (1 + _SLACK) <= error / len(windows)
        refused[:, -1] = False
        shortest = (~refused).argmax(axis=1)
        unit = float(self.unit)
        upper = np.where(longest == columns, float(self.maximum), (longest + 1) * unit * (1 + _SLACK))
        lower = np.floor(np.maximum(0, shortest - 1) * unit * (1 - _SLACK))
        return Interval(lower, np.minimum(upper, float(self.maximum)))

    def _bits(self, keys: Iterable[Hashable]) -> _Bits:
        columns, width = self.value.shape
        places = _places(list(keys), self.seed, columns, width)
        return np.asarray(self.value[np.arange(columns), places])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ALP(Mechanism):
    r"""Counts of keys, from a domain of any size, as noisy bits: approximate Laplace projection.

    Pure DP without a list of the keys: no key is shown, and each key that somebody asks for has an estimate,
    with an error of a few scales whatever the domain.

    Parameters
    ----------
    scale : int, float or Fraction
        The loss is ``l1 / scale``.
    maximum : int
        Larger counts are clamped to this; public. Space grows with it.
    keys : int
        How many keys are expected to occur; public. More cost accuracy, never privacy.
    l1 : int
        The most by which one unit moves all counts together.
    alpha : int
        Each bit is worth ``alpha * scale`` counts, and is flipped with probability ``1 / (alpha + 2)``.
    neighboring : Neighboring
        The relation under which ``l1`` is stated.

    Notes
    -----
    Guarantee: ``l1 / scale``-DP. A count x becomes a whole number of units, :math:`x/(\alpha b)` rounded up
    or down at random with that mean, b the scale; of n units the places of a key in the first n columns are
    set. *Proof.* Let the bits of all other keys be given. A unit more sets at most one more bit, so before
    and after it the probabilities of what is released have a quotient r within :math:`1/(\alpha + 1)` and
    :math:`\alpha + 1`, as each bit is flipped by itself. The probability of what is released is
    :math:`(1 - \theta)P + \theta rP` with :math:`\theta` the fraction of a unit. The slope of its logarithm
    in x is :math:`(r - 1)/(1 + \theta(r - 1))` times :math:`1/(\alpha b)`, within :math:`\pm 1/b` at all
    :math:`\theta`. So are mixtures over the others' bits. Clamping moves no count further.

    Rounding and flips are drawn exactly, and all bits are flipped in the same time. The seed of the hash is
    drawn for each release and says nothing of the data.

    References
    ----------
    Aumueller, Lebeda, Pagh, "Representing sparse vectors with differential privacy, low error, optimal space,
    and fast access" (CCS 2021), the ALP1 mechanism.

    Examples
    --------
    >>> mechanism = ALP.calibrated(epsilon=1.0, maximum=2000, keys=100)
    >>> searches = {f"word {rank}": 1000 // (rank + 1) for rank in range(100)}
    >>> release = mechanism.release(searches, rng=1)
    >>> release.estimate(["word 0", "word 9", "never seen"]).tolist()
    [999.0, 113.0, 21.0]
    >>> release.loss.epsilon(0.0)
    1.0
    """

    scale: Number
    maximum: int
    keys: int
    l1: int = 1
    alpha: int = 3
    neighboring: Neighboring = Neighboring.ADD_REMOVE

    def __post_init__(self) -> None:
        remedy = "pass epsilon= to ALP.calibrated to have it chosen"
        object.__setattr__(self, "scale", as_number("scale", self.scale, remedy))
        _check.integer("maximum", self.maximum, minimum=1, remedy="pass the largest count that matters")
        _check.integer("keys", self.keys, minimum=1, remedy="pass how many keys are expected")
        _check.integer("l1", self.l1, minimum=1, remedy="pass by how much one unit moves all counts")
        if _check.integer("alpha", self.alpha, minimum=1, remedy="leave it out") > 1 << 20:
            _check.refuse("alpha", "be at most 2**20", self.alpha, "leave it out")
        if self.unit.numerator > _FINEST or self.unit.denominator > _FINEST:
            rule = "be a fraction of at most 31 bits over 31 bits, times alpha"
            _check.refuse("scale", rule, self.scale, "pass a simpler one, such as Fraction(7, 10)")
        if self.maximum > _FINEST:
            _check.refuse("maximum", "be at most 2**31", self.maximum, "use StabilityHistogram")
        if self.columns * self.width > _MOST_BITS:
            rule = f"leave at most 2**32 bits: {self.columns} columns of {self.width}"
            _check.refuse("maximum", rule, self.maximum, "pass a smaller one, or fewer keys")
        _check.instance(
            "neighboring", self.neighboring, Neighboring, "pass Neighboring.ADD_REMOVE or another"
        )

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: float,
        maximum: int,
        keys: int,
        l1: int = 1,
        alpha: int = 3,
        neighboring: Neighboring = Neighboring.ADD_REMOVE,
    ) -> ALP:
        """Return the mechanism with the smallest scale that is epsilon-DP.

        Parameters
        ----------
        epsilon : float
        maximum, keys, l1, alpha, neighboring
            As in the class.

        Returns
        -------
        ALP
        """
        request = PrivacyTarget(epsilon=epsilon, delta=0.0)
        moved = _check.integer("l1", l1, minimum=1, remedy="pass by how much one unit moves all counts")

        def price(scale: Fraction) -> PrivacyLoss:
            return PureDP(outward(moved / scale))

        scale = minimum_pure_noise(price, request, moved / request.exact_epsilon)
        return cls(
            scale=plain(scale), maximum=maximum, keys=keys, l1=moved, alpha=alpha, neighboring=neighboring
        )

    @property
    def unit(self) -> Fraction:
        """What each column is worth, in counts."""
        return Fraction(self.alpha) * Fraction(self.scale)

    @property
    def columns(self) -> int:
        """How many bits a key has."""
        return math.ceil(self.maximum / self.unit)

    @property
    def width(self) -> int:
        """How many places a column has: a power of two, at least 4 for each expected key."""
        return 1 << (4 * self.keys - 1).bit_length()

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release."""
        return PureDP(outward(self.l1 / Fraction(self.scale)), neighboring=self.neighboring)

    def release(self, value: Any, rng: Rng = None) -> ALPRelease:
        """Release noisy bits.

        Parameters
        ----------
        value : mapping of keys to ints
            Keys are texts, bytes or whole numbers; private. Keys without a positive count are as good as
            absent.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        ALPRelease

        Raises
        ------
        ParameterError
            If it is no mapping, a count no int, or a key of another type; never for a key or a count.
        """
        source = random_source(rng)
        seed = source.words(_SEED_BYTES // 8).tobytes()
        keys, counts = positive_counts(value)
        lengths = self._lengths(np.minimum(counts, self.maximum), source)
        table = np.zeros((self.columns, self.width), np.bool_)
        places = _places(keys, seed, self.columns, self.width)
        set_bits = np.arange(self.columns) < lengths[:, None]
        table[np.broadcast_to(np.arange(self.columns), places.shape)[set_bits], places[set_bits]] = True
        flips = uniform_integers(self.alpha + 2, table.size, source).reshape(table.shape) == 0
        return self._release_as(
            ALPRelease,
            table ^ flips,
            source,
            seed=seed,
            unit=self.unit,
            flip=Fraction(1, self.alpha + 2),
            density=min(1.0, self.keys / self.width),
            maximum=self.maximum,
        )

    def _lengths(self, counts: NDArray[np.int64], source: RandomSource) -> NDArray[np.int64]:
        """Return counts in units, rounded up or down at random, with that mean."""
        times = counts * self.unit.denominator
        whole, rest = times // self.unit.numerator, times % self.unit.numerator
        return whole + (uniform_integers(self.unit.numerator, counts.size, source) < rest)


def _places(keys: list[Hashable], seed: bytes, columns: int, width: int) -> NDArray[np.int64]:
    """Return the place of each key in each column, by a hash of both."""
    places = np.zeros((len(keys), columns), np.int64)
    for row, key in zip(places, keys, strict=True):
        words = np.frombuffer(hashlib.shake_128(seed + encoded_key(key)).digest(8 * columns), "<u8")
        row[:] = words & np.uint64(width - 1)
    return places
