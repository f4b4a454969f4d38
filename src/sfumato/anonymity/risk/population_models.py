"""How many people are unique in the population, estimated from the class sizes of a sample.

References
----------
L. Zayatz, "Estimation of the number of unique population elements using a sample", Proc. Survey Research
Methods, ASA, 1991.

N. Hoshino, "Applying Pitman's sampling formula to microdata disclosure risk assessment", Journal of Official
Statistics 17(4), 2001.

G. Chen, S. Keller-McNulty, "Estimation of identification disclosure risk in microdata", Journal of Official
Statistics 14(1), 1998: the slide negative binomial model.

P. Haas, L. Stokes, "Estimating the number of classes in a finite population", JASA 93, 1998: Shlosser's
estimator, modified.

F. Dankar, K. El Emam, A. Neisa, T. Roffey, "Estimating the re-identification risk of clinical data sets", BMC
Medical Informatics and Decision Making 12:66, 2012: which estimate to trust.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from sfumato import _check
from sfumato.anonymity.risk.pitman import fit_pitman, pitman_uniques
from sfumato.anonymity.risk.slide_negative_binomial import fit_slide_negative_binomial

__all__ = ["PopulationUniqueness", "population_uniqueness", "zayatz_uniques"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PopulationUniqueness:
    """Estimates of how many people are unique in the population; None where a model does not fit the sample.

    Parameters
    ----------
    population_size : int
    pitman, zayatz, slide_negative_binomial : float or None
        Each model's number of people who are unique.
    chosen : str
        The model whose estimate the rule of Dankar et al. takes.
    """

    population_size: int
    pitman: float | None
    zayatz: float
    slide_negative_binomial: float | None
    chosen: str

    @property
    def uniques(self) -> float:
        """The estimate that the rule of Dankar et al. takes."""
        return float(getattr(self, self.chosen))

    @property
    def fraction(self) -> float:
        """The same as a fraction of the population."""
        return self.uniques / self.population_size


def population_uniqueness(sizes: NDArray[np.int64], population_size: int) -> PopulationUniqueness:
    """Return the estimates of all models, and the one to trust.

    Parameters
    ----------
    sizes : int64 array
        The rows of each class of the sample, a simple random one without replacement.
    population_size : int
        At least the rows of the sample.

    Returns
    -------
    PopulationUniqueness
        Chosen as Dankar et al. do: for samples of at most a tenth, Pitman's, or Zayatz's where it does not
        fit; for larger ones the smaller of the slide negative binomial's and Zayatz's.

    Raises
    ------
    ParameterError
        If the population is smaller than the sample.
    """
    rows = int(sizes.sum())
    _check.integer("population_size", population_size, minimum=rows, remedy="count the sample in")
    singles = int(np.count_nonzero(sizes == 1))
    if rows == population_size or not singles:
        exact = float(singles)
        return PopulationUniqueness(
            population_size=population_size,
            pitman=exact,
            zayatz=exact,
            slide_negative_binomial=exact,
            chosen="zayatz",
        )
    zayatz = zayatz_uniques(sizes, population_size)
    fitted = fit_pitman(sizes)
    pitman = None if fitted is None else pitman_uniques(*fitted, population_size)
    sliding = fit_slide_negative_binomial(sizes, population_size)
    slide = None if sliding is None else sliding.uniques
    if 10 * rows <= population_size:
        chosen = "zayatz" if pitman is None else "pitman"
    else:
        chosen = "zayatz" if slide is None or zayatz < slide else "slide_negative_binomial"
    return PopulationUniqueness(
        population_size=population_size,
        pitman=pitman,
        zayatz=zayatz,
        slide_negative_binomial=slide,
        chosen=chosen,
    )


def zayatz_uniques(sizes: NDArray[np.int64], population_size: int) -> float:
    """Return Zayatz's estimate: sample uniques by the chance that such a one is unique in the population.

    That chance is Bayes' rule with the sizes of the sample's classes as prior of the population's.

    Parameters
    ----------
    sizes : int64 array
        The rows of each class of the sample.
    population_size : int
        Above the rows of the sample.

    Returns
    -------
    float
        The number of people who are unique.
    """
    rows = int(sizes.sum())
    size, many = np.unique(sizes, return_counts=True)
    # Hypergeometric: exactly one of `size` people of a population is among `rows` that are drawn.
    rest = population_size - rows
    fits = size - 1 <= rest
    size, many = size[fits], many[fits]
    log_one = (
        np.log(size) + math.log(rows) + _log_falling(rest, size - 1) - _log_falling(population_size, size)
    )
    singly = many * np.exp(log_one)
    unique = float(singly[0] / singly.sum())
    return int(np.count_nonzero(sizes == 1)) * unique * population_size / rows


def _log_falling(n: int, k: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the logarithms of n (n - 1) ... (n - k + 1)."""
    found: NDArray[np.float64] = gammaln(n + 1) - gammaln(n + 1 - k)
    return found
