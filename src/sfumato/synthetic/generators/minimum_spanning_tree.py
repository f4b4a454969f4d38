"""MST: a tree of pairs of columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Final, final

import numpy as np

from sfumato import _check
from sfumato.synthetic.generators.cell_groups import CellGroups
from sfumato.synthetic.generators.column_tables import (
    MEAN_ABSOLUTE,
    column_noise,
    grouped_tables,
    measured_columns,
    regrouped,
    shares_by_size,
)
from sfumato.synthetic.generators.generator import Generator
from sfumato.synthetic.generators.private_table import Candidate, PrivateTable
from sfumato.synthetic.generators.public_noise import PublicNoise
from sfumato.synthetic.graphical_model.base_measure import BaseMeasure
from sfumato.synthetic.graphical_model.dual_fit import FittedModel, fit
from sfumato.synthetic.graphical_model.junction_tree import tree_cells
from sfumato.synthetic.graphical_model.measurements import Measurements, NoisyTable
from sfumato.synthetic.graphical_model.model_marginals import ModelMarginals
from sfumato.synthetic.marginals.workload import Clique

__all__ = ["MST"]

_COLUMNS: Final = Fraction(1, 5)
_CHOICES: Final = Fraction(1, 10)
_MERGED: Final = 2.0
_CELLS: Final = 1 << 22
_CIRCLES: Final = 1 << 17


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MST(Generator):
    r"""A model of pairs of columns that make a tree: the pairs that depend most on each other.

    Parameters
    ----------
    domain, rho, neighboring, max_rows_contributed, prior
        As in `Generator`. A pair of columns has at most 2**22 cells.

    Raises
    ------
    ParameterError
        If a pair has more.

    Notes
    -----
    Guarantee: rho-zCDP, by the fully adaptive composition theorem for zCDP (Whitehouse, Ramdas, Rogers, Wu
    2023): see `PrivateTable`, through which each answer goes. The tables of all columns are measured, then as
    many pairs less one as there are columns are chosen by the exponential mechanism, those that connect
    columns which no pair connects yet, scored by how far independent columns are off; then these are
    measured, larger ones with less noise. Pairs that would make the model much larger, together with
    structural zeros or a prior, are left out. Conditions: each person has at most
    ``max_rows_contributed`` rows, and the domain does not come from the data.

    References
    ----------
    McKenna, Miklau, Sheldon, "Winning the NIST contest: a scalable and general approach to differentially
    private synthetic data" (Journal of Privacy and Confidentiality 2021).

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.synthetic import TableDomain
    >>> domain = TableDomain(age=["young", "old"], sex=["f", "m"])
    >>> generator = MST.calibrated(domain, epsilon=1.0, delta=1e-6)
    >>> people = pa.table({"age": ["young"] * 600 + ["old"] * 400, "sex": ["f"] * 600 + ["m"] * 400})
    >>> model = generator.release(people, rng=1)
    >>> (model.marginal("age", "sex") / model.total).round(1).tolist()
    [[0.6, 0.0], [0.0, 0.4]]
    """

    def _check_own(self) -> None:
        largest = sorted(self.domain.sizes)[-2:]
        if len(largest) > 1 and largest[0] * largest[1] > _CELLS:
            found = f"its two largest columns have {largest[0]} and {largest[1]} cells"
            rule = f"have at most {_CELLS} cells in any pair of columns"
            _check.refuse_state("domain", rule, found, "take fewer bins")

    def public_noise(self, rows: float | None = None) -> PublicNoise:
        """Return the noise of the columns' tables, and of pairs, were those of the tree of one size.

        Parameters
        ----------
        rows : float, optional
            Does not matter.

        Returns
        -------
        PublicNoise
        """
        rho, columns = Fraction(self.rho), len(self.domain)
        if columns == 1:
            return PublicNoise([float(self._shift.noise(rho))], {}, 0)
        noise = column_noise(self.domain.sizes, rho * _COLUMNS, self._shift)
        pair = float(self._shift.noise(rho * (1 - _COLUMNS - _CHOICES) / (columns - 1)))
        pairs: dict[Clique, float] = dict.fromkeys(combinations(range(columns), 2), pair)
        return PublicNoise(list(map(float, noise)), pairs, columns - 1)

    def _fitted(self, table: PrivateTable) -> tuple[CellGroups, FittedModel]:
        rho, columns = Fraction(self.rho), len(self.domain)
        share = _COLUMNS if columns > 1 else Fraction(1)
        noise = column_noise(self.domain.sizes, rho * share, self._shift)
        alone = measured_columns(table, noise, self._base())
        groups, measured = grouped_tables(alone, _MERGED)
        table.merge(groups)
        if columns == 1:
            return groups, fit(measured)
        rest = rho * (1 - _COLUMNS - _CHOICES)
        candidates = self._candidates(measured, rest)
        pairs = self._tree(table, measured, candidates, rho * _CHOICES / (columns - 1))
        tables, trust = dict(measured.tables), measured.trust
        cells = [int(np.prod([groups.sizes[column] for column in pair])) for pair in pairs]
        for pair, part in zip(pairs, shares_by_size(cells) if pairs else [], strict=True):
            sigma = self._shift.noise(rest * part)
            found = NoisyTable(table.measure(pair, sigma).astype(np.float64), float(sigma) ** 2)
            tables[pair] = found
            if trust is not None:
                trust = trust.seen(pair, candidates[pair].expected, found.counts, np.asarray(found.variances))
        if trust is not None and trust.strength == 0:
            plain = replace(alone, base=self._base().zeros, trust=None)
            groups, every = regrouped(plain, groups, tables, _MERGED)
            return groups, fit(every)
        return groups, fit(Measurements(groups.sizes, tables, measured.total, measured.base, trust))

    def _candidates(self, measured: Measurements, rest: Fraction) -> dict[Clique, Candidate]:
        """Return all pairs, with what the columns alone predict of them."""
        fitted = fit(measured)
        marginals, columns = ModelMarginals(fitted.model), len(measured.sizes)
        even = float(self._shift.noise(rest / (columns - 1)))
        candidates = dict[Clique, Candidate]()
        for pair in combinations(range(columns), 2):
            expected = fitted.total * marginals(pair)
            candidates[pair] = Candidate(pair, expected, MEAN_ABSOLUTE * even * expected.size)
        return candidates

    def _tree(
        self,
        table: PrivateTable,
        measured: Measurements,
        candidates: Mapping[Clique, Candidate],
        rho: Fraction,
    ) -> list[Clique]:
        """Choose pairs that connect all columns, at the cost of rho each."""
        columns = len(measured.sizes)
        component, pairs = list(range(columns)), list[Clique]()
        while len(pairs) < columns - 1:
            open_ = [each for (i, j), each in candidates.items() if component[i] != component[j]]
            if measured.base is not None:
                open_ = _small_enough(open_, pairs, measured.base)
                if not open_:
                    break
            chosen = open_[table.choose(open_, rho)].clique
            pairs.append(chosen)
            i, j = chosen
            component = [component[i] if each == component[j] else each for each in component]
        return pairs


def _small_enough(candidates: list[Candidate], pairs: list[Clique], base: BaseMeasure) -> list[Candidate]:
    """Return the pairs that leave the model small, where the base measure closes circles of columns."""
    scopes = (*pairs, *base.factors)

    def own(pair: Clique) -> int:
        return base.sizes[pair[0]] * base.sizes[pair[1]]

    limit = _CIRCLES + base.cells + sum(map(own, pairs))
    return [
        each
        for each in candidates
        if tree_cells(base.sizes, (*scopes, each.clique)) <= limit + own(each.clique)
    ]
