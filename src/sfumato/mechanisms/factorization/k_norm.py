"""The K-norm mechanism: pure DP with noise shaped like the sensitivity polytope."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.mechanisms.base.additive import as_bound, as_number
from sfumato.mechanisms.base.calibration import PrivacyTarget, minimum_pure_noise
from sfumato.mechanisms.base.grid import LIMIT, Grid
from sfumato.mechanisms.base.lattice import Lattice
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.rational import Number, plain, sqrt_up
from sfumato.mechanisms.base.release import Release
from sfumato.mechanisms.factorization.k_norm_noise import (
    ball_noise,
    cube_noise,
    polytope_noise,
)
from sfumato.mechanisms.factorization.k_norm_release import KNormRelease, cube_stddev
from sfumato.mechanisms.factorization.polytope import reach_of, whole_facets
from sfumato.numerics.decimals import outward
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.privacy.leaves.declared import PureDP
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["KNorm"]

_MAXIMUM: Final = 1024
_MAX_ROUND: Final = 8


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KNorm(Mechanism):
    r"""Noise on a vector with ``P(z)`` proportional to ``exp(-|z|_K / scale)``, drawn exactly on a grid.

    Parameters
    ----------
    dimension : int
        The number of entries: at most 1,024, or 8 where K is not the cube.
    sensitivity : int, float or Fraction
        The most that one unit moves the vector, in the norm of K.
    scale : int, float or Fraction
        Of the noise, in the unit of the values.
    facets : array of shape (m, dimension), optional
        K is where ``|a . z| <= 1`` for each row; rounded to 20 bits, which the sensitivity makes up for. See
        `facets_around` for the body of a workload. Unless given, K is the cube: its norm is the largest
        entry.
    euclidean : bool
        Whether K is the Euclidean ball, for at most 8 dimensions; its norm is the L2 norm.
    grid : Grid, optional
        What values are rounded to; chosen from ``sensitivity`` and ``scale`` unless given.
    integral : bool, optional
        Whether values are whole numbers. Unless given: whether the sensitivity is an int without a grid.
    neighboring : Neighboring
        The relation under which the sensitivity is stated.

    Notes
    -----
    Guarantee: ``PureDP(sensitivity / scale)`` under ``neighboring``, with the rounding counted.

    *Proof.* On :math:`\mathbb{Z}^d` the distribution's normaliser is that of any shift of it, so the chances
    of an output under two neighbors, whose vectors in steps differ by v, have a ratio of at most
    :math:`e^{|v|_K/s}` by the triangle inequality. A grid of step g moves each entry by at most one step more
    than the values move: :math:`|v|_K \le` sensitivity/g plus the norm of a point with entries up to 1 (for
    cube and ball, what `Grid` proves). Facets that are off by up to :math:`\delta` change a norm by at most
    :math:`d \delta` times the largest entry, which is at most a known multiple of the norm: the sensitivity
    is raised by that.

    The L1 ball is `Laplace(l1=...)`. For other bodies than the cube no errors are stated.

    References
    ----------
    Hardt, Talwar (2010), "On the geometry of differential privacy"; Steinke, Ullman (2016), "Between pure and
    approximate differential privacy", the cube: its largest error on d attributes is by a factor of log d
    below that of Laplace noise.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = KNorm.calibrated(dimension=20, sensitivity=1, epsilon=1.0)
    >>> release = mechanism.release(np.arange(20), rng=7)
    >>> mechanism.privacy_loss, mechanism.scale, round(release.stddev, 2)
    (PureDP(epsilon=1.0), 1, 12.41)
    """

    dimension: int
    sensitivity: Number
    scale: Number
    facets: ArrayLike | None = None
    euclidean: bool = False
    grid: Grid = None  # type: ignore[assignment]  # settled in __post_init__
    integral: bool = field(default=None, repr=False)  # type: ignore[assignment]  # settled in __post_init__
    neighboring: Neighboring = Neighboring.ADD_REMOVE
    _body: tuple[NDArray[Any], int, Fraction] | None = field(init=False, repr=False)
    _stretch: Fraction = field(init=False, repr=False)

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        if _check.integer("dimension", self.dimension, minimum=1) > _MAXIMUM:
            _check.refuse(
                "dimension", f"be at most {_MAXIMUM}", self.dimension, "release fewer entries at once"
            )
        put("sensitivity", as_bound("sensitivity", self.sensitivity))
        put("scale", as_number("scale", self.scale, "pass epsilon= to KNorm.calibrated to have it chosen"))
        lattice = Lattice.settle_in(self, Fraction(self.scale))
        lattice.check_noise("scale", Fraction(self.scale))
        _check.instance(
            "neighboring", self.neighboring, Neighboring, "pass Neighboring.ADD_REMOVE or another"
        )
        put("_body", None)
        put("_stretch", Fraction(1))
        if self.euclidean and (self.facets is not None or self.dimension > _MAX_ROUND):
            rule = f"have no facets, and at most {_MAX_ROUND} dimensions"
            _check.refuse_state(
                "euclidean",
                rule,
                "facets were passed" if self.facets is not None else f"dimension is {self.dimension}",
                "leave facets out, or pass euclidean=False",
            )
        if self.facets is not None:
            rows, divisor, off = whole_facets(self.facets)
            if rows.shape[1] != self.dimension:
                _check.refuse_type(
                    "facets", f"have a shape of (facets, {self.dimension})", rows, "pass a row for each facet"
                )
            reach = reach_of(rows, divisor)
            lattice.check_noise("scale", Fraction(self.scale) * reach)
            put("_body", (rows, divisor, reach))
            lost = self.dimension * off * reach
            if lost > Fraction(1, 2):
                rule = "survive rounding to 20 bits"
                remedy = "scale the entries to a similar size"
                _check.refuse_state("facets", rule, "rounding moves them too far", remedy)
            put("_stretch", 1 / (1 - lost))

    @classmethod
    def calibrated(
        cls,
        *,
        dimension: int,
        sensitivity: Number,
        epsilon: float,
        facets: ArrayLike | None = None,
        euclidean: bool = False,
        grid: Grid | None = None,
        integral: bool | None = None,
        neighboring: Neighboring = Neighboring.ADD_REMOVE,
    ) -> KNorm:
        """Return the mechanism with the smallest noise that is epsilon-DP.

        Parameters
        ----------
        epsilon : float
        dimension, sensitivity, facets, euclidean, grid, integral, neighboring
            As in the class.

        Returns
        -------
        KNorm
        """
        request = PrivacyTarget(epsilon=epsilon, delta=0.0)
        template = cls(
            dimension=dimension,
            sensitivity=sensitivity,
            scale=Fraction(as_bound("sensitivity", sensitivity)) / request.exact_epsilon,
            facets=facets,
            euclidean=euclidean,
            grid=grid,  # type: ignore[arg-type]
            integral=integral,  # type: ignore[arg-type]
            neighboring=neighboring,
        )
        minimum = template.shift / request.exact_epsilon
        steps = minimum_pure_noise(template._price, request, minimum)
        return replace(template, scale=plain(steps * template.grid.step))

    @property
    def shift(self) -> Fraction:
        """The most that one unit moves the vector in steps, in the norm of K."""
        lattice = Lattice(self.grid, self.integral)
        if self.euclidean:
            exact = Fraction(self.sensitivity)
            if self.integral:
                return sqrt_up(Fraction(max(1, math.floor(exact**2))))
            return sqrt_up(Fraction(self.grid.l2_squared_shift(exact, self.dimension)))
        if self._body is None:
            return Fraction(lattice.shift(self.sensitivity))
        moved = Fraction(self.sensitivity) / self.grid.step * self._stretch
        if self.integral:
            return moved
        rows, divisor, _ = self._body
        return moved + Fraction(int(np.abs(rows).sum(axis=1).max()), divisor)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release."""
        return self._price(Fraction(self.scale) / self.grid.step)

    def norm(self, move: Any) -> Fraction:
        """Return the norm of a vector of whole numbers: exactly, or rounded up for the ball.

        Parameters
        ----------
        move : array of ints, shape (dimension,)
            In whole numbers.

        Returns
        -------
        Fraction
        """
        entries = np.array([int(entry) for entry in move], dtype=object)
        if self.euclidean:
            return sqrt_up(Fraction(int((entries**2).sum())))
        if self._body is None:
            return Fraction(int(np.abs(entries).max()))
        rows, divisor, _ = self._body
        return Fraction(int(np.abs(rows @ entries).max()), divisor)

    def release(self, value: Any, rng: Rng = None) -> Release:
        """Add noise to a vector.

        Parameters
        ----------
        value : array of shape (dimension,)
            Whole numbers where the mechanism works on them. NaN counts as 0, infinities are clamped.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        Release
            A `KNormRelease` for the cube.

        Raises
        ------
        ParameterError
            If the type or the shape does not fit; never for a value.
        """
        steps = np.asarray(Lattice(self.grid, self.integral).steps(value), dtype=np.int64)
        if steps.shape != (self.dimension,):
            _check.refuse_type(
                "value", f"have the shape ({self.dimension},)", steps, "pass one entry for each dimension"
            )
        source = random_source(rng)
        step, scale = self.grid.step, Fraction(self.scale) / self.grid.step
        if self.euclidean:
            noise = ball_noise(self.dimension, scale, source)
        elif self._body is None:
            noise = cube_noise(self.dimension, scale, source)
        else:
            noise = polytope_noise(*self._body, scale, source)
        noisy = np.clip(steps, -LIMIT, LIMIT) + noise
        released = noisy if self.integral else noisy * float(step)
        loss, simulated = self.privacy_loss, source.simulated
        if not self._is_cube:
            return Release(value=released, loss=loss, neighboring=self.neighboring, simulated=simulated)
        return KNormRelease(
            value=released,
            stddev=self.stddev,
            scale=float(self.scale),
            step=float(step),
            loss=loss,
            neighboring=self.neighboring,
            simulated=simulated,
        )

    @property
    def stddev(self) -> float:
        """Standard deviation of the noise of each entry, for the cube."""
        if not self._is_cube:
            _check.refuse_type(
                "facets", "be left out for a standard deviation", self.facets, "simulate releases instead"
            )
        return cube_stddev(self.dimension, Fraction(self.scale) / self.grid.step) * float(self.grid.step)

    @property
    def _is_cube(self) -> bool:
        return self._body is None and not self.euclidean

    def _price(self, scale: Fraction) -> PrivacyLoss:
        return PureDP(outward(self.shift / scale), neighboring=self.neighboring)
