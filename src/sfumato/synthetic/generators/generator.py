"""What generators have in common: a domain, a budget, and a released model."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Self

from sfumato import _check
from sfumato.mechanisms.base.additive import as_number
from sfumato.mechanisms.base.calibration import PrivacyTarget, minimum_noise
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.rational import Number, plain
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.numerics.rounding import fraction_up
from sfumato.privacy.leaves.declared import ZCDP
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.generators.cell_groups import CellGroups
from sfumato.synthetic.generators.model_base import ModelBase
from sfumato.synthetic.generators.private_table import PrivateTable
from sfumato.synthetic.generators.public_noise import PublicNoise
from sfumato.synthetic.generators.public_prior import PublicPrior
from sfumato.synthetic.generators.synthetic_model import SyntheticModel
from sfumato.synthetic.generators.table_shift import TableShift
from sfumato.synthetic.graphical_model.base_measure import BaseMeasure
from sfumato.synthetic.graphical_model.dual_fit import FittedModel
from sfumato.synthetic.graphical_model.junction_tree import tree_cells
from sfumato.synthetic.marginals.table_counts import table_counts
from sfumato.synthetic.marginals.workload import Marginals

__all__ = ["Generator"]

_DELTA: Final = "take a delta far below 1 over the rows, as 1e-9"
_START: Final = Fraction(64)
_SMALL: Final = 2.0**-16
_ROWS: Final = 1 << 10
_CELLS: Final = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class Generator(Mechanism):
    """A mechanism that releases a model of a table.

    Parameters
    ----------
    domain : TableDomain
        The columns and their cells. No row is made in a structural zero, nor does a marginal have any there.
    rho : int, float or Fraction
        The budget in zero-concentrated DP.
    neighboring : Neighboring
        ADD_REMOVE of a row, REPLACE_ONE or ZERO_OUT.
    max_rows_contributed : int
        The most rows that one person has among those that are counted; noise grows in proportion.
    prior : PublicPrior, optional
        What is public of such tables: the model is relative to it, as far as it predicts what is measured.
    """

    domain: TableDomain
    rho: Number
    neighboring: Neighboring = Neighboring.ADD_REMOVE
    max_rows_contributed: int = 1
    prior: PublicPrior | None = None

    def __post_init__(self) -> None:
        _check.instance("domain", self.domain, TableDomain, "declare one with sfumato.synthetic.TableDomain")
        _check.instance("neighboring", self.neighboring, Neighboring)
        most = _check.integer("max_rows_contributed", self.max_rows_contributed, minimum=1)
        if most > _ROWS:
            _check.refuse("max_rows_contributed", f"be at most {_ROWS}", most, "bound the rows of a person")
        self._check_base()
        remedy = f"pass epsilon= and delta= to {type(self).__name__}.calibrated to have it chosen"
        object.__setattr__(self, "rho", as_number("rho", self.rho, remedy))
        moved = self._shift.l2_squared
        if not Fraction(moved, 1 << 56) <= Fraction(self.rho) <= 1 << 60:  # scales of noise are at most 2**40
            _check.refuse("rho", f"be from {moved} * 2**-56 to 2**60", self.rho, remedy)
        self._check_own()

    @classmethod
    def calibrated(
        cls,
        domain: TableDomain,
        workload: Marginals | None = None,
        *,
        epsilon: float,
        delta: float,
        neighboring: Neighboring = Neighboring.ADD_REMOVE,
        **parameters: Any,
    ) -> Self:
        """Return the mechanism with the largest budget whose loss meets (epsilon, delta).

        Parameters
        ----------
        domain, neighboring
            As in the class.
        workload : Marginals, optional
            Which tables should be right, where the mechanism can regard it.
        epsilon, delta : float
            The guarantee; delta must be positive.
        **parameters
            The others of the class, but for ``rho``.

        Returns
        -------
        Self
        """
        request = PrivacyTarget.approximate(epsilon, delta, _DELTA)
        given = {"domain": domain, "neighboring": neighboring, **cls._regarded(workload), **parameters}

        def price(noise: Fraction) -> PrivacyLoss:
            return cls(rho=plain(1 / noise), **given).privacy_loss

        return cls(rho=plain(1 / minimum_noise(price, request, _guess(request))), **given)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release: all of the budget."""
        return ZCDP(fraction_up(Fraction(self.rho)), neighboring=self.neighboring)

    def release(self, value: Any, rng: Rng = None) -> SyntheticModel:
        """Measure a table and release a model of it.

        Parameters
        ----------
        value : frame or TableCounts
            Of Arrow, pandas, Polars or another library, or counts by cell; private. At most 2**38 rows.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        SyntheticModel
        """
        source = random_source(rng)
        counts = table_counts(self.domain, value)
        table = PrivateTable(counts, self.domain.sizes, Fraction(self.rho), self._shift, source)
        groups, fitted = self._fitted(table)
        return self._release_as(
            SyntheticModel, fitted, source, domain=self.domain, groups=groups, prior=self.prior
        )

    @abstractmethod
    def public_noise(self, rows: float | None = None) -> PublicNoise:
        """Return the noise that follows from the parameters alone.

        Parameters
        ----------
        rows : float, optional
            How many rows there are, about: a public or released figure.

        Returns
        -------
        PublicNoise
        """

    @property
    def _shift(self) -> TableShift:
        return TableShift(self.neighboring, self.max_rows_contributed)

    @classmethod
    def _regarded(cls, workload: Marginals | None) -> dict[str, Any]:
        """Return the parameters that a workload gives."""
        if workload is not None:
            _check.instance("workload", workload, Marginals, "write Marginals.every(2), say")
        return {}

    def _check_base(self) -> None:
        """Refuse zeros and a prior that make the model too large, or leave no row: by public sizes alone."""
        domain, scopes = self.domain, BaseMeasure.scopes_of(self.domain.structural_zeros)
        if self.prior is not None:
            _check.instance("prior", self.prior, PublicPrior, "make it with PublicPrior.from_table")
            if list(self.prior.domain.items()) != list(domain.items()):
                found, remedy = "its columns or cells are others", "make it with the same domain"
                _check.refuse_state("prior", "be of the domain's columns and cells", found, remedy)
        zeros = tree_cells(domain.sizes, scopes) if scopes else 0
        if zeros > _CELLS:
            rule = f"have structural zeros that need at most {_CELLS} cells in a model"
            remedy = "take fewer bins in their columns, or leave some of them out"
            _check.refuse_state("domain", rule, f"they need {zeros}", remedy)
        base = self._base()
        if base.zeros is not None and not base.zeros.feasible():
            remedy = "declare fewer structural zeros"
            _check.refuse_state("domain", "have a cell that can hold a row", "it has none", remedy)
        cells = 0 if base.prior is None else base.prior.cells
        if cells > _CELLS:
            rule = f"need at most {_CELLS} cells in a model, together with structural zeros"
            _check.refuse_state("prior", rule, f"it needs {cells}", "lower max_cells of from_table")

    def _base(self) -> ModelBase:
        """Return what the model is relative to: public."""
        domain, zeros = self.domain, self.domain.structural_zeros
        return ModelBase(
            BaseMeasure.from_zeros(domain.sizes, zeros) if zeros else None,
            None if self.prior is None else self.prior.base(domain),
        )

    def _check_own(self) -> None:
        """Check a subclass's own parameters."""

    @abstractmethod
    def _fitted(self, table: PrivateTable) -> tuple[CellGroups, FittedModel]:
        """Return what is released: only the table's answers decide on it."""


def _guess(request: PrivacyTarget) -> Fraction:
    """Return about the noise that is needed, for the search not to leave what can be drawn."""
    root = math.sqrt(math.log(1 / request.delta))
    rho = max(request.epsilon / (math.sqrt(root**2 + request.epsilon) + root), request.delta) ** 2
    return _START if rho > _SMALL else Fraction(1 / max(rho, 2.0**-56))
