"""Published tables: a declared domain, noisy marginals with intervals, and synthetic rows.

:class:`TableDomain` says what each column may hold, :class:`Marginals` which tables of counts are wanted, and
:class:`ResidualMechanism` releases them with the least squared error and a certified loss. :class:`AIM` and
:class:`MST` release a model, from which any number of synthetic rows follows. Like every raw mechanism they
charge nobody: charge their ``privacy_loss`` to a ledger first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.synthetic.domain.attributes import Categorical, Ordered
    from sfumato.synthetic.domain.domain import TableDomain
    from sfumato.synthetic.generators.adaptive_iterative import AIM
    from sfumato.synthetic.generators.independent_marginals import IndependentMarginals
    from sfumato.synthetic.generators.minimum_spanning_tree import MST
    from sfumato.synthetic.generators.synthetic_model import SyntheticModel
    from sfumato.synthetic.marginals.marginal_table import MarginalTable
    from sfumato.synthetic.marginals.marginals_release import MarginalsRelease
    from sfumato.synthetic.marginals.residual_mechanism import ResidualMechanism
    from sfumato.synthetic.marginals.workload import Marginals

__all__ = [
    "AIM",
    "MST",
    "Categorical",
    "IndependentMarginals",
    "MarginalTable",
    "Marginals",
    "MarginalsRelease",
    "Ordered",
    "ResidualMechanism",
    "SyntheticModel",
    "TableDomain",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "AIM": "sfumato.synthetic.generators.adaptive_iterative",
        "Categorical": "sfumato.synthetic.domain.attributes",
        "IndependentMarginals": "sfumato.synthetic.generators.independent_marginals",
        "MST": "sfumato.synthetic.generators.minimum_spanning_tree",
        "SyntheticModel": "sfumato.synthetic.generators.synthetic_model",
        "TableDomain": "sfumato.synthetic.domain.domain",
        "MarginalTable": "sfumato.synthetic.marginals.marginal_table",
        "Marginals": "sfumato.synthetic.marginals.workload",
        "MarginalsRelease": "sfumato.synthetic.marginals.marginals_release",
        "Ordered": "sfumato.synthetic.domain.attributes",
        "ResidualMechanism": "sfumato.synthetic.marginals.residual_mechanism",
    },
)
