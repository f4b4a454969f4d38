"""What belongs to one process is neither copied nor pickled nor used after a fork."""

from __future__ import annotations

import copy
import os
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sfumato.adaptive import AdaptiveTests, GuessAndCheck, Ladder, ReusableHoldout, Thresholdout
from sfumato.errors import ParameterError
from sfumato.federated import (
    AggregationParameter,
    Poplar1,
    Poplar1Aggregator,
    Prio3Aggregator,
    UsedVerifyKeys,
    prio3_count,
)
from sfumato.numerics.randomness.one_process import OneProcess
from tests.cases import cases

KEY = bytes(32)
NONE, FLAGS = np.zeros((0, 16), np.uint8), np.zeros(0, np.bool_)


def prio3() -> Prio3Aggregator:
    return Prio3Aggregator(prio3_count(), KEY, 0, UsedVerifyKeys())


def poplar1() -> Poplar1Aggregator:
    return Poplar1Aggregator(Poplar1(4), KEY, 0, UsedVerifyKeys())


def holdout() -> ReusableHoldout:
    return ReusableHoldout(np.ones(9), np.ones(9), Thresholdout(rows=9, noise=0.1), rng=1)


MADE: dict[str, Callable[[], Any]] = {
    "prio3": prio3,
    "poplar1": poplar1,
    "keys": UsedVerifyKeys,
    "holdout": holdout,
    "guesses": lambda: GuessAndCheck(np.ones(9)),
    "ladder": lambda: Ladder(np.ones(9)),
    "tests": AdaptiveTests,
}
CALLS: dict[str, list[Any]] = {
    "prio3": [
        lambda one: one.begin(NONE, NONE, NONE),
        lambda one: one.decide(NONE, FLAGS),
        lambda one: one.count(FLAGS),
        lambda one: one.aggregate_share(),
    ],
    "poplar1": [
        lambda one: one.receive(NONE, NONE, NONE),
        lambda one: one.begin(AggregationParameter.of("0")),
        lambda one: one.answer(NONE, FLAGS),
        lambda one: one.decide(NONE, FLAGS),
        lambda one: one.count(FLAGS),
        lambda one: one.aggregate_share(),
    ],
    "holdout": [lambda one: one.ask(lambda rows: rows)],
    "guesses": [lambda one: one.ask(lambda rows: rows, guess=0.5, width=0.5)],
    "ladder": [lambda one: one.submit(lambda rows: rows)],
    "tests": [lambda one: one.test(0.5)],
    "keys": [lambda one: one.claim(KEY)],
}


@cases("kind", list(MADE))
def test_a_copy_is_the_same_and_no_other_process_has_it(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one = MADE[kind]()
    assert isinstance(one, OneProcess)
    assert copy.copy(one) is copy.deepcopy(one) is one
    with pytest.raises(ParameterError, match="be in one process, but it is sent to another"):
        pickle.dumps(one)
    real = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: real + 1)
    for call in CALLS[kind]:
        with pytest.raises(ParameterError, match="this is a forked one"):
            call(one)
