"""The way from a mechanism over counted tables to its committed release: charge, count, noise, commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol, final

from sfumato._wire import NUMBER, Format, canonical
from sfumato.ledger.view import LedgerView
from sfumato.numerics.randomness.source import RandomSource
from sfumato.privacy.decimal_cost import delta_needed
from sfumato.privacy.loss import PrivacyLoss
from sfumato.queries.engines.engine import Engine
from sfumato.queries.plan.query import AggregationJob, Query
from sfumato.queries.plan.query_key import query_document
from sfumato.session.equal_requests import one_at_a_time
from sfumato.synthetic.counting.counting_job import counting_job
from sfumato.synthetic.counting.engine_counts import read_counts
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.marginals.workload import Clique
from sfumato.synthetic.releases.release_record import SyntheticRecord

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ChargedRequest", "CountedMechanism", "CountedRequest", "release_charged", "request_key"]

_SECRET_BYTES: Final = 32
_FORMAT: Final = Format("sfumato.counted-request", 1)


class CountedMechanism(Protocol):
    """What can be run over counts by cell: a mechanism whose release can be written as a document."""

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release, where a unit has as many rows as the request says."""
        ...

    def release(self, value: Any, rng: RandomSource) -> Any:
        """Draw one release: a frozen dataclass with ``receipt``, ``to_json`` and ``from_json``."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CountedRequest:
    """What is asked of counted tables.

    Parameters
    ----------
    kind : str
        Of the release, by its wire name in `sfumato.synthetic.releases.release_record`.
    rows : Query
        Whose relation is counted; it asks for nothing but their number.
    domain : TableDomain
    cliques : sequence of tuple of int
        The tables that the mechanism may ask for, and all of fewer columns of them.
    epsilon, delta : float
        The guarantee that the mechanism was calibrated to.
    max_rows_contributed : int
        The rows of a unit that the mechanism was priced for.
    parameters : dict
        What else decides the release, as JSON.
    description : str
        What the ledger's entry says.
    at_epsilon : callable
        Makes the mechanism at another epsilon.
    """

    kind: str
    rows: Query
    domain: TableDomain
    cliques: Sequence[Clique]
    epsilon: float
    delta: float
    max_rows_contributed: int
    parameters: dict[str, object]
    description: str
    at_epsilon: Callable[[float], CountedMechanism]

    @property
    def key(self) -> str:
        """The same for requests that ask the same."""
        more = {"max_rows_contributed": self.max_rows_contributed, **self.parameters}
        more["domain"] = self.domain.to_json()
        return request_key(self.kind, self.rows, self.epsilon, self.delta, more)

    def charged(self) -> ChargedRequest:
        """Return what is charged and computed, after a check of the tables.

        Raises
        ------
        ParameterError
            If a mechanism or an engine cannot do them.
        """
        mechanism = self.at_epsilon(self.epsilon)  # its limits are public: they come before the engine's
        counting = counting_job(
            self.domain, self.rows.relation, self.cliques, max_rows_contributed=self.max_rows_contributed
        )
        return ChargedRequest(
            kind=self.kind,
            key=self.key,
            description=self.description,
            epsilon=self.epsilon,
            delta=self.delta,
            mechanism=mechanism,
            at_epsilon=self.at_epsilon,
            jobs=(counting.job,),
            read=lambda answers: read_counts(self.domain, counting, answers[0]),
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ChargedRequest:
    """What is charged, asked of the engine, and released.

    Parameters
    ----------
    kind, description, epsilon, delta, at_epsilon
        As in `CountedRequest`.
    key : str
        The same for requests that ask the same.
    mechanism : CountedMechanism
        The one at epsilon.
    jobs : sequence of AggregationJob
        What the engine computes.
    read : callable
        Makes of its answers what the mechanism takes.
    """

    kind: str
    key: str
    description: str
    epsilon: float
    delta: float
    mechanism: CountedMechanism
    at_epsilon: Callable[[float], CountedMechanism]
    jobs: Sequence[AggregationJob]
    read: Callable[[Sequence[pa.Table]], Any]


def request_key(kind: str, rows: Query, epsilon: float, delta: float, more: dict[str, object]) -> str:
    """Return the key of a request: equal for those that ask the same of the same rows.

    Parameters
    ----------
    kind : str
    rows : Query
    epsilon, delta : float
    more : dict
        What else decides the release, as JSON.

    Returns
    -------
    str
    """
    guarantee = {"epsilon": NUMBER.encode(epsilon), "delta": NUMBER.encode(delta)}
    return canonical(_FORMAT.wrap({**more, **guarantee, "kind": kind, "rows": query_document(rows)["rows"]}))


def release_charged(
    request: ChargedRequest, *, engine: Engine, account: LedgerView, source: RandomSource, privacy_unit: str
) -> Any:
    """Return the committed release, or charge, count, add noise and commit.

    One that was charged before, and whose noise was never drawn, is answered under that charge. Equal
    requests pay once: those of threads take turns, and one whose release another process committed while it
    counted returns that. If both draw at the same moment, both pay.

    Parameters
    ----------
    request : ChargedRequest
    engine : Engine
        Counts, only after the charge.
    account : LedgerView
        What is charged.
    source : RandomSource
        Of noise, and of the secret that chooses rows.
    privacy_unit : str
        Who is protected, in words for people.

    Returns
    -------
    Release
        With the receipt of its charge; of one that was committed before without: nothing was charged.

    Raises
    ------
    ParameterError, QueryError
        If the tables cannot be counted; nothing is charged.
    BudgetExceeded
        If it does not fit into the budget; nothing is charged, and no row is read.
    """
    for job in request.jobs:
        engine.check(job)
    with one_at_a_time(request.key):
        return _released(request, engine, account, source, privacy_unit)


def _released(
    request: ChargedRequest, engine: Engine, account: LedgerView, source: RandomSource, privacy_unit: str
) -> Any:
    """Return the committed release of a checked request, or make it, while no other thread does."""
    mechanism, key = request.mechanism, request.key
    committed = account.find(key)
    if committed is not None:
        return SyntheticRecord.from_bytes(committed).release
    charge = {
        "loss": mechanism.privacy_loss,
        "delta": delta_needed(mechanism.privacy_loss, request.epsilon, request.delta),
        "request": key,
        "description": request.description,
        "simulated": source.simulated,
        "loss_at": lambda epsilon: request.at_epsilon(epsilon).privacy_loss,
        "draws": True,
    }
    (receipt,) = account.charge_all([charge])
    exact = request.read([engine.aggregate(job, source.bytes(_SECRET_BYTES)) for job in request.jobs])
    committed = account.find(key)
    if committed is not None:  # by another process, while the engine counted
        return SyntheticRecord.from_bytes(committed).release
    # No noise is drawn before the ledger says so, and then for this charge no more.
    receipt = account.claim_draw(receipt, charge)
    released = mechanism.release(exact, source)
    record = SyntheticRecord(
        kind=request.kind,
        release=released,
        epsilon=request.epsilon,
        delta=request.delta,
        privacy_unit=privacy_unit,
    )
    account.commit(receipt, record.to_bytes())
    return replace(released, receipt=receipt)
