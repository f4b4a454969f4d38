"""The base class of all specimens: a broken algorithm, its false claim, and inputs that expose it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from sfumato import _check
from sfumato.audit.input_pairs import InputPair

__all__ = ["Specimen"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Specimen(ABC):
    """A published or classical mistake, never to be used on data of people.

    Parameters
    ----------
    epsilon : float
        The claim, which is false.
    rng : int, numpy Generator or None
        Where its noise comes from: numpy, which alone makes it unfit for real data.

    Examples
    --------
    >>> from sfumato.audit.specimens import FloatLaplace
    >>> isinstance(FloatLaplace(epsilon=1.0), Specimen)
    True
    """

    pairs: ClassVar[Sequence[InputPair]]
    """Neighboring inputs that show the mistake."""
    epsilon: float = 1.0
    rng: int | np.random.Generator | None = None
    _generator: np.random.Generator = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _check.positive("epsilon", self.epsilon))
        object.__setattr__(self, "_generator", np.random.default_rng(self.rng))

    @property
    def delta(self) -> float:
        """The delta of the claim."""
        return 0.0

    @abstractmethod
    def __call__(self, data: Any, size: int) -> Any:
        """Return ``size`` outputs of independent runs."""
