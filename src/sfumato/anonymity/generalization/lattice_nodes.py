"""What a search found of the nodes of the lattice, as numbers and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato import _check
from sfumato.anonymity.generalization.lattice import Node, NodeState
from sfumato.privacy.interpretation.plotting import axes

__all__ = ["LatticeNodes"]

_COLORS = {
    NodeState.HOLDS: "#1b7837",
    NodeState.INFERRED_HOLDS: "#a6dba0",
    NodeState.PRUNED: "#d9d9d9",
    NodeState.INFERRED_FAILS: "#f4a582",
    NodeState.FAILS: "#b2182b",
}


@final
@dataclass(frozen=True, slots=True, eq=False)
class LatticeNodes:
    """The state of every node of the lattice after a search.

    Parameters
    ----------
    columns : tuple of str
        The quasi-identifiers, in the order of a node's levels.
    states : int8 array
        A `NodeState` for each node; the axes are the columns, the indices the levels.

    Examples
    --------
    >>> import numpy as np
    >>> nodes = LatticeNodes(("age", "sex"), np.array([[2, 4], [1, 3], [3, 0]], np.int8))
    >>> nodes[1, 0].name, nodes.counts()["INFERRED_HOLDS"]
    ('HOLDS', 2)
    """

    columns: tuple[str, ...]
    states: NDArray[np.int8]

    def __getitem__(self, node: Node) -> NodeState:
        """Return the state of a node."""
        return NodeState(int(self.states[node]))

    def __len__(self) -> int:
        """Return the number of nodes."""
        return int(self.states.size)

    def counts(self) -> dict[str, int]:
        """Return how many nodes are in each state, by its name.

        Returns
        -------
        dict of str to int
        """
        numbers = np.bincount(self.states.ravel(), minlength=len(NodeState))
        return {state.name: int(numbers[state]) for state in NodeState}

    def to_arrow(self) -> pa.Table:
        """Return a table with a row for each node: its level in each column, and its state.

        Returns
        -------
        pyarrow.Table
        """
        levels = np.indices(self.states.shape, dtype=np.int16).reshape(len(self.columns), -1)
        names = np.array([state.name.lower().replace("_", " ") for state in NodeState])
        state = pa.array(names[self.states.ravel()].tolist(), pa.string())
        return pa.table({**dict(zip(self.columns, levels, strict=True)), "state": state})

    def by_height(self) -> NDArray[np.int64]:
        """Return how many nodes are in each state, by the sum of their levels.

        Returns
        -------
        int64 array
            One row for each sum of levels, one column for each `NodeState`.
        """
        heights = sum(np.ogrid[tuple(slice(size) for size in self.states.shape)], np.zeros((), np.int64))
        key = np.broadcast_to(heights, self.states.shape).ravel() * len(NodeState) + self.states.ravel()
        top = sum(size - 1 for size in self.states.shape)
        return np.bincount(key, minlength=(top + 1) * len(NodeState)).reshape(-1, len(NodeState))

    def plot(self, ax: Any = None, *, chosen: Sequence[int] | None = None) -> Any:
        """Draw how many nodes of each height hold, fail or were pruned, fine ones below.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure if None.
        chosen : sequence of int, optional
            The levels of a node to be marked.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.

        Raises
        ------
        MissingExtra
            If matplotlib is absent and no axes are given.
        """
        if chosen is not None and len(chosen) != len(self.columns):
            _check.refuse(
                "chosen", f"have {len(self.columns)} levels", tuple(chosen), "give one for each column"
            )
        ax = axes(ax)
        numbers = self.by_height()
        heights = np.arange(len(numbers))
        left = np.zeros(len(numbers))
        for state, color in _COLORS.items():
            label = state.name.lower().replace("_", " ")
            ax.barh(heights, numbers[:, state], left=left, color=color, label=label, height=0.85)
            left += numbers[:, state]
        if chosen is not None:
            ax.plot(
                [left.max() * 1.02],
                [sum(chosen)],
                marker="*",
                color="black",
                linestyle="none",
                label="chosen",
            )
        ax.set_xlabel("nodes")
        ax.set_ylabel("sum of the levels")
        ax.legend()
        return ax
