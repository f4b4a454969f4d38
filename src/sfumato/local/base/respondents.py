"""Check the numbers of respondents, and the seeds, that simulators receive."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check

__all__ = ["named_respondents", "respondents", "seeded", "whole_counts"]

_MAX: Final = 2**53
"""Respondents in all: whole numbers up to it are floats, and sums of them fit into 64 bits."""


def seeded(rng: int | np.random.Generator | None) -> np.random.Generator:
    """Return the generator of a simulation, from a seed of at least 0 or as it is; None takes any seed."""
    if rng is None or isinstance(rng, np.random.Generator):
        return np.random.default_rng(rng)
    seed: object = rng
    if isinstance(seed, bool) or not isinstance(seed, Integral) or int(seed) < 0:
        _check.refuse("rng", "be a seed of at least 0 or a numpy.random.Generator", rng, "pass rng=0")
    return np.random.default_rng(int(seed))


def _bounded(name: str, people: int) -> None:
    if people > _MAX:
        _check.refuse(name, f"add up to at most {_MAX}", people, "simulate fewer people")


def whole_counts(name: str, counts: Any, kinds: int, remedy: str) -> NDArray[np.int64]:
    """Return how many respondents are of each kind, at most 2^53 in all; refuse what does not say so."""
    try:
        people = np.asarray(counts)
    except ValueError:  # ragged
        people = np.empty((), np.object_)
    # An empty list is one of floats.
    if people.shape != (kinds,) or (kinds and people.dtype.kind not in "iu") or (people < 0).any():
        _check.refuse_type(name, f"be {kinds} whole numbers of at least 0", people, remedy)
    _bounded(name, sum(people.tolist()))
    return people.astype(np.int64)


def respondents(counts: Any, kinds: int) -> NDArray[np.int64]:
    """Return how many respondents are of each kind.

    Parameters
    ----------
    counts : array of int, or None
        One of each kind if left out.
    kinds : int
        How many kinds there are.
    """
    if counts is None:
        return np.ones(kinds, np.int64)
    return whole_counts("counts", counts, kinds, "pass one for each kind")


def named_respondents(name: str, counts: Any) -> dict[Any, int]:
    """Return how many respondents have each string, at most 2^53 in all; refuse what is no mapping."""
    if not isinstance(counts, Mapping):
        rule = "be a mapping of strings to numbers of people"
        _check.refuse_type(name, rule, counts, "pass {string: count}")
    found = {value: _check.integer(name, count) for value, count in counts.items()}
    _bounded(name, sum(found.values()))
    return found
