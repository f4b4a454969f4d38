"""Test hypotheses by randomized answers; the design's chances are part of the null distribution."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, chdtrc

from sfumato import _check
from sfumato.local.surveys.designs.binary import BinaryDesign
from sfumato.local.surveys.designs.design import Design
from sfumato.local.surveys.estimates.answer_counts import indices
from sfumato.local.surveys.estimates.category_shares import Shares
from sfumato.local.surveys.estimates.estimated_design import EstimatedDesign
from sfumato.local.surveys.estimates.prevalence import Prevalence
from sfumato.local.surveys.estimates.prevalence_difference import PrevalenceDifference
from sfumato.local.surveys.inference.fisher_exact import exact_p_value
from sfumato.numerics.interval import Interval

__all__ = ["Finding", "goodness_of_fit", "independence", "two_sample"]

_Array: TypeAlias = NDArray[np.float64]
Estimated: TypeAlias = Prevalence | Shares
"""What `estimate` of a design returns."""
_RUNS: Final = 9999
_ROUNDING: Final = 1e-9


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of a test.

    Parameters
    ----------
    p_value : float
        The chance of answers as odd as these, or odder, if the null hypothesis holds.
    method : str
        How it was found, and whether that is exact.
    statistic : float
        Pearson's or Wald's chi-square; NaN where the test has none.
    degrees : int
        Degrees of freedom; 0 where the test has none.
    difference : float, optional
        Where prevalences are compared: how much higher the first one is, raw.
    interval : Interval, optional
        A 95 % interval for that difference, approximate; see `PrevalenceDifference` for others.

    Examples
    --------
    >>> from sfumato.local.surveys import TwoCoins, goodness_of_fit
    >>> finding: Finding = goodness_of_fit(TwoCoins().estimate({"yes": 400, "no": 600}), 0.1)
    >>> finding.p_value < 0.001, finding.method
    (True, 'exact binomial test')
    """

    p_value: float
    method: str
    statistic: float = float("nan")
    degrees: int = 0
    difference: float | None = None
    interval: Interval | None = None


def goodness_of_fit(
    estimate: Estimated,
    shares: float | Sequence[float],
    *,
    method: Literal["chi-square", "simulated"] = "chi-square",
    seed: int = 0,
) -> Finding:
    r"""Test whether the true shares are given ones.

    Parameters
    ----------
    estimate : Prevalence or Shares
    shares : float or sequence of float
        The prevalence under the null hypothesis, or the share of each category.
    method : {"chi-square", "simulated"}
        For several categories: Pearson's chi-square with its limit distribution, or with its own distribution
        at these shares, simulated 9,999 times. With two answers the test is exact, whatever is asked for.
    seed : int
        Of the simulation.

    Returns
    -------
    Finding
        Its p-value accounts for sampling and randomization together.

    Notes
    -----
    Under the null hypothesis :math:`\theta` the counts of the answers are multinomial with the probabilities
    :math:`\theta T`, T the design's transition: known, so that sampling and randomization are both in the
    distribution. The exact test doubles the smaller binomial tail. A simulated p-value :math:`(1 + \#)/(1 +
    N)` is at most any level with that chance exactly (Barnard 1963).

    Examples
    --------
    >>> from sfumato.local.surveys import TwoCoins
    >>> found = TwoCoins().estimate({"yes": 400, "no": 600})  # a prevalence of 0.3
    >>> goodness_of_fit(found, 0.3).p_value > 0.9, goodness_of_fit(found, 0.1).p_value < 0.001
    (True, True)
    """
    _check_estimates(estimate=estimate)
    design, counts = estimate.design, _counts(estimate)
    rates = _null(design, shares)
    total = int(counts.sum())
    if len(counts) == 2:
        hits, rate = int(counts[1]), float(rates[1])
        few = float(bdtr(hits, total, rate))
        many = float(bdtr(total - hits, total, 1 - rate))
        p_value = min(1.0, 2 * min(few, many) * (1 + _ROUNDING))
        found = Finding(p_value=p_value, method="exact binomial test")
        if not isinstance(estimate, Prevalence):
            return found
        null = float(np.atleast_1d(np.asarray(shares, dtype=np.float64))[-1])
        lower, upper, _ = estimate.interval(0.95, "wilson")
        difference = estimate.prevalence - null
        return replace(found, difference=difference, interval=Interval(lower - null, upper - null))
    statistic = float(_pearson(counts, total * rates))
    degrees = len(counts) - 1
    if method == "chi-square":
        return Finding(
            p_value=float(chdtrc(degrees, statistic)),
            method="chi-square, approximate",
            statistic=statistic,
            degrees=degrees,
        )
    if method != "simulated":
        _check.refuse("method", "be 'chi-square' or 'simulated'", method, "leave it out")
    draws = np.random.default_rng(_check.integer("seed", seed)).multinomial(total, rates, _RUNS)
    above = int((_pearson(draws, total * rates) >= statistic * (1 - _ROUNDING)).sum())
    return Finding(
        p_value=(1 + above) / (1 + _RUNS),
        method="chi-square, simulated",
        statistic=statistic,
        degrees=degrees,
    )


def two_sample(first: Estimated, second: Estimated) -> Finding:
    r"""Test whether two groups have the same shares.

    Parameters
    ----------
    first, second : Prevalence or Shares
        Of two independent groups of respondents.

    Returns
    -------
    Finding
        Its p-value accounts for sampling and randomization together.

    Notes
    -----
    With one design for both, equal shares mean equal distributions of the answers, so tests for those apply:
    Fisher's exact one for two answers, Pearson's chi-square for more. With two designs for the same
    categories, say another spinner in each group, Wald's: the difference of the unbiased estimates against
    the sum of their covariances at the nearest possible shares, a chi-square in the limit.

    Examples
    --------
    >>> from sfumato.local.surveys import TwoCoins
    >>> town = TwoCoins().estimate({"yes": 400, "no": 600})
    >>> country = TwoCoins().estimate({"yes": 300, "no": 700})
    >>> two_sample(town, country).p_value < 0.001
    True
    """
    _check_estimates(first=first, second=second)
    tables = np.array([_counts(first), _counts(second)]) if _alike(first, second) else None
    if tables is None:
        _check.refuse(
            "second", "have the categories of first", second.design.categories, "compare the same question"
        )
    totals = tables.sum(axis=1).tolist()
    degrees = tables.shape[1] - 1
    if first.design == second.design:
        if degrees == 1:
            hits = int(tables[0, 1]), int(tables[1, 1])
            p_value = exact_p_value(hits, (totals[0], totals[1]))
            return _compared(Finding(p_value=p_value, method="Fisher's exact test"), first, second)
        return _contingency(tables)
    statistic = 0.0
    if min(totals) > 0:
        gap = _shares(first) - _shares(second)
        deviation = _covariance(first) + _covariance(second)
        # The last share follows from the others.
        statistic = float(gap[:-1] @ np.linalg.pinv(deviation[:-1, :-1], hermitian=True) @ gap[:-1])
    found = Finding(
        p_value=float(chdtrc(degrees, statistic)),
        method="Wald's chi-square, approximate",
        statistic=statistic,
        degrees=degrees,
    )
    return _compared(found, first, second)


def independence(
    first: Any,
    second: Any,
    *,
    designs: tuple[Design | None, Design | None],
    method: Literal["chi-square", "permuted"] = "chi-square",
    seed: int = 0,
) -> Finding:
    r"""Test whether two things are independent in the population, of which at least one was asked privately.

    Parameters
    ----------
    first, second : array, list or column of a frame
        Both answers of each respondent, in one order.
    designs : tuple of two designs
        How each was asked; None for what was asked directly.
    method : {"chi-square", "permuted"}
        Pearson's chi-square with its limit distribution, or against tables with the same margins, drawn 9,999
        times.
    seed : int
        Of the permutations.

    Returns
    -------
    Finding
        Its p-value accounts for sampling and randomization together.

    Notes
    -----
    The two devices are used independently of one another, so the joint distribution of the answers is
    :math:`T_1^T \Theta T_2`. As the transitions are invertible, that is a product exactly where
    :math:`\Theta` is: the answers are independent if and only if the truths are, and every test for the
    answers is one for the truths, with the same level. Only power is lost. Given its margins, an independent
    table has the distribution of permuted answers, so a permuted p-value is at most any level with that
    chance exactly.

    Examples
    --------
    >>> from sfumato.local.surveys import TwoCoins
    >>> answers = ["yes"] * 60 + ["no"] * 40 + ["yes"] * 30 + ["no"] * 70
    >>> groups = ["town"] * 100 + ["country"] * 100
    >>> independence(answers, groups, designs=(TwoCoins(), None)).p_value < 0.001
    True
    """
    asked: object = designs
    if not isinstance(asked, tuple | list) or len(asked) != 2:
        rule, remedy = (
            "be a pair, of how each was asked",
            "pass (None, design) if the first was asked directly",
        )
        _check.refuse_type("designs", rule, asked, remedy)
    rows, columns = (
        _indices(name, given, design)
        for name, given, design in zip(("first", "second"), (first, second), designs, strict=True)
    )
    if len(rows[0]) != len(columns[0]):
        _check.refuse("second", "have an answer for each of first", len(columns[0]), "leave nobody out")
    table = np.zeros((rows[1], columns[1]), np.int64)
    np.add.at(table, (rows[0], columns[0]), 1)
    found = _by_group(_contingency(table), table, designs)
    if method == "chi-square":
        return found
    if method != "permuted":
        _check.refuse("method", "be 'chi-square' or 'permuted'", method, "leave it out")
    tables = _with_margins(table, np.random.default_rng(_check.integer("seed", seed)))
    drawn = _pearson(tables, _expected(table).ravel())
    above = int((drawn >= found.statistic * (1 - _ROUNDING)).sum())
    return replace(found, p_value=(1 + above) / (1 + _RUNS), method="chi-square, permuted")


def _compared(found: Finding, first: Estimated, second: Estimated) -> Finding:
    """Return what was found with the difference of two prevalences, where there are two."""
    if not isinstance(first, Prevalence) or not isinstance(second, Prevalence):
        return found
    apart = PrevalenceDifference(first=first, second=second)
    return replace(found, difference=apart.difference, interval=apart.interval())


def _by_group(
    found: Finding, table: NDArray[np.int64], designs: tuple[Design | None, Design | None]
) -> Finding:
    """Return what was found with the difference of the prevalences in two groups that were asked directly."""
    asked = designs if designs[0] is None else designs[::-1]
    rows = table if designs[0] is None else table.T
    design = asked[1]
    if asked[0] is not None or not isinstance(design, BinaryDesign) or len(rows) != 2:
        return found
    one, two = (Prevalence(design=design, yes=int(yes), respondents=int(no + yes)) for no, yes in rows)
    return _compared(found, one, two)


def _check_estimates(**estimates: object) -> None:
    for name, given in estimates.items():
        if not isinstance(given, Prevalence | Shares):
            rule, remedy = "be an estimate of one sample", "pass what design.estimate(answers) returns"
            _check.refuse_type(name, rule, given, remedy)


def _counts(estimate: Estimated) -> NDArray[np.int64]:
    if isinstance(estimate, Shares):
        return estimate.counts
    return np.array([estimate.respondents - estimate.yes, estimate.yes], np.int64)


def _shares(estimate: Estimated) -> _Array:
    if isinstance(estimate, Shares):
        return estimate.shares
    return np.array([1 - estimate.prevalence, estimate.prevalence])


def _covariance(estimate: Estimated) -> _Array:
    """Return the covariance of the shares were they possible ones: never 0, as every answer may be given."""
    shares = np.maximum(_shares(estimate), 0.0)
    rate = _null(estimate.design, shares / shares.sum())
    deviation = (np.diag(rate) - np.outer(rate, rate)) / _counts(estimate).sum()
    return np.asarray(deviation / float(estimate.design.slope) ** 2)


def _alike(first: Estimated, second: Estimated) -> bool:
    return first.design.categories == second.design.categories


def _null(design: EstimatedDesign, shares: float | Sequence[float]) -> _Array:
    """Return the probabilities of the answers under the null hypothesis."""
    given = np.atleast_1d(np.asarray(shares, dtype=np.float64))
    if given.size == 1 and len(design.answers) == 2:
        given = np.array([1 - given[0], given[0]])
    if given.shape != (len(design.answers),) or not (given >= 0).all() or abs(given.sum() - 1) > 1e-9:
        rule = f"be {len(design.answers)} shares from 0 to 1 that add up to 1, or one prevalence"
        _check.refuse("shares", rule, shares, "divide them by their sum")
    transition = np.array([[float(mass) for mass in row] for row in design.transition])
    rates = given @ transition
    return np.asarray(rates / rates.sum())


def _pearson(counts: NDArray[np.int64], expected: _Array) -> _Array:
    """Return Pearson's chi-square of the last axis; cells that cannot be hit do not count."""
    with np.errstate(invalid="ignore", divide="ignore"):
        parts = (counts - expected) ** 2 / expected
    return np.asarray(np.where(expected > 0, parts, 0.0).sum(axis=-1))


def _expected(table: NDArray[np.int64]) -> _Array:
    return np.asarray(np.outer(table.sum(axis=1), table.sum(axis=0)) / max(1, table.sum()))


def _contingency(table: NDArray[np.int64]) -> Finding:
    """Return Pearson's test of a table; rows and columns without an entry do not count."""
    retained = [int((table.sum(axis=axis) > 0).sum()) for axis in (1, 0)]
    degrees = max(0, (retained[0] - 1) * (retained[1] - 1))
    statistic = float(_pearson(table.ravel(), _expected(table).ravel()))
    return Finding(
        p_value=float(chdtrc(degrees, statistic)) if degrees else 1.0,
        method="chi-square, approximate",
        statistic=statistic,
        degrees=degrees,
    )


def _with_margins(table: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw tables with the margins of one, as permuting either answer would: row by row, hypergeometric."""
    left = np.tile(table.sum(axis=0), (_RUNS, 1))
    rows = []
    for size in table.sum(axis=1).tolist():
        row = np.zeros_like(left)
        need, pool = np.full(_RUNS, size), left.sum(axis=1)
        for column in range(left.shape[1]):
            pool = pool - left[:, column]
            row[:, column] = rng.hypergeometric(left[:, column], pool, need)
            need = need - row[:, column]
        rows.append(row)
        left = left - row
    return np.concatenate(rows, axis=1)


def _indices(name: str, given: Any, design: Design | None) -> tuple[NDArray[np.int64], int]:
    if design is not None:
        return indices(name, given, design.answers), len(design.answers)
    listed = np.asarray(given)
    if isinstance(given, Mapping | str) or listed.ndim != 1:
        _check.refuse_type(name, "be an answer for each respondent", given, "pass a list or a column")
    values: list[Hashable] = listed.tolist()
    if not all(map(_is_there, values)):
        remedy = "drop such respondents from both, or give them an answer of their own"
        _check.refuse_type(name, "have an answer for each respondent", given, remedy)
    which = {label: index for index, label in enumerate(dict.fromkeys(values))}
    return np.array([which[value] for value in values], np.int64), max(1, len(which))


def _is_there(value: Hashable) -> bool:
    """Return whether a value is no missing one: None, NaN or whatever else is not equal to itself."""
    try:
        return value is not None and bool(value == value)  # noqa: PLR0124
    except TypeError:  # what is neither equal nor unequal
        return False
