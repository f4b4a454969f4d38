"""How far a public prior is believed: as far as it has predicted what was released."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, final

import numpy as np

from sfumato.synthetic.graphical_model.calibration import Array

__all__ = ["PriorTrust"]

_VARIANCES: Final = np.geomspace(1.0, 100.0, 41)


def _nothing() -> Array:
    return np.empty(0)


@final
@dataclass(frozen=True, slots=True, eq=False)
class PriorTrust:
    r"""Predictions of a prior beside noisy counts.

    Parameters
    ----------
    expected : array
        Counts that were predicted before they were measured.
    observed : array
        The same with the noise of their release.
    variances : array
        Of that noise.

    Notes
    -----
    The count of a cell is taken to have variance :math:`v e` around what the prior expects of it, e: v is 1
    if the rows are a sample of the prior, and larger the farther it is off. Then :math:`(y - e)^2` is
    :math:`\sigma^2 + v e` on average, and v is that of the largest Gaussian likelihood of all cells, at most
    100. In quadratic approximation :math:`n\,\mathrm{KL}(q\,\|\,p)/v` is the negative log-density of such
    counts, so that the fit to noisy tables weighs the prior by 1/v. All of this is released or public.

    Examples
    --------
    >>> expected = np.full(200, 50.0)
    >>> noise = np.random.default_rng(1).normal(0, 1, (2, 200))
    >>> sampled = expected + np.sqrt(50) * noise[0] + 2 * noise[1]
    >>> near = PriorTrust().seen(expected, sampled, np.full(200, 4.0))
    >>> near.strength > 0.7, near.seen(expected, 30 * expected, np.full(200, 4.0)).strength
    (True, 0.0)
    """

    expected: Array = field(default_factory=_nothing)
    observed: Array = field(default_factory=_nothing)
    variances: Array = field(default_factory=_nothing)

    def seen(self, expected: Array, observed: Array, variances: Array) -> PriorTrust:
        """Return it with a further table.

        Parameters
        ----------
        expected, observed, variances : array of one shape

        Returns
        -------
        PriorTrust
        """
        pairs = (self.expected, expected), (self.observed, observed), (self.variances, variances)
        return PriorTrust(*(np.concatenate([old, np.ravel(new)]) for old, new in pairs))

    @property
    def strength(self) -> float:
        """What the prior is weighed by: from 1 down to 0.01, and 0 where it is not to be used at all."""
        squares = (self.observed - self.expected) ** 2
        totals = self.variances + _VARIANCES[:, None] * np.maximum(self.expected, 0.0)
        misfit = (np.log(totals) + squares / totals).sum(axis=1)
        best = int(np.argmin(misfit))
        return 0.0 if best == len(_VARIANCES) - 1 else float(1 / _VARIANCES[best])
