"""Means of adaptively chosen queries: how accurate noise makes them, and how many rows that takes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final, Literal, final

import numpy as np

from sfumato import _check
from sfumato.adaptive.generalization.generalization_bound import GeneralizationBound, rounded_up
from sfumato.adaptive.generalization.max_information import max_information_bound
from sfumato.adaptive.generalization.transcripts import sample_splitting_bound, transcript_bound
from sfumato.adaptive.generalization.transfer import EPSILONS, Pairs, proven_pairs, transferred
from sfumato.privacy.gaussian_profile import log_profile
from sfumato.privacy.leaves.gaussian import Gaussian
from sfumato.privacy.leaves.laplace import Laplace
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["AdaptiveMeans", "best_noise", "compare_bounds", "required_rows"]

_GOLDEN: Final = (math.sqrt(5) - 1) / 2
_CLOSE: Final = 0.1
_MOST_ROWS: Final = 1 << 40
_NOISES: Final[tuple[Literal["gaussian", "laplace"], ...]] = ("gaussian", "laplace")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveMeans:
    """So many means of [0, 1] over one sample, each chosen by the noisy answers to those before it.

    Answers are clamped to [0, 1]: the transfer theorem needs it, and bounds are about such answers.

    Parameters
    ----------
    rows, queries : int
    noise : {"gaussian", "laplace"}
    scale : float
        Standard deviation of Gaussian noise, scale of Laplace noise, in the unit of the means.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.

    Examples
    --------
    >>> means = AdaptiveMeans(rows=100_000, queries=2000, noise="gaussian", scale=0.02)
    >>> means.bound(beta=0.05).error < sample_splitting_bound(rows=100_000, queries=2000, beta=0.05).error
    True
    """

    rows: int
    queries: int
    noise: Literal["gaussian", "laplace"] = "gaussian"
    scale: float

    def __post_init__(self) -> None:
        _check.integer("rows", self.rows, minimum=1)
        _check.integer("queries", self.queries, minimum=1)
        noise: object = self.noise
        if noise not in ("gaussian", "laplace"):
            _check.refuse("noise", "be 'gaussian' or 'laplace'", noise, "pass 'gaussian'")
        _check.positive("scale", self.scale)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of all answers together, under replacing one row."""
        leaf = Gaussian if self.noise == "gaussian" else Laplace
        return leaf(self.scale * self.rows, neighboring=Neighboring.REPLACE_ONE) * self.queries

    def sample_beta(self, error: float) -> float:
        """Return a bound on the probability that any answer is farther than that from the sample's value.

        Parameters
        ----------
        error : float

        Returns
        -------
        float
            Rounded up; at most 1. Clamping answers to [0, 1] makes it no worse.
        """
        apart = _check.non_negative("error", error) / self.scale
        one = math.erfc(apart / math.sqrt(2)) if self.noise == "gaussian" else math.exp(-apart)
        return min(1.0, rounded_up(self.queries * one))

    def bound(self, *, beta: float) -> GeneralizationBound:
        """Return the smallest error on the population that a theorem proves for this noise.

        Parameters
        ----------
        beta : float
            The probability with which the bound may fail.

        Returns
        -------
        GeneralizationBound
            By `transfer_bound`, or with Laplace noise by `max_information_bound` if that is better.
        """
        return min(self.bounds(beta=beta), key=_error)

    def _pairs(self) -> Pairs:
        """Return epsilons and deltas of all answers together."""
        if self.noise == "laplace":
            return proven_pairs(self.privacy_loss)
        mu = self.privacy_loss.gdp().mu
        return EPSILONS, np.exp([log_profile(mu, epsilon) for epsilon in EPSILONS.tolist()])

    def bounds(self, *, beta: float) -> list[GeneralizationBound]:
        """Return what each theorem proves for this noise.

        Parameters
        ----------
        beta : float
            The probability with which a bound may fail.

        Returns
        -------
        list of GeneralizationBound
            Each with the best distance that noise is trusted to stay within; any distance is valid.
        """
        _check.unit_interval("beta", beta)
        pairs = self._pairs()
        widest = self.scale * 3 * (3 + math.log(4 * self.queries / beta))
        within = np.linspace(self.scale, widest, 64).tolist()
        found = [min((transferred(pairs, far, self.sample_beta(far), beta) for far in within), key=_error)]
        if self.noise == "laplace":
            epsilon = rounded_up(self.queries / (self.scale * self.rows))
            options = (
                max_information_bound(
                    epsilon,
                    rows=self.rows,
                    queries=self.queries,
                    beta=beta,
                    sample_error=far,
                    sample_beta=self.sample_beta(far),
                )
                for far in within
            )
            found.append(min(options, key=_error))
        named = "Gaussian" if self.noise == "gaussian" else "Laplace"
        return [replace(bound, theorem=f"{named} noise, {bound.theorem}") for bound in found]


def _error(bound: GeneralizationBound) -> float:
    return bound.error


def best_noise(
    *, rows: int, queries: int, beta: float, noise: Literal["gaussian", "laplace"] = "gaussian"
) -> AdaptiveMeans:
    """Return the noise at which the error on the population that can be proven is smallest.

    Parameters
    ----------
    rows, queries : int
    beta : float
        The probability with which the bound may fail.
    noise : {"gaussian", "laplace"}

    Returns
    -------
    AdaptiveMeans
        Its scale within a few per cent of the best one.

    Examples
    --------
    >>> means = best_noise(rows=100_000, queries=2000, beta=0.05)
    >>> 0.005 < means.scale < 0.05
    True
    """
    widest = AdaptiveMeans(rows=rows, queries=queries, noise=noise, scale=0.5)
    tried: dict[float, float] = {}

    def error(log_scale: float) -> float:
        if log_scale not in tried:
            tried[log_scale] = replace(widest, scale=math.exp(log_scale)).bound(beta=beta).error
        return tried[log_scale]

    # Golden-section search over the logarithm: every scale has a valid bound, so the best one tried is taken.
    low, high = -math.log(4 * rows), math.log(widest.scale)
    inner = [high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)]
    while high - low > _CLOSE:
        if error(inner[0]) <= error(inner[1]):
            high, inner = inner[1], [inner[1] - _GOLDEN * (inner[1] - low), inner[0]]
        else:
            low, inner = inner[0], [inner[1], inner[0] + _GOLDEN * (high - inner[0])]
    return replace(widest, scale=math.exp(min(tried, key=lambda log_scale: tried[log_scale])))


def compare_bounds(*, rows: int, queries: int, beta: float) -> list[GeneralizationBound]:
    """Return what each way of answering adaptive queries proves, the best one first.

    Parameters
    ----------
    rows, queries : int
    beta : float
        The probability with which a bound may fail.

    Returns
    -------
    list of GeneralizationBound
        A fresh part of the rows for each query; answers rounded to the best grid, with all transcripts
        counted; the best Gaussian and the best Laplace noise, by the transfer theorem and by max-information.

    Examples
    --------
    >>> for bound in compare_bounds(rows=100_000, queries=1000, beta=0.05)[:2]:
    ...     print(bound.theorem, round(bound.error, 3))
    Gaussian noise, transfer theorem, after Jung et al. (2020) 0.099
    answers rounded to a grid, all transcripts counted 0.148
    """
    failure = _check.unit_interval("beta", beta)
    found = [
        sample_splitting_bound(rows=rows, queries=queries, beta=failure),
        _rounded_answers(rows, queries, failure),
    ]
    for noise in _NOISES:
        found += best_noise(rows=rows, queries=queries, beta=failure, noise=noise).bounds(beta=failure)
    return sorted(found, key=_error)


def _rounded_answers(rows: int, queries: int, beta: float) -> GeneralizationBound:
    grids = [round(2**power) for power in np.arange(0, 14, 0.5)]
    return min(
        (
            transcript_bound(
                rows=rows,
                log_count=(queries - 1) * math.log(parts + 1) + math.log(queries),
                beta=beta,
                sample_error=1 / (2 * parts),
                theorem="answers rounded to a grid, all transcripts counted",
            )
            for parts in grids
        ),
        key=_error,
    )


def required_rows(
    *, error: float, queries: int, beta: float, noise: Literal["gaussian", "laplace"] = "gaussian"
) -> int:
    """Return how many rows suffice for adaptive means with noise to be that accurate on the population.

    Parameters
    ----------
    error : float
        Strictly between 0 and 1.
    queries : int
    beta : float
        The probability with which the bound may fail.
    noise : {"gaussian", "laplace"}

    Returns
    -------
    int
        At which `best_noise` proves the error; at most 1 % more than the fewest at which it does.

    Raises
    ------
    ParameterError
        If a number is outside its range, or no number of rows up to 2**40 suffices.

    Examples
    --------
    >>> rows = required_rows(error=0.3, queries=5, beta=0.05)
    >>> best_noise(rows=rows, queries=5, beta=0.05).bound(beta=0.05).error <= 0.3
    True
    """
    wanted = _check.unit_interval("error", error)

    def enough(rows: int) -> bool:
        return best_noise(rows=rows, queries=queries, beta=beta, noise=noise).bound(beta=beta).error <= wanted

    if not enough(_MOST_ROWS):
        _check.refuse("error", "be reached by at most 2**40 rows", error, "allow a greater error")
    low, high = 1, 64
    while not enough(high):
        low, high = high, 4 * high
    while high > low * 1.01 + 1:
        middle = math.isqrt(low * high) + 1
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
