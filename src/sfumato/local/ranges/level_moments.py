r"""The variances and covariances of the estimates of one level.

One report's part in the estimates of a level's categories, of a respondent drawn at random, has the
covariance matrix :math:`D + c\,11^T + g\,(f1^T + 1f^T) - ff^T`, with :math:`D = \mathrm{diag}(a + b f)` and f
the true shares: this holds for every protocol whose estimates of any two categories are correlated alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from sfumato import _check
from sfumato.local.frequency.oracle import Oracle
from sfumato.local.frequency.variance import Array

__all__ = ["LevelMoments"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LevelMoments:
    """The four numbers of that matrix.

    Parameters
    ----------
    own, share : float
        a and b: of each category by itself, but for what all have in common.
    both, tilt : float
        c and g: of any two.
    """

    own: float
    share: float
    both: float = 0.0
    tilt: float = 0.0

    @classmethod
    def of(cls, oracle: Oracle[Any]) -> LevelMoments:
        """Return those of a frequency oracle whose estimates of any two categories are correlated alike.

        Raises
        ------
        ParameterError
            If they do not.

        Notes
        -----
        The error model is about fixed respondents: a respondent drawn at random adds the covariance of the
        category's indicators, which is f on the diagonal, less all products.
        """
        error_model = oracle.error_model
        if not error_model.alike:
            remedy = "use OptimalLocalHashing, OneBitHadamard or a unary encoding"
            rule = "have estimates of which any two categories are correlated alike"
            _check.refuse_type("oracle", rule, oracle, remedy)
        other, true = error_model.variance(np.array([0.0, 1.0])).tolist()
        rows = error_model.covariance(np.array([1.0, 0.0, 0.0]), np.array([0, 1]))
        with_true, both = float(rows[0, 1]), float(rows[1, 2])
        tilt = with_true - both
        return cls(own=other - both, share=true - other + 1 - 2 * tilt, both=both, tilt=tilt)

    def combined(self, squares: Array, masses: Array, total: Array, mean: Array) -> Array:
        r"""Return the variance of a report's part in weighted sums of estimates.

        Parameters
        ----------
        squares, masses : array
            Sums of the squared weights, and of these times the shares.
        total, mean : array
            Sums of the weights, and of these times the shares.
        """
        alone = self.own * squares + self.share * masses
        return np.asarray(alone + self.both * total**2 + 2 * self.tilt * total * mean - mean**2)

    def even(self, categories: int) -> float:
        """Return the variance of one category's estimate, if all are alike frequent."""
        return self.own + self.share / categories
