"""The samplers against the slow reference, pinned outputs, and what a caller relies on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sfumato.errors import ParameterError
from sfumato.numerics import _kernels
from sfumato.numerics.randomness.source import SimulatedSource
from sfumato.numerics.sampling.integer_noise import discrete_gaussian, discrete_laplace
from tests.cases import cases
from tests.numerics import reference
from tests.numerics.sources import ListedSource

SAMPLERS: dict[str, Callable[..., Any]] = {"laplace": discrete_laplace, "gaussian": discrete_gaussian}
VECTORS = json.loads((Path(__file__).parent / "vectors_samplers.json").read_text())
LAWS = st.sampled_from(sorted(SAMPLERS))
SCALES = st.one_of(
    st.integers(1, 2**40),
    st.floats(1e-3, 2.0**40),
    st.fractions(Fraction(1, 100), 2000, max_denominator=1000),
)


@pytest.fixture(params=_kernels.variants())
def variant(request: pytest.FixtureRequest) -> Iterator[str]:
    _kernels.use(request.param)
    yield request.param
    _kernels.use(_kernels.variants()[-1])


@pytest.mark.usefixtures("variant")
@pytest.mark.parametrize("vector", VECTORS["vectors"], ids=lambda v: f"{v['law']}-{v['scale']}")
def test_pinned_vectors(vector: dict[str, object]) -> None:
    scale = Fraction(str(vector["scale"]))
    drawn = SAMPLERS[str(vector["law"])](scale, VECTORS["count"], rng=VECTORS["seed"])
    assert drawn[: len(vector["first"])].tolist() == vector["first"]  # type: ignore[arg-type]
    assert hashlib.sha256(drawn.astype("<i8").tobytes()).hexdigest() == vector["sha256"]


@given(distribution=LAWS, scale=SCALES.filter(lambda s: s < 300 or s > 1024), seed=st.integers(0, 2**32))
@example(distribution="laplace", scale=1, seed=1)
@example(distribution="laplace", scale=2**40, seed=1)
@example(distribution="gaussian", scale=0.01, seed=1)
@example(distribution="gaussian", scale=1024, seed=1)
@example(distribution="gaussian", scale=2**40, seed=1)
@settings(max_examples=10)
def test_agrees_with_reference_draw_by_draw(
    distribution: str, scale: int | float | Fraction, seed: int
) -> None:
    words = SimulatedSource(seed).words(100).tolist()
    expected = reference.sample(distribution, Fraction(scale), 12, words)
    assert SAMPLERS[distribution](scale, 12, rng=seed).tolist() == expected


@pytest.mark.usefixtures("variant")
@cases("distribution", SAMPLERS)
@cases("scale", [Fraction(3, 10), Fraction(1), Fraction(2)])
def test_all_words_together_give_the_law(distribution: str, scale: Fraction) -> None:
    """How many of all words give each magnitude or a larger one, by bisection, for both signs."""
    further = [1 << 63] * 1024

    def drawn(words: list[int]) -> list[int]:
        # A word next to a border leaves its draw open, and further ones decide it.
        return list(SAMPLERS[distribution](scale, len(words), ListedSource([*words, *further])).tolist())

    with mp.workdps(reference.DIGITS):
        tails = list[mp.mpf]()
        while not tails or tails[-1] > 1:
            k = len(tails) + 1
            tails.append(reference.magnitude_tail(distribution, scale, k, folded=True) * mp.mpf(2) ** 63)
        for sign in (0, 1):
            low, high = [-1] * len(tails), [1 << 63] * len(tails)
            while high[0] - low[0] > 1:
                middle = [(x + y) // 2 for x, y in zip(low, high, strict=True)]
                told = drawn([word << 1 | sign for word in middle])
                for place, value in enumerate(told):
                    assert value * (1 - 2 * sign) >= 0
                    (low if abs(value) > place else high)[place] = middle[place]
            # At most the one word that holds the border is decided by further ones.
            assert all(abs(x + 1 - tail) <= 1 for x, tail in zip(low, tails, strict=True))


@given(
    distribution=LAWS,
    scale=SCALES,
    size=st.one_of(st.integers(0, 700), st.tuples(st.integers(0, 9), st.integers(0, 9))),
)
@settings(max_examples=10)
def test_sizes(distribution: str, scale: int | float | Fraction, size: int | tuple[int, int]) -> None:
    drawn = SAMPLERS[distribution](scale, size, rng=3)
    assert drawn.dtype == np.int64
    assert drawn.shape == (size if isinstance(size, tuple) else (size,))
    assert drawn.flags.writeable


@cases("distribution", SAMPLERS)
@cases("scale", [0.01, 3, 10**6])
def test_longer_requests_begin_with_the_shorter(distribution: str, scale: float) -> None:
    whole = SAMPLERS[distribution](scale, 20_000, rng=9)
    for size in (1, 255, 256, 257, 8192, 8193):
        assert (SAMPLERS[distribution](scale, size, rng=9) == whole[:size]).all()
    assert SAMPLERS[distribution](scale, rng=9) == whole[0]
    assert type(SAMPLERS[distribution](scale)) is int


@pytest.mark.parametrize("distribution", SAMPLERS)
def test_equal_scales_of_every_type_draw_alike(distribution: str) -> None:
    expected = SAMPLERS[distribution](Fraction(5, 2), 100, rng=4)
    assert (SAMPLERS[distribution](2.5, 100, rng=4) == expected).all()
    assert (SAMPLERS[distribution](np.float64(2.5), 100, rng=4) == expected).all()


@pytest.mark.parametrize("distribution", SAMPLERS)
@pytest.mark.parametrize("scale", [1, 10**6])
def test_work_does_not_depend_on_a_small_request(distribution: str, scale: int) -> None:
    asked = []
    for size in (None, 1, 2, 200):
        source = ListedSource(SimulatedSource(5).words(4096).tolist())
        SAMPLERS[distribution](scale, size, source)
        asked.append(source.requests[0])
    assert asked == [256 * reference.words_per_draw(distribution, Fraction(scale))] * 4


@cases("distribution", SAMPLERS)
@cases("scale", [1e-300, 5e-324, Fraction(1, 10**400)])
def test_vanishing_scales_give_zeros(distribution: str, scale: float | Fraction) -> None:
    assert not SAMPLERS[distribution](scale, 1000, rng=1).any()


@cases("distribution", SAMPLERS)
@cases("scale", [0, -1, float("nan"), float("inf"), "1", None, True, 1j])
def test_refuses_what_is_not_a_scale(distribution: str, scale: object) -> None:
    with pytest.raises(ParameterError, match="must be positive and finite, got"):
        SAMPLERS[distribution](scale, 1)


@cases("distribution", SAMPLERS)
@cases("scale", [2**40 + 1, 2.0**41, Fraction(2**41 + 1, 2), 10**400])
def test_refuses_scales_that_could_leave_64_bits(distribution: str, scale: int | float | Fraction) -> None:
    with pytest.raises(
        ParameterError, match=r"must be at most 2\*\*40, got .*; measure the value in larger steps"
    ):
        SAMPLERS[distribution](scale, 1)


@cases("size", [-1, 1.5, (2, -1), "3", True])
def test_refuses_what_is_not_a_size(size: object) -> None:
    with pytest.raises(ParameterError, match="size must be an integer of at least 0"):
        discrete_laplace(1, size)  # type: ignore[call-overload]


def test_refuses_what_is_not_a_source() -> None:
    with pytest.raises(ParameterError, match="rng must be None"):
        discrete_gaussian(1, 1, rng="seed")  # type: ignore[call-overload]
