from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pytest

from sfumato.anonymity.generalization.full_domain import generalize
from sfumato.anonymity.generalization.losses import Discernibility
from sfumato.anonymity.hierarchies.hierarchy import GeneralizationHierarchy
from sfumato.anonymity.privacy_models.closeness import TCloseness
from sfumato.anonymity.privacy_models.diversity import DistinctLDiversity, EntropyLDiversity
from sfumato.anonymity.recoding.mondrian import mondrian
from sfumato.anonymity.table.microdata import Microdata
from sfumato.errors import ParameterError
from tests.anonymity.arx import adult, random_table


def test_patients_of_the_paper() -> None:
    """LeFevre et al. 2006, figures 1 and 4: six patients, k = 2, with cuts at 53711 and at 26."""
    patients = pa.table(
        {
            "age": [25, 25, 26, 27, 27, 28],
            "sex": ["Male", "Female", "Male", "Male", "Female", "Male"],
            "zip": [53711, 53712, 53711, 53710, 53712, 53711],
        }
    )
    data = Microdata(patients, quasi_identifiers=["zip", "age", "sex"])
    recoded = mondrian(data, k=2)
    released = Counter(
        zip(*(recoded.table.column(name).to_pylist() for name in ("age", "sex", "zip")), strict=True)
    )
    assert released == {
        ("[25, 26]", "Male", "53711"): 2,
        ("[25, 27]", "Female", "53712"): 2,
        ("[27, 28]", "Male", "[53710, 53711]"): 2,
    }


@pytest.mark.parametrize("strict", [True, False])
def test_every_class_satisfies_what_is_asked(strict: bool) -> None:
    rng = np.random.default_rng(4)
    for models in (
        [],
        [DistinctLDiversity("job", 3)],
        [EntropyLDiversity("job", 2.0), TCloseness("job", 0.4)],
    ):
        data = random_table(rng, rows=120)
        recoded = mondrian(data, 4, models=models, strict=strict)
        rows = list(
            zip(*(recoded.table.column(name).to_pylist() for name in data.quasi_identifiers), strict=True)
        )
        jobs, whole = recoded.table.column("job").to_pylist(), Counter(data.table.column("job").to_pylist())
        classes = defaultdict(list)
        for number, job in zip(recoded.class_of_row.tolist(), jobs, strict=True):
            classes[number].append(job)
        assert len(classes) > 1
        for of in classes.values():
            count = Counter(of)
            assert len(of) >= 4
            if len(models) == 1:
                assert len(count) >= 3
            if len(models) == 2:
                shares = np.array([n / len(of) for n in count.values()])
                assert -(shares * np.log(shares)).sum() >= np.log(2) - 1e-12
                assert sum(abs(count[job] / len(of) - whole[job] / 120) for job in whole) / 2 <= 0.4 + 1e-12
        assert jobs == data.table.column("job").to_pylist()
        assert len(set(rows)) <= len(classes)


def test_no_class_that_could_be_split_is_left() -> None:
    data = random_table(np.random.default_rng(9), rows=100)
    strict = mondrian(data, 3)
    codes = [data.codes[name] for name in data.quasi_identifiers]
    for number in range(len(strict.sizes)):
        rows = strict.class_of_row == number
        for column in codes:
            values = np.sort(column[rows])
            middle = values[(len(values) - 1) // 2]
            above = int((values > middle).sum()) or int((values == middle).sum())
            assert values[0] == values[-1] or min(above, len(values) - above) < 3
    relaxed = mondrian(data, 3, strict=False)
    split = [relaxed.class_of_row == number for number in np.flatnonzero(relaxed.sizes >= 6)]
    assert all((column[rows] == column[rows][0]).all() for rows in split for column in codes)


def test_less_discernibility_than_the_optimal_full_domain_recoding() -> None:
    data = adult()
    recoded = mondrian(data, 100)
    best = generalize(data, 100, loss=Discernibility())
    assert recoded.discernibility < best.loss / 10
    assert recoded.average_class_size == pytest.approx(30_162 / len(recoded.sizes))


def test_labels_of_texts() -> None:
    jobs = GeneralizationHierarchy.from_rows(
        [("cook", "food", "*"), ("baker", "food", "*"), ("nurse", "health", "*")]
    )
    table = pa.table({"job": ["cook", "baker", "nurse", "nurse"], "city": ["b", "a", "a", None]})
    recoded = mondrian(Microdata(table, quasi_identifiers={"job": jobs, "city": None}), 2)
    assert recoded.table.column("job").to_pylist() == ["food", "food", "nurse", "nurse"]
    assert recoded.table.column("city").to_pylist() == ["{a, b}", "{a, b}", "{a, None}", "{a, None}"]


def test_refusals_and_progress() -> None:
    data = random_table(np.random.default_rng(1), rows=30)
    with pytest.raises(
        ParameterError, match="models must be satisfied by the whole table, but it violates one"
    ):
        mondrian(data, 2, models=[DistinctLDiversity("job", 5)])
    with pytest.raises(ParameterError, match="k must be at most the number of rows, got 99"):
        mondrian(data, 99)
    seen: list[tuple[int, int]] = []
    mondrian(data, 3, progress=lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen)
    assert seen[-1] == (30, 30)


def test_numbers_of_a_declared_hierarchy_are_cut_and_shown_by_size() -> None:
    """The hierarchy lists 30, 9, 20, 10 in this order; a class is said to be [30, 9] by nobody."""
    ages = GeneralizationHierarchy.from_rows([(age, "*") for age in ("30", "9", "20", "10")])
    data = Microdata(pa.table({"age": ["30", "9", "20", "10"]}), quasi_identifiers={"age": ages})
    assert mondrian(data, 2).table.column("age").to_pylist() == ["[20, 30]", "[9, 10]", "[20, 30]", "[9, 10]"]
    assert set(mondrian(data, 3).table.column("age").to_pylist()) == {"[9, 30]"}
    missing = Microdata(pa.table({"age": ["30", "9", "20", None]}), quasi_identifiers={"age": ages})
    assert mondrian(missing, 2, strict=False).table.column("age").to_pylist()[1] == "*"
