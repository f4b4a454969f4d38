import datetime as dt

import pyarrow as pa
import pytest

from sfumato.anonymity.hierarchies.hierarchy import GeneralizationHierarchy
from sfumato.anonymity.hierarchies.prefixes import Prefixes
from sfumato.anonymity.table.columns import encode
from sfumato.errors import ParameterError


def test_numbers_are_ordered_by_size_and_texts_by_alphabet() -> None:
    assert encode("n", pa.chunked_array([["10", "9"], ["-1"]]), None).hierarchy.values == ("-1", "9", "10")
    assert encode("n", pa.chunked_array([[10, 9]]), None).hierarchy.values == ("9", "10")
    assert encode("t", pa.chunked_array([["b10", "9"]]), None).hierarchy.values == ("9", "b10")
    assert encode("t", pa.chunked_array([["nan", "9"]]), None).hierarchy.values == ("9", "nan")


def test_every_type_of_text_has_the_same_codes() -> None:
    column = pa.chunked_array([["b", None], ["a", "b"]])
    for same in (column, column.cast(pa.large_string()), column.dictionary_encode()):
        found = encode("t", same, None)
        assert found.codes.tolist() == [1, 2, 0, 1]
        assert not found.codes.flags.writeable
        assert found.hierarchy.labels == (("a", "b", None), ("*",))
        assert found.at(1).tolist() == [0, 0, 0, 0]


def test_dates_and_truth_values_are_written_as_text() -> None:
    assert encode("d", pa.chunked_array([[dt.date(2020, 1, 2)]]), None).hierarchy.values == ("2020-01-02",)
    assert encode("b", pa.chunked_array([[True, False]]), None).hierarchy.values == ("false", "true")


def test_a_column_without_a_value_is_one_category() -> None:
    found = encode("t", pa.chunked_array([pa.array([None, None], pa.string())]), Prefixes())
    assert found.codes.tolist() == [0, 0]
    assert found.hierarchy.labels == ((None,), ("*",))


def test_a_value_outside_of_the_hierarchy_is_refused() -> None:
    with pytest.raises(ParameterError, match="the hierarchy of 't' must cover every value, got 'b'"):
        encode("t", pa.chunked_array([["a", "b"]]), GeneralizationHierarchy.from_rows([("a", "*")]))


def test_a_column_of_lists_is_refused() -> None:
    with pytest.raises(ParameterError, match="column 't' must have a type that can be written as text"):
        encode("t", pa.chunked_array([[[1], [2]]]), None)
