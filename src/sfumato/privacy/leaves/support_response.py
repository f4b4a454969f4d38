"""Local reports that are likelier where they support the truth, such as unary encoding."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

import numpy as np

from sfumato import _check
from sfumato._wire import NUMBER, RATIONAL, Field
from sfumato.privacy.leaves.three_losses import ThreeLosses
from sfumato.privacy.neighboring import RELATION, Neighboring
from sfumato.privacy.pairs.shuffling.blanket import Blanket
from sfumato.privacy.serialization import serialized_as

__all__ = ["SupportResponse"]


@final
@serialized_as(
    "support-response",
    epsilon=NUMBER,
    probability=Field("chance", RATIONAL),
    overlap=RATIONAL,
    neighboring=RELATION,
)
@dataclass(frozen=True, slots=True, repr=False, init=False)
class SupportResponse(ThreeLosses):
    r"""A report from a common distribution, :math:`e^\epsilon` times as likely if it supports the truth.

    Parameters
    ----------
    epsilon : float
        Non-negative.
    chance : int, float or Fraction
        Probability, under the shared distribution, that a report supports a given datum: the same for each,
        above 0 and at most 1/2.
    overlap : int, float or Fraction
        Smallest probability, under that distribution, that it supports both of two given data; below
        ``chance``. 0 is always right, and more is tighter.
    neighboring : Neighboring
        The relation under which the datum may be any other one.

    Notes
    -----
    Guarantee: exact, the pair of the reports of two data whose supports overlap as stated. Let :math:`\omega`
    be the shared distribution, :math:`S_x` the reports that support x, a and c the two probabilities,
    :math:`g = e^\epsilon - 1`. A report of x has the distribution :math:`\gamma (1 + g 1_{S_x}) \omega` with
    :math:`\gamma = 1/(1 + ga)`. Between x and x' the loss is :math:`\epsilon` on
    :math:`S_x \setminus S_{x'}`, of P-mass :math:`\gamma e^\epsilon (a - c)`, :math:`-\epsilon` on
    :math:`S_{x'} \setminus S_x` and 0 elsewhere; data that overlap more are dominated, their pair being a
    mixture of that one and of no loss. Unary encodings, subset selection, Hadamard and projective geometry
    response are of this kind; so is `RandomizedResponse`, with chance 1/k and no overlap. Relations are as
    there.

    *Shuffled.* The shared distribution is a blanket for sets that are disjoint, and for those that are not:
    the pair of `sfumato.privacy.pairs.shuffling.blanket` with overlaps is dominated by that without. The
    hockey-stick divergence is the mean of :math:`(k + \sum_j Z_j)_+` over independent reports from
    :math:`\omega`, with a constant k and :math:`Z_j` proportional to :math:`1_{S_x} - e^{\varepsilon'}
    1_{S_{x'}}`. An overlap moves the mass 2c from the values 1 and :math:`-e^{\varepsilon'}`, in halves, to
    their sum and 0, which lie between them: so :math:`Z_j` without overlap is greater in convex order, and
    sums of independent terms preserve that order. That :math:`2a \le 1` leaves room for disjoint sets.

    References
    ----------
    Wang, Blocki, Li, Jha (2017), "Locally differentially private protocols for frequency estimation", pure
    protocols; Balle, Bell, Gascón, Nissim (2019), the blanket.

    Examples
    --------
    >>> loss = SupportResponse(1.0, Fraction(1, 4), overlap=Fraction(1, 16))
    >>> loss.epsilon(0.0), round(loss.epsilon(0.1), 4)
    (1.0, 0.6708)
    """

    _epsilon: float
    chance: Fraction
    overlap: Fraction
    neighboring: Neighboring = field(kw_only=True)

    def __init__(
        self,
        epsilon: float,
        chance: float | Fraction,
        overlap: float | Fraction = 0,
        *,
        neighboring: Neighboring = Neighboring.REPLACE_ONE,
    ) -> None:
        self._set_rounded("_epsilon", epsilon, up=True)
        self._set_exact("chance", chance)
        self._set_exact("overlap", overlap)
        if not 0 < self.chance <= Fraction(1, 2):
            _check.refuse(
                "chance", "be above 0 and at most 1/2", chance, "a support is no majority of reports"
            )
        if self.overlap >= self.chance:
            _check.refuse("overlap", "be below chance", overlap, "pass 0, which is always right")
        self._set_relation(neighboring)

    def blanket(self) -> Blanket:
        r"""Return the shared distribution, which a report is from with probability :math:`\gamma`.

        Returns
        -------
        Blanket
            That distribution, for the amplification by shuffling.
        """
        return Blanket(self._epsilon, float(self.chance))

    def _masses(self) -> tuple[float, float]:
        epsilon, chance = self._epsilon, self.chance
        weight = float(np.logaddexp(math.log1p(-chance), math.log(chance) + epsilon))
        top = epsilon + math.log(chance - self.overlap) - weight
        rest = 1 - 2 * chance
        middle = math.log(rest) if rest else -math.inf
        if self.overlap:
            middle = float(np.logaddexp(middle, math.log(self.overlap) + np.logaddexp(0.0, epsilon)))
        return top, middle - weight
