"""A ledger's receipt for one charge, as an opaque value."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.privacy.guarantee import Guarantee
from sfumato.privacy.neighboring import Relation

__all__ = ["Receipt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Proof that a ledger recorded a charge before the data was touched.

    Parameters
    ----------
    ledger : str
        Random identifier of the ledger.
    sequence : int
        The charge's index in the ledger, from 1.
    digest : str
        Hexadecimal hash of the chain up to and with this charge.
    neighboring : Neighboring or Relation
        The relation that the charge is about.
    privacy_unit : str
        What one unit is: the column that names it, or the row; ``(column, period)`` where a budget renews.
    analyst : str
        Whose account was charged too; "" if nobody's. Only the dataset's budget is a guarantee: that of an
        analyst bounds what they alone learn, if analysts do not exchange their answers.
    period : str
        Which period's budget was charged, where it renews.
    lifetime : Guarantee or None
        Where the budget renews, the sum of all charges of all periods: the protection of a unit that is in
        all of them.

    Examples
    --------
    >>> from sfumato.privacy import Neighboring
    >>> receipt = Receipt(
    ...     ledger="6f1c", sequence=1, digest="0123456789abcdef", neighboring=Neighboring.ADD_REMOVE,
    ...     privacy_unit="patient",
    ... )
    >>> print(receipt)
    receipt 1 of ledger 6f1c, 0123456789ab
    """

    ledger: str
    sequence: int
    digest: str
    neighboring: Relation
    privacy_unit: str
    analyst: str = ""
    period: str = ""
    lifetime: Guarantee | None = None

    def __str__(self) -> str:
        text = f"receipt {self.sequence} of ledger {self.ledger}, {self.digest[:12]}"
        if self.analyst:
            text += f"; charged to the dataset and to analyst {self.analyst!r}, who is assumed not to collude"
        if self.lifetime is not None:
            text += (
                f"; protects each {self.privacy_unit}, here {self.period}, and a unit in all periods "
                f"by their sum so far, {self.lifetime.amounts}"
            )
        return text
