"""A ledger's receipt for one charge, as an opaque value."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.privacy.neighboring import Neighboring

__all__ = ["Receipt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Proof that a ledger recorded a charge before the data was touched.

    Parameters
    ----------
    ledger : str
        Random identifier of the ledger.
    sequence : int
        The charge's place in the ledger, from 1.
    digest : str
        Hexadecimal hash of the chain up to and with this charge.
    neighboring : Neighboring
        The relation that the charge is about.
    privacy_unit : str
        What one unit is: the column that names it, or the row.
    """

    ledger: str
    sequence: int
    digest: str
    neighboring: Neighboring
    privacy_unit: str

    def __str__(self) -> str:
        return f"receipt {self.sequence} of ledger {self.ledger}, {self.digest[:12]}"
