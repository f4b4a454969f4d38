r"""From the estimates of a tree's levels to one share for each leaf, in which all of them agree.

References
----------
Hay, Rastogi, Miklau, Suciu (2010), "Boosting the accuracy of differentially private histograms through
consistency"; Cormode, Kulkarni, Srivastava (2019), "Answering range queries under local differential
privacy".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.local.device.domains.tree import Shape
from sfumato.local.frequency.variance import Array

__all__ = ["from_coefficients", "from_nodes", "isotonic"]


def from_nodes(shape: Shape, estimates: Sequence[Array], alphas: Sequence[float]) -> Array:
    r"""Return the leaves of weighted least squares, given that the root is 1.

    Parameters
    ----------
    shape : Shape
    estimates : sequence of arrays
        Of each level's nodes.
    alphas : sequence of float
        How much a node's own estimate counts against the sum of its children's, for each level; 1 at last.

    Notes
    -----
    Upward, a node's estimate is averaged with what its children say; downward, what the children's sum lacks
    is shared out evenly among them. With variances :math:`v_l` of a level's estimates, :math:`a` of what the
    level below estimates and :math:`\alpha_l = k a / (v_l + k a)` this is the least squares solution, by the
    conditioning of normal variables, for a tree all of whose nodes have k children.

    *Nothing is lost by the covariances.* Besides its diagonal, a level's covariance matrix has what all its
    nodes have in common, :math:`c\,11^T`, and :math:`-ff^T`, the covariance of the leaves' indicators being
    in it: the first is about sums of levels, which are known to be 1, and the second is that of estimates
    which agree, :math:`A K A^T`. Generalised least squares are the same without either (Rao 1967; Zyskind
    1967). So what is left out is only that frequent nodes deviate more, as in Hay et al.; the shares that
    would show by how much are not used, and the estimates are unbiased. A last node with fewer children is
    weighed like the others of its level, which is unbiased too.
    """
    reported = [estimates[-1]]
    for level in range(shape.levels - 1, 0, -1):
        alpha, children = alphas[level - 1], _sums(shape, reported[0])
        reported.insert(0, alpha * estimates[level - 1] + (1 - alpha) * children)
    final = np.ones(1)
    for below in reported:
        lacking = (final - _sums(shape, below)) / shape.branching
        if rest := len(below) % shape.branching:  # the last node has fewer children
            lacking[-1] *= shape.branching / rest
        final = np.repeat(lacking, shape.branching)[: len(below)]
        final += below
    return final


def from_coefficients(shape: Shape, differences: Sequence[Array], root: Array | None = None) -> Array:
    """Return the leaves of a tree, or of many side by side.

    Parameters
    ----------
    shape : Shape
        Of a binary tree.
    differences : sequence of arrays
        For each level above the leaves, the share in the first half of each node less that in the second;
        nodes along the last axis.
    root : array, optional
        All that is in the tree, with a last axis of 1; 1 if left out.

    Notes
    -----
    A node whose second half is empty has all its share in the first.
    """
    final = np.ones(1) if root is None else root
    for level, difference in enumerate(differences):
        count = shape.nodes(level + 1)
        halves = np.stack([(final + difference) / 2, (final - difference) / 2], axis=-1)
        if count % 2:
            halves[..., -1, 0] = final[..., -1]
        final = halves.reshape(*final.shape[:-1], -1)[..., :count]
    return final


def isotonic(values: Array) -> Array:
    """Return the nearest numbers, in squared distance, that never fall: pool adjacent violators.

    References
    ----------
    Barlow, Bartholomew, Bremner, Brunk (1972), "Statistical inference under order restrictions".

    Examples
    --------
    >>> isotonic(np.array([0.0, 3.0, 1.0, 4.0])).tolist()
    [0.0, 2.0, 2.0, 4.0]
    """
    means: list[float] = []
    sizes: list[int] = []
    for value in values.tolist():
        mean, size = value, 1
        while means and means[-1] >= mean:
            mean = (means[-1] * sizes[-1] + mean * size) / (sizes[-1] + size)
            size += sizes.pop()
            means.pop()
        means.append(mean)
        sizes.append(size)
    return np.repeat(np.array(means), np.array(sizes, np.int64))


def _sums(shape: Shape, nodes: Array) -> Array:
    """Return the sums of children."""
    whole = len(nodes) - len(nodes) % shape.branching
    sums = np.einsum("ij->i", nodes[:whole].reshape(-1, shape.branching))
    return sums if whole == len(nodes) else np.append(sums, nodes[whole:].sum())
