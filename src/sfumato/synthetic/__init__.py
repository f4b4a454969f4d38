"""Published tables: a declared domain, and noisy marginals with intervals.

:class:`TableDomain` says what each column may hold, :class:`Marginals` which tables of counts are wanted, and
:class:`ResidualMechanism` releases them with the least squared error and a certified loss. Like every raw
mechanism it charges nobody: charge its ``privacy_loss`` to a ledger first. :class:`TopDown` releases counts
of nested places that add up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.synthetic.domain.attributes import Categorical, Ordered
    from sfumato.synthetic.domain.bought_domain import (
        BoughtCategories,
        BoughtDomain,
        BoughtEdges,
        DomainRelease,
    )
    from sfumato.synthetic.domain.domain import TableDomain
    from sfumato.synthetic.generators.adaptive_iterative import AIM
    from sfumato.synthetic.generators.independent_marginals import IndependentMarginals
    from sfumato.synthetic.generators.minimum_spanning_tree import MST
    from sfumato.synthetic.generators.synthetic_model import SyntheticModel
    from sfumato.synthetic.marginals.marginal_table import MarginalTable
    from sfumato.synthetic.marginals.marginals_release import MarginalsRelease
    from sfumato.synthetic.marginals.residual_mechanism import ResidualMechanism
    from sfumato.synthetic.marginals.workload import Marginals
    from sfumato.synthetic.topdown.cell_query import Recode
    from sfumato.synthetic.topdown.census_2020 import Census2020
    from sfumato.synthetic.topdown.constraints import CountBound, Invariant
    from sfumato.synthetic.topdown.hierarchy import Hierarchy
    from sfumato.synthetic.topdown.topdown import TopDown
    from sfumato.synthetic.topdown.topdown_release import TopDownRelease
    from sfumato.synthetic.topdown.unit_counts import UnitCounts

__all__ = [
    "AIM",
    "MST",
    "BoughtCategories",
    "BoughtDomain",
    "BoughtEdges",
    "Categorical",
    "Census2020",
    "CountBound",
    "DomainRelease",
    "Hierarchy",
    "IndependentMarginals",
    "Invariant",
    "MarginalTable",
    "Marginals",
    "MarginalsRelease",
    "Ordered",
    "Recode",
    "ResidualMechanism",
    "SyntheticModel",
    "TableDomain",
    "TopDown",
    "TopDownRelease",
    "UnitCounts",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "AIM": "sfumato.synthetic.generators.adaptive_iterative",
        "BoughtCategories": "sfumato.synthetic.domain.bought_domain",
        "BoughtDomain": "sfumato.synthetic.domain.bought_domain",
        "BoughtEdges": "sfumato.synthetic.domain.bought_domain",
        "Categorical": "sfumato.synthetic.domain.attributes",
        "Census2020": "sfumato.synthetic.topdown.census_2020",
        "CountBound": "sfumato.synthetic.topdown.constraints",
        "DomainRelease": "sfumato.synthetic.domain.bought_domain",
        "Hierarchy": "sfumato.synthetic.topdown.hierarchy",
        "IndependentMarginals": "sfumato.synthetic.generators.independent_marginals",
        "Invariant": "sfumato.synthetic.topdown.constraints",
        "MST": "sfumato.synthetic.generators.minimum_spanning_tree",
        "MarginalTable": "sfumato.synthetic.marginals.marginal_table",
        "Marginals": "sfumato.synthetic.marginals.workload",
        "MarginalsRelease": "sfumato.synthetic.marginals.marginals_release",
        "Ordered": "sfumato.synthetic.domain.attributes",
        "Recode": "sfumato.synthetic.topdown.cell_query",
        "ResidualMechanism": "sfumato.synthetic.marginals.residual_mechanism",
        "SyntheticModel": "sfumato.synthetic.generators.synthetic_model",
        "TableDomain": "sfumato.synthetic.domain.domain",
        "TopDown": "sfumato.synthetic.topdown.topdown",
        "TopDownRelease": "sfumato.synthetic.topdown.topdown_release",
        "UnitCounts": "sfumato.synthetic.topdown.unit_counts",
    },
)
