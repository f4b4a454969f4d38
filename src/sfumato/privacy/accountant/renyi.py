r"""Rényi divergences of a dominating pair, bounded from above.

With :math:`R = dQ/dP` the divergence of order :math:`\alpha` is :math:`\frac{1}{\alpha-1} \log E_P
R^{1-\alpha}`, of a function that is convex in :math:`R`. So splitting each bin between its two ends bounds it
from above, as for the hockey-stick divergence (see `sfumato.privacy.pairs.bins`); what lies beyond the last
cut is bounded by the pair itself (`Pair.log_tail`).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy._outward import UNIT
from sfumato.privacy.accountant.planning import PlannedPart
from sfumato.privacy.pairs.bins import Bins
from sfumato.privacy.pairs.pair import Pair

__all__ = ["renyi"]

_Array = NDArray[np.float64]

_BINS: Final = 1200.0
_REACHES: Final = (12.0, 24.0, 36.0)
_NEGLIGIBLE: Final = np.log(1e-9)
_UNDERFLOW: Final = -680.0
"""Log of masses that `Bins.split` may lose."""


def renyi(pair: Pair, orders: _Array) -> _Array:
    """Return upper bounds on the Rényi divergences of a pair, the greater of its two orders.

    Parameters
    ----------
    pair : Pair
    orders : ndarray
        Orders above 1.

    Returns
    -------
    ndarray
        Infinity where nothing finite is proven.
    """
    if pair.variance:
        return np.asarray(np.nextafter(0.5 * pair.variance * orders * (1 + 2 * UNIT), np.inf))
    rank = np.argsort(orders)
    tilts = orders[rank] - 1.0
    found = np.zeros(len(orders))
    with np.errstate(all="ignore"):
        for swapped in (False,) if pair.symmetric else (False, True):
            found = np.maximum(found, _log_moments(pair, tilts, swapped=swapped) / tilts)
    found = np.nan_to_num(found * (1 + 4 * UNIT), nan=np.inf, posinf=np.inf)
    # The divergence rises with its order, so that every bound holds at all lower orders too.
    result = np.empty(len(orders))
    result[rank] = np.minimum.accumulate(found[::-1])[::-1]
    return result


def _log_moments(pair: Pair, tilts: _Array, *, swapped: bool) -> _Array:
    """Return bounds on ``log E exp(c * loss)`` for rising c; tilts within an octave have the same bins."""
    octaves = np.floor(np.log2(tilts))
    coarse: list[PlannedPart] = []
    results = []
    for octave in np.unique(octaves):
        group = tilts[octaves == octave]
        try:
            results.append(_one_octave(pair, coarse, group, swapped=swapped))
        except (ArithmeticError, ValueError):  # numbers left the range of floats: nothing is known
            results.append(np.full(len(group), np.inf))
    return np.concatenate(results) if results else np.zeros(0)


def _one_octave(pair: Pair, coarse: list[PlannedPart], tilts: _Array, *, swapped: bool) -> _Array:
    """Look farther and farther out, while what is beyond the last cut counts."""
    best = np.full(len(tilts), np.inf)
    for look, reach in enumerate(_REACHES):
        if look == len(coarse):
            coarse.append(PlannedPart.cut(pair, np.ones(()), pair.cuts(reach), swapped=swapped))
        part = coarse[look]
        part = part.recut(part.bin_weights(part.distribution.tilted(float(tilts[-1]))), _BINS)
        values, tails = _bounds(part, tilts)
        best = np.fmin(best, values)
        if bool(np.all(tails <= values + _NEGLIGIBLE)):
            break
    return best


def _bounds(part: PlannedPart, tilts: _Array) -> tuple[_Array, _Array]:
    """Return the bounds, and the proportion of them that lies beyond the last cut."""
    bins = part.bins
    if bins.only_p > 0:
        return np.full(len(tilts), np.inf), np.full(len(tilts), -np.inf)
    tails = np.full(len(tilts), -np.inf)
    if bins.high.log_p > -np.inf:
        tails = part.pair.log_tail(tilts, part.cuts, swapped=part.swapped)
    if not bins.whole:
        return np.full(len(tilts), np.inf), np.full(len(tilts), -np.inf)
    distribution = bins.split()
    selected = np.isfinite(distribution.log_mass)
    loss, log_mass = _with_lost(bins, distribution.loss[selected], distribution.log_mass[selected])
    moved = np.multiply.outer(tilts, loss)
    exponents = moved + log_mass
    top = np.maximum(exponents.max(axis=1), tails)
    weights = np.exp(exponents - top[:, None])
    rest = np.exp(tails - top)
    total = weights.sum(axis=1) + rest
    error = (weights * (np.abs(moved) + np.abs(log_mass))).sum(axis=1) / total
    log_total = np.log(total)
    error = UNIT * (4 * error + 8 * (np.abs(top) + np.abs(log_total)) + len(loss) + 64)
    return top + log_total + error, tails


def _with_lost(bins: Bins, loss: _Array, log_mass: _Array) -> tuple[_Array, _Array]:
    """Add the bins whose masses are too small for a float, each moved up to its right end."""
    lost = bins.points.log_p < _UNDERFLOW
    ends = (bins.edges + bins.edge_error + 4 * UNIT * np.abs(bins.edges))[1:]
    moved = bins.points.log_p[lost] + bins.points.mass_error[lost]
    return np.concatenate([loss, ends[lost]]), np.concatenate([log_mass, moved])
