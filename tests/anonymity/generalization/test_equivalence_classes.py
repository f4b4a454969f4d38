import numpy as np

from sfumato.anonymity.generalization.equivalence_classes import CodedTable, group


def test_rows_are_numbered_by_all_their_columns() -> None:
    rng = np.random.default_rng(5)
    for sizes in ((3, 4), (1 << 20, 1 << 21, 1 << 21, 1 << 20), (5,)):
        columns = [rng.integers(min(size, 3), size=200) * (size // 3) for size in sizes]
        number, count = group(columns, [size + 3 for size in sizes])
        expected = {row: n for n, row in enumerate(sorted(set(zip(*map(list, columns), strict=True))))}
        assert count == len(expected)
        assert number.tolist() == [expected[row] for row in zip(*map(list, columns), strict=True)]


def test_roll_up_gives_the_classes_that_the_rows_give() -> None:
    rng = np.random.default_rng(6)
    codes = [rng.integers(0, 8, 300), rng.integers(0, 4, 300)]
    levels = [[np.arange(8), np.arange(8) // 2, np.arange(8) // 4], [np.arange(4), np.zeros(4, int)]]
    table = CodedTable(codes, levels, {"job": rng.integers(0, 3, 300)})
    for fine, coarse in (((0, 0), (1, 1)), ((1, 0), (2, 0)), ((0, 1), (2, 1))):
        rolled = table.partition(coarse, table.partition(fine))
        direct = table.partition(coarse)
        assert rolled.counts.tolist() == direct.counts.tolist()
        assert rolled.cell_class.tolist() == direct.cell_class.tolist()
        assert rolled.cell_counts.tolist() == direct.cell_counts.tolist()
        sizes = np.bincount(table.classes_of_rows(coarse))
        assert sizes.tolist() == direct.counts.tolist()
        assert direct.nbytes > 0
