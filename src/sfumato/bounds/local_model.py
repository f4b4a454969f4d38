"""A proportion in the local and in the central model, by exact formulas."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from sfumato import _check
from sfumato.numerics.distributions.discrete import DiscreteLaplaceDistribution
from sfumato.numerics.rounding import (
    add_down,
    add_up,
    div_down,
    div_up,
    expm1_up,
    fraction_up,
    mul_up,
    sqrt_up,
)

__all__ = ["ModelComparison", "local_against_central"]

_MOST: Final = 1 << 53
_LEAST: Final = 2.0**-40


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ModelComparison:
    """The standard error of a population's proportion of a half, in both models.

    Parameters
    ----------
    rows : int
    epsilon : float
    local : float
        No unbiased estimate from local reports has less; rounded down. Randomized response reaches it.
    central : float
        What the exact count with discrete Laplace noise has; rounded up.
    sampling : float
        What the sample has without any privacy.
    mechanisms : str
        The class that ``local`` holds for.
    theorem : str
        What proves it.

    Examples
    --------
    >>> found = local_against_central(rows=10_000, epsilon=1.0)
    >>> round(found.local, 4), round(found.central, 4), round(found.sampling, 4)
    (0.0108, 0.005, 0.005)
    """

    rows: int
    epsilon: float
    local: float
    central: float
    sampling: float
    mechanisms: str = "unbiased estimates from a report of each bit, sequentially interactive"
    theorem: str = "Fisher information of local reports (Barnes, Chen and Ozgur 2020)"


def local_against_central(*, rows: int, epsilon: float) -> ModelComparison:
    r"""Compare the local model's best standard error of a proportion with a central mechanism's.

    Parameters
    ----------
    rows : int
        Independent draws of a bit, each one unit.
    epsilon : float
        Pure: of each report in the local model, of the count under adding or removing one in the central one.

    Returns
    -------
    ModelComparison

    Raises
    ------
    ParameterError
        If ``rows`` is not from 1 to 2**53, or epsilon is below 2**-40.

    Notes
    -----
    Guarantee: at a proportion of one half. A report y has likelihoods a and b under the two bits, with a
    ratio of at most :math:`e^\epsilon`, so :math:`|a - b|/(a + b) \le t = \tanh(\epsilon/2)`, and its Fisher
    information :math:`\sum_y (a - b)^2 / ((a + b)/2) \le 4 t^2`. Reports add, also if each randomizer depends
    on earlier reports: the standard error is at least :math:`1/(2 t \sqrt n)`. Centrally it is
    :math:`\sqrt{1/4n + \sigma^2/n^2}` for a count with noise of deviation :math:`\sigma` and a public n.

    References
    ----------
    Warner (1965), "Randomized response"; Barnes, Chen, Ozgur (2020), "Fisher information under local
    differential privacy"; Duchi, Jordan, Wainwright (2018), "Minimax optimal procedures for locally private
    estimation".

    Examples
    --------
    >>> found = local_against_central(rows=100, epsilon=0.5)
    >>> found.local > found.central > found.sampling
    True
    """
    rows = _check.integer("rows", rows, minimum=1)
    if rows > _MOST:
        _check.refuse("rows", "be at most 2**53", rows, "pass fewer")
    epsilon = _check.positive("epsilon", epsilon)
    if epsilon < _LEAST:
        _check.refuse("epsilon", "be at least 2**-40", epsilon, "pass a larger one; no count survives it")
    # tanh(e/2) = (e^e - 1) / (e^e + 1), which rises with e^e - 1.
    grown = expm1_up(epsilon)
    slope = div_up(grown, add_down(grown, 2.0)) if grown < 2.0**60 else 1.0
    count = fraction_up(rows)
    local = div_down(0.5, mul_up(slope, sqrt_up(count)))
    # The deviation is to float accuracy; its allowance is far above.
    noise = DiscreteLaplaceDistribution(scale=1 / Fraction(epsilon)).stddev * (1 + 2.0**-40)
    share = noise / rows * (1 + 2.0**-40)
    central = sqrt_up(add_up(mul_up(share, share), div_up(0.25, float(rows))))
    return ModelComparison(
        rows=rows, epsilon=epsilon, local=local, central=central, sampling=math.sqrt(0.25 / rows)
    )
