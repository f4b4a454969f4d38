"""One row moves what is released as little as the loss says; the ledger is charged first."""

from __future__ import annotations

import copy
import math
import pickle
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.errors import BudgetExceeded, ParameterError, SimulatedCharge, UnboundedSensitivity
from sfumato.learning.estimators.vector_sums import SumSpecification, VectorSum, planned
from sfumato.ledger import Budget, Dataset, Ledger
from sfumato.numerics.randomness.source import SimulatedSource
from sfumato.privacy import DiscreteGaussianVector, Neighboring
from sfumato.privacy.loss import compose
from tests.cases import cases
from tests.chance import accepts_only, pearson
from tests.run_time import run_time

if run_time(__name__):
    import pandas as pd
    import polars as pl
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV

    from sfumato.learning.estimators.boosted_trees import (
        GradientBoostingClassifier,
        GradientBoostingRegressor,
    )
    from sfumato.learning.estimators.gaussian_nb import GaussianNB
    from sfumato.learning.estimators.kmeans import KMeans, _nearest
    from sfumato.learning.estimators.linear_regression import LinearRegression
    from sfumato.learning.estimators.logistic_regression import LogisticRegression, _gradients
    from sfumato.learning.estimators.pca import PCA
    from sfumato.learning.estimators.private_estimator import UndeclaredClasses, box
    from sfumato.learning.estimators.standard_scaler import StandardScaler
    from sfumato.ledger.unpaid_fits import UnpaidFits


TWO: dict[str, Any] = {"bounds": (-2, 2), "classes": [0.0, 1.0]}
THREE: dict[str, Any] = {"bounds": (-2, 2), "classes": [0.0, 1.0, 2.0]}
if run_time(__name__):
    ESTIMATORS: list[Any] = [
        LogisticRegression(**TWO, steps=4),
        LogisticRegression(**THREE, steps=4, clip_norm=0.5, alpha=0.1),
        LinearRegression(bounds=(-2, 2), y_bounds=(0, 2)),
        GaussianNB(**THREE),
        KMeans(3, bounds=(-2, 2), steps=4),
        PCA(bounds=(-2, 2)),
        StandardScaler(),
        StandardScaler(bounds=([-2, -1, -3], [2, 1, 5])),
        GradientBoostingClassifier(**THREE, n_estimators=5),
        GradientBoostingRegressor(bounds=(-2, 2), y_bounds=(0, 2), n_estimators=5),
    ]
ODD = [
    ([0.3, -1.0, 2.0], 1.0),
    ([2.0, 2.0, 2.0], 2.0),
    ([1e300, -1e300, 1e-300], 0.0),
    ([math.nan, math.inf, -math.inf], 0.0),
    ([-2.0, 2.0, -2.0], math.nan),
    ([0.0, 0.0, 0.0], math.inf),
    ([1.0, 1.0, 1.0], 77.0),
]


def data(rows: int = 60) -> tuple[NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(1)
    return rng.normal(size=(rows, 3)), rng.integers(0, 3, rows).astype(float)


class Watched:
    """Stands in for the noise: the answers are drawn without the data, and the exact sums are kept."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[tuple[VectorSum, NDArray[np.int64]]] = []
        monkeypatch.setattr(VectorSum, "noisy", lambda vectors, total, source: self.noisy(vectors, total))

    def noisy(self, vectors: VectorSum, total: NDArray[np.int64]) -> NDArray[np.float64]:
        self.seen.append((vectors, total))
        draws = np.random.default_rng(len(self.seen))
        return np.abs(draws.normal(20, 10, total.shape)) * vectors.part.norm

    def fit(self, estimator: Any, X: Any, y: Any) -> tuple[Any, list[tuple[VectorSum, NDArray[np.int64]]]]:
        self.seen = []
        fitted = clone(estimator).set_params(random_state=3).fit(X, y)
        return fitted, self.seen


@cases("estimator", lambda: ESTIMATORS)
def test_one_row_moves_each_release_as_little_as_is_paid_for(
    estimator: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(monkeypatch)
    X, y = data()
    fitted, before = watched.fit(estimator, X, y)
    paid = compose([DiscreteGaussianVector(each.stddev, each.part.max_squared_norm) for each, _ in before])
    assert fitted.privacy_loss_ == paid
    assert paid.epsilon(estimator.delta) <= estimator.epsilon
    most = 0.0
    for row, label in ODD:
        _, after = watched.fit(estimator, np.vstack([X, row]), np.append(y, label))
        assert len(after) == len(before)
        for (one, here), (_, there) in zip(before, after, strict=True):
            moved = int(((here - there) ** 2).sum())
            assert moved <= one.part.max_squared_norm
            most = max(most, moved / one.part.max_squared_norm)
    assert most > 0.2  # no more noise than there must be


@cases("estimator", lambda: ESTIMATORS)
def test_no_rows_and_odd_rows_give_a_private_model(estimator: Any) -> None:
    X, y = data()
    for rows in (0, 1):
        model = clone(estimator).set_params(random_state=3).fit(X[:rows], y[:rows])
        assert model.privacy_loss_ == clone(estimator).set_params(random_state=4).fit(X, y).privacy_loss_
        tell = model.predict if hasattr(model, "predict") else model.transform
        assert np.isfinite(np.asarray(tell(X), float)).all()
    model = clone(estimator).set_params(random_state=3).fit(X * np.nan, y * np.nan)
    assert model.simulated_


@given(st.integers(1, 40), st.floats(1e-6, 1e6), st.integers(0, 2**32))
def test_a_row_within_its_norm_counts_and_no_other_counts_more(entries: int, norm: float, seed: int) -> None:
    part = SumSpecification(norm=norm, entries=entries)
    total = VectorSum(part=part, stddev=1)
    row = np.random.default_rng(seed).normal(size=entries)
    row *= norm / np.sqrt((row**2).sum())
    steps = total.total(row[None])[0]
    assert np.allclose(steps * (norm / 2**20), row, atol=norm * 2.0**-20)
    for longer in (1.001, 3.0, 1e9, math.inf, math.nan):
        assert int((total.total(row[None] * longer)[0] ** 2).sum()) <= part.max_squared_norm
    assert part.max_squared_norm < (2**20 + 8) ** 2


def test_the_noise_is_discrete_gaussian_on_the_grid() -> None:
    total = VectorSum(part=SumSpecification(norm=2.0, entries=4), stddev=3)
    rows = np.full((5, 4), 0.25)
    drawn = total.release(np.repeat(rows, 1, axis=0), SimulatedSource(1), np.zeros(5, np.int64), 5000)
    steps = np.rint(drawn / (2.0 / 2**20)).astype(int)
    assert (steps * (2.0 / 2**20) == drawn).all()
    assert steps[0].min() > 5 * 2**17 - 30
    noise = steps[1:].ravel()
    k = np.arange(-60, 61)

    def law(weights: np.ndarray) -> dict[int, float]:
        return dict(zip(k.tolist(), (weights / weights.sum()).tolist(), strict=True))

    accepts_only(
        pearson(Counter(noise.tolist())),
        law(np.exp(-(k**2) / 18)),
        wider=law(np.exp(-(k**2) / 18 / 1.1**2)),
        narrower=law(np.exp(-(k**2) / 18 * 1.1**2)),
        laplace=law(np.exp(-np.abs(k) / 2.1)),
        shifted=law(np.exp(-((k - 0.2) ** 2) / 18)),
    )


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-5), (8.0, 1e-9)])
def test_the_plan_spends_what_it_may(epsilon: float, delta: float) -> None:
    parts = [
        SumSpecification(norm=1.0, entries=108, times=60),
        SumSpecification(norm=3.0, entries=1, weight=5.0),
    ]
    sums, loss = planned(parts, epsilon=epsilon, delta=delta)
    assert epsilon * 0.999 < loss.epsilon(delta) <= epsilon
    assert sums[1].stddev / sums[0].stddev == pytest.approx(5.0, rel=1e-4)


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    with Ledger.open(
        None,
        budget=Budget.approximate(epsilon=4.0, delta=1e-4),
        privacy_unit="row",
        neighboring=Neighboring.ADD_REMOVE,
        dataset=Dataset(schema="patients(x DOUBLE)", fingerprint=lambda key: "0" * 64),
    ) as opened:
        yield opened


def test_a_fit_is_charged_before_the_data_is_read(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = data()
    model = GaussianNB(**THREE, ledger=ledger)
    monkeypatch.setattr(VectorSum, "total", lambda *args: pytest.fail(f"read before {len(ledger.entries())}"))
    with pytest.raises(BudgetExceeded):
        clone(model).set_params(epsilon=9.0).fit(X, y)
    with pytest.raises(SimulatedCharge):
        clone(model).set_params(random_state=1).fit(X, y)
    assert not ledger.entries()
    monkeypatch.undo()
    model.fit(X, y)
    (entry,) = ledger.entries()
    assert entry.loss == model.privacy_loss_
    assert entry.description == "GaussianNB"
    assert model.receipt_ is not None
    assert not model.simulated_


def test_clones_share_the_ledger_and_pickles_leave_it_out(ledger: Ledger) -> None:
    model = StandardScaler(ledger=ledger)
    assert clone(model).ledger is ledger
    X, _ = data()
    model.fit(X)
    read = pickle.loads(pickle.dumps(model))
    assert (read.mean_ == model.mean_).all()
    for left in (read, copy.copy(model), clone(read), clone(copy.deepcopy(model))):
        with pytest.raises(ParameterError, match=r"^ledger must be set before a fit, but .*; fit in this"):
            left.fit(X)
    assert len(ledger.entries()) == 1
    assert read.set_params(ledger=ledger).fit(X).receipt_ is not None
    assert len(ledger.entries()) == 2
    assert clone(copy.copy(model)).set_params(ledger=None).fit(X).receipt_ is None  # asked for
    assert pickle.loads(pickle.dumps(StandardScaler())).fit(X).receipt_ is None  # there never was one


def test_every_fold_of_a_grid_search_is_charged_or_warned_of(ledger: Ledger) -> None:
    X, y = data()
    grid = {"smoothing": [1e-4, 1e-2]}
    paid = GaussianNB(epsilon=0.01, bounds=(-2, 2), classes=[0.0, 1.0, 2.0], ledger=ledger)
    GridSearchCV(paid, grid, cv=3).fit(X, y)
    assert len(ledger.entries()) == 7  # two candidates, three folds, and the best once more
    free = clone(paid).set_params(ledger=None)
    with pytest.warns(UnpaidFits, match=r"^fits without a ledger must be one, .*; pass ledger="):
        GridSearchCV(free, grid, cv=3).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):  # nothing is protected, so nothing adds up
            clone(paid).set_params(ledger=None, random_state=1).fit(X, y)
        GaussianNB(bounds=(-2, 2), classes=[0.0, 1.0]).fit(X, y)
    dear = clone(paid).set_params(epsilon=1.5)
    with pytest.raises(BudgetExceeded):
        GridSearchCV(dear, grid, cv=3, error_score="raise").fit(X, y)


def test_other_processes_do_not_fit_for_free(ledger: Ledger) -> None:
    X, y = data()
    model = GaussianNB(epsilon=0.01, bounds=(-2, 2), classes=[0.0, 1.0, 2.0], ledger=ledger)
    sent = pickle.dumps((clone(model), X, y))  # what a search with n_jobs=2 does with each fold
    with pytest.raises(ParameterError, match="n_jobs=1"):
        (worker := pickle.loads(sent))[0].fit(*worker[1:])
    assert not ledger.entries()


def test_random_states_simulate_and_none_does_not() -> None:
    X, _ = data()
    one, two = (StandardScaler(random_state=7).fit(X).mean_ for _ in range(2))
    assert (one == two).all()
    assert StandardScaler(random_state=np.random.RandomState(7)).fit(X).simulated_
    fresh = [StandardScaler().fit(X) for _ in range(2)]
    assert (fresh[0].mean_ != fresh[1].mean_).any()
    assert not fresh[0].simulated_


def test_missing_bounds_are_refused_and_undeclared_classes_warned_of() -> None:
    X, y = data()
    for estimator in (LogisticRegression(), PCA(), KMeans(), GradientBoostingRegressor(), LinearRegression()):
        with pytest.raises(UnboundedSensitivity, match=r"^bounds must be given"):
            estimator.fit(X, y)
    with pytest.raises(UnboundedSensitivity, match=r"^y_bounds must be given"):
        LinearRegression(bounds=(0, 1)).fit(X, y)
    with pytest.warns(UndeclaredClasses, match="classes must be declared"):
        GaussianNB(bounds=(-2, 2), random_state=1).fit(X, y)


@cases(
    ("estimator", "name"),
    lambda: [
        (PCA(bounds=(1, 0)), "bounds"),
        (PCA(bounds=(0, math.inf)), "bounds"),
        (PCA(bounds=3), "bounds"),
        (PCA(bounds=([0, 0], [1, 1])), "bounds"),
        (PCA(4, bounds=(0, 1)), "n_components"),
        (PCA(bounds=(0, 1), epsilon=0), "epsilon"),
        (PCA(bounds=(0, 1), delta=0), "delta"),
        (KMeans(0, bounds=(0, 1)), "n_clusters"),
        (LogisticRegression(**TWO, steps=0), "steps"),
        (LogisticRegression(**TWO, clip_norm=0), "clip_norm"),
        (LogisticRegression(**TWO, alpha=-1), "alpha"),
        (GradientBoostingClassifier(**TWO, depth=13), "depth"),
        (GradientBoostingClassifier(**TWO, learning_rate=0), "learning_rate"),
        (GaussianNB(**TWO, smoothing=0), "smoothing"),
    ],
    ids=repr,
)
def test_bad_parameters(estimator: Any, name: str) -> None:
    X, y = data()
    with pytest.raises(ParameterError, match=f"^{name} must"):
        estimator.fit(X, y)


def test_too_many_entries_are_refused_by_their_number() -> None:
    with pytest.raises(ParameterError, match=r"^X must need at most 1048576"):
        LinearRegression(bounds=(0, 1), y_bounds=(0, 1)).fit(np.zeros((2, 1500)), np.zeros(2))


def test_a_label_like_no_class_is_left_out_and_no_error() -> None:
    X, y = data()
    one, two = (GaussianNB(**TWO, random_state=1).fit(X, np.where(y == 2, z, y)) for z in (2.0, 0.37))
    assert (one.theta_ == two.theta_).all()


def test_sample_weights_are_refused() -> None:
    X, y = data()
    with pytest.raises(TypeError, match="sample_weight"):
        GaussianNB(**THREE).fit(X, y, sample_weight=np.ones(60))  # type: ignore[call-arg]


def test_a_box_is_one_pair_or_one_for_each_column() -> None:
    assert [end.tolist() for end in box("bounds", (0, [1, 2]), 2)] == [[0, 0], [1, 2]]


@pytest.mark.parametrize("odd", [math.nan, math.inf, None, ["x"]])
def test_a_missing_label_among_objects_is_left_out_and_raises_nothing(odd: Any) -> None:
    X = np.random.default_rng(0).uniform(-2, 2, (6, 2))
    known, holed = (np.array(["a", one, "b", "a", "b", "b"], object) for one in ("c", odd))
    one, other = (
        LogisticRegression(bounds=(-2, 2), classes=["a", "b"], steps=3, random_state=1).fit(X, y)
        for y in (known, holed)
    )
    assert np.array_equal(one.coef_, other.coef_)
    numbers = np.array([1.0, 2.0, 0.5, 0.0, 2.0, 1.0])
    numbers[1] = odd if isinstance(odd, float) else math.nan
    texts = numbers.astype(object)
    texts[1] = odd
    first, second = (
        LinearRegression(bounds=(-2, 2), y_bounds=(0, 2), random_state=1).fit(X, y) for y in (numbers, texts)
    )
    assert np.array_equal(first.coef_, second.coef_)


def test_one_odd_entry_of_a_list_changes_no_other_label() -> None:
    X = np.random.default_rng(0).uniform(-2, 2, (40, 2))
    labels: list[Any] = [0, 1] * 20
    numbers: list[Any] = [0.5, 1.5] * 20
    for odd in ("x", None, math.nan):
        one, other = (
            LogisticRegression(bounds=(-2, 2), classes=[0, 1], steps=3, random_state=1).fit(X, y)
            for y in ([*labels[:-1], odd], [*labels[:-1], 7])
        )
        assert np.array_equal(one.coef_, other.coef_)
        first, second = (
            LinearRegression(bounds=(-2, 2), y_bounds=(0, 2), random_state=1).fit(X, y)
            for y in ([*numbers[:-1], odd], [*numbers[:-1], math.nan])
        )
        assert np.array_equal(first.coef_, second.coef_)


@pytest.mark.parametrize("classes", [1, 3])
def test_what_a_row_adds_does_not_depend_on_how_many_rows_there_are(classes: int) -> None:
    rng = np.random.default_rng(0)
    features, labels = rng.random((1000, 50)), rng.integers(0, 2, 1000)
    weights = rng.normal(size=(classes, 50))
    whole = _gradients(features, labels, weights, 1.0)
    half, sides = rng.uniform(-1, 1, (1000, 25)), rng.uniform(-1, 1, 25)
    # As near to one centre as to the other, but for rounding.
    places, centres = np.hstack([half, half]), np.array([[*sides, *-sides], [*-sides, *sides]])
    nearest = _nearest(places, centres)
    for count in (1, 2, 5, 17, 333, 999):
        assert (_gradients(features[:count], labels[:count], weights, 1.0) == whole[:count]).all()
        assert (_nearest(places[:count], centres) == nearest[:count]).all()


SECRET = "secret"


def tables(entry: Any) -> Iterator[Any]:
    X = np.round(data()[0], 3)
    objects = X.astype(object)
    objects[3, 1] = entry
    yield objects
    yield objects.tolist()
    names = ["a", "b", "c"]
    yield pd.DataFrame(objects, columns=names)
    if isinstance(entry, str):
        columns = {name: objects[:, place].tolist() for place, name in enumerate(names)}
        columns["b"] = [str(one) for one in columns["b"]]
        yield pl.DataFrame(columns)
        yield pd.DataFrame(columns).astype({"b": "category"})


@cases("entry", [SECRET, {SECRET: 1}, None])
@cases(
    "model",
    lambda: [
        StandardScaler(bounds=(-2, 2), random_state=1),
        LogisticRegression(**TWO, steps=4, random_state=1),
    ],
)
def test_a_text_among_numbers_counts_as_none_of_them_and_raises_nothing(model: Any, entry: Any) -> None:
    X, y = data()
    X = np.round(X, 3)
    X[3, 1] = math.nan
    labels = (y > 0).astype(float)
    expected = clone(model).fit(X, labels)
    for table in tables(entry):
        found = clone(model).fit(table, labels)
        for name in ("mean_", "coef_"):
            if hasattr(expected, name):
                assert np.array_equal(getattr(found, name), getattr(expected, name))
        call = found.transform if hasattr(found, "transform") else found.predict_proba
        assert np.isfinite(call(table)).sum() >= len(X)


@pytest.mark.parametrize("wrong", [[1.5, 77.25], np.array([SECRET, "b"], object), 77.25])
def test_a_table_of_another_shape_is_refused_without_being_shown(wrong: Any) -> None:
    with pytest.raises(ValueError, match="Reshape your data") as told:
        StandardScaler(bounds=(-2, 2)).fit(wrong)
    assert not any(value in str(told.value) for value in ("77.25", SECRET))


def test_complex_numbers_are_refused_without_being_shown() -> None:
    X, y = data()
    X[0, 0] = 0.4321
    wide = X.astype(complex)
    table = pd.DataFrame({"a": wide[:, 0], "b": X[:, 1]})
    model: Any = LogisticRegression(**TWO, steps=4, random_state=1)
    fitted: Any = clone(model).fit(X, y)
    calls: list[Any] = [
        lambda: model.fit(wide, y),
        lambda: model.fit(table, y),
        lambda: model.fit(X, y + 0.4321j),
    ]
    for call in [*calls, lambda: fitted.predict(wide)]:
        with pytest.raises(ParameterError, match="Complex data not supported") as told:
            call()
        assert "4321" not in str(told.value)


def test_a_ledgers_path_is_no_ledger() -> None:
    with pytest.raises(ParameterError, match="ledger must be an open ledger"):
        GaussianNB(1.0, 1e-6, bounds=(0, 1), classes=[0, 1], ledger="x").fit([[0.5], [0.1]], [0, 1])
