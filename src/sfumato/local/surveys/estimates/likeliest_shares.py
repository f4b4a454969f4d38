"""The shares of latent classes that make the counts of answers likeliest."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgWarning
from scipy.optimize import nnls

__all__ = ["answer_log_likelihood", "likeliest_shares"]

_ITERATIONS: Final = 500
_GAP: Final = 1e-12


def likeliest_shares(counts: Sequence[Any], transitions: Sequence[Any]) -> NDArray[np.float64]:
    r"""Return the shares of the maximum likelihood.

    Parameters
    ----------
    counts : sequence of arrays
        How often each answer was given, an array for each sample.
    transitions : sequence of arrays
        Of each sample, the probability of each answer, a row for each class.

    Returns
    -------
    array of float64
        At least 0, with the sum 1; NaN where nobody answered.

    Notes
    -----
    The log likelihood :math:`\sum_a n_a \log (A\theta)_a` is concave. Each step minimizes its second-order
    expansion over all shares, by least squares with no negative weights, and halves the way until the
    likelihood rises. By concavity, no shares are better by more than
    :math:`\max_k \sum_a n_a A_{ak}/(A\theta)_a - n`; the steps end where that is at most 1e-12 n, or where
    float64 shows no rise any more (below 1e-7 n in 3,000 random designs).

    References
    ----------
    Wang (2007), "On fast computation of the non-parametric maximum likelihood estimate of a mixing
    distribution".
    """
    given = np.concatenate([np.asarray(part, dtype=np.float64) for part in counts])
    matrix = np.concatenate([np.asarray(part, dtype=np.float64).T for part in transitions])
    count = matrix.shape[1]
    shares = np.full(count, 1.0 / count)
    total = float(given.sum())
    if not total:
        return np.full(count, np.nan)
    matrix, given = matrix[given > 0], given[given > 0]
    height = float(given @ np.log(matrix @ shares))
    for _ in range(_ITERATIONS):
        ratios = matrix / (matrix @ shares)[:, None]
        if float((given @ ratios).max()) - total <= _GAP * total:
            break
        target = np.vstack([np.sqrt(given)[:, None] * (ratios - 2), np.ones(count)])
        found = _nonnegative(target, np.concatenate([np.zeros(len(given)), [1.0]]))
        if found is None:  # a step of expectation maximization, which always rises
            found = shares * (given @ ratios)
        step = found / found.sum() - shares
        for _ in range(60):
            with np.errstate(divide="ignore"):
                higher = float(given @ np.log(matrix @ (shares + step)))
            if higher > height:
                break
            step = step / 2
        else:
            break
        shares, height = np.maximum(shares + step, 0.0), higher
    return np.asarray(shares / shares.sum())


def _nonnegative(matrix: NDArray[np.float64], target: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return the non-negative least squares, or nothing where SciPy finds no end."""
    with warnings.catch_warnings():
        # Older SciPy warns of classes that are nearly alike; the caller checks how good the shares are.
        warnings.simplefilter("ignore", LinAlgWarning)
        try:
            return np.asarray(nnls(matrix, target)[0])
        except RuntimeError:  # SciPy below 1.15 goes in a circle for some of them
            return None


def answer_log_likelihood(counts: Sequence[Any], transitions: Sequence[Any], shares: Any) -> float:
    """Return the log likelihood of shares, without the multinomial coefficients.

    Parameters
    ----------
    counts, transitions
        As in `likeliest_shares`.
    shares : array
        At least 0, with the sum 1.
    """
    found = 0.0
    for given, transition in zip(counts, transitions, strict=True):
        rates = np.asarray(shares, dtype=np.float64) @ np.asarray(transition, dtype=np.float64)
        seen = np.asarray(given) > 0
        with np.errstate(divide="ignore"):
            found += float(np.asarray(given, dtype=np.float64)[seen] @ np.log(rates[seen]))
    return found
