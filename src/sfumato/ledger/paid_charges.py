"""Charges that were made beforehand, under which a later run answers: a queue charges when it is asked.

Where questions wait in a queue, a charge at the time of the run would tell everyone who sees what is left how
long the runs before it took, which depends on rows. So the charge is made when the question is asked, and the
run, perhaps in another process, answers under it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from sfumato.errors import LedgerMismatch
from sfumato.privacy.receipt import Receipt

__all__ = ["PaidCharges", "require_unpaid"]


@final
@dataclass(frozen=True, slots=True)
class PaidCharges:
    """The receipts of charges that were made, by request.

    Parameters
    ----------
    receipts : mapping of str to Receipt
        By what `Ledger.charge` calls the request.

    Notes
    -----
    Guarantee: a view with paid charges charges nothing. Before a row is read, `LedgerView.charge_all` refuses
    a request without a receipt, and one whose loss, delta, account, or version of the dataset is not that of
    its receipt's charge, or which costs more by now. One whose noise may have been drawn before is refused,
    too: of each charge one answer is drawn at most (see `sfumato.ledger.log.draws`).
    """

    receipts: Mapping[str, Receipt]

    def of(self, charges: Sequence[Mapping[str, Any]]) -> tuple[Receipt, ...]:
        """Return the receipts of these charges, in their order.

        Parameters
        ----------
        charges : sequence of mapping
            As for `LedgerView.charge_all`.

        Returns
        -------
        tuple of Receipt

        Raises
        ------
        LedgerMismatch
            One of them was not paid for.
        """
        found = [self.receipts.get(charge.get("request", "")) for charge in charges]
        paid = tuple(receipt for receipt in found if receipt is not None)
        if len(paid) < len(found):
            raise LedgerMismatch(
                "charges must be among those that were made beforehand, got another question; ask it anew"
            )
        return paid


def require_unpaid(paid: PaidCharges | None) -> None:
    """Refuse a new charge where charges were made beforehand.

    Parameters
    ----------
    paid : PaidCharges or None

    Raises
    ------
    LedgerMismatch
    """
    if paid is not None:
        raise LedgerMismatch(
            "a view must charge nothing where charges were made beforehand, got a new one; ask without paid="
        )
