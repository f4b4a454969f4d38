from typing import Any

import pytest

from sfumato.anonymity.hierarchies.prefixes import Prefixes
from sfumato.errors import ParameterError


def test_codes_of_other_lengths_do_not_meet_below_the_top() -> None:
    found = Prefixes().hierarchy(["021", "0213", "7"])
    assert found.labels[1] == ("021", "021*", "7")
    assert found.labels[3] == ("0**", "0***", "7")
    assert found.labels[4] == ("*",)


def test_lengths_that_do_not_fall_are_refused() -> None:
    given: list[tuple[Any, ...]] = [(), (2, 3), (3, 3), (0,), (2.5,)]
    for lengths in given:
        with pytest.raises(ParameterError, match="lengths must"):
            Prefixes(lengths)
