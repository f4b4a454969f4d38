"""The matrix mechanism for a contingency table and a workload that is a Kronecker product over its axes."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from itertools import product
from typing import Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.mechanisms.base.additive import as_number
from sfumato.mechanisms.base.calibration import PrivacyTarget, minimum_noise
from sfumato.mechanisms.base.grid import whole
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.rational import Number, plain, sqrt_up
from sfumato.mechanisms.factorization.linear_error import NormalError
from sfumato.mechanisms.factorization.linear_release import LinearRelease
from sfumato.mechanisms.factorization.strategies.integer_strategy import FLOATS, Array, Integers
from sfumato.mechanisms.factorization.strategies.optimal_strategy import as_workload, optimal_strategy
from sfumato.numerics.blas_threads import one_thread
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.numerics.sampling.integer_noise import discrete_gaussian
from sfumato.privacy.calibration import analytic_gaussian_stddev
from sfumato.privacy.leaves.discrete_gaussian_vector import DiscreteGaussianVector
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["KroneckerMechanism"]

_BITS: Final = 24
_WIDEST: Final = 1 << 40
_CONDITION: Final = 1e12


class _Axis(NamedTuple):
    """A factor's strategy in whole multiples, and its answers as sums of what is measured.

    Attributes
    ----------
    whole : array of ints, shape (entries, cells)
    decoder : array of shape (queries, entries)
        Weights of the measurements, in units of a whole strategy's 1, in the answers.
    off : array of shape (queries,)
        By how much the weights miss the factor, for want of an exact inverse: magnitudes added up.
    inverse : float
        The greatest sum of magnitudes in a row of the strategy's inverse.
    """

    whole: Integers
    decoder: Array
    off: Array
    inverse: float


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KroneckerMechanism(Mechanism):
    r"""Answers to :math:`(W_1 \otimes \dots \otimes W_k) x` for a table x of counts with k axes.

    Parameters
    ----------
    factors : sequence of arrays of shape (queries, cells)
        :math:`W_1, \dots, W_k`, one for each axis: the identity keeps it, a row of ones sums over
        it; prefixes and ranges ask for their sums.
    stddev : int, float or Fraction
        Standard deviation of the noise on each measurement, in records.
    neighboring : Neighboring
        A unit is one record, in one cell or in none.
    strategies : sequence of arrays of shape (entries, cells), optional
        What is measured of each axis, with columns of an L2 norm of about 1; that of `optimal_strategy` for
        each factor unless given. Entries are rounded to 24 bits over all axes, and must then still determine
        what the factor asks.

    Notes
    -----
    Guarantee: ``DiscreteGaussianVector(stddev, S)`` in steps, under ``neighboring``. The rounded strategies
    hold whole numbers, so do their product and what is measured. S is exact under add/remove and zero-out:
    the squared norm of a column of a product is the product of those of its factors. Under replace-one it is
    twice that, less twice the smallest inner product of two columns, which is bounded factor by factor.
    Measurements are taken modulo 2**64, before and after the noise alike, which is post-processing; nothing
    wraps below 2**36 records.

    *Exact norms.* The columns' norms are at most :math:`2^{25}` before rounding, and so below
    :math:`2^{25.5}` after it. By Cauchy and Schwarz the magnitudes of the terms of an inner product of two of
    them add up to less than :math:`2^{51}`: every partial sum is a whole number that floats hold exactly, in
    whatever order they are added.

    *The smallest error.* The bound of `optimal_strategy` holds for every positive :math:`\lambda`; for a
    product of such :math:`\lambda_i` it is the product of the factors' bounds. So if each factor's strategy
    is within its tolerance, no strategy for the whole product is better than the product by more than all of
    them.

    References
    ----------
    McKenna, Miklau, Hay, Machanavajjhala (2018), "Optimizing error of high-dimensional statistical queries
    under differential privacy", products; Xiao, Ding, Wang, Zhang, Kifer (2023), "An optimal and scalable
    matrix mechanism for noisy marginals under convex loss functions".

    Examples
    --------
    >>> import numpy as np
    >>> by_age_and_region = KroneckerMechanism.calibrated(
    ...     factors=[np.tril(np.ones((90, 90))), np.eye(5)], epsilon=1.0, delta=1e-6
    ... )
    >>> release = by_age_and_region.release(np.full((90, 5), 20), rng=7)
    >>> release.value.shape, bool(release.stddev.max() < 16)
    ((90, 5), True)
    """

    factors: Sequence[ArrayLike]
    stddev: Number
    neighboring: Neighboring = Neighboring.ADD_REMOVE
    strategies: Sequence[ArrayLike] = None  # type: ignore[assignment]  # settled in __post_init__
    _axes: tuple[_Axis, ...] = field(init=False, repr=False)
    _moved: int = field(init=False, repr=False)

    @one_thread()
    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        factors = tuple(as_workload(factor) for factor in self.factors)
        if not factors:
            _check.refuse(
                "factors", "hold one matrix for each axis", self.factors, "pass factors=[matrix, ...]"
            )
        put("factors", factors)
        put("stddev", as_number("stddev", self.stddev, "pass epsilon= to KroneckerMechanism.calibrated"))
        _check.instance(
            "neighboring", self.neighboring, Neighboring, "pass Neighboring.ADD_REMOVE or another"
        )
        given: Sequence[ArrayLike] | None = self.strategies
        if given is None:
            given = [_strategy(factor, self._bits) for factor in factors]
        strategies = tuple(np.array(strategy, dtype=np.float64) for strategy in given)
        put("strategies", strategies)
        if len(strategies) != len(factors):
            rule = f"be {len(factors)}, one for each factor"
            remedy = "leave them out to have them chosen"
            _check.refuse_state("strategies", rule, f"there are {len(strategies)}", remedy)
        axes = tuple(_settled(s, f, self._bits) for s, f in zip(strategies, factors, strict=True))
        put("_axes", axes)
        put("_moved", _squared_move([axis.whole for axis in axes], self.neighboring))
        self._check_noise()

    @classmethod
    def calibrated(
        cls,
        *,
        factors: Sequence[ArrayLike],
        epsilon: float,
        delta: float,
        strategies: Sequence[ArrayLike] | None = None,
        neighboring: Neighboring = Neighboring.ADD_REMOVE,
    ) -> KroneckerMechanism:
        """Return the mechanism with the smallest noise that meets (epsilon, delta).

        Parameters
        ----------
        epsilon, delta : float
            The guarantee; delta must be positive.
        factors, strategies, neighboring
            As in the class.

        Returns
        -------
        KroneckerMechanism
        """
        request = PrivacyTarget.approximate(epsilon, delta, "pass a small one, as the noise is Gaussian")
        template = cls(factors=factors, stddev=1, strategies=strategies, neighboring=neighboring)  # type: ignore[arg-type]
        moved = float(sqrt_up(Fraction(template.l2_squared)))
        start = analytic_gaussian_stddev(sensitivity=moved, epsilon=request.epsilon, delta=request.delta)
        noise = minimum_noise(template._price, request, Fraction(start))
        found = copy.copy(template)
        object.__setattr__(found, "stddev", plain(noise / (1 << template._total_bits)))
        found._check_noise()  # noqa: SLF001
        return found

    @property
    def l2_squared(self) -> int:
        """The squared L2 norm by which one unit moves what is measured, in steps of the noise."""
        return self._moved

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release."""
        return self._price(self._noise())

    @property
    def stddevs(self) -> Array:
        """Standard deviation of each answer's noise, of the answers' shape."""
        norms = [np.linalg.norm(axis.decoder, axis=1) for axis in self._axes]
        return float(self.stddev) * _outer(norms)

    @one_thread()
    def release(self, value: Any, rng: Rng = None) -> LinearRelease:
        """Answer all queries on a table of counts.

        Parameters
        ----------
        value : array of integers, one axis for each factor
            The counts.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        LinearRelease
            The answers, with one axis for each factor.

        Raises
        ------
        ParameterError
            If the type or the shape does not fit; never for a count.
        """
        counts = np.asarray(whole(value))
        shape = tuple(axis.whole.shape[1] for axis in self._axes)
        if counts.shape != shape:
            remedy = "pass the table of counts, one axis for each factor"
            _check.refuse_type("value", f"have the shape {shape}", counts, remedy)
        source = random_source(rng)
        measured = _apply([axis.whole for axis in self._axes], counts, _multiply_exactly)
        noisy = measured + discrete_gaussian(self._noise(), measured.shape, source)
        unit = 2.0**-self._total_bits
        decoders = [axis.decoder for axis in self._axes]
        magnitudes = _outer([np.abs(decoder).sum(axis=1) for decoder in decoders])
        floats = FLOATS * magnitudes + 2 * self._off()
        error = NormalError(
            stddev=self.stddevs,
            slack=unit * (0.5 * magnitudes + floats * float(np.abs(noisy.astype(np.float64)).max())),
            missed=np.full(magnitudes.shape, noisy.size * 0.125 / float(self._noise()) ** 2),
        )
        return self._release_as(LinearRelease, _apply(decoders, noisy * unit), source, error=error)

    def _off(self) -> Array:
        """Return by how much of the greatest measurement answers are off, for want of an exact inverse."""
        asked = [np.abs(np.asarray(factor)).sum(axis=1) for factor in self.factors]
        nearly = [exact + axis.off for exact, axis in zip(asked, self._axes, strict=True)]
        return (_outer(nearly) - _outer(asked)) * math.prod(axis.inverse for axis in self._axes)

    @property
    def _bits(self) -> int:
        return _BITS // len(self.factors)

    @property
    def _total_bits(self) -> int:
        return self._bits * len(self.factors)

    def _check_noise(self) -> None:
        if not 1 <= self._noise() <= _WIDEST:
            rule = f"be from 1 to 2**40 steps of 2**-{self._total_bits}"
            remedy = "pass epsilon= to KroneckerMechanism.calibrated to have it chosen"
            _check.refuse("stddev", rule, self.stddev, remedy)

    def _noise(self) -> Fraction:
        return Fraction(self.stddev) * (1 << self._total_bits)

    def _price(self, noise: Fraction) -> PrivacyLoss:
        return DiscreteGaussianVector(noise, self.l2_squared, neighboring=self.neighboring)


def _strategy(factor: Array, bits: int) -> Array:
    """Return a nearly optimal strategy that survives rounding."""
    found = optimal_strategy(factor)
    whole_factor = bool((factor == np.rint(factor)).all())
    if len(found.core) < factor.shape[1] and whole_factor:
        # Whole sums of a whole factor's rows stay among its sums, and so determine its answers exactly.
        sums = found.core @ np.linalg.pinv(factor)
        return np.asarray(np.ldexp(np.rint(np.ldexp(sums, bits)), -bits) @ factor)
    return found.strategy


def _settled(strategy: Array, factor: Array, bits: int) -> _Axis:
    """Return a strategy in whole multiples, and how a factor's answers follow from it."""
    if strategy.ndim != 2 or strategy.shape[1] != factor.shape[1] or not np.isfinite(strategy).all():
        rule = f"be finite, of a shape of (rows, {factor.shape[1]})"
        remedy = "pass one column for each cell of the axis"
        _check.refuse_type("strategies", rule, strategy, remedy)
    if float(np.linalg.norm(strategy, axis=0).max()) > 2:
        rule = "have columns of an L2 norm of about 1"
        remedy = "divide by the norm"
        _check.refuse_state("strategies", rule, "the largest exceeds 2", remedy)
    whole = np.rint(np.ldexp(strategy, bits)).astype(np.int64)
    floats = np.ldexp(whole.astype(np.float64), -bits)
    inverse = _inverse(floats)
    decoder = factor @ inverse
    missed = np.abs(decoder @ floats - factor)
    # What is no sum of the rows is off by about one multiple.
    if float(missed.max()) > 1e-9 * float(np.abs(factor).max()):
        remedy = "measure every cell, if only with little weight"
        rule = f"determine the answers in {bits} bits"
        _check.refuse_state("strategies", rule, "some answers do not follow from them", remedy)
    return _Axis(whole, decoder, missed.sum(axis=1), float(np.abs(inverse).sum(axis=1).max()))


def _inverse(floats: Array) -> Array:
    """Return the inverse of a strategy where floats find a good one, else the pseudo-inverse."""
    if floats.shape[0] == floats.shape[1]:
        try:
            found = np.linalg.inv(floats)
        except np.linalg.LinAlgError:
            return np.asarray(np.linalg.pinv(floats))
        if np.abs(floats).sum(axis=1).max() * np.abs(found).sum(axis=1).max() < _CONDITION:
            return np.asarray(found)
    return np.asarray(np.linalg.pinv(floats))


def _squared_move(strategies: Sequence[Integers], neighboring: Neighboring) -> int:
    """Return the squared L2 norm by which one unit moves the product of strategies; see the class's notes."""
    largest = math.prod(int(np.einsum("ij,ij->j", whole, whole).max()) for whole in strategies)
    if neighboring is not Neighboring.REPLACE_ONE:
        return largest
    grams = [floats.T @ floats for floats in (whole.astype(np.float64) for whole in strategies)]
    minimum = min(math.prod(choice) for choice in product(*((int(g.min()), int(g.max())) for g in grams)))
    # A record may also come from no cell, which moves one column alone.
    return max(largest, 2 * largest - 2 * minimum)


def _apply(
    matrices: Sequence[NDArray[Any]],
    table: NDArray[Any],
    multiply: Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]] = np.matmul,
) -> NDArray[Any]:
    """Multiply each axis by its matrix."""
    for axis, matrix in enumerate(matrices):
        front = np.moveaxis(table, axis, 0)
        answers = multiply(matrix, front.reshape(len(front), -1))
        table = np.moveaxis(answers.reshape(len(matrix), *front.shape[1:]), 0, axis)
    return table


def _multiply_exactly(matrix: Integers, columns: Integers) -> Integers:
    """Multiply whole numbers, exactly modulo 2**64: in digits so short that floats hold every partial sum."""
    rows = int(np.abs(matrix).sum(axis=1).max())
    width, floats = 53 - rows.bit_length(), matrix.astype(np.float64)
    out = np.zeros((len(matrix), columns.shape[1]), dtype=np.int64)
    for shift in range(0, 64, width):
        # The highest digit has the sign; as many are taken whatever the values are.
        digit = columns >> shift
        if shift + width < 64:
            digit = digit & ((1 << width) - 1)
        out += (floats @ digit.astype(np.float64)).astype(np.int64) << shift
    return out


def _outer(parts: Sequence[Array]) -> Array:
    return np.asarray(reduce(np.multiply.outer, parts))
