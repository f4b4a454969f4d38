"""The Poisson binomial mechanism: each client draws coins, and the number of their heads is its message."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato._wire import INTEGER, NUMBER, Format, Record
from sfumato.federated.distributed_noise.additive_noise import MAX_BITS, clipped
from sfumato.federated.distributed_noise.bounded_rounding import largest_norm_squared, round_within
from sfumato.federated.distributed_noise.mechanism import DistributedMechanism
from sfumato.federated.distributed_noise.poisson_binomial_bound import ORDERS, rate
from sfumato.federated.distributed_noise.rotation import rotate, rotate_back
from sfumato.mechanisms.base.calibration import PrivacyTarget
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
from sfumato.numerics.rounding import fraction_up
from sfumato.privacy._outward import above
from sfumato.privacy.leaves.rdp_curve import RDPCurve
from sfumato.privacy.neighboring import Neighboring

__all__ = ["DistributedPoissonBinomial"]

_GRID: Final = 32
"""Chances are whole numbers of 2^-32."""
_LEAST_THETA: Final = 2.0**-20
_LARGEST_THETA: Final = 0.25
_CLOSE: Final = 1_000_000
"""A theta that meets a budget is the largest one to a part in so many."""
_BLOCK: Final = 1 << 20
"""Coins that are drawn at once."""

_FORMAT: Final = Format("sfumato.distributed_poisson_binomial", 1)
_RECORD: Final[Record[Any]] = Record(
    "parameters of the Poisson binomial mechanism",
    dict,
    {
        "clients": INTEGER,
        "minimum_survivors": INTEGER,
        "colluders": INTEGER,
        "dimension": INTEGER,
        "clip_norm": NUMBER,
        "theta": NUMBER,
        "draws": INTEGER,
        "clipped": NUMBER,
    },
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DistributedPoissonBinomial(DistributedMechanism):
    r"""A sum of clients' vectors whose noise is that of coins, so that it is bounded and never wraps around.

    For each entry a client draws ``draws`` coins with a chance of 1/2, moved by the entry by at most
    ``theta``, and sends the number of heads. The sum needs :math:`\log_2(n m)` bits; it is unbiased.

    Parameters
    ----------
    clients : int
        How many may take part, at least 3.
    minimum_survivors : int
        With fewer vectors the round is aborted before anything is unmasked.
    dimension : int
        Entries of a vector.
    clip_norm : float
        Each vector is scaled down to this L2 norm where it is longer; from 2^-400 to 2^400.
    theta : float
        The most that an entry moves a coin's chance, from 2^-20 to 1/4; rounded down to a multiple of 2^-32.
        The smaller, the more noise.
    draws : int
        Coins of a client for each entry, an even number; ``calibrated`` takes the most that some bits hold.
    colluders : int, default 0
        So many clients may work with the server: their coins do not count. Below ``minimum_survivors``.
    clipped : float, default 1e-6
        The most probable that an entry of a client's rotated vector is clipped to ``entry_bound``.

    Attributes
    ----------
    bits : int
        Of an entry of the sum.
    entry_bound : float
        The most that an entry of a rotated vector is.
    l2_squared : int
        Bound on the squared L2 norm of the moves of the chances, in units of 2^-32; always enforced.

    Raises
    ------
    ParameterError
        If parameters do not fit together; no key exists by then.

    Notes
    -----
    Guarantee: `privacy_loss` for one round, under zero-out and on the conditions of
    `DistributedDiscreteGaussian`: the coins of the fewest honest survivors count, that of the client among
    them. It is Rényi DP, an upper bound that is proved in
    `sfumato.federated.distributed_noise.poisson_binomial_bound` for any vectors of the other clients, at the
    L2 norm after rotation, clipping and rounding. Coins are drawn exactly. Nobody proves that a client clips
    or draws.

    Accuracy: of the clipped vectors the sum is unbiased, up to the chance that an entry is clipped and the
    chance of 2^-40 for each client that its rounding is not the plain one. With few draws for each client,
    or a large ``theta``, the bound is loose: more bits help.

    References
    ----------
    W.-N. Chen, A. Ozgur, P. Kairouz. The Poisson binomial mechanism for unbiased federated learning with
    secure aggregation. ICML 2022.

    Examples
    --------
    >>> noise = DistributedPoissonBinomial(
    ...     clients=8, minimum_survivors=6, dimension=3, clip_norm=1.0, theta=0.01, draws=1000
    ... )
    >>> noise.bits, noise.encode([0.1, 0.2, 0.3], b"round 1").shape
    (13, (4,))
    >>> round(noise.privacy_loss.epsilon(1e-6), 2), str(noise.privacy_loss.neighboring)
    (1.2, 'zero out one unit')
    """

    _wire_name = "poisson-binomial"
    _format = _FORMAT
    _record = _RECORD

    clients: int
    minimum_survivors: int
    dimension: int
    clip_norm: float
    theta: float
    draws: int
    colluders: int = 0
    clipped: float = 1e-6
    bits: int = field(init=False)
    entry_bound: float = field(init=False, repr=False)
    l2_squared: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._check_clients()
        self._check_survivors()
        self._check_clip_norm()
        theta = _check.positive("theta", self.theta)
        if not _LEAST_THETA <= theta <= _LARGEST_THETA:
            _check.refuse("theta", "be from 2^-20 to 1/4", self.theta, "call calibrated")
        self._set("theta", math.floor(theta * 2.0**_GRID) * 2.0**-_GRID)
        self._set("clipped", _check.unit_interval("clipped", self.clipped))
        if _check.integer("draws", self.draws, minimum=2) % 2:
            _check.refuse("draws", "be even", self.draws, "take one more")
        self._set("bits", (self.clients * self.draws + 1).bit_length())
        if self.bits > MAX_BITS:
            _check.refuse("draws", f"leave sums within {MAX_BITS} bits", self.draws, "take fewer")
        likely = math.sqrt(2 * math.log(2 * self.padded / self.clipped) / self.padded)
        self._set("entry_bound", self.clip_norm * min(1.0, likely))
        norm = self.clip_norm * self._moves_per_unit * (1 + 2.0**-30)  # the rotation's own rounding
        self._set("l2_squared", largest_norm_squared(norm, self.padded))

    @classmethod
    def calibrated(
        cls, *, epsilon: float, delta: float, bits: int, clients: int, rounds: int = 1, **parameters: Any
    ) -> Self:
        """Return the mechanism with the least error whose sum fits some bits and whose loss meets a budget.

        Parameters
        ----------
        epsilon, delta : float
            The guarantee of all rounds; delta must be positive.
        bits : int
            Of an entry of the sum.
        clients : int
        rounds : int, default 1
            In how many rounds a client takes part.
        **parameters
            All others of the class but ``theta`` and ``draws``.

        Returns
        -------
        DistributedPoissonBinomial

        Raises
        ------
        ParameterError
            If the bits hold no two draws of each client, or no ``theta`` meets the budget.
        """
        request = PrivacyTarget.approximate(epsilon, delta, "noise of this kind has no pure guarantee")
        count = _check.integer("rounds", rounds, minimum=1)
        if not 2 <= _check.integer("bits", bits, minimum=1) <= MAX_BITS:
            _check.refuse("bits", f"be from 2 to {MAX_BITS}", bits, "16 to 20 are usual")
        number = _check.integer("clients", clients, minimum=3)
        draws = ((1 << bits) - 2) // number // 2 * 2
        if draws < 2:
            _check.refuse("bits", f"hold two draws of each of {number} clients", bits, "take more bits")

        def made(move: int) -> Self:
            return cls(clients=number, draws=draws, theta=move * 2.0**-_GRID, **parameters)

        def meets(move: int) -> bool:
            return request.met_by(made(move).privacy_loss * count)

        low, high = int(_LEAST_THETA * 2**_GRID), int(_LARGEST_THETA * 2**_GRID)
        if meets(high):
            return made(high)
        if not meets(low):
            rule = "be met by a theta of at least 2^-20"
            _check.refuse("epsilon", rule, request.epsilon, "take fewer bits, or fewer rounds")
        while high > low + low // _CLOSE + 1:
            middle = max(low + 1, math.isqrt(low * high))
            low, high = (middle, high) if meets(middle) else (low, middle)
        return made(low)

    @property
    def _moves_per_unit(self) -> float:
        """Units of 2^-32 by which a chance moves for an entry of 1 after the rotation."""
        return self.theta * 2.0**_GRID / self.entry_bound

    def loss_against(self, colluders: int) -> RDPCurve:
        """Return what one round costs, under zero-out, if so many clients work with the server.

        Parameters
        ----------
        colluders : int
            Below ``minimum_survivors``; all of them among the fewest survivors.

        Returns
        -------
        RDPCurve
        """
        others = (self._honest(colluders) - 1) * self.draws
        most = math.floor(self.theta * 2.0**_GRID)
        # The squares of all entries' moves over the largest one; none is above 1.
        squares = fraction_up(min(Fraction(self.padded), Fraction(self.l2_squared, most**2)))
        rates = [rate(order, draws=self.draws, others=others, theta=self.theta) for order in ORDERS]
        epsilons = [
            above(squares * found / (order - 1), 8.0) for order, found in zip(ORDERS, rates, strict=True)
        ]
        return RDPCurve(ORDERS, epsilons, neighboring=Neighboring.ZERO_OUT)

    def encode(self, vector: ArrayLike, seed: bytes, rng: Rng = None) -> NDArray[np.int64]:
        """Return a client's message for secure aggregation: the numbers of heads, less half of the coins.

        Parameters
        ----------
        vector : array_like of float, shape (dimension,)
            Private. A vector with an entry that is not finite counts as zeros.
        seed : bytes
            Public, the same for all clients of a round, and chosen without regard to their vectors.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        ndarray of int64, shape (padded,)
            From ``-draws / 2`` to ``draws / 2``.

        Raises
        ------
        ParameterError
            If the vector has another shape or type; nothing of its values is shown.
        """
        given, source = self._check_vector(vector), random_source(rng)
        rotated = rotate(clipped(given, self.clip_norm), seed)
        bounded = np.clip(rotated / self.entry_bound, -1.0, 1.0)
        moves = round_within(bounded * (self.theta * 2.0**_GRID), self.l2_squared, source)
        return _heads(moves, self.draws, source) - self.draws // 2

    def decode(self, total: ArrayLike, seed: bytes) -> NDArray[np.float64]:
        """Return the noisy sum of the survivors' vectors from the sum of their messages.

        Parameters
        ----------
        total : array_like of int, shape (padded,)
            As secure aggregation gives it.
        seed : bytes
            That of `encode`.

        Returns
        -------
        ndarray of float, shape (dimension,)
        """
        moved = self._check_total(total) / (self.draws * self.theta)
        return rotate_back(moved * self.entry_bound, seed, self.dimension)

    def variance(self, survivors: int) -> float:
        """Return a bound on the variance of each entry of the decoded sum, for so many survivors.

        Parameters
        ----------
        survivors : int
            From ``minimum_survivors`` to ``clients``.

        Returns
        -------
        float
            In squared units of the vectors: a quarter for each coin, and for the rounding of each chance.
        """
        coins = self.draws * (self.entry_bound / (self.draws * self.theta)) ** 2
        return self._check_count(survivors) * (coins + self._moves_per_unit**-2) / 4


def _heads(moves: NDArray[np.int64], draws: int, source: RandomSource) -> NDArray[np.int64]:
    """Return how many of so many coins fall on heads, each with the chance 1/2 + moves / 2^32, exactly."""
    limits = ((1 << (_GRID - 1)) + moves).astype(np.uint32)
    heads = np.zeros(len(moves), np.int64)
    rows = max(1, _BLOCK // len(moves))
    for start in range(0, draws, rows):
        count = min(rows, draws - start)
        words = source.words(-(-count * len(moves) // 2)).view(np.uint32)[: count * len(moves)]
        heads += (words.reshape(count, -1) < limits).sum(axis=0)
    return heads
