"""Published tables: a declared domain, and noisy marginals with intervals.

:class:`TableDomain` says what each column may hold, :class:`Marginals` which tables of counts are wanted, and
:class:`ResidualMechanism` releases them with the least squared error and a certified loss. Like every raw
mechanism it charges nobody: charge its ``privacy_loss`` to a ledger first.
:func:`curator_quality_report` compares synthetic rows with real ones, for the curator only;
:class:`WorkloadError` measures with a privacy loss how far they are apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.synthetic.domain.attributes import Categorical, Ordered
    from sfumato.synthetic.domain.domain import TableDomain
    from sfumato.synthetic.marginals.marginal_table import MarginalTable
    from sfumato.synthetic.marginals.marginals_release import MarginalsRelease
    from sfumato.synthetic.marginals.residual_mechanism import ResidualMechanism
    from sfumato.synthetic.marginals.workload import Marginals
    from sfumato.synthetic.quality.associations import Association
    from sfumato.synthetic.quality.distinguishability import Distinguishability
    from sfumato.synthetic.quality.marginal_distances import MarginalDistance
    from sfumato.synthetic.quality.prediction import PredictionScores
    from sfumato.synthetic.quality.quality_report import curator_quality_report
    from sfumato.synthetic.quality.report import CuratorQualityReport, QualityMeasure, ReportedRows
    from sfumato.synthetic.quality.workload_error import WorkloadError

__all__ = [
    "Association",
    "Categorical",
    "CuratorQualityReport",
    "Distinguishability",
    "MarginalDistance",
    "MarginalTable",
    "Marginals",
    "MarginalsRelease",
    "Ordered",
    "PredictionScores",
    "QualityMeasure",
    "ReportedRows",
    "ResidualMechanism",
    "TableDomain",
    "WorkloadError",
    "curator_quality_report",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "Categorical": "sfumato.synthetic.domain.attributes",
        "TableDomain": "sfumato.synthetic.domain.domain",
        "MarginalTable": "sfumato.synthetic.marginals.marginal_table",
        "Marginals": "sfumato.synthetic.marginals.workload",
        "MarginalsRelease": "sfumato.synthetic.marginals.marginals_release",
        "Association": "sfumato.synthetic.quality.associations",
        "CuratorQualityReport": "sfumato.synthetic.quality.report",
        "Distinguishability": "sfumato.synthetic.quality.distinguishability",
        "MarginalDistance": "sfumato.synthetic.quality.marginal_distances",
        "Ordered": "sfumato.synthetic.domain.attributes",
        "PredictionScores": "sfumato.synthetic.quality.prediction",
        "QualityMeasure": "sfumato.synthetic.quality.report",
        "ReportedRows": "sfumato.synthetic.quality.report",
        "ResidualMechanism": "sfumato.synthetic.marginals.residual_mechanism",
        "WorkloadError": "sfumato.synthetic.quality.workload_error",
        "curator_quality_report": "sfumato.synthetic.quality.quality_report",
    },
)
