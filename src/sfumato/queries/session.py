"""The front door: a session joins data, engine and ledger, and is the only one that sees the whole way."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Self, final

from sfumato._check import refuse
from sfumato.errors import ParameterError, SchemaError, SimulatedCharge, SourceError
from sfumato.ledger.budget import Budget
from sfumato.ledger.identity import Dataset
from sfumato.ledger.ledger import Ledger
from sfumato.numerics.source import Rng, random_source
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring
from sfumato.queries.answer import add_noise
from sfumato.queries.builder import Door, Table, begin
from sfumato.queries.catalog import Catalog
from sfumato.queries.engines.duckdb import DuckDBEngine
from sfumato.queries.engines.engine import Engine
from sfumato.queries.explain import explain
from sfumato.queries.front import read
from sfumato.queries.plan import Query, Scan
from sfumato.queries.price import PricedQuery, price
from sfumato.queries.release import TableRelease, read_back
from sfumato.queries.sources import ROW, Row, open_source, require_unit

__all__ = ["Session", "connect"]

_SECRET_BYTES = 32
_ROW_IN_WORDS = "row"


@final
class Session:
    """Answers private SQL over one dataset and charges one ledger; made by :func:`connect`.

    Parameters
    ----------
    engine : Engine
        Where the tables lie.
    ledger : Ledger
        What every answer is charged to.
    catalog : Catalog
        The private and public tables.
    privacy_unit : str
        Who is protected, in words for people.
    defaults : mapping of str to object
        Values for options that a query leaves out.
    rng : int, Generator, RandomSource or None
        None is the operating system's entropy; anything else simulates.

    Notes
    -----
    Guarantee: all answers of all sessions on one ledger together meet the ledger's budget, when one
    privacy unit
    is added or removed, also when each question depends on the answers before it (see
    :class:`sfumato.ledger.Ledger` for the theorems). Whoever runs Python here is the curator, and trusted.
    """

    __slots__ = (
        "_catalog",
        "_closed",
        "_defaults",
        "_engine",
        "_ledger",
        "_privacy_unit",
        "_process",
        "_rng",
    )

    def __init__(
        self,
        *,
        engine: Engine,
        ledger: Ledger,
        catalog: Catalog,
        privacy_unit: str,
        defaults: Mapping[str, object],
        rng: Rng,
    ) -> None:
        self._engine = engine
        self._ledger = ledger
        self._catalog = catalog
        self._privacy_unit = privacy_unit
        self._defaults = MappingProxyType(dict(defaults))
        self._rng = None if rng is None else random_source(rng)
        self._process = os.getpid()
        self._closed = False

    @property
    def ledger(self) -> Ledger:
        """The ledger that every answer is charged to."""
        return self._ledger

    @property
    def privacy_unit(self) -> str:
        """Who is protected: the unit column, or the row."""
        return self._privacy_unit

    def sql(self, text: str, *, public_groups: Mapping[str, Sequence[object]] | None = None) -> TableRelease:
        """Answer a private SELECT, charging the ledger before any row is read.

        Asking the very same query of the same data again returns the committed answer, free of charge.

        Parameters
        ----------
        text : str
            ``SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(...) ...`` in BigQuery's spelling, or a plain SELECT
            where
            the session has defaults.
        public_groups : mapping, optional
            Groups known without the data: for each GROUP BY item its values.

        Returns
        -------
        TableRelease

        Raises
        ------
        QueryError
            If the query is refused; nothing is charged.
        BudgetExceeded
            If it does not fit into the budget; nothing is charged, and no row is read. What it offers instead
            was priced for this very query.
        SourceError
            If the session is closed, or is another process's, or a file was changed; nothing is charged.
        LedgerUnavailable, LedgerCorrupt
            If the ledger cannot be used; the message says whether the query was charged.
        EngineError
            If the engine fails after the charge; the charge stays.
        """
        priced = self._price(text, public_groups)
        committed = self._ledger.find(priced.query.text)
        if committed is not None:
            return read_back(committed)
        source = random_source(self._rng)
        explanation = explain(priced, privacy_unit=self._privacy_unit)
        receipt = self._ledger.charge(
            priced.loss,
            delta=priced.query.options.delta,
            request=priced.query.text,
            description=" ".join(text.split()),
            simulated=source.simulated,
            loss_at=_loss_at(priced.query),
        )
        exact = self._engine.aggregate(priced.job, source.bytes(_SECRET_BYTES))
        record = add_noise(priced, exact, source, privacy_unit=self._privacy_unit, explanation=explanation)
        self._ledger.commit(receipt, record.to_bytes())
        return TableRelease(record, receipt)

    def explain(self, text: str, *, public_groups: Mapping[str, Sequence[object]] | None = None) -> str:
        """Say what a query would do and cost; nothing is charged and no row is read."""
        priced = self._price(text, public_groups)
        return explain(priced, privacy_unit=self._privacy_unit, budget=self._ledger.budget)

    def table(self, name: str | None = None) -> Table:
        """Begin a query in Python: ``session.table().filter(...).group_by(...).agg(...)``.

        Parameters
        ----------
        name : str, optional
            The private table; may be left out where there is one only.

        Raises
        ------
        SchemaError
            If there is no such private table.
        """
        return begin(Door(self._catalog, self.sql, self.explain), name)

    def close(self) -> None:
        """Close engine and ledger; calling it again does nothing."""
        self._closed = True
        if self._process == os.getpid():
            self._engine.close()
        self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Session(tables={sorted(self._catalog.private)}, privacy_unit={self._privacy_unit!r})"

    def _price(self, text: str, public_groups: Mapping[str, Sequence[object]] | None) -> PricedQuery:
        self._check_usable()
        query = read(text, self._catalog, defaults=self._defaults, public_groups=public_groups)
        priced = price(query)
        self._engine.check(priced.job)
        return priced

    def _check_usable(self) -> None:
        if self._closed:
            raise SourceError("session must be open, got a closed one; nothing was charged; connect again")
        if self._process != os.getpid():
            # The engine's threads did not come along: its next answer would never end.
            raise SourceError(
                "session must be used in the process that opened it, got a forked child of that; nothing was "
                "charged; connect again in the child"
            )


def _loss_at(query: Query) -> Callable[[float], PrivacyLoss]:
    """Return the loss of a query as a function of its epsilon."""

    def loss(epsilon: float) -> PrivacyLoss:
        return price(replace(query, options=replace(query.options, epsilon=epsilon))).loss

    return loss


def connect(
    source: object,
    *,
    privacy_unit: str | Row | Mapping[str, str | Row],
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    mu: float | None = None,
    ledger: str | os.PathLike[str] | None = None,
    public: Mapping[str, object] | None = None,
    defaults: Mapping[str, object] | None = None,
    new_version: bool = False,
    rng: Rng = None,
    memory_limit: str | None = None,
    threads: int | None = None,
) -> Session:
    """Open data for private questions, under one budget.

    Parameters
    ----------
    source : path, pyarrow Table, DataFrame, or mapping of str to these
        The private data: Parquet, CSV, a DuckDB file, or a frame. A single source is the table ``data``.
    privacy_unit : str, ROW, or mapping of str to these
        The column that names the person (or other unit) a row belongs to; ``sfumato.ROW`` where each row is a
        unit of its own. A mapping gives it table by table.
    epsilon, delta : float
        The budget of the dataset over its whole life: (epsilon, delta)-DP. With delta 0, pure DP.
    rho, mu : float, optional
        Instead of epsilon: a budget in zCDP or in Gaussian DP, up to the mass ``delta``.
    ledger : path, optional
        The ledger's file, made if there is none; an existing one must be of the same unit, budget and data.
        None keeps the ledger in memory, for this session only.
    public : mapping of str to source, optional
        Tables that hold nothing private; they can list groups.
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
    budget = _budget(epsilon, delta, rho, mu)
    _require_mapping("defaults", defaults, "{'epsilon': 0.1, 'delta': 1e-9}")
    _require_mapping("public", public, "{'regions': 'regions.csv'}")
    if rng is not None and ledger is not None:
        raise SimulatedCharge(
            "rng must be None with a ledger file, got a simulated source; leave rng out, or pass ledger=None "
            "to simulate"
        )
    private, listed = open_source(source), open_source(public) if public else {}
    shared = {name.casefold() for name in private} & {name.casefold() for name in listed}
    if shared:
        raise SchemaError(f"public tables must not be private too, got {sorted(shared)}; rename one")
    engine = DuckDBEngine({**private, **listed}, memory_limit=memory_limit, threads=threads)
    try:
        units = _units(privacy_unit, engine, list(private))
        words = _in_words(units)
        book = Ledger.open(
            ledger,
            budget=budget,
            privacy_unit=words,
            neighboring=Neighboring.ADD_REMOVE,
            dataset=Dataset(schema=engine.schema_text, fingerprint=engine.fingerprint),
            new_version=new_version,
            simulated=rng is not None,
        )
    except BaseException:
        engine.close()
        raise
    scans = {name: Scan(name, engine.schemas[name], unit) for name, unit in units.items()}
    catalog = Catalog(scans, {name: engine.schemas[name] for name in listed})
    return Session(
        engine=engine, ledger=book, catalog=catalog, privacy_unit=words, defaults=defaults or {}, rng=rng
    )


def _require_mapping(name: str, value: object, example: str) -> None:
    if value is not None and not isinstance(value, Mapping):
        refuse(name, "be a mapping", type(value).__name__, f"pass one such as {example}")


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
            raise ParameterError(
                f"privacy_unit must be a column name or sfumato.ROW, got {unit!r}; "
                "name the column of the person"
            )
    return {
        table: None if unit is ROW else require_unit(engine.schemas[table], table, str(unit))
        for table, unit in given.items()
    }


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
