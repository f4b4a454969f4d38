"""What a generator asked of a table, and what its answers would have cost for a neighbor."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.mechanisms.selection.exponential import Exponential
from sfumato.numerics.distributions.discrete import DiscreteGaussianDistribution
from sfumato.privacy import Exponential as ExponentialLoss
from sfumato.privacy import Neighboring
from sfumato.synthetic import TableDomain
from sfumato.synthetic.generators import private_table
from sfumato.synthetic.generators.private_table import PrivateTable
from sfumato.synthetic.generators.table_shift import TableShift
from sfumato.synthetic.marginals.table_counts import table_counts

DOMAIN = TableDomain(a=[0, 1], b=[0, 1, 2], c=[0, 1])
ROWS = [(0, 0, 0)] * 3 + [(1, 2, 1)] * 2 + [(0, 1, 1)]
UNCOUNTED = (0, 0, None)
_NONE: Any = None  # nothing is drawn


def as_table(rows: Any) -> pa.Table:
    """Rows as a table; None is a value that has no cell."""
    return pa.table({name: pa.array([row[i] for row in rows], pa.int64()) for i, name in enumerate("abc")})


def neighbors(relation: Neighboring) -> Iterator[list[Any]]:
    """All neighbors of `ROWS`, up to the order of rows."""
    cells = [*product(range(2), range(3), range(2)), UNCOUNTED]
    less = [[*ROWS[:i], *ROWS[i + 1 :]] for i in range(len(ROWS)) if ROWS[i] not in ROWS[:i]]
    if relation is Neighboring.ADD_REMOVE:
        yield from ([*ROWS, row] for row in cells)
        yield from less
    else:
        yield from ([*rest, row] for rest in less for row in cells)


class Transcript:
    """Records every draw of a generator: the parameters that it was drawn with, and what was asked."""

    def __init__(self, monkeypatch: Any) -> None:
        self.drawn: list[Any] = []
        asked = self.drawn

        class Noise:
            def __init__(self, sigma: Fraction) -> None:
                self.real = DiscreteGaussianDistribution(sigma)

            def sample(self, *given: Any) -> Any:
                asked[-1]["sigma"] = Fraction(self.real.sigma)
                return self.real.sample(*given)

        class Choice:
            def __init__(self, **given: Any) -> None:
                self.real, self.privacy_loss = Exponential(**given), Exponential(**given).privacy_loss

            def release(self, scores: Any, source: Any) -> Any:
                asked[-1]["scale"] = Fraction(self.real.scale)
                return self.real.release(scores, source)

        monkeypatch.setattr(private_table, "DiscreteGaussianDistribution", Noise)
        monkeypatch.setattr(private_table, "Exponential", Choice)
        measure, choose = PrivateTable.measure, PrivateTable.choose

        def measured(table: PrivateTable, clique: Any, sigma: Any) -> Any:
            asked.append({"clique": clique, "groups": table.groups})
            answer = measure(table, clique, sigma)
            asked[-1] |= {
                "charged": table.charged[-1],
                "answer": answer,
                "parameter": sigma,
                "left": table.left,
            }
            return answer

        def chosen(table: PrivateTable, candidates: Any, rho: Any) -> Any:
            asked.append({"candidates": candidates, "groups": table.groups})
            answer = choose(table, candidates, rho)
            asked[-1] |= {
                "charged": table.charged[-1],
                "answer": answer,
                "parameter": rho,
                "left": table.left,
            }
            return answer

        monkeypatch.setattr(PrivateTable, "measure", measured)
        monkeypatch.setattr(PrivateTable, "choose", chosen)

    def costs(self, rows: Any, relation: Neighboring = Neighboring.ADD_REMOVE) -> list[tuple[float, float]]:
        """For each answer its exact rho between `ROWS` and a neighbor, and the rho that was charged."""
        shift = TableShift(relation)
        tables = [
            PrivateTable(table_counts(DOMAIN, as_table(each)), DOMAIN.sizes, Fraction(1), shift, _NONE)
            for each in (ROWS, rows)
        ]
        found, groups = [], None
        for step in self.drawn:
            if step["groups"] is not groups:
                groups = step["groups"]
                for table in tables:
                    table.merge(groups)
            if "clique" in step:
                here, there = (table._counted(step["clique"]) for table in tables)
                exact = float(((here - there) ** 2).sum() / (2 * step["sigma"] ** 2))
            else:
                scores = [[table.score(each) for each in step["candidates"]] for table in tables]
                moved = np.subtract(scores[1], scores[0])
                exact = ExponentialLoss(float((moved.max() - moved.min()) / step["scale"])).zcdp().rho
            found.append((exact, step["charged"].zcdp().rho))
        return found
