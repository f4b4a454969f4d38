"""What protocols for marginals share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.local.base.protocol import LocalProtocol
from sfumato.local.base.respondents import seeded, whole_counts
from sfumato.local.device.base.rows import RowsRandomizer
from sfumato.local.device.domains.categories import Domain
from sfumato.local.marginals.coefficients import Evidence
from sfumato.local.marginals.estimate import MarginalsEstimate
from sfumato.local.marginals.lattice import Lattice

__all__ = ["MarginalsProtocol"]

Device = TypeVar("Device", bound=RowsRandomizer)


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginalsProtocol(LocalProtocol[Device, MarginalsEstimate], Generic[Device]):
    """A protocol that estimates how often the categories of several attributes come together.

    A person reports a row of categories, one of each attribute.

    Parameters
    ----------
    epsilon : float
        Bound on the loss of all that one person reports, from above 0 to 40.
    domains : sequence of Domain
        The attributes: from 2 to 2^12. They are named by their indices, from 0 on.

    Attributes
    ----------
    device : RowsRandomizer
        The client half, which a device makes again from ``device.specification()``.
    lattice : Lattice
        The tables that are reported, and their coefficients.
    """

    epsilon: float
    domains: Sequence[Domain]
    device: Device = field(init=False, repr=False, compare=False)
    lattice: Lattice = field(init=False, repr=False, compare=False)

    @abstractmethod
    def _evidence(self, totals: NDArray[np.int64], reports: int) -> Evidence:
        """Return the estimated coefficients."""

    @abstractmethod
    def _simulated(
        self, codes: NDArray[np.int64], counts: NDArray[np.int64], generator: np.random.Generator
    ) -> NDArray[np.int64]:
        """Draw totals, given how many respondents have each column of indices in the domains."""

    def estimate(
        self, totals: NDArray[np.int64], reports: int, *, simulated: bool = False
    ) -> MarginalsEstimate:
        """Return the estimate from totals; mostly called by an aggregator."""
        return MarginalsEstimate(
            domains=tuple(self.domains),
            evidence=self._evidence(totals, reports),
            loss=self.privacy_loss,
            simulated=simulated,
        )

    def simulate_counts(
        self, rows: ArrayLike, counts: ArrayLike, rng: int | np.random.Generator = 0
    ) -> NDArray[np.int64]:
        """Draw an aggregator's totals at once: distributed as if everybody reported, whatever their number.

        Parameters
        ----------
        rows : array of int, shape (kinds, attributes)
            Indices of categories in their domains: the kinds of respondents that there are.
        counts : array of int, shape (kinds,)
            How many respondents are of each kind.
        rng : int or numpy Generator
            A seed: this simulates, for planning.

        Returns
        -------
        ndarray of int64
            `totals` numbers.
        """
        codes = np.asarray(rows)
        sizes = np.array([len(domain) for domain in self.domains])
        rule = f"be rows of {len(sizes)} indices in the domains"
        if codes.ndim != 2 or codes.shape[1] != len(sizes) or codes.dtype.kind not in "iu":
            _check.refuse_type("rows", rule, codes, "pass one row for each kind")
        if ((codes < 0) | (codes >= sizes)).any():
            _check.refuse_type("rows", rule, codes, "count indices from 0")
        people = whole_counts("counts", counts, len(codes), "pass one for each row")
        columns = np.ascontiguousarray(codes.T.astype(np.int64))
        return self._simulated(columns, people, seeded(rng))

    def simulate(
        self, rows: ArrayLike, counts: ArrayLike, rng: int | np.random.Generator = 0
    ) -> MarginalsEstimate:
        """Return an estimate as it might come of so many respondents; see `simulate_counts`."""
        totals = self.simulate_counts(rows, counts, rng)
        return self.estimate(totals, int(np.sum(counts)), simulated=True)
