"""Pairs of neighboring inputs on which an audit runs a mechanism."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from sfumato import _check
from sfumato.mechanisms.query import neighboring_datasets
from sfumato.privacy.neighboring import Neighboring

__all__ = ["REMEDY", "InputPair", "array_pairs", "as_pair", "as_pairs", "score_pairs", "vector_pairs"]

REMEDY = "pass pairs=[(first, second), ...]; array_pairs, vector_pairs and score_pairs make some"


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

    Examples
    --------
    >>> print(InputPair(first=[1, 1], second=[1, 1, 1]))
    [1, 1] and [1, 1, 1]
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
            _check.refuse("pairs", "hold (first, second) pairs", pair, REMEDY)
    if not made:
        _check.refuse("pairs", "hold at least one pair", made, REMEDY)
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
    domain = neighboring_datasets.domain_of(bounds, values)
    shared = neighboring_datasets.shared_size_range(sizes, neighboring)
    count = _check.integer("count", count, minimum=1)
    generator = np.random.default_rng(seed)
    extreme = list(neighboring_datasets.boundary_pairs(domain, neighboring, shared, neutral))
    # A few of the extremes, spread over all sizes, and as many random pairs.
    half = -(-count // 2)
    chosen = extreme[:: max(1, len(extreme) // half)][:half]
    while len(chosen) < count:
        chosen.append(neighboring_datasets.random_pair(domain, neighboring, shared, neutral, generator))
    return [as_pair(pair) for pair in chosen]


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

    Examples
    --------
    >>> print(*vector_pairs(3, 1), sep=", ")
    [0 0 0] and [1 1 1], [0 0 0] and [ 1 -1 1]
    """
    moved = entries if moved is None else min(moved, entries)
    zeros = np.zeros(entries, dtype=np.int64 if isinstance(sensitivity, int) else np.float64)
    up, turning = zeros.copy(), zeros.copy()
    up[:moved] = sensitivity
    turning[:moved] = sensitivity
    turning[1:moved:2] *= -1
    pairs = [InputPair(first=zeros, second=up)]
    return pairs if moved < 2 else [*pairs, InputPair(first=zeros, second=turning)]


def score_pairs(
    candidates: int,
    sensitivity: float,
    *,
    monotone: bool = False,
    gaps: Sequence[float] | None = None,
) -> list[InputPair]:
    """Make pairs of score vectors: one candidate rises, and the others fall (or stay, if monotone).

    Parameters
    ----------
    candidates : int
        At least 2.
    sensitivity : int or float
        The most that any score moves; an int makes vectors of ints.
    monotone : bool
        Whether all scores move in one direction.
    gaps : sequence of int or float, optional
        By how much the candidate leads or trails before; about the scale of the noise is where it matters.
        Four times the sensitivity unless given.

    Returns
    -------
    list of InputPair
        From equal scores, where the first candidate moves, and the last; and from scores of which the first
        leads or trails.

    Examples
    --------
    >>> print(score_pairs(2, 1)[0])
    [0 0] and [ 1 -1]
    """
    candidates = _check.integer("candidates", candidates, minimum=2)
    zeros = np.zeros(candidates, dtype=np.int64 if isinstance(sensitivity, int) else np.float64)
    one, others, last = zeros.copy(), zeros.copy(), zeros.copy()
    one[0] = last[-1] = sensitivity
    others[1:] = sensitivity
    moves = (one, others) if monotone else (one - others, others - one)
    turned = (last, sensitivity - last) if monotone else (2 * last - sensitivity, sensitivity - 2 * last)
    pairs = [InputPair(first=zeros, second=zeros + move) for move in (*moves, *turned)]
    ahead = one / sensitivity if sensitivity else one
    for gap in (4 * sensitivity,) if gaps is None else gaps:
        for base in ((ahead * gap).astype(zeros.dtype), (-ahead * gap).astype(zeros.dtype)):
            pairs += [InputPair(first=base, second=base + move) for move in moves]
    return pairs


def as_pair(pair: neighboring_datasets.DatasetPair) -> InputPair:
    """Return a made-up pair of arrays as inputs."""
    first, second = pair.datasets()
    return InputPair(first=first, second=second)


def _short(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
