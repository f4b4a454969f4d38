"""Opacus's accountants: three names of one, which bounds epsilon from above for each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.learning.opacus.accountants import utils
    from sfumato.learning.opacus.accountants.poisson_accountant import (
        GaussianAccountant,
        PoissonAccountant,
        PRVAccountant,
        RDPAccountant,
        create_accountant,
    )

__all__ = [
    "GaussianAccountant",
    "PRVAccountant",
    "PoissonAccountant",
    "RDPAccountant",
    "create_accountant",
    "utils",
]

__getattr__, __dir__ = attach(
    __name__,
    {name: f"{__name__}.poisson_accountant" for name in __all__ if name != "utils"} | {"utils": ""},
)
