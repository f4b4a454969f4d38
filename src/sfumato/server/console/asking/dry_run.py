"""A dry run: the same question on made-up rows, so that an analyst sees the shape of the answer, for nothing.

The rows are made up from public facts (`generated_rows`), the noise is simulated and as large as it would be,
and the release is marked as simulated. No private row is read and nothing is charged.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sfumato.errors import EngineError
from sfumato.frames.sources import open_source
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.pricing.price import PricedQuery
from sfumato.queries.release.display import plain_rows
from sfumato.server.console.asking.dataset_facts import Domains, domain_words
from sfumato.server.console.asking.generated_rows import RowMaker, Size
from sfumato.server.console.asking.planning_tables import public_tables
from sfumato.server.console.asking.question import Question
from sfumato.session.session import Session

__all__ = ["DryRun", "dry_run"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """What a question would look like answered; made by `dry_run`.

    Parameters
    ----------
    table : pyarrow.Table
        The answer on made-up rows, with the ends of its intervals.
    notice : str
        That rows and noise are made up, and from what.
    explanation : str
        How it was answered.
    seed : int
        Of rows and noise: the same seed makes the same table.
    """

    table: pa.Table
    notice: str
    explanation: str
    seed: int

    def to_json(self) -> dict[str, Any]:
        """Return it as plain values, the table as rows."""
        return {
            "columns": self.table.column_names,
            "rows": list(map(list, plain_rows(self.table))),
            "notice": self.notice,
            "explanation": self.explanation,
            "seed": self.seed,
            "simulated": True,
        }


def dry_run(
    session: Session,
    question: Question,
    *,
    domains: Domains | None = None,
    size: Size | None = None,
    seed: int | None = None,
) -> DryRun:
    """Answer a question on made-up rows; nothing is charged, and no private row is read.

    Parameters
    ----------
    session : Session
        Of the analyst, best one to plan on (`planning_session`).
    question : Question
        With an epsilon, of its own or in its text.
    domains : mapping of str to TableDomain, optional
        What was declared of the private tables' values.
    size : Size, optional
    seed : int, optional
        Draws rows and noise; a random one unless given.

    Returns
    -------
    DryRun

    Raises
    ------
    QueryError, ParameterError
        If the question is refused: the same error as for a real one.
    EngineError
        If the SQL around private SELECTs fails on the made-up answers.
    """
    account, size = session.account, size or Size()
    seed = secrets.randbits(32) if seed is None else seed
    asker = session.as_analyst(account.analyst, period=account.period, defaults=question.defaults)
    params = question.params or None
    priced = asker.priced(question.sql, params=params)
    renewal, public = session.ledger.renewal, public_tables(session)
    maker = RowMaker(
        rng=np.random.default_rng(seed),
        size=size,
        public=public,
        domains=domains or {},
        bounds=_stated_bounds(priced),
        days=None
        if renewal is None
        else (renewal.first_day(account.period), renewal.day_after(account.period)),
    )
    private = {name: maker.table(scan) for name, scan in session.catalog.private.items()}
    engine = DuckDBEngine(open_source(private | public), threads=1)
    with asker.simulated(engine, rng=seed, period=account.period) as made_up:
        released = made_up.sql(question.sql, params=params)
        table, explanation = released.to_arrow(intervals=True), released.explain()
    if not released.simulated:
        raise EngineError("the dry run must be simulated, got a real answer; report this as a fault")
    return DryRun(table=table, notice=_notice(size, domains), explanation=explanation, seed=seed)


def _stated_bounds(priced: Sequence[PricedQuery]) -> dict[str, tuple[float, float]]:
    """Return the bounds that a question states of plain columns of numbers."""
    found = {}
    for each in priced:
        for aggregate in each.query.aggregates:
            bounds = aggregate.row_bounds or aggregate.group_bounds
            tree = None if aggregate.expression is None else aggregate.expression.tree
            if bounds is not None and isinstance(tree, exp.Column):
                found[tree.name.casefold()] = bounds
    return found


def _notice(size: Size, domains: Domains | None) -> str:
    words = []
    for table, domain in (domains or {}).items():
        words += [f"{table}.{name}: {domain_words(attribute)}" for name, attribute in domain.items()]
    declared = f"; declared: {'; '.join(words)}" if words else ""
    return (
        f"Made-up rows of {size.units} units and simulated noise: this shows the form of the answer and how "
        "large its error is, and nothing of the data. Values are even over what is declared, stated or "
        f"public{declared}."
    )
