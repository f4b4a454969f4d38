"""Accuracy of diffprivlib's naive Bayes on the splits of a file, as JSON; runs in its own environment."""

import json
import sys
import warnings

import numpy as np
from diffprivlib.models import GaussianNB

warnings.filterwarnings("ignore")
given = np.load(sys.argv[1])
scores: dict[str, list[float]] = {}
for name in sorted({key.split("/")[0] for key in given}):
    rows, labels, bounds, training = (given[f"{name}/{part}"] for part in ("X", "y", "bounds", "training"))
    for epsilon in json.loads(sys.argv[2]):
        for seed, chosen in enumerate(training):
            model = GaussianNB(epsilon=epsilon, bounds=tuple(bounds), random_state=seed)
            model.fit(rows[chosen], labels[chosen])
            scores.setdefault(f"{name} {epsilon:g}", []).append(model.score(rows[~chosen], labels[~chosen]))
print(json.dumps(scores))
