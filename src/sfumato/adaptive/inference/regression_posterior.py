"""Bayesian linear regression from noisy second moments, by a Markov chain that knows of the noise."""

from __future__ import annotations

import math
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.adaptive.inference.normal_rows import NormalInverseWishart, NormalRows
from sfumato.adaptive.inference.posterior_draws import PosteriorDraws, chain_length
from sfumato.adaptive.inference.regression_chain import RegressionChain
from sfumato.mechanisms.base.query import Query
from sfumato.mechanisms.base.release import LatticeRelease
from sfumato.mechanisms.statistics.hypothesis_test.p_value import LARGEST, size_of_release
from sfumato.mechanisms.statistics.least_squares import LeastSquares
from sfumato.mechanisms.statistics.null_draws import null_draws
from sfumato.numerics.distributions.discrete import (
    DiscreteGaussianDistribution,
    DiscreteLaplaceDistribution,
)

__all__ = ["regression_posterior"]

_Array = NDArray[np.float64]
_REMEDY: Final = "release LeastSquares with Gaussian, or with Laplace"


def regression_posterior(
    release: LatticeRelease,
    *,
    records: int | None = None,
    prior_records: float = 1.0,
    prior_stddev: float = 0.3,
    draws: int = 2000,
    burn_in: int = 1000,
    rng: int | np.random.Generator | None = None,
) -> PosteriorDraws:
    r"""Draw intercept, slopes and residual standard deviation from their posterior, given noisy moments.

    Parameters
    ----------
    release : LatticeRelease
        Of `LeastSquares`, by `Gaussian` or `Laplace`.
    records : int, optional
        How many records there are, where that is public, under replace-one or zero-out; else it is drawn too.
    prior_records : float
        How many records the prior is worth.
    prior_stddev : float
        Of features and response a priori, in halves of the distance of their bounds; their mean is half way.
    draws, burn_in : int
        How many draws are returned, and how many are thrown away before the first of them.
    rng : None, int or numpy Generator
        For these draws; they need no secrecy.

    Returns
    -------
    PosteriorDraws
        Named "intercept", "slope 1" and so on, and "residual stddev"; in the unit of the data. Ask for more
        draws where its ``effective_draws`` are few.

    Raises
    ------
    NeighboringMismatch
        If ``records`` is given and the release is under add/remove.
    ParameterError
        If a parameter breaks its rule, or the release is of another query or has other noise.

    Notes
    -----
    The model: records are normal in features and response together, whence the response is linear in the
    features with normal residuals; their mean and covariance have a normal inverse Wishart prior. The exact
    moments are latent. The chain draws population given moments (conjugate), and moments (and their number)
    given population and release: a proposal from the normal limit of the moments' distribution, as in
    Bernstein and Sheldon, is accepted by Metropolis and Hastings' rule for the exact one, normal and Wishart.
    So the posterior is that of the model for any number of records, and moments that no data have are never
    taken. In between, population and moments move together, the sample's standardised deviations from the
    population left as they are: without that a chain is slow where noise is large. Laplace noise is a mixture
    of normal noises (Andrews and Mallows 1974) whose variances are drawn.
    The noise's grid is a millionth of what a record adds; the noise is taken as continuous, but for the
    number of records.

    Records outside of the bounds were clamped: what that moves is outside of the model, and so of the
    posterior. Credible intervals promise no frequentist coverage: see `PosteriorDraws`. Post-processing.

    References
    ----------
    Bernstein, Sheldon (2019), Differentially Private Bayesian Linear Regression: noisy sufficient
    statistics, their normal limit, and a hierarchical prior of the features. Ju, Awan, Gong, Rao (2022), Data
    Augmentation MCMC for Bayesian Inference from Privatized Data: proposals from the model, corrected. Yu,
    Meng (2011), To Center or Not to Center: interweaving.

    Examples
    --------
    >>> from sfumato.mechanisms import Gaussian
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(5, 1.5, 2000)
    >>> data = np.stack([x, 3 + 0.5 * x + rng.normal(0, 0.5, 2000)], axis=1)
    >>> query = LeastSquares(bounds=((0, 10), (0, 10)))
    >>> release = Gaussian.for_query(query, epsilon=1.0, delta=1e-6).release(data, rng=1)
    >>> found = regression_posterior(release, draws=300, burn_in=100, rng=2)
    >>> lower, upper, _ = found.credible_interval(0.99)
    >>> found.names, bool(lower[1] < 0.5 < upper[1])
    (('intercept', 'slope 1', 'residual stddev'), True)
    """
    query = _query(release)
    size = len(query.bounds)
    worth, unit = (
        _check.positive("prior_records", prior_records),
        _check.positive("prior_stddev", prior_stddev),
    )
    number, skipped = chain_length(draws, burn_in)
    _, generator = null_draws(100, rng)
    count = None if records is None else size_of_release(release, records, "leave it out")
    if count is not None and count <= size + 1:
        _check.refuse("records", f"be more than {size + 1}", records, "fit fewer features, or more records")
    limits = (size + 2, LARGEST) if count is None else (count, count)
    prior = NormalInverseWishart(np.zeros(size), worth, size + 1 + worth, worth * unit**2 * np.eye(size))
    chain = RegressionChain(np.asarray(release.steps), release.step, release.distribution, limits, prior)
    found = np.zeros((number, size + 1))
    for turn in range(-skipped, number):
        chain.step(generator)
        if turn >= 0:
            found[turn] = _in_data_units(chain.population, np.array(query.bounds))
    names = "intercept", *(f"slope {place}" for place in range(1, size)), "residual stddev"
    return PosteriorDraws(values=found, names=names)


def _query(release: object) -> LeastSquares:
    """Return the query of a release with noise that the chain knows, or refuse it."""
    if not isinstance(release, LatticeRelease):
        _check.refuse_type("release", "be of LeastSquares", release, _REMEDY)
    named: Any = release.query.before_transformations() if isinstance(release.query, Query) else release.query
    _check.instance("release.query", named, LeastSquares, _REMEDY)
    if not isinstance(release.distribution, DiscreteGaussianDistribution | DiscreteLaplaceDistribution):
        _check.refuse_state("release", "have Gaussian or Laplace noise", "it has other noise", _REMEDY)
    return cast("LeastSquares", named)


def _in_data_units(population: NormalRows, bounds: _Array) -> _Array:
    """Return intercept, slopes and residual standard deviation of a population of positions in bounds."""
    mean, covariance = population.mean, population.covariance
    slopes = np.linalg.solve(covariance[:-1, :-1], covariance[:-1, -1])
    rest = max(0.0, float(covariance[-1, -1] - slopes @ covariance[:-1, -1]))
    lower, upper = bounds.T
    scale, middle = (upper - lower) / 2, (upper + lower) / 2
    center = middle + scale * mean
    slopes = slopes * scale[-1] / scale[:-1]
    return np.array([center[-1] - slopes @ center[:-1], *slopes, scale[-1] * math.sqrt(rest)])
