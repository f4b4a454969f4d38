"""A plan for published tables: what each method would do, and which one to take; nothing is spent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.privacy.neighboring import Neighboring
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.marginals.workload import Marginals
from sfumato.synthetic.planning.method_plans import MethodPlan, PlanRequest
from sfumato.synthetic.planning.methods import METHODS

__all__ = ["TablesPlan", "plan"]

_SHARE: Final = 0.05
_NEAR: Final = 1.25
_SHOWN: Final = 8


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TablesPlan:
    """What each method would do with a workload, from public parameters alone.

    Parameters
    ----------
    epsilon, delta : float
    methods : tuple of MethodPlan
        Those that say more of the data come first.
    rows : float or None
        How many rows there are, about, where that is public.

    Examples
    --------
    >>> domain = TableDomain(age=["young", "old"], sex=["f", "m"])
    >>> made = plan(domain, Marginals.every(2), epsilon=1.0, delta=1e-9, rows=10_000)
    >>> made.recommended, made["residual"].rows_needed(0.05)
    ('residual', 176)
    """

    epsilon: float
    delta: float
    methods: tuple[MethodPlan, ...]
    rows: float | None = None

    def __getitem__(self, name: str) -> MethodPlan:
        found = {method.name: method for method in self.methods}
        if name not in found:
            _check.refuse("name", f"be one of {sorted(found)}", name, "take one of these")
        return found[name]

    @property
    def recommended(self) -> str | None:
        """The first method whose noise misplaces at most 5 % of the rows, else one with little noise.

        The unbiased tables come first, then the generators, the most faithful first. A generator is taken by
        the noise of its columns: other tables are measured where they say more than that. Where no method has
        so little noise it is the first one within a quarter of the least: on two tables like those of a
        census AIM was better than columns alone by up to a sixth there, and worse by 1 % at most. None where
        the number of rows is not given: see `MethodPlan.rows_needed`.
        """
        if self.rows is None:
            return None
        enough = (method for method in self.methods if method.rows_needed(_SHARE) <= self.rows)
        least = min(method.misplaced for method in self.methods)
        near = next(method for method in self.methods if method.misplaced <= _NEAR * least)
        return next(enough, near).name

    def __str__(self) -> str:
        lines = [f"Tables at epsilon {self.epsilon:g}, delta {self.delta:g}; nothing is spent."]
        for method in self.methods:
            need, more = method.rows_needed(_SHARE), len(method.errors) - _SHOWN
            noise = "its noise" if method.unbiased else "the noise of its columns"
            lines.append(
                f"{method.name}: {method.remark}. About {method.memory / 2**20:.1f} MiB and "
                f"{method.seconds:.2f} s; {noise} misplaces at most 5 % of the rows from {need:,} rows on."
            )
            lines += [
                f"    {', '.join(each.columns) or 'the rows'}: {each.cells:,} cells, stddev {each.stddev:.4g}"
                for each in method.errors[:_SHOWN]
            ]
            lines += [f"    and {more} more tables"] if more > 0 else []
            if method.measured:
                least, most = (f"{end(each.stddev for each in method.measured):.4g}" for end in (min, max))
                lines.append(
                    f"    tables measured besides: up to about {method.tables_measured}, with stddev {least}"
                    + (f" to {most}" if most != least else "")
                )
        if self.recommended is not None:
            lines.append(f"For {self.rows:,.0f} rows take: {self.recommended}.")
        return "\n".join(lines)


def plan(
    domain: TableDomain,
    workload: Marginals,
    *,
    epsilon: float,
    delta: float,
    rows: float | None = None,
    neighboring: Neighboring = Neighboring.ADD_REMOVE,
    max_rows_contributed: int = 1,
) -> TablesPlan:
    """Say for each method how large its errors would be, and its memory and time; nothing is spent.

    Parameters
    ----------
    domain : TableDomain
    workload : Marginals
        The tables wanted.
    epsilon, delta : float
        The guarantee; delta must be positive.
    rows : float, optional
        How many rows there are, about: a public or released figure, never the table's own length.
    neighboring, max_rows_contributed
        As in `ResidualMechanism`.

    Returns
    -------
    TablesPlan
        Without the methods for which the tables are too large.

    Raises
    ------
    ParameterError
        If a parameter is out of range, or no method can do the workload.

    Notes
    -----
    All that a plan says follows from its parameters: no row is read. An error is that of the noise. A model
    has another one, where columns depend on one another otherwise than what it has measured says: no public
    parameter tells how large it is. On tables like those of a census the error of AIM was half, and that of
    MST two thirds, of what columns alone leave, at epsilon 1 and some ten thousand rows. Times and memory are
    fitted to runs with 5 to 40 columns, and are right within a factor of about 3.

    Examples
    --------
    >>> domain = TableDomain(age=["young", "old"], sex=["f", "m"])
    >>> made = plan(domain, Marginals.every(2), epsilon=1.0, delta=1e-9, rows=10_000)
    >>> for line in str(made).splitlines():
    ...     print(line[:72].rstrip())
    Tables at epsilon 1, delta 1e-09; nothing is spent.
    residual: counts are unbiased, with intervals; nearly empty cells are lo
        age, sex: 4 cells, stddev 5.496
    aim: a model that rows are drawn from; it measures the tables that it pr
        age, sex: 4 cells, stddev 11.89
        tables measured besides: up to about 4, with stddev 13.32
    mst: a model that rows are drawn from; it measures a tree of pairs, and
        age, sex: 4 cells, stddev 10.22
        tables measured besides: up to about 1, with stddev 6.907
    independent: a model that rows are drawn from, columns multiplied; how m
        age, sex: 4 cells, stddev 4.347
    For 10,000 rows take: residual.
    """
    _check.instance("domain", domain, TableDomain, "declare one with sfumato.synthetic.TableDomain")
    _check.instance("workload", workload, Marginals, "write Marginals.every(2), say")
    if rows is not None:
        rows = _check.positive("rows", rows, "pass a public figure, or leave it out")
    request = PlanRequest(
        domain=domain,
        workload=workload,
        epsilon=epsilon,
        delta=delta,
        neighboring=neighboring,
        max_rows_contributed=max_rows_contributed,
        rows=rows,
    )
    made: list[MethodPlan] = []
    refused: ParameterError | None = None
    for method in METHODS:
        try:
            made.append(method(request))
        except ParameterError as error:
            refused = refused or error
    if not made and refused is not None:
        raise refused
    return TablesPlan(epsilon=epsilon, delta=delta, methods=tuple(made), rows=rows)
