"""Common base of all leaves and nodes: checked parameters, repr, bounds on pure losses, group privacy."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato._wire import INTEGER
from sfumato.errors import NeighboringMismatch, UnsupportedView
from sfumato.numerics.decimals import outward
from sfumato.numerics.rounding import exp_up, fraction_down, mul_up
from sfumato.privacy._outward import UNIT, above, sum_above, times_above
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import RELATION, Neighboring, Relation, refuse_further
from sfumato.privacy.pairs.bins import Number
from sfumato.privacy.pairs.group_privacy import MAX_STEPS, GroupPrivacyPair
from sfumato.privacy.pairs.pair import Pair, no_loss
from sfumato.privacy.serialization import LOSS, serialized_as
from sfumato.privacy.views import GDPView, PureView, ZCDPView

__all__ = [
    "ConcentratedLeaf",
    "DivergenceLeaf",
    "GroupPrivacy",
    "Leaf",
    "Node",
    "bounded_log_profile",
    "bounded_rdp",
    "laplace_kl",
    "listed",
]

# Enough for every float; limits the length of the serialised form.
_MAX_BITS = 4096
_MAX_SHIFT_BITS = 1000
_ANY = "pass a number, 0 or above"
_NOISE = "pass the scale of the noise; 0 is no noise"
_REMEDIES = dict.fromkeys(("noise_multiplier", "stddev", "scale", "threshold_noise", "query_noise"), _NOISE)


class Node(PrivacyLoss):
    """A loss that is neither a repetition nor a composition: frozen, checked parameters."""

    __slots__ = ()

    _any_relation: ClassVar[bool] = False
    """Whether the theorem is about any two neighbors of any `Relation`, and not of three only."""

    def _set_part(self, name: str, value: PrivacyLoss) -> None:
        """Check that a part is one loss, neither repeated nor composed."""
        _check.instance(name, value, PrivacyLoss, "pass a loss such as Gaussian(1.0)")
        if value.terms != ((value, 1),):
            rule = "be one mechanism, neither repeated nor composed"
            _check.refuse_state(name, rule, f"it is {value!r}"[:200], "wrap each part")
        self._check_further(value.neighboring)
        self._set(name, value)

    def _check_further(self, relation: Relation | None) -> None:
        """Refuse a relation that the theorem is not about."""
        if not self._any_relation:
            refuse_further(type(self).__name__, relation)

    def __repr__(self) -> str:
        shown = (
            f"{name}={value if isinstance(value, Fraction) else repr(value)}"
            for name, value in self.parameters().items()
            if value is not Neighboring.ADD_REMOVE
        )
        return f"{type(self).__name__}({', '.join(shown)})"

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _set_integers(self, *names: str, minimum: int = 1, remedy: str = "pass how many there are") -> None:
        """Check fields that are integers."""
        for name in names:
            self._set(name, _check.integer(name, getattr(self, name), minimum=minimum, remedy=remedy))

    def _chained(self, steps: int, relation: Neighboring) -> PrivacyLoss:
        return GroupPrivacy(self, steps, neighboring=relation)


@final
@serialized_as("group-privacy", loss=LOSS, steps=INTEGER, neighboring=RELATION)
@dataclass(frozen=True, slots=True, repr=False)
class GroupPrivacy(Node):
    r"""A loss between datasets that are several steps apart; `PrivacyLoss.group` and `under` make it.

    Parameters
    ----------
    loss : PrivacyLoss
        Of one step: one leaf or node, not a composition.
    steps : int
        How many steps from neighbor to neighbor, from 2 to 100.
    neighboring : Neighboring
        That of ``loss``: then ``steps`` units act together, all in or all out. Or replace-one, for an even
        number of steps under add/remove or zero-out: then half as many units are replaced, each taken out and
        another put in.

    Notes
    -----
    Guarantee: an upper bound, for the worst neighbors of each step need not lie on one line. The pair chains
    the steps' powers, :math:`h_1 \circ \dots \circ h_k` (Dong, Roth, Su 2022, group privacy; proof for
    unlike steps in `sfumato.privacy.pairs.group_privacy`). Pure epsilons add, and a mass grows to
    :math:`\delta \sum_{i<k} e^{i\epsilon}` (Dwork, Roth 2014, group privacy; Vadhan 2017, Lemma 2.2). Rho
    grows with :math:`k^2` (Bun, Steinke 2016, group privacy) and mu with :math:`k` (Dong, Roth, Su 2022).

    References
    ----------
    Dong, Roth, Su (2022), "Gaussian differential privacy", group privacy.

    Examples
    --------
    >>> from sfumato.privacy import PoissonSubsampled, PureDP
    >>> PoissonSubsampled(PureDP(1.0), 0.01).group(2)
    GroupPrivacy(loss=PoissonSubsampled(loss=PureDP(epsilon=1.0), sampling_probability=0.01), steps=2)
    """

    loss: PrivacyLoss
    steps: int
    neighboring: Neighboring

    def __post_init__(self) -> None:
        self._set_part("loss", self.loss)
        remedy = "fewer units, or a closed form"
        self._set_integers("steps", minimum=2, remedy=remedy)
        if self.steps > MAX_STEPS:
            _check.refuse("steps", f"be at most {MAX_STEPS}", self.steps, remedy)
        _check.instance("neighboring", self.neighboring, Neighboring, "pass that of the loss")
        if self._replaces and (self.neighboring is not Neighboring.REPLACE_ONE or self.steps % 2):
            raise NeighboringMismatch(
                f"neighboring must be that of the loss, or replace-one for an even number of steps, got "
                f"{self.neighboring} for {self.steps} steps under {self.loss.neighboring}"
            )

    @property
    def _replaces(self) -> bool:
        return self.neighboring is not self.loss.neighboring

    def _chained(self, steps: int, relation: Neighboring) -> PrivacyLoss:
        return GroupPrivacy(self.loss, self.steps * steps, neighboring=relation)

    def dominating_pair(self) -> Pair:
        """Return the chain of the steps' pairs, there and back where units are replaced.

        Returns
        -------
        Pair
            Distributions P and Q whose divergences bound those of the outputs on any two neighbors.
        """
        base = self.loss.dominating_pair()
        back = self.steps // 2 if self._replaces else 0
        return GroupPrivacyPair(base, self.steps - back, back)

    def pure(self) -> PureView:
        """Add epsilons; each step multiplies the mass of the others.

        Returns
        -------
        PureView
            Upper bounds: epsilon, and the mass delta outside which it holds.
        """
        epsilon, delta = self.loss.pure()
        whole = times_above(self.steps, epsilon)
        if delta == 0 or math.isinf(epsilon):
            return PureView(whole, min(1.0, times_above(self.steps, delta)))
        mass = sum_above(mul_up(delta, exp_up(times_above(i, epsilon))) for i in range(self.steps))
        return PureView(whole, min(1.0, mass))

    def zcdp(self) -> ZCDPView:
        """Multiply rho by the square of the steps, if there is no mass beside it.

        Returns
        -------
        ZCDPView
            Upper bounds: rho, and the mass delta outside which it holds.
        """
        rho, delta = self.loss.zcdp()
        return ZCDPView(times_above(self.steps**2, rho), 0.0) if delta == 0 else self._missing("zcdp")

    def gdp(self) -> GDPView:
        """Multiply mu by the steps, if there is no mass beside it.

        Returns
        -------
        GDPView
            Upper bounds: mu, and the mass delta outside which it holds.
        """
        mu, delta = self.loss.gdp()
        return GDPView(times_above(self.steps, mu), 0.0) if delta == 0 else self._missing("gdp")

    def rdp_curve(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what zCDP proves, and no more than the largest loss.

        Parameters
        ----------
        orders : ndarray of float, shape (n,)
            Each above 1.

        Returns
        -------
        ndarray of float, shape (n,)
            Upper bounds on the Rényi divergences, one for each order.
        """
        try:
            curve = np.nextafter(self.zcdp().rho * orders, np.inf)
        except UnsupportedView:
            self._missing("rdp", orders)
        try:
            epsilon, delta = self.pure()
        except UnsupportedView:
            return curve
        return np.minimum(curve, epsilon) if delta == 0 else curve


class Leaf(Node):
    """A loss without parts, with the views that its parameters prove."""

    __slots__ = ()

    def _set_rounded(self, name: str, value: object, *, up: bool) -> None:
        """Check that a parameter is non-negative and finite, and store it as a float on the private side."""
        shown, remedy = name.lstrip("_"), _REMEDIES.get(name, _ANY)
        nearest = _check.non_negative(shown, value, remedy)
        exact: Fraction | None = None
        if isinstance(value, Rational):
            exact = Fraction(int(value.numerator), int(value.denominator))
        elif isinstance(value, np.longdouble):
            exact = Fraction(*value.as_integer_ratio())
        if exact is not None:
            nearest = _check.non_negative(shown, (outward if up else fraction_down)(exact), remedy)
        self._set(name, nearest + 0.0)

    def _set_each(self, name: str, values: object, set_one: Callable[[str, object], None]) -> None:
        """Store a sequence of numbers as a tuple, each as ``set_one`` stores one."""
        numbers = []
        for value in listed(name, values):
            set_one(name, value)
            numbers.append(getattr(self, name))
        self._set(name, tuple(numbers))

    def _set_exact(self, name: str, value: object) -> None:
        """Check that a parameter is non-negative and finite, and store it as the rational it is."""
        _check.non_negative(name, value, _REMEDIES.get(name, _ANY))
        exact = Fraction(0) if value == 0 else _check.fraction(name, value)
        if max(exact.numerator.bit_length(), exact.denominator.bit_length()) > _MAX_BITS:
            rule = f"have at most {_MAX_BITS} bits in numerator and denominator"
            bits = max(exact.numerator.bit_length(), exact.denominator.bit_length())
            _check.refuse(name, rule, bits, "round it, such as by limit_denominator")
        self._set(name, exact)

    def _set_lattice(self, name: str, noise: object, sensitivity: object, neighboring: object) -> None:
        """Check and store the parameters of integer noise on an integer that moves by ``sensitivity``."""
        self._set_exact(name, noise)
        remedy = "a value that no unit can move needs neither noise nor a loss"
        shift = _check.integer("sensitivity", sensitivity, minimum=1, remedy=remedy)
        if shift.bit_length() > _MAX_SHIFT_BITS:
            remedy = "no float is so large: use a coarser grid"
            _check.refuse("sensitivity", f"have at most {_MAX_SHIFT_BITS} bits", shift.bit_length(), remedy)
        self._set("sensitivity", shift)
        self._set_relation(neighboring)

    def _set_relation(self, value: object) -> None:
        if not isinstance(value, Relation):
            _check.refuse("neighboring", "be a Neighboring", value, "pass Neighboring.ADD_REMOVE or another")
        self._check_further(value)
        self._set("neighboring", value)

    def _set_monotone(self, value: object) -> None:
        """Check whether all scores may be said to move in the same direction."""
        if not isinstance(value, bool):
            _check.refuse("monotone", "be True or False", value, "pass True if all scores move the same way")
        if value and self.neighboring is Neighboring.REPLACE_ONE:
            remedy = "a replaced unit may raise one score and lower another"
            _check.refuse("monotone", "be False under replace-one", value, remedy)


class ConcentratedLeaf(Leaf):
    """A leaf whose Rényi divergences are those of its zCDP parameter."""

    __slots__ = ()

    def rdp_curve(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``rho`` times the order."""
        return np.nextafter(self.zcdp().rho * orders, np.inf)


class DivergenceLeaf(Leaf):
    """A leaf known by bounds on divergences alone: where one of them is 0, the two distributions are equal.

    Then every view and a pair exist, with no loss at all; otherwise only what the subclass proves.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def _equal(self) -> bool:
        """Whether the bounds say that the two distributions are equal."""

    def pure(self) -> PureView:
        """Return 0 where the two distributions are equal. Otherwise there is no such view."""
        return PureView(0.0, 0.0) if self._equal else self._missing("pure")

    def zcdp(self) -> ZCDPView:
        """Return 0 where the two distributions are equal. Otherwise there is no such view."""
        return ZCDPView(0.0, 0.0) if self._equal else self._missing("zcdp")

    def gdp(self) -> GDPView:
        """Return 0 where the two distributions are equal. Otherwise there is no such view."""
        return GDPView(0.0, 0.0) if self._equal else self._missing("gdp")

    def dominating_pair(self) -> Pair:
        """Return two equal distributions where they are. Otherwise there is no such pair."""
        return no_loss() if self._equal else self._missing("dominating pair")


def listed(name: str, values: object) -> list[object]:
    """Return the items of a sequence of numbers, or refuse what is none."""
    if isinstance(values, str) or not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0:
        _check.refuse_type(name, "be a sequence of numbers", values, "pass a list")
    return list(values)


def bounded_rdp(
    epsilon: Number, rho: Number, orders: NDArray[np.float64], moment: NDArray[np.float64]
) -> NDArray[np.float64]:
    r"""Return :math:`\epsilon + \log(s)/(\alpha - 1)`, the divergences of a bounded loss, rounded up.

    Parameters
    ----------
    epsilon, rho : float or ndarray, shape (losses, 1)
        The pure bound and the zCDP bound, which also hold; columns for losses that are side by side.
    orders : ndarray
        Orders above 1.
    moment : ndarray
        The :math:`s` of each order: the tilted mass that is left when the largest loss is factored out, in
        (0, 1]. Its relative error is at most 32 roundings, plus one for each unit of :math:`\epsilon\alpha`.
    """
    if isinstance(epsilon, float) and math.isinf(epsilon):
        return np.full_like(orders, np.inf)
    gap = orders - 1.0
    tilt = np.log(moment) / gap
    slack = UNIT * (4 * epsilon + 4 * np.abs(tilt) + 40 / gap)
    return np.asarray(np.fmin(np.fmin(epsilon, np.nextafter(rho * orders, np.inf)), epsilon + tilt + slack))


def bounded_log_profile(distance: float, divisor: float = 1.0) -> float:
    """Return the log of ``(1 - exp(-distance)) / divisor``, rounded up; minus infinity below 0."""
    if distance <= 0:
        return -math.inf
    # Two logarithms: the quotient of a smallest float would be 0.
    value = math.log(-math.expm1(-above(distance, 2.0))) - math.log(divisor)
    return min(0.0, above(value, 8.0, 1.0 + abs(value)))


def laplace_kl(epsilon: float) -> float:
    """Return ``epsilon + exp(-epsilon) - 1``, rounded up."""
    if epsilon < 1e-3:
        return above(epsilon * epsilon * (0.5 - epsilon / 6 + epsilon * epsilon / 24), 8.0)
    return above(epsilon + math.expm1(-epsilon), 2.0, 2 * epsilon)
