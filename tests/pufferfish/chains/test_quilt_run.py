from sfumato.pufferfish import QuiltRun


def test_sizes_of_quilts() -> None:
    assert QuiltRun(3, 5, 2, 2).size(100) == 3
    assert QuiltRun(3, 5, 2, 0).size(100) == 99  # from node 2 on
    assert QuiltRun(3, 5, 0, 2).size(100) == 6
    assert QuiltRun(3, 5, 0, 0).size(100) == 100
