"""Local reports of ldp-toolbox; runs in its own virtual environment."""

from typing import Any

import joblib
from local_jobs import CATEGORIES, EPSILON, mended_hashing, tell

broken = mended_hashing()

from ldp_toolbox.protocols.frequency.grr import GeneralizedRandomizedResponse  # noqa: E402
from ldp_toolbox.protocols.frequency.lh import LocalHashing  # noqa: E402
from ldp_toolbox.protocols.frequency.ss import SubsetSelection  # noqa: E402
from ldp_toolbox.protocols.frequency.ue import UnaryEncoding  # noqa: E402


def job(kind: Any) -> Any:
    def make() -> Any:
        made = kind(CATEGORIES, EPSILON)
        return made.obfuscate, made.estimate

    return make


# Processes of joblib's own would not have what is mended above.
joblib.parallel_config(backend="threading")
tell(
    {
        "RandomizedResponse": (job(GeneralizedRandomizedResponse), 1_000_000),
        "OptimizedUnaryEncoding": (job(UnaryEncoding), 20_000),
        "OptimalLocalHashing": (job(LocalHashing), 15_258),
        "SubsetSelection": (job(SubsetSelection), 20_000),
    },
    {"hashing": broken},
)
