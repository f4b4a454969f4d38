"""How likely an attacker who knows the quasi-identifiers of somebody finds the right row.

References
----------
K. El Emam, "Guide to the De-Identification of Personal Health Information", CRC Press, 2013, chapter 16: the
prosecutor, journalist and marketer attackers.

F. Dankar, K. El Emam, "A method for evaluating marketer re-identification risk", PAIS (EDBT workshops), 2010.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

__all__ = ["AttackerRisk", "journalist_risk", "prosecutor_risk", "uniqueness"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AttackerRisk:
    """The probability that a row is assigned to the right person, over the rows of the table.

    Parameters
    ----------
    highest : float
        Of the row at most risk.
    average : float
        Over all rows; it is also the expected fraction of rows that a marketer, who assigns every row and
        does not ask which, gets right.
    rows_at_highest : int
        How many rows have the highest risk.

    Examples
    --------
    >>> prosecutor_risk(np.array([2, 2, 4]))
    AttackerRisk(highest=0.5, average=0.375, rows_at_highest=4)
    """

    highest: float
    average: float
    rows_at_highest: int


def prosecutor_risk(sizes: NDArray[np.int64]) -> AttackerRisk:
    """Return the risk from an attacker who knows that the person is in the table.

    Parameters
    ----------
    sizes : int64 array
        The rows of each class of the table.

    Returns
    -------
    AttackerRisk
        One over the size of the row's class.
    """
    return journalist_risk(sizes, sizes)


def journalist_risk(sizes: NDArray[np.int64], population_sizes: NDArray[np.int64]) -> AttackerRisk:
    """Return the risk from an attacker who knows the population and not who is in the table.

    Parameters
    ----------
    sizes : int64 array
        The rows of each class of the table.
    population_sizes : int64 array
        The people of the population in each of these classes.

    Returns
    -------
    AttackerRisk
        One over the size of the row's class in the population.
    """
    least = population_sizes.min()
    return AttackerRisk(
        highest=float(1 / least),
        average=float((sizes / population_sizes).sum() / sizes.sum()),
        rows_at_highest=int(sizes[population_sizes == least].sum()),
    )


def uniqueness(sizes: NDArray[np.int64]) -> float:
    """Return the fraction of rows that are alone in their class.

    Parameters
    ----------
    sizes : int64 array
        The rows of each class of the table.

    Returns
    -------
    float
    """
    return float(np.count_nonzero(sizes == 1) / sizes.sum())
