"""What is public of a model before anything is measured: structural zeros, and a prior if it is believed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from sfumato.synthetic.graphical_model.base_measure import BaseMeasure
from sfumato.synthetic.graphical_model.measurements import Measurements
from sfumato.synthetic.graphical_model.model_marginals import ModelMarginals
from sfumato.synthetic.graphical_model.prior_trust import PriorTrust

__all__ = ["ModelBase"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class ModelBase:
    """The base measures with and without the prior.

    Parameters
    ----------
    zeros : BaseMeasure, optional
        Of structural zeros alone; None where there are none.
    prior : BaseMeasure, optional
        Of the prior with structural zeros; None where there is no prior.
    """

    zeros: BaseMeasure | None
    prior: BaseMeasure | None = None

    def chosen(self, columns: Measurements) -> Measurements:
        """Return the measured tables of columns with a base measure: the prior's, unless they refute it.

        Parameters
        ----------
        columns : Measurements

        Returns
        -------
        Measurements
        """
        if self.prior is None:
            return replace(columns, base=self.zeros)
        marginals, trust = ModelMarginals(self.prior.calibrated()), PriorTrust()
        for clique, table in columns.tables.items():
            expected = max(1.0, columns.total) * marginals(clique)
            trust = trust.seen(clique, expected, table.counts, np.asarray(table.variances))
        if trust.strength == 0:
            return replace(columns, base=self.zeros)
        return replace(columns, base=self.prior, trust=trust)
