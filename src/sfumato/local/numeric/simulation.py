"""Draw the counts of reports of numbers at once, whatever the number of people."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.local.base.respondents import respondents
from sfumato.local.device.numeric.randomizer import NumericRandomizer
from sfumato.local.device.numeric.window import WindowRandomizer

__all__ = ["at_points", "drawn_reports", "even_windows", "first_two"]

Counts = NDArray[np.int64]

_WHOLE: Final = 1 << 62


def at_points(
    device: NumericRandomizer, numbers: ArrayLike, counts: Any, generator: np.random.Generator
) -> Counts:
    """Draw how many respondents are at each grid point after rounding.

    Parameters
    ----------
    device : NumericRandomizer
    numbers : array
        Different true numbers.
    counts : array of int, or None
        How many respondents have each; one if left out.
    generator : numpy Generator

    Returns
    -------
    ndarray of int64, shape (steps + 1,)
    """
    positions = device._positions(numbers)  # noqa: SLF001 - the other half of one protocol
    people = respondents(counts, len(positions))
    largest = _WHOLE // (2 * device.steps) ** 2
    if (everybody := sum(people.tolist())) > largest:
        remedy = "simulate fewer people, or take fewer steps"
        _check.refuse("counts", f"add up to at most {largest}", everybody, remedy)
    low = np.minimum(positions.astype(np.int64), device.steps - 1)
    up = generator.binomial(people, positions - low)
    found = np.zeros(device.steps + 1, np.int64)
    np.add.at(found, low, people - up)
    np.add.at(found, low + 1, up)
    return found


def drawn_reports(device: WindowRandomizer, points: Counts, generator: np.random.Generator) -> Counts:
    r"""Draw how often each report comes, given how many respondents are at each grid point.

    Notes
    -----
    The distribution is that of all reports drawn one by one, to the rounding of chances to floats. A report
    of grid point k is even on all N with probability :math:`N (1-P)/m`, as (1-P)/m is the smallest chance of
    each, and else even on the window of k.
    """
    shared = float(device.outputs * (1 - device.inside.chance) / device.steps)
    near = generator.binomial(points, 1 - shared)
    even = np.full(device.outputs, 1 / device.outputs)
    anywhere = generator.multinomial(int(points.sum() - near.sum()), even)
    return np.asarray(anywhere + even_windows(near, device.window, generator))


def first_two(counts: Counts) -> tuple[int, int]:
    """Return the sum of all reports and that of their squares, given how often each came."""
    at = np.arange(len(counts))
    return int(counts @ at), int(counts @ (at * at))


def even_windows(starts: Counts, window: int, generator: np.random.Generator) -> Counts:
    r"""Draw how often each grid point comes, if so many draw evenly from the window at each start.

    Parameters
    ----------
    starts : array of int, shape (s,)
    window : int
        The w.

    Returns
    -------
    ndarray of int64, shape (s + w - 1,)

    Notes
    -----
    Windows overlap: s multinomials would take s w steps. A window is cut into at most :math:`2 \log_2 w`
    aligned blocks of sizes that are powers of two. How many draw from each block is multinomial, drawn as
    binomials one after the other; blocks are added up over all windows, and then halved down to single
    grid points. That takes about :math:`s \log w + w` binomials, and changes no distribution.
    """
    outputs = len(starts) + window - 1
    leaves = 1 << max(0, outputs - 1).bit_length()
    blocks = np.zeros(2 * leaves, np.int64)
    first = np.flatnonzero(starts)
    people, room = starts[first].copy(), np.full(len(first), window)
    left, right, size = first + leaves, first + leaves + window, 1

    def take(nodes: Counts, some: NDArray[np.bool_]) -> None:
        drawn = generator.binomial(people[some], np.minimum(size / room[some], 1.0))
        np.add.at(blocks, nodes[some], drawn)
        people[some] -= drawn
        room[some] -= size

    while (open_ := left < right).any():
        odd = open_ & (left & 1 == 1)
        take(left, odd)
        left[odd] += 1
        odd = open_ & (right & 1 == 1) & (left < right)
        right[odd] -= 1
        take(right, odd)
        left, right, size = left >> 1, right >> 1, 2 * size
    level = 1
    while level < leaves:
        whole = blocks[level : 2 * level]
        half = generator.binomial(whole, 0.5)
        blocks[2 * level : 4 * level : 2] += half
        blocks[2 * level + 1 : 4 * level : 2] += whole - half
        level *= 2
    return blocks[leaves : leaves + outputs]
