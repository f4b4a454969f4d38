"""Floating-point auditing: outputs that one input can produce and its neighbor never does."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato._display import html_facts
from sfumato.audit.flattening import numeric_entries
from sfumato.audit.input_pairs import InputPair, as_pairs
from sfumato.audit.lower_bounds import certified_epsilon
from sfumato.audit.repeated_runs import Run, runner
from sfumato.audit.verdict import verdict_facts
from sfumato.audit.worst_case_pairs import default_pairs
from sfumato.errors import ParameterError
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.numerics.confidence_bounds import lower_confidence_bound, upper_confidence_bound
from sfumato.numerics.randomness.source import Rng

__all__ = ["PrecisionAudit", "audit_precision"]

_CHUNK = 1 << 18
_MIN_TRIALS = 1000
_EXPECTED = 40.0  # a class that the claim leaves a chance of at most exp(-40) to stay away by accident
_EXPONENTS = 2200  # from that of the smallest float to that of the largest, and the end of a mantissa
_COLUMNS = 16
_ODD = 1 << 12  # classes of what is no finite number


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrecisionAudit:
    """What a search for impossible outputs found.

    Parameters
    ----------
    impossible : int
        Outputs of ``pair.first`` of a kind that ``pair.second`` never gave, among ``tested`` runs that had no
        part in learning the kinds; 0 if none was found.
    tested : int
        Number of those runs, on each input.
    epsilon_lower : float
        With probability ``confidence``, the mechanism is not (epsilon, delta)-DP for any smaller epsilon.
    epsilon, delta : float
        The claim.
    violated : bool
        Whether ``epsilon_lower`` exceeds the claim.
    pair : InputPair
        The two inputs, in the order in which the outputs tell them apart.
    confidence : float
    trials : int
        Runs on each input of each pair.

    Examples
    --------
    >>> import numpy as np
    >>> noise = np.random.default_rng(1)
    >>> def count(data, size):
    ...     return data + noise.laplace(0.0, 1.0, size)
    >>> found = audit_precision(count, epsilon=1.0, pairs=[(0, 1)], trials=20_000)
    >>> found.violated, found.tested
    (True, 10000)
    """

    impossible: int
    tested: int
    epsilon_lower: float
    epsilon: float
    delta: float
    violated: bool
    pair: InputPair
    confidence: float
    trials: int

    def _repr_html_(self) -> str:
        impossible = f"{self.impossible} of {self.tested} outputs are impossible on the second input"
        facts = verdict_facts(self) | {"low bits": impossible, "inputs": str(self.pair)}
        return html_facts("Audit of floating-point outputs", facts)

    def __str__(self) -> str:
        verdict = "VIOLATED" if self.violated else "not refuted"
        return (
            f"epsilon {self.epsilon:g} at delta {self.delta:g} in the low bits: {verdict}; {self.impossible} "
            f"of {self.tested} outputs on {self.pair} are impossible on the second"
        )


def audit_precision(
    mechanism: Mechanism | Callable[..., Any],
    *,
    epsilon: float,
    delta: float = 0.0,
    pairs: Iterable[Any] | None = None,
    trials: int = 1_000_000,
    confidence: float = 0.999,
    batch: bool | None = None,
    rng: Rng = None,
) -> PrecisionAudit:
    """Search for float outputs that only one of two neighboring inputs can give.

    Parameters
    ----------
    mechanism, pairs, batch, rng
        As in `audit`; what is looked at are the numbers in an output, the first 16 of a ragged one.
    epsilon, delta : float
        The claim.
    trials : int
        Runs on each input of each pair, at least 1,000; half of them learn.
    confidence : float
        Of the certified bound.

    Returns
    -------
    PrecisionAudit

    Raises
    ------
    ParameterError
        If a parameter breaks its rule, or there is no finite number in any output.

    Notes
    -----
    Every output has a class: its magnitude (the exponent of the float) and its precision (the exponent of the
    lowest bit that is set). Float noise added to an answer of 1 is rounded to multiples of 2**-53 or coarser
    wherever the sum is, while noise added to 0 keeps its own bits: an output near 0 that is no such multiple
    can only come from 0. A class is taken for impossible on the other input if it never came up there in the
    first half, though the claim would have shown it 40 times on average. What is reported are the outputs of
    such classes in the second half, if the other input again gave none.

    Guarantee: ``epsilon_lower`` is certified as in `audit`, by Clopper and Pearson's bounds in the second
    half for each direction of each pair.

    The search sees lattices and precisions that depend on the data. It does not see every set of holes: noise
    that skips some floats, as the logarithm of a uniform float does (Mironov 2012), may show another pattern.

    References
    ----------
    Haney, Desfontaines, Hartman, Shrestha, Hay (2022), "Precision-based attacks and interval refining: how to
    break, then fix, differential privacy on finite computers"; Mironov (2012), "On significance of the
    smallest significant bits for differential privacy".

    Examples
    --------
    >>> import numpy as np
    >>> noise = np.random.default_rng(1)
    >>> def count(data, size):
    ...     return data + noise.laplace(0.0, 1.0, size)
    >>> found = audit_precision(count, epsilon=1.0, pairs=[(0, 1)], trials=20_000)
    >>> found.violated, found.impossible > 1000
    (True, True)
    """
    epsilon = _check.non_negative("epsilon", epsilon)
    delta = _check.probability("delta", delta)
    trials = _check.integer("trials", trials, minimum=_MIN_TRIALS)
    risk = 1 - _check.unit_interval("confidence", confidence)
    run = runner(mechanism, batch=batch, rng=rng)
    inputs = as_pairs(default_pairs(mechanism) if pairs is None else pairs)
    tested = trials - trials // 2
    each = risk / (4 * len(inputs))
    found = []
    for pair in inputs:
        for turned, mine, theirs in _directions(run, pair, trials, epsilon, delta):
            minimum, maximum = (
                lower_confidence_bound(mine, tested, each),
                upper_confidence_bound(theirs, tested, each),
            )
            # What the other input gave after all is unlikely there, not impossible.
            impossible = 0 if theirs else mine
            found.append((impossible, certified_epsilon(float(minimum), float(maximum), delta), turned))
    impossible, forced, pair = max(found, key=lambda entry: entry[:2])
    return PrecisionAudit(
        impossible=impossible,
        tested=tested,
        epsilon_lower=forced,
        epsilon=epsilon,
        delta=delta,
        violated=forced > epsilon,
        pair=pair,
        confidence=confidence,
        trials=trials,
    )


def _directions(
    run: Run, pair: InputPair, trials: int, epsilon: float, delta: float
) -> Iterable[tuple[InputPair, int, int]]:
    """Yield for each direction the outputs in classes that the other input lacks, and the other's there."""
    half = trials // 2
    inputs = (pair.first, pair.second)
    learned = _aligned([_table(run, data, half) for data in inputs])
    if not any(table[:, _ODD:].any() for table in learned):
        raise ParameterError("mechanism must return numbers, it returned none; audit judges other outputs")
    width = len(learned[0])
    tested = _aligned([_table(run, data, trials - half) for data in inputs])
    tested = [_aligned([table[:width], learned[0]])[0] for table in tested]
    for mine, other in ((0, 1), (1, 0)):
        counts = learned[mine]
        expected = (counts - delta * half) * math.exp(-epsilon)
        lacking = (expected >= _EXPECTED) & (learned[other] == 0)
        # The column, of a vector, that tells most.
        column = int(np.argmax((counts * lacking).sum(axis=1)))
        turned = pair if mine == 0 else InputPair(first=pair.second, second=pair.first)
        seen = [int(tested[side][column][lacking[column]].sum()) for side in (mine, other)]
        yield turned, seen[0], seen[1]


def _aligned(tables: list[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """Return tables with as many columns each; what is not there was never seen."""
    width = max(len(table) for table in tables)
    return [np.pad(table, ((0, width - len(table)), (0, 0))) for table in tables]


def _table(run: Run, data: Any, size: int) -> NDArray[np.int64]:
    """Return how often each class came up, for each column of the outputs."""
    tables: list[NDArray[np.int64]] = []
    for start in range(0, size, _CHUNK):
        columns = numeric_entries(run(data, min(_CHUNK, size - start)), _COLUMNS)
        for j, column in enumerate(columns.T):
            if j == len(tables):
                tables.append(np.zeros(_ODD + _EXPONENTS * 64, dtype=np.int64))
            tables[j] += np.bincount(_classes(column), minlength=len(tables[j]))
    return np.stack(tables) if tables else np.zeros((1, _ODD + _EXPONENTS * 64), dtype=np.int64)


def _classes(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return magnitude and precision of each float, as one number."""
    mantissa, exponent = np.frexp(np.where(np.isfinite(values), values, 0.0))
    bits = np.abs(mantissa * 2.0**53).astype(np.int64)
    lowest = bits & -bits
    trailing = np.frexp(lowest.astype(np.float64))[1]  # 0 for a zero, else from 1 to 54
    classes = _ODD + (exponent.astype(np.int64) + 1100) * 64 + trailing
    special = np.where(np.isnan(values), 1, np.where(values > 0, 2, 3))
    return np.asarray(np.where(np.isfinite(values), classes, special), dtype=np.int64)
