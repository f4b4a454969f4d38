import pytest

from sfumato.anonymity.hierarchies.intervals import Intervals
from sfumato.errors import ParameterError


def test_lower_ends_belong_and_tenths_are_exact() -> None:
    found = Intervals((0.1, 0.3)).hierarchy(["0.3", "0.29", "0.7", "-0.1"])
    assert found.labels[1] == ("[0.3, 0.4)", "[0.2, 0.3)", "[0.7, 0.8)", "[-0.1, 0)")
    assert found.labels[2] == ("[0.3, 0.6)", "[0, 0.3)", "[0.6, 0.9)", "[-0.3, 0)")


def test_the_origin_moves_the_ends() -> None:
    assert Intervals((10,), origin=5).hierarchy(["4", "5"]).labels[1] == ("[-5, 5)", "[5, 15)")


def test_widths_that_do_not_nest_are_refused() -> None:
    given: list[tuple[float, ...]] = [(), (5, 8), (5, 5), (0,), (-1,)]
    for widths in given:
        with pytest.raises(ParameterError, match="widths must"):
            Intervals(widths)


def test_a_text_is_no_number() -> None:
    with pytest.raises(ParameterError, match="intervals must be of a column of numbers, got 'x'"):
        Intervals((5,)).hierarchy(["x"])
