r"""The transfer theorem: what is private and accurate on the sample is accurate on the population."""

from __future__ import annotations

import math
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.adaptive.generalization.generalization_bound import GeneralizationBound, rounded_up
from sfumato.errors import UnsupportedView
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["EPSILONS", "Pairs", "check_replace_one", "proven_pairs", "transfer_bound", "transferred"]

_THEOREM = "transfer theorem of Jung et al. (2020)"
EPSILONS: Final = np.geomspace(5e-4, math.log(2), 96)

Pairs: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64]]


def check_replace_one(loss: PrivacyLoss) -> None:
    """Refuse a loss that is not about replacing one row: the theorems compare a row with another draw of it.

    Parameters
    ----------
    loss : PrivacyLoss

    Raises
    ------
    ParameterError
    """
    _check.instance("loss", loss, PrivacyLoss, "pass a mechanism's privacy_loss")
    if loss.neighboring is not Neighboring.REPLACE_ONE:
        remedy = "state the mechanism for Neighboring.REPLACE_ONE: the number of rows is public here"
        _check.refuse("loss", "be about replacing one row", loss.neighboring, remedy)


def transfer_bound(
    loss: PrivacyLoss, *, sample_error: float, sample_beta: float, beta: float
) -> GeneralizationBound:
    r"""Bound the error on the population of answers that are private and accurate on the sample.

    Parameters
    ----------
    loss : PrivacyLoss
        Of all answers together, under `Neighboring.REPLACE_ONE`.
    sample_error, sample_beta : float
        With probability at least ``1 - sample_beta`` all answers are within ``sample_error`` of the sample's
        own values, on every sample.
    beta : float
        The probability with which the bound may fail; strictly between 0 and 1.

    Returns
    -------
    GeneralizationBound
        With the best split of ``beta`` and the best of the loss's (epsilon, delta), rounded up.

    Raises
    ------
    ParameterError
        If a number is outside its range, or the loss is about another relation.

    Notes
    -----
    Conditions: rows are independent draws from one population; queries are means of a function of one row
    with values in [0, 1], answers are in [0, 1] too; queries may be chosen from all earlier answers.

    *Theorem.* For every c, d > 0 and each epsilon at which the loss has delta, all answers are within
    :math:`\alpha + e^\varepsilon - 1 + c + 2d` of the population, but for a probability of
    :math:`\beta_s / c + \delta / d`.

    *Proof.* Let Q be the distribution of the sample given the transcript. The sample drawn again from Q has
    with the transcript the distribution of the real one. If an answer is more than :math:`\alpha + c` from
    the query's mean over Q, a sample from Q misses it by more than :math:`\alpha` with probability above c,
    since no error exceeds 1; so that happens with probability at most :math:`\beta_s / c`. Let B be the
    transcripts on which the query farthest from the population has a mean over Q that is above the
    population's by more than :math:`e^\varepsilon - 1 + 2d`. Replace a row by a fresh draw: the query's value
    on the old row, counted on B, grows by at most :math:`e^\varepsilon` and delta, and the old row is
    independent of the new transcript; so :math:`\int_B (q(Q) - e^\varepsilon q(P)) \le \delta`, where the
    integrand is above 2d. Hence B has at most :math:`\delta / 2d`, and so has the case below.

    At best :math:`c + 2d = (\sqrt{\beta_s} + \sqrt{2 \delta})^2 / \beta`.

    References
    ----------
    Jung, Ligett, Neel, Roth, Sharifi-Malvajerdi, Shenfeld (2020), A New Analysis of Differential Privacy's
    Generalization Guarantees.

    Examples
    --------
    >>> from sfumato.privacy import Neighboring, PureDP
    >>> loss = PureDP(0.01, neighboring=Neighboring.REPLACE_ONE)
    >>> round(transfer_bound(loss, sample_error=0.02, sample_beta=1e-4, beta=0.05).error, 6)
    0.03205
    """
    check_replace_one(loss)
    alpha = _check.non_negative("sample_error", sample_error)
    missed = _check.share("sample_beta", sample_beta)
    return transferred(proven_pairs(loss), alpha, missed, _check.unit_interval("beta", beta))


def transferred(pairs: Pairs, sample_error: float, sample_beta: float, beta: float) -> GeneralizationBound:
    """Return the bound by the best of some (epsilon, delta); all numbers are checked."""
    epsilons, deltas = pairs
    excess = np.expm1(epsilons) + (math.sqrt(sample_beta) + np.sqrt(2 * deltas)) ** 2 / beta
    best = int(excess.argmin())
    return GeneralizationBound(
        error=rounded_up(sample_error + float(excess[best])),
        beta=beta,
        theorem=_THEOREM,
        parts={"sample error": sample_error, "epsilon": float(epsilons[best]), "delta": float(deltas[best])},
    )


def proven_pairs(loss: PrivacyLoss) -> Pairs:
    """Return some (epsilon, delta) that the loss proves; a bound by any of them is valid.

    Parameters
    ----------
    loss : PrivacyLoss

    Returns
    -------
    tuple of two float64 arrays
        Epsilons and deltas; an epsilon above ln 2 gives no error below 1.
    """
    try:
        pure = loss.quick_epsilon(0.0)
    except UnsupportedView:
        pure = math.inf
    epsilons = EPSILONS[pure > EPSILONS]
    deltas = np.array([loss.quick_delta(float(epsilon)) for epsilon in epsilons])
    if pure <= math.log(2):
        epsilons, deltas = np.append(epsilons, pure), np.append(deltas, 0.0)
    return epsilons, deltas
