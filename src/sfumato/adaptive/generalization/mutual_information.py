r"""Mutual information: by how much a value is biased, on average, by having been chosen from the data."""

from __future__ import annotations

import math

from sfumato import _check
from sfumato.adaptive.generalization.generalization_bound import rounded_up
from sfumato.adaptive.generalization.transfer import check_replace_one
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["mutual_information", "selection_bias"]


def mutual_information(loss: PrivacyLoss, *, rows: int) -> float:
    r"""Bound the mutual information of independent rows and what a private analysis of them releases.

    Parameters
    ----------
    loss : PrivacyLoss
        Under `Neighboring.REPLACE_ONE`, with a zCDP view that has no delta.
    rows : int

    Returns
    -------
    float
        In nats, rounded up.

    Raises
    ------
    ParameterError
        If the loss is about another relation, or its zCDP view has a delta.

    Notes
    -----
    ``rho * rows``. *Proof.* By the chain rule it is the sum over rows of the information on the row given
    those before it, each at most the greatest divergence between the releases of neighbors, which is at most
    rho.

    References
    ----------
    Bun, Steinke (2016), section 5; Feldman, Steinke (2018), Calibrating Noise to Variance in Adaptive Data
    Analysis.

    Examples
    --------
    >>> from sfumato.privacy import Gaussian, Neighboring
    >>> mutual_information(Gaussian(100.0, neighboring=Neighboring.REPLACE_ONE), rows=1000) < 0.0500001
    True
    """
    check_replace_one(loss)
    count = _check.integer("rows", rows, minimum=1)
    rho, delta = loss.zcdp()
    if delta > 0:
        remedy = "read an (epsilon, delta) bound with transfer_bound instead"
        _check.refuse("loss", "have a zCDP view without delta", delta, remedy)
    return rounded_up(rho * count)


def selection_bias(information: float, *, rows: int) -> float:
    r"""Bound how far a selected query's mean on the sample is from the population's, on average.

    Parameters
    ----------
    information : float
        Of the sample and the selection, in nats: of a private analysis by `mutual_information`; of a choice
        among k queries at most ``log(k)``.
    rows : int

    Returns
    -------
    float
        :math:`\sqrt{I / (2n)}`, of the expectation of the difference, for queries with values in [0, 1].

    References
    ----------
    Russo, Zou (2016), Controlling Bias in Adaptive Data Analysis Using Information Theory; Xu, Raginsky
    (2017).

    Examples
    --------
    >>> import math
    >>> round(selection_bias(math.log(1000), rows=1000), 4)
    0.0588
    """
    known = _check.non_negative("information", information)
    return rounded_up(math.sqrt(known / (2 * _check.integer("rows", rows, minimum=1))))
