r"""How likely released tables are, noise included, as a function of a model's parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import prod
from typing import Any, Final, final

import numpy as np
import scipy
from numpy.typing import NDArray

from sfumato.synthetic.graphical_model.calibration import Array
from sfumato.synthetic.graphical_model.measurements import NoisyTable
from sfumato.synthetic.marginals.workload import Clique

__all__ = ["Laplace", "TableLikelihood"]

_STEPS: Final = 200
_SHORTEST: Final = 1e-12
_RELATIVE: Final = 1e-10


@final
@dataclass(frozen=True, slots=True, eq=False)
class Laplace:
    """The normal distribution that a posterior is near its mode.

    Parameters
    ----------
    mode : array of shape (parameters,)
    factor : array of shape (parameters, parameters)
        Lower; times a standard normal vector it has the covariance.
    """

    mode: Array
    factor: Array


@final
class TableLikelihood:
    r"""The posterior of a max-entropy model's parameters, given noisy tables of Poisson counts.

    Parameters
    ----------
    sizes : sequence of int
        Cells of each column: all combinations of them are listed.
    tables : mapping of tuple of int to NoisyTable
        By columns, rising; none for the number of rows.
    prior_scale : float
        Standard deviation of each log-weight before anything is released.

    Notes
    -----
    A cell x of all columns has a Poisson number of rows, of mean :math:`\lambda_x = e^t q_x`, :math:`q_x
    \propto \exp \sum_r \theta_r(x_r)`: given the number of rows these are rows that are drawn independently
    from q, and a flat prior of t leaves the number of rows open. With A the matrix that sums cells to tables
    and D the noise's variances, the released counts y have mean :math:`A\lambda` and covariance :math:`V =
    A\,\mathrm{diag}(\lambda)A^T + D` exactly. They are taken to be normal, which they are in the limit of
    large counts or of large noise: the likelihood of Räisä, Jälkö, Kaski, Honkela (2023, section 4.1), with
    a Poisson total. With :math:`u = V^{-1}(y - A\lambda)` its gradient by the log of a cell's mean is
    :math:`\lambda_x(a_x^T u + \frac12 a_x^T(uu^T - V^{-1})a_x)`.

    Log-weights have independent normal priors. Directions of them that change no distribution are left out:
    they are independent of all others before and after.

    Examples
    --------
    >>> tables = {(0,): NoisyTable(np.array([30.0, 70.0]), 4.0)}
    >>> found = TableLikelihood((2,), tables, prior_scale=3.0)
    >>> laplace = found.laplace(100.0)
    >>> found.probabilities(laplace.mode[None]).round(2).tolist()
    [[0.3, 0.7]]
    """

    def __init__(
        self, sizes: Sequence[int], tables: Mapping[Clique, NoisyTable], *, prior_scale: float
    ) -> None:
        self._precision = prior_scale**-2
        self._counts = np.concatenate([np.ravel(each.counts) for each in tables.values()])
        self._noise = np.concatenate([np.ravel(each.variances) for each in tables.values()])
        places = _places(sizes, list(tables), [each.counts.size for each in tables.values()])
        cells, measured = prod(sizes), len(self._counts)
        ones = np.ones(places.size)
        listed = np.tile(np.arange(cells), len(places))
        self._sums = scipy.sparse.csr_array((ones, (places.ravel(), listed)), (measured, cells))
        self._pairs, self._rows, self._columns = _pairs(places, measured)
        self._sums_of, self._pairs_of = self._sums.T.tocsr(), self._pairs.T.tocsr()
        self._halves = np.where(self._rows == self._columns, 0.5, 1.0)
        self._basis = self._directions(cells)
        self._features = self._basis[places].sum(axis=0)

    @property
    def parameters(self) -> int:
        """How many parameters are free."""
        return 1 + int(self._features.shape[1])

    def probabilities(self, parameters: Array) -> Array:
        """Return the probabilities of all cells.

        Parameters
        ----------
        parameters : array of shape (draws, parameters)

        Returns
        -------
        array of shape (draws, cells)
        """
        logs = parameters[:, 1:] @ self._features.T
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def shares(self, parameters: Array) -> Array:
        """Return the probabilities of the measured tables' cells, one table after another.

        Parameters
        ----------
        parameters : array of shape (draws, parameters)

        Returns
        -------
        array of shape (draws, measured cells)
        """
        return np.asarray((self._sums @ self.probabilities(parameters).T).T)

    def log_density(self, parameters: Array) -> tuple[Array, Array]:
        """Return the log of the posterior density, but for a constant, and its gradient.

        Parameters
        ----------
        parameters : array of shape (draws, parameters)

        Returns
        -------
        tuple of array of shape (draws,) and array of shape (draws, parameters)
            Minus infinity, with a gradient of zeros, where a total is beyond all floats.
        """
        possible = np.abs(parameters[:, 0]) < 100
        value = np.full(len(parameters), -np.inf)
        gradient = np.zeros_like(parameters)
        if possible.any():
            value[possible], gradient[possible] = self._finite(parameters[possible])
        return value, gradient

    def _finite(self, parameters: Array) -> tuple[Array, Array]:
        probabilities = self.probabilities(parameters)
        means = np.exp(parameters[:, :1]) * probabilities
        covariance = self._covariance(means)
        rest = self._counts - (self._sums @ means.T).T
        determinants = np.linalg.slogdet(covariance)[1]
        inverse = np.linalg.inv(covariance)
        solved = np.einsum("cij,cj->ci", inverse, rest)
        z = parameters[:, 1:]
        value = -0.5 * ((rest * solved).sum(axis=1) + determinants + self._precision * (z**2).sum(axis=1))
        pairs = solved[:, self._rows] * solved[:, self._columns] - inverse[:, self._rows, self._columns]
        by_cell = (self._sums_of @ solved.T).T + (self._pairs_of @ (self._halves * pairs).T).T
        by_cell *= means
        total = by_cell.sum(axis=1, keepdims=True)
        inner = (by_cell - total * probabilities) @ self._features - self._precision * z
        return value, np.concatenate([total, inner], axis=1)

    def laplace(self, rows: float) -> Laplace:
        """Return the mode, found by Fisher's scoring, and the inverse of the information there.

        Parameters
        ----------
        rows : float
            About how many there are, to begin with.

        Returns
        -------
        Laplace
        """
        point = np.zeros((1, self.parameters))
        point[0, 0] = np.log(rows)
        value, gradient = self.log_density(point)
        for _ in range(_STEPS):
            step = np.linalg.solve(self._information(point), gradient[0])
            slope, length = float(step @ gradient[0]), 1.0
            while length > _SHORTEST:
                moved = point + length * step
                after, change = self.log_density(moved)
                if after[0] >= value[0] + 1e-4 * length * slope:
                    break
                length /= 2
            else:
                break
            done = slope < 1e-8
            point, value, gradient = moved, after, change
            if done:
                break
        lower = np.linalg.cholesky(self._information(point))
        return Laplace(point[0], np.linalg.inv(lower).T)

    def _information(self, point: Array) -> Array:
        """Return the Fisher information of the mean, and the prior's."""
        probabilities = self.probabilities(point)
        means = np.exp(point[:, :1]) * probabilities
        inner = self._features - probabilities @ self._features
        moved = means.T * np.concatenate([np.ones((len(inner), 1)), inner], axis=1)
        slopes = self._sums @ moved
        found = slopes.T @ np.linalg.solve(self._covariance(means)[0], slopes)
        prior = np.full(len(found), self._precision)
        prior[0] = 1e-12
        found[np.diag_indices_from(found)] += prior
        return np.asarray(found)

    def _covariance(self, means: Array) -> Array:
        """Return the covariances of the released counts, one matrix for each row of means."""
        entries = (self._pairs @ means.T).T
        measured = len(self._counts)
        covariance = np.zeros((len(means), measured, measured))
        covariance[:, self._rows, self._columns] = entries
        covariance[:, self._columns, self._rows] = entries
        covariance[:, np.arange(measured), np.arange(measured)] += self._noise
        return covariance

    def _directions(self, cells: int) -> Array:
        """Return orthonormal directions of log-weights, all that change the distribution."""
        measured = len(self._counts)
        gram = np.zeros((measured, measured))
        together: Array = np.asarray(self._pairs.sum(axis=1)).ravel()
        gram[self._rows, self._columns] = gram[self._columns, self._rows] = together
        alone: Array = np.asarray(self._sums.sum(axis=1)).ravel()
        values, vectors = np.linalg.eigh(gram - np.outer(alone, alone) / cells)
        return np.asarray(vectors[:, values > _RELATIVE * max(1.0, float(values[-1]))])


def _places(sizes: Sequence[int], scopes: Sequence[Clique], lengths: Sequence[int]) -> NDArray[np.int64]:
    """Return for each table and each cell of all columns where it is counted among the measured ones."""
    grid = np.indices(tuple(sizes)).reshape(len(sizes), -1)
    found = np.empty((len(scopes), grid.shape[1]), np.int64)
    for row, (scope, start) in enumerate(zip(scopes, np.cumsum([0, *lengths]), strict=False)):
        place = np.zeros(grid.shape[1], np.int64)
        for column in scope:
            place = place * sizes[column] + grid[column]
        found[row] = place + start
    return found


def _pairs(places: NDArray[np.int64], measured: int) -> tuple[Any, NDArray[np.int64], NDArray[np.int64]]:
    """Return which pairs of measured cells have cells in common: a matrix that sums these, and the pairs."""
    tables, cells = places.shape
    keys = np.concatenate(
        [places[i] * measured + places[j] for i, j in combinations_with_replacement(range(tables), 2)]
    )
    different, where = np.unique(keys, return_inverse=True)
    listed = np.tile(np.arange(cells), len(keys) // cells)
    matrix = scipy.sparse.csr_array((np.ones(len(keys)), (where, listed)), (len(different), cells))
    return matrix, different // measured, different % measured
