"""Released residuals, and the marginals that they add up to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from types import MappingProxyType
from typing import Any, Final, Self, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato import _check
from sfumato._wire import BOOLEAN, BYTES, INTEGER, RATIONAL, TEXT, Format, Record, canonical, parse, sequence
from sfumato.mechanisms.base.release import Release
from sfumato.numerics.distributions.discrete import DiscreteGaussianDistribution
from sfumato.privacy.catalog import LOSS
from sfumato.privacy.neighboring import RELATION
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.domain.structural_zeros import possible_cells
from sfumato.synthetic.marginals.cell_rows import cell_rows
from sfumato.synthetic.marginals.marginal_table import MarginalTable
from sfumato.synthetic.marginals.residual_noise import cell_noise, clique_of
from sfumato.synthetic.marginals.workload import Clique, maximal, subsets

__all__ = ["MarginalsRelease"]

_FORMAT: Final = Format("sfumato.marginals", 1)
_RESIDUAL: Final[Record[Any]] = Record(
    "a residual", dict, {"columns": sequence(INTEGER), "sigma": RATIONAL, "values": BYTES}
)
_DOCUMENT: Final[Record[Any]] = Record(
    "released marginals",
    dict,
    {
        "domain": TEXT,
        "loss": LOSS,
        "neighboring": RELATION,
        "residuals": sequence(_RESIDUAL),
        "simulated": BOOLEAN,
    },
)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MarginalsRelease(Release):
    """Noisy marginals: those of the workload, and of any columns of them.

    Parameters
    ----------
    value : mapping of tuple of int to float64 array
        Residuals by the numbers of their columns, centred.
    domain : TableDomain
    distributions : mapping of tuple of int to DiscreteGaussianDistribution
        Of each residual's noise, in steps of one over the product of its columns' cells.
    loss, neighboring, receipt, simulated
        As in `Release`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.synthetic import Marginals, ResidualMechanism
    >>> domain = TableDomain(age=["young", "old"], sex=["f", "m"])
    >>> mechanism = ResidualMechanism.calibrated(domain, Marginals.every(2), epsilon=1.0, delta=1e-6)
    >>> released = mechanism.release(pa.table({"age": ["young"] * 900, "sex": ["f", "m"] * 450}), rng=1)
    >>> released.marginal("age", "sex")
    <MarginalTable of age, sex, 2 x 2, stddev 4.226>
    >>> round(abs(released.total - float(released.marginal("sex").counts.sum())), 6)
    0.0
    """

    domain: TableDomain
    distributions: Mapping[Clique, DiscreteGaussianDistribution]

    def __repr__(self) -> str:
        simulated = ", simulated" if self.simulated else ""
        return f"<MarginalsRelease of {len(self.value)} residuals over {list(self.domain)}{simulated}>"

    def to_json(self) -> str:
        """Return the release as a document of the format ``sfumato.marginals``, without its receipt.

        Returns
        -------
        str
        """
        residuals = [
            {
                "columns": list(part),
                "sigma": RATIONAL.encode(Fraction(self.distributions[part].sigma)),
                "values": BYTES.encode(np.ascontiguousarray(values, "<f8").tobytes()),
            }
            for part, values in self.value.items()
        ]
        fields = {
            "domain": self.domain.to_json(),
            "loss": LOSS.encode(self.loss),
            "neighboring": RELATION.encode(self.neighboring),
            "residuals": residuals,
            "simulated": self.simulated,
        }
        return canonical(_FORMAT.wrap(fields))

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return the release that `to_json` wrote.

        Parameters
        ----------
        text : str or bytes

        Returns
        -------
        MarginalsRelease

        Raises
        ------
        ParameterError
            If it is no such document.
        """
        read = _DOCUMENT.decode("text", _FORMAT.unwrap("text", parse("text", text))[1])
        domain = TableDomain.from_json(read["domain"])
        values: dict[Clique, NDArray[np.float64]] = {}
        noise: dict[Clique, DiscreteGaussianDistribution] = {}
        for residual in read["residuals"]:
            part = residual["columns"]
            shape = [domain.sizes[place] for place in part if 0 <= place < len(domain)]
            if len(shape) != len(part) or len(residual["values"]) != 8 * prod(shape):
                rule, remedy = "have a value for each cell of a residual", "pass what to_json returned"
                _check.refuse_state("text", rule, "it has not", remedy)
            values[part] = np.frombuffer(residual["values"], "<f8").reshape(shape)
            noise[part] = DiscreteGaussianDistribution(residual["sigma"])
        fewer = {part[:place] + part[place + 1 :] for part in values for place in range(len(part))}
        if not {(), *fewer} <= values.keys():
            _check.refuse_state("text", "have the residuals of fewer columns", "it has not", "pass all of it")
        return cls(
            value=MappingProxyType(values),
            domain=domain,
            distributions=MappingProxyType(noise),
            loss=read["loss"],
            neighboring=read["neighboring"],
            simulated=read["simulated"],
        )

    def to_arrow(self) -> pa.Table:
        """Return the cells of all tables that are in no other one, a row for each.

        Returns
        -------
        pyarrow.Table
            ``columns`` and ``cell``, lists of the table's columns and of the cell's labels as texts,
            ``count`` and ``stddev``.
        """
        names = list(self.domain)
        tables = (self.marginal(*(names[place] for place in part)) for part in maximal(self.value))
        return cell_rows((each.columns, each.labels, each.counts, each.stddev) for each in tables)

    @property
    def total(self) -> float:
        """The noisy number of rows that were counted."""
        return float(self.value[()])

    def marginal(self, *columns: str) -> MarginalTable:
        """Return the table of some columns.

        Parameters
        ----------
        *columns : str
            In the order of the table's axes; all in one table of the workload. None for the number of rows.

        Returns
        -------
        MarginalTable

        Raises
        ------
        ParameterError
            If they are not, or one is twice there.
        """
        clique, inner = clique_of(self.domain, columns, self.value)
        sizes, zeros = self.domain.sizes, self.domain.structural_zeros
        counts, parts = np.zeros([sizes[place] for place in clique]), subsets([inner])
        for part in parts:
            rest = prod(sizes[place] for place in clique if place not in part)
            shape = [sizes[place] if place in part else 1 for place in clique]
            counts = counts + self.value[part].reshape(shape) / rest
        order = [clique.index(self.domain.index(name)) for name in columns]
        noise = cell_noise(clique, sizes, {part: self.distributions[part] for part in parts})
        return MarginalTable(
            columns=columns,
            labels=tuple(self.domain[name].labels for name in columns),
            counts=np.transpose(counts, order),
            stddev=noise.stddev,
            proxy=noise.proxy,
            half_step=len(parts) / (2 * prod(counts.shape)),
            total=self.total,
            possible=np.transpose(possible_cells(clique, sizes, zeros), order) if zeros else None,
        )
