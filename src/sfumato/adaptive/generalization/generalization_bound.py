"""A bound on how far answers are from the population, with the theorem that proves it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

__all__ = ["GeneralizationBound", "rounded_up"]

_OUTWARD = 1 + 1e-11


def rounded_up(value: float) -> float:
    """Return a bound that was computed from sums and products of positive numbers, with its rounding paid."""
    return value * _OUTWARD


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GeneralizationBound:
    """With probability at least ``1 - beta`` all answers are within ``error`` of the population's values.

    Parameters
    ----------
    error : float
        For queries with values in [0, 1]; rounded up.
    beta : float
        Over the draw of the sample, the noise and the analyst's own randomness.
    theorem : str
        What proves it, with its source.
    parts : mapping of str to float
        What the error is made of.

    Examples
    --------
    >>> from sfumato.adaptive import sample_splitting_bound
    >>> print(sample_splitting_bound(rows=10_000, queries=10, beta=0.05))
    All answers within 0.0547 of the population (95 % sure). Proof: Hoeffding, a fresh part for each query.
    """

    error: float
    beta: float
    theorem: str
    parts: Mapping[str, float] = field(default_factory=dict)

    @property
    def vacuous(self) -> bool:
        """Whether it says no more than that values are in [0, 1]."""
        return not self.error < 1

    def __str__(self) -> str:
        if self.vacuous:
            return f"Vacuous: no error below 1 is proven. {self.theorem}."
        sure = f"{100 * (1 - self.beta):.6g} %"
        return f"All answers within {self.error:.3g} of the population ({sure} sure). Proof: {self.theorem}."
