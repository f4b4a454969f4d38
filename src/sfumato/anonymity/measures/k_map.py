"""k-map: how many people of the population each released row may be."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato import _check
from sfumato.anonymity.hierarchies.hierarchy import Codes
from sfumato.anonymity.hierarchies.suppression import Suppression
from sfumato.anonymity.table.columns import EncodedColumn, encode
from sfumato.anonymity.table.grouping import equivalence_classes
from sfumato.anonymity.table.microdata import Microdata
from sfumato.anonymity.table.reading import read_table

__all__ = ["population_sizes"]


def population_sizes(
    data: Microdata, levels: Mapping[str, int], population: object
) -> tuple[int, NDArray[np.int64]]:
    """Return how many rows of a population each class of the table fits; the least is k of k-map.

    Parameters
    ----------
    data : Microdata
        A sample of the population.
    levels : mapping of str to int
        At which level of its hierarchy each quasi-identifier is published.
    population : frame or path
        A row for each person of the population, the sample among them, with the quasi-identifiers.

    Returns
    -------
    tuple of int and int64 array
        The rows of the population, and those of each class, in the order of the classes of the table.

    Raises
    ------
    ParameterError
        If a column is missing, or a class has more rows in the sample than in the population.

    References
    ----------
    L. Sweeney, "Computational disclosure control", PhD thesis, MIT, 2001: k-map.
    """
    table = read_table(population)
    joined, sizes = [], []
    inside = np.ones(table.num_rows, np.bool_)
    for name in data.quasi_identifiers:
        if name not in table.column_names:
            _check.refuse("population", "have every quasi-identifier", name, "add the column")
        column, level = data.columns[name], levels[name]
        codes = _codes_of(column, level, table.column(name))
        inside &= codes >= 0
        joined.append((column.at(level), codes))
        sizes.append(column.hierarchy.cardinality(level))
    both = [np.concatenate([sample, everyone[inside]]) for sample, everyone in joined]
    found = equivalence_classes(both, sizes)
    sample, everyone = found.of_row[: data.rows], found.of_row[data.rows :]
    in_sample = np.bincount(sample, minlength=len(found.sizes))
    in_population = np.bincount(everyone, minlength=len(found.sizes))
    if np.any(in_population < in_sample):
        rule = "have at least as many rows of each class as the sample"
        _check.refuse_state("population", rule, "it has fewer of one", "pass the table that was sampled")
    return int(table.num_rows), in_population[in_sample > 0]


def _codes_of(column: EncodedColumn, level: int, values: pa.ChunkedArray) -> Codes:
    """Return the code at a level of each value of the population; -1 for what no row of the sample can be."""
    everyone = encode(column.name, values, column.builder or Suppression())
    hierarchy = column.hierarchy if column.builder is None else everyone.hierarchy
    labels = dict(zip(hierarchy.values, hierarchy.levels[level], strict=True))
    known = {label: code for code, label in enumerate(column.hierarchy.labels[level])}
    remap = [
        known.get(hierarchy.labels[level][labels[value]], -1) if value in labels else -1
        for value in everyone.hierarchy.values
    ]
    return np.array(remap, np.int32)[everyone.codes]
