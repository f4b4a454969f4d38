"""How many runs a search makes: the distribution of a number that stays secret."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, final

from sfumato import _check
from sfumato.privacy.leaves.declared import PureDP
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.nodes.random_stopping import PoissonStopping, RandomStopping

__all__ = ["Runs"]

_MAX_MEAN: Final = 1e9


@final
@dataclass(frozen=True, slots=True)
class Runs:
    r"""The distribution of the number of runs; made by one of the constructors.

    Parameters
    ----------
    mean : float
        The mean number of runs, above 1 (for a Poisson distribution above 0).
    shape : float or None
        :math:`\eta` of the truncated negative binomial distribution; None is the Poisson distribution.

    Notes
    -----
    Guarantee: none by itself; `loss` is the loss of the best run (Papernot, Steinke 2022). The smaller the
    shape the cheaper the search and the larger the variance of the number of runs: 1 is geometric, 0 the
    logarithmic one. The Poisson distribution is the most even, and cheap where one run's delta at a small
    epsilon is tiny; it makes no run at all with probability :math:`e^{-\mu}`.

    Examples
    --------
    >>> from sfumato.privacy import PureDP, ZCDP
    >>> round(Runs.geometric(10).loss(PureDP(0.1)).epsilon(0.0), 9)
    0.3
    >>> one, best = ZCDP(0.005), Runs.logarithmic(10).loss(ZCDP(0.005))
    >>> round(one.epsilon(1e-6), 2), round(best.epsilon(1e-6), 2)
    (0.43, 0.74)
    """

    mean: float
    shape: float | None = 1.0

    def __post_init__(self) -> None:
        remedy = "pass the mean number of runs"
        mean = _check.positive("mean", self.mean, remedy)
        if not (0.0 if self.shape is None else 1.0) < mean <= _MAX_MEAN:
            rule = "be above 1, and at most 1e9" if self.shape is not None else "be at most 1e9"
            _check.refuse("mean", rule, self.mean, remedy)
        object.__setattr__(self, "mean", mean)
        if self.shape is not None:
            shape = _check.finite("shape", self.shape)
            if not -1 < shape <= 100:
                remedy = "1 is the geometric distribution"
                _check.refuse("shape", "be above -1, and at most 100", shape, remedy)
            object.__setattr__(self, "shape", shape)

    @classmethod
    def geometric(cls, mean: float) -> Runs:
        """Stop after each run with one probability (Liu, Talwar 2019).

        Parameters
        ----------
        mean : float
            The mean number of runs.

        Returns
        -------
        Runs
        """
        return cls(mean, 1.0)

    @classmethod
    def logarithmic(cls, mean: float) -> Runs:
        """Return the cheaper distribution of the two that are used most.

        Parameters
        ----------
        mean : float
            The mean number of runs.

        Returns
        -------
        Runs
        """
        return cls(mean, 0.0)

    @classmethod
    def negative_binomial(cls, mean: float, shape: float) -> Runs:
        """Return a truncated negative binomial distribution.

        Parameters
        ----------
        mean : float
            The mean number of runs.
        shape : float
            Of the distribution: the smaller, the cheaper the search.

        Returns
        -------
        Runs
        """
        return cls(mean, shape)

    @classmethod
    def poisson(cls, mean: float) -> Runs:
        """Return the Poisson distribution, which may make no run.

        Parameters
        ----------
        mean : float
            The mean number of runs.

        Returns
        -------
        Runs
        """
        return cls(mean, None)

    def loss(self, base_loss: PrivacyLoss) -> RandomStopping | PoissonStopping:
        """Return the loss of the best run.

        Parameters
        ----------
        base_loss : PrivacyLoss
            Of one run: of all that it releases, its score too.

        Returns
        -------
        RandomStopping or PoissonStopping
        """
        if self.shape is None:
            return PoissonStopping(base_loss, self.mean)
        return RandomStopping(base_loss, self.shape, self.stopping_probability)

    @property
    def stopping_probability(self) -> float:
        """Of a negative binomial with this mean, to 15 digits or so; the loss is of what is drawn."""
        if self.shape == 1.0:
            return 1 / self.mean
        shape = 1.0 if self.shape is None else self.shape
        low, high = math.log(1e-18), -1e-15
        wanted = math.log(self.mean)
        for _ in range(80):
            middle = (low + high) / 2
            longer = RandomStopping(PureDP(0.0), shape, math.exp(middle)).log_mean > wanted
            low, high = (middle, high) if longer else (low, middle)
        return math.exp(high)
