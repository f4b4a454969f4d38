"""How well a classifier tells synthetic rows from real rows that the generator never saw."""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from sfumato.synthetic.domain.attributes import Codes
from sfumato.synthetic.quality.prediction import class_probabilities, roc_auc

__all__ = ["Distinguishability", "distinguishability"]

_FOLDS: Final = 3


class Distinguishability(NamedTuple):
    """How well rows of two tables are distinguished by a classifier.

    Attributes
    ----------
    auc : float
        Of the classifier two-sample test (C2ST): about 0.5 for rows of one distribution, 1 for rows that are
        always distinguished.
    pmse : float
        Mean squared difference of the propensity from one half: from 0 to 0.25.

    Examples
    --------
    >>> Distinguishability(auc=0.71, pmse=0.022).auc
    0.71
    """

    auc: float
    pmse: float


def distinguishability(
    classifier: Any, rows: Codes, held_out: Codes, generator: np.random.Generator
) -> Distinguishability:
    r"""Return how well rows are distinguished from rows that were held out.

    Parameters
    ----------
    classifier : classifier
    rows, held_out : int64 array of shape (rows, columns)
        As many of each are taken as the shorter table has.
    generator : numpy Generator

    Returns
    -------
    Distinguishability
        NaN for less than six rows of either.

    Notes
    -----
    Each row's propensity, the probability that it is not of those held out, comes from a classifier that was
    trained on the other two thirds of the rows (cross-fitting). So overfitting is not taken for a difference
    between the tables. The AUC is that of these propensities; :math:`pMSE = \sum_i (p_i - 1/2)^2 / N`. Rows
    of one distribution have a pMSE above 0 as well: compare it with that of real rows.

    References
    ----------
    Lopez-Paz, Oquab, "Revisiting classifier two-sample tests" (ICLR 2017). Woo, Reiter, Oganian, Karr,
    "Global measures of data utility for microdata masked for disclosure limitation" (Journal of Privacy and
    Confidentiality 1, 2009): the propensity score's mean squared error.
    """
    most = min(len(rows), len(held_out))
    if most < 2 * _FOLDS:
        return Distinguishability(math.nan, math.nan)
    chosen = [each[generator.permutation(len(each))[:most]] for each in (held_out, rows)]
    features = np.concatenate(chosen)
    classes = np.repeat(np.arange(2), most)
    folds = np.tile(np.arange(most) % _FOLDS, 2)
    propensity = np.empty(2 * most)
    for fold in range(_FOLDS):
        here = folds == fold
        found = class_probabilities(classifier, features[~here], classes[~here], features[here], 2)
        propensity[here] = found[:, 1]
    return Distinguishability(roc_auc(classes == 1, propensity), float(((propensity - 0.5) ** 2).mean()))
