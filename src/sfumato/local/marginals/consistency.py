"""Marginals that are distributions and agree with one another, and others put together from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.device.domains.categories import Domain
from sfumato.local.frequency.consistency import nearest
from sfumato.local.frequency.variance import Array
from sfumato.local.marginals.coefficients import Evidence
from sfumato.local.marginals.lattice import Attributes, Lattice, analysed, synthesised

__all__ = ["ConsistentMarginals", "Method", "agreeing", "most_even"]

_SWEEPS: Final = 200
_STEPS: Final = 2000
_CLOSE: Final = 1e-7
_EVEN: Final = 1e-3


def most_even(shape: Sequence[int], known: Sequence[tuple[tuple[int, ...], Array]]) -> Array:
    r"""Return the distribution of maximum entropy with known marginals.

    Parameters
    ----------
    shape : sequence of int
        Of the table.
    known : sequence of pairs
        Rising axes of the table, and the distribution over them.

    Notes
    -----
    *Iterative proportional fitting.* Starting from even cells, the table is multiplied so that it has one
    known marginal after the other. It stays a product of functions of these, and converges to the
    distribution of maximum entropy if any has them all (Csiszár 1975).

    *If none has.* Known marginals that agree with one another need not be those of one distribution. Then the
    fitting ends in a cycle, and is followed by steps that multiply by all ratios at once, each to the power
    of one over their number: they converge to a distribution with the smallest sum of the relative entropies
    of its marginals to the known ones (the simultaneous multiplicative technique; Byrne 1993). If each cell
    of the table is empty in some known marginal, all relative entropies are infinite: then one thousandth of
    each known marginal is taken to be even.

    Examples
    --------
    >>> pair = np.array([[0.4, 0.1], [0.1, 0.4]])
    >>> most_even((2, 2, 2), [((0, 1), pair), ((1, 2), pair)])[0].round(3).tolist()
    [[0.32, 0.08], [0.02, 0.08]]
    """
    found = np.full(tuple(shape), 1 / np.prod(shape))
    possible = np.ones(found.shape, np.bool_)
    for axes, wanted in known:
        possible &= np.expand_dims(wanted > 0, _others(found, axes))
    if not possible.any():
        known = [(axes, (1 - _EVEN) * wanted + _EVEN / wanted.size) for axes, wanted in known]
    for _ in range(_SWEEPS):
        away = 0.0
        for axes, wanted in known:
            own, ratio = _ratio(found, axes, wanted)
            away = max(away, float(np.abs(own - wanted).max()))
            found = found * ratio
        if away <= _CLOSE:
            return found
    for _ in range(_STEPS):
        step = np.ones(found.shape)
        for axes, wanted in known:
            step = step * _ratio(found, axes, wanted)[1] ** (1 / len(known))
        new = found * step
        new /= new.sum()
        moved, found = float(np.abs(new - found).max()), new
        if moved <= _CLOSE / 100:
            break
    return found


def _ratio(table: Array, axes: tuple[int, ...], wanted: Array) -> tuple[Array, Array]:
    """Return a table's marginal, and by what it must be multiplied to have the wanted one."""
    others = _others(table, axes)
    own = table.sum(axis=others)
    ratio = np.divide(wanted, own, out=np.zeros_like(own), where=own > 0)
    return own, np.expand_dims(ratio, others)


def _others(table: Array, axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the other axes of a table."""
    return tuple(at for at in range(table.ndim) if at not in axes)


Method: TypeAlias = Literal["max-entropy", "least-squares"]
"""How a table is put together from those within it; see `ConsistentMarginals.table`."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConsistentMarginals:
    """Tables without negative cells, which agree on what they have in common.

    Parameters
    ----------
    domains : tuple of Domain
        The attributes.
    lattice : Lattice
        Which tables.
    coefficients : array
        Theirs.
    gap : float
        How far a cell of a table was still from agreement with the others.

    Notes
    -----
    Post-processing: nothing is unbiased any more, and there are no intervals. That all tables agree does not
    mean that there is a distribution of all attributes together with these marginals.

    Examples
    --------
    >>> from sfumato.local import Domain, SampledMarginals
    >>> protocol = SampledMarginals.every(2, epsilon=4.0, domains=[Domain(["no", "yes"])] * 2)
    >>> aggregator = protocol.aggregator()
    >>> aggregator.add_batch(protocol.randomize_batch([("no", "no"), ("yes", "yes")] * 5000, rng=1))
    10000
    >>> table = aggregator.estimate().consistent().table(0, 1)
    >>> bool((table >= 0).all()), round(float(table.sum()), 6)
    (True, 1.0)
    """

    domains: tuple[Domain, ...]
    lattice: Lattice = field(repr=False)
    coefficients: Array = field(repr=False)
    gap: float

    def table(self, *attributes: int, method: Method = "max-entropy") -> Array:
        r"""Return the shares of a marginal's cells, with one axis for each attribute.

        Parameters
        ----------
        *attributes : int
            Rising indices.
        method : {"max-entropy", "least-squares"}
            How a marginal is put together whose attributes were never asked together. The first takes the
            most even distribution with the known marginals within it, so that attributes are as independent
            as these allow. The second sets unknown coefficients to 0, which gives the smallest sum of
            squares, and takes the nearest distribution to that.

        Returns
        -------
        ndarray of float64
            A distribution: no cell is negative, and the sum is 1.

        Notes
        -----
        If no distribution has all the known marginals, the first one comes as near to them as their relative
        entropies allow; see `most_even`.
        """
        named = self.lattice.checked(attributes)
        shape = self.lattice.shape(named)
        if method not in ("max-entropy", "least-squares"):
            _check.refuse("method", "be 'max-entropy' or 'least-squares'", method, "leave it out")
        if named in self.lattice.starts or method == "least-squares":
            indices = self.lattice.indices(named)
            known = np.where(indices >= 0, self.coefficients[indices], 0.0)
            return np.asarray(nearest(synthesised(known[None, :], shape))[0].reshape(shape))
        parts = self.lattice.largest(named)
        axes = [tuple(named.index(at) for at in part) for part in parts]
        return most_even(shape, [(axis, self.table(*part)) for axis, part in zip(axes, parts, strict=True)])


def agreeing(
    domains: tuple[Domain, ...], evidence: Evidence, width: int, tolerance: float, rounds: int
) -> ConsistentMarginals:
    r"""Return the nearest tables of some attributes that are distributions and agree.

    Notes
    -----
    The tables are all of ``width`` attributes that were together in one that was asked, and narrower ones of
    these. Nearest in the sum over them and their coefficients of squared distances from what was estimated,
    each table weighted by how well it is known. Agreement is a linear space; the nearest of it has the
    coefficients' weighted means, as a table's coefficients are orthogonal. The nearest distribution to a
    table lowers all cells by one number, and leaves none below 0. Dykstra's algorithm takes both in turn and
    converges to the nearest of all that are both.

    References
    ----------
    Boyle, Dykstra (1986), "A method for finding projections onto the intersection of convex sets in Hilbert
    spaces". Qardaji, Yang, Li (2014), "PriView: practical differentially private release of marginal
    contingency tables": consistency of overlapping tables. Mullins et al. (2024), "Efficient and private
    marginal reconstruction with local non-negativity": both together, by another iteration.
    """
    limit = _check.positive("tolerance", tolerance)
    maximum = _check.integer("rounds", rounds, minimum=1)
    known = _widest(evidence.precisions(_check.integer("width", width, minimum=1)))
    lattice = Lattice(evidence.lattice.sizes, tuple(known))
    coefficients = np.empty(lattice.total)
    for among, start in lattice.starts.items():
        first, size = evidence.lattice.starts[among], lattice.width(among)
        coefficients[start : start + size] = evidence.coefficients[first : first + size]
    groups = list(_groups(lattice, np.array(list(known.values()))))
    mass = np.zeros(lattice.total)
    for _, indices, weights in groups:
        mass += np.bincount(indices.ravel(), np.repeat(weights, indices.shape[1]), lattice.total)
    tables = [synthesised(coefficients[indices], shape) for shape, indices, _ in groups]
    held = [np.zeros_like(table) for table in tables]
    gap = np.inf
    for _ in range(maximum):
        agreed = [synthesised(coefficients[indices], shape) for shape, indices, _ in groups]
        for at, table in enumerate(agreed):
            moved = table + held[at]
            tables[at] = nearest(moved)
            held[at] = moved - tables[at]
        sums = np.zeros(lattice.total)
        for (shape, indices, weights), table in zip(groups, tables, strict=True):
            reported = analysed(table, shape) * weights[:, None]
            sums += np.bincount(indices.ravel(), reported.ravel(), lattice.total)
        coefficients = sums / mass
        gap = max(
            float(np.abs(synthesised(coefficients[indices], shape) - table).max())
            for (shape, indices, _), table in zip(groups, tables, strict=True)
        )
        if gap <= limit:
            break
    return ConsistentMarginals(domains=domains, lattice=lattice, coefficients=coefficients, gap=gap)


def _widest(known: Mapping[Attributes, float]) -> dict[Attributes, float]:
    """Leave out sets that are in others."""
    wide = max(map(len, known))
    held = {part for one in known for of in range(1, len(one)) for part in combinations(one, of)}
    return {one: weight for one, weight in known.items() if len(one) == wide or one not in held}


def _groups(lattice: Lattice, weights: Array) -> Iterator[tuple[tuple[int, ...], NDArray[np.int64], Array]]:
    """Give the tables of one shape each: the shape, the indices of their coefficients, and their weights."""
    shapes = [lattice.shape(view) for view in lattice.views]
    for shape in sorted(set(shapes)):
        rows = [at for at, own in enumerate(shapes) if own == shape]
        yield shape, np.array([lattice.indices(lattice.views[at]) for at in rows]), weights[rows]
