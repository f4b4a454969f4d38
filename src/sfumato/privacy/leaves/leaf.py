"""What all leaves share: checked parameters, a short repr, and the shape of bounds on pure losses."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from numbers import Rational

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.numerics.rounding import fraction_down, fraction_up
from sfumato.privacy._outward import UNIT, above
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["Leaf", "Node", "bounded_log_profile", "bounded_rdp"]

# Enough for every float; keeps the serialised form short.
_MAX_BITS = 4096


class Node(PrivacyLoss):
    """A loss that is neither a repetition nor a composition: frozen, checked parameters."""

    __slots__ = ()

    def _set_part(self, name: str, value: object) -> None:
        """Check that a part is one loss, neither repeated nor composed."""
        if not isinstance(value, PrivacyLoss):
            _check.refuse(name, "be a PrivacyLoss", type(value).__name__, "pass a loss such as Gaussian(1.0)")
        if value.terms != ((value, 1),):
            _check.refuse(
                name, "be one mechanism, neither repeated nor composed", repr(value)[:200], "wrap each part"
            )
        self._set(name, value)

    def __repr__(self) -> str:
        shown = (
            f"{name}={value if isinstance(value, Fraction) else repr(value)}"
            for name, value in self.parameters().items()
            if value is not Neighboring.ADD_REMOVE
        )
        return f"{type(self).__name__}({', '.join(shown)})"

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)


class Leaf(Node):
    """A loss without parts, with the views that its parameters prove."""

    __slots__ = ()

    def _set_rounded(self, name: str, value: object, *, up: bool) -> None:
        """Check that a parameter is non-negative and finite, and keep it as a float on the private side."""
        nearest = _check.non_negative(name.lstrip("_"), value)
        if isinstance(value, Rational):
            exact = Fraction(int(value.numerator), int(value.denominator))
            nearest = _check.non_negative(name.lstrip("_"), (fraction_up if up else fraction_down)(exact))
        self._set(name, nearest + 0.0)

    def _set_numbers(self, name: str, values: object, *, up: bool) -> None:
        """Check and keep several non-negative floats, each rounded to the private side."""
        if isinstance(values, str) or not isinstance(values, Iterable):
            _check.refuse(name, "be a sequence of numbers", type(values).__name__, "pass a list")
        numbers = []
        for value in values:
            self._set_rounded(name, value, up=up)
            numbers.append(getattr(self, name))
        self._set(name, tuple(numbers))

    def _set_exact(self, name: str, value: object) -> None:
        """Check that a parameter is non-negative and finite, and keep it as the rational it is."""
        _check.non_negative(name, value)
        exact = Fraction(0) if value == 0 else _check.fraction(name, value)
        if max(exact.numerator.bit_length(), exact.denominator.bit_length()) > _MAX_BITS:
            _check.refuse(name, f"have at most {_MAX_BITS} bits above and below the bar", "a longer fraction")
        self._set(name, exact)

    def _set_lattice(self, name: str, noise: object, sensitivity: object, neighboring: object) -> None:
        """Check and keep the parameters of integer noise on an integer that moves by ``sensitivity``."""
        self._set_exact(name, noise)
        remedy = "a value that no unit can move needs neither noise nor a loss"
        self._set("sensitivity", _check.integer("sensitivity", sensitivity, minimum=1, remedy=remedy))
        self._set_relation(neighboring)

    def _set_relation(self, value: object) -> None:
        if not isinstance(value, Neighboring):
            _check.refuse("neighboring", "be a Neighboring", value, "pass Neighboring.ADD_REMOVE or another")
        self._set("neighboring", value)


def bounded_rdp(
    epsilon: float, rho: float, orders: NDArray[np.float64], share: NDArray[np.float64]
) -> NDArray[np.float64]:
    r"""Return :math:`\epsilon + \log(s)/(\alpha - 1)`, the divergences of a bounded loss, rounded up.

    Parameters
    ----------
    epsilon, rho : float
        The pure bound and the zCDP bound, which also hold.
    orders : ndarray
        Orders above 1.
    share : ndarray
        The :math:`s` of each order: the tilted mass that is left when the greatest loss is factored out, in
        (0, 1]. Its relative error is at most 32 roundings, plus one for each unit of :math:`\epsilon\alpha`.
    """
    if math.isinf(epsilon):
        return np.full_like(orders, np.inf)
    gap = orders - 1.0
    tilt = np.log(share) / gap
    slack = UNIT * (4 * epsilon + 4 * np.abs(tilt) + 40 / gap)
    return np.fmin(np.fmin(epsilon, np.nextafter(rho * orders, np.inf)), epsilon + tilt + slack)


def bounded_log_profile(distance: float, divisor: float = 1.0) -> float:
    """Return the log of ``(1 - exp(-distance)) / divisor``, rounded up; minus infinity below 0."""
    if distance <= 0:
        return -math.inf
    value = -math.expm1(-above(distance, 2.0)) / divisor
    return min(0.0, above(math.log(value), 8.0, 1.0))
