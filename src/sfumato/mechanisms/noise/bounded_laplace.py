"""The bounded Laplace mechanism: noise is redrawn until the answer lies within bounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, final

import numpy as np

from sfumato import _check
from sfumato.mechanisms.base.additive import as_bound, as_number
from sfumato.mechanisms.base.calibration import PrivacyTarget, minimum_noise
from sfumato.mechanisms.base.grid import Grid
from sfumato.mechanisms.base.lattice import Lattice
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.rational import Number, plain
from sfumato.mechanisms.base.release import Release
from sfumato.mechanisms.query.sums import checked_bounds
from sfumato.numerics.decimals import outward
from sfumato.numerics.distributions.truncated_laplace import bounded_laplace, power_sum
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.numerics.rounding import add_down, add_up, div_up, fraction_up, log_up
from sfumato.privacy.leaves.declared import PureDP
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["BoundedLaplace"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedLaplace(Mechanism):
    r"""A Laplace answer, given that it lies within bounds.

    Where answers must stay within bounds, clamping a `Laplace` release costs nothing and has less noise; this
    mechanism puts no mass on the bounds themselves.

    Parameters
    ----------
    sensitivity : int, float or Fraction
        The most that one unit moves the value.
    scale : int, float or Fraction
        Of the Laplace distribution, in the unit of the values.
    bounds : tuple of two numbers
        Public. Values are clamped to them first.
    grid : Grid, optional
        What values and bounds are rounded to; chosen from ``sensitivity`` and ``scale`` unless given.
    integral : bool, optional
        As in `Laplace`.
    neighboring : Neighboring
        The relation under which ``sensitivity`` is stated.

    Notes
    -----
    Guarantee: pure DP, exact, :math:`\epsilon = s/b + \log(Z(s)/Z(0))`, where b is the scale and s the
    sensitivity in steps, and :math:`Z(d)` the sum of :math:`e^{-|k - d|/b}` over the N + 1 lattice points
    :math:`k = 0, \dots, N` of the range (at most N for s). Proof: centres i and :math:`i + d` have the
    quotient :math:`e^{(|k - i - d| - |k - i|)/b} Z(i + d)/Z(i)` at k. Z is a constant minus :math:`q^{i+1} +
    q^{N-i+1}` over :math:`1 - q`, so it is concave and symmetric, its logarithm too, and the second factor is
    greatest at i = 0; there k = 0 has the first factor :math:`e^{d/b}`. As :math:`\log Z` falls by at most
    1/b a step, the product rises with d.

    References
    ----------
    Holohan, Antonatos, Braghin, Mac Aonghusa, "The bounded Laplace mechanism in differential privacy" (2018).

    Examples
    --------
    >>> mechanism = BoundedLaplace.calibrated(sensitivity=1, epsilon=1.0, bounds=(0, 10))
    >>> 0 <= mechanism.release(10, rng=3).value <= 10, mechanism.privacy_loss.epsilon(0.0) <= 1.0
    (True, True)
    """

    sensitivity: Number
    scale: Number
    bounds: tuple[Number, Number]
    grid: Grid = None  # type: ignore[assignment]  # settled in __post_init__
    neighboring: Neighboring = Neighboring.ADD_REMOVE
    integral: bool = field(default=None, repr=False)  # type: ignore[assignment]  # settled in __post_init__

    def __post_init__(self) -> None:
        object.__setattr__(self, "sensitivity", as_bound("sensitivity", self.sensitivity))
        remedy = "pass epsilon= to BoundedLaplace.calibrated to have it chosen"
        object.__setattr__(self, "scale", as_number("scale", self.scale, remedy))
        object.__setattr__(self, "bounds", checked_bounds(self.bounds))
        lattice = Lattice.settle_in(self, Fraction(self.scale))
        lattice.check_noise("scale", Fraction(self.scale))
        lower, upper = self._ends()
        if not 1 <= upper - lower < 1 << 60:
            rule = f"be from 1 to 2**60 steps of {self.grid} apart"
            _check.refuse("bounds", rule, self.bounds, "pass wider bounds, or another grid")
        _ = self.privacy_loss  # the leaf checks the relation

    @classmethod
    def calibrated(
        cls,
        *,
        sensitivity: Number,
        epsilon: float,
        bounds: tuple[Number, Number],
        grid: Grid | None = None,
        integral: bool | None = None,
        neighboring: Neighboring = Neighboring.ADD_REMOVE,
    ) -> BoundedLaplace:
        """Return the mechanism with the smallest scale, to one part in a million, that is epsilon-DP.

        Parameters
        ----------
        epsilon : float
        sensitivity, bounds, grid, integral, neighboring
            As in the class.

        Returns
        -------
        BoundedLaplace
        """
        request = PrivacyTarget(epsilon=epsilon, delta=0.0)
        start = 2 * Fraction(as_bound("sensitivity", sensitivity)) / request.exact_epsilon
        if grid is None:
            chosen = Lattice.settle(sensitivity, noise=start, integral=integral)
            grid, integral = (None if chosen.integral else chosen.grid), chosen.integral

        def of(scale: Fraction) -> BoundedLaplace:
            return cls(
                sensitivity=sensitivity,
                scale=plain(scale),
                bounds=bounds,
                grid=grid,  # type: ignore[arg-type]
                integral=integral,  # type: ignore[arg-type]
                neighboring=neighboring,
            )

        return of(minimum_noise(lambda scale: of(scale).privacy_loss, request, start))

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release."""
        lattice, (lower, upper) = Lattice(self.grid, self.integral), self._ends()
        steps = Fraction(self.scale) / self.grid.step
        reach = upper - lower
        shift = min(lattice.shift(self.sensitivity), reach)
        near, far = power_sum(steps, 1, shift).upper, power_sum(steps, 1, reach - shift).upper
        maximum = add_up(1.0, add_up(near, far))
        minimum = add_down(1.0, power_sum(steps, 1, reach).lower)
        epsilon = add_up(fraction_up(shift / steps), log_up(div_up(maximum, minimum)))
        return PureDP(outward(epsilon), neighboring=self.neighboring)

    def release(self, value: Any, rng: Rng = None) -> Release:
        """Answer for one value.

        Parameters
        ----------
        value : int, float or Fraction
            Clamped to the bounds; NaN counts as 0 first.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        Release
            Of an int where values are whole numbers, else of a float. The noise's distribution depends on the
            value, so no error can be shown beside it.
        """
        source = random_source(rng)
        return self._release_as(Release, self.outputs(value, 1, source)[0], source)

    def outputs(self, value: Any, size: int, rng: Rng = None) -> Any:
        """Draw many answers at once; see `Mechanism.outputs`.

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
        array of shape (size,)
        """
        steps = Lattice(self.grid, self.integral).steps(value)
        if not isinstance(steps, int):
            _check.refuse_state(
                "value", "be one number", "it is an array", "release one number after another"
            )
        lower, upper = self._ends()
        centre = np.full(_check.integer("size", size, minimum=1), min(max(steps, lower), upper), np.int64)
        scale = Fraction(self.scale) / self.grid.step
        drawn = bounded_laplace(scale, centre, lower, upper, random_source(rng)).tolist()
        return drawn if self.integral else [float(step * self.grid.step) for step in drawn]

    def _ends(self) -> tuple[int, int]:
        if not self.integral:
            return self.grid.inside(self.bounds)
        lower, upper = (
            Lattice(self.grid, self.integral).steps(bound, name="bounds") for bound in self.bounds
        )
        return lower, upper
