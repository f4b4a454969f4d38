"""What a question would cost and how wrong its answer would be, before anything is charged or read.

A proposal is made from the text, the schema, public tables and the ledger. It names the price in the units of
the account that would pay it, the error to expect, and what is left before and after. A question that does
not fit carries the refusal, with the largest epsilon that fits and the error that it would have.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, final

from sfumato import _check
from sfumato._wire import canonical
from sfumato.errors import BudgetExceeded, ParameterError, QueryError
from sfumato.ledger.budget.refused_question import round_down
from sfumato.ledger.quote import Quote
from sfumato.numerics.decimals import decimal_sum_up
from sfumato.privacy._outward import text_above
from sfumato.privacy.guarantee import Guarantee
from sfumato.queries.plan.query_key import query_key
from sfumato.queries.planner.budget_split import with_epsilon
from sfumato.queries.planner.half_widths import expected_errors
from sfumato.queries.pricing.expected_error import expected_error
from sfumato.queries.pricing.price import PricedQuery, price
from sfumato.server.console.asking.question import Question
from sfumato.session.answer import AskedLedger, ask_ledger
from sfumato.session.session import Session

__all__ = ["ExpectedColumn", "Offer", "Proposal", "Wanted", "propose", "request_digest"]

_UNITS: Final = ("epsilon", "rho", "mu")
_PROBES: Final = (1e-6, 2e-6)
_LEVEL: Final = 0.95
_MOST_UNITS: Final = 1e15


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The error that an analyst wants instead of stating an epsilon.

    Parameters
    ----------
    error : float or mapping of str to float
        The largest half-width of a 95 % interval, of all COUNT, SUM and AVG columns or by name of column.
    units : float, optional
        Units in a group, a public figure: averages and variances need it.
    """

    error: float | Mapping[str, float]
    units: float | None = None

    def __post_init__(self) -> None:
        stated = self.error
        error = (
            {name: _check.positive(f"the error of {name!r}", each) for name, each in stated.items()}
            if isinstance(stated, Mapping)
            else _check.positive("error", stated)
        )
        object.__setattr__(self, "error", error)
        if self.units is not None and not 1 <= _check.positive("units", self.units) <= _MOST_UNITS:
            _check.refuse("units", "be from 1 to 1e15", self.units, "write how many are in a group, about")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedColumn:
    """The error to expect of one column.

    Parameters
    ----------
    name, kind : str
        The column, and its aggregate.
    half_width : float or None
        Of a 95 % interval, where that follows from public parameters.
    stddev : float or None
        The standard deviation of the error, or the largest that it can be; None where nothing public
        determines it.
    per : str
        What both are divided by: ``"units"`` or ``"rows"`` of a group; "" for nothing.
    unit : str
        What they are counted in; "" for the column's own unit.
    """

    name: str
    kind: str
    half_width: float | None
    stddev: float | None
    per: str
    unit: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Why a question does not fit, and what would.

    Parameters
    ----------
    message : str
        The refusal, with its remedy.
    epsilon : float or None
        The largest epsilon found at which this question fits; None if none does.
    delta : float
        Where that is read.
    columns : tuple of ExpectedColumn
        The errors at that epsilon, where it can be asked so.
    """

    message: str
    epsilon: float | None
    delta: float
    columns: tuple[ExpectedColumn, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A question with its price; made by `propose`.

    Parameters
    ----------
    question : Question
        With the epsilon that was chosen for a wanted error.
    analyst : str
        Whose account it is.
    epsilon, delta : float
        The guarantee of the answer alone, of all private SELECTs together.
    columns : tuple of ExpectedColumn
        The errors to expect.
    cost : mapping of str to float
        What is charged, in the units of the account's filters, rounded up; empty where nothing is.
    before, after : mapping of str to float
        What the account has left, rounded down.
    sentence : str
        The price in one line, such as "Spend 0.25 of your 0.5 epsilon."
    explanation : str
        What is computed, with which noise, a line each.
    passes : int
        How often the rows are read, which the deadlines follow from.
    requests : tuple of str
        Digests of the private SELECTs: equal for equal questions of one analyst about one period.
    free : bool
        Whether nothing is charged: it was charged before.
    offer : Offer or None
        Where it does not fit.
    """

    question: Question
    analyst: str
    epsilon: float
    delta: float
    columns: tuple[ExpectedColumn, ...]
    cost: Mapping[str, float]
    before: Mapping[str, float]
    after: Mapping[str, float]
    sentence: str
    explanation: str
    passes: int
    requests: tuple[str, ...]
    free: bool
    offer: Offer | None

    @property
    def fits(self) -> bool:
        """Whether it would be charged and answered now."""
        return self.offer is None

    def to_json(self) -> dict[str, Any]:
        """Return all of it as plain values, for a page or for JSON.

        Returns
        -------
        dict
        """
        return {**asdict(self), "fits": self.fits}


def propose(
    session: Session,
    question: Question,
    *,
    wanted: Wanted | None = None,
    under_way: Collection[str] = (),
) -> Proposal:
    """Price a question of an analyst; nothing is charged, and no private row is read.

    Parameters
    ----------
    session : Session
        Of the analyst, best one to plan on (`planning_session`).
    question : Question
    wanted : Wanted, optional
        Chooses the smallest epsilon with this error; the question and its text then state none.
    under_way : collection of str
        Digests of private SELECTs whose answers are on their way: they cost nothing again. The ledger is not
        asked about these, for it knows of an answer before it may be seen.

    Returns
    -------
    Proposal

    Raises
    ------
    QueryError, ParameterError
        If the question is refused, or no epsilon has the error: one error, with its remedy.
    LedgerUnavailable, LedgerCorrupt, LedgerMismatch
        If the ledger cannot be used, or the analyst has no account.
    """
    account = session.account
    if wanted is not None:
        question = replace(question, epsilon=_epsilon_for(session, question, wanted))
    asker = _with_defaults(session, question)
    priced = asker.priced(question.sql, params=question.params or None)
    explanation = asker.explain(question.sql, params=question.params or None)
    digests = [request_digest(account.analyst, account.period, each) for each in priced]
    new = [each for each, digest in zip(priced, digests, strict=True) if digest not in under_way]
    asked = ask_ledger(new, [""] * len(new), account=account, source=session.randomness())
    quote = asked.quote(account)
    units = None if wanted is None else wanted.units
    return Proposal(
        question=question,
        analyst=account.analyst,
        epsilon=decimal_sum_up(each.query.options.epsilon for each in priced),
        delta=decimal_sum_up(each.charged_delta for each in priced),
        columns=_columns(priced, units),
        cost={} if quote.cost is None else _numbers(quote.cost),
        before=_numbers(quote.before),
        after=_numbers(quote.after),
        sentence=_sentence(quote, waiting=len(new) < len(priced)),
        explanation=explanation,
        passes=sum(len(each.jobs) for each in priced),
        requests=tuple(digests),
        free=quote.cost is None,
        offer=None if quote.refused is None else _offer(quote.refused, asked, units),
    )


def request_digest(analyst: str, period: str, priced: PricedQuery) -> str:
    """Return what makes two private SELECTs of one analyst about one period the same.

    Parameters
    ----------
    analyst, period : str
    priced : PricedQuery
    """
    asked = {"analyst": analyst, "period": period, "query": query_key(priced.query)}
    return hashlib.sha256(canonical(asked).encode()).hexdigest()


def _with_defaults(session: Session, question: Question) -> Session:
    account = session.account
    return session.as_analyst(
        account.analyst, period=account.period, purpose=question.purpose, defaults=question.defaults
    )


def _epsilon_for(session: Session, question: Question, wanted: Wanted) -> float:
    """Return the epsilon that a text must leave out to have an error."""
    if question.epsilon is not None:
        remedy = "state an error or an epsilon, not both"
        _check.refuse("epsilon", "be left out where an error is wanted", question.epsilon, remedy)
    low, high = (
        _with_defaults(session, replace(question, epsilon=number)).priced(
            question.sql, params=question.params or None
        )
        for number in _PROBES
    )
    if any(
        one.query.options.epsilon == other.query.options.epsilon for one, other in zip(low, high, strict=True)
    ):
        found = "the text states its own"
        _check.refuse_state("error", "choose the epsilon", found, "leave epsilon out of OPTIONS")
    plan = session.plan(
        {"question": question.sql}, target=wanted.error, units=wanted.units, params=question.params or None
    )
    return max(each.epsilon for each in plan.queries) * len(plan.queries)


def _columns(priced: Sequence[PricedQuery], units: float | None) -> tuple[ExpectedColumn, ...]:
    found = []
    for each in priced:
        known = expected_errors(each, units=units, level=_LEVEL) if units is not None else {}
        for estimator in each.estimators:
            error = expected_error(each, estimator, level=_LEVEL)
            width = known.get(estimator.name, math.nan) if error is None or error.over else error.half_width
            stated = width is not None and math.isfinite(width)
            found.append(
                ExpectedColumn(
                    name=estimator.name,
                    kind=estimator.kind.value,
                    half_width=width if stated else None,
                    stddev=None if error is None or not math.isfinite(error.stddev) else error.stddev,
                    per="" if error is None else error.over,
                    unit="" if error is None else error.unit,
                )
            )
    return tuple(found)


def _numbers(guarantee: Guarantee) -> dict[str, float]:
    names = (*_UNITS, "delta")
    return {name: getattr(guarantee, name) for name in names if getattr(guarantee, name) is not None}


def _sentence(quote: Quote, *, waiting: bool) -> str:
    """Say what is spent of what, in a unit in which it fits."""
    if quote.cost is None:
        return "Costs nothing: it is being answered." if waiting else "Costs nothing: it was charged before."
    cost, before = _numbers(quote.cost), _numbers(quote.before)
    units = [name for name in _UNITS if name in cost and name in before]
    unit = next((name for name in units if 0 < cost[name] <= before[name]), units[0])
    of = f"your {round_down(before[unit]):g} {unit}"
    if quote.refused is not None:
        return f"Needs {_shown(cost[unit])}, more than may be spent of {of}."
    return f"Spend {_shown(cost[unit])} of {of}."


def _shown(number: float) -> str:
    return text_above(number) if 0 < number < math.inf else f"{number:g}"


def _offer(refused: BudgetExceeded, asked: AskedLedger, units: float | None) -> Offer:
    epsilon, delta = refused.remaining.answerable_epsilon, refused.remaining.answerable_delta
    offered = round_down(epsilon) if epsilon else None
    columns: tuple[ExpectedColumn, ...] = ()
    if offered and len(asked.charges) == 1:
        query = asked.priced[next(iter(asked.charges))].query
        with suppress(QueryError, ParameterError):  # stated parts of epsilon may not fit into it
            columns = _columns([price(with_epsilon(query, offered))], units)
    return Offer(message=str(refused), epsilon=offered, delta=delta or 0.0, columns=columns)
