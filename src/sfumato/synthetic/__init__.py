"""Published tables: a declared domain, and noisy marginals with intervals.

:class:`TableDomain` says what each column may hold, declared or bought (:class:`BoughtDomain`),
:class:`Marginals` which tables of counts are wanted, :func:`plan` what each method would do, and
:class:`ResidualMechanism` releases them with the least squared error and a certified loss. Like every raw
mechanism it charges nobody: a session's ``marginals`` charges its ledger before the engine counts a row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.synthetic.domain.attributes import Categorical, Ordered
    from sfumato.synthetic.domain.bought_domain import BoughtCategories, BoughtDomain, BoughtEdges
    from sfumato.synthetic.domain.domain import TableDomain
    from sfumato.synthetic.domain.domain_release import DomainRelease
    from sfumato.synthetic.marginals.marginal_table import MarginalTable
    from sfumato.synthetic.marginals.marginals_release import MarginalsRelease
    from sfumato.synthetic.marginals.residual_mechanism import ResidualMechanism
    from sfumato.synthetic.marginals.workload import Marginals
    from sfumato.synthetic.planning.method_plans import MethodPlan
    from sfumato.synthetic.planning.tables_plan import TablesPlan, plan

__all__ = [
    "BoughtCategories",
    "BoughtDomain",
    "BoughtEdges",
    "Categorical",
    "DomainRelease",
    "MarginalTable",
    "Marginals",
    "MarginalsRelease",
    "MethodPlan",
    "Ordered",
    "ResidualMechanism",
    "TableDomain",
    "TablesPlan",
    "plan",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "BoughtCategories": "sfumato.synthetic.domain.bought_domain",
        "BoughtDomain": "sfumato.synthetic.domain.bought_domain",
        "BoughtEdges": "sfumato.synthetic.domain.bought_domain",
        "DomainRelease": "sfumato.synthetic.domain.domain_release",
        "Categorical": "sfumato.synthetic.domain.attributes",
        "TableDomain": "sfumato.synthetic.domain.domain",
        "MarginalTable": "sfumato.synthetic.marginals.marginal_table",
        "Marginals": "sfumato.synthetic.marginals.workload",
        "MarginalsRelease": "sfumato.synthetic.marginals.marginals_release",
        "MethodPlan": "sfumato.synthetic.planning.method_plans",
        "Ordered": "sfumato.synthetic.domain.attributes",
        "ResidualMechanism": "sfumato.synthetic.marginals.residual_mechanism",
        "TablesPlan": "sfumato.synthetic.planning.tables_plan",
        "plan": "sfumato.synthetic.planning.tables_plan",
    },
)
