"""Noise and a threshold: private partition selection, and propose-test-release."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, final, runtime_checkable

from sfumato import _check
from sfumato._wire import RATIONAL
from sfumato.numerics.rounding import fraction_up
from sfumato.privacy._outward import sum_above
from sfumato.privacy.accountant import closed_forms
from sfumato.privacy.leaves.leaf import Node
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring, Relation
from sfumato.privacy.pairs.pair import Pair, two_points
from sfumato.privacy.pairs.truncated_loss import TruncatedLossPair
from sfumato.privacy.pairs.wrapped import FailureMassPair
from sfumato.privacy.serialization import LOSS, serialized_as
from sfumato.privacy.views import GDPView, PureView, ZCDPView

__all__ = ["DistanceTest", "ThresholdedSelection", "propose_test_release"]


@runtime_checkable
class _Tailed(Protocol):
    """A loss that knows the noise that it is the loss of."""

    def lone_pass(self, threshold: Fraction) -> float:
        """Bound the chance that one sensitivity plus the noise is at least ``threshold``."""


def _lone_pass(loss: PrivacyLoss, threshold: Fraction) -> float:
    if not isinstance(loss, _Tailed):
        remedy = "pass Gaussian, Laplace, DiscreteGaussian or DiscreteLaplace"
        _check.refuse_type("loss", "be of noise whose tail is known", loss, remedy)
    return loss.lone_pass(threshold)


class _ThresholdedNoise(Node):
    """The loss of noise, and a mass with which everything may be revealed."""

    __slots__ = ()

    loss: PrivacyLoss
    threshold: Fraction

    def __init__(self, loss: PrivacyLoss, threshold: float | Fraction) -> None:
        self._set_part("loss", loss)
        _lone_pass(loss, Fraction(1))
        _check.non_negative("threshold", threshold, "pass the number that a noisy count must reach")
        self._set(
            "threshold",
            _check.fraction("threshold", threshold, "pass the number that a noisy count must reach")
            if threshold
            else Fraction(0),
        )

    @property
    @abstractmethod
    def mass(self) -> float:
        """The probability that the threshold reveals a unit, rounded up."""

    @property
    def neighboring(self) -> Relation | None:
        """That of the noise."""
        return self.loss.neighboring

    def pure(self) -> PureView:
        """Return the noise's epsilon; the masses add."""
        epsilon, delta = self.loss.pure()
        return PureView(epsilon, self._with(delta))

    def zcdp(self) -> ZCDPView:
        """Return the noise's rho; the masses add."""
        rho, delta = self.loss.zcdp()
        return ZCDPView(rho, self._with(delta))

    def gdp(self) -> GDPView:
        """Return the noise's mu; the masses add."""
        mu, delta = self.loss.gdp()
        return GDPView(mu, self._with(delta))

    def dominating_pair(self) -> Pair:
        """Return the noise's pair, and with that probability everything."""
        mass = self.mass
        return FailureMassPair(self.loss.dominating_pair(), mass) if mass < 1 else two_points(0.0, 1.0)

    def split(self) -> tuple[float, closed_forms.Terms]:
        """Return both masses and what is left of the noise."""
        delta, terms = self.loss.split()
        return self._with(delta), terms

    def _with(self, delta: float) -> float:
        return min(1.0, sum_above([self.mass, delta]))


@final
@serialized_as("thresholded-selection", loss=LOSS, threshold=RATIONAL, probability=RATIONAL)
@dataclass(frozen=True, slots=True, repr=False, init=False)
class ThresholdedSelection(_ThresholdedNoise):
    r"""One group's noisy number of units, shown if it is at least a threshold; empty groups are never shown.

    A unit that may be in ``g`` groups costs ``ThresholdedSelection(...) * g`` under add/remove or zero-out,
    and twice as many under replace-one, where it may leave ``g`` groups and enter ``g`` others.

    Parameters
    ----------
    loss : PrivacyLoss
        Of the noise on one group's number of units, which a unit moves by one: `Gaussian` and `Laplace` with
        the noise in units, `DiscreteGaussian` and `DiscreteLaplace` with sensitivity 1.
    threshold : int, float or Fraction
        A group is shown if its noisy number is at least this.
    probability : int, float or Fraction
        Above 0 and at most 1: that of each group's coin which leaves the threshold as it is and does not
        raise it by one.

    Notes
    -----
    Guarantee: the noise's, except for a mass :math:`\delta = p P(1 + Z \ge \tau) + (1 - p) P(1 + Z \ge \tau +
    1)`, :math:`Z` the noise, :math:`\tau` the threshold and p the probability. Conditions: the number counts
    distinct units, not rows; noise and coin are independent, and from group to group; what else is released
    of a group is released only if it is shown, and has its own loss; a group's name is released only if it
    is shown.

    *Proof.* Consider one group. If it has a unit in both datasets, then what is released is computed from its
    noisy number and a coin in both, and the noise's pair dominates. If in one of them it is empty, then
    nothing is released there; in the other it has a single unit, and nothing is released with probability
    :math:`1 - \delta`. The notes of `FailureMassPair` show that its pair dominates both cases, whichever
    dataset has the unit; those of `TruncatedLossPair`, that the greater of both cases does, where it is
    always the same dataset: not under replace-one, where the unit leaves some groups and enters others.
    Groups without the unit have one distribution. So the groups with it compose, whichever case each of them
    is in.

    For one group the divergence is that of the worst two datasets, as counts may be so large that the
    threshold hides nothing; for several groups it is an upper bound.

    References
    ----------
    Korolova, Kenthapadi, Mishra, Ntoulas (2009), "Releasing search queries and clicks privately", the
    threshold for unknown keys; the pair is proven here.

    Examples
    --------
    >>> from sfumato.privacy import DiscreteLaplace
    >>> loss = ThresholdedSelection(DiscreteLaplace(2), 40)
    >>> loss.pure().epsilon, 1e-9 < loss.pure().delta < 3e-9
    (0.5, True)
    """

    loss: PrivacyLoss
    threshold: Fraction
    probability: Fraction

    def __init__(
        self, loss: PrivacyLoss, threshold: float | Fraction, probability: float | Fraction = 1
    ) -> None:
        _ThresholdedNoise.__init__(self, loss, threshold)
        remedy = "pass 1 for a threshold without a coin"
        exact = _check.fraction("probability", probability, remedy)
        if exact > 1:
            _check.refuse("probability", "be at most 1", probability, remedy)
        self._set("probability", exact)

    @property
    def mass(self) -> float:
        """The probability that a group of a single unit is shown, rounded up."""
        at = Fraction(_lone_pass(self.loss, self.threshold))
        if self.probability == 1:
            return float(at)
        above = Fraction(_lone_pass(self.loss, self.threshold + 1))
        return fraction_up(self.probability * at + (1 - self.probability) * above)

    def dominating_pair(self) -> Pair:
        """Return the greater of the noise's divergences and of the mass, which is exact for one group.

        Returns
        -------
        Pair
            Distributions P and Q whose divergences bound those of the outputs on any two neighbors.
        """
        noise, mass = self.loss.dominating_pair(), self.mass
        if not 0 < mass < 1 or not noise.symmetric or self.neighboring is Neighboring.REPLACE_ONE:
            return _ThresholdedNoise.dominating_pair(self)
        return TruncatedLossPair(noise, mass)


@final
@serialized_as("distance-test", loss=LOSS, threshold=RATIONAL)
@dataclass(frozen=True, slots=True, repr=False, init=False)
class DistanceTest(_ThresholdedNoise):
    r"""A noisy distance to instability that gates a release: the "test" of propose-test-release.

    Parameters
    ----------
    loss : PrivacyLoss
        Of the noise on the distance, which a unit moves by at most one.
    threshold : int, float or Fraction
        The noisy distance must reach it for the release to run.

    Notes
    -----
    Guarantee: together with the loss of the release, that of propose-test-release; the noisy distance may be
    released. A bound :math:`b` is proposed; the distance of a dataset is the smallest number of neighboring
    steps from it to a dataset whose local sensitivity exceeds :math:`b` (0 if its own does), under the same
    relation. The release behind the test is calibrated to the sensitivity :math:`b`.

    *Proof.* If the answers on two neighbors differ by at most :math:`b`, then the test, whose distance moves
    by at most 1, and the release compose. Otherwise both local sensitivities exceed :math:`b`, both distances
    are 0, the noisy distance has one distribution, and with probability at least :math:`1 - \delta`,
    :math:`\delta = P(Z \ge \tau)`, nothing else is released on either. Both cases are dominated by the
    composition of the noise's pair, a mass of total failure :math:`\delta` and the release's pair, by the
    notes of `FailureMassPair`.

    References
    ----------
    Dwork, Lei (2009), "Differential privacy and robust statistics".

    Examples
    --------
    >>> from sfumato.privacy import Laplace
    >>> test = DistanceTest(Laplace(2.0), 40)
    >>> test.mass == DistanceTest(Laplace(4.0), 80).mass, 1e-9 < test.mass < 1.1e-9
    (True, True)
    """

    loss: PrivacyLoss
    threshold: Fraction

    @property
    def mass(self) -> float:
        """The chance that a distance of 0 passes."""
        return _lone_pass(self.loss, self.threshold + 1)


def propose_test_release(test: PrivacyLoss, threshold: float | Fraction, release: PrivacyLoss) -> PrivacyLoss:
    """Return the loss of propose-test-release, the same whether the test was passed or not.

    Parameters
    ----------
    test : PrivacyLoss
        Of the noise on the distance, which a unit moves by at most one.
    threshold : int, float or Fraction
        The noisy distance must reach this.
    release : PrivacyLoss
        Of what is released then, for the sensitivity that was proposed.

    Returns
    -------
    PrivacyLoss
        ``DistanceTest(test, threshold) + release``; see the notes there.

    Examples
    --------
    >>> from sfumato.privacy import Laplace
    >>> loss = propose_test_release(Laplace(2.0), 40, Laplace(4.0))
    >>> loss.pure().epsilon, 1e-9 < loss.pure().delta < 1.1e-9
    (0.75, True)
    """
    return DistanceTest(test, threshold) + release
