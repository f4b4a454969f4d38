"""PATE on FashionMNIST: 250 teachers, 300 labels, epsilon at most 2, a student that may be shown.

Run ``python examples/pate_fashion.py``. The 60,000 training images are private. The first half of the test
images are public and unlabelled: their principal components are the features, and the student asks about 300
of them. The other half test it, beside a student that is told the true labels.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from fashion_mnist import FOLDER, pixels
from sklearn.decomposition import PCA
from sklearn.svm import SVC

from sfumato.learning.pate.distillation import distill
from sfumato.learning.pate.gnmax import GNMax
from sfumato.learning.pate.poll import Poll
from sfumato.learning.pate.teachers import Teachers

DELTA = 1e-5
TEACHERS, QUESTIONS, NOISE = 250, 300, 49.5
"""Chosen in trials on seed 0, of 250 to 1000 teachers and 250 to 1000 questions."""


def main() -> None:
    """Print the result of each seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=FOLDER, help="folder of the four .gz files")
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    private, known = pixels(arguments.data, "train")
    images, truth = pixels(arguments.data, "t10k")
    private, images = (x.reshape(-1, 784) / 255.0 for x in (private, images))
    features = PCA(50, random_state=0).fit(images[:5000])
    private, public, test = (features.transform(x) for x in (private, images[:5000], images[5000:]))
    for seed in range(arguments.seeds):
        teachers = Teachers.fit(
            lambda number: SVC(C=3),
            private,
            known,
            units=np.arange(len(private)),
            count=TEACHERS,
            classes=range(10),
            rng=seed,
        )
        asked = np.random.default_rng(seed).permutation(5000)[:QUESTIONS]
        poll = Poll(GNMax(stddev=NOISE), questions=QUESTIONS, rng=seed)
        student = distill(SVC(C=3), teachers, poll, public[asked]).value.score(test, truth[5000:])
        plain = SVC(C=3).fit(public[asked], truth[asked]).score(test, truth[5000:])
        print(
            f"seed {seed}: epsilon {poll.loss.epsilon(DELTA):.3f}, student {student:.1%}, "
            f"with true labels {plain:.1%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
