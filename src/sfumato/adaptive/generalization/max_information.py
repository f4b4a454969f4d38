r"""Max-information: how much likelier an event can be made by choosing it after a look at the data."""

from __future__ import annotations

import math

import numpy as np

from sfumato import _check
from sfumato.adaptive.generalization.generalization_bound import GeneralizationBound, rounded_up

__all__ = ["corrected_p_value", "max_information", "max_information_bound"]

_SPLITS = np.geomspace(1e-12, 0.5, 60)


def max_information(epsilon: float, *, rows: int, beta: float) -> float:
    r"""Bound the beta-approximate max-information of an epsilon-DP analysis of independent rows.

    Parameters
    ----------
    epsilon : float
        Of all answers together, pure, under replacing one row.
    rows : int
    beta : float
        In [0, 1); at 0 the bound is ``epsilon * rows``.

    Returns
    -------
    float
        In nats, rounded up: an event of sample and transcript that has probability p where the two are
        independent has at most ``exp(max_information) * p + beta``.

    Raises
    ------
    ParameterError
        If a number is outside its range.

    Notes
    -----
    :math:`n \varepsilon^2 / 8 + \varepsilon \sqrt{n \ln(1/\beta) / 2}`, or :math:`n \varepsilon` if that is
    less. *Proof.* Given the transcript and the rows before the i-th, the log of how much likelier the i-th
    row makes the transcript lies in an interval of length epsilon, as rows change the transcript's
    probability by at most :math:`e^\varepsilon`, and its exponential has mean 1 over a fresh row. Its mean
    over the row given the transcript is a divergence, by Hoeffding's lemma at most :math:`\varepsilon^2 / 8`;
    the sum of n exceeds its mean by t with probability at most :math:`e^{-2 t^2 / (n \varepsilon^2)}` (Azuma
    and Hoeffding).

    References
    ----------
    Dwork, Feldman, Hardt, Pitassi, Reingold, Roth (2015), Generalization in Adaptive Data Analysis and
    Holdout Reuse, whose constant for the mean is 1/2.

    Examples
    --------
    >>> round(max_information(0.01, rows=1000, beta=0.01), 3)
    0.492
    """
    rate = _check.non_negative("epsilon", epsilon)
    count = _check.integer("rows", rows, minimum=1)
    most = count * rate
    failure = _check.share("beta", beta)
    if failure == 0:
        return rounded_up(most)
    above_mean = rate * math.sqrt(count * math.log(1 / failure) / 2)
    return rounded_up(min(most, count * rate * rate / 8 + above_mean))


def corrected_p_value(p: float, *, epsilon: float, rows: int, beta: float) -> float:
    """Return a p-value that is valid for a test that was chosen after an epsilon-DP analysis of its data.

    Parameters
    ----------
    p : float
        As the test gives it, for data that it was not chosen by.
    epsilon, rows, beta
        As in `max_information`; at most half of the wanted level is a good ``beta``.

    Returns
    -------
    float
        ``min(1, exp(max_information) * p + beta)``: below any level with at most that probability under the
        null hypothesis.

    Examples
    --------
    >>> round(corrected_p_value(1e-4, epsilon=0.01, rows=1000, beta=0.01), 5)
    0.01016
    """
    value = _check.share("p", p)
    information = max_information(epsilon, rows=rows, beta=beta)
    log = information + math.log(value) if value > 0 else -math.inf
    return min(1.0, rounded_up(math.exp(min(log, 0.0)) + beta))


def max_information_bound(
    epsilon: float,
    *,
    rows: int,
    queries: int,
    beta: float,
    sample_error: float = 0.0,
    sample_beta: float = 0.0,
) -> GeneralizationBound:
    r"""Bound the error of queries that are chosen by an epsilon-DP analysis, by Hoeffding's inequality.

    Parameters
    ----------
    epsilon, rows
        As in `max_information`.
    queries : int
        How many the transcript chooses.
    beta : float
        The probability with which the bound may fail.
    sample_error, sample_beta : float
        How far answers are from the sample's values, and how often they are farther.

    Returns
    -------
    GeneralizationBound
        For the best split of beta.

    Notes
    -----
    Conditions: as for `transfer_bound`, but the loss is pure, and the guarantee is for means of [0, 1].

    Examples
    --------
    >>> round(max_information_bound(0.01, rows=10_000, queries=100, beta=0.05).error, 4)
    0.0225
    """
    count, chosen = (
        _check.integer("rows", rows, minimum=1),
        _check.integer("queries", queries, minimum=1),
    )
    alpha, missed = (
        _check.non_negative("sample_error", sample_error),
        _check.share("sample_beta", sample_beta),
    )
    left = _check.unit_interval("beta", beta) - missed
    best = math.inf
    for part in _SPLITS if left > 0 else ():
        information = max_information(epsilon, rows=count, beta=float(part) * left)
        log = information + math.log(2 * chosen / (left * (1 - float(part))))
        best = min(best, math.sqrt(log / (2 * count)))
    theorem = "max-information (Dwork et al. 2015)"
    return GeneralizationBound(
        error=rounded_up(alpha + best), beta=beta, theorem=theorem, parts={"sample error": alpha}
    )
