r"""The client half of directions: of some random vectors that a seed makes, one along the truth is reported.

A report is a seed of 40 bits and the number of one of K vectors that follow from it. The seed is drawn
whatever is true. Given the seed, the vectors are sorted by how far they point along the truth; one of the
first w is reported with some chance P, each alike, and else one of the others, each alike. However a device
computes the vectors and their order, the first w are w of K: the guarantee does not rest on floating point.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import NormalDist
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.local.device.base.bernoulli import Coin, odds_below, truth_coin
from sfumato.local.device.base.randomizer import Randomizer
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.vector.random_vectors import PIECE, gaussians, on_sphere
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.randomness.uniform import uniform_integers

__all__ = ["DirectionRandomizer", "PrivUnitGRandomizer", "PrivUnitRandomizer", "SphereSamplingRandomizer"]

_SEED_BITS: Final = 40
_MAX: Final = 1 << 12
_LARGEST: Final = 1 << 16
_SLACK: Final = 1e-9

Vectors = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectionRandomizer(Randomizer):
    r"""A client half that reports a vector of bounded Euclidean norm.

    Parameters
    ----------
    epsilon : float
        See `Randomizer`.
    dimension : int
        Numbers in a vector, from 2 to 2^16.
    radius : float
        Upper bound on the norm of a true vector; public.

    Attributes
    ----------
    count, near : int
        The K and the w.
    inside : Coin
        That of P: the largest multiple of :math:`2^{-64}` for which :math:`\frac{P/w}{(1-P)/(K-w)} \le
        e^\epsilon`.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one: given the seed, which is independent of the
    truth, each number has the probability P/w or (1 - P)/(K - w), exactly.

    A vector x shorter than the radius becomes :math:`\pm x/|x|`, the sign drawn such that the mean is x over
    the radius; that comes before the randomization.
    """

    chosen: ClassVar[tuple[str, ...]] = ("epsilon", "dimension", "radius")
    """The parameters that a specification is read by; the others follow."""
    generator: ClassVar[str] = "splitmix-1"
    """How vectors follow from a seed, in specifications."""

    dimension: int
    radius: float = 1.0
    near: int = field(init=False, repr=False, compare=False)
    inside: Coin = field(init=False, repr=False, compare=False)

    def _prepare(self) -> None:
        size = _check.integer(
            "dimension", self.dimension, minimum=2, remedy="use OneBitMeanRandomizer for one number"
        )
        if size > _LARGEST:
            _check.refuse("dimension", f"be at most {_LARGEST}", size, "report parts of the vector")
        self._set(dimension=size, radius=_check.positive("radius", self.radius))
        self._check_count()
        near = self._best(odds_below(self.epsilon))
        self._set(near=near, inside=truth_coin(self.epsilon, near, self.count - near))

    def _check_count(self) -> None:
        """Check the number of vectors that a seed makes."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many vectors a seed makes."""

    @abstractmethod
    def _best(self, odds: Fraction) -> int:
        """Return the best number of near vectors."""

    @abstractmethod
    def vectors(self, seeds: NDArray[np.uint64], numbers: NDArray[np.int64]) -> Vectors:
        """Return vectors by seeds and numbers.

        Parameters
        ----------
        seeds : array, shape (reports,)
        numbers : array, shape (reports, some)

        Returns
        -------
        array of whole numbers, shape (reports, some, dimension)
            Of a rotation-invariant distribution, in units of 2^-12.
        """

    def _chances(self) -> dict[str, Any]:
        return {"near": self.near, "inside": self.inside.threshold, "vectors": self.generator}

    @property
    def odds(self) -> Fraction:
        """How much likelier a near vector is than another, exactly."""
        inside = self.inside.chance
        return inside * (self.count - self.near) / ((1 - inside) * self.near)

    @property
    def _bits(self) -> int:
        return _SEED_BITS + (self.count - 1).bit_length()

    def _records(self, values: Any, source: RandomSource) -> Records:
        rows = self._checked(values)
        return np.concatenate([self._encode(rows[part], source) for part in self._blocks(len(rows))])

    def _blocks(self, size: int) -> list[slice]:
        """Return pieces of many reports of which each has bounded memory."""
        each = max(1, PIECE // (self.count * self.dimension))
        return [slice(start, start + each) for start in range(0, max(size, 1), each)]

    def _checked(self, values: Any) -> Vectors:
        """Return true vectors in units of the radius; the one error does not show them."""
        try:
            given = np.asarray(values)
        except ValueError:
            given = np.array(None)
        if given.shape == (0,):
            given = np.zeros((0, self.dimension))
        sound = given.dtype.kind in "iuf" and given.ndim == 2 and given.shape[1] == self.dimension
        with np.errstate(over="ignore"):  # a warning would show that a number is huge
            rows = given.astype(np.float64) / self.radius if sound else np.zeros((1, 1))
            short = np.sqrt((rows * rows).sum(axis=1)) <= 1 + _SLACK
        if not sound or not short.all():
            raise ParameterError(
                f"values must be vectors of {self.dimension} numbers with a norm of at most {self.radius}, "
                "one per respondent, got others; scale them down on the device"
            )
        return rows

    def _encode(self, rows: Vectors, source: RandomSource) -> Records:
        size = len(rows)
        seeds = source.words(size) >> np.uint64(64 - _SEED_BITS)
        aligned = self._sided(rows, source)
        order = np.argsort(-self.along(seeds, aligned), axis=1, kind="stable")
        near = uniform_integers(self.near, size, source)
        far = self.near + uniform_integers(self.count - self.near, size, source)
        rank = np.where(self.inside.flip(size, source), near, far)
        chosen = order[np.arange(size), rank].astype(np.uint64)
        return self.layout.pack(chosen << np.uint64(_SEED_BITS) | seeds)

    def _sided(self, rows: Vectors, source: RandomSource) -> Vectors:
        """Return vectors on either side of the origin by chance; their length no longer matters."""
        norms = np.minimum(np.sqrt((rows * rows).sum(axis=1)), 1.0)
        ahead = np.ldexp((1 + norms) / 2, 53).astype(np.uint64)
        sides = np.where(source.words(len(rows)) >> np.uint64(11) < ahead, 1.0, -1.0)
        safe = rows / np.where(norms > 0, norms, 1.0)[:, None]
        safe[norms == 0, 0] = 1.0
        return np.asarray(safe * sides[:, None])

    def along(self, seeds: NDArray[np.uint64], rows: Vectors) -> Vectors:
        """Return how far each of the seeds' vectors points along a given one, shape (reports, count)."""
        found = np.empty((len(seeds), self.count))
        each = max(1, PIECE // max(1, len(seeds) * self.dimension))
        for start in range(0, self.count, each):
            numbers = np.arange(start, min(start + each, self.count))
            made = self.vectors(seeds, np.broadcast_to(numbers, (len(seeds), len(numbers))))
            found[:, numbers] = np.einsum("rcd,rd->rc", made, rows)
        return found

    def opened(self, records: Records) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Return the seeds of records, and the numbers of the reported vectors."""
        payloads = self.layout.unpack(records)
        seeds = payloads & np.uint64((1 << _SEED_BITS) - 1)
        return seeds, (payloads >> np.uint64(_SEED_BITS)).astype(np.int64)

    def well_formed(self, records: Records) -> NDArray[np.bool_]:
        """Return which records number one of the vectors."""
        return self.opened(records)[1] < self.count

    def probabilities(self, value: Any, seed: int = 0) -> dict[bytes, Fraction]:
        """Return the probability of each report of one seed, given it, were a unit vector true: private."""
        seeds = np.array([seed], np.uint64)
        order = np.argsort(-self.along(seeds, self._checked([value])), axis=1, kind="stable")[0]
        near, far = self.inside.chance / self.near, (1 - self.inside.chance) / (self.count - self.near)
        payloads = np.arange(self.count, dtype=np.uint64) << np.uint64(_SEED_BITS) | seeds
        within = set(order[: self.near].tolist())
        rows = self.layout.pack(payloads)
        return {row.tobytes(): near if at in within else far for at, row in enumerate(rows)}


@dataclass(frozen=True, slots=True, kw_only=True)
class CapRandomizer(DirectionRandomizer):
    r"""A direction near the truth: of many vectors of a seed, one of the few that point farthest along it.

    Parameters
    ----------
    epsilon, dimension, radius
        See `DirectionRandomizer`.
    candidates : int, optional
        Vectors that a seed makes, from 2 to 2^12; left out, the smallest power of two that is at least
        :math:`8 e^\epsilon`, and from 64 to 2^12. A device makes them all, the server only the reported one.
    """

    chosen: ClassVar[tuple[str, ...]] = (*DirectionRandomizer.chosen, "candidates")
    opposites: ClassVar[bool] = False
    """Whether each of the vectors has its opposite among them."""

    candidates: int | None = None

    def _check_count(self) -> None:
        if self.candidates is None:
            self._set(candidates=self._enough())
        found = _check.integer("candidates", self.candidates, minimum=2)
        if found > _MAX:
            _check.refuse("candidates", f"be at most {_MAX}", found, "take fewer: more gain hardly anything")
        if self.opposites and found % 2:
            _check.refuse("candidates", "be even", found, "take one more: each has its opposite")
        self._set(candidates=found)

    def _enough(self) -> int:
        """Return how many vectors a seed makes where nobody says it."""
        wanted = math.ceil(math.log2(8.0) + self.epsilon / math.log(2.0))
        return min(max(1 << min(wanted, 12), 64), _MAX)

    @property
    def count(self) -> int:
        """How many vectors a seed makes."""
        return self.candidates or 0

    def _best(self, odds: Fraction) -> int:
        likelier, heights = float(odds), self._mean_heights()

        def gain(near: int) -> float:
            # What P adds to the mean height.
            part = near / self.count
            return heights[near - 1] * part * (likelier - 1) / (part * likelier + 1 - part)

        return max(range(1, self.count // 2 + 1), key=gain)

    def _mean_heights(self) -> list[float]:
        """Return about how far the first w vectors point along the truth in the mean, for each w to K/2."""
        normal = NormalDist()
        parts = [near / self.count for near in range(1, self.count // 2 + 1)]
        # The mean of the largest fraction of many normal numbers.
        return [normal.pdf(normal.inv_cdf(1 - part)) / part for part in parts]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivUnitRandomizer(CapRandomizer):
    r"""A random unit vector that mostly lies in a cap around the truth, the cap being the nearest of some.

    Parameters
    ----------
    epsilon, dimension, radius, candidates
        See `CapRandomizer`.

    References
    ----------
    Bhowmick, Duchi, Freudiger, Kapoor, Rogers (2018), "Protection against reconstruction and its applications
    in private federated learning": the continuous one. Shah, Chen, Balle, Kairouz, Theis (2022), "Optimal
    compression of locally differentially private mechanisms": sending one of some candidates.

    Examples
    --------
    >>> device = PrivUnitRandomizer(epsilon=4.0, dimension=100)
    >>> device.count, device.width
    (512, 11)
    """

    wire_name: ClassVar[str] = "privunit"

    def vectors(self, seeds: NDArray[np.uint64], numbers: NDArray[np.int64]) -> Vectors:
        """Return vectors that are uniform on a sphere.

        Parameters
        ----------
        seeds, numbers : array
            See `DirectionRandomizer.vectors`.

        Returns
        -------
        float array, shape (reports, some, dimension)
        """
        return np.rint(on_sphere(gaussians(seeds, numbers, self.dimension)))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivUnitGRandomizer(CapRandomizer):
    r"""`PrivUnitRandomizer` with normal vectors, which are as good for many dimensions and simpler.

    Parameters
    ----------
    epsilon, dimension, radius, candidates
        See `CapRandomizer`.

    References
    ----------
    Asi, Feldman, Talwar (2022), "Optimal algorithms for mean estimation under local differential privacy".

    Examples
    --------
    >>> len(PrivUnitGRandomizer(epsilon=1.0, dimension=3).randomize([0.0, 0.6, 0.8]))
    10
    """

    wire_name: ClassVar[str] = "privunit-g"

    def vectors(self, seeds: NDArray[np.uint64], numbers: NDArray[np.int64]) -> Vectors:
        """Return vectors of normal numbers.

        Parameters
        ----------
        seeds, numbers : array
            See `DirectionRandomizer.vectors`.

        Returns
        -------
        float array, shape (reports, some, dimension)
        """
        return np.rint(gaussians(seeds, numbers, self.dimension))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SphereSamplingRandomizer(DirectionRandomizer):
    r"""A random unit vector, and one bit: whether it points along the truth, by randomized response.

    Parameters
    ----------
    epsilon, dimension, radius
        See `DirectionRandomizer`; K is 2 and w is 1, the two vectors being opposite.

    References
    ----------
    Duchi, Jordan, Wainwright (2018), "Minimax optimal procedures for locally private estimation", section
    4.2.3: sampling from one half of a sphere or the other.

    Examples
    --------
    >>> len(SphereSamplingRandomizer(epsilon=1.0, dimension=3).randomize([0.0, 0.6, 0.8]))
    10
    """

    wire_name: ClassVar[str] = "sphere-sampling"

    @property
    def count(self) -> int:
        """Two: the vector and its opposite."""
        return 2

    def _best(self, odds: Fraction) -> int:
        return 1

    def vectors(self, seeds: NDArray[np.uint64], numbers: NDArray[np.int64]) -> Vectors:
        """Return vectors that are uniform on a sphere (number 0), or their opposites (number 1).

        Parameters
        ----------
        seeds, numbers : array
            See `DirectionRandomizer.vectors`.

        Returns
        -------
        float array, shape (reports, some, dimension)
        """
        made = np.rint(on_sphere(gaussians(seeds, np.zeros((len(seeds), 1), np.int64), self.dimension)))
        return np.asarray(made * (1 - 2 * numbers[:, :, None]))
