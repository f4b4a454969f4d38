"""The public door: what a table's measures are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato import _check
from sfumato.anonymity.measures.k_map import population_sizes
from sfumato.anonymity.report.report import Report
from sfumato.anonymity.table.grouping import equivalence_classes
from sfumato.anonymity.table.microdata import Microdata

__all__ = ["check"]


def check(
    data: Microdata,
    *,
    levels: Mapping[str, int] | None = None,
    population: Any = None,
    population_size: int | None = None,
) -> Report:
    """Return the measures of a table: k-anonymity, l-diversity, t-closeness, risk and others.

    It is for the curator only: it charges nobody, adds no noise, and is no step of a private release.

    Parameters
    ----------
    data : Microdata
    levels : mapping of str to int, optional
        The level of its hierarchy at which a quasi-identifier is published; 0, the values themselves, for
        those not named.
    population : frame or path, optional
        A row for each person of the population, the table's own among them: for k-map and the journalist.
    population_size : int, optional
        For models of who is unique in the population; the rows of `population` where that is given.

    Returns
    -------
    Report
        Each measure is computed when it is first asked for.

    Raises
    ------
    ParameterError
        If a level or the population does not fit.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.anonymity import Intervals, Microdata
    >>> people = pa.table({"age": [31, 34, 52, 58], "disease": ["flu", "gout", "flu", "flu"]})
    >>> data = Microdata(people, quasi_identifiers={"age": Intervals((10,))}, sensitive=["disease"])
    >>> check(data).k, check(data, levels={"age": 1}).k
    (1, 2)
    >>> check(data, levels={"age": 1}, population_size=40).risk.marketer
    0.5
    """
    _check.instance("data", data, Microdata, "pass anonymity.Microdata(frame, quasi_identifiers=[...])")
    chosen = dict.fromkeys(data.quasi_identifiers, 0)
    for name, level in (levels or {}).items():
        if name not in chosen:
            _check.refuse("levels", "name quasi-identifiers", name, f"name some of {', '.join(chosen)}")
        height = data.hierarchies[name].height
        if _check.integer(f"the level of {name!r}", level) > height:
            _check.refuse(f"the level of {name!r}", f"be at most {height}", level, "see its hierarchy")
        chosen[name] = int(level)
    columns = [(data.columns[name], level) for name, level in chosen.items()]
    classes = equivalence_classes(
        [column.at(level) for column, level in columns],
        [column.hierarchy.cardinality(level) for column, level in columns],
    )
    sizes = None
    if population is not None:
        rows, sizes = population_sizes(data, chosen, population)
        if population_size is not None and population_size != rows:
            rule, found = "be the rows of population", "both are given and differ"
            _check.refuse_state("population_size", rule, found, "leave it out")
        population_size = rows
    elif population_size is not None:
        _check.integer("population_size", population_size, minimum=data.rows, remedy="count the table in")
    return Report(data, chosen, classes, population_sizes=sizes, population_size=population_size)
