"""A privacy profile: several (epsilon, delta) guarantees of one mechanism."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, final

from sfumato import _check
from sfumato._wire import NUMBER, sequence
from sfumato.numerics.rounding import log_up
from sfumato.privacy.leaves.discrete_pair import RationalLeaf
from sfumato.privacy.neighboring import RELATION, Neighboring, Relation
from sfumato.privacy.pairs.convex_minorant import distributions_of_profile
from sfumato.privacy.serialization import serialized_as

__all__ = ["Profile"]

_MAXIMUM: Final = 1024
_LARGEST: Final = 600.0


@final
@serialized_as("privacy-profile", epsilons=sequence(NUMBER), deltas=sequence(NUMBER), neighboring=RELATION)
@dataclass(frozen=True, slots=True, repr=False)
class Profile(RationalLeaf):
    r"""Any mechanism that is (epsilon, delta)-DP for each of several pairs of numbers.

    Parameters
    ----------
    epsilons : sequence of float
        Rising, from 0 to 600.
    deltas : sequence of float
        As many, in [0, 1].
    neighboring : Neighboring or Relation
        The relation that the guarantees are about.

    Notes
    -----
    Guarantee: write :math:`h(s) = \sup_S P(S) - s Q(S)`. It is convex and falls, :math:`h(0) = 1` and
    :math:`h(s) \ge 1 - s`; each guarantee says that :math:`h(e^{\epsilon_i}) \le \delta_i`, and, of the other
    order, that :math:`h(e^{-\epsilon_i}) \le 1 - e^{-\epsilon_i}(1 - \delta_i)`. So :math:`h` is at most the
    largest convex function at or below these points, constant beyond the last one. That function is the
    profile of a pair, whose Q-mass at the loss :math:`\log s` is the change of the slope at :math:`s`, whose
    P-mass is :math:`s` times it, and which reveals everything with the probability that is left; so the pair
    dominates. Each :math:`e^{\epsilon_i}` is a float, rounded up (:math:`h` falls), and all else is exact.

    References
    ----------
    Zhu, Dong, Wang (2022), "Optimal accounting of differential privacy via characteristic function", which
    functions are profiles of dominating pairs; Doroshenko, Ghazi, Kamath, Kumar, Manurangsi (2022), "Connect
    the dots: tighter discrete approximations of privacy loss distributions".

    Examples
    --------
    >>> (Profile([0.1, 1.0], [0.01, 1e-6]) * 10).epsilon(1e-4) < 10.0
    True
    """

    _any_relation = True

    epsilons: Sequence[float]
    deltas: Sequence[float]
    neighboring: Relation = field(default=Neighboring.ADD_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        self._set_each("epsilons", self.epsilons, partial(self._set_rounded, up=True))
        self._set_each("deltas", self.deltas, partial(self._set_rounded, up=True))
        self._set_relation(self.neighboring)
        if not 0 < len(self.epsilons) == len(self.deltas) <= _MAXIMUM:
            found, remedy = f"there are {len(self.deltas)}", f"pass 1 to {_MAXIMUM} of both"
            _check.refuse_state("deltas", "be as many as the epsilons", found, remedy)
        for before, after in itertools.pairwise(self.epsilons):
            if after <= before:
                remedy = "sort them and leave out repetitions"
                _check.refuse("epsilons", f"increase after {before!r}", after, remedy)
        if self.epsilons[-1] > _LARGEST:
            _check.refuse("epsilons", f"be at most {_LARGEST}", self.epsilons[-1], "use ApproximateDP")
        if max(self.deltas) > 1:
            _check.refuse("deltas", "be in [0, 1]", max(self.deltas), "leave out what says nothing")
        self._set_distributions(distributions_of_profile(self.epsilons, self.deltas), symmetric=True)

    def log_profile(self, epsilon: float) -> float:
        """Return the log of the largest function that the guarantees allow; a declared delta is exact.

        Parameters
        ----------
        epsilon : float
            At least 0.

        Returns
        -------
        float
            Upper bound on the natural logarithm of delta.
        """
        declared = [d for e, d in zip(self.epsilons, self.deltas, strict=True) if e <= epsilon]
        return min(RationalLeaf.log_profile(self, epsilon), log_up(min(declared, default=1.0)))
