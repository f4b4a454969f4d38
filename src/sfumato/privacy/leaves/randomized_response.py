"""Randomized response over any number of categories."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final, final

import numpy as np

from sfumato import _check
from sfumato._wire import INTEGER, NUMBER
from sfumato.privacy.leaves.three_losses import ThreeLosses
from sfumato.privacy.neighboring import RELATION, Neighboring
from sfumato.privacy.pairs.shuffling.blanket import Blanket
from sfumato.privacy.serialization import serialized_as

__all__ = ["RandomizedResponse"]

_MAXIMUM: Final = 2**53


@final
@serialized_as("randomized-response", epsilon=NUMBER, categories=INTEGER, neighboring=RELATION)
@dataclass(frozen=True, slots=True, repr=False, init=False)
class RandomizedResponse(ThreeLosses):
    r"""A category that is reported truly, or exchanged for another one drawn evenly.

    Parameters
    ----------
    epsilon : float
        The truth is :math:`e^\epsilon` times as likely as each other category; non-negative.
    categories : int
        How many there are, at least 2.
    neighboring : Neighboring
        The relation under which the category may be any other one.

    Notes
    -----
    Guarantee: exact, the pair of the reports of two different categories. With :math:`D = e^\epsilon
    + k - 1` the loss is :math:`\pm\epsilon` on the two, with the P-masses :math:`e^\epsilon/D` and
    :math:`1/D`, and 0 on the :math:`k - 2` others. Condition: that there is a report shows nothing. Each
    unit's own report is protected under replace-one (and zero-out, if the neutral value is a category), not
    under add/remove, where it appears or disappears; state add/remove for a category of the whole dataset
    only.

    References
    ----------
    Warner (1965), two categories; Kairouz, Bonawitz, Ramage (2016), "Discrete distribution estimation under
    local privacy", any number.

    Examples
    --------
    >>> RandomizedResponse(1.0, categories=10).epsilon(0.0)
    1.0
    """

    _epsilon: float
    categories: int
    neighboring: Neighboring = field(kw_only=True)

    def __init__(
        self, epsilon: float, categories: int = 2, *, neighboring: Neighboring = Neighboring.REPLACE_ONE
    ) -> None:
        self._set_rounded("_epsilon", epsilon, up=True)
        remedy = "one category needs no report"
        self._set("categories", _check.integer("categories", categories, minimum=2, remedy=remedy))
        if self.categories > _MAXIMUM:
            _check.refuse("categories", "be at most 2**53", categories, "hash them to fewer")
        self._set_relation(neighboring)

    def blanket(self) -> Blanket:
        r"""Return the uniform distribution, which a report is from with probability :math:`k/D`.

        Returns
        -------
        Blanket
            That distribution, for the amplification by shuffling.
        """
        return Blanket(self._epsilon, 1 / self.categories)

    def _masses(self) -> tuple[float, float]:
        top = -float(np.logaddexp(0.0, math.log(self.categories - 1) - self._epsilon))
        others = self.categories - 2
        return top, math.log(others) - self._epsilon + top if others else -math.inf
