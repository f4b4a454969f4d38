"""RMIA, the robust membership inference attack: compares an example's likelihood ratio to a population."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.attacks.membership.signals import as_finite_array, as_shadow_scores

__all__ = ["rmia"]

_MINIMUM = np.finfo(np.float64).tiny


def rmia(
    observed: ArrayLike,
    reference: ArrayLike,
    included: ArrayLike,
    population: ArrayLike,
    population_reference: ArrayLike,
    *,
    gamma: float = 1.0,
    online: bool = True,
    offline_scale: float = 0.3,
) -> NDArray[np.float64]:
    """Return the scores of the robust membership inference attack.

    Parameters
    ----------
    observed : array of shape (examples,)
        The probability that the attacked model gives to each example's true label.
    reference : array of shape (models, examples)
        Those that reference models give; one or two models will do.
    included : bool array of shape (models, examples)
        Which examples each reference model was trained on.
    population : array of shape (others,)
        What the attacked model gives to other people of the population, who were in no training.
    population_reference : array of shape (models, others)
        What the reference models give to these.
    gamma : float
        By which factor an example must speak more for the model than another; at least 1.
    online : bool
        Whether reference models with the example are used: the mean of both kinds. Offline its mean is
        guessed from those without it, as ``((1 + a) p + 1 - a) / 2``.
    offline_scale : float
        That a, from 0 to 1: small where models memorise.

    Returns
    -------
    array of shape (examples,)
        Which part of the others each example beats: from 0 to 1, higher for members.

    Raises
    ------
    ParameterError
        If shapes do not fit, what should be probabilities is not, or an example has no model of a kind.

    References
    ----------
    Zarifzadeh, Liu, Shokri (2024), "Low-cost high-power membership inference attacks", equations 2 to 4 and
    the offline approximation of appendix B.

    Examples
    --------
    >>> import numpy as np
    >>> out = np.zeros((1, 2), dtype=bool)
    >>> rmia([0.9, 0.4], [[0.5, 0.5]], out, [0.6, 0.7], [[0.6, 0.6]], online=False, offline_scale=1).tolist()
    [1.0, 0.0]
    """
    gamma = _check.positive("gamma", gamma)
    if gamma < 1:
        _check.refuse("gamma", "be at least 1", gamma, "leave it out for the usual 1")
    if not 0 <= _check.non_negative("offline_scale", offline_scale) <= 1:
        remedy = "leave it out if there are shadow models with the example"
        _check.refuse("offline_scale", "be from 0 to 1", offline_scale, remedy)
    seen, others = (_shares(n, x, 1) for n, x in (("observed", observed), ("population", population)))
    known, held = as_shadow_scores("reference", _shares("reference", reference, 2), included, len(seen))
    calm = _shares("population_reference", population_reference, 2)
    if calm.shape != (len(known), len(others)):
        rule = f"have shape {(len(known), len(others))}: all reference models on all others"
        _check.refuse_type("population_reference", rule, calm, "pass a row for each reference model")
    without = _mean(known, ~held, "without")
    if online:
        usual = (without + _mean(known, held, "with")) / 2
    else:
        usual = ((1 + offline_scale) * without + (1 - offline_scale)) / 2
    ratios = np.log(np.maximum(seen, _MINIMUM)) - np.log(np.maximum(usual, _MINIMUM))
    rivals = np.log(np.maximum(others, _MINIMUM)) - np.log(np.maximum(calm.mean(axis=0), _MINIMUM))
    beaten = np.searchsorted(np.sort(rivals), ratios - np.log(gamma), side="right")
    return np.asarray(beaten / len(others), dtype=np.float64)


def _shares(name: str, values: ArrayLike, dimensions: int) -> NDArray[np.float64]:
    array = as_finite_array(name, values, dimensions=(dimensions,))
    if array.min() < 0 or array.max() > 1:
        _check.refuse_state(
            name, "be probabilities", "some are outside of [0, 1]", "pass exp(-cross entropy), not logits"
        )
    return array


def _mean(known: NDArray[np.float64], chosen: NDArray[np.bool_], side: str) -> NDArray[np.float64]:
    counts = chosen.sum(axis=0)
    if counts.min() < 1:
        remedy = "train more, or use online=False" if side == "with" else "train more"
        _check.refuse_state(
            "included", f"have a reference model {side} each example", "some example has none", remedy
        )
    return np.asarray(np.where(chosen, known, 0.0).sum(axis=0) / counts, dtype=np.float64)
