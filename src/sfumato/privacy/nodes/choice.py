"""One of several mechanisms runs: chosen from earlier answers, or by the part of the data a unit is in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import NeighboringMismatch
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.nodes._parts import Several, checked, pair_of
from sfumato.privacy.pairs.derived import one_run
from sfumato.privacy.pairs.maximum import MaximumPair
from sfumato.privacy.pairs.pair import Pair
from sfumato.privacy.serialization import LOSSES, serialized_as
from sfumato.privacy.views import PureView

__all__ = ["AdaptiveChoice", "Parallel"]


class _Worst(Several):
    """In each notion, the worst of the parts."""

    __slots__ = ()

    def dominating_pair(self) -> Pair:
        """Return a pair with the largest of the parts' divergences at every epsilon."""
        return MaximumPair([pair_of(part) for part in self.losses])

    def log_profile(self, epsilon: float) -> float:
        """Return that of the pair."""
        return max(distribution.log_profile(epsilon) for distribution in one_run(self))

    def rdp_curve(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the largest of each order."""
        return np.asarray(np.max([part.rdp_curve(orders) for part in self.losses], axis=0))

    def pure(self) -> PureView:
        """Return the largest epsilon and the largest mass."""
        views = [part.pure() for part in self.losses]
        return PureView(max(view.epsilon for view in views), max(view.delta for view in views))


@final
@serialized_as("adaptive-choice", losses=LOSSES)
@dataclass(frozen=True, slots=True, repr=False)
class AdaptiveChoice(_Worst):
    r"""One mechanism out of a fixed finite set, chosen by whoever sees the earlier answers.

    Parameters
    ----------
    losses : tuple of PrivacyLoss
        Of the mechanisms in the set, all about one relation; the set is fixed beforehand.

    Notes
    -----
    Guarantee: under the parts' relation, an upper bound (``tight`` is False). Proof: whatever came before,
    the mechanism that runs has, on any two neighbors, divergences :math:`H(s) \le \max_i H_i(s)` at every s,
    so that a pair with this maximum (see `sfumato.privacy.pairs.maximum`) dominates it. A composition is
    dominated by that of the pairs if each mechanism is by its pair given all earlier outputs (Zhu, Dong, Wang
    2022, adaptive composition): repeated choices compose. The views are monotone in their numbers.

    Examples
    --------
    >>> from sfumato.privacy import Gaussian, Laplace
    >>> choice = AdaptiveChoice((Gaussian(2.0), Laplace(1.5)))
    >>> choice.epsilon(1e-6) >= max(Gaussian(2.0).epsilon(1e-6), Laplace(1.5).epsilon(1e-6))
    True
    """

    losses: tuple[PrivacyLoss, ...]

    def __post_init__(self) -> None:
        self._set("losses", checked(self.losses))


@final
@serialized_as("parallel", losses=LOSSES)
@dataclass(frozen=True, slots=True, repr=False)
class Parallel(_Worst):
    r"""Several mechanisms, each on its own part of the units.

    Parameters
    ----------
    losses : tuple of PrivacyLoss
        One for each part, all under add/remove or all under zero-out.

    Notes
    -----
    Guarantee: add/remove and zero-out, an upper bound (``tight`` is False). Conditions: every unit lies, with
    all its records, in one part, set by what is public or by the unit itself, never by other units. Proof:
    neighbors differ in one unit, whose part is the same in both where it is there; the other parts' answers
    have the same distribution and are independent of it. So the answers are a function of the differing
    part's and of independent randomness, and whichever part it is, `AdaptiveChoice`'s pair dominates it.

    Under replace-one a unit may leave one part and enter another, and two parts differ; what bounds it is
    ``AdaptiveChoice(losses) * 2``, of losses that hold for a unit that enters or leaves.

    Examples
    --------
    >>> from sfumato.privacy import PureDP
    >>> Parallel((PureDP(0.5), PureDP(0.75))).epsilon(0.0)
    0.75
    """

    losses: tuple[PrivacyLoss, ...]

    def __post_init__(self) -> None:
        self._set("losses", checked(self.losses))
        if self.neighboring is Neighboring.REPLACE_ONE:
            raise NeighboringMismatch(
                "losses must be under add/remove or zero-out, got replace one unit; a unit that is replaced "
                "may change its part: state AdaptiveChoice(losses) * 2, of losses that bound such a change"
            )
