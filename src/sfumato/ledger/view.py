"""A ledger as one analyst sees it, about one period: their charges and what is left for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack, final

from sfumato.errors import LedgerMismatch
from sfumato.ledger.budget.budget import Budget
from sfumato.ledger.budget.renewal import check_period
from sfumato.ledger.charging import Charge, ChargeDetails
from sfumato.ledger.identity import LedgerFacts
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.log.entries import Entry
from sfumato.ledger.log.events import AccountKey
from sfumato.ledger.log.words import check_line
from sfumato.ledger.paid_charges import PaidCharges, require_unpaid
from sfumato.ledger.quote import Quote
from sfumato.ledger.runs import Run
from sfumato.ledger.stored_releases import StoredRelease
from sfumato.privacy.guarantee import Guarantee
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.receipt import Receipt

__all__ = ["LedgerView"]


@final
class LedgerView(LedgerFacts):
    """A ledger for one who asks: their charges, and what is left for them.

    An analyst's charge is added to the dataset's account and to theirs, in one transaction, and must fit into
    both. What is left for them is what fits into both; from it they may learn how much others spent.

    Parameters
    ----------
    ledger : Ledger
        The whole ledger, opened with the dataset; closing this closes it.
    analyst : str
        Who asks; the curator opened an account for them with `Ledger.grant`. "" is the curator, who has the
        dataset's budget and sees all charges.
    period : str
        Where the budget renews, the period that every answer is about.
    purpose : str
        What the answers are for: one line that every charge carries.
    paid : PaidCharges, optional
        Charges that were made beforehand: then `charge_all` returns these and makes none.

    Raises
    ------
    LedgerMismatch
        The analyst has no account, or it was closed.
    ParameterError
        The period is none, or the budget does not renew.

    Notes
    -----
    Guarantee: that of the dataset's budget holds whoever asks. The analyst's own budget bounds what they
    learn alone; analysts who share their answers together learn what the dataset's budget allows.
    In a Python process this class separates nobody from the data: only a service that holds the ledger does.

    Examples
    --------
    >>> from sfumato.ledger import Budget, Dataset, Ledger, LedgerView
    >>> from sfumato.privacy import Laplace, Neighboring
    >>> ledger = Ledger.open(
    ...     None,
    ...     budget=Budget.pure(epsilon=1.0),
    ...     privacy_unit="person_id",
    ...     neighboring=Neighboring.ADD_REMOVE,
    ...     dataset=Dataset(schema="people(age BIGINT)", fingerprint=lambda key: "0" * 64),
    ... )
    >>> ledger.grant("ada", Budget.pure(epsilon=0.5))
    >>> ada = LedgerView(ledger, "ada")
    >>> ada.charge(Laplace(4.0), delta=0.0, description="how many people").analyst
    'ada'
    >>> ada.remaining().epsilon, ledger.remaining().epsilon
    (0.25, 0.75)
    >>> ledger.close()
    """

    __slots__ = ("_analyst", "_ledger", "_paid", "_period", "_purpose")

    def __init__(
        self,
        ledger: Ledger,
        analyst: str = "",
        *,
        period: str = "",
        purpose: str = "",
        paid: PaidCharges | None = None,
    ) -> None:
        super().__init__(ledger._identity, ledger._store, ledger.version)  # noqa: SLF001 - its other face
        self._ledger, self._analyst, self._period, self._paid = ledger, analyst, period, paid
        self._purpose = check_line("purpose", purpose)
        check_period(ledger.renewal, period)
        if analyst != "":
            ledger.budget_of(analyst)

    @property
    def analyst(self) -> str:
        """Who asks; "" is the curator."""
        return self._analyst

    @property
    def period(self) -> str:
        """Which period's budget is charged; "" where it does not renew."""
        return self._period

    @property
    def budget(self) -> Budget:
        """What may be spent, by the analyst or in all; in each period, where it renews."""
        return self._ledger.budget_of(self._analyst) if self._analyst else super().budget

    def charge(self, loss: PrivacyLoss, *, delta: float, **details: Unpack[ChargeDetails]) -> Receipt:
        """Record a charge to the dataset and the analyst, or refuse it; as `Ledger.charge`.

        Parameters
        ----------
        loss : PrivacyLoss
            What will be run.
        delta : float
            Where the charge's own guarantee is read.
        **details
            ``request``, ``description``, ``simulated``, ``loss_at`` and ``purpose``, as for `Ledger.charge`.

        Returns
        -------
        Receipt

        Raises
        ------
        BudgetExceeded, SimulatedCharge, NeighboringMismatch, LedgerMismatch, LedgerUnavailable, LedgerCorrupt
            As for `Ledger.charge`.
        """
        require_unpaid(self._paid)
        about: ChargeDetails = {"purpose": self._purpose, **details}
        return self._ledger.charge(loss, delta=delta, analyst=self._analyst, period=self._period, **about)

    def charge_all(
        self, charges: Sequence[Mapping[str, Any]], *, at_most: Mapping[str, float] | None = None
    ) -> tuple[Receipt, ...]:
        """Record several charges durably in one transaction: all of them, or none.

        Each is an entry of its own, whose release is found again by its own request.

        Parameters
        ----------
        charges : sequence of mapping
            For each the ``loss``, its ``delta``, and what else `charge` takes.
        at_most : mapping of str to float, optional
            What they may cost together, in the units of `Quote.cost`.

        Returns
        -------
        tuple of Receipt
            In the order of the charges.

        Raises
        ------
        BudgetExceeded
            What they add up to does not fit; nothing was charged.
        ParameterError
            They cost more than that by now; nothing was charged.
        SimulatedCharge, NeighboringMismatch, LedgerMismatch, LedgerUnavailable, LedgerCorrupt
            As for `charge`.

        Notes
        -----
        Guarantee: that of the same charges one after the other, since the budget's filters add each to what
        was spent before it; what one transaction adds is that no other charge comes between them.

        Examples
        --------
        >>> from sfumato.ledger import Budget, Dataset, Ledger, LedgerView
        >>> from sfumato.privacy import Laplace, Neighboring
        >>> ledger = Ledger.open(
        ...     None,
        ...     budget=Budget.pure(epsilon=1.0),
        ...     privacy_unit="person_id",
        ...     neighboring=Neighboring.ADD_REMOVE,
        ...     dataset=Dataset(schema="people(age BIGINT)", fingerprint=lambda key: "0" * 64),
        ... )
        >>> charge = {"loss": Laplace(4.0), "delta": 0.0}
        >>> [receipt.sequence for receipt in LedgerView(ledger).charge_all([charge, charge])]
        [1, 2]
        >>> ledger.remaining().epsilon
        0.5
        >>> ledger.close()
        """
        if not charges:
            return ()
        recorder, own = self._ledger._recorder, [self._own(charge) for charge in charges]  # noqa: SLF001
        if self._paid is None:
            return recorder.record_all(own, at_most)
        return recorder.paid(own, self._paid.of(charges))

    def would_accept_all(self, charges: Sequence[Mapping[str, Any]]) -> bool:
        """Whether `charge_all` would accept these charges now; nothing is written.

        Parameters
        ----------
        charges : sequence of mapping
            As for `charge_all`: each is priced at a delta of its own.

        Returns
        -------
        bool
        """
        if not charges:
            return True
        own = [self._own(charge) for charge in charges]
        return self._ledger._recorder.would_accept_all(own)  # noqa: SLF001 - its other face

    def claim_draw(self, receipt: Receipt, charge: Mapping[str, Any]) -> Receipt:
        """Write durably that the noise of a charge is about to be drawn; see `sfumato.ledger.log.draws`.

        Parameters
        ----------
        receipt : Receipt
            What `charge_all` returned for a charge with ``draws=True``.
        charge : mapping
            That charge. Where another process drew noise for it first, it is charged anew.

        Returns
        -------
        Receipt
            Of the charge to draw under, and to commit the release with.

        Raises
        ------
        BudgetExceeded
            It must be charged anew and does not fit.
        LedgerUnavailable, LedgerCorrupt
            As for `charge`; nothing may be drawn.
        """
        own, anew = self._own(charge), self._paid is None
        return self._ledger._recorder.claim_draw(receipt, own, anew=anew)  # noqa: SLF001 - its other face

    def quote(self, charges: Sequence[Mapping[str, Any]]) -> Quote:
        """Say what `charge_all` would do with these charges now; nothing is written.

        Parameters
        ----------
        charges : sequence of mapping
            As for `charge_all`; those that it would not make again cost nothing.

        Returns
        -------
        Quote
        """
        own, account = [self._own(charge) for charge in charges], AccountKey(self._analyst, self._period)
        return self._ledger._recorder.quote(own, account)  # noqa: SLF001 - its other face

    def _own(self, charge: Mapping[str, Any]) -> Charge:
        about = {"purpose": self._purpose, **charge}
        return Charge(**about, analyst=self._analyst, period=self._period)

    def reserve(
        self, loss: PrivacyLoss, *, steps: int, delta: float, description: str = "", simulated: bool = False
    ) -> Run:
        """Charge a whole training run, to the dataset and the analyst; as `Ledger.reserve`.

        Parameters
        ----------
        loss, steps, delta, description, simulated
            As for `Ledger.reserve`.

        Returns
        -------
        Run
        """
        require_unpaid(self._paid)
        return self._ledger.reserve(
            loss,
            steps=steps,
            delta=delta,
            description=description,
            simulated=simulated,
            analyst=self._analyst,
            period=self._period,
            purpose=self._purpose,
        )

    def run(self, number: int, *, digest: str = "") -> Run:
        """Return a run that this analyst reserved, to go on with it; as `Ledger.run`.

        Parameters
        ----------
        number, digest
            As for `Ledger.run`.

        Returns
        -------
        Run

        Raises
        ------
        LedgerMismatch
            Another analyst reserved it, or nobody.
        """
        run = self._ledger.run(number, digest=digest)
        if run.analyst != self._analyst:
            # Its extension would be charged to the other's budget.
            raise LedgerMismatch(
                f"run must be one of analyst {self._analyst!r}, got another's; go on with what they reserved"
            )
        return run

    def commit(self, receipt: Receipt, payload: bytes) -> None:
        """Store the release of one of the charges made here; as `Ledger.commit`.

        Parameters
        ----------
        receipt : Receipt
            What `charge` returned.
        payload : bytes
            The release.

        Raises
        ------
        LedgerMismatch
            The charge is another analyst's.
        """
        if (receipt.analyst, receipt.period) != (self._analyst, self._period):
            raise LedgerMismatch(
                f"receipt must be one of analyst {self._analyst!r}, got another's; commit what they charged"
            )
        self._ledger.commit(receipt, payload)

    def find(self, request: str) -> bytes | None:
        """Return the latest release committed for this request of this analyst; None if there is none.

        Parameters
        ----------
        request : str
            As for `Ledger.charge`.

        Returns
        -------
        bytes or None
        """
        return self._ledger.find(request, analyst=self._analyst, period=self._period)

    def release(self, number: int) -> StoredRelease:
        """Read a stored release back, of the analyst's own; the curator reads all; as `Ledger.release`.

        Parameters
        ----------
        number : int
            Of the charge.

        Returns
        -------
        TableRelease or LimitsRecord
        """
        return self._ledger.release(number, analyst=self._analyst)

    def would_accept(self, loss: PrivacyLoss, *, delta: float) -> bool:
        """Whether `charge` would accept this loss now; nothing is written.

        Parameters
        ----------
        loss : PrivacyLoss
            What would be run.
        delta : float
            As for `charge`.

        Returns
        -------
        bool
        """
        return self._ledger.would_accept(loss, delta=delta, analyst=self._analyst, period=self._period)

    def remaining(self, delta: float | None = None) -> Guarantee:
        """Return what the analyst's budget has left, and the epsilon still answered; as `Ledger`'s.

        Parameters
        ----------
        delta : float, optional
            Where the epsilon of one more answer is read; 0 by default.

        Returns
        -------
        Guarantee
        """
        return self._ledger.remaining(delta, analyst=self._analyst, period=self._period)

    def entries(self) -> tuple[Entry, ...]:
        """Return the analyst's charges in order, the curator all; after checking every link of the chain.

        Returns
        -------
        tuple of Entry
        """
        entries = self._ledger.entries()
        return tuple(entry for entry in entries if not self._analyst or entry.analyst == self._analyst)

    def __repr__(self) -> str:
        return f"<LedgerView {self.ledger_id} of {self._analyst or 'the curator'!r}>"
