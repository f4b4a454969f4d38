"""A release: a value that may be shown, its privacy loss, its neighboring relation and its receipt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.receipt import Receipt

__all__ = ["Release", "read_only"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Release:
    """An answer that may be shown; nothing in it is raw data.

    Parameters
    ----------
    value : Any
        The answer; arrays are made read-only.
    loss : PrivacyLoss
        What the release cost.
    neighboring : Neighboring
        Who is protected: the relation of the loss.
    receipt : Receipt or None
        Proof of the charge, where a ledger was charged.
    simulated : bool
        Whether the randomness came from a seed; such a release protects nobody.

    Examples
    --------
    >>> from sfumato.mechanisms import Laplace
    >>> release = Laplace(sensitivity=1, scale=2).release(100, rng=7)
    >>> release.map(lambda count: max(0, count)).value == release.value
    True
    """

    value: Any
    loss: PrivacyLoss
    neighboring: Neighboring
    receipt: Receipt | None = None
    simulated: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", read_only(self.value))

    def __repr__(self) -> str:
        simulated = ", simulated=True" if self.simulated else ""
        return f"{type(self).__name__}(value={self.value!r}, loss={self.loss!r}{simulated})"

    def map(self, function: Callable[[Any], Any]) -> Release:
        """Return a release of a function of the value.

        Parameters
        ----------
        function : callable
            Of the value alone. A function that reads the data too is no post-processing, and nothing here
            can tell.

        Returns
        -------
        Release
            With the same loss and receipt: post-processing costs nothing (Dwork, Roth 2014, Proposition 2.1).
        """
        return Release(
            value=function(self.value),
            loss=self.loss,
            neighboring=self.neighboring,
            receipt=self.receipt,
            simulated=self.simulated,
        )


def read_only(value: Any) -> Any:
    """Return an array as a view that cannot be written to, and anything else as it is."""
    if not isinstance(value, np.ndarray):
        return value
    view = value.view()
    view.flags.writeable = False
    return view
