"""The base class of mechanisms that add integer noise to integers, or to reals rounded to a grid."""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from numbers import Integral
from typing import Any, Final

import numpy as np

from sfumato import _check
from sfumato.errors import UnboundedSensitivity
from sfumato.mechanisms.base.grid import LIMIT, Grid
from sfumato.mechanisms.base.lattice import Lattice
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.rational import Number
from sfumato.mechanisms.base.release import LatticeRelease
from sfumato.mechanisms.base.sensitivity import Shift
from sfumato.numerics.distributions.discrete import SymmetricDistribution
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["AdditiveMechanism", "as_bound", "as_entries", "as_number", "check_informative"]

_MIN_EPSILON: Final = Fraction(1, 1 << 30)


class AdditiveMechanism(Mechanism):
    """Integer noise on values that are integers, or were rounded to a power-of-two grid first.

    A subclass is a frozen dataclass with the fields below, a noise parameter, and one for a norm over all
    entries.

    Examples
    --------
    >>> from sfumato.mechanisms import Gaussian, Laplace
    >>> all(issubclass(kind, AdditiveMechanism) for kind in (Gaussian, Laplace))
    True
    >>> Laplace(sensitivity=1, scale=2).release(1000, rng=7).value
    999
    """

    __slots__ = ()

    sensitivity: Number | None
    l0: int
    grid: Grid
    neighboring: Neighboring
    integral: bool

    @abstractmethod
    def _noise(self) -> Fraction:
        """Return the noise parameter, in the unit of the values."""

    def _overall(self) -> tuple[str, Number | None]:
        """Return name and value of the parameter that bounds a norm over all entries, where there is one."""
        return "sensitivity", None

    @abstractmethod
    def _price(self, noise: Fraction) -> PrivacyLoss:
        """Return the loss of noise with that parameter, in steps."""

    def covers(self, shift: Shift) -> bool:
        """Return whether a value that moves by at most ``shift`` (in steps) is protected as the loss says.

        Parameters
        ----------
        shift : Shift
            A bound on the move, in steps of the mechanism's grid.

        Returns
        -------
        bool
        """
        return shift.within(Shift.entries(self.l0, self._per_entry()))

    @property
    @abstractmethod
    def distribution(self) -> SymmetricDistribution:
        """The distribution of the noise on each entry, in steps."""

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release."""
        return self._price(self._noise() / self.grid.step)

    def release(self, value: Any, rng: Rng = None) -> LatticeRelease:
        """Add noise to a value or to every entry of an array.

        Parameters
        ----------
        value : int, float, Fraction or numpy array
            Integers where the mechanism works on whole numbers. NaN counts as 0; infinities and what is out
            of the grid's range are clamped.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        LatticeRelease

        Raises
        ------
        ParameterError
            If the type does not fit; never for a value.
        """
        steps = self._lattice.steps(value)
        source = random_source(rng)
        distribution = self.distribution
        noise = distribution.sample(None if isinstance(steps, int) else steps.shape, source)
        return LatticeRelease(
            steps=steps + int(noise) if isinstance(steps, int) else np.add(steps, noise),
            step=self._lattice.step,
            distribution=distribution,
            loss=self.privacy_loss,
            neighboring=self.neighboring,
            simulated=source.simulated,
        )

    def outputs(self, value: Any, size: int, rng: Rng = None) -> Any:
        """Draw the values of many releases at once; see `Mechanism.outputs`.

        Parameters
        ----------
        value
            As in `release`; private.
        size : int
            How many independent releases are drawn.
        rng : int, numpy Generator or None
            None for the operating system's randomness; a seed is for simulation only.

        Returns
        -------
        array of shape (size, ...)
            A value in each entry of the first axis.
        """
        copied = np.asarray(value) if isinstance(value, int | float | np.ndarray | np.number) else None
        if copied is None or copied.dtype.kind not in "iuf":
            return Mechanism.outputs(self, value, size, rng)
        # Noise is drawn for each entry alone, so an array of copies is that many runs.
        copies = np.repeat(copied[None], _check.integer("size", size, minimum=1), axis=0)
        return self.release(copies, rng).value

    def _per_entry(self) -> int:
        """Return the most steps that one unit moves an entry, where ``sensitivity`` states it."""
        return self._lattice.shift(self.sensitivity or 0)

    @property
    def _lattice(self) -> Lattice:
        return Lattice(self.grid, self.integral)

    def _settle(self) -> None:
        """Check the shared parameters, and resolve what was left open: l0, the grid, the kind of values."""
        name, overall = self._overall()
        if (self.sensitivity is None) == (overall is None):
            _check.refuse(
                "sensitivity", f"be given, or else {name}", self.sensitivity, "pass exactly one of them"
            )
        name, bound = ("sensitivity", self.sensitivity) if overall is None else (name, overall)
        bound = as_bound(name, bound)
        object.__setattr__(self, name, bound)
        chosen: Grid | None = self.grid
        integral: bool | None = self.integral
        if integral is None:
            integral = isinstance(bound, int) and chosen is None
        l0 = self._entries(self.l0, name, integral=integral)
        # Of a bound on all entries together, each may take its share of the rounding.
        share = Fraction(bound) / (l0 if overall is not None else 1)
        lattice = Lattice.settle(bound, noise=self._noise(), grid=chosen, integral=integral, share=share)
        object.__setattr__(self, "grid", lattice.grid)
        object.__setattr__(self, "integral", lattice.integral)
        object.__setattr__(self, "l0", l0)
        _check.instance(
            "neighboring", self.neighboring, Neighboring, "pass Neighboring.ADD_REMOVE or another"
        )

    @staticmethod
    def _entries(l0: int | None, name: str, *, integral: bool) -> int:
        if l0 is None and name != "sensitivity" and not integral:
            remedy = f"pass the number of entries that one unit can move, beside {name}"
            _check.refuse_state("l0", "be given", "it is None", remedy)
        return as_entries(l0)

    def _check_range(self, name: str) -> None:
        """Check that noise and sensitivity, in steps, are numbers that the samplers and the loss can hold."""
        self._lattice.check_noise(name, self._noise())
        overall, bound = self._overall()
        if bound is None:
            overall, bound = "sensitivity", self.sensitivity
        if Fraction(bound or 0) > LIMIT * self.grid.step:
            remedy = "pass it in the unit of the values, or another grid"
            _check.refuse(overall, f"be at most 2**62 steps of {self.grid}", bound, remedy)


def as_number(name: str, value: object, remedy: str = "") -> Number:
    """Return a positive parameter as an int, a float or a Fraction, the same number exactly."""
    exact = _check.fraction(name, value, remedy)
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, float) else exact


def check_informative(epsilon: Number) -> None:
    """Refuse an epsilon of a choice that is too small for exact draws, and for any use."""
    if Fraction(epsilon) < _MIN_EPSILON:
        remedy = "pass a larger one; such an answer carries no information"
        _check.refuse("epsilon", "be at least 2**-30", epsilon, remedy)


def as_entries(l0: int | None) -> int:
    """Return how many entries move: one, unless given."""
    return 1 if l0 is None else _check.integer("l0", l0, minimum=1)


def as_bound(name: str, value: object) -> Number:
    """Return a sensitivity as a number; an infinite one is refused as such."""
    if value == math.inf:
        raise UnboundedSensitivity(f"{name} must be finite, got {value!r}; bound what one unit contributes")
    return as_number(name, value, "state the most that one unit can move")
