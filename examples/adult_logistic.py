"""Logistic regression on Adult at epsilon 1, delta 1e-5, beside one without privacy.

Run ``python examples/adult_logistic.py adult.csv``, the 32,561 rows of UCI's Adult training set with a header
(columns age, workclass, ..., salary-class). Four rows in five train, the fifth tests; ``--choose`` chose the
settings on a fifth of the rows that train. All bounds and all categories are public knowledge about the
census: none is read off the data.
"""

from __future__ import annotations

import argparse
import csv
import itertools
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression as Plain

from sfumato.learning.estimators.logistic_regression import LogisticRegression

EPSILON, DELTA = 1.0, 1e-5
NUMBERS = {
    "age": (17, 90),
    "education-num": (1, 16),
    "capital-gain": (0, 10_000),
    "capital-loss": (0, 2_500),
    "hours-per-week": (1, 80),
}
CATEGORIES = {
    "workclass": "? Federal-gov Local-gov Never-worked Private Self-emp-inc Self-emp-not-inc State-gov "
    "Without-pay",
    "education": "10th 11th 12th 1st-4th 5th-6th 7th-8th 9th Assoc-acdm Assoc-voc Bachelors Doctorate "
    "HS-grad Masters Preschool Prof-school Some-college",
    "marital-status": "Divorced Married-AF-spouse Married-civ-spouse Married-spouse-absent Never-married "
    "Separated Widowed",
    "occupation": "? Adm-clerical Armed-Forces Craft-repair Exec-managerial Farming-fishing "
    "Handlers-cleaners Machine-op-inspct Other-service Priv-house-serv Prof-specialty Protective-serv Sales "
    "Tech-support Transport-moving",
    "relationship": "Husband Not-in-family Other-relative Own-child Unmarried Wife",
    "race": "Amer-Indian-Eskimo Asian-Pac-Islander Black Other White",
    "sex": "Female Male",
    "native-country": "? Cambodia Canada China Columbia Cuba Dominican-Republic Ecuador El-Salvador England "
    "France Germany Greece Guatemala Haiti Holand-Netherlands Honduras Hong Hungary India Iran Ireland Italy "
    "Jamaica Japan Laos Mexico Nicaragua Outlying-US(Guam-USVI-etc) Peru Philippines Poland Portugal "
    "Puerto-Rico Scotland South Taiwan Thailand Trinadad&Tobago United-States Vietnam Yugoslavia",
}
CLIP_NORM, LEARNING_RATE, STEPS, DATA_NORM = 2.0, 4.0, 60, 1.0
"""By ``--choose``: among nine pairs of norm and rate, and four data norms, on rows of the training part that
those fits did not learn from. The test rows had no say; the choice is not in epsilon."""


def read(path: Path) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return numbers and one column for each category, and who earns over 50,000 dollars."""
    if not path.is_file():
        raise SystemExit(
            f"{path} must be there: it is adult.data of UCI (archive.ics.uci.edu/dataset/2/adult), with "
            "a header of the names above; scikit-learn's fetch_openml('adult', version=2) loads the same rows"
        )
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file, skipinitialspace=True) if row["age"]]
    columns: list[list[float]] = [[float(row[name]) for row in rows] for name in NUMBERS]
    for name, values in CATEGORIES.items():
        columns += [[float(row[name] == value) for row in rows] for value in values.split()]
    return np.array(columns).T, np.array([row["salary-class"] == ">50K" for row in rows])


def split(count: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return rows to learn from while choosing, to choose by, and to test; the first two train at the end."""
    train, test = np.split(np.random.default_rng(0).permutation(count), [count * 4 // 5])
    fit, validation = np.split(train, [len(train) * 4 // 5])
    return fit, validation, test


class Task:
    """Fits on some rows, scored on others."""

    def __init__(self, data: NDArray[np.float64], y: NDArray[np.bool_]) -> None:
        others = data.shape[1] - len(NUMBERS)
        lower = np.array([low for low, _ in NUMBERS.values()] + [0] * others)
        upper = np.array([high for _, high in NUMBERS.values()] + [1] * others)
        self.data, self.y, self.bounds = data, y, (lower, upper)

    def score(self, rows: NDArray[np.int64], asked: NDArray[np.int64], seed: int, **options: Any) -> float:
        """Return the accuracy of a private fit."""
        given: dict[str, Any] = {"bounds": self.bounds, "classes": [False, True], "random_state": seed}
        model = LogisticRegression(EPSILON, DELTA, **given, **options).fit(self.data[rows], self.y[rows])
        return float(model.score(self.data[asked], self.y[asked]))

    def plain(self, rows: NDArray[np.int64], asked: NDArray[np.int64]) -> float:
        """Return the accuracy without privacy."""
        places = np.clip((self.data - self.bounds[0]) / (self.bounds[1] - self.bounds[0]), 0, 1)
        fitted = Plain(max_iter=1000).fit(places[rows], self.y[rows])
        return float(fitted.score(places[asked], self.y[asked]))


def choices(solver: str) -> list[dict[str, Any]]:
    """Return the settings to choose among."""
    if solver == "objective":
        return [{"solver": solver, "data_norm": norm} for norm in (1.0, 1.5, 2.0, 3.0)]
    pairs = itertools.product((0.5, 1.0, 2.0), (4.0, 8.0, 16.0))
    return [{"steps": STEPS, "clip_norm": norm, "learning_rate": rate} for norm, rate in pairs]


def main() -> None:
    """Print the accuracy of each seed, their mean, and that without privacy; or what to choose."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--solver", choices=["descent", "objective"], default="descent")
    parser.add_argument("--choose", action="store_true", help="score all settings on the validation rows")
    arguments = parser.parse_args()
    data, y = read(arguments.path)
    task, (fit, validation, test) = Task(data, y), split(len(y))
    if arguments.choose:
        for options in choices(arguments.solver):
            scores = [task.score(fit, validation, seed, **options) for seed in range(100, 103)]
            print(f"{np.mean(scores):.2%}", options, flush=True)
        return
    train = np.concatenate([fit, validation])
    options = {"steps": STEPS, "clip_norm": CLIP_NORM, "learning_rate": LEARNING_RATE}
    if arguments.solver == "objective":
        options = {"solver": arguments.solver, "data_norm": DATA_NORM}
    found = []
    for seed in range(arguments.seeds):
        found.append(task.score(train, test, seed, **options))
        print(f"seed {seed}: accuracy {found[-1]:.2%}", flush=True)
    plain = task.plain(train, test)
    print(
        f"mean {np.mean(found):.2%}, without privacy {plain:.2%}, {data.shape[1]} features, {len(train)} rows"
    )


if __name__ == "__main__":
    main()
