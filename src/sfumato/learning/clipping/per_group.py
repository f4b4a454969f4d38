"""Clipping group by group: parts of a model with norms of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from typing import final

import torch
from torch import Tensor

from sfumato import _check
from sfumato.learning.clipping.clipping import Clipping, bounded, clip_norm_of, finite_only, norms_of
from sfumato.numerics.rounding import add_up, mul_up, sqrt_up

__all__ = ["PerGroup", "SeveralNorms", "allocated", "grouped_factors", "root_of_squares"]


ALLOCATIONS = ("optimal", "equal")

_SLACK = 1 + 2.0**-40


def sizes_by_group(groups: Sequence[int], sizes: Sequence[int], count: int) -> list[int]:
    """Return how many entries each group has."""
    if len(groups) != len(sizes):
        remedy = "pass the sizes in the order of the names"
        rule = f"have one entry for each of the {len(groups)} names"
        _check.refuse_state("sizes", rule, f"there are {len(sizes)}", remedy)
    total = [0] * count
    for group, size in zip(groups, sizes, strict=True):
        total[group] += _check.integer("sizes", size)
    return total


def allocated(noise_multiplier: float, bounds: Sequence[float], sizes: Sequence[int]) -> list[float]:
    r"""Return each group's standard deviation, such that the expected squared noise is smallest.

    Parameters
    ----------
    noise_multiplier : float
        Of the release of all groups.
    bounds : sequence of float
        Each group's sensitivity in the L2 norm.
    sizes : sequence of int
        Each group's number of entries.

    Returns
    -------
    list of float
        :math:`\sigma_g = z \sqrt{(C_g / \sqrt{d_g}) \sum_h C_h \sqrt{d_h}}`, rounded up.

    Notes
    -----
    Guarantee: divided by its :math:`\sigma_g`, the sum over all groups has the noise of the standard normal
    distribution in every entry, and moves by at most :math:`\sqrt{\sum_g C_g^2/\sigma_g^2} = 1/z`: the loss
    is that of ``Gaussian(z)``.

    Least: among all :math:`\sigma` with that sum, :math:`\sum_g d_g \sigma_g^2 \ge z^2 (\sum_g C_g
    \sqrt{d_g})^2` by Cauchy and Schwarz, applied to :math:`\sqrt{d_g} \sigma_g` and :math:`C_g/\sigma_g`;
    it is attained where both are proportional, at the deviations returned.

    Examples
    --------
    >>> [round(stddev, 6) for stddev in allocated(1.0, [1.0, 1.0], [100, 100])]
    [1.414214, 1.414214]
    """
    roots = [sqrt(max(size, 1)) for size in sizes]
    total = fsum(bound * root for bound, root in zip(bounds, roots, strict=True))
    shares = [sqrt(bound / root) * sqrt(total) for bound, root in zip(bounds, roots, strict=True)]
    return [mul_up(noise_multiplier, share * _SLACK) for share in shares]


def root_of_squares(norms: Sequence[float]) -> float:
    """Return the L2 norm of a few numbers, rounded up."""
    total = 0.0
    for norm in norms:
        total = add_up(total, mul_up(norm, norm))
    return sqrt_up(total)


def grouped_factors(squared_norms: Tensor, clip_norms: Sequence[float]) -> Tensor:
    """Return each group's clip norm over its norm, at most 1."""
    norms = norms_of(squared_norms)
    if len(norms) != len(clip_norms):
        remedy = "number the groups as groups() does"
        rule = f"have one row for each of the {len(clip_norms)} groups"
        _check.refuse_state("squared_norms", rule, f"it has {len(norms)}", remedy)
    bounds = torch.tensor(clip_norms, dtype=norms.dtype, device=norms.device)[:, None]
    return finite_only((bounds / norms).clamp(max=1), squared_norms)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralNorms(Clipping):
    """Clipping of several groups of parameters, each to its own norm.

    Parameters
    ----------
    allocation : {"optimal", "equal"}
        The smallest total noise, see `allocated`, or the same standard deviation everywhere.
    """

    allocation: str = "optimal"

    def _check_allocation(self) -> None:
        if self.allocation not in ALLOCATIONS:
            _check.refuse("allocation", "be 'optimal' or 'equal'", self.allocation, "use 'optimal' if unsure")

    def stddevs(
        self, noise_multiplier: float, names: Sequence[str], sizes: Sequence[int]
    ) -> tuple[float, ...]:
        """Return the standard deviation of each parameter's noise, see `allocated`.

        Parameters
        ----------
        noise_multiplier : float
            Standard deviation of the noise over the sensitivity.
        names : sequence of str
            The parameters' names.
        sizes : sequence of int
            Their numbers of entries.

        Returns
        -------
        tuple of float
            One for each parameter, for the sum over a batch.
        """
        noise = _check.non_negative("noise_multiplier", noise_multiplier)
        groups, bounds = self.groups(names), self.group_sensitivities
        by_group = sizes_by_group(groups, sizes, len(bounds))
        if self.allocation == "equal":
            return (mul_up(noise, self.sensitivity),) * len(names)
        stddevs = allocated(noise, bounds, by_group)
        return tuple(stddevs[group] for group in groups)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PerGroup(SeveralNorms):
    """Clip each group of parameters to its own norm.

    Parameters
    ----------
    clip_norms : mapping of str to float, or pairs
        Prefixes of parameters' names, such as ``"encoder"`` or ``"encoder.0.weight"``, and their clip
        norms; a parameter belongs to the longest that it has, and ``""`` takes what is left.
    allocation : {"optimal", "equal"}
        The smallest total noise, see `allocated`, or the same standard deviation everywhere.

    Notes
    -----
    Guarantee: see `Clipping`, for every group; the sum over all groups moves by the root of the sum of the
    squares. Clip norms are public, or follow from releases.

    References
    ----------
    McMahan, Ramage, Talwar, Zhang (2018), "Learning differentially private recurrent language models",
    section 3.2; He et al. (2023), "Exploring the limits of differentially private deep learning with
    group-wise clipping".

    Examples
    --------
    >>> PerGroup(clip_norms={"head": 3.0, "": 4.0}).groups(["body.weight", "head.weight", "head.bias"])
    (1, 0, 0)
    """

    clip_norms: Mapping[str, float] | tuple[tuple[str, float], ...]

    def __post_init__(self) -> None:
        given = self.clip_norms
        pairs = given.items() if isinstance(given, Mapping) else given
        checked = tuple((str(prefix), clip_norm_of("clip_norms", norm)) for prefix, norm in pairs)
        if not checked or len(dict(checked)) != len(checked):
            remedy = "give each prefix one norm"
            rule = "have one or more different prefixes"
            _check.refuse_state("clip_norms", rule, "there are none, or one occurs twice", remedy)
        self._check_allocation()
        object.__setattr__(self, "clip_norms", checked)

    @property
    def _pairs(self) -> tuple[tuple[str, float], ...]:
        return tuple(self.clip_norms)  # type: ignore[arg-type]  # pairs since __post_init__

    def groups(self, names: Sequence[str]) -> tuple[int, ...]:
        """Return the index of each parameter's prefix; every prefix must have a parameter.

        Parameters
        ----------
        names : sequence of str
            The parameters' names.

        Returns
        -------
        tuple of int
            The group of each parameter, from 0.
        """
        prefixes = [prefix for prefix, _ in self._pairs]
        found = []
        for name in names:
            fitting = [p for p in prefixes if p in {"", name} or name.startswith(p + ".")]
            if not fitting:
                remedy = "add a group '' for what is left"
                _check.refuse_state(
                    "clip_norms", "have a prefix of every parameter", f"{name!r} has none", remedy
                )
            found.append(prefixes.index(max(fitting, key=len)))
        if missing := set(range(len(prefixes))) - set(found):
            unused = [prefixes[index] for index in sorted(missing)]
            _check.refuse("clip_norms", "have prefixes of trained parameters only", unused, "leave them out")
        return tuple(found)

    def factors(self, squared_norms: Tensor) -> Tensor:
        """Return each group's clip norm over its norm, at most 1.

        Parameters
        ----------
        squared_norms : Tensor of shape (groups, examples)
            Of each example's gradient.

        Returns
        -------
        Tensor of shape (groups, examples)
            At most what keeps each example within its bound; 0 where a norm is not finite.
        """
        return grouped_factors(squared_norms, [norm for _, norm in self._pairs])

    @property
    def sensitivity(self) -> float:
        """The root of the sum of the squared clip norms, and what floats may add."""
        return root_of_squares(self.group_sensitivities)

    @property
    def group_sensitivities(self) -> tuple[float, ...]:
        """Each clip norm, and what floats may add."""
        return tuple(bounded(norm) for _, norm in self._pairs)
