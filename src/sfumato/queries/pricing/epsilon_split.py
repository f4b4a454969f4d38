"""How the epsilon of a query is divided: what each aggregate asked for, the rest evenly.

An aggregate may state its part, ``epsilon => e``, and OPTIONS that of choosing the groups,
``group_selection_epsilon``. A stated part goes to the measures it is read off, evenly; what is left of the
query's epsilon goes evenly to the measures that anything without a stated part is read off. A measure that
several things are read off has the sum of their parts: it is paid once and serves them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sfumato.errors import OptionError
from sfumato.numerics.decimals import decimal_down, decimal_of

__all__ = ["Claimant", "Shares", "split_epsilon"]


@dataclass(frozen=True, slots=True)
class Claimant:
    """Something that takes part in a query's epsilon.

    Parameters
    ----------
    name : str
        For messages.
    measures : tuple of int
        The measures that it is read off, by number.
    epsilon : float or None
        Its stated part.
    """

    name: str
    measures: tuple[int, ...]
    epsilon: float | None = None


@dataclass(frozen=True, slots=True)
class Shares:
    """The epsilon that is spent, and the share of it that each measure has; the shares sum to one.

    Parameters
    ----------
    epsilon : float
        What is spent in all.
    weights : tuple of Fraction
        One for each measure, in order; they sum to one.

    Examples
    --------
    >>> Shares(epsilon=1.0, weights=(Fraction(1, 2), Fraction(1, 2))).epsilon
    1.0
    """

    epsilon: float
    weights: tuple[Fraction, ...]


def split_epsilon(parties: Sequence[Claimant], measures: int, epsilon: float) -> Shares:
    """Divide a query's epsilon among its measures.

    Parameters
    ----------
    parties : sequence of Claimant
        Every measure is some party's.
    measures : int
        How many there are.
    epsilon : float
        The query's; where every party states its part, what they sum to is spent.

    Raises
    ------
    OptionError
        If the parts exceed the query's epsilon, or leave nothing for what states none.

    Examples
    --------
    >>> parts = split_epsilon([Claimant("n", (0,), 0.1), Claimant("mean", (1, 2))], 3, 0.5)
    >>> [str(weight) for weight in parts.weights]
    ['1/5', '2/5', '2/5']
    """
    stated = [party for party in parties if party.epsilon is not None]
    whole = decimal_of(epsilon)
    claimed = sum((decimal_of(party.epsilon) for party in stated if party.epsilon), Fraction(0))
    open_ = {measure for party in parties if party.epsilon is None for measure in party.measures}
    if claimed > whole:
        raise OptionError(
            f"the parts of epsilon must not exceed the query's, got {float(claimed):g} of {epsilon:g}; "
            "state smaller ones, or a larger epsilon in OPTIONS"
        )
    if claimed == whole and open_:
        needy = next(party.name for party in parties if party.epsilon is None)
        raise OptionError(
            f"the parts of epsilon must leave some of {epsilon:g} for {needy}, got none left; "
            "state smaller ones, or a part for it too"
        )
    taken = [Fraction(0)] * measures
    for party in stated:
        for measure in party.measures:
            taken[measure] += decimal_of(party.epsilon or 0.0) / len(party.measures)
    for measure in open_:
        taken[measure] += (whole - claimed) / len(open_)
    spent = sum(taken, Fraction(0))
    if not stated:
        # the very float: a decimal that was rounded to it may be a hair larger
        return Shares(epsilon, (Fraction(1, measures),) * measures)
    return Shares(min(decimal_down(spent), epsilon), tuple(part / spent for part in taken))
