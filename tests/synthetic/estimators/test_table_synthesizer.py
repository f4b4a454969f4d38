"""The generator as a scikit-learn estimator: parameters, the charge, rows of the kind that was fitted."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import BudgetExceeded, ParameterError, SimulatedCharge
from sfumato.ledger import Budget, Dataset, Ledger
from sfumato.ledger.unpaid_fits import UnpaidFits
from sfumato.privacy import Neighboring
from sfumato.synthetic import MST, Marginals, Ordered, TableDomain
from tests.run_time import run_time

if run_time(__name__):
    import pandas as pd
    import polars as pl
    from sklearn.base import clone
    from sklearn.exceptions import NotFittedError
    from sklearn.utils import estimator_checks

    from sfumato.synthetic import TableSynthesizer

DOMAIN = TableDomain(age=Ordered(0, 100, bins=5), sex=["f", "m"])
COLUMNS = {"age": [10.0, 30.0, 50.0, 70.0] * 250, "sex": ["f", "m"] * 500}


def ledger(epsilon: float = 3.0) -> Ledger:
    return Ledger.open(
        None,
        budget=Budget.approximate(epsilon=epsilon, delta=1e-6),
        privacy_unit="row",
        neighboring=Neighboring.ADD_REMOVE,
        dataset=Dataset(schema="people(age DOUBLE, sex TEXT)", fingerprint=lambda key: "0" * 64),
    )


def test_a_fit_is_charged_first_and_each_clone_pays() -> None:
    account = ledger()
    made = TableSynthesizer(DOMAIN, epsilon=1.0, delta=1e-8, method="mst", ledger=account)
    fitted = made.fit(pa.table(COLUMNS))
    mechanism = MST.calibrated(DOMAIN, epsilon=1.0, delta=1e-8)
    assert fitted is made
    assert made.receipt_ is not None
    assert made.privacy_loss_ == mechanism.privacy_loss == account.entries()[0].loss
    assert not made.simulated_
    again = clone(made)
    assert not hasattr(again, "model_")
    assert again.ledger is account
    again.fit(pa.table(COLUMNS))
    assert len(account.entries()) == 2
    with pytest.raises(BudgetExceeded):
        clone(made).set_params(epsilon=4.0).fit(pa.table(COLUMNS))
    with pytest.raises(SimulatedCharge):
        clone(made).set_params(random_state=1).fit(pa.table(COLUMNS))
    assert len(account.entries()) == 2
    copied = pickle.loads(pickle.dumps(made))
    assert copied.sample(3).num_rows == 3
    with pytest.raises(ParameterError, match="ledger must be set before a fit"):
        copied.fit(pa.table(COLUMNS))


def test_what_does_not_fit_is_refused_before_the_charge() -> None:
    account, table = ledger(), pa.table(COLUMNS)
    refused: list[tuple[dict[str, Any], Any, str]] = [
        ({"domain": None}, table, "domain must be"),
        ({"domain": {"sex": ["f"]}}, table, "domain must be"),
        ({"method": "gan"}, table, "method must be one of"),
        ({"epsilon": -1.0}, table, "epsilon must be"),
        ({"delta": 0.0}, table, "delta must be"),
        ({"workload": 3}, table, "workload must be"),
        ({"workload": Marginals.ranges("sex")}, table, "column 'sex' must be ordered"),
        ({"max_rows_contributed": 0}, table, "max_rows_contributed must be"),
        ({}, pa.table({"age": [1.0]}), "X must have each declared column once"),
        ({}, pa.table({"age": ["a"], "sex": ["f"]}), "column 'age' must be of numbers"),
        ({}, np.zeros((3, 5)), "X must be of 2 columns"),
    ]
    for changed, data, message in refused:
        made = TableSynthesizer(DOMAIN, ledger=account).set_params(**changed)
        with pytest.raises(ParameterError, match=message):
            made.fit(data)
    assert not account.entries()
    with pytest.raises(ParameterError, match="ledger must"):
        TableSynthesizer(DOMAIN, ledger="budget.ledger").fit(table)
    with pytest.raises(NotFittedError):
        TableSynthesizer(DOMAIN).sample(3)


def test_rows_are_of_the_kind_that_was_fitted() -> None:
    made = TableSynthesizer(DOMAIN, epsilon=50.0, delta=1e-6, random_state=3)
    frame = made.fit(pd.DataFrame(COLUMNS).astype({"sex": "string"})).sample(random_state=1)
    assert isinstance(frame, pd.DataFrame)
    assert abs(len(frame) - 1000) < 20
    assert set(frame["age"]) <= set(DOMAIN["age"].labels)
    assert list(frame.columns) == list(made.feature_names_in_) == ["age", "sex"]
    assert made.n_features_in_ == 2
    assert made.simulated_
    assert isinstance(made.fit(pl.DataFrame(COLUMNS)).sample(4), pl.DataFrame)
    drawn = made.fit(pa.table(COLUMNS)).sample(50, given={"sex": "m"}, within_bins=True)
    assert set(drawn["sex"].to_pylist()) == {"m"}
    assert 0 <= min(drawn["age"].to_pylist()) <= max(drawn["age"].to_pylist()) <= 100
    numbers = TableDomain(a=[0, 1], b=[0, 1, 2])
    codes = np.stack([np.arange(600) % 2, np.arange(600) % 3], axis=1)
    rows = clone(made).set_params(domain=numbers).fit(codes, np.zeros(600)).sample(10)
    assert rows.shape == (10, 2)
    assert rows.dtype == np.int64
    assert made.set_params(random_state=np.random.RandomState(1)).fit(pa.table(COLUMNS)).simulated_


def test_no_value_of_an_array_decides_whether_a_fit_is_refused() -> None:
    """Objects took the type of their values, which an error then showed."""
    domain, account = TableDomain(sex=["f", "m"], town=["x", "y"]), ledger()
    made = TableSynthesizer(domain, epsilon=1.0, delta=1e-8, method="independent", ledger=account)
    refused = set()
    for odd in ("x", None, 7, b"x", "\ud800"):
        with pytest.raises(ParameterError) as caught:
            made.fit(np.array([["f", "x"], ["m", odd]], object))
        refused.add(str(caught.value))
    assert len(refused) == 1
    assert "by its dtype, got a value of type ndarray" in refused.pop()
    assert account.entries() == ()
    texts = [np.array([["f", "x"], ["m", odd]]) for odd in ("y", "\ud800")]
    assert [made.fit(each).model_.tables for each in texts] == [(("sex",), ("town",))] * 2
    assert len(account.entries()) == 2


def test_a_second_fit_without_a_ledger_warns() -> None:
    made = TableSynthesizer(DOMAIN, method="independent", workload=Marginals.every(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made.fit(pa.table(COLUMNS))
    with pytest.warns(UnpaidFits, match="fits without a ledger must be one") as caught:
        clone(made).fit(pa.table(COLUMNS))
    assert caught[0].filename == __file__


def test_the_checks_of_scikit_learn_that_need_no_data_are_met() -> None:
    """The others fit tables of their own, for which no domain is declared."""
    made, name = TableSynthesizer(DOMAIN), "TableSynthesizer"
    for check in (
        "check_get_params_invariance",
        "check_set_params",
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_estimator_repr",
        "check_estimator_cloneable",
        "check_estimator_get_tags_default_keys",
        "check_do_not_raise_errors_in_init_or_set_param",
    ):
        if hasattr(estimator_checks, check):
            getattr(estimator_checks, check)(name, clone(made))
