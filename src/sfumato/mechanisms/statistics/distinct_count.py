"""How many distinct items there are, from a sketch of fixed size that is private by its secret hash."""

from __future__ import annotations

import datetime as dt
import hashlib
import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.additive import as_number
from sfumato.mechanisms.base.columns import read_column
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.rational import Number, drawn_epsilon
from sfumato.mechanisms.base.release import Release, read_only
from sfumato.mechanisms.selection.key_counts import encoded_key
from sfumato.numerics.decimals import outward
from sfumato.numerics.interval import Interval
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
from sfumato.numerics.rounding import expm1_down, fraction_down
from sfumato.privacy.leaves.declared import PureDP
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["DistinctCountRelease", "DistinctCountSketch"]

_LEVELS: Final = 64
_WORDS: Final = 3
_BLOCK: Final = 1 << 16
_MOST: Final = 1 << 20
_ROUNDS: Final = 80
_FAR: Final = 30.0
"""A larger epsilon of one item changes nothing."""
_STANDARD_ERROR: Final = 1.04
"""Of the estimated number of items, relative, times the root of the buckets (Flajolet et al. 2007)."""
_OTHER: Final = b"o"
"""Whatever is of a type that is not listed: one item."""
_TIME: Final[tuple[Any, ...]] = (
    *(dt.date.year, dt.date.month, dt.date.day),
    *(dt.datetime.hour, dt.datetime.minute, dt.datetime.second, dt.datetime.microsecond),
)
_Registers = NDArray[np.uint8]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DistinctCountRelease(Release):
    """An estimated number of distinct items, and the sketch that it is from.

    Parameters
    ----------
    value : float
        The estimate, at least 0.
    registers : uint8 array of shape (buckets,)
        The sketch: the highest level of an item in each bucket, 0 for none.
    stddev : float
        Standard error of the estimate, in the limit of many buckets.
    loss, neighboring, receipt, simulated, labels
        As in `Release`.

    Examples
    --------
    >>> release = DistinctCountSketch(epsilon=1.0, buckets=256).release(range(50_000), rng=1)
    >>> isinstance(release, DistinctCountRelease), 30_000 < release.value < 70_000
    (True, True)
    """

    registers: _Registers
    stddev: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "registers", read_only(self.registers))

    def interval(self, level: float = 0.95) -> Interval:
        """Return an interval for the number of distinct items.

        Parameters
        ----------
        level : float
            Wanted coverage, strictly between 0 and 1.

        Returns
        -------
        Interval
            Its coverage is right in the limit of many buckets: from a hundred on to about a percent.
        """
        reach = NormalDist().inv_cdf((1 + _check.unit_interval("level", level)) / 2) * self.stddev
        return Interval(max(0.0, self.value - reach), self.value + reach)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DistinctCountSketch(Mechanism):
    r"""The number of distinct items of a stream, in memory for a few registers (HyperLogLog).

    The sketch needs no noise: its hash is secret, and enough made-up items are in it. Where all distinct
    items fit into memory, their number with `Laplace` noise has far less error.

    Parameters
    ----------
    epsilon : int, float or Fraction
        Taken as the exact rational.
    buckets : int
        How many registers, a power of two from 16 to 2**20. The relative standard error is 1.04 over their
        root; the number of made-up items is about as many over the epsilon of one item.
    items_per_unit : int
        The most distinct items that one unit has.
    neighboring : Neighboring

    Notes
    -----
    Guarantee: epsilon-DP if the keyed hash (BLAKE2b, with a key of 256 bits that is drawn for each release
    and forgotten) gives each item independent uniform words: against adversaries who cannot tell it from
    that, computational differential privacy. Each item is taken with probability :math:`\pi`, in a random
    bucket, at level l with probability :math:`2^{-l}`; a register is its bucket's highest level.

    *Proof* for one item x beside n others, k buckets and :math:`\epsilon_1`. Registers do not depend on the
    order of items. With x last, it changes no register with a probability of at least :math:`1 - \pi`,
    whatever the others made of them: :math:`P_{n+1}(s) \ge (1 - \pi) P_n(s)`, and :math:`\pi \le 1 -
    e^{-\epsilon_1}`. Of n + 1 items at most k matter, without whom a register would be lower; given the
    registers, each item is as likely one of them as any other, so x is not with a probability of at least
    :math:`1 - k/(n + 1)`: :math:`P_n(s) \ge (1 - k/(n + 1)) P_{n+1}(s)`. There are at least
    :math:`k/(1 - e^{-\epsilon_1}) - 1` made-up items, so this is at least :math:`e^{-\epsilon_1}`. A unit is
    a chain of its items, of which each may be removed and each other one added: :math:`\epsilon_1` is epsilon
    over ``items_per_unit``, or over twice that under replace-one.

    References
    ----------
    Dickens, Thaler, Ting, "Order-invariant cardinality estimators are differentially private" (NeurIPS 2022);
    Smith, Song, Thakurta, "The Flajolet-Martin sketch itself preserves differential privacy" (NeurIPS 2020);
    Flajolet, Fusy, Gandouet, Meunier, "HyperLogLog" (AofA 2007); Ertl, "New cardinality estimation algorithms
    for HyperLogLog sketches" (2017), the estimate of maximum likelihood.

    Examples
    --------
    >>> sketch = DistinctCountSketch(epsilon=1.0, buckets=1024)
    >>> release = sketch.release((f"user {k % 30_000}" for k in range(90_000)), rng=1)
    >>> round(release.value, -3), release.loss.epsilon(0.0)
    (29000.0, 1.0)
    """

    epsilon: Number
    buckets: int = 1024
    items_per_unit: int = 1
    neighboring: Neighboring = Neighboring.ADD_REMOVE

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", as_number("epsilon", self.epsilon))
        buckets = _check.integer("buckets", self.buckets, minimum=16, remedy="pass a power of two")
        if buckets > _MOST or buckets & (buckets - 1):
            _check.refuse("buckets", "be a power of two, at most 2**20", buckets, "pass 1024")
        _check.integer("items_per_unit", self.items_per_unit, minimum=1, remedy="bound what one unit has")
        _check.instance(
            "neighboring", self.neighboring, Neighboring, "pass Neighboring.ADD_REMOVE or another"
        )
        if self.phantoms > 1 << 28:
            rule = "be at least 2**-28 times the buckets for each item"
            _check.refuse("epsilon", rule, self.epsilon, "pass fewer buckets")

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release."""
        return PureDP(outward(drawn_epsilon(self.epsilon)), neighboring=self.neighboring)

    @property
    def phantoms(self) -> int:
        """How many made-up items are in the sketch."""
        return math.ceil(Fraction(self.buckets) * (1 << 64) / self._threshold)

    @property
    def sampled(self) -> float:
        """The probability with which an item is taken."""
        return self._threshold / (1 << 64)

    def release(self, value: Any, rng: Rng = None) -> DistinctCountRelease:
        """Release the sketch and the estimate.

        Parameters
        ----------
        value : iterable
            The items, one after another, or an array or column of them; private. Texts, bytes, whole
            numbers, floats and dates are distinguished by their values: 1, 1.0 and True are one item;
            times by what a clock shows, to the microsecond. None and NaN are no items. All items of other
            types are one item together, whatever they hold: write them as texts.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        DistinctCountRelease

        Raises
        ------
        ParameterError
            If the value is not many items, or an array of another shape or dtype; never for an item.
        """
        items = _items(value)
        source = random_source(rng)
        registers = np.zeros(self.buckets, np.uint8)
        left = self.phantoms
        while left:
            words = source.words(_WORDS * min(left, _BLOCK)).reshape(-1, _WORDS)
            self._add(registers, words)
            left -= len(words)
        for words in self._hashed(items, source):
            self._add(registers, words)
        found = maximum_likelihood(registers) / self.sampled
        # Of all items, made-up ones included, those that were taken, and the sketch's own error.
        relative = _STANDARD_ERROR**2 / self.buckets + (1 - self.sampled) / (self.sampled * max(found, 1.0))
        return self._release_as(
            DistinctCountRelease,
            max(0.0, found - self.phantoms),
            source,
            registers=registers,
            stddev=found * math.sqrt(relative),
        )

    @property
    def _threshold(self) -> int:
        """An item is taken where its first word is below; rounded down."""
        chain = self.items_per_unit * (2 if self.neighboring is Neighboring.REPLACE_ONE else 1)
        each = min(_FAR, fraction_down(drawn_epsilon(self.epsilon) / chain))
        # 1 - exp(-e) = (exp(e) - 1) / exp(e), of which a float is off by less than 2^-50.
        share = Fraction(expm1_down(each) / math.exp(each))
        return max(1, math.floor(share * (1 - Fraction(1, 1 << 48)) * (1 << 64)))

    def _hashed(self, items: Iterable[object], source: RandomSource) -> Iterable[NDArray[np.uint64]]:
        """Yield words of blocks of items, three for each."""
        key = source.words(4).tobytes()
        digests: list[bytes] = []
        for item in items:
            encoded = encoded_item(item)
            if encoded is None:
                continue
            digests.append(hashlib.blake2b(encoded, key=key, digest_size=8 * _WORDS).digest())
            if len(digests) == _BLOCK:
                yield np.frombuffer(b"".join(digests), "<u8").reshape(-1, _WORDS)
                digests = []
        yield np.frombuffer(b"".join(digests), "<u8").reshape(-1, _WORDS)

    def _add(self, registers: _Registers, words: NDArray[np.uint64]) -> None:
        """Add items by their words: whether they are taken, their bucket, their level."""
        taken = words[words[:, 0] < np.uint64(min(self._threshold, (1 << 64) - 1))]
        buckets = (taken[:, 1] & np.uint64(self.buckets - 1)).astype(np.int64)
        # The lowest bit of the third word; of 0, which has none, the highest level.
        lowest = taken[:, 2] & (~taken[:, 2] + np.uint64(1))
        levels = np.where(lowest == 0, _LEVELS, np.frexp(lowest.astype(np.float64))[1])
        np.maximum.at(registers, buckets, levels.astype(np.uint8))


def _items(value: Any) -> Iterable[object]:
    """Return the items of a value, or refuse it by its type, shape and dtype."""
    column = read_column(value)
    if column is not None:
        value = column.values if column.nulls is None else column.values[~column.nulls]
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        remedy = "pass a list, a generator or an array"
        _check.refuse_state("value", "be many items", f"it is a {type(value).__name__}", remedy)
    if not isinstance(value, np.ndarray):
        return value
    if value.ndim != 1 or value.dtype.kind not in "biufSUOMm":
        found, remedy = f"it is one of shape {value.shape} and dtype {value.dtype}", "pass one column"
        _check.refuse_state("value", "be an array of items of one dimension", found, remedy)
    if value.dtype.kind in "Mm":  # whatever its unit, and without those that are not a time
        value = value[~np.isnat(value)].view(np.int64)
    listed: list[object] = value.tolist()
    return listed


def encoded_item(item: Any) -> bytes | None:
    """Return what is hashed for an item: equal ones have the same; None for one that does not count.

    A function of the item alone, and it raises for none: what it does with an item is no event that shows
    whether the item is there. Methods that a subclass may have in the place of its base's are not called.

    Parameters
    ----------
    item : object
        As for `DistinctCountSketch.release`.

    Returns
    -------
    bytes or None

    Examples
    --------
    >>> encoded_item("a"), encoded_item(1), encoded_item(1.0), encoded_item(float("nan"))
    (b'sa', b'i1', b'i1', None)
    >>> encoded_item((1, 2)) == encoded_item(object())
    True
    """
    kind = type(item)
    if issubclass(kind, np.generic):
        item = float(item) if issubclass(kind, np.floating) else item.item()
        kind = type(item)
    if issubclass(kind, str):
        return encoded_key(str.__str__(item))
    if issubclass(kind, bytes):
        return encoded_key(bytes.__add__(item, b""))
    if issubclass(kind, int):
        return encoded_key(int.__index__(item))
    if issubclass(kind, float):
        return _encoded_float(item)
    if issubclass(kind, dt.date):
        fields = _TIME if issubclass(kind, dt.datetime) else _TIME[:3]
        return b"d%d" * len(fields) % tuple(field.__get__(item) for field in fields)
    return None if item is None else _OTHER


def _encoded_float(item: float) -> bytes | None:
    if math.isnan(item):
        return None
    if math.isinf(item) or not float.is_integer(item):
        return b"f" + struct.pack("<d", item)
    return encoded_key(float.__trunc__(item))


def maximum_likelihood(registers: _Registers) -> float:
    """Return the number of items, taken alike, that makes registers the likeliest, if it were Poisson.

    Parameters
    ----------
    registers : uint8 array of shape (buckets,)

    Returns
    -------
    float
        0 where all registers are.

    Examples
    --------
    >>> maximum_likelihood(np.array([0, 0, 0, 0], np.uint8))
    0.0
    >>> round(maximum_likelihood(np.array([3, 2, 4, 3], np.uint8)))
    20
    """
    counts = np.bincount(registers, minlength=_LEVELS + 1).astype(np.float64)
    if counts[0] == registers.size:
        return 0.0
    levels = np.arange(_LEVELS + 1)
    # With a mean of t items in a bucket none is above level r with probability exp(-t 2^-r).
    upto = np.where(levels < _LEVELS, 2.0**-levels, 0.0)
    present = counts > 0
    present[0] = False

    def slope(log_mean: float) -> float:
        """Of the log-likelihood, in the logarithm of the mean; it falls."""
        mean = math.exp(log_mean)
        each = upto[:-1] - upto[1:]
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            # d/dt log(exp(-t u) - exp(-t (u + v))) = -u + v / (exp(t v) - 1)
            gains = each / np.expm1(mean * each) - upto[1:]
        return float((counts[1:] * gains)[present[1:]].sum() - counts[0])

    low, high = math.log(1e-9), math.log(2.0**_LEVELS)
    for _ in range(_ROUNDS):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) > 0 else (low, middle)
    return math.exp(low) * registers.size
