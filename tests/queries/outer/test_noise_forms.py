"""Expressions of several released numbers: which are weighted sums or ratios, and what noise is in them."""

from __future__ import annotations

from sqlglot import exp, parse_one

from sfumato.queries.outer.noise_forms import NoiseTrees, noise_of
from tests.cases import cases


def lookup(node: exp.Column) -> NoiseTrees | bool:
    """Return one cell for n, m and k; none for w, a public number; a has noise of another kind."""
    if node.name in "nmk":
        return NoiseTrees(((1.0, 0.0),), (exp.column(f"{node.name}_cells"),))
    return node.name == "w"


def read(text: str, *, grouped: bool = False) -> NoiseTrees | None:
    tree = parse_one(text, dialect="bigquery")
    tree = tree.transform(lambda node: exp.Sum(this=node.expressions[0]) if node.name == "TOTAL" else node)
    return noise_of(tree, lookup, grouped=grouped)


@cases(
    "text, weights",
    [
        ("n", [(1, 0)]),
        ("n + m", [(1, 0), (1, 0)]),
        ("2 * (n - m) / 4", [(0.5, 0), (-0.5, 0)]),
        ("n / m", [(1, 0), (0, 1)]),
        ("SAFE_DIVIDE(100 * n, n + m)", [(100, 0), (0, 1), (0, 1)]),
        ("n - w + m", [(1, 0), (1, 0)]),
        ("(n - w) / w", [(1, 0)]),
        ("n / SUM(n) OVER ()", [(1, 0), (0, 1)]),
        ("SUM(n - 3 * m) OVER (ORDER BY w ROWS 2 PRECEDING)", [(1, 0), (-3, 0)]),
        ("n - LAG(n, 1) OVER (ORDER BY w)", [(1, 0), (-1, 0)]),
    ],
)
def test_weighted_sums_and_ratios(text: str, weights: list[tuple[float, float]]) -> None:
    found = read(text)
    assert found is not None
    assert sorted(found.weights) == sorted(weights)
    assert len(found.cells) == len(weights)
    assert (found.ratio is None) == all(below == 0 for _, below in weights) or "/ w" in text


@cases(
    "text",
    [
        "w",
        "w * 2 + 1",
        "n * m",
        "n * w",
        "n + a",
        "n / m + k",
        "ABS(n) + m",
        "COALESCE(n, 0) + m",
        "IF(n > 3, n, m)",
        "LAG(n, 1, 0) OVER (ORDER BY w)",
        "MAX(n) OVER ()",
        "SUM(DISTINCT n) OVER ()",
        "SUM(n / m) OVER ()",
        "n + RANK() OVER (ORDER BY n)",
        "SUM(n)",
    ],
)
def test_what_is_neither(text: str) -> None:
    assert read(text) is None


def test_of_a_group_only_sums_are_known() -> None:
    found = read("SUM(n + m) / SUM(SUM(k)) OVER ()", grouped=True)
    assert found is not None
    assert found.weights == ((1.0, 0.0), (1.0, 0.0), (0.0, 1.0))
    # what is NULL is not summed, and its cells are not either
    assert found.cells[1].sql("duckdb") == "FLATTEN(LIST(CASE WHEN NOT (n + m) IS NULL THEN m_cells END))"
    assert read("n + SUM(m)", grouped=True) is None
    assert read("SUM(w) + 1", grouped=True) is None
