"""Connecting: sources, units and budget become a session, and everything is checked before a row is asked."""

from __future__ import annotations

import os
from collections.abc import Mapping

from sfumato._check import refuse
from sfumato.errors import ParameterError, SimulatedCharge
from sfumato.ledger.budget import Budget
from sfumato.ledger.identity import Dataset
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.renewal import Renewal
from sfumato.ledger.view import LedgerView
from sfumato.numerics.source import Rng
from sfumato.privacy.neighboring import Neighboring
from sfumato.queries.catalog import Catalog
from sfumato.queries.clusters import SparkSource
from sfumato.queries.databases import PostgresSource, as_database
from sfumato.queries.engines.engine import Engine
from sfumato.queries.engines.opening import open_engine
from sfumato.queries.periods import within_period
from sfumato.queries.plan import Scan
from sfumato.queries.policy import PrivacyPolicy
from sfumato.queries.session import Session
from sfumato.queries.sources import ROW, Row, require_unit

__all__ = ["connect"]

_ROW_IN_WORDS = "row"


def connect(
    source: object,
    *,
    privacy_unit: str | Row | Mapping[str, str | Row] | None = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    mu: float | None = None,
    policy: PrivacyPolicy | Mapping[str, object] | str | os.PathLike[str] | None = None,
    ledger: str | os.PathLike[str] | None = None,
    analyst: str = "",
    renewal: Renewal | None = None,
    period: str = "",
    public: Mapping[str, object] | PostgresSource | SparkSource | None = None,
    defaults: Mapping[str, object] | None = None,
    new_version: bool = False,
    rng: Rng = None,
    memory_limit: str | None = None,
    threads: int | None = None,
) -> Session:
    """Open data for private questions, under one budget.

    Parameters
    ----------
    source : path, pyarrow Table, DataFrame, mapping of str to these, address, PostgresSource or SparkSource
        The private data: Parquet, CSV, a DuckDB file, or a frame. A single source is the table ``data``. Or
        tables of PostgreSQL by their own names, all of its schema ``public`` for an address
        ``postgresql://...``: these stay there and are read as they are now until the session ends. Or
        DataFrames of Spark, whose session computes.
    privacy_unit : str, ROW, or mapping of str to these
        The column that names the person (or other unit) a row belongs to; ``sfumato.ROW`` where each row is a
        unit of its own. A mapping gives it table by table. Left out where ``policy`` names it.
    epsilon, delta : float
        The budget of the dataset over its whole life: (epsilon, delta)-DP. With delta 0, pure DP.
    rho, mu : float, optional
        Instead of epsilon: a budget in zCDP or in Gaussian DP, up to the mass ``delta``.
    policy : mapping, path or str, optional
        BigQuery's ``privacy_policy`` (its JSON, a file of it, or as a mapping): the unit column, the budget,
        and limits on each query; see `sfumato.queries.policy.PrivacyPolicy`.
    ledger : path or str, optional
        The ledger's file, made if there is none; an existing one must be of the same unit, budget and data.
        Or ``postgresql://user@host/database``, a ledger that a team shares. None keeps the ledger in memory,
        for this session only.
    analyst : str, optional
        Who asks: every answer is charged to their account as well, which the curator opened with
        ``Ledger.grant``. Left out, it is the curator, who has the dataset's budget.
    renewal : Renewal, optional
        Give each calendar period of the rows' own time the whole budget; what is protected is then a unit
        within one period.
    period : str, optional
        With ``renewal``, the period that all questions of this session are about, such as ``"2026-01"``: the
        private rows of other periods are not read.
    public : mapping of str to source, PostgresSource or SparkSource, optional
        Tables that hold nothing private; they can list groups. They lie where the private ones do.
    defaults : mapping of str to object, optional
        Values of OPTIONS that a query leaves out, such as ``{"epsilon": 0.1, "delta": 1e-9}``.
    new_version : bool
        Accept changed content as a new version of the ledger's dataset; versions share one budget.
    rng : int, Generator or RandomSource, optional
        For simulation only, with ``ledger=None``: releases are marked as simulated and protect nobody.
    memory_limit : str, optional
        Most memory for the engine, such as ``"2GB"``.
    threads : int, optional
        Threads of the engine.

    Returns
    -------
    Session
        To be closed, or used as a context manager.

    Raises
    ------
    SourceError, SchemaError
        If the data cannot be opened or has no such unit column.
    ParameterError
        If the budget is missing or out of range.
    LedgerMismatch, LedgerCorrupt, LedgerUnavailable
        If the ledger does not fit or cannot be used.
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
    if renewal is not None and not isinstance(renewal, Renewal):
        refuse("renewal", "be a Renewal", type(renewal).__name__, "pass Renewal(every='month', column='day')")
    rules = None if policy is None else PrivacyPolicy.read(policy)
    if rules is not None:
        privacy_unit = _unit_of(rules, privacy_unit)
        epsilon, delta = _budget_of(rules, epsilon, delta, rho, mu)
    if privacy_unit is None:
        refuse("privacy_unit", "be given, or a policy", None, "name the column of the person")
    budget = _budget(epsilon, delta, rho, mu)
    _require_mapping("defaults", defaults, "{'epsilon': 0.1, 'delta': 1e-9}")
    if as_database(public) is None and not isinstance(public, SparkSource):
        _require_mapping("public", public, "{'regions': 'regions.csv'}")
    if rng is not None and ledger is not None:
        raise SimulatedCharge(
            "rng must be None with a ledger file, got a simulated source; leave rng out, or pass ledger=None "
            "to simulate"
        )
    opened = open_engine(source, public, memory_limit=memory_limit, threads=threads)
    engine = opened.engine
    try:
        units = _units(privacy_unit, engine, list(opened.private))
        words = _in_words(units)
        scans = {name: Scan(name, engine.schemas[name], unit) for name, unit in units.items()}
        catalog = Catalog(
            scans,
            {name: engine.schemas[name] for name in opened.public},
            {} if renewal is None else {n: within_period(scan, renewal, period) for n, scan in scans.items()},
        )
        book = Ledger.open(
            ledger,
            budget=budget,
            privacy_unit=words,
            neighboring=Neighboring.ADD_REMOVE,
            dataset=Dataset(schema=engine.schema_text, fingerprint=engine.fingerprint),
            new_version=new_version,
            simulated=rng is not None,
            renewal=renewal,
        )
    except BaseException:
        engine.close()
        raise
    try:
        account = LedgerView(book, analyst, period=period)
    except BaseException:
        engine.close()
        book.close()
        raise
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


def _require_mapping(name: str, value: object, example: str) -> None:
    if value is not None and not isinstance(value, Mapping):
        refuse(name, "be a mapping", type(value).__name__, f"pass one such as {example}")


def _unit_of(
    policy: PrivacyPolicy, given: str | Row | Mapping[str, str | Row] | None
) -> str | Row | Mapping[str, str | Row]:
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
        refuse("budget", "be stated once", "the policy's and another", "leave epsilon, delta, rho and mu out")
    return policy.epsilon_budget, policy.delta_budget or 0.0


def _budget(epsilon: float | None, delta: float, rho: float | None, mu: float | None) -> Budget:
    given = {
        name: value for name, value in (("epsilon", epsilon), ("rho", rho), ("mu", mu)) if value is not None
    }
    if len(given) != 1:
        refuse(
            "budget",
            "be one of epsilon, rho and mu",
            ", ".join(sorted(given)) or "none",
            "state for instance epsilon 1.0 and delta 1e-7",
        )
    if rho is not None:
        return Budget.zcdp(rho=rho, delta=delta)
    if mu is not None:
        return Budget.gaussian(mu=mu, delta=delta)
    if delta == 0:
        return Budget.pure(epsilon=given["epsilon"])
    return Budget.approximate(epsilon=given["epsilon"], delta=delta)


def _units(
    privacy_unit: str | Row | Mapping[str, str | Row], engine: Engine, tables: list[str]
) -> dict[str, str | None]:
    given = privacy_unit if isinstance(privacy_unit, Mapping) else dict.fromkeys(tables, privacy_unit)
    if set(given) != set(tables):
        raise ParameterError(
            f"privacy_unit must name the unit of each private table {tables}, got {sorted(given)}; "
            "add or drop tables"
        )
    for unit in given.values():
        if unit is not ROW and not isinstance(unit, str):
            raise ParameterError(_no_unit(unit))
    return {
        table: None if unit is ROW else require_unit(engine.schemas[table], table, str(unit))
        for table, unit in given.items()
    }


def _no_unit(unit: object) -> str:
    """Say why a value is no privacy unit."""
    if isinstance(unit, (tuple, list, set, frozenset)):
        return (
            "privacy_unit must be one column: bounds for several at once, as a user and a device, need a "
            "proof for each; make a column that numbers the users and devices that are connected"
        )
    return f"privacy_unit must be a column name or sfumato.ROW, got {unit!r}; name the column of the person"


def _in_words(units: Mapping[str, str | None]) -> str:
    """Name the unit in words that differ wherever units do: a ledger knows its unit by them.

    >>> _in_words({"people": None}), _in_words({"people": "row"})
    ('row', '"row"')
    >>> _in_words({"a": "id", "b": None}), _in_words({"a: x, b": "id", "b": None})
    ('a: id, b: row', '"a: x, b": id, b: row')
    """
    names = {_ROW_IN_WORDS if unit is None else _quoted(unit, _ROW_IN_WORDS) for unit in units.values()}
    if len(names) == 1:
        return names.pop()
    return ", ".join(
        f"{_quoted(table)}: {_ROW_IN_WORDS if unit is None else _quoted(unit, _ROW_IN_WORDS)}"
        for table, unit in sorted(units.items())
    )


def _quoted(name: str, *reserved: str) -> str:
    """Return a name, in quotes where it could be taken for something else."""
    if name in reserved or any(mark in name for mark in '",:'):
        return '"' + name.replace('"', '""') + '"'
    return name
