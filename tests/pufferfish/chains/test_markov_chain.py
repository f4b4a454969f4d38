from __future__ import annotations

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.pufferfish import MarkovChain


def test_the_stationary_distribution_is_kept_by_a_step() -> None:
    generator = np.random.default_rng(3)
    for states in (1, 2, 5, 30):
        chain = MarkovChain(transition=generator.dirichlet(np.ones(states), states))
        pi = chain.stationary
        assert pi.sum() == pytest.approx(1, rel=1e-13)
        np.testing.assert_allclose(pi @ chain.transition, pi, rtol=1e-12)


def test_it_is_exact_where_a_solver_would_cancel() -> None:
    # pi is (q, p) / (p + q) for two states, however small p and q are.
    pi = MarkovChain(transition=[[1 - 1e-12, 1e-12], [3e-9, 1 - 3e-9]]).stationary
    p, q = 1 - (1 - 1e-12), 3e-9
    assert pi[1] == pytest.approx(1e-12 / (1e-12 + q), rel=1e-3)
    assert pi[1] / pi[0] == pytest.approx(1e-12 / q, rel=1e-12) or p != 1e-12


def test_equal_chains_are_one_value() -> None:
    rows = [[0.9, 0.1], [0.4, 0.6]]
    assert MarkovChain(transition=rows) == MarkovChain(transition=np.array(rows))
    assert len({MarkovChain(transition=rows), MarkovChain(transition=rows, start=[0.8, 0.2])}) == 2
    assert MarkovChain(transition=rows) != rows


def test_reducible_chains_need_a_start() -> None:
    assert not MarkovChain(transition=np.eye(3), start=[1, 0, 0]).irreducible
    ring = np.roll(np.eye(9), 1, axis=1)
    assert MarkovChain(transition=ring).irreducible
    one_way = [[0.5, 0.5], [0, 1]]
    with pytest.raises(ParameterError, match=r"start must be given for a reducible chain, but it is None"):
        MarkovChain(transition=one_way)
    with pytest.raises(ParameterError, match="irreducible"):
        _ = MarkovChain(transition=one_way, start=[1, 0]).stationary


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"transition": [[0.9, 0.2], [0.4, 0.6]]}, "rows that sum to one"),
        ({"transition": [[1.1, -0.1], [0.4, 0.6]]}, "entries from 0 to 1"),
        ({"transition": [[float("nan"), 0.1], [0.4, 0.6]]}, "entries from 0 to 1"),
        ({"transition": [[0.9, 0.1]]}, "square"),
        ({"transition": "chain"}, "array of probabilities"),
        ({"transition": [0.5, 0.5]}, "2 axes"),
        ({"transition": [[0.9, 0.1], [0.4, 0.6]], "start": [0.5, 0.6]}, "sum to one"),
        ({"transition": [[0.9, 0.1], [0.4, 0.6]], "start": [1.0]}, "have 2 entries"),
    ],
)
def test_what_is_no_chain_is_refused(bad: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        MarkovChain(**bad)


def test_a_chain_is_fitted_on_public_sequences_only() -> None:
    chain = MarkovChain.fitted([[0, 1, 1], [2, 0]], states=3, public=True, pseudocount=0.5)
    np.testing.assert_allclose(chain.transition[2], [0.6, 0.2, 0.2])
    np.testing.assert_allclose(chain.transition[0], [0.2, 0.6, 0.2])
    with pytest.raises(ParameterError, match="public must be True: a chain fitted on protected rows"):
        MarkovChain.fitted([[0, 1]], states=2, public=False)
    for rows in ([[0, 2]], [[-1, 0]], [[0.5]], [[[0]]]):
        with pytest.raises(ParameterError, match="integers from 0 to 1"):
            MarkovChain.fitted(rows, states=2, public=True)  # type: ignore[arg-type]
