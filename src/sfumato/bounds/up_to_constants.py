"""Formulas that are known only up to constants, in a type that cannot be compared with exact numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, NoReturn, final

from sfumato import _check

__all__ = [
    "UpToConstants",
    "fingerprinting_order",
    "histogram_order",
    "reconstruction_order",
    "threshold_order",
]

_MOST: Final = 1 << 1000


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UpToConstants:
    """A formula whose constants no theorem states; it shows how a limit grows and is no number.

    Parameters
    ----------
    quantity : str
        What grows so: ``"rows"``.
    formula : str
    without_constants : str
        The formula's value with every constant 1, as text.
    mechanisms : str
        The class that the theorem is about.
    theorem : str

    Notes
    -----
    It has no order, no equality with numbers and no value as a float: it can be neither plotted nor compared.

    Examples
    --------
    >>> print(reconstruction_order(10_000))
    error: of order sqrt(rows) = 100, up to constants, for all mechanisms. Source: Dinur and Nissim (2003).
    """

    quantity: str
    formula: str
    without_constants: str
    mechanisms: str
    theorem: str

    def __str__(self) -> str:
        return (
            f"{self.quantity}: of order {self.formula} = {self.without_constants}, up to constants, "
            f"for {self.mechanisms}. Source: {self.theorem}."
        )

    def _refuse(self, *_: object) -> NoReturn:
        message = "a formula up to constants is no number; print it, or use a bound that is computed"
        raise TypeError(message)

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        self._refuse()

    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __float__ = _refuse
    __hash__ = None  # type: ignore[assignment]


def fingerprinting_order(dimension: int, *, error: float, epsilon: float) -> UpToConstants:
    """Return how many rows the mean of a vector of bits needs under approximate differential privacy.

    Parameters
    ----------
    dimension : int
        How many means are released together.
    error : float
        Average error of a mean of values from 0 to 1.
    epsilon : float
        With a delta well below one over the rows.

    Returns
    -------
    UpToConstants

    References
    ----------
    Bun, Ullman, Vadhan (2014), "Fingerprinting codes and the price of approximate differential privacy";
    Steinke, Ullman (2016), "Between pure and approximate differential privacy".

    Examples
    --------
    >>> fingerprinting_order(10_000, error=0.1, epsilon=1.0).without_constants
    '1000'
    """
    dimension = _check.integer("dimension", dimension, minimum=1)
    _check_size("dimension", dimension)
    size = math.sqrt(dimension) / _check.positive("error", error) / _check.positive("epsilon", epsilon)
    return UpToConstants(
        quantity="rows",
        formula="sqrt(dimension) / (error epsilon)",
        without_constants=f"{size:.6g}",
        mechanisms="all mechanisms of (epsilon, delta)-DP, with delta below 1/rows",
        theorem="Bun, Ullman and Vadhan (2014)",
    )


def reconstruction_order(rows: int) -> UpToConstants:
    """Return from which error on random subset counts do not reveal nearly all bits.

    Parameters
    ----------
    rows : int
        Each with one secret bit; there are about as many counts.

    Returns
    -------
    UpToConstants

    References
    ----------
    Dinur, Nissim (2003), "Revealing information while preserving privacy".

    Examples
    --------
    >>> reconstruction_order(400).without_constants
    '20'
    """
    rows = _check.integer("rows", rows, minimum=1)
    _check_size("rows", rows)
    return UpToConstants(
        quantity="error",
        formula="sqrt(rows)",
        without_constants=f"{math.sqrt(rows):.6g}",
        mechanisms="all mechanisms",
        theorem="Dinur and Nissim (2003)",
    )


def histogram_order(cells: int, *, epsilon: float, delta: float = 0.0) -> UpToConstants:
    """Return the order of the greatest error of a histogram's counts.

    Parameters
    ----------
    cells : int
    epsilon : float
    delta : float
        0 for pure differential privacy.

    Returns
    -------
    UpToConstants

    References
    ----------
    Hardt, Talwar (2010), "On the geometry of differential privacy"; Vadhan (2017), "The complexity of
    differential privacy".

    Examples
    --------
    >>> histogram_order(1 << 40, epsilon=1.0, delta=1e-6).without_constants
    '13.8155'
    """
    cells = _check.integer("cells", cells, minimum=2)
    epsilon, delta = _check.positive("epsilon", epsilon), _check.probability("delta", delta)
    reach = math.log(cells) if not delta else min(math.log(cells), -math.log(delta))
    return UpToConstants(
        quantity="error",
        formula="log(cells) / epsilon" if not delta else "min(log(cells), log(1/delta)) / epsilon",
        without_constants=f"{reach / epsilon:.6g}",
        mechanisms="all mechanisms of epsilon-DP" if not delta else "all mechanisms of (epsilon, delta)-DP",
        theorem="Hardt and Talwar (2010)" if not delta else "Vadhan (2017)",
    )


def threshold_order(points: int, *, error: float, epsilon: float, pure: bool) -> UpToConstants:
    """Return how many rows a threshold on an ordered domain needs to be learned.

    Parameters
    ----------
    points : int
        Of the ordered domain.
    error : float
        Of the learned threshold.
    epsilon : float
    pure : bool
        Whether delta is 0. Else it is the bound of Alon, Livni, Malliaris and Moran, which hardly grows.

    Returns
    -------
    UpToConstants

    References
    ----------
    Feldman, Xiao (2015), "Sample complexity bounds on differentially private learning via communication
    complexity"; Alon, Livni, Malliaris, Moran (2019), "Private PAC learning implies finite Littlestone
    dimension".

    Examples
    --------
    >>> print(threshold_order(1 << 20, error=0.1, epsilon=1.0, pure=False).formula)
    log*(points)
    """
    points = _check.integer("points", points, minimum=2)
    size = math.log(points) / _check.positive("error", error) / _check.positive("epsilon", epsilon)
    stars, left = 1, math.log2(points)
    while left > 1:
        stars, left = stars + 1, math.log2(left)
    return UpToConstants(
        quantity="rows",
        formula="log(points) / (error epsilon)" if pure else "log*(points)",
        without_constants=f"{size:.6g}" if pure else str(stars),
        mechanisms="proper and improper learners of epsilon-DP"
        if pure
        else "learners of (epsilon, delta)-DP",
        theorem="Feldman and Xiao (2015)" if pure else "Alon, Livni, Malliaris and Moran (2019)",
    )


def _check_size(name: str, size: int) -> None:
    """Refuse a number whose root is no float."""
    if size > _MOST:
        _check.refuse(name, "be at most 2**1000", size, "pass a smaller one")
