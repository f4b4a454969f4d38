"""Private quantiles by the exponential mechanism over ranks, and many at once by recursive halving."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.rational import Number, drawn_epsilon
from sfumato.mechanisms.base.release import Release
from sfumato.mechanisms.query.records import as_numbers
from sfumato.mechanisms.statistics.quantile.joint_sampling import (
    MAX_JOINT,
    MAX_JOINT_EPSILON,
    joint_sampler,
    parts_of,
)
from sfumato.mechanisms.statistics.quantile.rank_mechanism import MINIMUM_RATE, RankMechanism
from sfumato.mechanisms.statistics.quantile.rank_sampling import (
    DENOMINATOR,
    PartitionedNumbers,
    RankSampler,
    SortedNumbers,
    add_remove_sampler,
)
from sfumato.numerics.decimals import outward
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
from sfumato.privacy.leaves.exponential import Exponential
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["Quantile", "Quantiles", "as_quantiles", "quantile_labels", "without_nan"]

_TIE_BITS: Final = 16


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile(RankMechanism):
    """One quantile of a column, chosen among all points of a grid by how far their ranks are from it.

    Parameters
    ----------
    quantile : int, float or Fraction
        Strictly between 0 and 1; 1/2 is the median. Taken as the nearest fraction with a denominator of at
        most 2**20.
    bounds : tuple of two numbers
        Public bounds of the answer; records are clamped to them. Two ints mean that answers are whole.
    epsilon : int, float or Fraction
        What the answer costs; taken as the exact rational.
    grid : Grid, optional
        What answers are a multiple of: 1 for int bounds, else 2**-40 of the larger bound.
    neighboring : Neighboring

    Notes
    -----
    Guarantee: epsilon-DP, of bounded range (`sfumato.privacy.Exponential`). The score is minus the distance
    of the target rank from a point's ranks, in records; one record that is added or removed moves it by at
    most ``max(q, 1 - q)``, one that is replaced or zeroed by at most 1, and the sensitivity of that relation
    is used. The size of the data is private. NaN counts as 0; of empty data every answer is as likely.

    References
    ----------
    Smith, "Privacy-preserving statistical estimation with optimal convergence rates" (STOC 2011); McSherry,
    Talwar (FOCS 2007).

    Examples
    --------
    >>> import numpy as np
    >>> ages = np.arange(1000) % 90
    >>> median = Quantile(quantile=0.5, bounds=(0, 120), epsilon=0.5)
    >>> median.release(ages, rng=1).value, median.rank_bound(0.05)
    (44, 16)
    """

    quantile: Number = Fraction(1, 2)

    def _check_rates(self) -> None:
        remedy = "pass a share below 1, 0.5 for the median"
        quantile = _check.fraction("quantile", self.quantile, remedy).limit_denominator(DENOMINATOR)
        if not 0 < quantile < 1:
            _check.refuse("quantile", "be strictly between 0 and 1, to 2**-20", self.quantile, remedy)
        object.__setattr__(self, "quantile", quantile)
        if self.sampler.rate < MINIMUM_RATE:
            remedy = "pass a larger one; such an answer carries no information"
            _check.refuse("epsilon", "be at least about 2**-15", self.epsilon, remedy)

    @property
    def sampler(self) -> RankSampler:
        """What draws an answer: points of the grid, and by how much a record lowers their weight."""
        return self._draw(Fraction(self.quantile), drawn_epsilon(self.epsilon), *self._ends())

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release."""
        return Exponential(outward(drawn_epsilon(self.epsilon)), neighboring=self.neighboring)

    def release(self, value: Any, rng: Rng = None) -> Release:
        """Release the quantile of a column.

        Parameters
        ----------
        value : array, list or column of shape (n,)
            One real number per record; not changed.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        Release
            Of an int for int bounds, else of a float.
        """
        source = random_source(rng)
        labels = quantile_labels([self.quantile])
        return self._release_as(Release, self.outputs(value, 1, source)[0], source, labels=labels)

    def outputs(self, value: Any, size: int, rng: Rng = None) -> Any:
        """Draw many answers at once; see `Mechanism.outputs`.

        Parameters
        ----------
        value
            As in `release`; private.
        size : int
            How many independent releases are drawn.
        rng : int, numpy Generator or None
            None for the operating system's randomness; a seed is for simulation only.

        Returns
        -------
        array of shape (size,)
        """
        size = _check.integer("size", size, minimum=1)
        ranks = PartitionedNumbers(without_nan(value), self.grid, *self._ends())
        draw = self.sampler
        return [self._value(point) for point in draw.draws(ranks, size, random_source(rng)).tolist()]

    def rank_bound(self, beta: float) -> int:
        """Return by how many records the answer's rank is off at most, but with probability ``beta``.

        Parameters
        ----------
        beta : float
            Strictly between 0 and 1.

        Returns
        -------
        int
            With probability at least ``1 - beta`` no more than this many records lie strictly between the
            answer and the data's own quantile, whatever the data.

        Notes
        -----
        Points that are off by more than t records weigh at most their number times exp(-rate b t), and the
        data's own quantile weighs 1.
        """
        draw = self.sampler
        odds = math.log(draw.upper - draw.lower + 1) - math.log(_check.unit_interval("beta", beta))
        return math.ceil(Fraction(odds * (1 + 1e-12)) / (draw.rate * draw.target.denominator))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles(RankMechanism):
    r"""Many quantiles of a column at once: the middle one first, then each half by itself, or all jointly.

    Parameters
    ----------
    quantiles : sequence of int, float or Fraction
        Strictly between 0 and 1, each above the one before it.
    bounds, grid, neighboring
        As in `Quantile`.
    epsilon : int, float or Fraction
        Of all answers together.
    joint : bool, optional
        True to draw all answers at once, at most 32, as `JointQuantiles` does: in more time (4 seconds for
        nine of a million records), and with far less error where a record is replaced or zeroed. Unless
        given, so in these relations, and by halving under add/remove, where both err alike.

    Notes
    -----
    Guarantee of a joint draw: epsilon-DP, that of `JointQuantiles`. Each record is placed within its step by
    lot where steps are not cut into parts, which is a function of that record and of the lot alone.

    Guarantee of halving: epsilon-DP; the loss is that of ``d`` choices of bounded range, :math:`d =
    \lceil\log_2(m + 1)\rceil` for m quantiles. Proof: the quantiles released first cut the records into
    disjoint parts, and each further one is a choice on one part, with the target rank within it. A record
    that is added or removed is in one part of each of the d levels, so a level costs what one choice costs
    (parallel composition); one that is replaced or zeroed changes two parts by one record each, or one part
    by a replacement, and each choice is made at half the cost.

    References
    ----------
    Kaplan, Schnapp, Stemmer, "Differentially private approximate quantiles" (ICML 2022).

    Examples
    --------
    >>> import numpy as np
    >>> deciles = Quantiles(quantiles=[k / 10 for k in range(1, 10)], bounds=(0.0, 1.0), epsilon=1.0)
    >>> deciles.release(np.linspace(0, 1, 10_001), rng=2).value.round(2).tolist()
    [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    """

    quantiles: Sequence[Number] = ()
    joint: bool | None = None

    def _check_rates(self) -> None:
        object.__setattr__(self, "quantiles", as_quantiles(self.quantiles))
        can_be_joint = len(self.quantiles) <= MAX_JOINT and self.epsilon <= MAX_JOINT_EPSILON
        if self.joint is None:
            replaced = self.neighboring is not Neighboring.ADD_REMOVE
            object.__setattr__(self, "joint", can_be_joint and replaced)
        _check.instance("joint", self.joint, bool, "pass True, False or nothing")
        if self.joint and not can_be_joint:
            rule = f"be False for more than {MAX_JOINT} quantiles, or an epsilon above 2**16"
            _check.refuse("joint", rule, self.joint, "leave it out")
        share = drawn_epsilon(self.epsilon) / self._levels
        if share / (4 * DENOMINATOR) < MINIMUM_RATE:
            rule = f"be at least 2**-14 for each of the {self._levels} levels"
            _check.refuse("epsilon", rule, self.epsilon, "ask for fewer quantiles")

    @property
    def _levels(self) -> int:
        return 1 if self.joint else len(self.quantiles).bit_length()

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release."""
        share = outward(drawn_epsilon(self.epsilon) / self._levels)
        return Exponential(share, neighboring=self.neighboring) * self._levels

    def release(self, value: Any, rng: Rng = None) -> Release:
        """Release the quantiles of a column.

        Parameters
        ----------
        value : array, list or column of shape (n,)
            One real number per record; not changed.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        Release
            Of an array of shape (m,), not falling.
        """
        source = random_source(rng)
        lower, upper = self._ends()
        steps = np.clip(self.grid.round(np.sort(without_nan(value))), lower, upper)
        draw = self._joint if self.joint else self._by_halving
        return self._release_as(
            Release,
            np.array([self._value(point) for point in draw(steps, source)]),
            source,
            labels=quantile_labels(self.quantiles),
        )

    def _joint(self, steps: NDArray[np.int64], source: RandomSource) -> list[int]:
        """Return all quantiles, drawn at once."""
        lower, upper = self._ends()
        parts = parts_of(upper - lower + 1)
        steps, bits = (steps, 0) if parts > 1 else self._cut(steps, source)
        points = (upper - lower + 1) << bits
        quantiles = tuple(Fraction(quantile) for quantile in self.quantiles)
        draw = joint_sampler(quantiles, drawn_epsilon(self.epsilon), self.neighboring, points, parts)
        return [lower + (at >> bits) for at in draw.points(steps - (lower << bits), parts, source)]

    def _cut(self, steps: NDArray[np.int64], source: RandomSource) -> tuple[NDArray[np.int64], int]:
        """Return steps cut into finer ones, on which records are apart that no value tells apart."""
        lower, upper = self._ends()
        # Each record is placed within its step, so that those distinguished by no value are distinguished by
        # lot.
        bits = min(_TIE_BITS, max(0, 60 - max(abs(lower), abs(upper)).bit_length()))
        if bits:
            steps = np.sort((steps << bits) + (source.words(len(steps)) >> (64 - bits)).astype(np.int64))
        return steps, bits

    def _by_halving(self, steps: NDArray[np.int64], source: RandomSource) -> list[int]:
        """Return all quantiles, the middle one first."""
        (lower, upper), (steps, bits) = self._ends(), self._cut(steps, source)
        found = [0] * len(self.quantiles)
        ends = lower << bits, ((upper + 1) << bits) - 1
        parts = [_Part(0, len(found), SortedNumbers(steps), Fraction(0), Fraction(1), *ends)]
        for part in parts:
            if part.first < part.last:
                parts.extend(self._halved(part, found, source))
        return [point >> bits for point in found]

    def _halved(self, part: _Part, found: list[int], source: RandomSource) -> tuple[_Part, _Part]:
        """Find the middle one of a part's quantiles, and return the two parts beside it."""
        middle = (part.first + part.last) // 2
        quantile = Fraction(self.quantiles[middle])
        target = (quantile - part.share_below) / (part.share_up_to - part.share_below)
        halves = 1 if self.neighboring is Neighboring.ADD_REMOVE else 2
        epsilon = drawn_epsilon(self.epsilon) / self._levels / halves
        point = add_remove_sampler(target, epsilon, part.lower, part.upper).draw(part.records, source)
        found[middle] = point
        below = part._replace(
            last=middle, records=part.records.between(None, point), share_up_to=quantile, upper=point
        )
        above = part._replace(
            first=middle + 1, records=part.records.between(point, None), share_below=quantile, lower=point
        )
        return below, above


class _Part(NamedTuple):
    """Records between two quantiles, and those from ``first`` to before ``last`` that are still open."""

    first: int
    last: int
    records: SortedNumbers
    share_below: Fraction
    share_up_to: Fraction
    lower: int
    upper: int


def as_quantiles(given: object) -> tuple[Fraction, ...]:
    """Return quantiles as fractions, or refuse what are none."""
    rule = "be numbers strictly between 0 and 1, each above the one before it, to 2**-20"
    if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray) or not len(given):
        _check.refuse("quantiles", rule, given, "pass a list, (0.25, 0.5, 0.75) for quartiles")
    found: list[Fraction] = []
    for number in given:
        exact = _check.fraction("quantiles", number, "pass shares below 1, 0.5 for the median")
        nearest = exact.limit_denominator(DENOMINATOR)
        if not (found[-1] if found else 0) < nearest < 1:
            _check.refuse("quantiles", rule, number, "pass 0.5 for the median")
        found.append(nearest)
    return tuple(found)


def quantile_labels(quantiles: Iterable[Number]) -> dict[str, tuple[float, ...]]:
    """Return the column that says which quantile each entry of a release is."""
    return {"quantile": tuple(float(quantile) for quantile in quantiles)}


def without_nan(value: Any) -> NDArray[Any]:
    """Return one number per record, 0 for NaN."""
    array = as_numbers(value, integral=False)
    if array.dtype.kind == "f" and np.isnan(np.min(array, initial=0)):
        return np.asarray(np.nan_to_num(array, nan=0.0, posinf=np.inf, neginf=-np.inf))
    return np.asarray(array)
