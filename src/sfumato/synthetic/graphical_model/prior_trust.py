"""How far a public prior is believed: as far as it has predicted what was released."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median_low
from typing import Final, TypeAlias, final

import numpy as np

from sfumato.synthetic.graphical_model.calibration import Array
from sfumato.synthetic.marginals.workload import Clique

__all__ = ["PriorTrust"]

_VARIANCES: Final = np.geomspace(1.0, 1e6, 61)
_EMPTY: Final = 0.1  # of the mean count: no cell is expected to vary by less than such a one
_REFUTED: Final = 6.0  # twice the log of the likelihood ratio: about 20 to 1

_Seen: TypeAlias = tuple[Array, Array, Array, Array]
"""What the prior expected, what one without it would, the noisy counts, and the variances of their noise."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class PriorTrust:
    r"""Predictions of a prior beside noisy counts.

    Parameters
    ----------
    tables : mapping of tuple of int to tuple of array
        What was seen of each table.

    Notes
    -----
    The count of a cell is taken to have variance :math:`v e` around what is expected of it, e: v is 1 if the
    rows are a sample of the prior, and larger the farther it is off. Then :math:`(y - e)^2` is
    :math:`\sigma^2 + v e` on average, and v is that of the largest Gaussian likelihood, of each column for
    itself and of all tables of several columns together. In quadratic approximation
    :math:`n\,\mathrm{KL}(q\,\|\,p)/v` is the negative log-density of such counts: so the fit to a table
    weighs the prior by 1/v, and by 0 where it is refuted, as equal counts (of a table of several columns, a
    product of its columns) have a likelihood that is 20 times as large. All of this is released or public.

    Examples
    --------
    >>> expected = np.repeat([10.0, 90.0], 100)
    >>> noise = np.random.default_rng(1).normal(0, 1, (2, 200))
    >>> sampled = expected + np.sqrt(expected) * noise[0] + 2 * noise[1]
    >>> near = PriorTrust().seen((0,), expected, sampled, np.full(200, 4.0))
    >>> near.strength > 0.7, PriorTrust().seen((0,), expected, sampled[::-1], np.full(200, 4.0)).strength
    (True, 0.0)
    """

    tables: Mapping[Clique, _Seen] = field(default_factory=dict)

    def seen(self, clique: Clique, expected: Array, observed: Array, variances: Array) -> PriorTrust:
        """Return it with a further table, or with the same one measured again.

        Parameters
        ----------
        clique : tuple of int
            The table's columns.
        expected : array, an axis for each column
            Counts that were predicted before they were measured.
        observed : array
            The same with the noise of their release.
        variances : array
            Of that noise.

        Returns
        -------
        PriorTrust
        """
        new = expected, _without(expected), observed, variances
        old = self.tables.get(clique, tuple(np.empty(0) for _ in new))
        both = tuple(np.concatenate([o, np.ravel(n)]) for o, n in zip(old, new, strict=True))
        return PriorTrust({**self.tables, clique: (both[0], both[1], both[2], both[3])})

    def strengths(self) -> tuple[Mapping[Clique, float], float]:
        """Return what the prior is weighed by in the table of each column, and in all others.

        Returns
        -------
        tuple of mapping of tuple of int to float, and float
            From 1 to 0.
        """
        columns: dict[Clique, float] = {
            clique: _strength([seen]) for clique, seen in self.tables.items() if len(clique) == 1
        }
        return columns, _strength([seen for clique, seen in self.tables.items() if len(clique) > 1])

    @property
    def strength(self) -> float:
        """The median of the columns' strengths, or that of other tables if it is less; 0: not to be used."""
        columns, others = self.strengths()
        return min(others, median_low(columns.values()) if columns else 1.0)


def _without(expected: Array) -> Array:
    """Return a product of the table's columns; of one column, equal counts."""
    total = float(expected.sum())
    if expected.ndim == 1 or total <= 0:
        return np.full(expected.shape, total / expected.size)
    product = np.full((1,) * expected.ndim, total)
    for axis in range(expected.ndim):
        rest = tuple(other for other in range(expected.ndim) if other != axis)
        product = product * (expected.sum(axis=rest, keepdims=True) / total)
    return product


def _strength(seen: list[_Seen]) -> float:
    """Return one over the variance of some tables, or 0 where the prior is refuted; 1 of nothing."""
    if not seen:
        return 1.0
    expected, without, observed, variances = (np.concatenate(parts) for parts in zip(*seen, strict=True))
    misfit, variance = _best(expected, observed, variances)
    other, _ = _best(without, observed, variances)
    return 0.0 if misfit > other + _REFUTED else 1 / variance


def _best(expected: Array, observed: Array, variances: Array) -> tuple[float, float]:
    """Return twice the negative log-likelihood at its best variance, and that."""
    squares = (observed - expected) ** 2
    usual = np.maximum(expected, _EMPTY * expected.mean())
    found = []
    for variance in _VARIANCES:
        totals = variances + variance * usual
        found.append(float((np.log(totals) + squares / totals).sum()))
    best = int(np.argmin(found))
    return found[best], float(_VARIANCES[best])
