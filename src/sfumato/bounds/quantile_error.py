"""The error of a private quantile in ranks, exact for the worst data of any number of rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import ClassVar, Final, Self, final

from sfumato import _check
from sfumato.mechanisms.base.grid import Grid
from sfumato.mechanisms.base.rational import Number
from sfumato.mechanisms.statistics.quantile.quantiles import Quantile
from sfumato.numerics.rounding import fraction_up, log_up
from sfumato.privacy.neighboring import Neighboring

__all__ = ["NoisyQuantile"]

_FINEST: Final = 1 << 15


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyQuantile:
    r"""A quantile by the exponential mechanism on a grid; its error is a share of the rows.

    Parameters
    ----------
    bounds : tuple of two numbers
        Of the answer; two ints mean that answers are whole.
    epsilon : float
        The guarantee; pure.
    quantile : float or Fraction
        Strictly between 0 and 1, with a denominator of at most 2**15; 1/2 is the median.
    grid : Grid, optional
        What answers are a multiple of, as in `sfumato.mechanisms.Quantile`. A grid of fewer points errs less.
    neighboring : Neighboring

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.

    Notes
    -----
    Guarantee: the mechanism's own. The error is how many records lie between the answer and the sample's own
    quantile, as a share of the rows. For a quantile :math:`a/b`, that number times b is a whole gap g, and an
    answer weighs :math:`e^{-rg}` for the mechanism's rate r. Some point has a gap of 0, so that of m points

    .. math:: P(\mathrm{gap} \ge g) \le \frac{(m - 1) e^{-rg}}{1 + (m - 1) e^{-rg}},

    and the mean of the squared gap is at most the greatest :math:`g^2` times that: it is a ratio of sums over
    points, greatest if all points but one have the same gap. Both are attained, for every gap that n rows
    can have (:math:`bc - an` or its negative, for whole c), by c records at the lower bound and all others at
    the upper one. Gaps of all whole numbers are taken, so that the error never rises with rows; that is less
    than one record above the worst data's.

    A quantile's noise depends on the rows. With a population's quantile x and the sample's own one there are,
    in root mean square, :math:`\sqrt{q (1 - q)/n}` of the rows between these two if the population is
    continuous, and so at most the sum of both between x and the answer (Minkowski).

    References
    ----------
    Smith (2011), "Privacy-preserving statistical estimation with optimal convergence rates"; McSherry, Talwar
    (2007), "Mechanism design via differential privacy".

    Examples
    --------
    >>> from sfumato.bounds import sample_size
    >>> median = NoisyQuantile(bounds=(0, 120), epsilon=0.5)
    >>> median.error(rows=1000, confidence=0.95)
    0.015000000000000001
    >>> sample_size(median, error=0.01)
    1500
    """

    independent: ClassVar[bool] = False

    bounds: tuple[Number, Number]
    epsilon: float
    quantile: Number = Fraction(1, 2)
    grid: Grid | None = None
    neighboring: Neighboring = Neighboring.ADD_REMOVE
    mechanism: Quantile = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        mechanism = Quantile(
            quantile=self.quantile,
            bounds=self.bounds,
            epsilon=_check.positive("epsilon", self.epsilon),
            grid=self.grid,  # type: ignore[arg-type]  # None is for the mechanism's own choice
            neighboring=self.neighboring,
        )
        if mechanism.sampler.target.denominator > _FINEST:
            remedy = "round it: 0.999 for the last of a thousand"
            _check.refuse("quantile", "have a denominator of at most 2**15", self.quantile, remedy)
        object.__setattr__(self, "mechanism", mechanism)

    def error(self, rows: int, confidence: float) -> float:
        """Return the share of the rows between answer and quantile, with that confidence for all data.

        Parameters
        ----------
        rows : int
        confidence : float
            Strictly between 0 and 1.

        Returns
        -------
        float
            Rounded up.
        """
        rows = _check.integer("rows", rows, minimum=1)
        confident = Fraction(
            _check.unit_interval("confidence", confidence, "pass a probability such as 0.95")
        )
        odds = log_up(fraction_up(self._others * confident / (1 - confident)))
        # Gaps are whole, and those of so much or more are rare enough.
        rare = math.ceil(Fraction(odds) / self.mechanism.sampler.rate)
        return fraction_up(Fraction(min(max(0, rare - 1), self._greatest * rows), self._denominator * rows))

    def stddev(self, rows: int) -> float:
        """Return the root of the mean squared share between answer and quantile, for the worst data.

        Parameters
        ----------
        rows : int

        Returns
        -------
        float
            To float accuracy.
        """
        rows = _check.integer("rows", rows, minimum=1)
        rate = float(self.mechanism.sampler.rate)
        gap = Fraction(min(_worst(self._others) / rate, self._greatest * rows))
        probability = 1 / (1 + math.exp(rate * float(gap)) / self._others)
        return math.sqrt(probability) * float(gap / (self._denominator * rows))

    def with_epsilon(self, epsilon: float) -> Self:
        """Return the same quantile at another epsilon.

        Parameters
        ----------
        epsilon : float

        Returns
        -------
        NoisyQuantile
        """
        return replace(self, epsilon=epsilon)

    @property
    def _others(self) -> int:
        """How many points there are beside the quantile."""
        return self.mechanism.sampler.upper - self.mechanism.sampler.lower

    @property
    def _denominator(self) -> int:
        return self.mechanism.sampler.target.denominator

    @property
    def _greatest(self) -> int:
        """The greatest gap, for each row."""
        target = self.mechanism.sampler.target
        return max(target.numerator, target.denominator - target.numerator)


def _worst(others: int) -> float:
    """Return where x squared times the probability of x is greatest, at ``x = 2 (1 + others exp(-x))``."""
    least, most = 2.0, 2.0 + 2.0 * others
    for _ in range(200):
        middle = (least + most) / 2
        if middle < 2 * (1 + others * math.exp(-middle)):
            least = middle
        else:
            most = middle
    return most
