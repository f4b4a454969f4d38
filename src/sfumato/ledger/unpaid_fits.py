"""Fits that no ledger adds up: what is left of a ledger in a pickle, and a warning at the second free fit."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import NoReturn, final

from sfumato import _check

__all__ = ["LedgerLeftOut", "UnpaidFits", "count_fit"]


class UnpaidFits(UserWarning):
    """One estimator and its clones were fitted more than once, and no ledger adds up what that costs.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("error", UnpaidFits)  # refuse a second fit without a ledger
    >>> issubclass(UnpaidFits, UserWarning)
    True
    """


@final
@dataclass(frozen=True, slots=True)
class LedgerLeftOut:
    """Stands for a ledger in a pickle or a copy, which leave it out: a fit is refused, and not free."""

    def refuse(self) -> NoReturn:
        """Refuse the fit."""
        _check.refuse_state(
            "ledger",
            "be set before a fit",
            "a pickled or copied estimator has left its ledger behind, as in another process of n_jobs=",
            "fit in this process (n_jobs=1), or call set_params(ledger=...)",
        )


def count_fit(fits: list[int], *, stacklevel: int = 5) -> None:
    """Count a fit without a ledger, and warn at the second one.

    Parameters
    ----------
    fits : list of int
        How many there were, shared by an estimator and its clones.
    stacklevel : int
        How many calls above this one the user's is, whom the warning names.
    """
    fits[0] += 1
    if fits[0] == 2:
        warnings.warn(
            "fits without a ledger must be one, got a second fit of an estimator or of its clones; pass"
            " ledger= so that each is charged: every one costs epsilon and delta again (a grid search fits"
            " once for each fold of each candidate, and once more for the best)",
            UnpaidFits,
            stacklevel=stacklevel,
        )
