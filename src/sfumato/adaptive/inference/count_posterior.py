"""Bayesian inference for counts that were released with noise: proportions and rates."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from sfumato import _check
from sfumato.adaptive.inference.noise_density import draw_counts, noise_log_density
from sfumato.adaptive.inference.posterior_draws import PosteriorDraws, chain_length
from sfumato.mechanisms.base.query import Query
from sfumato.mechanisms.base.release import LatticeRelease
from sfumato.mechanisms.statistics.hypothesis_test.p_value import LARGEST, check_counts, size_of_release
from sfumato.mechanisms.statistics.null_draws import null_draws

__all__ = ["multinomial_posterior", "poisson_posterior"]

_Array = NDArray[np.float64]
_REACH: Final = 8
"""In standard deviations of the noise: where a count is looked for first."""
_TABLED: Final = 1 << 22
"""Up to so many numbers in all, the weights of all counts are computed once."""


def multinomial_posterior(
    release: LatticeRelease,
    *,
    records: int,
    prior: float | Sequence[float] = 0.5,
    draws: int = 2000,
    burn_in: int = 500,
    rng: int | np.random.Generator | None = None,
) -> PosteriorDraws:
    r"""Draw the proportions of cells from their posterior, given noisy counts of a public number of records.

    Parameters
    ----------
    release : LatticeRelease
        Of counts of which every record is in exactly one, under replace-one or zero-out.
    records : int
        How many records there are; public.
    prior : float or sequence of floats
        Of the Dirichlet prior, for all cells or for each; 0.5 is Jeffreys' for multinomial counts.
    draws, burn_in : int
        How many draws are returned, and how many are thrown away before the first of them.
    rng : None, int or numpy Generator
        For these draws; they need no secrecy.

    Returns
    -------
    PosteriorDraws
        Of each cell's proportion in the population.

    Raises
    ------
    NeighboringMismatch
        If the release is under add/remove, where the number of records is private: `poisson_posterior`.
    ParameterError
        If a parameter breaks its rule, or the release is of no counts.

    Notes
    -----
    The model: proportions from the Dirichlet prior, counts multinomial, and the noise that the release
    names, with its own distribution on the integers. Draws are of a Markov chain whose stationary
    distribution is the posterior: the unknown counts of two cells at a time, given their sum, with the
    proportions integrated out, then proportions given counts. Post-processing, free of charge.

    Credible intervals promise no frequentist coverage: see `PosteriorDraws`.

    References
    ----------
    Bernstein, Sheldon (2018), Differentially Private Bayesian Inference for Exponential Families: Gibbs
    sampling with the unknown statistics as latent variables. Liu (1994), The Collapsed Gibbs Sampler.

    Examples
    --------
    >>> from sfumato.mechanisms import Histogram, Laplace
    >>> from sfumato.privacy import Neighboring
    >>> query = Histogram(categories=("red", "green", "blue"))
    >>> noisy = Laplace.for_query(query, epsilon=0.5, neighboring=Neighboring.REPLACE_ONE)
    >>> release = noisy.release(["red"] * 60 + ["green"] * 39 + ["blue"], rng=1)
    >>> found = multinomial_posterior(release, records=100, rng=2)
    >>> found.names, found.mean.round(1).tolist()
    (('red', 'green', 'blue'), [0.6, 0.4, 0.0])
    """
    counts, names = _counts(release, 2)
    size = size_of_release(release, records, "use poisson_posterior, for a private number of records")
    weights = _prior(prior, len(counts))
    (number, skipped), (_, generator) = chain_length(draws, burn_in), null_draws(100, rng)
    reach, hidden = round(_REACH * release.stddev) + 1, _start(counts, size)
    cells = [_cell(*cell, release, size, len(counts)) for cell in zip(counts, weights, strict=True)]

    def move(i: int, j: int) -> None:
        total = int(hidden[i] + hidden[j])
        first, second = int(counts[i]), total - int(counts[j])
        ends = min(first, second) - reach, max(first, second) + reach
        hidden[i] = draw_counts(lambda k: cells[i](k) + cells[j](total - k), ends, (0, total), 1, generator)[
            0
        ]
        hidden[j] = total - hidden[i]

    found = np.zeros((number, len(counts)))
    for turn in range(-skipped, number):
        order = generator.permutation(len(counts)).tolist()
        for i, j in itertools.pairwise(order):
            move(i, j)
        if turn >= 0:
            found[turn] = generator.dirichlet(weights + hidden)
    return PosteriorDraws(values=found, names=names)


def poisson_posterior(
    release: LatticeRelease,
    *,
    shape: float = 0.5,
    rate: float = 0.0,
    draws: int = 2000,
    rng: int | np.random.Generator | None = None,
) -> PosteriorDraws:
    """Draw the rates of Poisson counts from their posterior, given the counts with noise.

    Parameters
    ----------
    release : LatticeRelease
        Of counts; how many records there are in all may be private.
    shape, rate : float
        Of the Gamma prior of each rate; Jeffreys' unless given.
    draws : int
        How many, all independent.
    rng : None, int or numpy Generator
        For these draws; they need no secrecy.

    Returns
    -------
    PosteriorDraws
        Of the number of records of each cell that are to be expected in data as these.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule, or the release is of no counts.

    Notes
    -----
    The model: each cell's rate from the Gamma prior, its count Poisson, and the noise that the release names,
    with its own distribution on the integers. Given the noisy count, the count has a distribution with one
    free constant, from which it is drawn; the rate is Gamma given the count. Proportions of cells are rates
    over their sum: ``map(lambda rates: rates / rates.sum(), names)``. Post-processing, free of charge.

    Credible intervals promise no frequentist coverage: see `PosteriorDraws`.

    References
    ----------
    Bernstein, Sheldon (2018), Differentially Private Bayesian Inference for Exponential Families; here the
    unknown count is drawn without a chain.

    Examples
    --------
    >>> from sfumato.mechanisms import Count, Laplace
    >>> release = Laplace.for_query(Count(), epsilon=0.5).release(np.ones(200), rng=1)
    >>> lower, upper, _ = poisson_posterior(release, rng=2).credible_interval(0.9)
    >>> bool(150 < lower[0] < 200 < upper[0] < 250)
    True
    """
    counts, names = _counts(release, 1)
    alpha, beta = _check.positive("shape", shape), _check.non_negative("rate", rate)
    number, _ = chain_length(draws, 0)
    _, generator = null_draws(100, rng)
    reach, found = round(_REACH * release.stddev) + 1, np.zeros((number, len(counts)))
    for cell, seen in enumerate(counts.tolist()):
        weigh, ends = _weights(seen, alpha, release, -math.log1p(beta)), (seen - reach, seen + reach)
        hidden = draw_counts(weigh, ends, (0, LARGEST), number, generator)
        found[:, cell] = generator.gamma(hidden + alpha) / (1 + beta)
    return PosteriorDraws(values=found, names=names)


def _counts(release: object, minimum: int) -> tuple[NDArray[np.int64], tuple[Any, ...]]:
    """Return a release's counts and their names, or refuse it."""
    rule, remedy = "be of noisy counts", "release a Histogram or a Count"
    if not isinstance(release, LatticeRelease) or release.step != 1:
        _check.refuse_type("release", rule, release, remedy)
    check_counts(release)
    counts = np.atleast_1d(np.asarray(release.steps, dtype=np.int64)).ravel()
    if len(counts) < minimum:
        _check.refuse_state("release", f"hold at least {minimum} counts", "it holds fewer", remedy)
    asked: Any = release.query.before_transformations() if isinstance(release.query, Query) else None
    labels: Any = list((getattr(asked, "labels", None) or {}).values())
    names = tuple(labels[0]) if len(labels) == 1 and len(labels[0]) == len(counts) else range(len(counts))
    return counts, tuple(names)


def _weights(seen: int, prior: float, release: LatticeRelease, slope: float = 0.0) -> Callable[[Any], _Array]:
    """Return the log of the weight of each count of a cell: its noise, and the prior integrated out."""
    density = noise_log_density(release.distribution)
    return lambda k: np.asarray(
        gammaln(k + prior) - gammaln(np.add(k, 1.0)) + np.multiply(k, slope) + density(np.subtract(k, seen))
    )


def _cell(seen: int, prior: float, release: LatticeRelease, size: int, cells: int) -> Callable[[Any], _Array]:
    """Return the same, from a table where that is small."""
    weigh = _weights(int(seen), float(prior), release)
    if size * cells > _TABLED:
        return weigh
    table = weigh(np.arange(size + 1))
    return lambda k: np.asarray(table[k])


def _prior(prior: object, cells: int) -> _Array:
    """Return the parameters of a Dirichlet prior, or refuse them."""
    given: Any = prior
    if isinstance(given, list | tuple | np.ndarray):
        if len(given) != cells:
            _check.refuse("prior", f"hold {cells} numbers", prior, "pass one for each cell, or one for all")
        return np.array([_check.positive("prior", each) for each in given])
    return np.full(cells, _check.positive("prior", given))


def _start(counts: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Return counts that are near the noisy ones and that data of that size can have."""
    shares = np.maximum(counts, 0) + 1.0
    whole = np.floor(shares / shares.sum() * size).astype(np.int64)
    whole[int(np.argmax(whole))] += size - int(whole.sum())
    return np.asarray(whole)
