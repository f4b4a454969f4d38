"""Buffered linear Toeplitz (BLT) strategies: nearly the square root's error with a few buffers of memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import scipy
from numpy.typing import ArrayLike

from sfumato import _check
from sfumato.mechanisms.factorization.strategies.buffered_error import BufferedError, best_buffers
from sfumato.mechanisms.factorization.strategies.participation import ONCE, Participation
from sfumato.mechanisms.factorization.strategies.power_series import check_steps, prefix_weights
from sfumato.mechanisms.factorization.strategies.strategy import Array, Draw, NoiseStream, check_unfinished
from sfumato.mechanisms.factorization.strategies.toeplitz import ToeplitzStrategy
from sfumato.mechanisms.factorization.strategies.toeplitz_error import ToeplitzError, check_objective
from sfumato.numerics.blas_threads import one_thread

__all__ = ["BufferedToeplitz"]

_PART: Final = 1 << 14


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BufferedToeplitz(ToeplitzStrategy):
    r"""Coefficients that are a sum of a few decays: :math:`c_i = \sum_j \omega_j \lambda_j^{i-1}` after 1.

    Parameters
    ----------
    steps : int
        The public number of steps.
    decays : sequence of float
        :math:`\lambda`, in [0, 1).
    weights : sequence of float
        :math:`\omega`, positive, with a sum of at most 1: so that no coefficient exceeds the one before.

    Notes
    -----
    Each buffer is a decaying sum of what was given out: :math:`w_t = z_t - \sum_j \omega_j s_{j,t}` and
    :math:`s_{j,t+1} = \lambda_j s_{j,t} + w_t`. So correlated noise for a model of any size takes as many
    copies of it as there are buffers, whatever the number of steps.

    References
    ----------
    Dvijotham, McMahan, Pillutla, Steinke, Thakurta (2024), "Efficient and near-optimal noise generation for
    streaming differential privacy"; McMahan, Xu, Zhang (2024), "A hassle-free algorithm for strong
    differential privacy in federated learning systems".

    Examples
    --------
    >>> from sfumato.mechanisms import SquareRoot
    >>> buffered = BufferedToeplitz.optimal(steps=1024)
    >>> buffered.noise().memory, buffered.max_error() < 1.001 * SquareRoot(steps=1024).max_error()
    (5, True)
    """

    steps: int
    decays: tuple[float, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        check_steps(self.steps)
        decays = tuple(_check.finite("decays", value) for value in self.decays)
        weights = tuple(_check.positive("weights", value) for value in self.weights)
        if not decays or any(not 0 <= value < 1 for value in decays):
            remedy = "take BufferedToeplitz.optimal to have them chosen"
            _check.refuse("decays", "be from 0 to below 1, and one at least", decays, remedy)
        if len(weights) != len(decays) or sum(weights) > 1:
            remedy = "take BufferedToeplitz.optimal to have them chosen"
            _check.refuse("weights", "be as many as decays, with a sum of at most 1", weights, remedy)
        object.__setattr__(self, "decays", decays)
        object.__setattr__(self, "weights", weights)

    def coefficients(self) -> Array:
        """Return c, shape (steps,), made to fall where rounding would not let it.

        Returns
        -------
        array of shape (steps,) or shorter
            The first is 1; those that are left out are 0.
        """
        powers = np.arange(self.steps - 1)
        with np.errstate(under="ignore"):
            tail = sum(w * np.power(d, powers) for w, d in zip(self.weights, self.decays, strict=True))
        return np.minimum.accumulate(np.concatenate([[1.0], np.asarray(tail)]))

    def noise(self) -> NoiseStream:
        """Return a fresh stream of ``C^-1 z``: memory for one array for each buffer.

        Returns
        -------
        NoiseStream
        """
        return _Buffers(self)

    @classmethod
    @one_thread()
    def optimal(
        cls,
        *,
        steps: int,
        buffers: int | None = None,
        participation: Participation = ONCE,
        workload: ArrayLike | None = None,
        objective: str = "max",
    ) -> BufferedToeplitz:
        """Return decays and weights with nearly the smallest error.

        Parameters
        ----------
        steps : int
        buffers : int, optional
            How many, from 1 to 10. Unless given, they are added until one lowers the error by less than a
            thousandth: 5 for a thousand steps, 7 for a million.
        participation : Participation
            Whose sensitivity the error is for.
        workload : array, optional
            Weights by age; prefix sums unless given.
        objective : {"max", "mean"}
            Which squared error: the greatest, or the mean over all steps.

        Returns
        -------
        BufferedToeplitz
            At a local minimum. For prefix sums the error is known in closed form, so that a million steps
            take a part of a second (see `BufferedError`); other workloads go on from there, by series as long
            as the stream.
        """
        check_steps(steps)
        check_objective(objective)
        if buffers is not None and _check.integer("buffers", buffers, minimum=1) > 10:
            _check.refuse("buffers", "be at most 10", buffers, "pass 10 or fewer; more change nothing")
        decays, weights = best_buffers(BufferedError(steps, participation, objective), buffers)
        if not (prefix_weights(workload, steps) == 1).all():
            criterion = ToeplitzError(steps, participation, workload, objective)
            found: Any = scipy.optimize.minimize(
                _Descent(steps, criterion),
                _free(decays, weights),
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": 500, "ftol": 1e-13, "gtol": 1e-9},
            )
            decays, weights = _settled(found.x)
        return cls(steps=steps, decays=tuple(decays.tolist()), weights=tuple(weights.tolist()))


class _Buffers(NoiseStream):
    """The recurrence of the class's notes."""

    def __init__(self, strategy: BufferedToeplitz) -> None:
        self._pairs = list(zip(strategy.decays, strategy.weights, strict=True))
        self._buffers: list[Array] = []
        self._steps = self._left = strategy.steps

    @property
    def memory(self) -> int:
        return len(self._pairs)

    def send(self, draw: Draw) -> Array:
        check_unfinished(self._steps - self._left, self._steps)
        self._left -= 1
        noise = np.array(draw(), order="C")
        if not self._buffers:
            self._buffers = [np.zeros(noise.size, dtype=noise.dtype) for _ in self._pairs]
        flat = noise.reshape(-1)
        # Part by part, so that all buffers' parts stay in the cache.
        for start in range(0, flat.size, _PART):
            part = slice(start, start + _PART)
            fresh = flat[part]
            for (_, weight), buffer in zip(self._pairs, self._buffers, strict=True):
                fresh -= weight * buffer[part]
            for (decay, _), buffer in zip(self._pairs, self._buffers, strict=True):
                retained = buffer[part]
                np.multiply(retained, decay, out=retained)
                np.add(retained, fresh, out=retained)
        return noise


class _Descent:
    """The criterion in free parameters: logits of the decays, and weights as shares of their sum."""

    def __init__(self, steps: int, criterion: ToeplitzError) -> None:
        self._powers = np.arange(steps - 1)
        self._criterion = criterion

    def __call__(self, free: Array) -> tuple[float, Array]:
        decays, weights = _settled(free)
        rise = np.power(decays[:, None], self._powers)
        c = np.concatenate([[1.0], weights @ rise])
        value, gradient = self._criterion(c)
        tail = gradient[1:]
        by_weight = rise @ tail
        # d/d decay of decay**p is p decay**(p-1); that of the decay by its logit is decay (1 - decay).
        by_logit = weights * ((rise * self._powers) @ tail) * (1 - decays)
        # weights = exp(u) / (1 + sum exp(u)), whose sum is below 1.
        by_share = weights * (by_weight - weights @ by_weight)
        return value, np.concatenate([by_logit, by_share])


def _settled(free: Array) -> tuple[Array, Array]:
    half = len(free) // 2
    decays = 1 / (1 + np.exp(-free[:half]))
    shares = np.exp(np.clip(free[half:], -60, 60))
    return np.minimum(decays, 1 - 2.0**-40), shares / (1 + shares.sum())


def _free(decays: Array, weights: Array) -> Array:
    rest = max(1 - weights.sum(), 1e-9)
    return np.concatenate([np.log(decays / (1 - decays)), np.log(weights / rest)])
