"""Aggregates as Python calls, for the builder: each writes one call of the private SQL.

``x`` is the SQL of a value, or a :class:`~sfumato.queries.builder.columns.ColumnExpression`. What each call
estimates, and what its bounds mean, is said in the guide to the SQL under the aggregate's name there.
"""

from __future__ import annotations

from typing import TypeAlias

from sfumato.queries.builder.aggregate_call import AggregateCall, write_call, write_function
from sfumato.queries.builder.columns import Expressible, expression_sql
from sfumato.queries.plan.sql_text import literal_sql

__all__ = [
    "Bounds",
    "count",
    "count_distinct",
    "max",
    "mean",
    "median",
    "min",
    "quantile",
    "quantiles",
    "stddev",
    "sum",
    "variance",
]

Bounds: TypeAlias = tuple[float, float]
"""Lower and upper bound, public numbers."""

_PER_GROUP = "contribution_bounds_per_group"
_PER_ROW = "contribution_bounds_per_row"


def count(
    x: Expressible | None = None, *, bounds: tuple[int, int] | None = None, epsilon: float | None = None
) -> AggregateCall:
    """Count units, or rows where ``bounds`` say how many rows of a unit count; of ``x``, those with a value.

    Parameters
    ----------
    x : str or ColumnExpression, optional
        A value; rows where it is NULL do not count.
    bounds : (int, int), optional
        How many rows of one unit may count in a group.
    epsilon : float, optional
        This aggregate's own part of the query's epsilon.

    Returns
    -------
    AggregateCall

    Examples
    --------
    >>> count().sql, count(bounds=(0, 5)).sql
    ('COUNT(*)', 'COUNT(*, contribution_bounds_per_group => (0, 5))')
    """
    return write_function("COUNT", x, _named("count", x), {_PER_GROUP: bounds}, epsilon)


def count_distinct(
    x: Expressible, *, per_unit: int | None = None, epsilon: float | None = None
) -> AggregateCall:
    """Count different values of ``x``, at most ``per_unit`` of one unit in a group; or the privacy units.

    Parameters
    ----------
    x : str or ColumnExpression
        A value, or the privacy unit's column.
    per_unit : int, optional
        How many different values of one unit may count in a group.
    epsilon : float, optional
        This aggregate's own part of the query's epsilon.

    Returns
    -------
    AggregateCall

    Examples
    --------
    >>> count_distinct("person").sql
    'COUNT(DISTINCT person)'
    """
    argument, name = expression_sql(x, "x"), _named("distinct", x)
    if per_unit is None:
        return write_call(f"COUNT(DISTINCT {argument}", name, {}, epsilon)
    given: dict[str, object] = {"max_contributions_per_group": per_unit}
    return write_call(f"APPROX_COUNT_DISTINCT({argument}", name, given, epsilon)


def sum(  # noqa: A001 - SQL's name
    x: Expressible,
    *,
    bounds: Bounds | None = None,
    row_bounds: Bounds | None = None,
    epsilon: float | None = None,
) -> AggregateCall:
    """Add up ``x``; ``bounds`` clamp what one unit adds to a group, ``row_bounds`` each row.

    Parameters
    ----------
    x : str or ColumnExpression
        A number.
    bounds : (float, float), optional
        Of what one unit adds to a group; found privately if left out.
    row_bounds : (float, float), optional
        Of each row's value.
    epsilon : float, optional
        This aggregate's own part of the query's epsilon.

    Returns
    -------
    AggregateCall

    Examples
    --------
    >>> sum("price * 2", bounds=(0, 100)).sql
    'SUM((price * 2), contribution_bounds_per_group => (0, 100))'
    """
    return write_function("SUM", x, _named("sum", x), {_PER_GROUP: bounds, _PER_ROW: row_bounds}, epsilon)


def mean(x: Expressible, *, bounds: Bounds | None = None, epsilon: float | None = None) -> AggregateCall:
    """Average each unit's own mean of ``x``, clamped to ``bounds``, over the units of a group.

    Parameters
    ----------
    x : str or ColumnExpression
        A number.
    bounds : (float, float), optional
        Of one unit's mean; found privately if left out.
    epsilon : float, optional
        This aggregate's own part of the query's epsilon.

    Returns
    -------
    AggregateCall

    Examples
    --------
    >>> mean("income", bounds=(0, 200_000)).sql
    'AVG(income, contribution_bounds_per_group => (0, 200000))'
    """
    return write_function("AVG", x, _named("mean", x), {_PER_GROUP: bounds}, epsilon)


def variance(
    x: Expressible, *, bounds: Bounds | None = None, sample: bool = False, epsilon: float | None = None
) -> AggregateCall:
    """Estimate the variance of the rows' ``x``, each clamped to ``bounds``; ``sample`` divides by n - 1.

    Parameters
    ----------
    x : str or ColumnExpression
        A number.
    bounds : (float, float), optional
        Of each row's value; found privately if left out.
    sample : bool
        Whether to divide by n - 1 instead of n.
    epsilon : float, optional
        This aggregate's own part of the query's epsilon.

    Returns
    -------
    AggregateCall

    Examples
    --------
    >>> variance("age", bounds=(0, 120)).name
    'variance_age'
    """
    function = "VAR_SAMP" if sample else "VAR_POP"
    return write_function(function, x, _named("variance", x), {_PER_ROW: bounds}, epsilon)


def stddev(
    x: Expressible, *, bounds: Bounds | None = None, sample: bool = False, epsilon: float | None = None
) -> AggregateCall:
    """Estimate the standard deviation of the rows' ``x``, the root of :func:`variance`.

    Parameters
    ----------
    x : str or ColumnExpression
        A number.
    bounds : (float, float), optional
        Of each row's value; found privately if left out.
    sample : bool
        Whether to divide by n - 1 instead of n.
    epsilon : float, optional
        This aggregate's own part of the query's epsilon.

    Returns
    -------
    AggregateCall

    Examples
    --------
    >>> stddev("age", bounds=(0, 120)).name
    'stddev_age'
    """
    function = "STDDEV_SAMP" if sample else "STDDEV_POP"
    return write_function(function, x, _named("stddev", x), {_PER_ROW: bounds}, epsilon)


def quantile(
    x: Expressible,
    probability: float,
    *,
    bounds: Bounds | None = None,
    epsilon: float | None = None,
    interval_epsilon: float | None = None,
) -> AggregateCall:
    """Estimate a quantile of the rows' ``x``, within ``bounds``.

    Parameters
    ----------
    x : str or ColumnExpression
        A number.
    probability : float
        From 0 to 1: the part of the rows below the quantile.
    bounds : (float, float), optional
        Of each row's value.
    epsilon : float, optional
        This aggregate's own part of the query's epsilon.
    interval_epsilon : float, optional
        The part of the query's epsilon for a narrower interval.

    Returns
    -------
    AggregateCall

    Examples
    --------
    >>> quantile("age", 0.9, bounds=(0, 120)).sql
    'PERCENTILE_CONT(age, 0.9, contribution_bounds_per_row => (0, 120))'
    """
    written = f"PERCENTILE_CONT({expression_sql(x, 'x')}, {literal_sql(probability)}"
    given: dict[str, object] = {_PER_ROW: bounds, "interval_epsilon": interval_epsilon}
    return write_call(written, _named("quantile", x), given, epsilon)


def quantiles(
    x: Expressible,
    parts: int,
    *,
    bounds: Bounds | None = None,
    epsilon: float | None = None,
    interval_epsilon: float | None = None,
) -> AggregateCall:
    """Estimate the ends of ``x`` and the quantiles between so many even parts of the rows, as an array.

    Parameters
    ----------
    x : str or ColumnExpression
        A number.
    parts : int
        How many even parts; the array has one entry more.
    bounds : (float, float), optional
        Of each row's value.
    epsilon : float, optional
        This aggregate's own part of the query's epsilon.
    interval_epsilon : float, optional
        The part of the query's epsilon for narrower intervals.

    Returns
    -------
    AggregateCall

    Examples
    --------
    >>> quantiles("age", 4, bounds=(0, 120)).sql
    'APPROX_QUANTILES(age, 4, contribution_bounds_per_row => (0, 120))'
    """
    written = f"APPROX_QUANTILES({expression_sql(x, 'x')}, {literal_sql(parts)}"
    given: dict[str, object] = {_PER_ROW: bounds, "interval_epsilon": interval_epsilon}
    return write_call(written, _named("quantiles", x), given, epsilon)


def median(x: Expressible, *, bounds: Bounds | None = None, epsilon: float | None = None) -> AggregateCall:
    """Estimate the median of the rows' ``x``, within ``bounds``.

    Parameters
    ----------
    x : str or ColumnExpression
        A number.
    bounds : (float, float), optional
        Of each row's value.
    epsilon : float, optional
        This aggregate's own part of the query's epsilon.

    Returns
    -------
    AggregateCall

    Examples
    --------
    >>> median("age", bounds=(0, 120)).name
    'median_age'
    """
    return write_function("MEDIAN", x, _named("median", x), {_PER_ROW: bounds}, epsilon)


def min(x: Expressible, *, bounds: Bounds | None = None, epsilon: float | None = None) -> AggregateCall:  # noqa: A001 - SQL's name
    """Estimate a low quantile of the rows' ``x`` that stands for the least value, within ``bounds``.

    Parameters
    ----------
    x : str or ColumnExpression
        A number.
    bounds : (float, float), optional
        Of each row's value.
    epsilon : float, optional
        This aggregate's own part of the query's epsilon.

    Returns
    -------
    AggregateCall

    Examples
    --------
    >>> min("age", bounds=(0, 120)).name
    'min_age'
    """
    return write_function("MIN", x, _named("min", x), {_PER_ROW: bounds}, epsilon)


def max(x: Expressible, *, bounds: Bounds | None = None, epsilon: float | None = None) -> AggregateCall:  # noqa: A001 - SQL's name
    """Estimate a high quantile of the rows' ``x`` that stands for the largest value, within ``bounds``.

    Parameters
    ----------
    x : str or ColumnExpression
        A number.
    bounds : (float, float), optional
        Of each row's value.
    epsilon : float, optional
        This aggregate's own part of the query's epsilon.

    Returns
    -------
    AggregateCall

    Examples
    --------
    >>> max("age", bounds=(0, 120)).name
    'max_age'
    """
    return write_function("MAX", x, _named("max", x), {_PER_ROW: bounds}, epsilon)


def _named(prefix: str, x: Expressible | None) -> str:
    plain = isinstance(x, str) and x.isidentifier()
    return f"{prefix}_{x}" if plain else prefix
