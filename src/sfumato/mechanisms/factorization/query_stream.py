"""An open stream of linear queries, answered by a synthetic histogram that is updated after surprises."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike

from sfumato import _check
from sfumato.mechanisms.base.grid import Grid
from sfumato.mechanisms.factorization.strategies.integer_strategy import Array, Integers
from sfumato.mechanisms.noise.laplace import Laplace
from sfumato.mechanisms.query.linear_workload import exact_products
from sfumato.mechanisms.sparse_vector.above_threshold import SparseVectorRun
from sfumato.numerics.randomness.source import RandomSource
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["LinearQueryStream", "StreamAnswer", "query_steps"]

_CLAMP: Final = 2.0**61
_MIN_SHARE: Final = 1e-200


class StreamAnswer(NamedTuple):
    """An answer that may be shown.

    Attributes
    ----------
    value : float
    measured : bool
        Whether the data was asked, and noise added; else the synthetic histogram answered.
    checked : bool
        Whether the synthetic answer was compared with the data's; never after the last update.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.mechanisms import Histogram, OnlineMultiplicativeWeights
    >>> mechanism = OnlineMultiplicativeWeights.calibrated(
    ...     histogram=Histogram(categories=range(8)), records=10_000, queries=1000, epsilon=1.0
    ... )
    >>> stream = mechanism.stream(np.repeat([1, 2, 6], [5000, 4000, 1000]), rng=7)
    >>> answer = stream.send([0, 1, 1, 0, 0, 0, 0, 0])
    >>> answer.measured, answer.checked
    (True, True)
    """

    value: float
    measured: bool
    checked: bool


@final
class LinearQueryStream:
    """Queries go in, answers come out; made by `OnlineMultiplicativeWeights.stream`.

    Attributes
    ----------
    left : int
        How many updates are left.
    loss : PrivacyLoss
        Of the whole stream.

    Notes
    -----
    It holds the data's histogram and a noisy threshold: private, like the data.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.mechanisms import Histogram, OnlineMultiplicativeWeights
    >>> mechanism = OnlineMultiplicativeWeights.calibrated(
    ...     histogram=Histogram(categories=range(8)), records=10_000, queries=1000, epsilon=1.0
    ... )
    >>> stream = mechanism.stream(np.repeat([1, 2, 6], [5000, 4000, 1000]), rng=7)
    >>> isinstance(stream, LinearQueryStream), stream.left > 0
    (True, True)
    """

    def __init__(
        self,
        counts: Integers,
        *,
        grid: Grid,
        total: float,
        run: SparseVectorRun,
        measurement: Laplace,
        updates: int,
        loss: PrivacyLoss,
        source: RandomSource,
    ) -> None:
        self.left = updates
        self.loss = loss
        self._counts = counts
        self._grid = grid
        self._total = total
        self._run = run
        self._measurement = measurement
        self._source = source
        self._shares = np.full(len(counts), 1 / len(counts))

    @property
    def simulated(self) -> bool:
        """Whether the randomness came from a seed."""
        return self._source.simulated

    @property
    def cells(self) -> Array:
        """The synthetic histogram as it is now; it may be shown, and answers whatever else is asked."""
        return self._total * self._shares

    def send(self, query: ArrayLike) -> StreamAnswer:
        """Answer a query.

        Parameters
        ----------
        query : array of shape (cells,)
            Public: a weight from 0 to 1 for each cell.

        Returns
        -------
        StreamAnswer

        Raises
        ------
        ParameterError
            If it is no such query; never for the data.
        """
        return self.answer(query_steps(query, len(self._counts), self._grid))

    def answer(self, weights: Integers) -> StreamAnswer:
        """Answer a query whose weights are given in steps of the grid.

        Parameters
        ----------
        weights : array of ints, shape (cells,)
            From 0 to 1, in steps of the grid.

        Returns
        -------
        StreamAnswer
        """
        step = float(self._grid.step)
        synthetic = self._total * float(weights @ self._shares)
        if not self.left:
            return StreamAnswer(synthetic * step, measured=False, checked=False)
        exact = int(exact_products(weights[None], self._counts)[0])
        if not self._run.above(abs(exact - round(min(synthetic, _CLAMP)))):
            return StreamAnswer(synthetic * step, measured=False, checked=True)
        self.left -= 1
        noisy = float(self._measurement.release(exact, self._source).value)
        # An answer far out of range counts as one at the border.
        off = min(1.0, max(-1.0, (noisy - synthetic) * step / self._total))
        shares = self._shares * np.exp(4 * off * step * weights)
        self._shares = np.maximum(shares / shares.sum(), _MIN_SHARE)
        return StreamAnswer(noisy * step, measured=True, checked=True)


def query_steps(query: ArrayLike, cells: int, grid: Grid) -> Integers:
    """Return the weights of a query in steps, or refuse what is none."""
    weights: Any = np.asarray(query)
    if weights.shape != (cells,) or weights.dtype.kind not in "biuf":
        remedy = "pass one number for each cell"
        _check.refuse_type("query", f"hold {cells} numbers", weights, remedy)
    if not ((weights >= 0) & (weights <= 1)).all():
        _check.refuse_state("query", "have weights from 0 to 1", "some are outside", "scale and shift it")
    return np.asarray(grid.round(weights.astype(np.float64)), dtype=np.int64)
