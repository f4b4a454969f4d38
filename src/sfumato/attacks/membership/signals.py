"""Attack signals: losses and confidences of a model, as one number for each example."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, logsumexp

from sfumato import _check

__all__ = ["loss_threshold", "scaled_confidence"]


def loss_threshold(losses: ArrayLike) -> NDArray[np.float64]:
    """Return the scores of the simplest attack: who has little loss is taken for a member.

    Parameters
    ----------
    losses : array
        Of the model on each example.

    Returns
    -------
    array
        Minus the losses. Yeom and others accuse whoever's loss is at most the mean loss in training;
        `membership_report` finds the best threshold.

    References
    ----------
    Yeom, Giacomelli, Fredrikson, Jha (2018), "Privacy risk in machine learning: analyzing the connection to
    overfitting".

    Examples
    --------
    >>> loss_threshold([0.25, 3.0]).tolist()
    [-0.25, -3.0]
    """
    return -as_finite_array("losses", losses)


def scaled_confidence(logits: ArrayLike, labels: ArrayLike) -> NDArray[np.float64]:
    """Return the log odds that a classifier gives to the true label: nearly normal over models.

    Parameters
    ----------
    logits : array of shape (..., examples, classes)
        Of the model; logarithms of its probabilities will do.
    labels : int array of shape (examples,)
        The true classes, from 0.

    Returns
    -------
    array of shape (..., examples)
        ``log p - log(1 - p)``, computed from the logits so that nothing is lost near 1.

    Raises
    ------
    ParameterError
        If a shape or a label does not fit, or a logit is NaN or plus infinity.

    References
    ----------
    Carlini, Chien, Nasr, Song, Terzis, Tramèr (2022), "Membership inference attacks from first principles",
    section IV.C.

    Examples
    --------
    >>> scaled_confidence([[2.0, 0.0], [-50.0, 50.0]], [0, 1]).round(6).tolist()
    [2.0, 100.0]
    """
    values = np.asarray(logits, dtype=np.float64)
    classes = np.asarray(labels)
    if values.ndim < 2 or values.shape[-1] < 2 or np.isnan(values).any() or (values == np.inf).any():
        remedy = "pass the model's outputs before the softmax"
        _check.refuse_type("logits", "be finite, of shape (..., examples, classes)", values, remedy)
    if classes.shape != values.shape[-2:-1] or not np.issubdtype(classes.dtype, np.integer):
        _check.refuse_type(
            "labels", "be one integer for each example", classes, "pass the index of the true class"
        )
    if classes.size and not 0 <= int(classes.min()) <= int(classes.max()) < values.shape[-1]:
        _check.refuse_state(
            "labels", f"be from 0 to {values.shape[-1] - 1}", "some are outside", "number the classes from 0"
        )
    # Of each example, relative to its largest: no overflow. Logits of minus infinity stay so.
    logs = np.asarray(log_softmax(values, axis=-1), dtype=np.float64)
    true = np.arange(values.shape[-1]) == classes[:, None]
    own = np.where(true, logs, 0.0).sum(axis=-1)
    others = logsumexp(np.where(true, -np.inf, logs), axis=-1)
    return np.asarray(own - others, dtype=np.float64)


def as_finite_array(name: str, values: ArrayLike, *, dimensions: tuple[int, ...] = ()) -> NDArray[np.float64]:
    """Return an array of finite floats, or refuse it."""
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0 or not np.isfinite(array).all():
        _check.refuse_type(
            name, "be finite numbers, at least one", array, "leave out missing and infinite ones"
        )
    if dimensions and array.ndim not in dimensions:
        rule = f"have {' or '.join(map(str, dimensions))} dimensions"
        _check.refuse_type(name, rule, array, "pass one number for each example")
    return array


def as_shadow_scores(
    name: str, values: ArrayLike, included: ArrayLike, examples: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return what shadow models say, and which examples each was trained on; or refuse shapes."""
    shadow = as_finite_array(name, values, dimensions=(2, 3))
    held = np.asarray(included)
    if shadow.shape[1] != examples:
        rule = f"have shape (models, {examples}, ...): all shadow models on all examples"
        _check.refuse_type(name, rule, shadow, "pass a row for each shadow model")
    if held.dtype != np.bool_ or held.shape != shadow.shape[:2]:
        rule = f"be bool of shape {shadow.shape[:2]}"
        _check.refuse_type("included", rule, held, "pass a bool for each shadow model and example")
    return shadow, held
