"""Private SELECTs inside of larger SQL: read, priced and checked together with the SQL around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from sfumato.ledger.budget.budget import Budget
from sfumato.numerics.decimals import decimal_sum_up
from sfumato.privacy._outward import text_above
from sfumato.queries.engines.engine import Engine
from sfumato.queries.outer.preparation import PreparedOuter, prepare
from sfumato.queries.outer.release import outer_lines
from sfumato.queries.outer.separation import separate
from sfumato.queries.plan.query import Query
from sfumato.queries.plan.query_key import query_key
from sfumato.queries.pricing.price import PricedQuery, price
from sfumato.queries.release.explanation import explain
from sfumato.queries.sql.catalog import Catalog
from sfumato.queries.sql.parser import LargerStatement, Statement

__all__ = ["LargerQuery", "explain_larger", "read_larger"]


@dataclass(frozen=True, slots=True)
class LargerQuery:
    """Private SELECTs, each different one once, and the SQL around them; all checked, nothing charged."""

    priced: tuple[PricedQuery, ...]
    outer: PreparedOuter

    def descriptions(self, text: str) -> list[str]:
        """Return what the ledger's entry of each private SELECT says."""
        many = len(self.priced)
        return [f"private SELECT {index} of {many} in: {text}" for index in range(1, many + 1)]

    def public_rows(self, engine: Engine) -> dict[str, pa.Table]:
        """Return the rows of the public tables that the SQL around reads."""
        return {name: engine.public_rows(name) for name in sorted(set(self.outer.public.values()))}


def read_larger(
    statement: LargerStatement, catalog: Catalog, read: Callable[[Statement], Query], engine: Engine
) -> LargerQuery:
    """Read and price all private SELECTs, and check the SQL around them against their columns.

    Parameters
    ----------
    statement : LargerStatement
    catalog : Catalog
    read : callable
        Reads one private SELECT, under the session's defaults and policy.
    engine : Engine
        It refuses what it cannot run.

    Raises
    ------
    QueryError
        If anything is refused; nothing is charged, and no private row is read.
    """
    outer = separate(statement, catalog)
    priced: list[PricedQuery] = []
    positions, known = [], dict[str, int]()
    for each in outer.private:
        query = read(each)
        key = query_key(query)
        if key not in known:
            known[key] = len(priced)
            priced.append(price(query))
            for job in priced[-1].jobs:
                engine.check(job)
        positions.append(known[key])
    return LargerQuery(tuple(priced), prepare(outer, priced, positions, catalog.public))


def explain_larger(larger: LargerQuery, *, privacy_unit: str, budget: Budget) -> str:
    """Say what is private, what it costs, and what is computed from the answers.

    Parameters
    ----------
    larger : LargerQuery
    privacy_unit : str
    budget : Budget
        Of the ledger, to say also if the whole could not be answered were nothing spent of it.
    """
    explained = [explain(each, privacy_unit=privacy_unit) for each in larger.priced]
    return "\n".join((*outer_lines(explained, larger.outer), *_cost(larger.priced, budget)))


def _cost(priced: Sequence[PricedQuery], budget: Budget) -> list[str]:
    epsilon = text_above(decimal_sum_up(each.query.options.epsilon for each in priced))
    delta = text_above(decimal_sum_up(each.charged_delta for each in priced))
    whole = (
        f"All together: epsilon {epsilon}, delta {delta}, charged in one transaction before a row is "
        "read: all of it or nothing. A private SELECT that was answered before costs nothing again."
    )
    lines = [whole]
    filters, total = budget.filters, None
    for each in priced:
        cost = filters.price(each.loss, each.charged_delta)
        total = cost if total is None else filters.after(total, cost)
    if total is not None and not filters.hold(total):
        lines.append(f"Budget: this does not fit into {budget}; ask for smaller epsilons or fewer SELECTs.")
    return lines
