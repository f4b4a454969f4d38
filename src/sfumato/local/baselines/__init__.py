"""Published protocols that no planner picks, for comparisons and for reading what others collected by them.

``benchmarks/local_sweep.py`` compares all protocols over epsilon, the domain and the respondents. None of
these is more exact, by 5 % or more, than another one whose reports are as short.

>>> from sfumato.local import Domain, OneBitHadamard, baselines
>>> of_what = {"epsilon": 1.0, "domain": Domain(range(1000))}
>>> [round(kind(**of_what).variance(1), 2) for kind in (baselines.BinaryLocalHashing, OneBitHadamard)]
[4.68, 4.68]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.local.baselines.binary_local_hashing import BinaryLocalHashing
    from sfumato.local.baselines.fake_data import FakeData
    from sfumato.local.baselines.noisy_histogram import SummationHistogram, ThresholdHistogram

__all__ = ["BinaryLocalHashing", "FakeData", "SummationHistogram", "ThresholdHistogram"]

__getattr__, __dir__ = attach(
    __name__,
    {
        "BinaryLocalHashing": "sfumato.local.baselines.binary_local_hashing",
        "FakeData": "sfumato.local.baselines.fake_data",
        "SummationHistogram": "sfumato.local.baselines.noisy_histogram",
        "ThresholdHistogram": "sfumato.local.baselines.noisy_histogram",
    },
)
