"""Pairs of neighboring inputs that an audit runs a mechanism on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import singledispatch
from itertools import islice
from typing import Any, final

import numpy as np

from sfumato import _check
from sfumato.mechanisms import adversary
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.mechanisms.measurement import Measurement
from sfumato.mechanisms.mechanism import Mechanism
from sfumato.mechanisms.query import Query, TransformedQuery
from sfumato.mechanisms.randomized_response import RandomizedResponse
from sfumato.mechanisms.selection.selection import Selection
from sfumato.mechanisms.sparse_vector import SparseVector
from sfumato.privacy.neighboring import Neighboring

__all__ = ["InputPair", "array_pairs", "as_pairs", "default_pairs", "score_pairs", "vector_pairs"]

_SEARCHED = 400
_REMEDY = "pass pairs=[(first, second), ...]; array_pairs, vector_pairs and score_pairs make some"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InputPair:
    """Two neighboring inputs.

    Parameters
    ----------
    first, second
        What the mechanism is given.
    name : str
        How a report calls the pair.
    """

    first: Any
    second: Any
    name: str = ""

    def __str__(self) -> str:
        return self.name or f"{_short(self.first)} and {_short(self.second)}"


def as_pairs(pairs: Iterable[Any]) -> list[InputPair]:
    """Return pairs as such, from any two-part entries.

    Raises
    ------
    ParameterError
        If there is none, or an entry has not two parts.
    """
    made = []
    for pair in pairs:
        if isinstance(pair, InputPair):
            made.append(pair)
        elif isinstance(pair, tuple | list) and len(pair) == 2:
            made.append(InputPair(first=pair[0], second=pair[1]))
        else:
            _check.refuse("pairs", "hold (first, second) pairs", pair, _REMEDY)
    if not made:
        _check.refuse("pairs", "hold at least one pair", made, _REMEDY)
    return made


def array_pairs(
    neighboring: Neighboring = Neighboring.ADD_REMOVE,
    *,
    bounds: tuple[float, float] | None = None,
    values: Sequence[Any] | None = None,
    sizes: tuple[int, int] = (1, 16),
    neutral: Any = 0.0,
    count: int = 8,
    seed: int = 0,
) -> list[InputPair]:
    """Make neighboring arrays of records: extreme ones first, then random ones.

    Parameters
    ----------
    neighboring : Neighboring
        How the two differ.
    bounds : tuple of two numbers, optional
        Records are numbers between them; whole numbers if both are ints.
    values : sequence, optional
        Instead: the values that a record may have.
    sizes : tuple of two ints
        Smallest and largest number of records.
    neutral
        What a zeroed record becomes; used under zero-out only.
    count : int
        How many pairs.
    seed : int
        Of the random ones.

    Returns
    -------
    list of InputPair

    Examples
    --------
    >>> print(array_pairs(bounds=(0, 1), sizes=(2, 3), count=1)[0])
    [0 0 0] and [0 0]
    """
    domain = adversary.domain_of(bounds, values)
    shared = adversary.shared_sizes(sizes, neighboring)
    count = _check.integer("count", count, minimum=1)
    generator = np.random.default_rng(seed)
    extreme = list(adversary.boundary_pairs(domain, neighboring, shared, neutral))
    # A few of the extremes, spread over all sizes, and as many random pairs.
    half = -(-count // 2)
    chosen = extreme[:: max(1, len(extreme) // half)][:half]
    while len(chosen) < count:
        chosen.append(adversary.random_pair(domain, neighboring, shared, neutral, generator))
    return [_as_pair(pair) for pair in chosen]


def vector_pairs(entries: int, sensitivity: float, *, moved: int | None = None) -> list[InputPair]:
    """Make pairs of vectors: zeros, and ``moved`` entries up, or in turn up and down, by the sensitivity.

    Parameters
    ----------
    entries : int
    sensitivity : int or float
        An int makes vectors of ints.
    moved : int, optional
        How many entries one unit moves; all unless given.

    Returns
    -------
    list of InputPair
    """
    moved = entries if moved is None else min(moved, entries)
    zeros = np.zeros(entries, dtype=np.int64 if isinstance(sensitivity, int) else np.float64)
    up, turning = zeros.copy(), zeros.copy()
    up[:moved] = sensitivity
    turning[:moved] = sensitivity
    turning[1:moved:2] *= -1
    pairs = [InputPair(first=zeros, second=up)]
    return pairs if moved < 2 else [*pairs, InputPair(first=zeros, second=turning)]


def score_pairs(candidates: int, sensitivity: float, *, monotone: bool = False) -> list[InputPair]:
    """Make pairs of score vectors: one candidate rises, and the others fall (or stay, if monotone).

    Parameters
    ----------
    candidates : int
        At least 2.
    sensitivity : int or float
        The most that any score moves; an int makes vectors of ints.
    monotone : bool
        Whether all scores move in one direction.

    Returns
    -------
    list of InputPair
        From equal scores, and from scores of which one leads or trails by a little.
    """
    candidates = _check.integer("candidates", candidates, minimum=2)
    zeros = np.zeros(candidates, dtype=np.int64 if isinstance(sensitivity, int) else np.float64)
    one, others, ahead = zeros.copy(), zeros.copy(), zeros.copy()
    one[0] = sensitivity
    others[1:] = sensitivity
    ahead[0] = 4 * sensitivity
    if monotone:
        moves = (one, others)
        return [
            InputPair(first=base, second=base + move) for base in (zeros, ahead, -ahead) for move in moves
        ]
    return [
        InputPair(first=base, second=base + sign * (one - others))
        for base in (zeros, ahead, -ahead)
        for sign in (1, -1)
    ]


@singledispatch
def default_pairs(mechanism: Any) -> list[InputPair]:
    """Return pairs that try a mechanism of ours hardest, as far as its public parameters tell.

    Raises
    ------
    ParameterError
        If none are known for its type.
    """
    what = "a mechanism of this type" if isinstance(mechanism, Mechanism) else "a callable"
    _check.refuse("pairs", f"be given for {what}", None, _REMEDY)


@default_pairs.register
def _(mechanism: AdditiveMechanism) -> list[InputPair]:
    number: Callable[[Any], int | float] = int if mechanism.integral else float
    if mechanism.sensitivity is not None:
        sensitivity = number(mechanism.sensitivity)
        if mechanism.l0 == 1:
            return [InputPair(first=number(0), second=sensitivity)]
        return vector_pairs(mechanism.l0, sensitivity)
    l1, l2 = (getattr(mechanism, name, None) for name in ("l1", "l2"))
    entries = max(2, min(mechanism.l0, 8))
    overall = float(l1 or l2 or 0)
    share = number(overall / (entries if l1 is not None else entries**0.5))
    spread = vector_pairs(entries, share) if share else []
    return [*vector_pairs(entries, number(overall), moved=1), *spread]


@default_pairs.register
def _(mechanism: Measurement) -> list[InputPair]:
    values, bounds = _records(mechanism.query)
    domain = adversary.domain_of(bounds, values)
    shared = adversary.shared_sizes((1, 5), mechanism.neighboring)
    pairs = adversary.boundary_pairs(domain, mechanism.neighboring, shared, 0)
    # The noise does not depend on the data, so the pair whose answers differ most is the worst.
    worst = max(islice(pairs, _SEARCHED), key=lambda pair: _moved(mechanism.query, pair))
    return [_as_pair(worst)]


@default_pairs.register
def _(mechanism: Selection) -> list[InputPair]:
    number: Callable[[Any], int | float] = int if mechanism.integral else float
    candidates = 4 if mechanism.candidates is None else len(mechanism.candidates)
    return score_pairs(max(2, candidates), number(mechanism.sensitivity), monotone=mechanism.monotone)


@default_pairs.register
def _(mechanism: SparseVector) -> list[InputPair]:
    number: Callable[[Any], int | float] = int if mechanism.integral else float
    at, step = number(mechanism.threshold), number(mechanism.sensitivity)
    first, second = np.full(6, at), np.full(6, at + step)
    if not mechanism.monotone:
        first[-2:], second[-2:] = at + step, at
    return [InputPair(first=first, second=second)]


@default_pairs.register
def _(mechanism: RandomizedResponse) -> list[InputPair]:
    first, second = mechanism.categories[:2]
    return [InputPair(first=first, second=second)]


def _records(query: Query) -> tuple[Sequence[Any] | None, tuple[float, float] | None]:
    """Return the values, or the bounds, of the records that a query tells apart."""
    while isinstance(query, TransformedQuery) and query.transformation is None:
        query = query.query
    cells = getattr(query, "histogram", query)
    categories, edges = (getattr(cells, name, None) for name in ("categories", "edges"))
    if categories is not None:
        # A record may also be in no cell.
        alike = [value for value in ("none of these", -1) if isinstance(categories[0], type(value))]
        return [*categories, *(value for value in alike if value not in categories)], None
    if edges is not None:
        inner = np.clip(np.asarray(edges), -1e15, 1e15)
        return list((inner[:-1] + inner[1:]) / 2), None
    bounds = getattr(query, "bounds", None)
    if bounds is None and isinstance(query, TransformedQuery):
        _check.refuse("pairs", "be given for a transformed query", None, _REMEDY)
    return None, bounds or (0, 1)


def _moved(query: Query, pair: adversary.Pair) -> float:
    first, second = (np.asarray(query.steps(data), dtype=np.float64) for data in pair.datasets())
    return float(np.abs(first - second).sum())


def _as_pair(pair: adversary.Pair) -> InputPair:
    first, second = pair.datasets()
    return InputPair(first=first, second=second)


def _short(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
