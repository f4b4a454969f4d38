"""What is of another kind than asked for is refused by its type, before anything else happens."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato import learning
from sfumato.attacks import membership_report
from sfumato.errors import ParameterError
from tests.cases import cases

wrong: Any = 3
poll = learning.Poll(learning.GNMax(stddev=5), questions=3, rng=1)


@cases(
    ("call", "rule"),
    [
        (
            lambda: learning.noise_for(wrong, epsilon=1.0, delta=1e-5),
            "sampler must be a Sampler, got a value of type int",
        ),
        (lambda: learning.fix_module(wrong), "module must be a Module, got a value of type int"),
        (lambda: learning.leak_probe(wrong, None), "module must be a Module, got a value of type int"),
        (
            lambda: learning.distill(None, wrong, poll, []),
            "teachers must be a Teachers, got a value of type int",
        ),
        (
            lambda: learning.distill_in_rounds(wrong, wrong, poll, []),
            "teachers must be a Teachers, got a value of type int",
        ),
        (
            lambda: membership_report(np.arange(9.0), np.arange(9.0), claim=wrong),
            "claim must be a PrivacyLoss, got a value of type int",
        ),
    ],
)
def test_another_kind_is_named(call: Any, rule: str) -> None:
    with pytest.raises(ParameterError) as caught:
        call()
    assert rule in str(caught.value)
