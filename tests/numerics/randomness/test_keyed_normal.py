"""Keyed normal numbers: the cipher, the transform to its stated accuracy, the law, and any slice."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sfumato.errors import ParameterError
from sfumato.numerics import _kernels
from sfumato.numerics.randomness.keyed_normal import add_normals, keystream, rounded_normals
from sfumato.numerics.randomness.keyed_rounding import exactly_rounded
from tests.chance import FALSE_ALARM, accepts_only, frequencies, rate

KEY = bytes(range(32))
STREAM = (7, 11)


def normals(count: int, *, stream: tuple[int, int] = STREAM, start: int = 0, key: bytes = KEY) -> np.ndarray:
    out = np.zeros(count)
    add_normals(out, key, stream=stream, start=start)
    return out


def oracle(counter: int, count: int, stream: tuple[int, int] = STREAM, key: bytes = KEY) -> bytes:
    """OpenSSL's ChaCha20."""
    nonce = counter.to_bytes(8, "little") + stream[1].to_bytes(4, "little") + stream[0].to_bytes(4, "little")
    return Cipher(algorithms.ChaCha20(key, nonce), mode=None).encryptor().update(bytes(count))


@pytest.mark.parametrize("variant", _kernels.variants())
def test_the_vectors_of_rfc_8439(variant: str) -> None:
    _kernels.use(variant)
    # Section 2.3.2: nonce 00:00:00:09:00:00:00:4a:00:00:00:00, counter 1.
    block = 1 | 0x09000000 << 32
    assert keystream(KEY, 64, stream=(0, 0x4A000000), block=block).hex() == (
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
    )
    # Appendix A.1, vectors 1 and 2.
    assert keystream(bytes(32), 128).hex() == (
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
        "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
        "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f"
    )


@given(
    key=st.binary(min_size=32, max_size=32),
    stream=st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)),
    block=st.one_of(st.integers(0, 100), st.integers(0, 2**32 - 60)),
    count=st.integers(0, 3000),
)
@settings(max_examples=60)
def test_the_cipher_is_that_of_openssl(key: bytes, stream: tuple[int, int], block: int, count: int) -> None:
    for variant in _kernels.variants():
        _kernels.use(variant)
        assert keystream(key, count, stream=stream, block=block) == oracle(block, count, stream, key)


def test_the_counter_has_64_bits() -> None:
    block = 2**32 - 3
    first, second = oracle(block, 3 * 64), oracle(2**32, 5 * 64)
    for variant in _kernels.variants():
        _kernels.use(variant)
        assert keystream(KEY, 8 * 64, stream=STREAM, block=block) == first + second


@given(start=st.integers(0, 2**50), count=st.integers(0, 700), wide=st.booleans(), seed=st.integers(0, 99))
@settings(max_examples=60)
def test_any_slice_is_that_of_the_whole_in_every_variant(
    start: int, count: int, wide: bool, seed: int
) -> None:
    dtype = np.float64 if wide else np.float32
    before = np.random.default_rng(seed).normal(size=count).astype(dtype)
    first = start - start % 128
    _kernels.use("portable")
    whole = normals(count + 128, start=first)[start - first :][:count]
    expected = (before.astype(np.float64) + 0.37 * whole).astype(dtype)
    for variant in _kernels.variants():
        _kernels.use(variant)
        out = before.copy()
        add_normals(out, KEY, stream=STREAM, start=start, scale=0.37)
        assert (out == expected).all()


def test_the_words_of_a_group_are_read_row_by_row() -> None:
    block = np.frombuffer(oracle(16 * 5, 1024), "<u4").reshape(16, 16)
    words = np.ascontiguousarray(block.T).reshape(-1).view("<u8").astype(np.uint64)
    out = np.empty(128)
    _kernels.normals_of(words, out)
    assert (out == normals(128, start=5 * 128)).all()


def corner_words() -> np.ndarray:
    """Radii next to both ends, to where the formulas change, and all directions."""
    draw = np.random.default_rng(5)
    marks = [0, 2**64 - 1, 3 << 62, 1 << 63, int(2**64 / 2**0.5), int(2**63 / 2**0.5), 1 << 32, 1 << 53]
    radii = [min(2**64 - 1, max(0, mark + shift)) for mark in marks for shift in (-3, -1, 0, 1, 2, 1 << 12)]
    radii += [int(word) >> (i % 64) for i, word in enumerate(draw.integers(0, 2**64 - 1, 256, np.uint64))]
    radii += [
        2**64 - 1 - (int(word) >> (i % 64))
        for i, word in enumerate(draw.integers(0, 2**64 - 1, 256, np.uint64))
    ]
    radii += [0] * (-len(radii) % 64)
    places = [0, 1, 2**61 - 1, 2**60, 2**32, 2**32 - 1]
    places += [int(word) >> (i % 61) for i, word in enumerate(draw.integers(0, 2**61, len(radii), np.uint64))]
    directions = [(i % 8) << 61 | place for i, place in enumerate(places[: len(radii)])]
    return np.array([radii, directions], np.uint64).reshape(2, -1, 64).transpose(1, 0, 2).reshape(-1, 128)


@pytest.mark.parametrize("variant", _kernels.variants())
def test_the_transform_keeps_its_stated_accuracy(variant: str) -> None:
    _kernels.use(variant)
    worst = mpmath.mpf(0)
    with mpmath.workprec(200):
        for words in corner_words():
            out = np.empty(128)
            _kernels.normals_of(np.ascontiguousarray(words), out)
            for i in range(64):
                a, b = int(words[i]), int(words[i + 64])
                radius = mpmath.sqrt(-2 * mpmath.log((a + mpmath.mpf(0.5)) / 2**64))
                turn = mpmath.pi / 4 * (b % 2**61 + mpmath.mpf(0.5)) / 2**61
                pair = [mpmath.cos(turn), mpmath.sin(turn)]
                if b >> 61 & 1:
                    pair.reverse()
                signs = (-1) ** (b >> 62 & 1), (-1) ** (b >> 63)
                for j in range(2):
                    exact = radius * pair[j] * signs[j]
                    worst = max(worst, abs(out[i + 64 * j] / exact - 1))
    assert worst < 2.0**-48


def test_variants_agree_at_the_corners() -> None:
    seen = []
    for variant in _kernels.variants():
        _kernels.use(variant)
        outs = np.empty((len(corner_words()), 128))
        for words, out in zip(corner_words(), outs, strict=True):
            _kernels.normals_of(np.ascontiguousarray(words), out)
        seen.append(outs)
    assert all((one == seen[0]).all() for one in seen)
    assert np.abs(seen[0]).max() < 9.5


def test_the_law_is_normal() -> None:
    """Kolmogorov and Smirnov's distance, moments, and the tails, in a million numbers."""
    z = np.sort(normals(1_000_000))
    steps = np.arange(z.size + 1) / z.size

    def distance(scale: float) -> None:
        below = stats.norm.cdf(z / scale)
        far = max((below - steps[:-1]).max(), (steps[1:] - below).max())
        assert stats.kstwobign.sf(far * math.sqrt(z.size)) > FALSE_ALARM

    accepts_only(distance, 1.0, wider=1.02)
    # Of each power: the mean and the variance.
    for power, mean, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        found, spread = (z**power).mean(), math.sqrt(variance)

        def mean_of_power(truth: float, found: float = found, spread: float = spread) -> None:
            assert abs(found - truth) < 6.2 * spread / math.sqrt(z.size)

        accepts_only(mean_of_power, mean, more=mean + 0.01 * spread, less=mean - 0.01 * spread)
    for edge in (3.0, 4.0, 4.5):
        for side in (z, -z):
            chance = stats.norm.sf(edge)
            accepts_only(
                rate(int((side > edge).sum()), z.size), chance, none=0.0, wider=stats.norm.sf(edge / 1.4)
            )


def test_pairs_are_independent() -> None:
    """Equally probable cells of radius and direction, for the two halves of a group and for neighbors."""
    z = normals(1 << 20)
    halves = z.reshape(-1, 2, 64)
    for x, y in ((halves[:, 0].ravel(), halves[:, 1].ravel()), (z[:-1], z[1:]), (z[:-128], z[128:])):
        places = [np.minimum((stats.norm.cdf(part) * 24).astype(int), 23) for part in (x[::2], y[::2])]
        counts = np.bincount(24 * places[0] + places[1], minlength=576)

        def cells(distribution: np.ndarray, counts: np.ndarray = counts) -> None:
            assert stats.chisquare(counts, distribution * counts.sum()).pvalue > FALSE_ALARM

        same = np.full((24, 24), 0.98 / 576) + np.eye(24) * 0.02 / 24
        accepts_only(cells, np.full(576, 1 / 576), in_fifty_the_same=same.ravel())


def test_streams_keys_and_places_are_independent() -> None:
    count = 1 << 17
    drawn = [
        normals(count, stream=(0, 0)),
        normals(count, stream=(0, 1)),
        normals(count, stream=(1, 0)),
        normals(count, stream=(2**32 - 1, 2**32 - 1)),
        normals(count, stream=(0, 0), start=count),
        normals(count, stream=(0, 0), key=KEY[::-1]),
    ]
    found = np.corrcoef(drawn)[~np.eye(len(drawn), dtype=bool)]

    def correlated(coefficient: float) -> None:
        assert np.abs(found - coefficient).max() < 6.5 / np.sqrt(count)

    accepts_only(correlated, 0.0, a_twentieth=0.05, opposed=-0.05)
    assert np.unique(np.concatenate(drawn)).size == len(drawn) * count


def test_noise_in_float32_is_rounded_once() -> None:
    """A sum that nearly cancels shows bits of the noise far below the last of float32."""
    z = normals(1000)
    sums = (-z).astype(np.float32)
    left = sums.copy()
    add_normals(left, KEY, stream=STREAM)
    assert (left == (sums.astype(np.float64) + z).astype(np.float32)).all()
    assert np.unique(np.ldexp(left[left != 0].astype(np.float64), 40) % 1).size > 400


@pytest.mark.parametrize("scale", [0.0, 0.3, 1.7, 6.0])
def test_rounded_numbers_have_the_law_of_rounding(scale: float) -> None:
    whole = rounded_normals(400_000, KEY, scale=scale, stream=STREAM)
    if not scale:
        assert not whole.any()
        return
    values = range(-math.ceil(5 * scale), math.ceil(5 * scale) + 1)
    edges = np.array([value - 0.5 for value in (*values, values[-1] + 1)])

    def rounding(cdf: Callable[[np.ndarray], np.ndarray]) -> dict[int, float]:
        return dict(zip(values, np.diff(cdf(edges)).tolist(), strict=True))

    accepts_only(
        frequencies(Counter(whole.tolist())),
        rounding(lambda x: stats.norm.cdf(x / scale)),
        wider=rounding(lambda x: stats.norm.cdf(x / (1.03 * scale))),
        narrower=rounding(lambda x: stats.norm.cdf(x / (0.97 * scale))),
        rounded_down=rounding(lambda x: stats.norm.cdf((x + 0.5) / scale)),
    )


def test_rounded_numbers_are_those_of_the_same_place() -> None:
    seen = []
    for variant in _kernels.variants():
        _kernels.use(variant)
        seen.append(rounded_normals(100_001, KEY, scale=2.0**30, stream=STREAM, start=77))
    assert all((one == seen[0]).all() for one in seen)
    assert np.abs(seen[0] - normals(100_001, start=77) * 2.0**30).max() <= 0.5 + 2.0**-10


def whole_pair(place: int) -> tuple[Fraction, Fraction, int]:
    """All bits of a place's pair, and the octant, read from OpenSSL's cipher."""
    group, at = divmod(place, 128)
    block = np.frombuffer(oracle(16 * group, 1024), "<u4").reshape(16, 16)
    words = np.ascontiguousarray(block.T).reshape(-1).view("<u8")
    a, b = int(words[at % 64]), int(words[at % 64 + 64])
    more = oracle((1 << 63) + 64 * group + at % 64, 64)
    octant, b = b >> 61, b & (2**61 - 1)
    a, b = (word << 256 | int.from_bytes(part, "big") for word, part in ((a, more[:32]), (b, more[32:])))
    return Fraction(2 * a + 1, 2**321), Fraction(2 * b + 1, 2**318), octant


def test_places_that_floats_leave_open_are_decided_by_more_bits() -> None:
    scale, count = 2.0**46, 512
    out, places = np.empty(count, np.int64), np.empty(count, np.int64)
    nonce = STREAM[0] << 32 | STREAM[1]
    found = _kernels.rounded_normals(KEY, nonce, 0, out, scale, places)
    assert 100 < found < count
    decided = rounded_normals(count, KEY, scale=scale, stream=STREAM)
    changed = 0
    with mpmath.workprec(400):
        for place in range(0, count, 4):
            u, turn, octant = whole_pair(place)
            angle = mpmath.pi / 4 * turn.numerator / turn.denominator
            second = place % 128 >= 64
            part = mpmath.sin(angle) if second != bool(octant & 1) else mpmath.cos(angle)
            value = mpmath.sqrt(-2 * mpmath.log(mpmath.mpf(u.numerator) / u.denominator)) * part
            value *= (-1) ** (octant >> (2 if second else 1) & 1)
            assert int(mpmath.nint(value * scale)) == decided[place]
            # So large a scale shows the bits that were appended.
            for large in (2.0**80, 2.0**130):
                assert int(mpmath.nint(value * large)) == exactly_rounded(KEY, nonce, place, large)
            changed += decided[place] != out[place]
    assert changed


def test_the_kernel_leaves_open_what_lies_next_to_a_half() -> None:
    """What is said to be decided is decided as the exact number is, at a scale where many are close."""
    scale, count = 2.0**40, 20_000
    out, places = np.empty(count, np.int64), np.empty(count, np.int64)
    found = _kernels.rounded_normals(KEY, 5, 0, out, scale, places)
    z = np.zeros(count)
    _kernels.add_normals(KEY, 5, 0, z, True, scale)
    closeness = 0.5 - np.abs(z - np.rint(z))
    closeness[places[:found]] = 1
    for place in np.argsort(closeness)[:40].tolist():
        assert exactly_rounded(KEY, 5, place, scale) == out[place]


# Groups, and pairs in them, whose radius words are below 2**40: all of the first 2**28 places of stream 0.
FAR_OUT = [
    *((235618, 19), (275456, 59), (537640, 6), (616916, 9), (760873, 40)),
    *((1099785, 48), (1465469, 27), (1499436, 32), (1533227, 61)),
]


def test_the_kernel_leaves_open_what_short_words_do_not_tell() -> None:
    """Far out, the bits that follow a word of 64 move the number by more than floats do."""
    told, asked, moved = 0, 0, 0
    for group, pair in FAR_OUT:
        for place in (128 * group + pair, 128 * group + pair + 64):
            z = np.zeros(1)
            add_normals(z, KEY, start=place)
            for bits in range(38, 46):
                scale = 2.0**bits
                out, places = np.empty(1, np.int64), np.empty(1, np.int64)
                decided = _kernels.rounded_normals(KEY, 0, place, out, scale, places) == 0
                exact = exactly_rounded(KEY, 0, place, scale)
                assert not decided or exact == out[0]
                told, asked = told + decided, asked + 1
                moved += exact != np.rint(z[0] * scale)
    assert 0 < told < asked
    assert moved > 10


# Next to an axis, and so near a half at this scale that the bits after the direction's word decide: the only
# four of the first 2**32 places of stream 0.
BETWEEN_DIRECTIONS = [1195105566, 2159135218, 3896683341, 4174139556]


def test_the_kernel_leaves_open_what_short_directions_do_not_tell() -> None:
    out, places, moved = np.empty(1, np.int64), np.empty(1, np.int64), 0
    for place in BETWEEN_DIRECTIONS:
        assert _kernels.rounded_normals(KEY, 0, place, out, 2.0**46, places) == 1
        moved += int(out[0] != exactly_rounded(KEY, 0, place, 2.0**46))
    assert moved


def test_bad_parameters_are_told() -> None:
    out = np.zeros(4)
    with pytest.raises(ParameterError, match="key must be 32 bytes, got 31"):
        add_normals(out, bytes(31))
    with pytest.raises(ParameterError, match=r"stream must be two integers below 2\*\*32"):
        add_normals(out, KEY, stream=(2**32, 0))
    with pytest.raises(ParameterError, match="stream must be an integer of at least 0"):
        add_normals(out, KEY, stream=(-1, 0))
    with pytest.raises(ParameterError, match=r"start must leave all indices below 2\*\*62"):
        add_normals(out, KEY, start=2**62 - 3)
    with pytest.raises(ParameterError, match="scale must be non-negative and finite"):
        add_normals(out, KEY, scale=float("nan"))
    for bad in (np.zeros(4, np.int64), np.zeros((2, 2)), np.zeros(8)[::2], np.zeros(4, np.float16)):
        with pytest.raises(ParameterError, match="out must be a contiguous float32 or float64 array"):
            add_normals(bad, KEY)
    with pytest.raises(ParameterError, match=r"scale must be at most 2\*\*46"):
        rounded_normals(3, KEY, scale=2.0**47)
    with pytest.raises(ParameterError, match=r"block must be below 2\*\*64"):
        keystream(KEY, 3, block=2**64)


def test_the_kernels_refuse_buffers_that_do_not_fit() -> None:
    whole, places, raw = np.zeros(4, np.int64), np.zeros(4, np.int64), np.zeros(33, np.uint8)
    shifted = raw[1:] if raw.ctypes.data % 8 == 0 else raw[:32]
    with pytest.raises(ValueError, match="a key must have 32 bytes"):
        _kernels.keystream(KEY[:5], 0, 0, bytearray(4))
    with pytest.raises(ValueError, match="a key must have 32 bytes"):
        _kernels.add_normals(KEY[:5], 0, 0, np.zeros(4), True, 1.0)
    with pytest.raises(ValueError, match="out must hold whole, aligned floats"):
        _kernels.add_normals(KEY, 0, 0, shifted, True, 1.0)
    with pytest.raises(ValueError, match="words and out must have 128 entries"):
        _kernels.normals_of(whole, np.zeros(128))
    with pytest.raises(ValueError, match="out must hold whole, aligned"):
        _kernels.rounded_normals(KEY, 0, 0, shifted, 1.0, places)
    for scale in (-1.0, float("nan"), 2.0**47):
        with pytest.raises(ValueError, match="scale must be at least 0"):
            _kernels.rounded_normals(KEY, 0, 0, whole, scale, places)
    no_room = np.empty(0, np.int64)
    assert _kernels.rounded_normals(KEY, 0, 0, np.empty(4096, np.int64), 2.0**46, no_room) > 1000
