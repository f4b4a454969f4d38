"""Local reports of multi-freq-ldpy, and where its subsets have the truth; runs in its own environment."""

from typing import Any

import numpy as np
from local_jobs import CATEGORIES, EPSILON, mended_hashing, tell

broken = mended_hashing()

from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client  # noqa: E402
from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client  # noqa: E402
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Aggregator_MI, SS_Client  # noqa: E402
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client  # noqa: E402

K, E = CATEGORIES, EPSILON


def first_is_true(categories: int, trials: int) -> dict[str, int]:
    """How often 0 comes first in a subset, where it is true and where 1 is, at epsilon 1."""
    counts = [sum(int(SS_Client(truth, categories, 1.0)[0] == 0) for _ in range(trials)) for truth in (0, 1)]
    return {"categories": categories, "trials": trials, "true": counts[0], "false": counts[1]}


def job(client: Any, server: Any) -> Any:
    return lambda: (client, server)


tell(
    {
        "RandomizedResponse": (
            job(lambda v: GRR_Client(v, K, E), lambda r: GRR_Aggregator_MI(r, K, E)),
            1_000_000,
        ),
        "OptimizedUnaryEncoding": (
            job(lambda v: UE_Client(v, K, E), lambda r: UE_Aggregator_MI(np.array(r), E)),
            20_000,
        ),
        "OptimalLocalHashing": (
            job(lambda v: LH_Client(v, K, E), lambda r: LH_Aggregator_MI(r, K, E)),
            15_258,
        ),
        "SubsetSelection": (job(lambda v: SS_Client(v, K, E), lambda r: SS_Aggregator_MI(r, K, E)), 20_000),
    },
    {"subsets": [first_is_true(k, 40_000) for k in (8, 64)], "hashing": broken},
)
