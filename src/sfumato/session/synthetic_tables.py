"""What a session offers for whole tables: all marginals of a workload at once, for one charge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sfumato import _check
from sfumato.privacy.loss import PrivacyLoss
from sfumato.queries.builder.private_query import Table
from sfumato.session.counted_release import ChargedRequest, CountedRequest, request_key
from sfumato.session.table_releases import TableReleases
from sfumato.synthetic.counting.column_values import read_values, values_job
from sfumato.synthetic.domain.bought_domain import BoughtDomain, ColumnInputs
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.domain.domain_release import DomainRelease
from sfumato.synthetic.generators.generator import Generator
from sfumato.synthetic.generators.generator_choice import AUTO, GENERATORS, generator_named
from sfumato.synthetic.generators.public_prior import PublicPrior
from sfumato.synthetic.generators.synthetic_model import SyntheticModel
from sfumato.synthetic.marginals.marginals_release import MarginalsRelease
from sfumato.synthetic.marginals.residual_mechanism import ResidualMechanism
from sfumato.synthetic.marginals.workload import Marginals

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["SyntheticTools"]


class SyntheticTools(TableReleases):
    """Doors of a session that lead to published tables; base of `Session`."""

    __slots__ = ()

    def marginals(
        self,
        domain: TableDomain,
        workload: Marginals,
        *,
        epsilon: float,
        delta: float,
        table: str | Table | None = None,
        max_rows_contributed: int = 1,
    ) -> MarginalsRelease:
        """Release all marginals of a workload with the least squared error, charging before any row is read.

        Asking the very same of the same data again returns the committed release, free of charge.

        Parameters
        ----------
        domain : TableDomain
            The columns and their cells, which are not from the data. They are found by name, without regard
            to case.
        workload : Marginals
            The tables wanted.
        epsilon, delta : float
            The guarantee; delta must be positive.
        table : str or Table, optional
            The private table, or rows of the builder, as ``session.table().filter("age >= 18")``; may be left
            out where there is one table only.
        max_rows_contributed : int
            How many rows of a unit count, chosen at random; noise grows in proportion. Where each row is a
            unit it counts once, whatever this says.

        Returns
        -------
        MarginalsRelease
            With the receipt of its charge; without where it was committed before.

        Raises
        ------
        ParameterError, QueryError
            If a column is not there or is of another type than its cells, tables are too large, or a limit is
            refused; nothing is charged.
        BudgetExceeded
            If it does not fit into the budget; nothing is charged, and no row is read.
        EngineError
            If the engine fails after the charge; the charge stays.

        Notes
        -----
        Guarantee: that of `sfumato.synthetic.ResidualMechanism` for the session's unit: rows without a cell
        are left out one by one, of a unit's other rows at most ``max_rows_contributed`` are counted, the same
        in all tables, and they follow from that unit's rows and a secret alone.

        Examples
        --------
        >>> import pyarrow as pa
        >>> import sfumato as sf
        >>> from sfumato.synthetic import Marginals, Ordered, TableDomain
        >>> people = pa.table({"id": range(1000), "age": [20, 30, 40, 50] * 250, "sex": ["f", "m"] * 500})
        >>> domain = TableDomain(age=Ordered(0, 100, bins=10), sex=["f", "m"])
        >>> with sf.connect(people, privacy_unit="id", epsilon=1.0, delta=1e-6, rng=7) as session:
        ...     released = session.marginals(domain, Marginals.every(2), epsilon=0.9, delta=1e-7)
        >>> released.marginal("sex")
        <MarginalTable of sex, 2, stddev 16.34>
        """
        _check.instance("domain", domain, TableDomain, "declare one with sfumato.synthetic.TableDomain")
        _check.instance("workload", workload, Marginals, "write Marginals.every(2), say")
        cliques, names = workload.cliques(domain), list(domain)
        neighboring = self._ledger.neighboring

        def at_epsilon(smaller: float) -> ResidualMechanism:
            return ResidualMechanism.calibrated(
                domain,
                workload,
                epsilon=smaller,
                delta=delta,
                neighboring=neighboring,
                max_rows_contributed=rows,
            )

        parameters = {
            "tables": [[names[place] for place in clique] for clique in cliques],
            "weights": [workload.weight(place) for place in range(len(cliques))],
            **_ordered(workload),
        }
        query = self._rows_of(table, epsilon, delta)
        rows = self._rows_counted(query, max_rows_contributed)
        request = CountedRequest(
            kind="marginals",
            rows=query,
            domain=domain,
            cliques=cliques,
            epsilon=epsilon,
            delta=delta,
            max_rows_contributed=rows,
            parameters=parameters,
            description=f"marginals: {len(cliques)} tables of {', '.join(names)}",
            at_epsilon=at_epsilon,
        )
        released: MarginalsRelease = self._released(request)
        return released

    def synthesize(
        self,
        domain: TableDomain,
        *,
        epsilon: float,
        delta: float,
        workload: Marginals | None = None,
        method: str = AUTO,
        table: str | Table | None = None,
        max_rows_contributed: int = 1,
        prior: PublicPrior | None = None,
    ) -> SyntheticModel:
        """Release a model that synthetic rows are drawn from, charging before any row is read.

        Asking the very same of the same data again returns the committed model, free of charge.

        Parameters
        ----------
        domain, epsilon, delta, table, max_rows_contributed
            As for `marginals`.
        workload : Marginals, optional
            The tables that should be right, which `AIM` regards: all pairs of columns unless given.
        method : str
            ``"aim"``, ``"mst"`` or ``"independent"``; ``"auto"`` takes the first of these that can
            take tables of such sizes.
        prior : PublicPrior, optional
            What is public of such tables, and not made of these rows.

        Returns
        -------
        SyntheticModel
            Its ``table()`` is the synthetic table. With the receipt of its charge; without where it was
            committed before.

        Raises
        ------
        ParameterError, QueryError, BudgetExceeded, EngineError
            As for `marginals`.

        Notes
        -----
        Guarantee: that of the generator for the session's unit, whose rows are bounded as for `marginals`.

        Examples
        --------
        >>> import pyarrow as pa
        >>> import sfumato as sf
        >>> from sfumato.synthetic import Ordered, TableDomain
        >>> people = pa.table({"id": range(1000), "age": [20, 30, 40, 50] * 250, "sex": ["f", "m"] * 500})
        >>> domain = TableDomain(age=Ordered(0, 100, bins=10), sex=["f", "m"])
        >>> with sf.connect(people, privacy_unit="id", epsilon=4.0, delta=1e-6, rng=7) as session:
        ...     model = session.synthesize(domain, epsilon=3.0, delta=1e-7)
        >>> model.table(200, rng=1).schema.names, model.marginal("sex").round(-2).tolist()
        (['age', 'sex'], [500.0, 500.0])
        """
        request = self._synthesis(
            domain, workload, method, epsilon, delta, table=table, most=max_rows_contributed, prior=prior
        )
        released: SyntheticModel = self._released(request)
        return released

    def synthesis_loss(
        self,
        domain: TableDomain,
        *,
        epsilon: float,
        delta: float,
        workload: Marginals | None = None,
        method: str = AUTO,
        table: str | Table | None = None,
        max_rows_contributed: int = 1,
        prior: PublicPrior | None = None,
    ) -> PrivacyLoss:
        """Return what `synthesize` would be charged, after all its checks; nothing is charged or read.

        Parameters
        ----------
        domain, epsilon, delta, workload, method, table, max_rows_contributed, prior
            As for `synthesize`.

        Returns
        -------
        PrivacyLoss
            Whether the budget takes it is for the ledger to say.

        Raises
        ------
        ParameterError, QueryError
            As for `synthesize`.

        Examples
        --------
        >>> import pyarrow as pa
        >>> import sfumato as sf
        >>> from sfumato.synthetic import TableDomain
        >>> people = pa.table({"id": range(100), "sex": ["f", "m"] * 50})
        >>> with sf.connect(people, privacy_unit="id", epsilon=4.0, delta=1e-6, rng=7) as session:
        ...     loss = session.synthesis_loss(TableDomain(sex=["f", "m"]), epsilon=3.0, delta=1e-7)
        ...     2.99 < loss.epsilon(1e-7) <= 3.0, len(session.ledger.entries())
        (True, 0)
        """
        return self._checked(
            self._synthesis(
                domain, workload, method, epsilon, delta, table=table, most=max_rows_contributed, prior=prior
            )
        ).mechanism.privacy_loss

    def _synthesis(
        self,
        domain: TableDomain,
        workload: Marginals | None,
        method: str,
        epsilon: float,
        delta: float,
        *,
        table: str | Table | None,
        most: int,
        prior: PublicPrior | None,
    ) -> CountedRequest:
        """Return the request of a synthetic table, after a check of its parameters."""
        _check.instance("domain", domain, TableDomain, "declare one with sfumato.synthetic.TableDomain")
        if workload is not None:
            _check.instance("workload", workload, Marginals, "write Marginals.every(2), say")
        if prior is not None:
            _check.instance("prior", prior, PublicPrior, "make it with PublicPrior.from_table")
        generator, neighboring = generator_named(method, domain, workload), self._ledger.neighboring

        def at_epsilon(smaller: float) -> Generator:
            return generator.calibrated(
                domain,
                workload,
                epsilon=smaller,
                delta=delta,
                neighboring=neighboring,
                max_rows_contributed=rows,
                prior=prior,
            )

        name = next(word for word, kind in GENERATORS.items() if kind is generator)
        query = self._rows_of(table, epsilon, delta)
        rows = self._rows_counted(query, most)
        wanted = () if workload is None else workload.cliques(domain)
        return CountedRequest(
            kind="synthetic-model",
            rows=query,
            domain=domain,
            cliques=[tuple(range(len(domain)))],
            epsilon=epsilon,
            delta=delta,
            max_rows_contributed=rows,
            parameters={
                "method": name,
                "tables": [list(clique) for clique in wanted],
                "weights": [] if workload is None else list(map(workload.weight, range(len(wanted)))),
                **({} if workload is None else _ordered(workload)),
                **({} if prior is None else {"prior": prior.digest}),
            },
            description=f"synthetic table by {name}: {', '.join(domain)}",
            at_epsilon=at_epsilon,
        )

    def bought_domain(
        self,
        columns: Mapping[str, Any],
        *,
        epsilon: float,
        delta: float = 0.0,
        table: str | Table | None = None,
    ) -> DomainRelease:
        """Find categories and edges of columns that nobody knows beforehand, charging before any row is read.

        Asking the very same of the same data again returns the committed release, free of charge.

        Parameters
        ----------
        columns : mapping of str to BoughtCategories, BoughtEdges, Categorical, Ordered or list
            Those that are declared cost nothing.
        epsilon, delta : float
            Of all that is bought together; delta must be positive where categories are.
        table : str or Table, optional
            As for `marginals`.

        Returns
        -------
        DomainRelease
            With the receipt of its charge; without where it was committed before.

        Raises
        ------
        ParameterError, QueryError
            If a column is not there or is of another type, or nothing is to be bought; nothing is charged.
        BudgetExceeded
            If it does not fit into the budget; nothing is charged, and no row is read.
        EngineError
            If the engine fails after the charge; the charge stays.

        Notes
        -----
        Guarantee: that of `sfumato.synthetic.BoughtDomain` for the session's unit: in each column a unit
        counts with one of its rows that have a value, chosen at random.

        Examples
        --------
        >>> import pyarrow as pa
        >>> import sfumato as sf
        >>> from sfumato.synthetic import BoughtCategories, BoughtEdges
        >>> ages, towns = [20, 30, 40, 50] * 250, ["Rome", "Oslo"] * 500
        >>> people = pa.table({"id": range(1000), "age": ages, "town": towns})
        >>> columns = {"town": BoughtCategories(), "age": BoughtEdges(0, 100, bins=2)}
        >>> with sf.connect(people, privacy_unit="id", epsilon=1.0, delta=1e-6, rng=7) as session:
        ...     released = session.bought_domain(columns, epsilon=0.9, delta=1e-7)
        >>> released.domain["town"].labels
        ('Oslo', 'Rome', '(other)')
        """

        def at_epsilon(smaller: float) -> BoughtDomain:
            return BoughtDomain(columns, epsilon=smaller, delta=delta)

        query, mechanism = self._rows_of(table, epsilon, delta), at_epsilon(epsilon)
        wanted = {name: mechanism.columns[name] for name in mechanism.bought}
        relation = query.relation

        def read(answers: Sequence[pa.Table]) -> ColumnInputs:
            pairs = zip(wanted.items(), answers, strict=True)
            return ColumnInputs({name: read_values(each, answer) for (name, each), answer in pairs})

        request = ChargedRequest(
            kind="domain",
            key=request_key("domain", query, epsilon, delta, {"columns": mechanism.described()}),
            description=f"the cells of {', '.join(wanted)}",
            epsilon=epsilon,
            delta=delta,
            mechanism=mechanism,
            at_epsilon=at_epsilon,
            jobs=[values_job(relation, name, each) for name, each in wanted.items()],
            read=read,
        )
        released: DomainRelease = self._charged(request)
        return released


def _ordered(workload: Marginals) -> dict[str, object]:
    """Return what the key of a request says of prefixes and ranges: nothing where none are asked."""
    return {"ordered": workload.described()} if workload.ordered else {}
