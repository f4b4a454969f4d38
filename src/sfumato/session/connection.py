"""Connecting: sources, units and budget become a session, and everything is checked before a row is asked."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, overload

from sfumato._check import instance, refuse, refuse_state, refuse_type
from sfumato.errors import SimulatedCharge
from sfumato.ledger.budget.budget import Budget
from sfumato.ledger.budget.renewal import Renewal
from sfumato.ledger.identity import Dataset
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.log.chain_head import ChainHead
from sfumato.ledger.log.words import check_line, check_name
from sfumato.ledger.view import LedgerView
from sfumato.numerics.randomness.source import Rng
from sfumato.privacy.neighboring import Neighboring
from sfumato.queries.engines.duckdb.column_types import TableTypes
from sfumato.queries.engines.named_columns import Columns
from sfumato.queries.engines.postgres.source import PostgresSource, as_database
from sfumato.queries.engines.spark.engine import SparkEngine
from sfumato.queries.engines.spark.source import SparkSource
from sfumato.queries.plan.policy import PrivacyPolicy
from sfumato.queries.plan.query import Scan
from sfumato.queries.sql.catalog import Catalog
from sfumato.session.engine_choice import open_engine
from sfumato.session.period import within_period
from sfumato.session.progress import display_of
from sfumato.session.remote.console_address import connect_console
from sfumato.session.remote.remote_session import RemoteSession
from sfumato.session.remote.transport import is_address
from sfumato.session.session import Session
from sfumato.session.units import Unit, require_one_dataset, unit_columns

__all__ = ["connect"]


@overload
def connect(
    source: str,
    *,
    token: str | os.PathLike[str],
    purpose: str = ...,
    period: str = ...,
    defaults: Mapping[str, object] | None = ...,
) -> RemoteSession: ...
@overload
def connect(
    source: object,
    *,
    privacy_unit: Unit | Mapping[str, Unit] | None = ...,
    epsilon: float | None = ...,
    delta: float = ...,
    rho: float | None = ...,
    mu: float | None = ...,
    policy: PrivacyPolicy | Mapping[str, object] | str | os.PathLike[str] | None = ...,
    ledger: str | os.PathLike[str] | None = ...,
    analyst: str | None = ...,
    purpose: str = ...,
    renewal: Renewal | None = ...,
    period: str = ...,
    neighboring: Neighboring = ...,
    public: Mapping[str, object] | PostgresSource | SparkSource | None = ...,
    types: TableTypes | None = ...,
    defaults: Mapping[str, object] | None = ...,
    new_version: bool = ...,
    rng: Rng = ...,
    memory_limit: str | None = ...,
    threads: int | None = ...,
    columns: Columns | None = ...,
    statement_timeout: float | None = ...,
    head: ChainHead | str | os.PathLike[str] | None = ...,
    progress: bool | None = ...,
    token: None = ...,
) -> Session: ...
def connect(
    source: object,
    *,
    privacy_unit: Unit | Mapping[str, Unit] | None = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    mu: float | None = None,
    policy: PrivacyPolicy | Mapping[str, object] | str | os.PathLike[str] | None = None,
    ledger: str | os.PathLike[str] | None = None,
    analyst: str | None = None,
    purpose: str = "",
    renewal: Renewal | None = None,
    period: str = "",
    neighboring: Neighboring = Neighboring.ADD_REMOVE,
    public: Mapping[str, object] | PostgresSource | SparkSource | None = None,
    types: TableTypes | None = None,
    defaults: Mapping[str, object] | None = None,
    new_version: bool = False,
    rng: Rng = None,
    memory_limit: str | None = None,
    threads: int | None = None,
    columns: Columns | None = None,
    statement_timeout: float | None = None,
    head: ChainHead | str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    token: str | os.PathLike[str] | None = None,
) -> Session | RemoteSession:
    """Open data for private questions, under one budget; or a console that others run.

    Parameters
    ----------
    source : path, list of paths, Table, Dataset, frame, mapping of str to these, address or another source
        The private data: Parquet (files, folders, also partitioned ones), CSV, a DuckDB file, a frame, a
        pyarrow Dataset, or a table of Delta or Iceberg. A single source is the table ``data``. Or
        tables of PostgreSQL by their own names, all of its schema ``public`` for an address
        ``postgresql://...``: these stay there and are read as they are now until the session ends. Or
        DataFrames of Spark, whose session computes. Or the address ``https://...`` of a console, which has
        the data, the budget and the ledger: beside it only token, purpose, period and defaults are given.
    privacy_unit : str, ROW, tuple of str, or mapping of str to these
        The column that names the person (or other unit) a row belongs to; ``sfumato.ROW`` where each row is a
        unit of its own. Several columns, such as ``("user", "device")``, make one unit of all rows that share
        a user or a device, or that a chain of such rows connects. A mapping gives it table by table. Left out
        where ``policy`` names it.
    epsilon, delta : float
        The budget of the dataset over its whole life: (epsilon, delta)-DP. With delta 0, pure DP.
    rho, mu : float, optional
        Instead of epsilon: a budget in zCDP or in Gaussian DP, up to the mass ``delta``.
    policy : mapping, path or str, optional
        BigQuery's ``privacy_policy`` (its JSON, a file of it, or as a mapping): the unit column, the budget,
        and limits on each query; see `sfumato.queries.plan.policy.PrivacyPolicy`.
    ledger : path or str, optional
        The ledger's file, made if there is none; an existing one must be of the same unit, budget and data.
        Or ``postgresql://user@host/database``, a ledger that a team shares. None keeps the ledger in memory,
        for this session only.
    analyst : str, optional
        Who asks: every answer is charged to their account as well, which the curator opened with
        ``Ledger.grant``. None is the curator, who has the dataset's budget; an empty name is refused, so that
        a name that was lost on the way widens nobody's budget.
    purpose : str
        What the answers are for: one line, which every charge of this session carries.
    renewal : Renewal, optional
        Give each calendar period of the rows' own time the whole budget; what is protected is then a unit
        within one period.
    period : str, optional
        With ``renewal``, the period that all questions of this session are about, such as ``"2026-01"``: the
        private rows of other periods are not read.
    neighboring : Neighboring
        What the budget is about. Queries are priced under add/remove; another relation is for training that
        is charged to the session's ledger.
    public : mapping of str to source, PostgresSource or SparkSource, optional
        Tables that hold nothing private; they can list groups. They lie where the private ones do.
    types : mapping of str to str, or mapping of str to these, optional
        Types of columns of CSV files and of those that folders name, by the names that CAST takes:
        ``{"age": "INT64", "day": "DATE"}``, or table by table where there are several. Other columns of a
        private CSV file are texts, and a value that is none of its column's type is NULL. The types of a
        public file are found in it if none is declared for it.
    defaults : mapping of str to object, optional
        Values of OPTIONS that a query leaves out, such as ``{"epsilon": 0.1, "delta": 1e-9}``.
    new_version : bool
        Accept changed content as a new version of the ledger's dataset; versions share one budget.
    rng : int, Generator or RandomSource, optional
        For simulation only, with ``ledger=None``: releases are marked as simulated and protect nobody.
    memory_limit : str, optional
        Maximum memory of the engine, such as ``"2GB"``; too little for any query is refused.
    threads : int, optional
        Threads of the engine.
    columns : iterable of str, or mapping of str to these, optional
        For a database or cluster: the columns of the private tables that are meant, of the only table or
        table by table. No other is read, so the user needs no right to it, and a ledger knows the content of
        these alone.
    statement_timeout : float, optional
        For PostgreSQL: seconds after which the server ends a statement. The query then ends with
        `EngineError`, and its charge stays. None is no limit, whatever the server's own default is.
    head : ChainHead, path or str, optional
        With ``ledger``: where its chain stood when you last looked (`Ledger.head`), as such, as its JSON or
        as a file of it. A ledger that is not there, or that was put back to an earlier state, is refused.
    progress : bool, optional
        Whether long queries show on standard error how far they are. Left out: where that is a terminal, and
        no analyst asks. It depends on the data, so it is for the curator's eyes alone.
    token : str or path, optional
        For a console: who asks. A `pathlib.Path` is a file that holds it; left out, it is taken from the
        environment's ``SFUMATO_TOKEN``. No error and no representation shows it.

    Returns
    -------
    Session or RemoteSession
        To be closed, or used as a context manager; the latter for a console.

    Raises
    ------
    SourceError, SchemaError
        If the data cannot be opened or has no such unit column, or no query could be computed there.
    ParameterError
        If the budget is missing or out of range, the memory is too little for any query, or types are
        declared for what is no column of a CSV file.
    LedgerMismatch, LedgerCorrupt, LedgerUnavailable
        If the ledger does not fit, cannot be used, or does not continue ``head``.
    SimulatedCharge
        If a seed is given with a ledger file.

    Examples
    --------
    >>> import pyarrow as pa
    >>> people = pa.table({"person": range(1000), "smokes": [True, False] * 500})
    >>> with connect(people, privacy_unit="person", epsilon=1.0, delta=1e-6, rng=7) as session:
    ...     release = session.sql('''
    ...         SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=1e-7, max_groups_contributed=1)
    ...         smokes, COUNT(*) AS n FROM data GROUP BY smokes''')
    >>> release.to_arrow().column_names
    ['smokes', 'n']
    """
    if is_address(source):
        of_data = {
            "privacy_unit": privacy_unit, "epsilon": epsilon, "delta": delta, "rho": rho, "mu": mu,
            "policy": policy, "ledger": ledger, "analyst": analyst, "renewal": renewal, "public": public,
            "types": types, "new_version": new_version, "rng": rng is not None, "memory_limit": memory_limit,
            "threads": threads, "columns": columns, "statement_timeout": statement_timeout, "head": head,
        }  # fmt: skip
        about: dict[str, Any] = {"purpose": purpose, "period": period, "defaults": defaults}
        return connect_console(str(source), token=token, **about, given=of_data)
    if token is not None:
        refuse_state("token", "come with a console's address", "this is data", "leave it out")
    if renewal is not None:
        instance("renewal", renewal, Renewal, "pass Renewal(every='month', column='day')")
    rules = None if policy is None else PrivacyPolicy.read(policy)
    if rules is not None:
        privacy_unit = _unit_of(rules, privacy_unit)
        epsilon, delta = _budget_of(rules, epsilon, delta, rho, mu)
    if privacy_unit is None:
        found = "there is neither a unit nor a policy"
        refuse_state("privacy_unit", "be given", found, "name the column of the person")
    require_one_dataset(privacy_unit, renewal, new_version=new_version)
    budget = _budget(epsilon, delta, rho, mu)
    asker = "" if analyst is None else check_name("analyst", analyst)
    check_line("purpose", purpose)
    _require_mapping("defaults", defaults, "{'epsilon': 0.1, 'delta': 1e-9}")
    if as_database(public) is None and not isinstance(public, SparkSource):
        _require_mapping("public", public, "{'regions': 'regions.csv'}")
    if rng is not None and ledger is not None:
        raise SimulatedCharge(
            "rng must be None with a ledger file, got a simulated source; leave rng out, or pass ledger=None "
            "to simulate"
        )
    seen, display = _head(head, ledger), display_of(progress, analyst=analyst)
    opened = open_engine(
        source,
        public,
        types=types,
        memory_limit=memory_limit,
        threads=threads,
        columns=columns,
        statement_timeout=statement_timeout,
        display=display,
    )
    engine = opened.engine
    with ExitStack() as opening:  # what is open is closed again if the rest fails
        opening.callback(engine.close)
        units = unit_columns(privacy_unit, engine, list(opened.private))
        scans = {name: Scan(name, engine.schemas[name], unit) for name, unit in units.columns.items()}
        catalog = Catalog(
            scans,
            {name: engine.schemas[name] for name in opened.public},
            {} if renewal is None else {n: within_period(scan, renewal, period) for n, scan in scans.items()},
        )
        book = Ledger.open(
            ledger,
            budget=budget,
            privacy_unit=units.words,
            neighboring=neighboring,
            dataset=Dataset(
                schema=engine.schema_text,
                # A ledger in memory ends with the session: it never asks whether the rows are the same. But
                # Spark's are read through here only, and one that cannot be read must not fail a query.
                fingerprint=engine.fingerprint
                if ledger is not None or isinstance(engine, SparkEngine)
                else _no_content,
            ),
            new_version=new_version,
            simulated=rng is not None,
            renewal=renewal,
            head=seen,
        )
        opening.callback(book.close)
        account = LedgerView(book, asker, period=period, purpose=purpose)
        opening.pop_all()
    return Session(
        engine=engine,
        ledger=book,
        account=account,
        catalog=catalog,
        privacy_unit=account.privacy_unit,
        defaults={**(rules.defaults if rules else {}), **(defaults or {})},
        rng=rng,
        policy=rules,
    )


def _no_content(key: bytes) -> str:
    """Return the fingerprint of rows that nobody reads."""
    return hmac.new(key, b"sfumato.content.unread 1", hashlib.sha256).hexdigest()


def _head(head: object, ledger: object) -> ChainHead | None:
    """Return the head that a ledger must continue."""
    if head is None or isinstance(head, ChainHead):
        seen = head
    elif isinstance(head, str) and head.lstrip().startswith("{"):
        seen = ChainHead.from_json(head)
    elif isinstance(head, str | os.PathLike):
        text = None
        with suppress(OSError, UnicodeDecodeError, ValueError):
            text = Path(head).read_text("utf-8")
        if text is None:
            refuse("head", "be a file that can be read", os.fspath(head), "pass the file of an exported head")
        seen = ChainHead.from_json(text)
    else:
        refuse_type("head", "be a ChainHead, its JSON or a file of it", head, "pass ledger.head()")
    if seen is not None and ledger is None:
        refuse_state("head", "come with a ledger", "the ledger is in memory", "pass ledger=, or leave it out")
    return seen


def _require_mapping(name: str, value: object, example: str) -> None:
    if value is not None and not isinstance(value, Mapping):
        refuse_type(name, "be a mapping", value, f"pass one such as {example}")


def _unit_of(policy: PrivacyPolicy, given: Unit | Mapping[str, Unit] | None) -> Unit | Mapping[str, Unit]:
    if given not in (None, policy.privacy_unit_column):
        refuse(
            "privacy_unit",
            f"be the policy's, {policy.privacy_unit_column!r}",
            given,
            "leave it out where a policy is given",
        )
    return policy.privacy_unit_column


def _budget_of(
    policy: PrivacyPolicy, epsilon: float | None, delta: float, rho: float | None, mu: float | None
) -> tuple[float | None, float]:
    """Return epsilon and delta of the budget, which is stated by the policy or beside it."""
    if policy.epsilon_budget is None:
        return epsilon, delta
    if (epsilon, rho, mu) != (None, None, None) or delta:
        refuse_state(
            "budget",
            "be stated once",
            "it is stated both by the policy and by arguments",
            "leave epsilon, delta, rho and mu out",
        )
    return policy.epsilon_budget, policy.delta_budget or 0.0


def _budget(epsilon: float | None, delta: float, rho: float | None, mu: float | None) -> Budget:
    measures = {"epsilon": epsilon, "rho": rho, "mu": mu}
    given = {name: value for name, value in measures.items() if value is not None}
    if len(given) != 1:
        refuse_state(
            "budget",
            "be one of epsilon, rho and mu",
            f"it is given by {' and '.join(given) or 'none of them'}",
            "state for instance epsilon=1.0 and delta=1e-7",
        )
    if rho is not None:
        return Budget.zcdp(rho=rho, delta=delta)
    if mu is not None:
        return Budget.gaussian(mu=mu, delta=delta)
    if delta == 0:
        return Budget.pure(epsilon=given["epsilon"])
    return Budget.approximate(epsilon=given["epsilon"], delta=delta)
