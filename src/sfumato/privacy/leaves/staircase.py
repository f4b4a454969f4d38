"""Staircase noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import final

import numpy as np

from sfumato import _check
from sfumato._wire import NUMBER
from sfumato.privacy.leaves.three_losses import ThreeLosses
from sfumato.privacy.neighboring import RELATION, Neighboring
from sfumato.privacy.serialization import serialized_as

__all__ = ["Staircase"]


@final
@serialized_as("staircase", epsilon=NUMBER, gamma=NUMBER, neighboring=RELATION)
@dataclass(frozen=True, slots=True, repr=False, init=False)
class Staircase(ThreeLosses):
    r"""Staircase noise on one number that moves by at most one sensitivity.

    Parameters
    ----------
    epsilon : float
        Each step of the noise's density is :math:`e^{-\epsilon}` times the one before; positive.
    gamma : float
        Where the first step ends, in sensitivities: from 0 to 1. By default :math:`1/(1 + e^{\epsilon/2})`,
        which has the smallest expected magnitude of noise.
    neighboring : Neighboring
        The relation that the sensitivity is about.

    Notes
    -----
    In units of the sensitivity the density at :math:`x` is :math:`a e^{-n\epsilon}`, where :math:`n` is 0 for
    :math:`|x| < \gamma` and rises by one at :math:`\gamma, \gamma + 1, \dots`; :math:`a = (1 - e^{-\epsilon})
    / 2(\gamma + e^{-\epsilon}(1 - \gamma))`.

    Guarantee: exact, for a shift of one sensitivity. A shift :math:`d \le 1` changes :math:`n` by at most
    one, so the losses are 0 and :math:`\pm\epsilon`, of masses :math:`p_+` and :math:`p_- = e^{-\epsilon}p_+`
    by symmetry; the profile is :math:`p_+ (1 - e^{\epsilon' - \epsilon})` and so rises with :math:`p_+`. The
    density is even and falls away from 0, so the total variation :math:`p_+ - p_-` is the mass of
    :math:`|x| \le d/2`: it rises with the shift, and the shift of one dominates all. There, :math:`p_+ =
    1/2 + a \min(\gamma, 1 - \gamma)`, and :math:`p_0 = a |1 - 2\gamma|`, times :math:`e^{-\epsilon}` if
    :math:`\gamma < 1/2`.

    References
    ----------
    Geng, Viswanath (2014), "The optimal mechanism in differential privacy"; Geng, Kairouz, Oh, Viswanath
    (2015), "The staircase mechanism in differential privacy".

    Examples
    --------
    >>> Staircase(1.0).epsilon(0.0)
    1.0
    """

    _epsilon: float
    gamma: float
    neighboring: Neighboring = field(kw_only=True)

    def __init__(
        self,
        epsilon: float,
        gamma: float | None = None,
        *,
        neighboring: Neighboring = Neighboring.ADD_REMOVE,
    ) -> None:
        _check.positive("epsilon", epsilon, "without steps there is no noise")
        self._set_rounded("_epsilon", epsilon, up=True)
        best = math.exp(-self._epsilon / 2) / (1 + math.exp(-self._epsilon / 2))
        remedy = "leave it out for the best one"
        fraction = best if gamma is None else _check.share("gamma", gamma, remedy)
        self._set("gamma", fraction + 0.0)
        self._set_relation(neighboring)

    def _masses(self) -> tuple[float, float]:
        epsilon, gamma = self._epsilon, self.gamma
        with np.errstate(divide="ignore"):
            log_gamma, log_rest = np.log(gamma), np.log1p(-gamma)
            log_middle = np.log(abs(1 - 2 * gamma))
        log_half = math.log(-math.expm1(-epsilon)) - math.log(2)
        # The masses beside the largest loss's half, without a difference of two large numbers.
        if gamma < 0.5:
            log_beside = log_half - float(np.logaddexp(0.0, log_rest - epsilon - log_gamma))
            height = log_half - float(np.logaddexp(log_gamma + epsilon, log_rest))
        else:
            height = log_half - float(np.logaddexp(log_gamma, log_rest - epsilon))
            log_beside = height + float(log_rest)
        return math.log(0.5 + math.exp(log_beside)), float(log_middle) + height
