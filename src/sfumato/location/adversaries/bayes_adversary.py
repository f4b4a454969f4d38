"""The optimal adversary with a prior, and mechanisms compared by what they lose and what he does not find."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.location.metrics.coordinates import as_prior, distance_matrix
from sfumato.location.places.place_mechanism import PlaceMechanism

__all__ = ["AdversaryResult", "MechanismComparison", "bayes_adversary", "compare_mechanisms"]


class AdversaryResult(NamedTuple):
    """What the optimal adversary finds.

    Attributes
    ----------
    error : float
        His expected loss; the smallest of all functions of the report.
    success : float
        Probability that the most probable place is the true one.
    prior_error : float
        His expected loss without a report.
    estimates : ndarray of int64
        His place for each report.

    Examples
    --------
    >>> AdversaryResult(1.0, 0.5, 2.0, np.array([0])).error
    1.0
    """

    error: float
    success: float
    prior_error: float
    estimates: NDArray[np.int64]


class MechanismComparison(NamedTuple):
    """One row of the table of `compare_mechanisms`.

    Attributes
    ----------
    name : str
        Of the mechanism.
    epsilon : float
        Of its guarantee, per unit of the metric.
    quality_loss : float
        Expected loss of its reports.
    adversarial_error : float
        Expected loss of the optimal adversary.
    success : float
        Probability that his most probable place is the true one.

    Examples
    --------
    >>> MechanismComparison("remapped", 0.01, 100.0, 90.0, 0.2).quality_loss
    100.0
    """

    name: str
    epsilon: float
    quality_loss: float
    adversarial_error: float
    success: float


def bayes_adversary(
    mechanism: PlaceMechanism, prior: ArrayLike | None = None, loss: ArrayLike | None = None
) -> AdversaryResult:
    """Return what an adversary finds who knows the prior and the mechanism.

    Parameters
    ----------
    mechanism : PlaceMechanism
        What draws the report.
    prior : array_like or None
        Probability of each place; None is uniform.
    loss : array_like of shape (n, n) or None
        His loss by true place and estimate; None is the distance.

    Returns
    -------
    AdversaryResult

    Raises
    ------
    ParameterError
        If the prior is no distribution, or the loss has another shape.

    Notes
    -----
    Shokri, Theodorakopoulos, Le Boudec, Hubaux, Quantifying location privacy, IEEE S&P 2011. His error is for
    this prior; another adversary may know more. That it is large proves nothing that the guarantee does not.

    Examples
    --------
    >>> from sfumato.location import PlaceMetric, exponential_mechanism
    >>> found = bayes_adversary(exponential_mechanism(PlaceMetric.grid(3, 3), epsilon=0.5))
    >>> found.error <= found.prior_error
    True
    """
    _check.instance("mechanism", mechanism, PlaceMechanism, "pass exponential_mechanism(...)")
    size = mechanism.metric.size
    given = as_prior(prior, size)
    costs = mechanism.metric.distances if loss is None else distance_matrix("loss", loss)
    if costs.shape != (size, size):
        _check.refuse_type("loss", "have one row and column for each place", costs, "pass loss[place, guess]")
    joint = given[:, None] * mechanism.probabilities
    expected = costs.T @ joint
    return AdversaryResult(
        float(expected.min(axis=0).sum()),
        float(joint.max(axis=0).sum()),
        float((costs.T @ given).min()),
        expected.argmin(axis=0),
    )


def compare_mechanisms(
    mechanisms: Mapping[str, PlaceMechanism], prior: ArrayLike | None = None, loss: ArrayLike | None = None
) -> list[MechanismComparison]:
    """Return quality loss and adversarial error of mechanisms, side by side.

    Parameters
    ----------
    mechanisms : mapping of str to PlaceMechanism
        By name.
    prior, loss
        As for `bayes_adversary`, for users and adversary alike.

    Returns
    -------
    list of MechanismComparison
        In the order given.

    Raises
    ------
    ParameterError
        If the prior is no distribution, or the loss has another shape.

    Examples
    --------
    >>> from sfumato.location import PlaceMetric, exponential_mechanism
    >>> near = exponential_mechanism(PlaceMetric.grid(3, 3), epsilon=0.5)
    >>> [row.name for row in compare_mechanisms({"as drawn": near, "remapped": near.remap()})]
    ['as drawn', 'remapped']
    """
    rows = []
    for name, mechanism in mechanisms.items():
        found = bayes_adversary(mechanism, prior, loss)
        quality = mechanism.expected_loss(prior, loss)
        rows.append(
            MechanismComparison(name, mechanism.guarantee.epsilon, quality, found.error, found.success)
        )
    return rows
