from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sfumato.anonymity.hierarchies.intervals import Intervals
from sfumato.anonymity.measures.k_map import population_sizes
from sfumato.anonymity.table.microdata import Microdata
from sfumato.errors import ParameterError


def everyone() -> pa.Table:
    ages = [31, 34, 36, 52, 58, 71, None, None]
    return pa.table({"sex": list("FFMMFFMM"), "age": ages})


def test_sizes_are_those_of_the_population_at_the_same_levels() -> None:
    sample = everyone().take([0, 3, 6])
    data = Microdata(sample, quasi_identifiers={"age": Intervals((10,)), "sex": None})
    for levels, expected in (
        ({"age": 0, "sex": 0}, [1, 1, 2]),
        ({"age": 1, "sex": 0}, [2, 1, 2]),
        ({"age": 0, "sex": 1}, [1, 1, 2]),
    ):
        rows, found = population_sizes(data, levels, everyone())
        assert rows == 8
        assert found.tolist() == expected


def test_a_population_without_the_sample_is_refused() -> None:
    data = Microdata(everyone(), quasi_identifiers=["sex", "age"])
    with pytest.raises(ParameterError, match="population must have at least as many rows of each class"):
        population_sizes(data, {"age": 0, "sex": 0}, everyone().slice(1))
    with pytest.raises(ParameterError, match="population must have every quasi-identifier, got 'age'"):
        population_sizes(data, {"age": 0, "sex": 0}, everyone().select(["sex"]))
    assert np.all(population_sizes(data, {"age": 0, "sex": 0}, everyone())[1] > 0)
