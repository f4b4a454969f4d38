"""Known-broken algorithms: negative controls for the audit, and warnings to read. Never run one on real data.

Each says what is wrong with it and where it comes from; each is caught by the audit in the tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.audit.specimens.additive import FloatGaussian, FloatLaplace, HalfSensitivitySum
    from sfumato.audit.specimens.data_dependent import DataBoundedHistogram, UnprotectedSizeMean
    from sfumato.audit.specimens.local import OrderedSubset, SureUnaryEncoding
    from sfumato.audit.specimens.sparse_vector import (
        ChenSparseVector,
        LeeCliftonSparseVector,
        RothSparseVector,
        StoddardSparseVector,
    )
    from sfumato.audit.specimens.specimen import Specimen

__all__ = [
    "ChenSparseVector",
    "DataBoundedHistogram",
    "FloatGaussian",
    "FloatLaplace",
    "HalfSensitivitySum",
    "LeeCliftonSparseVector",
    "OrderedSubset",
    "RothSparseVector",
    "Specimen",
    "StoddardSparseVector",
    "SureUnaryEncoding",
    "UnprotectedSizeMean",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "ChenSparseVector": "sfumato.audit.specimens.sparse_vector",
        "DataBoundedHistogram": "sfumato.audit.specimens.data_dependent",
        "FloatGaussian": "sfumato.audit.specimens.additive",
        "FloatLaplace": "sfumato.audit.specimens.additive",
        "HalfSensitivitySum": "sfumato.audit.specimens.additive",
        "LeeCliftonSparseVector": "sfumato.audit.specimens.sparse_vector",
        "OrderedSubset": "sfumato.audit.specimens.local",
        "RothSparseVector": "sfumato.audit.specimens.sparse_vector",
        "Specimen": "sfumato.audit.specimens.specimen",
        "StoddardSparseVector": "sfumato.audit.specimens.sparse_vector",
        "SureUnaryEncoding": "sfumato.audit.specimens.local",
        "UnprotectedSizeMean": "sfumato.audit.specimens.data_dependent",
    },
)
