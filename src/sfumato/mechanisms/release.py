"""What leaves a mechanism: the noisy value, its error as public parameters tell it, its loss, its receipt."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.rational import floor_log2, power_of_two
from sfumato.numerics.interval import Interval
from sfumato.numerics.laws import SymmetricLaw
from sfumato.numerics.rounding import fraction_down, fraction_up
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.receipt import Receipt

__all__ = ["Release"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Release:
    """A noisy answer; nothing in it is raw data.

    Parameters
    ----------
    steps : int or int64 array
        The noisy answer as a whole number of lattice steps; arrays are made read-only.
    step : int or Fraction
        Distance between the lattice's points; the int 1 where answers are whole numbers and stay ints.
    law : SymmetricLaw
        Law of the noise of every entry, in steps; public.
    loss : PrivacyLoss
        What the release cost.
    neighboring : Neighboring
        Who is protected: the relation of the loss.
    receipt : Receipt or None
        Proof of the charge, where a ledger was charged.
    simulated : bool
        Whether the noise came from a seed; such a release protects nobody.

    Examples
    --------
    >>> from sfumato.mechanisms import Laplace
    >>> release = Laplace(sensitivity=1, scale=2).release(100, rng=7)
    >>> release.interval(0.95).upper - release.value, release.simulated
    (6.0, True)
    """

    steps: int | NDArray[np.int64]
    step: int | Fraction
    law: SymmetricLaw
    loss: PrivacyLoss
    neighboring: Neighboring
    receipt: Receipt | None = None
    simulated: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.step, int) and self.step != 1:
            _check.refuse("step", "be 1 or a Fraction", self.step, "pass a Fraction")
        if isinstance(self.steps, np.ndarray):
            steps = self.steps.view()
            steps.flags.writeable = False
            object.__setattr__(self, "steps", steps)

    def __repr__(self) -> str:
        simulated = ", simulated=True" if self.simulated else ""
        return f"Release(value={self.value!r}, stddev={self.stddev:.6g}, loss={self.loss!r}{simulated})"

    @property
    def value(self) -> Any:
        """The noisy answer, shaped as the value: exact ints on whole numbers, else the nearest floats."""
        return self.steps if isinstance(self.step, int) else _scaled(self.steps, self.step)

    @property
    def stddev(self) -> float:
        """Standard deviation of the noise of each entry."""
        return self.law.stddev * float(self.step)

    def interval(self, level: float = 0.95) -> Interval[Any]:
        """Return the smallest central lattice interval, per entry, with coverage at least the level.

        Parameters
        ----------
        level : float
            Wanted coverage of each entry, strictly between 0 and 1.

        Returns
        -------
        Interval
            Ends are lattice points, rounded outward to floats.

        Notes
        -----
        The target is the exact answer that the noise was added to: the bounded answer, on the grid. An answer
        that had to be rounded to the grid lies within half a step of it. The interval follows from the
        released value and public parameters only.
        """
        half, _ = self.law.half_width(_check.unit_interval("level", level))
        return Interval(
            _outward(self.steps - half, Fraction(self.step), -math.inf),
            _outward(self.steps + half, Fraction(self.step), math.inf),
        )

    def coverage(self, level: float = 0.95) -> float:
        """Return the exact coverage of ``interval(level)``, rounded down; it is at least the level."""
        return self.law.half_width(_check.unit_interval("level", level))[1]


def _scaled(steps: int | NDArray[np.int64], step: Fraction) -> float | NDArray[np.float64]:
    if not isinstance(steps, np.ndarray):
        return float(steps * step)
    exponent = floor_log2(step)
    scale = step / power_of_two(exponent)  # at least 1 and less than 2: no float of it overflows
    return np.asarray(np.ldexp(steps * float(scale), exponent), dtype=np.float64)


def _outward(steps: int | NDArray[np.int64], step: Fraction, away: float) -> float | NDArray[np.float64]:
    if not isinstance(steps, np.ndarray):
        return fraction_down(steps * step) if away < 0 else fraction_up(steps * step)
    scaled = np.asarray(_scaled(steps, step))
    if step == power_of_two(floor_log2(step)) and bool(np.all(np.abs(steps) <= 1 << 53)):
        return scaled
    for _ in range(3):  # steps, scale, product and a subnormal result each err by at most half an ulp
        scaled = np.nextafter(scaled, away)
    return scaled
