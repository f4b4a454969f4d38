"""An interval for the share of a latent class by profile likelihood, from the counts of answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtri

from sfumato import _check
from sfumato.local.surveys.estimates.likeliest_shares import answer_log_likelihood, likeliest_shares
from sfumato.numerics.interval import Interval

__all__ = ["profile_share_interval"]

_NEAR: Final = 1e-10


def profile_share_interval(
    counts: Sequence[Any], transitions: Sequence[Any], index: int, level: float
) -> Interval:
    r"""Return the shares of a class that a likelihood-ratio test does not reject.

    Parameters
    ----------
    counts, transitions
        As in `likeliest_shares`.
    index : int
        Which class.
    level : float
        Wanted coverage.

    Returns
    -------
    Interval
        Within [0, 1]; all of it where nobody answered.

    Notes
    -----
    Where the class has the share v, answers are a mixture of the rows :math:`v T_k + (1 - v) T_j` over the
    other classes j, whose likeliest shares are a concave problem, too.
    """
    target = float(chdtri(1, 1 - _check.unit_interval("level", level)))
    matrices = [np.asarray(part, dtype=np.float64) for part in transitions]
    best = likeliest_shares(counts, matrices)
    if np.isnan(best).any():
        return Interval(0.0, 1.0)
    top, value = answer_log_likelihood(counts, matrices, best), float(best[index])

    def excess(share: float) -> float:
        mixed = [share * part[[index]] + (1 - share) * np.delete(part, index, axis=0) for part in matrices]
        return 2 * (top - answer_log_likelihood(counts, mixed, likeliest_shares(counts, mixed))) - target

    lower = brentq(excess, 0.0, value, xtol=_NEAR) if value > 0 and excess(0.0) > 0 else 0.0
    upper = brentq(excess, value, 1.0, xtol=_NEAR) if value < 1 and excess(1.0) > 0 else 1.0
    return Interval(float(lower), float(upper))
