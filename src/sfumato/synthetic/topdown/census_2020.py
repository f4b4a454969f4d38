"""The 2020 Census redistricting data (Public Law 94-171): its published configuration and certificate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Final

from sfumato import _check
from sfumato.mechanisms.base.rational import Number
from sfumato.numerics.rounding import fraction_up
from sfumato.privacy.conversion import zcdp_epsilon
from sfumato.privacy.neighboring import Neighboring
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.topdown.cell_query import Recode
from sfumato.synthetic.topdown.census_2020_shares import PUBLISHED_SHARES
from sfumato.synthetic.topdown.constraints import CountBound, Invariant
from sfumato.synthetic.topdown.hierarchy import Hierarchy
from sfumato.synthetic.topdown.topdown import TopDown

__all__ = ["Census2020"]

_RHO: Final = Fraction(293764, 114921)
_DELTA: Final = 1e-10
_LEVELS: Final = ("us", "state", "county", "tract", "block_group", "block")
_PROPORTIONS: Final = (104, 1440, 447, 687, 1256, 165)
_HHGQ: Final = (
    "household",
    "correctional facility for adults",
    "juvenile facility",
    "nursing facility",
    "other institutional facility",
    "college or university housing",
    "military quarters",
    "other noninstitutional facility",
)
_RACES: Final = ("white", "black", "aian", "asian", "nhpi", "other")
_TABLE: Final = "write Fractions, or leave shares out for the published ones"
_REMEDY: Final = "name them us, state, county, tract, block_group and block"


def _cenraces() -> tuple[str, ...]:
    """Return the 63 combinations of six races, those of one race first."""
    chosen = sorted(range(1, 1 << len(_RACES)), key=lambda bits: (bits.bit_count(), _reversed(bits)))
    return tuple("+".join(race for i, race in enumerate(_RACES) if bits >> i & 1) for bits in chosen)


def _reversed(bits: int) -> int:
    """Return what orders combinations by their first races."""
    return -sum(1 << (len(_RACES) - 1 - i) for i in range(len(_RACES)) if bits >> i & 1)


class Census2020:
    """Parameters of the 2020 Census redistricting data for persons in the United States.

    What is here was published: the total rho, its division over levels and over the eleven queries of each
    level, the histogram, and the invariant total of each state. Bounds from counts of housing units and group
    quarters are public numbers of each block, and an argument.

    Attributes
    ----------
    rho : Fraction
        The zCDP of all levels and queries: 293764/114921.
    delta : float
        At which the certificate states epsilon.
    levels : mapping of str to int
        Proportions of rho by level, from the whole country to blocks.
    shares : mapping of str to tuple of Fraction
        By level the share of each of `queries`.

    References
    ----------
    US Census Bureau, "2020 Census Redistricting Data (P.L. 94-171): privacy-loss budget allocations" and the
    production code's strategy ``ProductionCandidate20210527US_mult8_add02_dsepJune3`` and certificate of its
    run; Canonne, Kamath, Steinke (2020), Proposition 12, the conversion
    of zCDP that the certificate uses.

    Examples
    --------
    >>> round(Census2020.epsilon(), 2), Census2020.domain().cells
    (17.14, 2016)
    >>> {level: round(epsilon, 2) for level, epsilon in Census2020.level_epsilons().items()}
    {'block_group': 2.93, 'tract': 9.38, 'county': 11.7, 'state': 13.05, 'us': 16.89}
    """

    rho: Final = _RHO
    delta: Final = _DELTA
    levels: Final[Mapping[str, int]] = MappingProxyType(dict(zip(_LEVELS, _PROPORTIONS, strict=True)))
    shares: Final[Mapping[str, tuple[Fraction, ...]]] = PUBLISHED_SHARES

    @staticmethod
    def domain() -> TableDomain:
        """Return the histogram: housing type, voting age, Hispanic origin and race, of 2,016 cells.

        Returns
        -------
        TableDomain
        """
        return TableDomain(
            hhgq=list(_HHGQ),
            votingage=["under 18", "18 and over"],
            hispanic=["not hispanic", "hispanic"],
            cenrace=list(_cenraces()),
        )

    @staticmethod
    def queries() -> tuple[tuple[str | Recode, ...], ...]:
        """Return the eleven queries that each level is measured by.

        Returns
        -------
        tuple of tuple
            The total, three levels of housing type, and tables of columns up to all of them.
        """
        kinds = {"household": _HHGQ[:1], "institutional": _HHGQ[1:5], "noninstitutional": _HHGQ[5:]}
        return (
            (),
            ("cenrace",),
            ("hispanic",),
            ("votingage",),
            (Recode("hhgq", kinds),),
            ("hhgq",),
            ("hispanic", "cenrace"),
            ("votingage", "cenrace"),
            ("votingage", "hispanic"),
            ("votingage", "hispanic", "cenrace"),
            ("hhgq", "votingage", "hispanic", "cenrace"),
        )

    @classmethod
    def epsilon(cls) -> float:
        """Return the certificate's epsilon: what rho proves at delta, by Canonne, Kamath and Steinke.

        Returns
        -------
        float
            17.14. The loss of `mechanism` has a smaller one, as the accountant knows the noise: 16.81.
        """
        return _converted(cls.rho)

    @classmethod
    def level_epsilons(cls) -> dict[str, float]:
        """Return the epsilon of where a person lives within each kind of place, as the certificate states it.

        Returns
        -------
        dict of str to float
            By the place within which a person's block is guessed by somebody who knows the rest; what is
            noisy about that are the levels below. Each answers one such question, and none replaces
            `epsilon`.
        """
        names, total = list(cls.levels), sum(cls.levels.values())
        found = {}
        for i in range(len(names) - 2, -1, -1):
            below = sum(cls.levels[name] for name in names[i + 1 :])
            found[names[i]] = _converted(cls.rho * Fraction(below, total))
        return found

    @classmethod
    def column_epsilons(
        cls, shares: Sequence[Number] | Mapping[str, Sequence[Number]] | None = None
    ) -> dict[str, float]:
        """Return the epsilon of each column for somebody who knows a person's other columns and block.

        Parameters
        ----------
        shares : sequence of number, or mapping of str to such, optional
            As for `mechanism`; the published ones unless given.

        Returns
        -------
        dict of str to float
            From the budget of those queries, on all levels, that have the column. None replaces `epsilon`.

        Examples
        --------
        >>> {column: round(epsilon, 2) for column, epsilon in Census2020.column_epsilons().items()}
        {'hhgq': 7.24, 'votingage': 7.57, 'hispanic': 10.04, 'cenrace': 10.08}
        """
        table, total = cls._shares(shares), sum(cls.levels.values())
        found = {}
        for column in cls.domain():
            has = [any(column in (part, getattr(part, "column", None)) for part in q) for q in cls.queries()]
            part = Fraction(0)
            for level, row in table.items():
                seen = sum((share for share, does in zip(row, has, strict=True) if does), Fraction(0))
                part += Fraction(cls.levels[level], total) * seen
            found[column] = _converted(cls.rho * part)
        return found

    @classmethod
    def mechanism(
        cls,
        hierarchy: Hierarchy,
        shares: Sequence[Number] | Mapping[str, Sequence[Number]] | None = None,
        *,
        bounds: Sequence[CountBound] = (),
    ) -> TopDown:
        """Return the mechanism for a hierarchy of the Census' levels.

        Parameters
        ----------
        hierarchy : Hierarchy
            With levels us (the root), state, county, tract, block_group and block.
        shares : sequence of number, or mapping of str to such, optional
            A table with the shares of `queries` by level, which sum to 1 on each, exactly: write Fractions.
            A sequence has proportions for all levels. The published shares unless given.
        bounds : sequence of CountBound
            Public numbers, as those of housing units and of facilities by block.

        Returns
        -------
        TopDown
            Under REPLACE_ONE, with rho and levels as published.

        Raises
        ------
        ParameterError
            If the levels are others, or shares are not those of all queries.
        """
        return TopDown(
            hierarchy=hierarchy,
            domain=cls.domain(),
            queries=cls.queries(),
            rho=cls.rho,
            levels=cls._proportions(hierarchy),
            shares=cls._shares(shares),
            invariants=[Invariant("state")],
            bounds=bounds,
            neighboring=Neighboring.REPLACE_ONE,
        )

    @classmethod
    def _proportions(cls, hierarchy: Hierarchy) -> dict[str, Number]:
        if hierarchy.levels != tuple(cls.levels):
            _check.refuse("levels", "be those of the Census", hierarchy.levels, _REMEDY)
        return dict(cls.levels)

    @classmethod
    def _shares(cls, given: Any) -> dict[str, tuple[Fraction, ...]]:
        """Return the share of each query by level."""
        table = cls.shares if given is None else given
        by_level = table if isinstance(table, Mapping) else dict.fromkeys(cls.levels, table)
        if set(by_level) != set(cls.levels):
            _check.refuse_state(
                "shares", f"have an entry for each of {list(cls.levels)}", "it has not", _TABLE
            )
        found = {}
        for level in cls.levels:
            row, number = by_level[level], len(cls.queries())
            if isinstance(row, str) or not isinstance(row, Sequence) or len(row) != number:
                rule = f"be {number} numbers on each level, one for each query"
                _check.refuse_state("shares", rule, "they are not", _TABLE)
            exact = [Fraction(0) if each == 0 else _check.fraction("shares", each, _TABLE) for each in row]
            if table is by_level and sum(exact) != 1:
                rule = f"sum to 1 exactly on the level {level!r}"
                _check.refuse_state("shares", rule, f"they sum to {sum(exact)}", _TABLE)
            if not sum(exact):
                _check.refuse_state("shares", "not all be 0", "they are", _TABLE)
            found[level] = tuple(each / sum(exact) for each in exact)
        return found


def _converted(rho: Fraction) -> float:
    return zcdp_epsilon(fraction_up(rho), _DELTA)
