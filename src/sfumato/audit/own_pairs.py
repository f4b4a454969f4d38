"""The pairs that try each kind of our own mechanisms hardest, as far as public parameters tell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import singledispatch
from itertools import islice
from typing import Any

import numpy as np

from sfumato import _check
from sfumato.audit.pairs import REMEDY, InputPair, as_pair, as_pairs, score_pairs, vector_pairs
from sfumato.mechanisms import adversary
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.mechanisms.measurement import Measurement
from sfumato.mechanisms.mechanism import Mechanism
from sfumato.mechanisms.query import Query, TransformedQuery
from sfumato.mechanisms.randomized_response import RandomizedResponse
from sfumato.mechanisms.selection.selection import Selection
from sfumato.mechanisms.threshold_runs import ThresholdRuns

__all__ = ["default_pairs"]

_SEARCHED = 400


@singledispatch
def default_pairs(mechanism: Any) -> list[InputPair]:
    """Return pairs that try a mechanism of ours hardest, as far as its public parameters tell.

    Of anything else, what its attribute ``pairs`` holds.

    Raises
    ------
    ParameterError
        If none are known for its type.
    """
    given: Iterable[Any] | None = getattr(mechanism, "pairs", None)
    if given is None:
        what = "a mechanism of this type" if isinstance(mechanism, Mechanism) else "a callable"
        _check.refuse("pairs", f"be given for {what}", None, REMEDY)
    return as_pairs(given)


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
    return [as_pair(worst)]


@default_pairs.register
def _(mechanism: Selection) -> list[InputPair]:
    number: Callable[[Any], int | float] = int if mechanism.integral else float
    candidates = 4 if mechanism.candidates is None else len(mechanism.candidates)
    return score_pairs(max(2, candidates), number(mechanism.sensitivity), monotone=mechanism.monotone)


@default_pairs.register
def _(mechanism: ThresholdRuns) -> list[InputPair]:
    number: Callable[[Any], int | float] = int if mechanism.integral else float
    at, step = number(mechanism.threshold), number(mechanism.sensitivity)
    length = min(6, getattr(mechanism, "length", 6))
    first, second = np.full(length, at), np.full(length, at + step)
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
        _check.refuse("pairs", "be given for a transformed query", None, REMEDY)
    return None, bounds or (0, 1)


def _moved(query: Query, pair: adversary.Pair) -> float:
    first, second = (np.asarray(query.steps(data), dtype=np.float64) for data in pair.datasets())
    return float(np.abs(first - second).sum())
