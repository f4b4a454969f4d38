"""A privacy guarantee: the numbers of one notion, such as epsilon and delta, for a neighboring relation."""

from __future__ import annotations

from dataclasses import dataclass, fields

from sfumato import _check
from sfumato.privacy.neighboring import Relation

__all__ = ["Guarantee"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """Numbers that hold for every pair of neighboring datasets; they never compose by themselves.

    Parameters
    ----------
    neighboring : Neighboring or Relation
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
        The largest epsilon that a ledger would still answer at that delta; set by ledgers only, on what is
        left of a budget. There, several notions are alternatives: a charge need fit into one of them, and one
        of which nothing is left is used up.

    Raises
    ------
    ParameterError
        If no number is given, or one is negative or not a number, or the relation is none.

    Examples
    --------
    >>> from sfumato.privacy import Neighboring
    >>> print(Guarantee(neighboring=Neighboring.ADD_REMOVE, epsilon=0.5, delta=1e-8))
    (0.5, 1e-08)-DP, add/remove one unit
    >>> left = Guarantee(neighboring=Neighboring.ADD_REMOVE, epsilon=1.0, rho=0.0, answerable_epsilon=1.0)
    >>> print(left)
    1-DP (rho is used up, epsilon still accepts), add/remove one unit; still answers epsilon up to 1
    """

    neighboring: Relation
    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    mu: float | None = None
    order: float | None = None
    answerable_epsilon: float | None = None
    answerable_delta: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.neighboring, Relation):
            _check.refuse("neighboring", "be a Neighboring", self.neighboring, "pass Neighboring.ADD_REMOVE")
        numbers = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "neighboring"}
        for name, value in numbers.items():
            if value is not None and (
                isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0
            ):
                _check.refuse(
                    name, "be a non-negative number", value, "leave out a notion that holds nothing"
                )
        if self.epsilon is None and self.rho is None and self.mu is None:
            remedy = "pass one of them, such as epsilon=1.0"
            _check.refuse_state("guarantee", "state epsilon, rho or mu", "it states none", remedy)

    @property
    def amounts(self) -> str:
        """The numbers in words; of what is left of a budget, also which of them still accept a charge."""
        return self.in_words()

    def in_words(self, digits: int = 6) -> str:
        """Return `amounts` with so many significant digits.

        Parameters
        ----------
        digits : int
            17 show every float as it is.

        Returns
        -------
        str

        Examples
        --------
        >>> from sfumato.privacy import Guarantee, Neighboring
        >>> Guarantee(neighboring=Neighboring.ADD_REMOVE, epsilon=0.0099999999).in_words(9)
        '0.0099999999-DP'
        """
        notions = self._notions(digits)
        if self.answerable_epsilon is None:
            return " and ".join(notions.values())
        left = {name: text for name, text in notions.items() if getattr(self, name) > 0}
        gone = [name for name in notions if name not in left]
        used_up = f"{' and '.join(gone)} {'is' if len(gone) == 1 else 'are'} used up"
        if not left:
            return f"nothing ({used_up})"
        accepted = " or ".join(left.values())
        if gone:
            return f"{accepted} ({used_up}, {' and '.join(left)} still accepts)"
        return f"{accepted} (either accepts)" if len(left) > 1 else accepted

    def _notions(self, digits: int) -> dict[str, str]:
        shape = f".{digits}g"
        approximate = f"{self.delta:{shape}}-approximate " if self.delta and self.epsilon is None else ""
        notions = {}
        if self.epsilon is not None and self.order is not None:
            notions["epsilon"] = f"({self.order:g}, {self.epsilon:{shape}})-RDP"
        elif self.epsilon is not None:
            epsilon = f"{self.epsilon:{shape}}"
            notions["epsilon"] = f"({epsilon}, {self.delta:{shape}})-DP" if self.delta else f"{epsilon}-DP"
        if self.rho is not None:
            notions["rho"] = f"{approximate}{self.rho:{shape}}-zCDP"
        if self.mu is not None:
            notions["mu"] = f"{approximate}{self.mu:{shape}}-GDP"
        return notions

    def __str__(self) -> str:
        text = f"{self.amounts}, {self.neighboring}"
        if self.answerable_epsilon is None:
            return text
        at = f" at delta {self.answerable_delta:g}" if self.answerable_delta else ""
        if not self.answerable_epsilon:
            return f"{text}; no answer{at} fits any more"
        return f"{text}; still answers epsilon up to {self.answerable_epsilon:g}{at}"
