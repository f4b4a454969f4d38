"""Bounds: what no mechanism of a class can beat, and how many rows or which epsilon an error needs.

Lower bounds are computed for the user's own workload, loss or datasets. Each names the class of mechanisms
that it holds for and its theorem. Formulas that are known up to constants have a type of their own,
`UpToConstants`.

>>> import numpy as np
>>> from sfumato import bounds
>>> bound = bounds.mean_error_bound(np.tril(np.ones((32, 32))), mu=1.0)
>>> round(bound.error, 3), bound.ratio < 1.001
(1.892, True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.bounds.colorings import Discrepancy, hereditary_discrepancy
    from sfumato.bounds.determinants import DeterminantBound, determinant_bound
    from sfumato.bounds.discrepancy_bound import DiscrepancyBound, discrepancy_error_bound, discrepancy_order
    from sfumato.bounds.error_models import EpsilonErrorModel, ErrorModel, NoisyCounts, NoisyMean
    from sfumato.bounds.gamma_norm import FactorizationNorm, factorization_norm
    from sfumato.bounds.local_model import ModelComparison, local_against_central
    from sfumato.bounds.marginals_bound import marginals_error_bound
    from sfumato.bounds.packing import PackingBound, packing_bound
    from sfumato.bounds.quantile_error import NoisyQuantile
    from sfumato.bounds.sample_sizes import Tradeoff, epsilon_for, free_rows, sample_size, tradeoff_table
    from sfumato.bounds.two_point import TwoPointBound, best_two_point_bound, two_point_bound
    from sfumato.bounds.up_to_constants import (
        UpToConstants,
        fingerprinting_order,
        histogram_order,
        reconstruction_order,
        threshold_order,
    )
    from sfumato.bounds.workload_bound import (
        WorkloadBound,
        maximum_error_bound,
        mean_error_bound,
        svd_error_bound,
    )

__all__ = [
    "DeterminantBound",
    "Discrepancy",
    "DiscrepancyBound",
    "EpsilonErrorModel",
    "ErrorModel",
    "FactorizationNorm",
    "ModelComparison",
    "NoisyCounts",
    "NoisyMean",
    "NoisyQuantile",
    "PackingBound",
    "Tradeoff",
    "TwoPointBound",
    "UpToConstants",
    "WorkloadBound",
    "best_two_point_bound",
    "determinant_bound",
    "discrepancy_error_bound",
    "discrepancy_order",
    "epsilon_for",
    "factorization_norm",
    "fingerprinting_order",
    "free_rows",
    "hereditary_discrepancy",
    "histogram_order",
    "local_against_central",
    "marginals_error_bound",
    "maximum_error_bound",
    "mean_error_bound",
    "packing_bound",
    "reconstruction_order",
    "sample_size",
    "svd_error_bound",
    "threshold_order",
    "tradeoff_table",
    "two_point_bound",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "DeterminantBound": "sfumato.bounds.determinants",
        "Discrepancy": "sfumato.bounds.colorings",
        "DiscrepancyBound": "sfumato.bounds.discrepancy_bound",
        "EpsilonErrorModel": "sfumato.bounds.error_models",
        "ErrorModel": "sfumato.bounds.error_models",
        "FactorizationNorm": "sfumato.bounds.gamma_norm",
        "ModelComparison": "sfumato.bounds.local_model",
        "NoisyCounts": "sfumato.bounds.error_models",
        "NoisyMean": "sfumato.bounds.error_models",
        "NoisyQuantile": "sfumato.bounds.quantile_error",
        "PackingBound": "sfumato.bounds.packing",
        "Tradeoff": "sfumato.bounds.sample_sizes",
        "TwoPointBound": "sfumato.bounds.two_point",
        "UpToConstants": "sfumato.bounds.up_to_constants",
        "WorkloadBound": "sfumato.bounds.workload_bound",
        "best_two_point_bound": "sfumato.bounds.two_point",
        "determinant_bound": "sfumato.bounds.determinants",
        "discrepancy_error_bound": "sfumato.bounds.discrepancy_bound",
        "discrepancy_order": "sfumato.bounds.discrepancy_bound",
        "epsilon_for": "sfumato.bounds.sample_sizes",
        "factorization_norm": "sfumato.bounds.gamma_norm",
        "fingerprinting_order": "sfumato.bounds.up_to_constants",
        "free_rows": "sfumato.bounds.sample_sizes",
        "hereditary_discrepancy": "sfumato.bounds.colorings",
        "histogram_order": "sfumato.bounds.up_to_constants",
        "local_against_central": "sfumato.bounds.local_model",
        "marginals_error_bound": "sfumato.bounds.marginals_bound",
        "maximum_error_bound": "sfumato.bounds.workload_bound",
        "mean_error_bound": "sfumato.bounds.workload_bound",
        "packing_bound": "sfumato.bounds.packing",
        "reconstruction_order": "sfumato.bounds.up_to_constants",
        "sample_size": "sfumato.bounds.sample_sizes",
        "svd_error_bound": "sfumato.bounds.workload_bound",
        "threshold_order": "sfumato.bounds.up_to_constants",
        "tradeoff_table": "sfumato.bounds.sample_sizes",
        "two_point_bound": "sfumato.bounds.two_point",
    },
)
