"""Published tables: declared domains, noisy marginals, models that make rows, and counts of nested places.

:class:`TableDomain` says what each column may hold, declared or bought (:class:`BoughtDomain`),
:class:`Marginals` which tables of counts are wanted, and :func:`plan` what each method would do.
:class:`ResidualMechanism` releases these with intervals; :class:`AIM`, :class:`MST`,
:class:`FixedMarginals` and :class:`IndependentMarginals` release a model of the table, which any number of
synthetic rows follow, and :func:`combine` an analysis of several tables of it, with the noise regarded;
:class:`TopDown` releases counts of nested places that add up. Like every raw mechanism they charge nobody:
charge their ``privacy_loss`` to a ledger first, or ask a session, which does.
:func:`curator_quality_report` compares synthetic rows with real ones, for the curator only;
:class:`WorkloadError` measures with a privacy loss how far they are apart.
:class:`TableSynthesizer` has the interface of scikit-learn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.synthetic.domain.attributes import Categorical, Ordered
    from sfumato.synthetic.domain.bought_domain import BoughtCategories, BoughtDomain, BoughtEdges
    from sfumato.synthetic.domain.column_constraints import ColumnOrder, Implication
    from sfumato.synthetic.domain.domain import TableDomain
    from sfumato.synthetic.domain.domain_release import DomainRelease
    from sfumato.synthetic.estimators.table_synthesizer import TableSynthesizer
    from sfumato.synthetic.generators.adaptive_iterative import AIM
    from sfumato.synthetic.generators.fixed_marginals import FixedMarginals
    from sfumato.synthetic.generators.independent_marginals import IndependentMarginals
    from sfumato.synthetic.generators.minimum_spanning_tree import MST
    from sfumato.synthetic.generators.public_prior import PublicPrior
    from sfumato.synthetic.generators.synthetic_model import SyntheticModel
    from sfumato.synthetic.marginals.marginal_table import MarginalTable
    from sfumato.synthetic.marginals.marginals_release import MarginalsRelease
    from sfumato.synthetic.marginals.range_table import RangeTable
    from sfumato.synthetic.marginals.residual_mechanism import ResidualMechanism
    from sfumato.synthetic.marginals.workload import Marginals
    from sfumato.synthetic.planning.method_plans import MethodPlan
    from sfumato.synthetic.planning.tables_plan import TablesPlan, plan
    from sfumato.synthetic.posterior.combined_estimate import CombinedEstimate, combine
    from sfumato.synthetic.posterior.posterior_tables import PosteriorTables
    from sfumato.synthetic.quality.associations import Association
    from sfumato.synthetic.quality.distinguishability import Distinguishability
    from sfumato.synthetic.quality.marginal_distances import MarginalDistance
    from sfumato.synthetic.quality.prediction import PredictionScores
    from sfumato.synthetic.quality.quality_report import curator_quality_report
    from sfumato.synthetic.quality.report import CuratorQualityReport, QualityMeasure, ReportedRows
    from sfumato.synthetic.quality.workload_error import WorkloadError
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
    "Association",
    "BoughtCategories",
    "BoughtDomain",
    "BoughtEdges",
    "Categorical",
    "Census2020",
    "ColumnOrder",
    "CombinedEstimate",
    "CountBound",
    "CuratorQualityReport",
    "Distinguishability",
    "DomainRelease",
    "FixedMarginals",
    "Hierarchy",
    "Implication",
    "IndependentMarginals",
    "Invariant",
    "MarginalDistance",
    "MarginalTable",
    "Marginals",
    "MarginalsRelease",
    "MethodPlan",
    "Ordered",
    "PosteriorTables",
    "PredictionScores",
    "PublicPrior",
    "QualityMeasure",
    "RangeTable",
    "Recode",
    "ReportedRows",
    "ResidualMechanism",
    "SyntheticModel",
    "TableDomain",
    "TableSynthesizer",
    "TablesPlan",
    "TopDown",
    "TopDownRelease",
    "UnitCounts",
    "WorkloadError",
    "combine",
    "curator_quality_report",
    "plan",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "AIM": "sfumato.synthetic.generators.adaptive_iterative",
        "Association": "sfumato.synthetic.quality.associations",
        "BoughtCategories": "sfumato.synthetic.domain.bought_domain",
        "BoughtDomain": "sfumato.synthetic.domain.bought_domain",
        "BoughtEdges": "sfumato.synthetic.domain.bought_domain",
        "Categorical": "sfumato.synthetic.domain.attributes",
        "Census2020": "sfumato.synthetic.topdown.census_2020",
        "ColumnOrder": "sfumato.synthetic.domain.column_constraints",
        "CombinedEstimate": "sfumato.synthetic.posterior.combined_estimate",
        "CountBound": "sfumato.synthetic.topdown.constraints",
        "CuratorQualityReport": "sfumato.synthetic.quality.report",
        "Distinguishability": "sfumato.synthetic.quality.distinguishability",
        "DomainRelease": "sfumato.synthetic.domain.domain_release",
        "FixedMarginals": "sfumato.synthetic.generators.fixed_marginals",
        "Hierarchy": "sfumato.synthetic.topdown.hierarchy",
        "Implication": "sfumato.synthetic.domain.column_constraints",
        "IndependentMarginals": "sfumato.synthetic.generators.independent_marginals",
        "Invariant": "sfumato.synthetic.topdown.constraints",
        "MST": "sfumato.synthetic.generators.minimum_spanning_tree",
        "MarginalDistance": "sfumato.synthetic.quality.marginal_distances",
        "MarginalTable": "sfumato.synthetic.marginals.marginal_table",
        "Marginals": "sfumato.synthetic.marginals.workload",
        "MarginalsRelease": "sfumato.synthetic.marginals.marginals_release",
        "MethodPlan": "sfumato.synthetic.planning.method_plans",
        "Ordered": "sfumato.synthetic.domain.attributes",
        "PosteriorTables": "sfumato.synthetic.posterior.posterior_tables",
        "PredictionScores": "sfumato.synthetic.quality.prediction",
        "PublicPrior": "sfumato.synthetic.generators.public_prior",
        "QualityMeasure": "sfumato.synthetic.quality.report",
        "RangeTable": "sfumato.synthetic.marginals.range_table",
        "Recode": "sfumato.synthetic.topdown.cell_query",
        "ReportedRows": "sfumato.synthetic.quality.report",
        "ResidualMechanism": "sfumato.synthetic.marginals.residual_mechanism",
        "SyntheticModel": "sfumato.synthetic.generators.synthetic_model",
        "TableDomain": "sfumato.synthetic.domain.domain",
        "TableSynthesizer": "sfumato.synthetic.estimators.table_synthesizer",
        "TablesPlan": "sfumato.synthetic.planning.tables_plan",
        "TopDown": "sfumato.synthetic.topdown.topdown",
        "TopDownRelease": "sfumato.synthetic.topdown.topdown_release",
        "UnitCounts": "sfumato.synthetic.topdown.unit_counts",
        "WorkloadError": "sfumato.synthetic.quality.workload_error",
        "combine": "sfumato.synthetic.posterior.combined_estimate",
        "curator_quality_report": "sfumato.synthetic.quality.quality_report",
        "plan": "sfumato.synthetic.planning.tables_plan",
    },
)
