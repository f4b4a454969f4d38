"""Timing side channels: tests whether the time of a release correlates with its noise."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.audit.repeated_runs import single_call
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.release import Release
from sfumato.numerics.randomness.source import Rng

__all__ = ["TimingAudit", "audit_timing", "spearman"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TimingAudit:
    """How far the time of one call and the size of its noise go together.

    Parameters
    ----------
    spearman : float
        Rank correlation of time and magnitude, from -1 to 1.
    chance : float
        Its standard deviation if there is none: the inverse root of ``calls - 1``.
    median_seconds : float
        Of one call.
    calls : int

    Examples
    --------
    >>> from sfumato.mechanisms import Laplace
    >>> found = audit_timing(Laplace(sensitivity=1, scale=5), 0, calls=100)
    >>> found.calls, -1 <= found.spearman <= 1
    (100, True)
    """

    spearman: float
    chance: float
    median_seconds: float
    calls: int

    def __str__(self) -> str:
        return (
            f"rank correlation of time and noise {self.spearman:.4f} in {self.calls} calls of "
            f"{1e6 * self.median_seconds:.3g} us; chance alone gives {self.chance:.4f}"
        )


def audit_timing(
    mechanism: Mechanism | Callable[..., Any],
    data: Any,
    *,
    answer: float | None = None,
    calls: int = 40_000,
    rng: Rng = None,
) -> TimingAudit:
    """Correlate the time of single calls with the magnitude of what they gave.

    Parameters
    ----------
    mechanism : Mechanism or callable
        ``f(data)``, or ``f(data, size)`` for one output, timed one call at a time: what a caller can observe.
    data
        Its input.
    answer : float, optional
        The exact answer, from which noise is measured; the median output unless given.
    calls : int
        At least 100.
    rng : None, int, numpy Generator or RandomSource
        For a mechanism of ours. None, which a real release uses, is what should be timed.

    Returns
    -------
    TimingAudit
        A measurement on this machine, now: whatever else runs blurs it, and a small number proves nothing of
        another machine.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule, or outputs are not numbers.

    Notes
    -----
    A sampler that rejects or counts until it stops takes longer for large noise; whoever sees the time then
    learns something of the noise, and with the output, of the answer. The magnitude of an array is the sum of
    those of its entries.

    Examples
    --------
    >>> from sfumato.mechanisms import Laplace
    >>> audit_timing(Laplace(sensitivity=1, scale=5), 0, calls=200).calls
    200
    """
    calls = _check.integer("calls", calls, minimum=100)
    call = single_call(mechanism, rng=rng)
    times = np.empty(calls, dtype=np.int64)
    outputs = []
    call(data)  # the first call builds tables
    for k in range(calls):
        start = time.perf_counter_ns()
        output = call(data)
        times[k] = time.perf_counter_ns() - start
        outputs.append(output)
    magnitudes = _magnitudes(outputs, answer)
    return TimingAudit(
        spearman=spearman(times.astype(np.float64), magnitudes),
        chance=(calls - 1) ** -0.5,
        median_seconds=float(np.median(times)) / 1e9,
        calls=calls,
    )


def spearman(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return Spearman's rank correlation, ties sharing their mean rank; 0 where one side never varies.

    Examples
    --------
    >>> import numpy as np
    >>> spearman(np.array([1.0, 2.0, 3.0]), np.array([1.0, 4.0, 9.0]))
    1.0
    """
    ranked = [_ranks(values) for values in (first, second)]
    centred = [ranks - ranks.mean() for ranks in ranked]
    size = float(np.sqrt((centred[0] ** 2).sum() * (centred[1] ** 2).sum()))
    return float((centred[0] * centred[1]).sum()) / size if size else 0.0


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    _, index, counts = np.unique(values, return_inverse=True, return_counts=True)
    mean: NDArray[np.float64] = np.cumsum(counts) - (counts - 1) / 2
    return mean[index]


def _magnitudes(outputs: list[Any], answer: float | None) -> NDArray[np.float64]:
    values = [output.value if isinstance(output, Release) else output for output in outputs]
    try:
        numbers = np.asarray(values, dtype=np.float64).reshape(len(values), -1)
    except (TypeError, ValueError):
        _check.refuse_state(
            "mechanism",
            "return numbers",
            f"it returned a value of type {type(values[0]).__name__}",
            "map its output to a number",
        )
    centre = np.median(numbers, axis=0) if answer is None else answer
    return np.asarray(np.abs(numbers - centre).sum(axis=1), dtype=np.float64)
