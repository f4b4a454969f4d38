from pathlib import Path

import pytest

from sfumato.anonymity.hierarchies.hierarchy import GeneralizationHierarchy
from sfumato.errors import ParameterError


def test_codes_and_parents_follow_the_rows() -> None:
    jobs = GeneralizationHierarchy.from_rows([("a", "x", "*"), ("b", "y", "*"), ("c", "x", "*")])
    assert [level.tolist() for level in jobs.levels] == [[0, 1, 2], [0, 1, 0], [0, 0, 0]]
    assert jobs.parents(0).tolist() == [0, 1, 0]
    assert jobs.parents(1).tolist() == [0, 0]
    assert not jobs.levels[1].flags.writeable


def test_files_of_either_separator_read_the_same(tmp_path: Path) -> None:
    (tmp_path / "semicolons.csv").write_text("\ufeff17;[15, 20[;*\r\n18;[15, 20[;*\r\n\r\n", encoding="utf-8")
    (tmp_path / "commas.csv").write_text('17,"[15, 20[",*\n18,"[15, 20[",*\n')
    for name in ("semicolons.csv", "commas.csv"):
        assert GeneralizationHierarchy.from_csv(tmp_path / name).labels == (
            ("17", "18"),
            ("[15, 20[",),
            ("*",),
        )


def test_the_missing_value_is_a_category_until_one_value_is_left() -> None:
    found = GeneralizationHierarchy.from_rows([("a", "x", "*"), ("b", "y", "*")]).with_missing()
    assert found.labels == (("a", "b", None), ("x", "y", None), ("*",))
    split = GeneralizationHierarchy.from_rows([("a", "x"), ("b", "y")])
    assert split.with_missing().labels[1] == ("x", "y", None)
    assert split.with_suppression().with_missing().labels[2] == ("*",)


def test_the_missing_value_is_in_no_interval_though_all_others_are_in_one() -> None:
    ages = GeneralizationHierarchy.from_rows(
        [("31", "[30, 40)", "*"), ("34", "[30, 40)", "*")]
    ).with_missing()
    assert ages.labels == (("31", "34", None), ("[30, 40)", None), ("*",))


def test_what_is_no_hierarchy_is_refused() -> None:
    refused: list[tuple[list[tuple[str, ...]], str]] = [
        ([], "must list at least one value"),
        ([("a", "x", "*"), ("b", "x")], r"must have 3 levels for each value, got \('b', 'x'\)"),
        ([("a", "x"), ("a", "y")], "must have one row for each value, got 'a'"),
        ([("a", "x", "p"), ("b", "x", "q")], "must nest, but 'x' at level 1 lies in both 'p' and 'q' above"),
    ]
    for rows, message in refused:
        with pytest.raises(ParameterError, match=message):
            GeneralizationHierarchy.from_rows(rows)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="hierarchy must be a text file that can be read"):
        GeneralizationHierarchy.from_csv(tmp_path / "none.csv")


def test_rows_make_the_hierarchy_again() -> None:
    rows = [("a", "x", "*"), (None, "x", "*"), ("b", "y", "*")]
    hierarchy = GeneralizationHierarchy.from_rows(rows)
    assert hierarchy.rows() == rows
    assert GeneralizationHierarchy.from_rows(hierarchy.rows()).labels == hierarchy.labels
