"""Exact scores where the family of the noise is known: the logarithm of the ratio of two densities.

No event tells two inputs apart better than a threshold on their likelihood ratio, by the lemma of Neyman and
Pearson. Where the ratio is known it need not be learned. A wrong one loses power, never validity: an event is
an event, and it is counted in runs that had no part in its choice.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.audit.input_pairs import InputPair
from sfumato.mechanisms.base.additive import AdditiveMechanism
from sfumato.mechanisms.base.measurement import Measurement
from sfumato.numerics.distributions.discrete import (
    DiscreteGaussianDistribution,
    DiscreteLaplaceDistribution,
    SymmetricDistribution,
)

__all__ = ["LogLikelihoodRatio", "known_log_likelihood_ratio", "of_pair"]

LogLikelihoodRatio: TypeAlias = Callable[[Any, Any, Any], Any]
"""Outputs and two inputs, to the log of how much likelier each output is on the first."""

_RESOLUTION = 2.0**20


def of_pair(function: LogLikelihoodRatio, pair: InputPair) -> Callable[[Any], NDArray[np.float64]]:
    """Return the ratio for two inputs, rounded so that what floats leave in its low bits is no event.

    Raises
    ------
    ParameterError
        When called, if the function does not return a number for each output.
    """

    def ratio(outputs: Any) -> NDArray[np.float64]:
        found = np.asarray(function(outputs, pair.first, pair.second), dtype=np.float64)
        if found.shape != (len(outputs),):
            _check.refuse_state(
                "log_likelihood_ratio",
                f"return {len(outputs)} numbers, one for each output",
                f"it returned an array of shape {found.shape}",
                "sum over the entries of an output",
            )
        return np.rint(found * _RESOLUTION) / _RESOLUTION

    return ratio


@singledispatch
def known_log_likelihood_ratio(mechanism: Any) -> LogLikelihoodRatio | None:
    """Return the ratio of a mechanism of ours that adds Laplace or Gaussian noise; None of others."""
    return None


@known_log_likelihood_ratio.register
def _(mechanism: AdditiveMechanism) -> LogLikelihoodRatio | None:
    step = 1.0 if mechanism.integral else float(mechanism.grid.step)
    return _additive(mechanism.distribution, step, lambda data: np.asarray(data, np.float64) / step)


@known_log_likelihood_ratio.register
def _(mechanism: Measurement) -> LogLikelihoodRatio | None:
    query = mechanism.query
    if query.draws:
        return None
    distribution = mechanism.mechanism.distribution
    return _additive(distribution, float(query.step), lambda data: np.asarray(query.steps(data), np.float64))


def _additive(
    distribution: SymmetricDistribution, step: float, answer: Callable[[Any], NDArray[np.float64]]
) -> LogLikelihoodRatio | None:
    density = _log_density(distribution)
    if density is None:
        return None

    def ratio(outputs: Any, first: Any, second: Any) -> NDArray[np.float64]:
        steps = np.asarray(outputs, np.float64) / step
        on_first, on_second = (density(steps - answer(data)) for data in (first, second))
        return np.asarray((on_first - on_second).reshape(len(steps), -1).sum(axis=1))

    return ratio


@singledispatch
def _log_density(distribution: Any) -> Callable[[NDArray[np.float64]], NDArray[np.float64]] | None:
    """Return the log of a probability, up to a constant."""
    return None


@_log_density.register
def _(distribution: DiscreteLaplaceDistribution) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    scale = float(distribution.scale)
    return lambda noise: -np.abs(noise) / scale


@_log_density.register
def _(distribution: DiscreteGaussianDistribution) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    sigma = float(distribution.sigma)
    return lambda noise: -((noise / sigma) ** 2) / 2
