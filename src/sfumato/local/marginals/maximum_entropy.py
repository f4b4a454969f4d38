"""The most even distribution with given marginals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from sfumato.local.frequency.variance import Array

__all__ = ["most_even"]

_SWEEPS: Final = 200
_STEPS: Final = 2000
_CLOSE: Final = 1e-7
_EVEN: Final = 1e-3


def most_even(shape: Sequence[int], known: Sequence[tuple[tuple[int, ...], Array]]) -> Array:
    r"""Return the distribution of maximum entropy with known marginals.

    Parameters
    ----------
    shape : sequence of int
        Of the table.
    known : sequence of pairs
        Rising axes of the table, and the distribution over them.

    Notes
    -----
    *Iterative proportional fitting.* Starting from even cells, the table is multiplied so that it has one
    known marginal after the other. It stays a product of functions of these, and converges to the
    distribution of maximum entropy if any has them all (Csiszár 1975).

    *If none has.* Known marginals that agree with one another need not be those of one distribution. Then the
    fitting ends in a cycle, and is followed by steps that multiply by all ratios at once, each to the power
    of one over their number: they converge to a distribution with the smallest sum of the relative entropies
    of its marginals to the known ones (the simultaneous multiplicative technique; Byrne 1993). If each cell
    of the table is empty in some known marginal, all relative entropies are infinite: then one thousandth of
    each known marginal is taken to be even.

    Examples
    --------
    >>> pair = np.array([[0.4, 0.1], [0.1, 0.4]])
    >>> most_even((2, 2, 2), [((0, 1), pair), ((1, 2), pair)])[0].round(3).tolist()
    [[0.32, 0.08], [0.02, 0.08]]
    """
    found = np.full(tuple(shape), 1 / np.prod(shape))
    possible = np.ones(found.shape, np.bool_)
    for axes, wanted in known:
        possible &= np.expand_dims(wanted > 0, _others(found, axes))
    if not possible.any():
        known = [(axes, (1 - _EVEN) * wanted + _EVEN / wanted.size) for axes, wanted in known]
    for _ in range(_SWEEPS):
        away = 0.0
        for axes, wanted in known:
            own, ratio = _ratio(found, axes, wanted)
            away = max(away, float(np.abs(own - wanted).max()))
            found = found * ratio
        if away <= _CLOSE:
            return found
    for _ in range(_STEPS):
        step = np.ones(found.shape)
        for axes, wanted in known:
            step = step * _ratio(found, axes, wanted)[1] ** (1 / len(known))
        new = found * step
        new /= new.sum()
        moved, found = float(np.abs(new - found).max()), new
        if moved <= _CLOSE / 100:
            break
    return found


def _ratio(table: Array, axes: tuple[int, ...], wanted: Array) -> tuple[Array, Array]:
    """Return a table's marginal, and by what it must be multiplied to have the wanted one."""
    others = _others(table, axes)
    own = table.sum(axis=others)
    ratio = np.divide(wanted, own, out=np.zeros_like(own), where=own > 0)
    return own, np.expand_dims(ratio, others)


def _others(table: Array, axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the other axes of a table."""
    return tuple(at for at in range(table.ndim) if at not in axes)
