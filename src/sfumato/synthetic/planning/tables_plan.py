"""A plan for published tables: what each method would do, and which one to take; nothing is spent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.privacy.neighboring import Neighboring
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.marginals.workload import Marginals
from sfumato.synthetic.planning.method_plans import METHODS, MethodPlan, PlanRequest

__all__ = ["TablesPlan", "plan"]

_SHARE: Final = 0.05
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
        """The first method whose noise misplaces at most 5 % of the rows, else the one with the least noise.

        None where the number of rows is not given: see `MethodPlan.rows_needed`.
        """
        if self.rows is None:
            return None
        enough = (method for method in self.methods if method.rows_needed(_SHARE) <= self.rows)
        return next(enough, min(self.methods, key=lambda method: method.misplaced)).name

    def __str__(self) -> str:
        lines = [f"Tables at epsilon {self.epsilon:g}, delta {self.delta:g}; nothing is spent."]
        for method in self.methods:
            need, more = method.rows_needed(_SHARE), len(method.errors) - _SHOWN
            lines.append(
                f"{method.name}: {method.remark}. About {method.memory / 2**20:.1f} MiB and "
                f"{method.seconds:.2f} s; its noise misplaces at most 5 % of the rows from {need:,} rows on."
            )
            lines += [
                f"    {', '.join(each.columns) or 'the rows'}: {each.cells:,} cells, stddev {each.stddev:.4g}"
                for each in method.errors[:_SHOWN]
            ]
            lines += [f"    and {more} more tables"] if more > 0 else []
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
    All that a plan says follows from its parameters: no row is read. An error is that of the noise. Where
    columns are multiplied there is another one, which depends on how they depend on one another: no
    public parameter says how large it is.

    Examples
    --------
    >>> domain = TableDomain(age=["young", "old"], sex=["f", "m"])
    >>> made = plan(domain, Marginals.every(2), epsilon=1.0, delta=1e-9, rows=10_000)
    >>> for line in str(made).splitlines():
    ...     print(line[:72])
    Tables at epsilon 1, delta 1e-09; nothing is spent.
    residual: counts are unbiased, with intervals; nearly empty cells are lo
        age, sex: 4 cells, stddev 5.496
    independent: tables are products of the columns of Marginals.every(1); w
        age, sex: 4 cells, stddev 4.692
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
