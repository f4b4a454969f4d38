import numpy as np
import pytest

from sfumato.anonymity.generalization.full_domain import generalize
from sfumato.anonymity.generalization.lattice_nodes import LatticeNodes
from sfumato.errors import ParameterError
from tests.anonymity.arx import random_table


def test_nodes_as_a_table_and_by_height() -> None:
    states = np.array([[2, 4], [1, 3], [3, 0]], np.int8)
    nodes = LatticeNodes(("age", "sex"), states)
    assert nodes.to_arrow().slice(1, 2).to_pydict() == {
        "age": [0, 1],
        "sex": [1, 0],
        "state": ["inferred fails", "holds"],
    }
    assert nodes.by_height().tolist() == [[0, 0, 1, 0, 0], [0, 1, 0, 0, 1], [0, 0, 0, 2, 0], [1, 0, 0, 0, 0]]


def test_plot_marks_the_chosen_node() -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    data = random_table(np.random.default_rng(2), rows=30)
    best = generalize(data, 2, suppression=0.2)
    _, ax = pyplot.subplots()
    assert best.plot(ax) is ax
    assert ax.lines[0].get_ydata() == [sum(best.levels.values())]
    drawn = sum(patch.get_width() for patch in ax.patches)
    assert drawn == len(best.nodes)
    with pytest.raises(ParameterError, match="chosen must have 3 levels"):
        best.nodes.plot(ax, chosen=(1,))
    pyplot.close("all")
