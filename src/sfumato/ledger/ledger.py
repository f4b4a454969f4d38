"""The ledger of one dataset: it refuses or records every charge before anything is read."""

from __future__ import annotations

import dataclasses
import functools
from typing import final

from sfumato import _check
from sfumato.ledger.budget.budget import Budget
from sfumato.ledger.budget.refused_question import LossAt
from sfumato.ledger.budget.renewal import Renewal
from sfumato.ledger.charging import Charge
from sfumato.ledger.identity import Dataset, Identity, draw_id
from sfumato.ledger.log.chain_head import ChainHead
from sfumato.ledger.log.event_pages import EventPages
from sfumato.ledger.log.member_events import AccountSet
from sfumato.ledger.log.releases import commit_release
from sfumato.ledger.reader import LedgerReader
from sfumato.ledger.registration import (
    admit,
    check_opening,
    closed_on_error,
    first_event,
    known_versions,
    read_identity,
    require_head,
)
from sfumato.ledger.runs import Run
from sfumato.ledger.store.location import Location, open_existing, open_or_create
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.receipt import Receipt

__all__ = ["Ledger"]


@final
class Ledger(LedgerReader):
    """The record of everything ever answered about one dataset; made by `open` or `read`.

    A charge is recorded, durably, before the data is touched, and is never given back. Everything is safe to
    use from several threads and processes at once, also after a fork; a ledger in memory refuses to work in
    a forked child, where two processes would spend one budget.

    Notes
    -----
    Guarantee: whatever is charged here, by whom and in whatever order, however each charge depends on earlier
    answers, and whatever crashes in between, all answers together satisfy the budget's guarantee, for the
    ledger's privacy unit and neighboring relation. Conditions: every answer is charged before it is computed,
    with a loss that is true of it; the file is not rolled back (see :class:`ChainHead`) nor written by other
    programs. How charges add up, and by which theorems, is said in `sfumato.ledger.budget.filters`.

    Examples
    --------
    >>> from sfumato.ledger import Budget, Dataset, Ledger
    >>> from sfumato.privacy import Laplace, Neighboring
    >>> ledger = Ledger.open(
    ...     None,
    ...     budget=Budget.pure(epsilon=1.0),
    ...     privacy_unit="person_id",
    ...     neighboring=Neighboring.ADD_REMOVE,
    ...     dataset=Dataset(schema="people(age BIGINT)", fingerprint=lambda key: "0" * 64),
    ... )
    >>> ledger.charge(Laplace(2.0), delta=0.0, description="how many people").sequence
    1
    >>> ledger.remaining().epsilon
    0.5
    >>> ledger.would_accept(Laplace(1.0), delta=0.0)
    False
    >>> ledger.close()
    """

    @classmethod
    def open(
        cls,
        path: Location | None,
        *,
        budget: Budget,
        privacy_unit: str,
        neighboring: Neighboring,
        dataset: Dataset,
        new_version: bool = False,
        simulated: bool = False,
        renewal: Renewal | None = None,
        lock_timeout: float = 30.0,
        head: ChainHead | None = None,
    ) -> Ledger:
        """Open the ledger in a file, or make it if there is none; every link of its chain is checked.

        Parameters
        ----------
        path : str or path-like or None
            The file; it is made readable for its owner only. Or the address of a PostgreSQL database,
            ``postgresql://user@host/database``, with ``?schema=acs`` where it holds several ledgers; needs
            the extra ``sfumato[postgres]``. None is a ledger in memory.
        budget : Budget
            What may be spent in all, the same as when the ledger was made.
        privacy_unit : str
            What one unit is: the column that names it, or a word for the row.
        neighboring : Neighboring
            How two datasets that must look alike may differ.
        dataset : Dataset
            The data that will be asked about.
        new_version : bool
            Accept unseen content or schema as a new version of the dataset; all versions share one budget.
        simulated : bool
            Make a ledger that also takes charges for simulated noise; it protects nobody.
        renewal : Renewal, optional
            Give each period of the rows' own time the whole budget; protected is a unit within one period.
        lock_timeout : float
            Seconds to wait while other processes write.
        head : ChainHead, optional
            The last that was seen of the ledger, which must exist and go on from it.

        Returns
        -------
        Ledger
            To be closed, or used as a context manager.

        Raises
        ------
        LedgerMismatch
            The ledger was made for another dataset, unit, relation or budget.
        LedgerCorrupt
            The file is damaged, truncated, empty, altered, or no ledger, or does not continue ``head``.
        LedgerUnavailable
            The file cannot be read, written or made, or is of a later version.
        """
        check_opening(budget, privacy_unit, neighboring, dataset, renewal)
        lock_timeout = _check.non_negative("lock_timeout", lock_timeout)
        wanted = Identity(
            ledger=draw_id(),
            dataset=draw_id(),
            privacy_unit=privacy_unit,
            neighboring=neighboring,
            budget=budget,
            simulated=bool(simulated),
            renewal=renewal,
        )
        # Reading all of the data may take long: once is enough.
        dataset = dataclasses.replace(dataset, fingerprint=functools.cache(dataset.fingerprint))
        make_first = None if head is not None else lambda: first_event(wanted, dataset)
        store = open_or_create(path, make_first, lock_timeout=lock_timeout)
        with closed_on_error(store):
            with store.transaction(write=False) as connection:
                made, key = read_identity(connection)
                require_head(connection, made, key, head)
            made.require_same_use(wanted)
            version = admit(store, dataset, key, new_version=bool(new_version))
            return cls(store, version, has_dataset=True)

    @classmethod
    def read(cls, path: Location, *, lock_timeout: float = 30.0) -> Ledger:
        """Open an existing ledger to look at, without its dataset; it takes no charges.

        Parameters
        ----------
        path, lock_timeout
            As for `open`.

        Returns
        -------
        Ledger

        Raises
        ------
        LedgerCorrupt, LedgerUnavailable
            As for `open`; there must be a file.
        """
        return cls._without_dataset(path, lock_timeout, read_only=True)

    @classmethod
    def manage(cls, path: Location, *, lock_timeout: float = 30.0) -> Ledger:
        """Open an existing ledger as its curator, without its dataset: to grant budgets; it takes no charges.

        Parameters
        ----------
        path, lock_timeout
            As for `open`.

        Returns
        -------
        Ledger

        Raises
        ------
        LedgerCorrupt, LedgerUnavailable
            As for `open`; there must be a ledger.
        """
        return cls._without_dataset(path, lock_timeout, read_only=False)

    @classmethod
    def _without_dataset(cls, path: Location, lock_timeout: float, *, read_only: bool) -> Ledger:
        lock_timeout = _check.non_negative("lock_timeout", lock_timeout)
        store = open_existing(path, read_only=read_only, lock_timeout=lock_timeout)
        with closed_on_error(store):
            with store.transaction(write=False) as connection:
                version = len(known_versions(connection))
            return cls(store, version, has_dataset=False)

    def grant(self, analyst: str, budget: Budget | None, *, by: str = "", reason: str = "") -> None:
        """Open an analyst's account, or change its budget; for the curator.

        Parameters
        ----------
        analyst : str
            Who may ask, as `charge` will name them.
        budget : Budget or None
            What they may spend, of the dataset's kind; in each period, where that renews. What was spent
            stays spent. None closes the account: no more charges, until another grant.
        by : str
            The curator who grants it, by role; "" for whoever holds the ledger.
        reason : str
            Why: one line.

        Raises
        ------
        ParameterError
            The name is none, the budget is of another kind than the dataset's, or ``by`` is no curator.
        LedgerUnavailable, LedgerCorrupt
            As for `charge`.

        Notes
        -----
        The budgets of analysts may sum to more than the dataset's, which holds all the same.
        """
        self._reviews.write(AccountSet(analyst=analyst, budget=budget, by=by, reason=reason))

    def charge(
        self,
        loss: PrivacyLoss,
        *,
        delta: float,
        request: str = "",
        description: str = "",
        simulated: bool = False,
        loss_at: LossAt | None = None,
        analyst: str = "",
        period: str = "",
        purpose: str = "",
    ) -> Receipt:
        """Record a charge durably, or refuse it and leave no trace.

        Parameters
        ----------
        loss : PrivacyLoss
            What will be run.
        delta : float
            Where the charge's own guarantee is read: the delta of the query. An (epsilon, delta) budget
            charges this guarantee to one of its filters.
        request : str
            What makes two questions the same, for `find`; "" for none. Only its keyed hash is stored.
        description : str
            For people who read the ledger; stored in the clear.
        simulated : bool
            Whether the noise is simulated.
        loss_at : callable, optional
            The loss of the same question at another epsilon, and the same delta: a refusal then suggests an
            epsilon at which this question fits, else one at which a count does.
        analyst : str
            Who asks: their account is charged as well as the dataset's, in one transaction; both must hold.
        period : str
            Where the budget renews, the period that the answer is about: no rows of others may matter.
        purpose : str
            What the answer is for: one line, stored in the clear.

        Returns
        -------
        Receipt
            Only returned once the charge is on the disk.

        Raises
        ------
        BudgetExceeded
            The charge does not fit.
        SimulatedCharge
            Simulated noise against a real budget.
        NeighboringMismatch
            The loss is about another relation than the ledger.
        LedgerMismatch
            The analyst has no account.
        LedgerUnavailable, LedgerCorrupt
            The file cannot be written or is damaged. If the disk failed at the very end of the write, the
            charge may have been recorded without a receipt, and the error says so; never the other way round.
        """
        charge = Charge(
            loss=loss,
            delta=delta,
            request=request,
            description=description,
            simulated=simulated,
            loss_at=loss_at,
            analyst=analyst,
            period=period,
            purpose=purpose,
        )
        return self._recorder.record(charge)

    def reserve(
        self,
        loss: PrivacyLoss,
        *,
        steps: int,
        delta: float,
        description: str = "",
        simulated: bool = False,
        analyst: str = "",
        period: str = "",
        purpose: str = "",
    ) -> Run:
        """Charge a whole training run before its first step, and make a durable record of its steps.

        Parameters
        ----------
        loss : PrivacyLoss
            Of all the steps together.
        steps : int
            How many there are; the record lets no more of them be claimed.
        delta, description, simulated, analyst, period, purpose
            As for `charge`.

        Returns
        -------
        Run
            Whose steps are claimed before their noise is drawn.

        Raises
        ------
        BudgetExceeded, SimulatedCharge, NeighboringMismatch, LedgerMismatch, LedgerUnavailable, LedgerCorrupt
            As for `charge`.

        Notes
        -----
        Nothing is given back for steps that were not run.
        """
        charge = Charge(
            loss=loss,
            delta=delta,
            description=description,
            simulated=simulated,
            analyst=analyst,
            period=period,
            purpose=purpose,
            steps=_check.integer("steps", steps, minimum=1),
        )
        return self.run(self._recorder.record(charge).sequence)

    def run(self, number: int, *, digest: str = "") -> Run:
        """Return the run that a charge reserved, to go on with it in another process.

        Parameters
        ----------
        number : int
            Of its first charge.
        digest : str
            That charge's hash, as its receipt or a checkpoint has it: shows that it is the same run.

        Returns
        -------
        Run

        Raises
        ------
        LedgerMismatch
            No such charge, or one that reserved no steps.
        LedgerCorrupt
            The ledger does not hold the charge with this hash: it was rolled back, or is another one.
        """
        return Run(self._recorder, _check.integer("number", number, minimum=1), digest)

    def commit(self, receipt: Receipt, payload: bytes) -> None:
        """Store the noised release of a charge, durably; to be done before it is delivered.

        Committing the same bytes again does nothing.

        Parameters
        ----------
        receipt : Receipt
            What `charge` returned.
        payload : bytes
            The release, at most 900 MB in a file and 400 MB on a server.

        Raises
        ------
        LedgerMismatch
            The receipt is another ledger's.
        LedgerCorrupt
            The charge is no longer in the ledger: it was rolled back.
        LedgerUnavailable
            The file cannot be written. The charge stays.
        ParameterError
            Something else was committed for this receipt.
        """
        commit_release(self._log, self.ledger_id, receipt, payload)

    @property
    def events(self) -> EventPages:
        """What happened, event by event, the newest first."""
        return EventPages(self._log)
