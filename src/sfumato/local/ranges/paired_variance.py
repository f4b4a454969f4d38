"""The variances of ranges where nodes of a level are correlated differently, pair by pair."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, final

import numpy as np

from sfumato.local.frequency.variance import Array, ErrorModel
from sfumato.local.ranges.tree_variance import alphas_of
from sfumato.local.ranges.variance import Places, RangeErrorModel

__all__ = ["LARGEST_PAIRED", "PairedErrorModel"]

LARGEST_PAIRED: Final = 4096
"""Nodes of a level of which all pairs are looked at."""
_WEIGHTS: Final = 1 << 21
"""Weights at once."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PairedErrorModel(RangeErrorModel):
    r"""Of a tree as in `TreeErrorModel`, with the whole covariance matrices of its levels.

    Parameters
    ----------
    shape, reports
        See `RangeErrorModel`.
    error_models : tuple of ErrorModel
        Of each level's oracle.

    Attributes
    ----------
    alphas : tuple of float
        How much a node's own estimate counts against what its children say, for each level.
    """

    error_models: tuple[ErrorModel, ...]
    alphas: tuple[float, ...] = field(init=False)

    def __post_init__(self) -> None:
        alone = []
        for level, error_model in enumerate(self.error_models, 1):
            even = np.full(self.shape.nodes(level), 1 / self.shape.nodes(level))
            alone.append(float(np.mean(error_model.variance(even) + even * (1 - even))))
        object.__setattr__(self, "alphas", alphas_of(self.shape, alone, self.reports))

    def weights(self, first: Places, last: Places) -> list[Array]:
        """Return what the estimates of each level's nodes weigh in ranges, as rows: see `TreeErrorModel`."""
        shape, indices = self.shape, np.arange(self.shape.size)
        held = [((first[:, None] <= indices) & (indices <= last[:, None])).astype(float)]
        for level in range(shape.levels, 0, -1):
            starts = np.arange(0, shape.nodes(level), shape.branching)
            counts = np.add.reduceat(np.ones(shape.nodes(level)), starts)
            held.insert(0, np.add.reduceat(held[0], starts, axis=1) / counts)
        found: list[Array] = []
        carried = np.zeros((len(first), 1))
        for level, alpha in enumerate(self.alphas, 1):
            parents = np.arange(shape.nodes(level)) // shape.branching
            own = held[level] - held[level - 1][:, parents] + carried[:, parents]
            found.append(alpha * own)
            carried = (1 - alpha) * own
        return found

    def variance(self, first: Places, last: Places, cumulative: Array) -> Array:
        """Return the variances of the estimates of ranges; see `RangeErrorModel.variance`."""
        inside = cumulative[last + 1] - cumulative[first]
        found = -inside * (1 - inside) / max(sum(self.reports), 1)
        matrices = [self._matrix(level, cumulative) for level in range(1, self.shape.levels + 1)]
        rows = max(1, _WEIGHTS // self.shape.size)
        for start in range(0, len(first), rows):
            part = slice(start, start + rows)
            weights = self.weights(first[part], last[part])
            for weight, matrix, count in zip(weights, matrices, self.reports, strict=True):
                if count:
                    found[part] += ((weight @ matrix) * weight).sum(axis=1) / count
                else:
                    found[part] = np.where((weight**2).sum(axis=1) > 1e-24, np.inf, found[part])
        return np.maximum(found, 0.0)

    def _matrix(self, level: int, cumulative: Array) -> Array:
        """Return the covariance matrix of the report of a respondent drawn from all."""
        ends = np.minimum(np.arange(self.shape.nodes(level) + 1) * self.shape.span(level), self.shape.size)
        shares = np.diff(cumulative[ends])
        fixed = self.error_models[level - 1].covariance(shares, np.arange(len(shares)))
        return np.asarray(fixed + np.diag(shares) - np.outer(shares, shares))
