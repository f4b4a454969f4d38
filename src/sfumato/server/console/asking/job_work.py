"""What is done for a job: its charge when it is submitted, and its answer under that charge when it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

from sfumato.errors import SfumatoError
from sfumato.ledger.log.words import check_name
from sfumato.ledger.paid_charges import PaidCharges
from sfumato.queries.plan.query_key import query_key
from sfumato.queries.sql.query_parameters import Parameters
from sfumato.server.console.asking.job import Answer, Job
from sfumato.server.console.asking.job_store import JobStore
from sfumato.server.console.asking.proposal import request_digest
from sfumato.server.console.asking.question import Question
from sfumato.server.console.asking.stoppable_engine import StoppableEngine
from sfumato.server.console.asking.table_stream import written_stream
from sfumato.session.answer import ask_ledger
from sfumato.session.session import Session

__all__ = ["JobWork", "session_for"]


@final
class JobWork:
    """Charges and answers jobs.

    Parameters
    ----------
    session : Session
        The curator's, over the rows.
    planning : Session
        Over the same ledger and tables, without rows: what is charged is priced there.
    store : JobStore
    """

    def __init__(self, session: Session, planning: Session, store: JobStore) -> None:
        self._session, self._planning, self._store = session, planning, store

    def charge(self, job: Job) -> None:
        """Charge a job's private SELECTs, those of unfinished jobs left out; nothing is read.

        It is refused where it costs more than its proposal said, as where the same was drawn meanwhile, and
        where it cannot be priced any more.
        """
        try:
            charges = self._charges(job)
        except SfumatoError as refused:
            self._store.refused(job, str(refused))
            return
        self._store.charged(job, charges)

    def _charges(self, job: Job) -> dict[str, int]:
        """Make a job's charges, and return their numbers by digest."""
        question = Question.from_json(job.question)
        asker = session_for(self._planning, job.analyst, question)
        priced = asker.priced(question.sql, params=question.params or None)
        account = asker.account
        digests = [request_digest(job.analyst, account.period, each) for each in priced]
        new = [index for index, digest in enumerate(digests) if digest not in job.charges]
        text, many = Parameters.of(question.params).describe(question.sql), len(priced)
        words = [text if many == 1 else f"private SELECT {index + 1} of {many} in: {text}" for index in new]
        chosen = [priced[index] for index in new]
        asked = ask_ledger(chosen, words, account=account, source=asker.randomness())
        receipts = asked.charge(account, at_most=job.proposal["cost"])
        return {digests[new[n]]: receipt.sequence for n, receipt in receipts.items()}

    def answer(self, job: Job, go_on: Callable[[], None]) -> Answer:
        """Answer a job under its charges; ``go_on`` raises where it is to stop."""
        question = Question.from_json(job.question)
        asker = session_for(self._planning, job.analyst, question)
        receipts = {}
        for each in asker.priced(question.sql, params=question.params or None):
            number = job.charges.get(request_digest(job.analyst, asker.account.period, each))
            if number is not None:
                receipts[query_key(each.query)] = self._session.ledger.receipt(number)
        engine = StoppableEngine(self._session.engine, go_on)
        paid = PaidCharges(receipts)
        paying = session_for(self._session, job.analyst, question, paid=paid, engine=engine)
        released = paying.sql(question.sql, params=question.params or None)
        facts = {
            "epsilon": released.epsilon,
            "delta": released.delta,
            "privacy_unit": released.privacy_unit,
            "simulated": released.simulated,
            "explanation": released.explain(),
        }
        return Answer(table=written_stream(released.to_arrow(intervals=True)), facts=facts)


def session_for(session: Session, analyst: str, question: Question | None = None, **more: Any) -> Session:
    """Return a session of an analyst, for a question with its period, purpose and epsilon.

    Parameters
    ----------
    session : Session
    analyst : str
    question : Question, optional
    **more
        As for `Session.as_analyst`.
    """
    check_name("analyst", analyst)
    if question is None:
        return session.as_analyst(analyst, period=session.account.period, **more)
    return session.as_analyst(
        analyst,
        period=question.period or session.account.period,
        purpose=question.purpose,
        defaults=question.defaults,
        **more,
    )
