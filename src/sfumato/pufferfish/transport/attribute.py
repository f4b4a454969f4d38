"""Attribute privacy where rows are Gaussian: one column's mean is hidden in an answer about another."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, final

import numpy as np

from sfumato import _check
from sfumato.mechanisms.base.lattice import Lattice
from sfumato.numerics.rounding import fraction_up
from sfumato.pufferfish.models.exact import exact_number
from sfumato.pufferfish.release.guarantee import PufferfishGuarantee
from sfumato.pufferfish.release.mechanism import PufferfishMechanism, lattice_for

__all__ = ["GaussianAttributeMechanism"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianAttributeMechanism(PufferfishMechanism):
    """Laplace noise on one column's mean that hides the mean of another column of the same rows.

    Parameters
    ----------
    covariances : iterable of arrays of shape (columns, columns)
        The class of models: independent rows, jointly Gaussian with one of these covariances, and any mean.
        Chosen without the protected data.
    sensitive : int
        The column whose mean is the secret.
    answered : int
        The column whose mean is asked.
    secrets : tuple of two numbers
        The lowest and the highest value of the sensitive mean; any two between are a pair.
    epsilon : float

    Raises
    ------
    ParameterError
        If a matrix is no covariance, the class is empty, or the columns are uncorrelated.

    Notes
    -----
    Guarantee: epsilon-Pufferfish privacy for the secrets "the sensitive column's mean is a", at every number
    of rows. Given a, the answered mean is Gaussian with mean ``m + r (a - m')`` and a variance without a,
    where r is the covariance of the columns over the sensitive column's variance. Two such distributions are
    shifts of one another by ``r (a - b)``, which is their distance. The variance that the data bring
    themselves, which lowers the noise of the paper's Gaussian mechanism, is not counted on.

    References
    ----------
    Zhang, Ohrimenko, Cummings, "Attribute privacy: framework and mechanisms" (FAccT 2022), Section 4.

    Examples
    --------
    >>> mechanism = GaussianAttributeMechanism(
    ...     covariances=[[[4.0, 1.0], [1.0, 2.0]]], sensitive=0, answered=1, secrets=(0, 8), epsilon=0.5
    ... )
    >>> round(mechanism.scale, 4)
    4.0
    """

    covariances: Any
    sensitive: int
    answered: int
    secrets: Any
    epsilon: float
    _scale: float = field(init=False, repr=False)
    _grid: Lattice = field(init=False, repr=False)
    _digest: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _check.positive("epsilon", self.epsilon))
        matrices = tuple(_covariance(matrix) for matrix in self.covariances)
        if not matrices:
            _check.refuse_state("covariances", "hold a matrix", "the class is empty", "pass at least one")
        for name in ("sensitive", "answered"):
            column = _check.integer(name, getattr(self, name))
            if any(column >= len(matrix) for matrix in matrices):
                _check.refuse(name, "be a column of every covariance", column, "count from 0")
        low, high = (exact_number("secrets", value) for value in _two(self.secrets))
        if low >= high:
            _check.refuse("secrets", "be two ascending numbers", self.secrets, "pass (lowest, highest)")
        slopes = [m[self.answered][self.sensitive] / m[self.sensitive][self.sensitive] for m in matrices]
        shift = max(map(abs, slopes)) * (high - low)
        if shift == 0:
            remedy = "the answer says nothing of the secret, and can be shown as it is"
            _check.refuse_state("covariances", "have correlated columns", "none has", remedy)
        lattice = lattice_for(float(shift), fraction_up(shift / Fraction(self.epsilon)))
        object.__setattr__(self, "covariances", matrices)
        object.__setattr__(self, "secrets", (low, high))
        object.__setattr__(self, "_grid", lattice)
        object.__setattr__(self, "_scale", fraction_up((shift + lattice.step) / Fraction(self.epsilon)))
        content = repr((matrices, self.sensitive, self.answered, low, high))
        object.__setattr__(self, "_digest", hashlib.sha256(content.encode()).hexdigest())
        lattice.check_noise("epsilon", Fraction(self._scale))

    @property
    def scale(self) -> float:
        """Scale of the Laplace noise, in the unit of the answer, rounded up."""
        return self._scale

    @property
    def guarantee(self) -> PufferfishGuarantee:
        """What one release hides: the mean of the sensitive column."""
        low, high = (float(value) for value in self.secrets)
        return PufferfishGuarantee(
            largest_epsilon=self.epsilon,
            secrets=f"the mean of column {self.sensitive}, any two values from {low:g} to {high:g}",
            models=f"independent Gaussian rows with one of {len(self.covariances)} covariances",
            digest=self._digest,
            theorem="Song, Wang, Chaudhuri 2017, Theorem 3.2, for shifts of one distribution",
        )

    @property
    def _lattice(self) -> Lattice:
        return self._grid


def _two(value: Any) -> Iterable[Any]:
    pair = tuple(value)
    if len(pair) != 2:
        _check.refuse_state("secrets", "be two numbers", "they are not", "pass (lowest, highest)")
    return pair


def _covariance(matrix: Any) -> tuple[tuple[Fraction, ...], ...]:
    array = np.array(matrix, dtype=np.float64)
    square = array.ndim == 2 and array.shape[0] == array.shape[1] and array.size > 0
    if not square or not np.isfinite(array).all() or not (array == array.T).all():
        _check.refuse_state("covariances", "be symmetric matrices", "one is not", "pass S with S == S.T")
    if float(np.linalg.eigvalsh(array)[0]) < 0 or not (np.diag(array) > 0).all():
        rule = "be positive semidefinite, with positive variances"
        _check.refuse_state("covariances", rule, "one is not", "check its eigenvalues")
    return tuple(tuple(exact_number("covariances", x) for x in row) for row in array.tolist())
