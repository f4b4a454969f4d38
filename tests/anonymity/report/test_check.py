from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from sfumato import anonymity
from sfumato.errors import ParameterError


def people() -> pa.Table:
    return pa.table({"age": [31, 34, 52, 58], "sex": list("FFMM"), "disease": ["flu", "gout", "flu", "flu"]})


def data() -> anonymity.Microdata:
    by_age = anonymity.Intervals((10,))
    return anonymity.Microdata(
        people(), quasi_identifiers={"age": by_age, "sex": None}, sensitive=["disease"]
    )


def test_a_table_is_measured_at_the_levels_that_are_named() -> None:
    assert anonymity.check(data()).k == 1
    coarse = anonymity.check(data(), levels={"age": 1})
    assert (coarse.k, coarse.classes, coarse.levels) == (2, 2, {"age": 1, "sex": 0})
    assert anonymity.check(data(), levels={"age": 2, "sex": 1}).k == 4


def test_a_population_gives_k_map_and_the_journalist() -> None:
    others = pa.table({"age": [35, 36, 91], "sex": list("FFM"), "disease": ["flu"] * 3})
    everyone = pa.concat_tables([people(), others])
    found = anonymity.check(data(), levels={"age": 1}, population=everyone)
    assert found.k_map == 2
    assert found.risk.journalist.highest == 0.5
    assert found.risk.journalist.average == found.risk.marketer == pytest.approx((2 / 4 + 2 / 2) / 4)
    assert found.risk.population_uniqueness is not None
    assert found.risk.population_uniqueness.population_size == 7
    alone = anonymity.check(data(), levels={"age": 1})
    assert alone.k_map is None
    assert alone.risk.journalist == alone.risk.prosecutor
    assert alone.risk.population_uniqueness is None


def test_wrong_input_is_one_clear_error() -> None:
    refused: list[tuple[dict[str, Any], str]] = [
        ({"levels": {"zip": 1}}, "levels must name quasi-identifiers, got 'zip'; name some of age, sex"),
        ({"levels": {"age": 3}}, "the level of 'age' must be at most 2, got 3"),
        ({"levels": {"age": -1}}, "the level of 'age' must be an integer of at least 0, got -1"),
        ({"population_size": 3}, "population_size must be an integer of at least 4, got 3"),
        ({"population": people(), "population_size": 9}, "population_size must be the rows of population"),
    ]
    for given, message in refused:
        with pytest.raises(ParameterError, match=message):
            anonymity.check(data(), **given)


def test_a_frame_is_no_microdata() -> None:
    with pytest.raises(ParameterError, match="data must be a Microdata"):
        anonymity.check(people())
