"""Exact choices among weighted candidates, and exact coins whose chance is an exponential.

The weight of a candidate is ``multiplicity exp(-rate gap)`` with whole gaps and multiplicities and a rational
rate. Certified float weights and their running sums decide nearly every draw; one that falls within the
proven error of a border is taken with exact integers and as many further random bits as it needs. It is never
dropped and never rounded, so the output distribution is exactly the stated one.

These functions add no privacy by themselves and charge no ledger: `sfumato.mechanisms` does.
"""

from __future__ import annotations

from fractions import Fraction
from math import prod
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from sfumato._check import fraction, integer, refuse_state, refuse_type
from sfumato.numerics.certified.exponentials import Powers, powers
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
from sfumato.numerics.randomness.uniform import UniformBits, below_exp

__all__ = ["checked", "choose", "flip"]

_BLOCK = 1 << 10
_UNIT = 2.0**-53
_WORD = 64
_SPARE = 128
_COIN_ERROR = 2.0**-47


class _Candidates:
    """Candidates with their running weights.

    Notes
    -----
    Weights are scaled so that the largest is at least 1. A float weight is off by a relative `RELATIVE_ERROR`
    (its table) and two roundings (a multiplicity of up to 2^62, and the product), or absolutely by less than
    2^-190. A border adds up at most a block of weights and the sums of the blocks before it, so it is off by
    at most ``block + rows + 20`` units of 2^-53 of the whole, and so is the whole. A uniform of 64 bits times
    the whole adds three units. `_margin` is twice the sum of all.
    """

    def __init__(
        self, gaps: NDArray[np.int64], rate: Fraction, multiplicity: NDArray[np.int64] | None
    ) -> None:
        self._gaps, self._rate, self._multiplicity = gaps, rate, multiplicity
        self._minimum = int(gaps.min() if multiplicity is None else gaps[multiplicity > 0].min())
        self._exact: dict[int, tuple[NDArray[Any], NDArray[Any]]] = {}
        size = gaps.size
        block = min(size, _BLOCK)
        rows = -(-size // block)
        weights = np.zeros(rows * block)
        weights[:size] = powers(rate).floats(gaps, self._minimum)
        if multiplicity is not None:
            weights[:size] *= multiplicity
        self._rows = weights.reshape(rows, block)
        self._starts = np.concatenate([[0.0], self._rows.sum(axis=1).cumsum()])
        self._whole = float(self._starts[-1])
        self._margin = self._whole * 4 * (block + rows + 32) * _UNIT

    def draw(self, count: int, source: RandomSource) -> NDArray[np.int64]:
        """Return independent choices."""
        words = source.words(count)
        position = words.astype(np.float64) * (self._whole * 2.0**-_WORD)
        # Borders are summed up in those blocks only that a position is in.
        inside = np.searchsorted(self._starts[1:-1], position, side="right")
        needed = np.unique(inside)
        block = self._rows.shape[1]
        borders = (self._rows[needed].cumsum(axis=1) + self._starts[needed, None]).ravel()
        at = np.minimum(np.searchsorted(borders, position, side="right"), max(borders.size - 1, 0))
        row, column = needed[at // block], at % block
        below = np.where(column > 0, borders[at - 1], self._starts[row])
        below[row + column == 0] = -self._whole  # nothing is below the first
        sure = (below <= position - self._margin) & (position + self._margin <= borders[at])
        found: NDArray[np.int64] = row * block + column
        for at_fault in np.flatnonzero(~sure):
            found[at_fault] = self.resolve(UniformBits(int(words[at_fault]), _WORD, source))
        return found

    def resolve(self, uniform: UniformBits) -> int:
        """Decide one draw exactly, with as many further words as it takes."""
        while True:
            low, high = self._bounds(uniform.width + _SPARE)
            width = uniform.width
            # The uniform times the whole lies in [value low[-1], (value + 1) high[-1]) / 2^width.
            found = int(np.searchsorted(low, uniform.value * low[-1] >> width, side="right"))
            above = found == 0 or high[found - 1] << width <= uniform.value * low[-1]
            if above and (uniform.value + 1) * high[-1] <= low[found] << width:
                return found
            uniform.extend()

    def _bounds(self, bits: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return both bounds on the running weights, in units of ``2^-bits``."""
        if bits not in self._exact:
            table: Powers = powers(self._rate, bits)
            low = table.exact(self._gaps, self._minimum)
            if self._multiplicity is None:
                counts = np.arange(1, low.size + 1)
            else:
                multiplicity = self._multiplicity.astype(object)
                low, counts = low * multiplicity, multiplicity.cumsum()
            low = low.cumsum()
            self._exact[bits] = low, low + counts.astype(object) * table.error
        return self._exact[bits]


@overload
def choose(
    gaps: NDArray[np.int64],
    rate: int | float | Fraction,
    *,
    multiplicity: NDArray[np.int64] | None = None,
    size: None = None,
    rng: Rng = None,
) -> int: ...
@overload
def choose(
    gaps: NDArray[np.int64],
    rate: int | float | Fraction,
    *,
    multiplicity: NDArray[np.int64] | None = None,
    size: int | tuple[int, ...],
    rng: Rng = None,
) -> NDArray[np.int64]: ...
def choose(
    gaps: NDArray[np.int64],
    rate: int | float | Fraction,
    *,
    multiplicity: NDArray[np.int64] | None = None,
    size: int | tuple[int, ...] | None = None,
    rng: Rng = None,
) -> int | NDArray[np.int64]:
    """Draw an index with probability proportional to ``multiplicity exp(-rate gap)``, exactly.

    Parameters
    ----------
    gaps : int64 array of shape (n,)
        Of each candidate, less than 2^63 apart; only differences matter, so negated scores will do.
    rate : int, float or Fraction
        Positive; a float means the rational it is.
    multiplicity : int64 array of shape (n,), optional
        How many candidates each entry stands for, from 0 to 2^62, not all 0; 1 each unless given.
    size : int, tuple of int or None
        Shape of the result; None for one int.
    rng : None, int, numpy Generator or RandomSource
        None for choices that protect; anything else simulates.

    Returns
    -------
    int or int64 array
        Independent choices of one distribution.

    Raises
    ------
    ParameterError
        If there is no candidate, or a type or shape does not fit.

    Notes
    -----
    Time and memory are linear in n. About n draws in 5e11 are left open by 64 bits and float sums, and take
    exact integer sums over all candidates.

    Examples
    --------
    >>> draws = choose(np.array([0, 1, 2]), 1, size=1000, rng=1)
    >>> np.bincount(draws).tolist()
    [660, 240, 100]
    """
    shape = () if size is None else size if isinstance(size, tuple) else (size,)
    count = prod(integer("size", part, remedy="pass how many draws are wanted") for part in shape)
    candidates = _Candidates(*checked(gaps, rate, multiplicity))
    drawn = candidates.draw(count, random_source(rng))
    return int(drawn[0]) if size is None else drawn.reshape(shape)


def flip(gaps: NDArray[np.int64], rate: int | float | Fraction, rng: Rng = None) -> NDArray[np.bool_]:
    """Flip one coin for each gap that shows heads with probability ``exp(-rate gap)``, exactly.

    Parameters
    ----------
    gaps : int64 array of shape (n,)
        Non-negative.
    rate : int, float or Fraction
        Positive; a float means the rational it is.
    rng : None, int, numpy Generator or RandomSource
        None for coins that protect; anything else simulates.

    Returns
    -------
    bool array of shape (n,)
        Independent; always heads at a gap of 0.

    Examples
    --------
    >>> flip(np.array([0, 1, 10**9]), 1, rng=1).tolist()
    [True, False, False]
    """
    source = random_source(rng)
    whole, exact, _ = checked(gaps, rate, None)
    words = source.words(whole.size)
    # A word loses at most one rounding error, the chance has its own: `_COIN_ERROR` is more than both.
    distance = words.astype(np.float64) * 2.0**-_WORD - powers(exact).floats(whole)
    heads = distance < 0
    for at in np.flatnonzero(np.abs(distance) <= _COIN_ERROR):
        heads[at] = below_exp(UniformBits(int(words[at]), _WORD, source), exact * int(whole[at]))
    return heads


def checked(
    gaps: object, rate: object, multiplicity: object
) -> tuple[NDArray[np.int64], Fraction, NDArray[np.int64] | None]:
    """Return gaps, rate and multiplicities of candidates, or refuse what does not fit."""
    whole = _integers("gaps", gaps)
    if not whole.size:
        refuse_state("gaps", "hold at least one candidate", "it is empty", "pass one for each")
    counts = None if multiplicity is None else _integers("multiplicity", multiplicity)
    if counts is not None and counts.shape != whole.shape:
        rule = f"have the shape {whole.shape}"
        refuse_type("multiplicity", rule, counts, "pass one entry for each gap")
    if counts is not None and not counts.any():
        remedy = "give a candidate that may be chosen 1 or more"
        refuse_state("multiplicity", "have a positive sum", "all its entries are 0", remedy)
    return whole, fraction("rate", rate, "pass a multiplier of the gaps"), counts


def _integers(name: str, value: object) -> NDArray[np.int64]:
    array = np.asarray(value)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        refuse_type(
            name,
            "be a one-dimensional array of integers",
            value,
            "convert it with numpy.asarray",
        )
    return array.astype(np.int64, copy=False)
