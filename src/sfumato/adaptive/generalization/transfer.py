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

_THEOREM = "transfer theorem, after Jung et al. (2020)"
_LARGEST: Final = 4.0
EPSILONS: Final = np.geomspace(5e-4, _LARGEST, 112)

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
    Conditions: rows are independent draws from one population; queries may be chosen from all earlier
    answers. A query is a mean of a function of one row with values in [0, 1], or any function of the sample
    that one row of n moves by at most 1/n (others are scaled to that, and the error back); its value on the
    population is its mean over samples. Answers are in the range of the query.

    *Theorem.* For every c, d > 0 and each epsilon at which the loss has delta, all answers are within
    :math:`\alpha + \tanh(\varepsilon/2) + c + 2d` of the population, but for a probability of
    :math:`\beta_s / c + \delta' / d`, where :math:`\delta' = 2\delta / (1 + e^\varepsilon)`.

    *Proof.* Let Q be the distribution of the sample given the transcript. The sample drawn again from Q has
    with the transcript the distribution of the real one. If an answer is more than :math:`\alpha + c` from
    the query's mean over Q, a sample from Q misses it by more than :math:`\alpha` with probability above c,
    since no error exceeds 1; so that happens with probability at most :math:`\beta_s / c`.

    Let B be the transcripts on which the query q farthest from the population has a mean over Q that is above
    the population's by more than :math:`\tanh(\varepsilon/2) + 2d`. Draw a second sample
    :math:`x'_1, \dots, x'_n`, and let :math:`S_i` have the rows up to i of the first and the others of the
    second; the transcript is of the first. Then :math:`q(S_n) - q(S_0)` is the sum of all
    :math:`g_i = q(S_i) - q(S_{i-1})`, each within 1/n of 0. With :math:`x_i` and :math:`x'_i` exchanged,
    :math:`g_i` is its own negative if q is the same. Now :math:`1_B (g_i + 1/n)` is from 0 to 2/n, so that
    its mean grows by at most :math:`e^\varepsilon` and :math:`2\delta/n` over that for a transcript of the
    sample with :math:`x'_i` in the place of :math:`x_i`. There, by symmetry, it is the mean of
    :math:`1_B (1/n - g_i)`. So :math:`(1 + e^\varepsilon) E[1_B g_i] \le ((e^\varepsilon - 1) P(B)
    + 2\delta)/n`, and the sum over i is at most :math:`\tanh(\varepsilon/2) P(B) + \delta'`. It is the mean
    of q over Q less the population's value, on B; so :math:`P(B) \le \delta'/2d`, and so has the case below.

    At best :math:`c + 2d = (\sqrt{\beta_s} + \sqrt{2 \delta'})^2 / \beta`.

    The constants are this proof's own. Jung et al. have :math:`e^\varepsilon - 1`, at least twice
    :math:`\tanh(\varepsilon/2)`, and delta for :math:`\delta'`, for means of a function of one row. Bassily
    et al. (2016) treat all queries that a row moves little, by a monitor that picks the worst of many copies
    of the analysis. With the lemma above that gives, for T copies and for every T,
    :math:`(\alpha + \tanh(\varepsilon/2) + T(\beta_s + \delta')) / (1 - (1 - \beta)^T - T \beta_s)`: the
    bound here has no copies to pay for, and is the smaller one unless :math:`\alpha + \tanh(\varepsilon/2)`
    is below the other terms.

    References
    ----------
    Jung, Ligett, Neel, Roth, Sharifi-Malvajerdi, Shenfeld (2020), A New Analysis of Differential Privacy's
    Generalization Guarantees: the two steps of the proof, and the distribution of the sample given the
    transcript.

    Bassily, Nissim, Smith, Steinke, Stemmer, Ullman (2016), Algorithmic Stability for Adaptive Data Analysis:
    queries of low sensitivity, and the monitor.

    Examples
    --------
    >>> from sfumato.privacy import Neighboring, PureDP
    >>> loss = PureDP(0.01, neighboring=Neighboring.REPLACE_ONE)
    >>> round(transfer_bound(loss, sample_error=0.02, sample_beta=1e-4, beta=0.05).error, 6)
    0.027
    """
    check_replace_one(loss)
    alpha = _check.non_negative("sample_error", sample_error)
    missed = _check.share("sample_beta", sample_beta)
    return transferred(proven_pairs(loss), alpha, missed, _check.unit_interval("beta", beta))


def transferred(pairs: Pairs, sample_error: float, sample_beta: float, beta: float) -> GeneralizationBound:
    """Return the bound by the best of some (epsilon, delta); all numbers are checked."""
    epsilons, deltas = pairs
    lost = 2 * deltas / (1 + np.exp(epsilons))
    excess = np.tanh(epsilons / 2) + (math.sqrt(sample_beta) + np.sqrt(2 * lost)) ** 2 / beta
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
        Epsilons and deltas; an epsilon above 4 gives no error below 0.96.
    """
    try:
        pure = loss.quick_epsilon(0.0)
    except UnsupportedView:
        pure = math.inf
    epsilons = EPSILONS[pure > EPSILONS]
    deltas = np.array([loss.quick_delta(float(epsilon)) for epsilon in epsilons])
    if pure <= _LARGEST:
        epsilons, deltas = np.append(epsilons, pure), np.append(deltas, 0.0)
    return epsilons, deltas
