"""Valuations of sets of goods: demand at prices, and the check that goods are gross substitutes.

>>> coffee = Valuation.of_sets(lambda goods: {0: 0.0, 1: 0.5, 2: 0.6}[len(goods)], goods=2)
>>> coffee.gross_substitutes, coffee.demand([0.2, 0.1])
(True, (1,))
>>> shoes = Valuation.of_sets(lambda goods: float(len(goods) == 2), goods=2)
>>> print(shoes.complements)
goods 0 and 1 complement each other, beside the set ()
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Final, NamedTuple, Self, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.games.arrays import as_array, as_numbers
from sfumato.mechanisms.base.release import read_only

__all__ = ["Complements", "Demand", "Valuation", "checked_valuations"]

_Floats: TypeAlias = NDArray[np.float64]
_Integers: TypeAlias = NDArray[np.int64]
_UNITS: Final = 10**9
_MOST_GOODS: Final = 12
_MOST: Final = 1 << 22


class Complements(NamedTuple):
    """Where a valuation is not one of gross substitutes.

    Attributes
    ----------
    base : tuple of int
        A set of goods.
    goods : tuple of int
        Two goods of which each is worth more with the other beside the base; or three, of which a dearer one
        makes an agent give up another one.
    """

    base: tuple[int, ...]
    goods: tuple[int, ...]

    def __str__(self) -> str:
        if len(self.goods) == 2:
            return (
                f"goods {self.goods[0]} and {self.goods[1]} complement each other, beside the set {self.base}"
            )
        return f"goods {', '.join(map(str, self.goods))} are no substitutes, beside the set {self.base}"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Valuation:
    r"""What each set of a few goods is worth to an agent.

    Parameters
    ----------
    values : array of shape (2^goods,)
        Of each set: good j is in the set at position m if bit j of m is set. Rounded to 9 decimal places.

    Attributes
    ----------
    units : int64 array of shape (2^goods,)
        The values in 10^-9: what is computed with, exactly.

    Raises
    ------
    ParameterError
        If there are more than 12 goods, the empty set is worth something, a good alone more than 1, or a set
        less than one of its subsets.

    Notes
    -----
    Goods are *gross substitutes* if an agent who wants a set at some prices still wants those of its goods
    whose prices stay, when others get dearer. By Reijnierse, van Gellekom and Potters that holds if and only
    if, for every set S and goods i, j, k outside of it, :math:`v(S \cup ij) + v(S) \le v(S \cup i) + v(S
    \cup j)`, and the greatest of :math:`v(S \cup ij) + v(S \cup k)`, :math:`v(S \cup ik) + v(S \cup j)` and
    :math:`v(S \cup jk) + v(S \cup i)` is attained twice. `complements` looks at all of them, without any
    tolerance. `additive` and `assignment` round what they are given, and so always pass; a function of one's
    own passes if its values have at most 9 decimal places.

    References
    ----------
    Kelso, Crawford (1982), "Job matching, coalition formation, and gross substitutes"; Reijnierse, van
    Gellekom, Potters (2002), "Verifying gross substitutability", Theorem 10; Paes Leme (2017), "Gross
    substitutability: an algorithmic survey".

    Examples
    --------
    >>> valuation = Valuation(values=[0.0, 0.5, 0.75, 1.0])
    >>> valuation.goods, valuation.worth([0, 1]), valuation.rank, valuation.demand([0.5, 0.25])
    (2, 1.0, 2, (1,))
    """

    values: Any
    units: _Integers = field(init=False, repr=False)

    def __post_init__(self) -> None:
        remedy = "pass a value for each of the 2^goods sets, in the order of their bits"
        given = as_numbers("values", self.values, remedy)
        goods = max(0, given.size.bit_length() - 1)
        if given.ndim != 1 or given.size != 1 << goods or not 1 <= goods <= _MOST_GOODS:
            rule = f"have a length of 2 to a power from 1 to {_MOST_GOODS}"
            _check.refuse_state("values", rule, f"the shape is {given.shape}", remedy)
        if not (np.abs(given) <= goods).all():
            found = "some are not, or are NaN"
            _check.refuse_state("values", f"be from 0 to {goods}", found, "divide by what a good is worth")
        units = np.rint(given * _UNITS).astype(np.int64)
        object.__setattr__(self, "units", read_only(units))
        object.__setattr__(self, "values", read_only(units / _UNITS))
        if units[0] or (units[1 << np.arange(goods)] > _UNITS).any():
            found = "the empty set is worth something, or one good alone more"
            _check.refuse_state("values", "be 0 for no good and at most 1 for one", found, "scale them")
        if any((self._gains(good) < 0).any() for good in range(goods)):
            found = "a set is worth less than one of its subsets"
            _check.refuse_state("values", "not fall as goods are added", found, "let agents throw goods away")

    @classmethod
    def of_sets(cls, function: Callable[[tuple[int, ...]], float], *, goods: int) -> Self:
        """Return the valuation of a function of sets.

        Parameters
        ----------
        function : callable
            Takes the goods of a set, ascending; returns what it is worth.
        goods : int
            How many there are, at most 12.

        Returns
        -------
        Self
        """
        _goods(goods)
        return cls(values=[function(_members(mask)) for mask in range(1 << goods)])

    @classmethod
    def additive(cls, values: Sequence[float], *, capacity: int | None = None) -> Self:
        """Return the sum of the best values, of ``capacity`` goods at most: gross substitutes.

        Parameters
        ----------
        values : sequence of float
            Of each good, from 0 to 1.
        capacity : int, optional
            All goods unless given; 1 is unit demand.

        Returns
        -------
        Self

        Examples
        --------
        >>> Valuation.additive([0.5, 0.25, 0.75], capacity=2).worth([0, 1, 2])
        1.25
        """
        row = as_numbers("values", values, "pass a list with a value for each good").reshape(1, -1)
        places = row.size if capacity is None else _check.integer("capacity", capacity, minimum=1)
        return cls.assignment(np.tile(row, (min(places, row.size), 1)))

    @classmethod
    def assignment(cls, table: Any) -> Self:
        """Return the best assignment of goods to places that take one each: gross substitutes.

        Parameters
        ----------
        table : array of shape (places, goods)
            What a good is worth in a place, from 0 to 1.

        Returns
        -------
        Self

        Notes
        -----
        Shapley (1962) shows that these are gross substitutes.

        Examples
        --------
        A family needs a room and a garage; the second good can be either.

        >>> family = Valuation.assignment([[0.75, 0.5, 0.0], [0.0, 0.25, 0.5]])
        >>> family.worth([0, 1]), family.worth([1, 2]), family.gross_substitutes
        (1.0, 1.0, True)
        """
        remedy = "pass a row for each place, with a value for each good"
        places = as_numbers("table", table, remedy)
        if places.ndim != 2 or not ((places >= 0) & (places <= 1)).all():
            _check.refuse_type("table", "be numbers from 0 to 1", places, remedy)
        goods = _goods(places.shape[1])
        best = np.zeros(1 << goods, np.int64)
        masks = np.arange(1 << goods)
        for row in np.rint(places * _UNITS).astype(np.int64):
            more = best.copy()
            for good in range(goods):
                has = masks[masks >> good & 1 == 1]
                more[has] = np.maximum(more[has], best[has ^ (1 << good)] + row[good])
            best = more
        return cls(values=best / _UNITS)

    @property
    def goods(self) -> int:
        """How many goods there are."""
        return len(self.units).bit_length() - 1

    @property
    def largest(self) -> float:
        """What all goods together are worth."""
        return float(self.values[-1])

    @property
    def rank(self) -> int:
        """The most goods in a set of which none could be left out for nothing; at least 1."""
        masks = np.arange(len(self.units))
        lean = np.ones(len(masks), np.bool_)
        for good in range(self.goods):
            has = masks >> good & 1 == 1
            lean[has] &= self._gains(good) > 0
        return max(1, int(_sizes(masks[lean]).max()))

    @property
    def complements(self) -> Complements | None:
        """Where goods are no gross substitutes; None if they are."""
        values, masks = self.units, np.arange(len(self.units))
        bits = (1 << np.arange(self.goods)).tolist()
        for first, second in combinations(range(self.goods), 2):
            i, j = bits[first], bits[second]
            base = masks[masks & (i | j) == 0]
            more = values[base | i | j] + values[base] > values[base | i] + values[base | j]
            if more.any():
                return Complements(_members(base[more.argmax()]), (first, second))
        for chosen in combinations(range(self.goods), 3):
            i, j, k = (bits[good] for good in chosen)
            base = masks[masks & (i | j | k) == 0]
            pairs = [
                values[base | i | j] + values[base | k],
                values[base | i | k] + values[base | j],
                values[base | j | k] + values[base | i],
            ]
            ordered = np.sort(pairs, axis=0)
            once = ordered[2] > ordered[1]
            if once.any():
                return Complements(_members(base[once.argmax()]), chosen)
        return None

    @property
    def gross_substitutes(self) -> bool:
        """Whether the goods are gross substitutes, by enumeration."""
        return self.complements is None

    def worth(self, goods: Iterable[int]) -> float:
        """Return what a set is worth.

        Parameters
        ----------
        goods : iterable of int

        Returns
        -------
        float
        """
        return float(self.values[self._mask(goods)])

    def demand(self, prices: Any, holding: Iterable[int] = ()) -> tuple[int, ...]:
        """Return a set of largest value less prices, of those that contain what is held.

        Parameters
        ----------
        prices : array of shape (goods,)
            Non-negative.
        holding : iterable of int
            Goods that stay, whatever they cost.

        Returns
        -------
        tuple of int
            Ascending; of equally good sets the smallest.

        Raises
        ------
        ParameterError
            If there is not one price for each good, or a good does not exist.
        """
        costs = as_numbers("prices", prices, "pass one for each good")
        if costs.shape != (self.goods,) or not (costs >= 0).all():
            _check.refuse_type("prices", "be non-negative numbers", costs, "pass one for each good")
        held = np.array([self._mask(holding)], np.int64)
        return _members(int(Demand([self]).favorites(np.zeros(1, np.int64), held, costs)[0]))

    def _gains(self, good: int) -> _Integers:
        """Return what a good adds, for each set that contains it."""
        masks = np.arange(len(self.units))
        has = masks[masks >> good & 1 == 1]
        return np.asarray(self.units[has] - self.units[has ^ (1 << good)])

    def _mask(self, goods: Iterable[int]) -> int:
        mask = 0
        for good in goods:
            place = _check.integer("goods", good)
            if place >= self.goods:
                _check.refuse("goods", f"be less than {self.goods}", place, "goods count from 0")
            mask |= 1 << place
        return mask


@final
class Demand:
    """What agents of several valuations want at the same prices."""

    def __init__(self, valuations: Sequence[Valuation]) -> None:
        masks = np.arange(len(valuations[0].units))
        self.sizes = _sizes(masks)
        self.order = np.lexsort((masks, self.sizes))  # small sets first: of equal ones they are taken
        self.rank = max(each.rank for each in valuations)
        self.table = np.stack([each.values for each in valuations])[:, self.order]

    def favorites(self, types: _Integers, holding: _Integers, prices: _Floats) -> _Integers:
        """Return for each agent a best set that contains what it holds, with at most ``rank`` more goods.

        A smallest best set has no more: each good that is added is worth more than its price beside all
        others, and so, for substitutes, beside the other added ones alone.
        """
        costs = self._costs(prices)
        gains = self.table[types] - costs
        held = holding[:, None]
        contains = self.order & held == held
        few = self.sizes[self.order & ~held] <= self.rank
        best = np.where(contains & few, gains, -np.inf).argmax(axis=1)
        return np.asarray(self.order[best])

    def wanted(self, types: _Integers, held: NDArray[np.bool_], prices: _Floats) -> NDArray[np.bool_]:
        """Return which goods each agent's favorite set has beside those that it holds."""
        bits = 1 << np.arange(held.shape[1])
        # Few agents differ in both their valuation and what they hold: each pair is looked up once.
        pairs, rows = np.unique(types << len(bits) | held @ bits, return_inverse=True)
        holding = pairs & ((1 << len(bits)) - 1)
        added = self.favorites(pairs >> len(bits), holding, prices) & ~holding
        return np.asarray(((added[:, None] & bits) > 0)[rows])

    def surplus(self, types: _Integers, prices: _Floats) -> _Floats:
        """Return the largest value less prices of any set, for each agent."""
        return np.asarray((self.table - self._costs(prices)).max(axis=1)[types])

    def _costs(self, prices: _Floats) -> _Floats:
        members = self.order[:, None] >> np.arange(len(prices)) & 1
        return np.asarray(members @ prices)


def checked_valuations(valuations: Any, goods: int | None = None) -> tuple[Valuation, ...]:
    """Return valuations of the same goods, all of them gross substitutes, or refuse them."""
    if not isinstance(valuations, Sequence) or not len(valuations):
        remedy = "pass a list of what agents may be"
        _check.refuse_type("valuations", "be a list that is not empty", valuations, remedy)
    for each in valuations:
        _check.instance("valuations", each, Valuation, "pass Valuation.additive([...]) or another")
    goods = valuations[0].goods if goods is None else goods
    if any(each.goods != goods for each in valuations):
        found = "one of them is of more or fewer"
        _check.refuse_state("valuations", f"be of {goods} goods", found, "pass one supply for each good")
    if len(valuations) << goods > _MOST:
        found = f"{len(valuations)} of {goods} goods have more"
        _check.refuse_state("valuations", f"have at most {_MOST:,} sets", found, "pass fewer types or goods")
    for place, each in enumerate(valuations):
        where = each.complements
        if where is not None:
            remedy = "no theorem bounds the welfare of complements: sell those goods together, as one"
            found = f"in that at position {place} {where}"
            _check.refuse_state("valuations", "be gross substitutes", found, remedy)
    return tuple(valuations)


def checked_types(reports: Any, count: int, kinds: int) -> _Integers:
    """Return reports as positions of valuations, or refuse their form."""
    remedy = f"pass the position of a valuation, from 0 to {kinds - 1}, for each agent"
    types = as_array("reports", reports, remedy)
    if not count or types.shape != (count,) or types.dtype.kind not in "iu":
        _check.refuse_type("reports", "be whole numbers, one for each agent", types, remedy)
    if types.min() < 0 or types.max() >= kinds:
        _check.refuse_state("reports", "be positions of valuations", "one of them is none", remedy)
    return types.astype(np.int64)


def _goods(goods: int) -> int:
    if _check.integer("goods", goods, minimum=1) > _MOST_GOODS:
        _check.refuse("goods", f"be at most {_MOST_GOODS}", goods, "all sets of goods are enumerated")
    return goods


def _members(mask: int) -> tuple[int, ...]:
    return tuple(good for good in range(int(mask).bit_length()) if mask >> good & 1)


def _sizes(masks: _Integers) -> _Integers:
    return np.asarray((masks[:, None] >> np.arange(_MOST_GOODS) & 1).sum(axis=1), np.int64)
