"""A privacy guarantee: numbers in a notion, read off a loss or a budget."""

from __future__ import annotations

from dataclasses import dataclass, fields

from sfumato import _check
from sfumato.privacy.neighboring import Neighboring

__all__ = ["Guarantee"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """Numbers that hold for every pair of neighboring datasets; they never compose by themselves.

    Parameters
    ----------
    neighboring : Neighboring
        The relation that the numbers are about.
    epsilon, delta : float, optional
        An (epsilon, delta) guarantee; with ``order``, ``epsilon`` is a Rényi divergence.
    rho : float, optional
        Zero-concentrated DP; with ``delta`` and no ``epsilon``, delta-approximate rho-zCDP.
    mu : float, optional
        Gaussian DP; with ``delta`` and no ``epsilon``, up to a mass delta.
    order : float, optional
        The Rényi order that ``epsilon`` belongs to.
    answerable_epsilon, answerable_delta : float, optional
        The largest epsilon that a ledger would still answer at that delta; set by ledgers only.

    Raises
    ------
    ParameterError
        If no number is given, or one is negative or not a number.

    Examples
    --------
    >>> print(Guarantee(neighboring=Neighboring.ADD_REMOVE, epsilon=0.5, delta=1e-8))
    (0.5, 1e-08)-DP, add/remove one unit
    """

    neighboring: Neighboring
    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    mu: float | None = None
    order: float | None = None
    answerable_epsilon: float | None = None
    answerable_delta: float | None = None

    def __post_init__(self) -> None:
        numbers = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "neighboring"}
        for name, value in numbers.items():
            if value is not None and not value >= 0:
                _check.refuse(name, "be a non-negative number", value)
        if self.epsilon is None and self.rho is None and self.mu is None:
            _check.refuse("guarantee", "state at least one of epsilon, rho and mu", None)

    def _notions(self) -> list[str]:
        approximate = f"{self.delta:g}-approximate " if self.delta and self.epsilon is None else ""
        notions = []
        if self.epsilon is not None and self.order is not None:
            notions.append(f"({self.order:g}, {self.epsilon:g})-RDP")
        elif self.epsilon is not None:
            notions.append(f"({self.epsilon:g}, {self.delta:g})-DP" if self.delta else f"{self.epsilon:g}-DP")
        if self.rho is not None:
            notions.append(f"{approximate}{self.rho:g}-zCDP")
        if self.mu is not None:
            notions.append(f"{approximate}{self.mu:g}-GDP")
        return notions

    def __str__(self) -> str:
        text = f"{' and '.join(self._notions())}, {self.neighboring}"
        if self.answerable_epsilon is not None:
            text += f"; still answers epsilon up to {self.answerable_epsilon:g}"
            if self.answerable_delta:
                text += f" at delta {self.answerable_delta:g}"
        return text
