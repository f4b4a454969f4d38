"""Randomized response: each respondent reports the true category, or with some probability another one."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.columns import read_column
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.rational import Number, plain
from sfumato.mechanisms.base.release import Release
from sfumato.mechanisms.base.release_table import Rows, rows_of
from sfumato.numerics.certified.fixed_point import exp_bounds
from sfumato.numerics.confidence_bounds import lower_confidence_bound, upper_confidence_bound
from sfumato.numerics.interval import Interval
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.numerics.randomness.uniform import uniform_integers
from sfumato.numerics.rounding import fraction_up, log_up
from sfumato.privacy.leaves import randomized_response as leaf
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["RandomizedResponse", "ResponseRelease"]

_BITS: Final = 60
_MAXIMUM: Final = 1 << 62


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResponseRelease(Release):
    """The reports of many respondents, and estimates of the proportions of the categories.

    Parameters
    ----------
    value : list or one category
        The reports, in the order of the respondents.
    counts : int64 array
        How often each category was reported, in the order of the mechanism's categories.
    truth : Fraction
        The probability of a true report.
    loss, neighboring, receipt, simulated, labels
        As in `Release`; the loss is that of each respondent's own report.

    Examples
    --------
    >>> coins = RandomizedResponse.two_coins(categories=("no", "yes"))
    >>> release = coins.release(["yes"] * 300 + ["no"] * 700, rng=1)
    >>> bool(abs(release.frequencies[1] - 0.3) < 4 * release.stddev[1])
    True
    """

    counts: NDArray[np.int64]
    truth: Fraction

    @property
    def frequencies(self) -> NDArray[np.float64]:
        """Unbiased estimates of the categories' shares; they sum to 1, and may lie outside [0, 1].

        NaN where nobody reported.
        """
        with np.errstate(invalid="ignore"):
            return self._share(self.counts / self.counts.sum())

    @property
    def stddev(self) -> NDArray[np.float64]:
        """Estimated standard deviations of the frequencies, of sampling and randomization together."""
        with np.errstate(invalid="ignore", divide="ignore"):
            rate = self.counts / self.counts.sum()
            standard_error = np.sqrt(rate * (1 - rate) / self.counts.sum())
        return np.asarray(standard_error / float(self.truth - self._lie))

    def interval(self, level: float = 0.95) -> Interval[NDArray[np.float64]]:
        """Return an interval for each category's share, which holds it with probability at least the level.

        Parameters
        ----------
        level : float
            Wanted coverage of each, strictly between 0 and 1.

        Returns
        -------
        Interval
            Arrays over the categories, within [0, 1].

        Notes
        -----
        The target is the share in the population of which the respondents are independent draws. The number
        of reports of a category is then binomial, its probability an increasing function of the share, and
        the interval that of Clopper and Pearson for it, mapped back: sampling and randomization are inside.
        """
        risk = (1 - _check.unit_interval("level", level)) / 2
        total = int(self.counts.sum())
        if not total:
            whole = np.ones(len(self.counts))
            return Interval(whole * 0, whole)
        ends = (
            self._share(lower_confidence_bound(self.counts, total, risk)) - 1e-12,
            self._share(upper_confidence_bound(self.counts, total, risk)) + 1e-12,
        )
        return Interval(np.clip(ends[0], 0, 1), np.clip(ends[1], 0, 1))

    def _rows(self, level: float | None) -> Rows:
        """Return the estimated share of each category."""
        return rows_of(self.frequencies, self.labels, self.interval(0.95 if level is None else level))

    @property
    def _lie(self) -> Fraction:
        return (1 - self.truth) / (len(self.counts) - 1)

    def _share(self, rate: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray((rate - float(self._lie)) / float(self.truth - self._lie))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedResponse(Mechanism):
    r"""A true report with some probability, else each other category with the same one.

    Parameters
    ----------
    categories : sequence of hashables
        What may be reported, without repetition; at least 2, public.
    truth : int, float or Fraction
        Probability of a true report, above ``1 / len(categories)`` and below 1; taken as the exact rational.
    neighboring : Neighboring
        Replace-one: one respondent's category may be any other one. Zero-out holds too, for a neutral
        category among the given ones.

    Notes
    -----
    Guarantee: for each respondent :math:`\epsilon = \log(p (k-1) / (1-p))`-DP of the own report, p the
    probability of the truth and k the number of categories; exact, whatever the others hold, and although all
    reports are seen together, as they are independent. That somebody responds is not hidden. An answer that
    is none of the categories is replaced by an evenly drawn one first, which costs no more (joint convexity).

    References
    ----------
    Warner, "Randomized response" (JASA 1965); Kairouz, Bonawitz, Ramage, "Discrete distribution estimation
    under local privacy" (ICML 2016), any number of categories.

    Examples
    --------
    >>> coins = RandomizedResponse.two_coins(categories=("no", "yes"))
    >>> coins.truth, round(coins.privacy_loss.epsilon(0.0), 4)
    (0.75, 1.0986)
    >>> release = coins.release(["yes"] * 300 + ["no"] * 700, rng=1)
    >>> release.value[:3], release.frequencies.round(3).tolist()
    (['yes', 'yes', 'yes'], [0.714, 0.286])
    """

    categories: Sequence[Hashable]
    truth: Number
    neighboring: Neighboring = Neighboring.REPLACE_ONE

    def __post_init__(self) -> None:
        object.__setattr__(self, "categories", _categories(self.categories))
        remedy = "pass epsilon= to RandomizedResponse.calibrated to have it chosen"
        truth = _check.fraction("truth", self.truth, remedy)
        count = len(self.categories)
        if not Fraction(1, count) < truth < 1:
            remedy = "pass less to hide more of the answers, more to learn more from them"
            _check.refuse("truth", f"be above 1/{count} and below 1", self.truth, remedy)
        if truth.denominator > _MAXIMUM:
            _check.refuse(
                "truth", "have a denominator of at most 2**62", self.truth, "round it to fewer digits"
            )
        object.__setattr__(self, "truth", plain(truth))
        if self.neighboring is Neighboring.ADD_REMOVE:
            remedy = "pass Neighboring.REPLACE_ONE, as everybody sees who responded"
            _check.refuse("neighboring", "be replace-one or zero-out", self.neighboring, remedy)
        _ = self.privacy_loss  # the leaf checks the relation

    @classmethod
    def calibrated(
        cls,
        *,
        categories: Sequence[Hashable],
        epsilon: float,
        neighboring: Neighboring = Neighboring.REPLACE_ONE,
    ) -> RandomizedResponse:
        """Return the mechanism with the most truth that is epsilon-DP.

        Parameters
        ----------
        categories : sequence of hashables
        epsilon : float
            Positive, for each respondent.
        neighboring : Neighboring

        Returns
        -------
        RandomizedResponse
            Its ``truth`` is ``exp(epsilon) / (exp(epsilon) + k - 1)`` rounded down, by less than 2**-52.
        """
        target = _check.positive("epsilon", epsilon)
        names = _categories(categories)
        count, slack = len(names), 0
        while True:
            _, rest = exp_bounds(Fraction(target), 2 * _BITS)
            truth = Fraction(1 << 2 * _BITS, (1 << 2 * _BITS) + (count - 1) * rest)
            rounded = Fraction(int(truth * (1 << _BITS)) - slack, 1 << _BITS)
            if rounded * count <= 1:
                remedy = "pass a larger one; such reports carry no information"
                _check.refuse("epsilon", "be above about 2**-60", epsilon, remedy)
            found = cls(categories=names, truth=rounded, neighboring=neighboring)
            # The loss rounds the logarithm up by a few units in the last place.
            if found.privacy_loss.epsilon(0.0) <= target:
                return found
            slack = 2 * slack + 1

    @classmethod
    def two_coins(
        cls,
        *,
        categories: Sequence[Hashable],
        heads: Number = Fraction(1, 2),
        neighboring: Neighboring = Neighboring.REPLACE_ONE,
    ) -> RandomizedResponse:
        """Return the design of a survey with two coins.

        The respondent tosses a first coin: on heads the answer is true, on tails evenly drawn from all
        categories (for two of them by a second, fair coin).

        Parameters
        ----------
        categories : sequence of hashables
        heads : int, float or Fraction
            Probability of heads of the first coin.
        neighboring : Neighboring

        Returns
        -------
        RandomizedResponse
        """
        names = _categories(categories)
        chance = _check.fraction("heads", heads)
        if chance >= 1:
            _check.refuse("heads", "be below 1", heads, "pass 1/2 for a fair coin")
        truth = chance + (1 - chance) / len(names)
        return cls(categories=names, truth=plain(truth), neighboring=neighboring)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of each respondent's report."""
        truth, count = Fraction(self.truth), len(self.categories)
        odds = truth * (count - 1) / (1 - truth)
        return leaf.RandomizedResponse(log_up(fraction_up(odds)), count, neighboring=self.neighboring)

    def release(self, value: Any, rng: Rng = None) -> ResponseRelease:
        """Report for one respondent, or for many.

        Parameters
        ----------
        value : one category, or a list, tuple, array or column of them
            The true categories, one for each respondent.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        ResponseRelease

        Raises
        ------
        ParameterError
            If the type does not fit; never for an answer.
        """
        column = read_column(value)
        if column is not None:
            value = column.values if column.nulls is None else _with_none(column.values, column.nulls)
        many = _several(value)
        if isinstance(value, np.ndarray):
            if value.ndim > 1:
                _check.refuse_state(
                    "value", "have one axis", f"it has {value.ndim}", "pass one answer for each respondent"
                )
            value = value if many else value.item()
        elif not many and (type(value).__hash__ is None or isinstance(value, Iterator)):
            # The type is shown, never the value.
            rule = "be one category, or a list, tuple or array of them"
            _check.refuse_state("value", rule, f"it is a value of type {type(value).__name__}", "pass a list")
        indices = self._indices(value if many else [value])
        truth, count = Fraction(self.truth), len(self.categories)
        source = random_source(rng)
        unknown = np.flatnonzero(indices < 0)
        # As many words whatever the answers are.
        evenly = uniform_integers(count, len(indices), source)
        indices[unknown] = evenly[unknown]
        lies = uniform_integers(truth.denominator, len(indices), source) >= truth.numerator
        others = uniform_integers(count - 1, len(indices), source)
        reported = np.where(lies, others + (others >= indices), indices)
        reports = [self.categories[index] for index in reported.tolist()]
        return self._release_as(
            ResponseRelease,
            reports if many else reports[0],
            source,
            counts=np.bincount(reported, minlength=count),
            truth=truth,
            labels={"category": self.categories},
        )

    def probabilities(self, answer: Any) -> dict[Hashable, Fraction]:
        """Return the probability of each report of one respondent: private, for tests and for the respondent.

        Parameters
        ----------
        answer : one category
            Of what is no category every report is equally likely.

        Returns
        -------
        dict
            From each category to its exact probability.
        """
        if _several(answer):
            _check.refuse_type("answer", "be one category", answer, "pass that of one respondent")
        index, count = int(self._indices([answer])[0]), len(self.categories)
        truth = Fraction(self.truth) if index >= 0 else Fraction(1, count)
        lie = (1 - truth) / (count - 1)
        return {name: truth if k == index else lie for k, name in enumerate(self.categories)}

    def outputs(self, value: Any, size: int, rng: Rng = None) -> Any:
        """Draw the values of many releases at once; see `Mechanism.outputs`.

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
        list of lists, or array
            The reports of each release.
        """
        if _several(value):
            return Mechanism.outputs(self, value, size, rng)
        # Respondents report each for themselves.
        return self.release([value] * _check.integer("size", size, minimum=1), rng).value

    def _indices(self, values: Iterable[Any]) -> NDArray[np.int64]:
        """Return the indices of the answers among the categories, -1 for what is none of them."""
        index_of = {category: index for index, category in enumerate(self.categories)}
        if isinstance(values, np.ndarray) and values.dtype.kind in "biufUS":
            kinds, which = np.unique(values, return_inverse=True)
            known = [index_of.get(kind, -1) for kind in kinds.tolist()]
            return np.asarray(known, dtype=np.int64)[which.ravel()]
        return np.fromiter((_index(index_of, value) for value in values), dtype=np.int64)


def _several(value: object) -> bool:
    return value.ndim > 0 if isinstance(value, np.ndarray) else isinstance(value, list | tuple)


def _with_none(values: NDArray[Any], nulls: NDArray[np.bool_]) -> list[Any]:
    """Return the answers of a column, None for a null, which is a category only where it is listed as one."""
    return [None if null else answer for answer, null in zip(values.tolist(), nulls.tolist(), strict=True)]


def _index(index_of: dict[Hashable, int], value: Any) -> int:
    try:
        return index_of.get(value, -1)
    except TypeError:  # it cannot be a category
        return -1


def _categories(given: object) -> tuple[Hashable, ...]:
    rule = "be at least 2 hashable values, none of them twice"
    if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray):
        _check.refuse_type("categories", rule, given, "pass a list or a tuple")
    names = tuple(given.tolist() if isinstance(given, np.ndarray) else given)
    try:
        distinct = len(set(names))
    except TypeError:
        _check.refuse("categories", rule, given, "pass each category once")
    if distinct < 2 or distinct < len(names):
        _check.refuse("categories", rule, given, "pass each category once")
    return names
