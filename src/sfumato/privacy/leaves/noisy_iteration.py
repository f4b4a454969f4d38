"""Noisy gradient descent that releases its last iterate only: amplification by iteration."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final, final

from sfumato._wire import INTEGER, NUMBER
from sfumato.errors import NeighboringMismatch
from sfumato.numerics.rounding import div_down
from sfumato.privacy._outward import above
from sfumato.privacy.leaves.leaf import ConcentratedLeaf
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import RELATION, Neighboring
from sfumato.privacy.pairs.noise.normal import NormalPair
from sfumato.privacy.pairs.pair import Pair, two_points
from sfumato.privacy.pairs.wrapped import LoosePair
from sfumato.privacy.serialization import serialized_as
from sfumato.privacy.views import GDPView, ZCDPView

__all__ = ["NoisyIteration"]

_MAXIMUM: Final = 10**15


@final
@serialized_as("noisy-iteration", noise_multiplier=NUMBER, steps_after=INTEGER, neighboring=RELATION)
@dataclass(frozen=True, slots=True, repr=False)
class NoisyIteration(ConcentratedLeaf):
    r"""Noisy projected gradient descent, seen through its last iterate, for a record that one step uses.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise on each entry of each step's gradient, over the largest norm of what
        one record adds to a step's gradient; 0 is no noise.
    steps_after : int
        How many noisy steps follow, at least, the only step that uses the record. A run of n steps, each on
        records of its own, has this loss for those of the first ``n - steps_after`` steps; for all records,
        it is that of 0 steps after.
    neighboring : Neighboring
        Replace-one, where a record's gradient is exchanged for any other, or zero-out, where it becomes 0.

    Notes
    -----
    Guarantee: :math:`2/(z\sqrt m)`-Gaussian DP under replace-one and :math:`1/(z\sqrt m)` under zero-out,
    with :math:`m` one more than the steps after and z the noise multiplier; an upper bound. Conditions:

    - only the last iterate is released, and which step uses the record does not depend on the data;
    - the step size is the same throughout, or never falls;
    - each later step's loss is convex and beta-smooth, and the step size at most 2/beta;
    - projections are onto convex sets;
    - norms are bounded by the losses themselves: a clipped gradient need not be that of a convex loss.

    Add/remove is refused: with one record less the steps are others, or fewer.

    *Proof.* With the projection of the step before, :math:`X_j = \phi_j(X_{j-1}) + Z_j`, where
    :math:`\phi_j` does not expand distances after the record's step (projections don't, nor do gradient steps
    up to 2/beta) and moves by at most s where it uses the record; both runs are equal before. Number the
    steps from there 1 to m, let :math:`X'` be the other run, with the maps :math:`\phi'_j`, :math:`\tilde
    X_0 = X_0 = X'_0`, and :math:`\tilde X_j = \phi_j(\tilde X_{j-1}) + V_j + Z_j` with the shift :math:`V_j =
    (\phi'_j(X'_{j-1}) - \phi_j(\tilde X_{j-1}))/(m + 1 - j)` and the noise of :math:`X'_j`. By induction
    :math:`\|\tilde X_j - X'_j\| \le s(1 - j/m)` and :math:`\|V_j\| \le s/m`; and :math:`\tilde X_m = X'_m`.
    Given :math:`\tilde X_{j-1}`, the shift is hidden and random. For each value v of it there is a channel
    (scale, add noise, turn) that takes N(0, 1) to N(0, I) and N(s/m, 1) to N(v, I), in units of the noise;
    their mean over v takes the two normal distributions to the step's two distributions. So :math:`X_m` and
    :math:`\tilde X_m` are no farther apart than m Gaussian steps of :math:`s/m`, adaptively composed:
    :math:`\sqrt m\,s/m = s/\sqrt m` (Dong, Roth, Su 2022). The step size scales s and the noise alike.
    Constant losses after the record's step attain it.

    References
    ----------
    Feldman, Mironov, Talwar, Thakurta (2018), "Privacy amplification by iteration", in Rényi DP; Bok, Su,
    Altschuler (2024), "Shifted interpolation for differential privacy", in Gaussian DP.

    Examples
    --------
    >>> round(NoisyIteration(4.0, steps_after=0).epsilon(1e-6), 4)
    2.2541
    >>> round(NoisyIteration(4.0, steps_after=99).epsilon(1e-6), 4)
    0.1892
    """

    noise_multiplier: float
    steps_after: int
    neighboring: Neighboring = field(default=Neighboring.REPLACE_ONE, kw_only=True)

    def __post_init__(self) -> None:
        self._set_rounded("noise_multiplier", self.noise_multiplier, up=False)
        remedy = "pass how many steps follow the one that used the record"
        self._set_integers("steps_after", minimum=0, remedy=remedy)
        self._set_relation(self.neighboring)
        if self.neighboring is Neighboring.ADD_REMOVE:
            raise NeighboringMismatch(
                f"neighboring must be replace-one or zero-out, got {self.neighboring}; a record less changes "
                "how many steps there are: state the loss of a record that is exchanged"
            )

    def gdp(self) -> GDPView:
        """Return the parameter of the theorem.

        Returns
        -------
        GDPView
            Upper bounds: mu, and the mass delta outside which it holds.
        """
        shift = 2.0 if self.neighboring is Neighboring.REPLACE_ONE else 1.0
        noise, steps = self.noise_multiplier, math.sqrt(min(self.steps_after, _MAXIMUM) + 1)
        return GDPView(above(shift / noise / steps, 8.0) if noise > 0 else math.inf, 0.0)

    def zcdp(self) -> ZCDPView:
        """Return half the square of mu.

        Returns
        -------
        ZCDPView
            Upper bounds: rho, and the mass delta outside which it holds.
        """
        mu = self.gdp().mu
        return ZCDPView(above(0.5 * mu * mu, 4.0), 0.0)

    def dominating_pair(self) -> Pair:
        """Return two normal distributions, which only dominate.

        Returns
        -------
        Pair
            Distributions P and Q whose divergences bound those of the outputs on any two neighbors.
        """
        mu = self.gdp().mu
        return LoosePair(NormalPair(mu) if mu < math.inf else two_points(mu))

    def _chained(self, steps: int, relation: Neighboring) -> PrivacyLoss:
        shift = 1.0 if relation is self.neighboring else 2.0
        return NoisyIteration(
            div_down(shift * self.noise_multiplier, float(steps)), self.steps_after, neighboring=relation
        )
