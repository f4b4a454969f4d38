"""Two proportions: whether they are one, and an interval for their difference, from noisy counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.release import LatticeRelease
from sfumato.mechanisms.statistics.hypothesis_test.p_value import (
    LARGEST,
    HypothesisTestResult,
    check_counts,
    size_of_release,
)
from sfumato.mechanisms.statistics.null_draws import (
    Alternative,
    as_side,
    drawn_noise,
    exceeded_by,
    null_draws,
    rank_on_side,
)
from sfumato.numerics.interval import Interval

__all__ = ["two_proportions_interval", "two_proportions_test"]

_DRAWS: Final = 9999
_REMEDY: Final = "release the counts with and without the property, and leave sizes out"
_Array = NDArray[np.float64]


def two_proportions_test(
    release: LatticeRelease,
    other: LatticeRelease | None = None,
    *,
    sizes: Sequence[int] | None = None,
    alternative: Alternative = "two-sided",
    draws: int = _DRAWS,
    rng: int | np.random.Generator | None = None,
) -> HypothesisTestResult:
    """Test whether a property is as frequent in one population as in another.

    Parameters
    ----------
    release : LatticeRelease
        Of four counts: of the first group's records with the property and without it, then of the second
        group's. Or of the first group's two counts, with ``other``. Or with ``sizes`` of two counts: of those
        with the property in either group.
    other : LatticeRelease, optional
        Of the second group's two counts.
    sizes : sequence of two ints, optional
        How many records either group has, where that is public, under replace-one or zero-out.
    alternative : {"two-sided", "greater", "less"}
        On which side the first group's proportion is larger or smaller.
    draws : int
        How many counts are drawn under the null hypothesis; at least 19.
    rng : None, int or numpy Generator
        For these draws; they need no secrecy.

    Returns
    -------
    HypothesisTestResult
        The statistic is the difference of both proportions in standard errors, of sampling and noise; its
        p-value is the rank among those of the drawn counts.

    Raises
    ------
    NeighboringMismatch
        If sizes are given and the release is under add/remove: where sizes are public, neighbors have the
        same.

    Notes
    -----
    Post-processing of the release, whose guarantee stays. The null hypothesis leaves open the common
    proportion, and the sizes where they are private: a parametric bootstrap, each of whose draws has a
    proportion and sizes of its own, from samples of what the release reveals of them. So the size is right
    in the limit of many records; `docs/mechanisms.md` says what was simulated. With `CanonicalNoise` and
    public sizes it is the test of Awan and Vadhan, but for two things: they invert characteristic functions
    where this one draws, and they put the estimated proportion in the place of the true one.

    References
    ----------
    Awan, Vadhan, "Canonical noise distributions and private hypothesis tests" (Annals of Statistics 2023).
    Ferrando, Wang, Sheldon, "Parametric bootstrap for differentially private confidence intervals" (AISTATS
    2022).

    Examples
    --------
    >>> from sfumato.mechanisms import Laplace
    >>> noisy = Laplace.calibrated(sensitivity=1, epsilon=1.0)  # for a record that is added or removed
    >>> same, more = np.array([[60, 140], [88, 212]]), np.array([[90, 110], [88, 212]])
    >>> [two_proportions_test(noisy.release(x, rng=1), rng=2).p_value < 0.01 for x in (same, more)]
    [False, True]

    Two groups may be released one by one:

    >>> first, second = noisy.release(more[0], rng=1), noisy.release(more[1], rng=2)
    >>> two_proportions_test(first, second, alternative="greater", rng=3).p_value < 0.01
    True
    """
    given, side = _Groups.of(release, other, sizes), as_side(alternative)
    number, generator = null_draws(draws, rng)
    value = float(given.standardized(given.counts[None], pooled=True)[0])
    around = given.drawn(given.sizes(given.counts[None]), given.common(given.counts[None]), number, generator)
    drawn = given.drawn(given.sizes(around), given.common(around), number, generator)
    found = given.standardized(drawn, pooled=True)
    return HypothesisTestResult(value if side else abs(value), rank_on_side(value, found, side))


def two_proportions_interval(
    release: LatticeRelease,
    other: LatticeRelease | None = None,
    *,
    sizes: Sequence[int] | None = None,
    level: float = 0.95,
    draws: int = _DRAWS,
    rng: int | np.random.Generator | None = None,
) -> Interval:
    """Return an interval for the difference of two populations' proportions: sampling and noise are inside.

    Parameters
    ----------
    release, other, sizes, draws, rng
        As in `two_proportions_test`.
    level : float
        Wanted coverage, strictly between 0 and 1.

    Returns
    -------
    Interval
        Of the first proportion less the second. Its coverage is right in the limit of many records.

    Raises
    ------
    NeighboringMismatch
        As in `two_proportions_test`.

    Notes
    -----
    A parametric bootstrap, as in `two_proportions_test`, of the difference's distance from the truth in
    standard errors; each draw has two proportions of its own.

    Examples
    --------
    >>> from sfumato.mechanisms import Laplace
    >>> noisy = Laplace.calibrated(sensitivity=1, epsilon=1.0)
    >>> release = noisy.release(np.array([[450, 550], [300, 700]]), rng=1)
    >>> lower, upper, _ = two_proportions_interval(release, rng=2)
    >>> round(lower, 2), round(upper, 2)
    (0.11, 0.19)
    """
    given, error = _Groups.of(release, other, sizes), 1 - _check.unit_interval("level", level)
    number, generator = null_draws(draws, rng)
    seen = given.counts[None]
    around = given.drawn(given.sizes(seen), given.shares(seen), number, generator)
    truth = given.shares(around)
    drawn = given.drawn(given.sizes(around), truth, number, generator)
    found = given.standardized(drawn, pooled=False, truth=truth[:, 0] - truth[:, 1])
    center, scale = given.difference(seen), given.error(seen, pooled=False)
    reach = float(exceeded_by(np.abs(found), error)) * float(scale[0])
    return Interval(max(-1.0, float(center[0]) - reach), min(1.0, float(center[0]) + reach))


@final
@dataclass(frozen=True, slots=True)
class _Groups:
    """Noisy counts of two groups; drawn counts have a first axis more, of so many draws."""

    counts: _Array
    """Of shape (2, 2), or (2, 1) where sizes are public: with the property, and without it."""
    releases: tuple[LatticeRelease, LatticeRelease]
    public: tuple[int, int] | None

    @classmethod
    def of(cls, release: object, other: object, sizes: Sequence[int] | None) -> Self:
        """Return the counts of releases, or refuse them."""
        first = _counts(release, other is None, sizes)
        if sizes is not None:
            if other is not None:
                rule, remedy = "be left out where sizes are given", "release both counts at once"
                _check.refuse_type("other", rule, other, remedy)
            if np.shape(sizes) != (2,):
                remedy = f"pass both groups' public sizes, or {_REMEDY}"
                _check.refuse("sizes", "be two numbers of records", sizes, remedy)
            public = size_of_release(first, sizes[0], _REMEDY), size_of_release(first, sizes[1], _REMEDY)
            return cls(np.asarray(first.value, dtype=np.float64).reshape(2, 1), (first, first), public)
        second = first if other is None else _counts(other, False, None)
        parts = [np.asarray(one.value, dtype=np.float64).ravel() for one in (first, second)]
        joined = parts[0] if other is None else np.concatenate(parts)
        return cls(joined.reshape(2, 2), (first, second), None)

    def sizes(self, counts: _Array) -> _Array:
        """Return how many records either group seems to have, at least one."""
        if self.public is not None:
            return np.asarray(np.broadcast_to(np.array(self.public, dtype=np.float64), counts.shape[:2]))
        return np.asarray(np.clip(counts.sum(axis=-1), 1, LARGEST))

    def shares(self, counts: _Array) -> _Array:
        """Return either group's proportion."""
        return np.asarray(np.clip(counts[..., 0] / self.sizes(counts), 0, 1))

    def common(self, counts: _Array) -> _Array:
        """Return the proportion of both groups together, once for each."""
        sizes = self.sizes(counts)
        joint = counts[..., 0].sum(axis=-1, keepdims=True) / sizes.sum(axis=-1, keepdims=True)
        return np.asarray(np.broadcast_to(np.clip(joint, 0, 1), sizes.shape))

    def difference(self, counts: _Array) -> _Array:
        """Return the first proportion, less the second."""
        shares = self.shares(counts)
        return np.asarray(shares[:, 0] - shares[:, 1])

    def error(self, counts: _Array, *, pooled: bool) -> _Array:
        """Return the standard error of the difference, by sampling and noise.

        Proportions are drawn towards a half, by one record with and one without the property: a group
        without any would have no sampling error.
        """
        sizes = self.sizes(counts)
        raw = self.common(counts) if pooled else self.shares(counts)
        weight = sizes.sum(axis=-1, keepdims=True) if pooled else sizes
        shares = (raw * weight + 1) / (weight + 2)
        noises = np.array([one.stddev for one in self.releases])
        # With public sizes the share is a count over them; else a count moves the size as well.
        moved = 1.0 if self.public is not None else (1 - shares) ** 2 + shares**2
        variances = shares * (1 - shares) / sizes + moved * (noises / sizes) ** 2
        return np.asarray(np.sqrt(variances.sum(axis=-1)))

    def standardized(self, counts: _Array, *, pooled: bool, truth: Any = 0.0) -> _Array:
        """Return how many standard errors the difference is away from the truth."""
        return np.asarray((self.difference(counts) - truth) / self.error(counts, pooled=pooled))

    def drawn(self, sizes: _Array, shares: _Array, number: int, generator: np.random.Generator) -> _Array:
        """Return noisy counts of so many records with these proportions."""
        whole = np.broadcast_to(np.rint(sizes).astype(np.int64), (number, 2))
        hits = generator.binomial(whole, np.broadcast_to(shares, (number, 2)))
        exact = hits[..., None] if self.public is not None else np.stack([hits, whole - hits], axis=-1)
        parts = [
            exact[:, place] + drawn_noise(release, (number, exact.shape[-1]), generator)
            for place, release in enumerate(self.releases)
        ]
        return np.stack(parts, axis=1)


def _counts(release: object, both: bool, sizes: object) -> LatticeRelease:
    """Return a release of as many counts as it must have, or refuse it."""
    wanted = 4 if both and sizes is None else 2
    if not isinstance(release, LatticeRelease) or np.size(release.steps) != wanted:
        rule = f"be of {wanted} noisy counts"
        remedy = "release those with and without the property: four, or two for each group"
        _check.refuse_type("release", rule, release, remedy)
    check_counts(release)
    return release
