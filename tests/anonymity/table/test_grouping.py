import numpy as np

from sfumato.anonymity.table.grouping import combined_key, equivalence_classes


def test_classes_are_those_of_a_dictionary_for_small_and_huge_keys() -> None:
    rng = np.random.default_rng(7)
    columns = [rng.integers(0, 3, 500, dtype=np.int32) for _ in range(4)]
    for sizes in ([3] * 4, [1 << 20] * 4, [1 << 30] * 4):
        found = equivalence_classes(columns, sizes)
        rows = list(zip(*(column.tolist() for column in columns), strict=True))
        distinct = {row: number for number, row in enumerate(sorted(set(rows)))}
        assert found.of_row.tolist() == [distinct[row] for row in rows]
        assert found.sizes.tolist() == [rows.count(row) for row in distinct]


def test_the_key_stays_below_its_bound() -> None:
    key, bound = combined_key([np.array([2, 0]), np.array([4, 1])], [3, 5])
    assert key.tolist() == [14, 1]
    assert bound == 15
