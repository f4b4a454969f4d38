"""How a budget is divided over levels and queries, and the noise that each of them gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

from sfumato import _check
from sfumato.mechanisms.base.rational import floor_log2, power_of_two, sqrt_up
from sfumato.numerics.distributions.discrete import DiscreteGaussianDistribution
from sfumato.privacy.leaves.discrete_gaussian_vector import DiscreteGaussianVector
from sfumato.privacy.neighboring import Neighboring
from sfumato.synthetic.topdown.cell_query import CellQuery
from sfumato.synthetic.topdown.hierarchy import Hierarchy

__all__ = ["LevelNoise", "noise_plan", "shares_of", "squared_shift"]

_BITS: Final = 30
_REMEDY: Final = "write positive numbers, or 0 for what is not measured"


@final
@dataclass(frozen=True, slots=True)
class LevelNoise:
    """The noise of one query on all places of one level.

    Parameters
    ----------
    depth : int
        Of the level.
    query : int
        Which query.
    l2_squared : int
        By how much a neighbor moves the counts, in squared L2 norm.
    sigma : Fraction
        Parameter of the discrete Gaussian noise.
    """

    depth: int
    query: int
    l2_squared: int
    sigma: Fraction

    @property
    def distribution(self) -> DiscreteGaussianDistribution:
        """The noise of each count."""
        return DiscreteGaussianDistribution(self.sigma)

    def loss(self, neighboring: Neighboring) -> DiscreteGaussianVector:
        """Return what the counts of the query on the level cost.

        Parameters
        ----------
        neighboring : Neighboring

        Returns
        -------
        DiscreteGaussianVector
        """
        return DiscreteGaussianVector(self.sigma, self.l2_squared, neighboring=neighboring)


def squared_shift(counts: int, neighboring: Neighboring, rows: int = 1) -> int:
    r"""Return by how much a neighbor moves a level's counts of a query, in squared L2 norm.

    Parameters
    ----------
    counts : int
        Places of the level times groups of the query.
    neighboring : Neighboring
    rows : int
        The most rows that a person has among those that are counted.

    Returns
    -------
    int

    Notes
    -----
    A counted row is in one place of the level and in one group, so it adds 1 to one count: adding or removing
    it moves the counts by 1. Replacing it, by another row or by one that is not counted, takes 1 from one
    count and adds at most 1 to one: a squared norm of at most 2 if there are two counts, and of at most 1 if
    there is one.

    The counts of a person's k rows are a vector a of whole numbers that are not negative and sum to at most
    k, so that its squared norm is at most :math:`k^2`, as when all are in one cell. Exchanging them for other
    ones, b, moves the counts by b - a; as no product of their entries is negative, its squared norm is at
    most :math:`|a|^2 + |b|^2 \le 2 k^2`; if there is one count, at most :math:`k^2`.

    Examples
    --------
    >>> squared_shift(1, Neighboring.REPLACE_ONE), squared_shift(6, Neighboring.REPLACE_ONE)
    (1, 2)
    >>> squared_shift(6, Neighboring.ADD_REMOVE, 3), squared_shift(6, Neighboring.REPLACE_ONE, 3)
    (9, 18)
    """
    return rows**2 * (1 if neighboring is Neighboring.ADD_REMOVE or counts == 1 else 2)


def shares_of(
    hierarchy: Hierarchy, queries: int, levels: Any, shares: Any
) -> tuple[tuple[Fraction, ...], ...]:
    """Return the share of rho of each query on each level; all sum to 1.

    Parameters
    ----------
    hierarchy : Hierarchy
    queries : int
        How many there are.
    levels : mapping of str to number, or None
        Proportions of the levels; None gives each the same.
    shares : sequence of number, mapping of str to such, or None
        Proportions of the queries, the same on each level or by level; None gives each the same.

    Returns
    -------
    tuple of tuple of Fraction
        By level from the root, then by query.

    Examples
    --------
    >>> import pyarrow as pa
    >>> places = Hierarchy.from_table(pa.table({"state": ["A", "B"]}), ["state"])
    >>> shares_of(places, 2, {"all": 3, "state": 1}, [1, 1])
    ((Fraction(3, 8), Fraction(3, 8)), (Fraction(1, 8), Fraction(1, 8)))
    """
    names = hierarchy.levels
    weights = dict.fromkeys(names, 1) if levels is None else levels
    by_level = shares if isinstance(shares, Mapping) else dict.fromkeys(names, shares)
    for name, given in (("levels", weights), ("shares", by_level)):
        if not isinstance(given, Mapping) or set(given) != set(names):
            _check.refuse_state(name, f"have an entry for each of {list(names)}", "it has not", _REMEDY)
    total = sum(_number("levels", weights[name]) for name in names)
    table = []
    for name in names:
        row = [1] * queries if by_level[name] is None else by_level[name]
        if isinstance(row, str) or not isinstance(row, Sequence) or len(row) != queries:
            _check.refuse_state(
                "shares", f"be {queries} numbers, one for each query", "they are not", _REMEDY
            )
        exact = [_number("shares", each) for each in row]
        if not sum(exact) or not total:
            _check.refuse_state("shares", "not all be 0", "they are", _REMEDY)
        table.append(tuple(_number("levels", weights[name]) / total * each / sum(exact) for each in exact))
    return tuple(table)


def _number(name: str, given: Any) -> Fraction:
    return _check.fraction(name, given, _REMEDY) if given != 0 or isinstance(given, bool) else Fraction(0)


def noise_plan(
    hierarchy: Hierarchy,
    queries: Sequence[CellQuery],
    shares: Sequence[Sequence[Fraction]],
    rho: Fraction,
    *,
    neighboring: Neighboring,
    rows: int = 1,
) -> tuple[LevelNoise, ...]:
    r"""Return the noise of each query on each level where its share is positive.

    Parameters
    ----------
    hierarchy : Hierarchy
    queries : sequence of CellQuery
    shares : sequence of sequence of Fraction
        As `shares_of` returns them.
    rho : Fraction
        The zCDP of all together.
    neighboring : Neighboring
    rows : int
        As for `squared_shift`.

    Returns
    -------
    tuple of LevelNoise

    Notes
    -----
    Discrete Gaussian noise of parameter :math:`\sigma` on integers that move by :math:`\Delta` in L2 norm is
    :math:`\Delta^2/2\sigma^2`-zCDP (Canonne, Kamath, Steinke 2020), so that :math:`\sigma^2` is
    :math:`\Delta^2/2 s \rho` for a share :math:`s`, rounded up to a short number.
    """
    plan = []
    for depth, row in enumerate(shares):
        for place, (query, share) in enumerate(zip(queries, row, strict=True)):
            if share:
                shift = squared_shift(hierarchy.size(depth) * query.groups, neighboring, rows)
                exact = sqrt_up(shift / (2 * share * rho))
                unit = power_of_two(floor_log2(exact) - _BITS)
                plan.append(LevelNoise(depth, place, shift, -(-exact // unit) * unit))
    return tuple(plan)
