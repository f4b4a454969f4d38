"""LiRA, the likelihood ratio attack: compares shadow models trained with and without an example."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr

from sfumato import _check
from sfumato.attacks.membership.signals import as_finite_array, as_shadow_scores

__all__ = ["lira"]

_MIN_STDDEV = 1e-9


def lira(
    observed: ArrayLike,
    shadow: ArrayLike,
    included: ArrayLike,
    *,
    online: bool = True,
    variance: Literal["example", "global"] = "example",
) -> NDArray[np.float64]:
    """Return the scores of the likelihood ratio attack.

    Parameters
    ----------
    observed : array of shape (examples,) or (examples, queries)
        What the attacked model says of each example, as `scaled_confidence`; queries are augmentations, and
        are taken for independent.
    shadow : array of shape (models, examples) or (models, examples, queries)
        What each shadow model says of it.
    included : bool array of shape (models, examples)
        Which examples each shadow model was trained on.
    online : bool
        Whether to compare with the models that saw the example too. Offline, a score tells only how unlikely
        the observed confidence is among models that did not.
    variance : {"example", "global"}
        From each example's models, or one for all examples, around their own means: better with few models.

    Returns
    -------
    array of shape (examples,)
        Higher for members: the logarithm of the ratio of two normal densities, or, offline, minus the
        logarithm of the upper tail of one.

    Raises
    ------
    ParameterError
        If shapes do not fit, or an example has too few models: two of a kind by ``"example"``, else one.

    References
    ----------
    Carlini, Chien, Nasr, Song, Terzis, Tramèr (2022), "Membership inference attacks from first principles",
    Algorithm 1 and section VI.C.

    Examples
    --------
    >>> import numpy as np
    >>> included = np.array([[True, False], [True, False], [False, True], [False, True]])
    >>> shadow = np.where(included, 4.0, 1.0) + np.array([[0.5], [-0.5], [0.5], [-0.5]])
    >>> lira([4.0, 1.0], shadow, included).round(6).tolist()
    [9.0, -9.0]
    """
    if variance not in ("example", "global"):
        remedy = "pass 'global' where there are few shadow models"
        _check.refuse("variance", "be 'example' or 'global'", variance, remedy)
    seen = as_finite_array("observed", observed, dimensions=(1, 2))
    values, held = as_shadow_scores("shadow", shadow, included, len(seen))
    if values.ndim != seen.ndim + 1 or values.shape[1:] != seen.shape:
        rule = f"have shape (models, {', '.join(map(str, seen.shape))}), as observed has"
        _check.refuse_type("shadow", rule, values, "train more shadow models")
    if seen.ndim == 1:
        seen, values = seen[:, None], values[:, :, None]
    out_mean, out_stddev = _normal(values, ~held, "out", variance)
    out = (seen - out_mean) / out_stddev
    if not online:
        return np.asarray(-log_ndtr(-out).sum(axis=1), dtype=np.float64)
    in_mean, in_stddev = _normal(values, held, "in", variance)
    ratio = (out**2 - ((seen - in_mean) / in_stddev) ** 2) / 2 + np.log(out_stddev / in_stddev)
    return np.asarray(ratio.sum(axis=1), dtype=np.float64)


def _normal(
    values: NDArray[np.float64], chosen: NDArray[np.bool_], side: str, variance: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and standard deviation of each example over the chosen models."""
    counts = chosen.sum(axis=0)
    minimum = 2 if variance == "example" else 1
    if counts.min() < minimum:
        remedy = "train more shadow models, or use variance='global'" if minimum == 2 else "train more"
        rule = f"have at least {minimum} shadow models with each example {side}"
        _check.refuse_state("included", rule, f"some example has {int(counts.min())}", remedy)
    weights = chosen[:, :, None]
    mean = np.where(weights, values, 0.0).sum(axis=0) / counts[:, None]
    squares = (np.where(weights, values - mean, 0.0) ** 2).sum(axis=0)
    if variance == "example":
        stddev = np.sqrt(squares / (counts[:, None] - 1))
    else:
        free = int(counts.sum()) - len(counts)
        if free < 1:
            rule = "have two shadow models of a kind for some example"
            remedy = "train shadow models with and without each example"
            _check.refuse_state("included", rule, f"no example has two of them {side}", remedy)
        stddev = np.sqrt(squares.sum(axis=0, keepdims=True) / free)
    return mean, np.maximum(stddev, _MIN_STDDEV * max(1.0, math.sqrt(float((mean**2).mean()))))
