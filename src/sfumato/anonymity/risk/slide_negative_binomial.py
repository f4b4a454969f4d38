"""The slide negative binomial model of the class sizes of a population."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import root
from scipy.special import expit

__all__ = ["SlideNegativeBinomial", "fit_slide_negative_binomial", "shlosser_classes"]

_STARTS: Final = tuple(itertools.product((-4.0, -2.0, 0.0, 2.0, 5.0), (-8.0, -5.0, -2.0, 0.0, 3.0)))
_ACCURACY: Final = 1e-8


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SlideNegativeBinomial:
    """Class sizes of a population: each is one and a negative binomial number more.

    Parameters
    ----------
    classes : float
        How many classes the population has.
    alpha, beta : float
        Of the negative binomial: a class has one member with probability ``beta ** alpha``.
    """

    classes: float
    alpha: float
    beta: float

    @property
    def uniques(self) -> float:
        """The expected number of classes of one member."""
        return self.classes * math.pow(self.beta, self.alpha)

    @property
    def members(self) -> float:
        """The expected number of members of all classes."""
        return self.classes * (1 + self.alpha * (1 - self.beta) / self.beta)

    def expected(self, fraction: float) -> tuple[float, float]:
        """Return the expected numbers of classes of one row and of two rows in a sample.

        Each member is in the sample with probability `fraction`: these are the first two coefficients of the
        generating function ``s (beta / (1 - (1 - beta) s)) ** alpha`` at ``1 - fraction + fraction s``.

        Parameters
        ----------
        fraction : float
            From 0 to 1.

        Returns
        -------
        tuple of two floats
        """
        a, b, q = self.alpha, self.beta, (1 - fraction) * (1 - self.beta)
        inner = 1 - q
        scale = self.classes * (b / inner) ** a
        one = scale * fraction * (1 + a * q / inner)
        two = scale * fraction**2 / 2 * a * (1 - b) * (2 - (1 - a) * q) / inner**2
        return one, two


def shlosser_classes(sizes: NDArray[np.int64], fraction: float) -> float:
    """Return Haas and Stokes' modification of Shlosser's estimate of the number of classes of the population.

    Parameters
    ----------
    sizes : int64 array
        The rows of each class of the sample.
    fraction : float
        Of the population that is in the sample.

    Returns
    -------
    float
    """
    size, many = np.unique(sizes, return_counts=True)
    q = fraction
    singles = int(np.count_nonzero(sizes == 1))
    missing = (1 - q) ** size * many
    first = (size * q**2 * (1 - q**2) ** (size - 1)) @ many
    second = ((1 - q) ** size * ((1 + q) ** size - 1)) @ many
    third = missing.sum() / ((size * q * (1 - q) ** (size - 1)) @ many)
    return float(len(sizes) + singles * first / second * third**2)


def fit_slide_negative_binomial(
    sizes: NDArray[np.int64], population_size: int
) -> SlideNegativeBinomial | None:
    """Return the model under which the numbers of single rows and of pairs are what the sample has.

    Parameters
    ----------
    sizes : int64 array
        The rows of each class of the sample.
    population_size : int
        Above the rows of the sample.

    Returns
    -------
    SlideNegativeBinomial or None
        Of several that do, the one whose population is nearest in size; None where none does.
    """
    fraction = int(sizes.sum()) / population_size
    classes = shlosser_classes(sizes, fraction)
    wanted = np.array([np.count_nonzero(sizes == 1), np.count_nonzero(sizes == 2)], np.float64)
    if not wanted.all() or not math.isfinite(classes):
        return None

    def model(point: NDArray[np.float64]) -> SlideNegativeBinomial:
        alpha, beta = math.exp(min(point[0], 700.0)), float(expit(point[1]))
        return SlideNegativeBinomial(classes=classes, alpha=alpha, beta=beta)

    def off(point: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.array(model(point).expected(fraction)) / wanted - 1

    found = []
    for start in _STARTS:
        solved = root(off, start)
        if solved.success and np.all(np.abs(off(solved.x)) < _ACCURACY):
            found.append(model(solved.x))
    return min(found, key=lambda each: abs(each.members - population_size), default=None)
