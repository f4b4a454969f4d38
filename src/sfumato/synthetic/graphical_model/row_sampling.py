"""Rows of a model: clique by clique, parents first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.synthetic.graphical_model.calibration import Array, Calibrated

__all__ = ["sampled_rows"]

Rows: TypeAlias = NDArray[np.int32]

_CHUNK: Final = 1 << 20


def sampled_rows(model: Calibrated, rows: int, rng: np.random.Generator) -> Iterator[Rows]:
    """Yield rows of cells, about a million at a time.

    Parameters
    ----------
    model : Calibrated
    rows : int
    rng : numpy Generator

    Yields
    ------
    int32 array of shape (rows, columns)

    Notes
    -----
    The columns of a clique are drawn by systematic sampling among the rows that agree in its separator: each
    of its cells gets the number of rows that is expected given the rows so far, rounded up or down, in random
    order. So marginals within a clique have nearly no sampling error, while each single row has the model's
    distribution.

    Examples
    --------
    >>> from sfumato.synthetic.graphical_model.calibration import Calibration
    >>> from sfumato.synthetic.graphical_model.junction_tree import junction_tree
    >>> calibration = Calibration(junction_tree((2, 2), [(0, 1)]), [(0, 1)])
    >>> model = calibration([np.log([[3.0, 1.0], [1.0, 3.0]])])
    >>> (drawn,) = sampled_rows(model, 800, np.random.default_rng(1))
    >>> np.unique(drawn, axis=0, return_counts=True)[1].tolist()
    [300, 100, 100, 300]
    """
    for start in range(0, rows, _CHUNK):
        yield _chunk(model, min(_CHUNK, rows - start), rng)


def _chunk(model: Calibrated, rows: int, rng: np.random.Generator) -> Rows:
    tree = model.tree
    drawn = np.empty((len(tree.sizes), rows), np.int32)
    for clique, separator, conditional in zip(tree.cliques, tree.separators, model.conditionals, strict=True):
        group = np.zeros(rows, np.int64)
        for column in separator:
            group = group * tree.sizes[column] + drawn[column]
        counts = _systematic(conditional, np.bincount(group, minlength=len(conditional)), rng)
        cells = np.repeat(np.tile(np.arange(conditional.shape[1]), len(conditional)), counts)
        order = _random_order(group, len(conditional), rng)
        others = clique[len(separator) :]
        for column, values in zip(others, np.unravel_index(cells, tree.shape(others)), strict=True):
            drawn[column, order] = values
    return drawn.T


def _random_order(group: NDArray[np.int64], groups: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the rows by group, those of each group in random order."""
    shuffled = rng.permutation(len(group))
    if groups == 1:
        return shuffled
    narrow = np.uint16 if groups <= 1 << 16 else np.int64  # numpy sorts short integers in linear time
    return np.asarray(shuffled[np.argsort(group.astype(narrow)[shuffled], kind="stable")])


def _systematic(
    probabilities: Array, counts: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return how many of each row's count fall in each of its cells."""
    edges = probabilities.cumsum(axis=1)
    ends = edges[:, -1:]
    edges = np.divide(edges, ends, out=np.zeros_like(edges), where=ends > 0)
    # cells without mass have the edge of the one before exactly, so that nothing is between them
    places = np.ceil(edges * counts[:, None] - rng.random((len(counts), 1)))
    np.clip(places, 0, counts[:, None], out=places)
    places[:, -1] = counts
    return np.asarray(np.diff(places, axis=1, prepend=0), np.int64).ravel()
