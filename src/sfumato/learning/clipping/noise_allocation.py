"""How much noise each group of parameters gets, so that their total is smallest."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, sqrt

from sfumato import _check
from sfumato.numerics.rounding import mul_up

__all__ = ["ALLOCATIONS", "allocated", "sizes_by_group"]

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
