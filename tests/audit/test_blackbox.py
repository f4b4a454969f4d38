"""The audit finds what is there, certifies no more than that, and says so."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import betainccinv, betaincinv

from sfumato.audit import Audit, InputPair, audit
from sfumato.audit.blackbox import json_report
from sfumato.errors import ParameterError
from sfumato.mechanisms import BoundedSum, ContributionBound, Count, Gaussian, Laplace
from tests.cases import cases
from tests.chance import accepts_only, at_most, unrefuted

SURE = 1 - 1e-12


def laplace(scale: float, seed: int = 1) -> Callable[[Any, int], Any]:
    generator = np.random.default_rng(seed)
    return lambda data, size: float(np.sum(data)) + generator.laplace(0.0, scale, size)


PAIR = [(np.zeros(3), np.array([0.0, 0.0, 1.0]))]


def test_it_comes_close_to_the_truth_from_below() -> None:
    found = audit(laplace(1.0), epsilon=1.0, pairs=PAIR, trials=400_000, confidence=SURE)
    accepts_only(unrefuted(found.epsilon_lower), 1.0, nearly=0.94)
    assert not found.violated
    assert found.trials == 400_000
    assert audit(laplace(1.0), epsilon=0.9, pairs=PAIR, trials=400_000, confidence=SURE).violated


def test_either_direction_is_found() -> None:
    generator = np.random.default_rng(2)

    def tell(data: int, size: int) -> Any:
        return generator.random(size) < (0.001 if data else 0.1)

    for pair in ((0, 1), (1, 0)):
        found = audit(tell, epsilon=1.0, pairs=[pair], trials=20_000, confidence=SURE)
        assert found.violated
        assert found.pair.first == 0
        assert found.hits[0] > found.hits[1]
        likely, rare = (found.event.holds(tell(data, 1000)).mean() for data in (0, 1))
        assert likely > rare


def test_the_worst_pair_is_found() -> None:
    found = audit(laplace(1.0), epsilon=0.1, pairs=[([0], [0.05]), *PAIR, ([0], [0.1])], trials=40_000)
    assert found.epsilon_lower > 0.7


def _with_parity(bits: Any, parity: int) -> Any:
    bits[0] ^= (bits.sum() + parity) % 2
    return bits


OUTPUTS: dict[str, Callable[[np.random.Generator, float], Any]] = {
    "a string": lambda g, p: "yes" if g.random() < p else "no",
    "a number or nothing": lambda g, p: g.laplace() if g.random() < p else None,
    "a tuple": lambda g, p: (g.random() < p, g.laplace()),
    "a ragged list": lambda g, p: [1.0] * (3 if g.random() < p else 2),
    "a set": lambda g, p: {"a", "b"} if g.random() < p else {"a"},
    "a dict": lambda g, p: {"a": g.laplace(), "b": g.random() < p},
    "a vector": lambda g, p: np.array([g.laplace(), g.laplace(6 * p), g.laplace()]),
    "NaN": lambda g, p: math.nan if g.random() < p else 1.0,
    "infinity": lambda g, p: math.inf if g.random() < p else g.laplace(),
    "an error": lambda g, p: 1 / int(g.random() < p),
    "an atom among many": lambda g, p: 0.5 if g.random() < p / 10 else g.random(),
    "a parity": lambda g, p: _with_parity(g.integers(0, 2, 6), int(g.random() < p)),
    "a difference": lambda g, p: np.array([0.0, g.laplace(6 * p)]) + 100 * g.normal() * np.array([1, 2]),
    "a string among many": lambda g, p: "me" if g.random() < p / 10 else f"{g.integers(10**6)}",
}


@pytest.mark.parametrize("output", OUTPUTS.values(), ids=OUTPUTS)
def test_outputs_of_every_kind_are_judged(output: Callable[[np.random.Generator, float], Any]) -> None:
    generator = np.random.default_rng(3)
    wrong = audit(
        lambda p: output(generator, p), epsilon=0.7, pairs=[(0.9, 0.1)], trials=10_000, confidence=SURE
    )
    assert wrong.violated, wrong
    right = audit(
        lambda p: output(generator, p), epsilon=0.7, pairs=[(0.5, 0.5)], trials=10_000, confidence=SURE
    )
    assert right.epsilon_lower < 0.2, right


COIN = itertools.cycle((True, False))
LEAKS: dict[str, tuple[str, Callable[[int], Any]]] = {
    "behind 64 zeros": ("", lambda datum: [0] * 64 + [datum]),
    "behind 64 texts": ("", lambda datum: ["a"] * 64 + [datum]),
    "in a large number": ("", lambda datum: 2**60 + datum),
    "in a larger number": ("", lambda datum: 10**400 + datum),
    "in the order of a dict": ("order", lambda datum: dict.fromkeys("ab" if datum else "ba", 1)),
    "in the order of a Counter": ("order", lambda datum: Counter("ab" if datum else "ba")),
    "as int or float": ("type", lambda datum: 1 if datum else 1.0),
    "as int or bool": ("type", lambda datum: 1 if datum else True),
    "as tuple or list": ("type", lambda datum: (1, 2) if datum else [1, 2]),
    "in a dtype": ("type", lambda datum: np.zeros(3, np.float32 if datum else np.float64)),
    "in a shape": ("", lambda datum: np.zeros((2, 3) if datum else (3, 2))),
    "in the sign of a zero": ("zero sign", lambda datum: 0.0 if datum else -0.0),
    "in an error's class": ("", lambda datum: dict[int, int]()[0] if datum else list[int]()[0]),
    "in an error's message": ("message", lambda datum: dict[int, int]()[datum] if next(COIN) else 0),
}


@cases("leak", list(LEAKS))
def test_no_form_of_output_hides_a_leak(leak: str) -> None:
    what, tell = LEAKS[leak]
    noise = np.random.default_rng(9)

    def beside_noise(datum: int) -> Any:
        return tell(datum if noise.random() < 0.99 else 1 - datum)

    for mechanism in (tell, beside_noise):
        found = audit(mechanism, epsilon=1.0, pairs=[(0, 1)], trials=2000, confidence=SURE)
        assert found.violated, found
        assert found.epsilon_lower > 2
        if what:
            found = audit(mechanism, epsilon=1.0, pairs=[(0, 1)], trials=1000, ignore=[what])
            assert not found.violated, found
            assert str(found).endswith(f"; not looked at: {what}; not observed: time, memory, random state")
            assert json.loads(json_report(found))["ignored"] == [what]


def test_one_error_in_every_run_of_both_inputs_is_refused_and_two_are_outputs() -> None:
    def fail(datum: int) -> Any:
        raise ValueError(f"no {datum}")

    with pytest.raises(ParameterError, match="it did so on both inputs"):
        audit(fail, epsilon=1.0, pairs=[(0, 0)], trials=400)
    with pytest.raises(ParameterError, match="it did so on both inputs"):
        audit(fail, epsilon=1.0, pairs=[(0, 1)], trials=400, ignore=["message"])
    assert audit(fail, epsilon=1.0, pairs=[(0, 1)], trials=400).violated


@pytest.mark.parametrize("ignore", ["type", ["types"], 3, [["type"]]])
def test_what_is_ignored_must_be_known(ignore: Any) -> None:
    with pytest.raises(
        ParameterError, match="ignore must hold some of 'type', 'order', 'zero sign', 'message'"
    ):
        audit(lambda datum: datum, epsilon=1.0, pairs=[(0, 1)], trials=400, ignore=ignore)


def test_what_one_input_never_gives_grows_with_the_runs() -> None:
    generator = np.random.default_rng(4)

    def tell(data: int, size: int) -> Any:
        return (generator.random(size) < 0.2) * data

    bounds = [
        audit(tell, epsilon=1.0, pairs=[(1, 0)], trials=n, confidence=0.999).epsilon_lower
        for n in (2000, 64_000)
    ]
    assert bounds[0] > 2.5
    assert bounds[1] - bounds[0] > math.log(16)


def test_a_delta_forgives_what_it_covers() -> None:
    generator = np.random.default_rng(5)

    def tell(data: int, size: int) -> Any:
        """Pure DP of 0, but for one run in a hundred that tells all."""
        return np.where(generator.random(size) < 0.01, data, -1)

    assert audit(tell, epsilon=1.0, pairs=[(0, 1)], trials=40_000, confidence=SURE).violated
    assert audit(tell, epsilon=1.0, delta=0.005, pairs=[(0, 1)], trials=80_000, confidence=SURE).violated
    covered = audit(tell, epsilon=0.0, delta=0.0101, pairs=[(0, 1)], trials=40_000, confidence=SURE)
    assert covered.epsilon_lower == 0.0


def test_mu_of_gaussian_noise_is_bounded_and_its_epsilon_reported() -> None:
    generator = np.random.default_rng(6)

    def tell(data: float, size: int) -> Any:
        return data + generator.normal(0.0, 2.0, size)

    found = audit(tell, epsilon=2.0, delta=1e-5, pairs=[(0.0, 2.0)], trials=400_000, confidence=SURE)
    accepts_only(unrefuted(found.mu_lower), 1.0, nearly=0.95)
    assert found.epsilon_if_gaussian is not None
    assert found.epsilon_lower < 4.1 < found.epsilon_if_gaussian < 4.37718
    assert audit(tell, epsilon=1.0, pairs=[(0.0, 2.0)], trials=2000).epsilon_if_gaussian is None


@pytest.mark.parametrize(
    ("columns", "values", "confidence", "audits"),
    [(1, 40, 0.5, 40), (8, 2, 0.05, 500)],
    ids=["many outcomes", "many events"],
)
def test_the_stated_confidence_holds(columns: int, values: int, confidence: float, audits: int) -> None:
    """Of outcomes that tell nothing, an audit may err with a chance of one less the confidence.

    An audit of the same outcomes that counts events in the runs that chose them, and spends the whole risk
    on each bound, errs more often.
    """
    generator = np.random.default_rng(7)
    released: dict[int, list[Any]] = {}

    def tell(data: int, size: int) -> Any:
        drawn = generator.integers(0, values, (size, columns))
        released.setdefault(data, []).append(drawn)
        return drawn if columns > 1 else drawn[:, 0]

    def careless() -> bool:
        runs = (np.concatenate(released[data]) for data in (0, 1))
        hits = [(drawn[:, :, None] == np.arange(values)).sum(axis=0).ravel() for drawn in runs]
        likely, rare = np.concatenate(hits), np.concatenate(hits[::-1])
        size = sum(map(len, released[0]))
        least = betaincinv(likely, size - likely + 1, 1 - confidence)
        return bool((least > betainccinv(rare + 1, size - rare, 1 - confidence)).any())

    verdicts = []
    for _ in range(audits):
        released.clear()
        found = audit(tell, epsilon=0.0, pairs=[(0, 1)], trials=1000, confidence=confidence)
        verdicts.append((found.violated, careless()))

    def check(violated: tuple[bool, ...]) -> None:
        at_most(sum(violated), audits)(1 - confidence)

    right, wrong = zip(*verdicts, strict=True)
    accepts_only(check, right, careless=wrong)


def test_one_run_at_a_time_or_many_at_once() -> None:
    generator = np.random.default_rng(8)

    def alone(data: Any) -> float:
        return float(np.sum(data)) + generator.laplace()

    def alone_with_an_option(data: Any, scale: float = 1.0) -> float:
        return float(np.sum(data)) + generator.laplace(0.0, scale)

    def many(data: Any, size: int) -> Any:
        return float(np.sum(data)) + generator.laplace(size=size)

    def many_by_name(data: Any, size: int = 1) -> Any:
        return many(data, size)

    for function in (alone, alone_with_an_option, many, many_by_name):
        assert 0.3 < audit(function, epsilon=0.2, pairs=PAIR, trials=8000).epsilon_lower < 1.0
    sampler = generator.laplace
    assert audit(sampler, epsilon=0.2, pairs=[(0.0, 1.0)], trials=8000, batch=False).violated
    assert audit(
        lambda data, size=None: alone(data), epsilon=0.2, pairs=PAIR, trials=8000, batch=False
    ).violated


@pytest.mark.parametrize(("times", "trials"), [(1, 400), (6, 400)])
def test_a_lot_is_drawn_anew_in_every_run(times: int, trials: int) -> None:
    bound = ContributionBound(limit=1)
    mechanism = Laplace.for_query(
        BoundedSum(bounds=(0, 1)).after(bound, stability=bound.stability), epsilon=1.0
    )
    units, records = np.repeat(np.arange(400), 2), np.tile([0, 1], 400)
    twice = Laplace.for_query(
        BoundedSum(bounds=(0, 1)).after(bound, stability=bound.stability).after(stability=1), epsilon=1.0
    )
    # With one lot for all runs of an input, the two sums are some fourteen apart.
    pairs = [((units, records), (units[2:], records[2:]))] * times
    for each in (mechanism, twice):
        assert not audit(each, epsilon=1.0, pairs=pairs, trials=trials, confidence=SURE, rng=1).violated


def test_a_list_of_outputs_is_as_good_as_an_array() -> None:
    generator = np.random.default_rng(9)

    def listed(data: float, size: int) -> list[float]:
        return list(data + generator.laplace(size=size))

    assert audit(listed, epsilon=0.2, pairs=[(0.0, 1.0)], trials=8000).violated


def test_a_mechanism_of_ours_brings_its_pairs_and_draws_from_the_seed() -> None:
    mechanism = Laplace.calibrated(sensitivity=2, epsilon=0.5)
    found = [audit(mechanism, epsilon=0.5, trials=20_000, rng=seed) for seed in (1, 1, 2)]
    assert found[0].epsilon_lower == found[1].epsilon_lower != found[2].epsilon_lower
    assert {found[0].pair.first, found[0].pair.second} == {0, 2}
    assert not audit(mechanism, epsilon=0.5, trials=2000, confidence=SURE).violated


def test_it_says_what_it_found() -> None:
    found = audit(laplace(0.5), epsilon=1.0, pairs=[InputPair(first=[0], second=[1], name="one person")])
    text = str(found)
    assert isinstance(found, Audit)
    assert "epsilon 1 at delta 0: VIOLATED; at least 1." in text
    assert "one person" in text
    assert "output" in text
    assert f"{found.hits[0]} and {found.hits[1]} times in {found.tested} runs" in text


def test_a_claim_of_no_epsilon_at_all_is_never_violated() -> None:
    assert not audit(laplace(1.0), epsilon=math.inf, pairs=PAIR, trials=2000).violated


def fails(data: Any) -> Any:
    raise LookupError("there is no such thing")


BAD: dict[str, Callable[[], Any]] = {
    "epsilon below 0": lambda: audit(laplace(1.0), epsilon=-0.5, pairs=PAIR),
    "epsilon no number": lambda: audit(laplace(1.0), epsilon="1", pairs=PAIR),  # type: ignore[arg-type]
    "epsilon NaN": lambda: audit(laplace(1.0), epsilon=math.nan, pairs=PAIR),
    "delta 1": lambda: audit(laplace(1.0), epsilon=1.0, delta=1.0, pairs=PAIR),
    "trials too few": lambda: audit(laplace(1.0), epsilon=1.0, pairs=PAIR, trials=100),
    "trials no whole number": lambda: audit(laplace(1.0), epsilon=1.0, pairs=PAIR, trials=1e6),  # type: ignore[arg-type]
    "confidence 1": lambda: audit(laplace(1.0), epsilon=1.0, pairs=PAIR, confidence=1.0),
    "resolution 0": lambda: audit(laplace(1.0), epsilon=1.0, pairs=PAIR, resolution=0.0),
    "no pairs for a callable": lambda: audit(laplace(1.0), epsilon=1.0),
    "no pairs at all": lambda: audit(laplace(1.0), epsilon=1.0, pairs=[]),
    "a pair of three": lambda: audit(laplace(1.0), epsilon=1.0, pairs=[(1, 2, 3)]),
    "not callable": lambda: audit(3, epsilon=1.0, pairs=PAIR),  # type: ignore[arg-type]
    "always raises": lambda: audit(fails, epsilon=1.0, pairs=PAIR, trials=2000),
    "raises in its batch form": lambda: audit(lambda data, size: fails(data), epsilon=1.0, pairs=PAIR),
    "too few outputs": lambda: audit(lambda data, size: [1.0], epsilon=1.0, pairs=PAIR),
    "one output for many": lambda: audit(lambda data, size: 1.0, epsilon=1.0, pairs=PAIR),
    "a transformed query": lambda: audit(
        Gaussian.for_query(Count().after(np.unique, stability=1), epsilon=1.0, delta=1e-6),
        epsilon=1.0,
        delta=1e-6,
    ),
}


@cases("bad", BAD.values(), ids=BAD)
def test_bad_input_is_refused_in_one_shape(bad: Callable[[], Any]) -> None:
    with pytest.raises(ParameterError, match=r" must .*(, got |, but |it raised )"):
        bad()


def test_what_a_callable_raises_is_released() -> None:
    with pytest.raises(ParameterError, match="LookupError: there is no such thing"):
        audit(fails, epsilon=1.0, pairs=PAIR, trials=2000)
