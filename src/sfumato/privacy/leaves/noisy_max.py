"""Report noisy max: noise is added to every score, and only the index of the largest is released."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum, unique
from fractions import Fraction
from typing import final

from sfumato import _check
from sfumato._wire import BOOLEAN, NUMBER, Names
from sfumato.privacy.leaves.bounded import BoundedLeaf
from sfumato.privacy.leaves.declared import PureDP
from sfumato.privacy.leaves.exponential import Exponential
from sfumato.privacy.leaves.leaf import Leaf
from sfumato.privacy.neighboring import RELATION, Neighboring
from sfumato.privacy.serialization import serialized_as

__all__ = ["MaxNoise", "ReportNoisyMax"]


@unique
class MaxNoise(Enum):
    """The noise that is added to each score before the index of the largest is released.

    Attributes
    ----------
    GUMBEL
        Selects as the exponential mechanism does.
    EXPONENTIAL
        Selects as permute-and-flip does.
    LAPLACE
        The choice of most textbooks.

    Examples
    --------
    >>> from sfumato.privacy import ReportNoisyMax
    >>> ReportNoisyMax(4.0, noise=MaxNoise.GUMBEL, monotone=True).pure().epsilon
    0.25
    """

    GUMBEL = "gumbel"
    EXPONENTIAL = "exponential"
    LAPLACE = "laplace"

    def __repr__(self) -> str:
        return f"MaxNoise.{self.name}"


_NOISE = Names(
    "a noise",
    {"gumbel": MaxNoise.GUMBEL, "exponential": MaxNoise.EXPONENTIAL, "laplace": MaxNoise.LAPLACE},
)


@final
@serialized_as(
    "report-noisy-max", noise_multiplier=NUMBER, noise=_NOISE, monotone=BOOLEAN, neighboring=RELATION
)
@dataclass(frozen=True, slots=True, repr=False)
class ReportNoisyMax(BoundedLeaf):
    r"""The index of the largest of several scores after independent noise; no score is released.

    Parameters
    ----------
    noise_multiplier : float
        Scale of the noise over the sensitivity: the bound on how far one unit moves any score. 0 is no noise.
    noise : MaxNoise
    monotone : bool
        Whether between any two neighbors all scores move in the same direction, as counts do under add/remove
        and under zero-out. The noise then costs half.
    neighboring : Neighboring
        The relation that the sensitivity is about.

    Raises
    ------
    ParameterError
        If ``monotone`` is claimed under replace-one: there a unit's records go and others come, so that some
        counts fall while others rise.

    Notes
    -----
    Guarantee: let :math:`\epsilon` be 2 over the noise multiplier, or 1 over it for monotone scores. The
    candidates are fixed before the data is seen; the noisy scores stay secret (a noisy value of the winner
    needs fresh noise and its own loss).

    *Gumbel noise* of scale :math:`b` names a candidate with probability proportional to
    :math:`e^{\text{score}/b}`: the views are those of `Exponential`. The changes of the scores lie in
    :math:`[-\Delta, \Delta]`, or in an interval of length :math:`\Delta` if monotone.

    *Exponential or Laplace noise*: pure DP alone. Given all noise but that of candidate :math:`i`, it wins if
    its noise exceeds :math:`r`, the largest other noisy score less its own score; on the neighbor, if it
    exceeds a value of at most :math:`r + 2\Delta`, or of at most :math:`r + \Delta` if both parts of
    :math:`r` move in one direction. Both distributions have :math:`P(Z \ge r + kb) \ge e^{-k} P(Z \ge r)` for
    all :math:`r` and :math:`k \ge 0`. Averaging over the other noise ends the proof. Discrete Laplace noise
    on whole scores has it for whole :math:`r` and :math:`kb`; what is largest together is put in a random
    order.

    References
    ----------
    Dwork, Roth (2014), report noisy max, for Laplace; McKenna, Sheldon (2020), permute-and-flip, and Ding,
    Kifer, Sayed, Steinke, Wang, Xiao, Zhang (2021), its identity with exponential noise; Durfee, Rogers
    (2019), Gumbel noise.

    Examples
    --------
    >>> ReportNoisyMax(4.0).epsilon(0.0), ReportNoisyMax(4.0, monotone=True).epsilon(0.0)
    (0.5, 0.25)
    """

    noise_multiplier: float
    noise: MaxNoise = field(default=MaxNoise.GUMBEL, kw_only=True)
    monotone: bool = field(default=False, kw_only=True)
    neighboring: Neighboring = field(default=Neighboring.ADD_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        self._set_rounded("noise_multiplier", self.noise_multiplier, up=False)
        self._set_relation(self.neighboring)
        _check.instance("noise", self.noise, MaxNoise, "pass MaxNoise.GUMBEL or another")
        self._set_monotone(self.monotone)

    @property
    def _views(self) -> Leaf:
        """Return `Exponential` for Gumbel noise, else `PureDP`."""
        epsilon = self.pure().epsilon
        return Exponential(epsilon) if self.noise is MaxNoise.GUMBEL else PureDP(epsilon)

    def pure_epsilon(self) -> float | Fraction:
        """Return 2 over the noise multiplier, or 1 over it for monotone scores.

        Returns
        -------
        float or Fraction
            The epsilon of `pure`: exact as a Fraction, rounded up as a float.
        """
        noise = Fraction(self.noise_multiplier)
        return (1 if self.monotone else 2) / noise if noise else math.inf
