"""Sums and ratios of several released numbers, recognised in expressions of SQL around private SELECTs.

Each released count or sum is a cell with noise of its own. A column that is a weighted sum of cells, or a
ratio of two, is carried with lists of the cells in it: those of a row, of a window that sums or looks at
other rows, or of a group that is summed. So it is known which noise it holds, and how often.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from sqlglot import exp

from sfumato.queries.release.linear_ratios import LinearForm, linear_ratio

__all__ = ["ColumnNoise", "Lookup", "NoiseTrees", "noise_of"]

Weights: TypeAlias = tuple[tuple[float, float], ...]

_LOOKS: Final = (exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue)
_ARITHMETIC: Final = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Paren, exp.Nullif)


@dataclass(frozen=True, slots=True)
class ColumnNoise:
    """Which noise is in a column.

    Parameters
    ----------
    weights : tuple of pairs of float
        What cells are multiplied by, in the numerator and in the denominator.
    cells : tuple of str
        For each of these, the column with the list of the cells.
    ratio : tuple of two str or None
        The columns of the numerator and the denominator; None where the column is a weighted sum itself.
    """

    weights: Weights
    cells: tuple[str, ...]
    ratio: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class NoiseTrees:
    """The same of an expression, with expressions in place of columns."""

    weights: Weights
    cells: tuple[exp.Expr, ...]
    ratio: tuple[exp.Expr, exp.Expr] | None = None

    @property
    def shape(self) -> tuple[Weights, bool]:
        """What two expressions have in common that can be the same column of a UNION."""
        return self.weights, self.ratio is None


Lookup: TypeAlias = Callable[[exp.Column], NoiseTrees | bool]
"""The noise of a column; True where it has none, False where it is not known."""


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A part of an expression that counts as one number, and the cells in it."""

    tree: exp.Expr
    parts: tuple[tuple[float, exp.Expr], ...]


def noise_of(tree: exp.Expr, lookup: Lookup, *, grouped: bool = False) -> NoiseTrees | None:
    """Return the noise of an expression that is a weighted sum of cells, or a ratio of two.

    Parameters
    ----------
    tree : sqlglot.exp.Expr
        Of nodes on the whitelist.
    lookup : callable
        The noise of a column.
    grouped : bool
        Whether the rows are aggregated, so that columns with noise stand in SUM.

    Returns
    -------
    NoiseTrees or None
        None where it is anything else, or has no noise.

    Examples
    --------
    >>> from sqlglot import column, parse_one
    >>> one = lambda node: NoiseTrees(((1.0, 0.0),), (column(f"{node.name}_cells"),))
    >>> found = noise_of(parse_one("n / SUM(n) OVER ()"), one)
    >>> found.weights
    ((1.0, 0.0), (0.0, 1.0))
    >>> found.cells[1].sql("duckdb")
    'FLATTEN(LIST(CASE WHEN NOT n IS NULL THEN n_cells END) OVER ())'
    """
    if isinstance(tree, exp.Column) and not grouped:
        found = lookup(tree)
        return found if isinstance(found, NoiseTrees) else None
    leaves: dict[str, _Leaf] = {}
    replaced = _Reader(lookup, grouped, leaves).replaced(tree)
    ratio = None if replaced is None else linear_ratio(replaced, leaves)
    if ratio is None:
        return None
    above, below = ratio.numerator, ratio.denominator
    weights, cells = [], []
    for name in sorted(ratio.names):
        for weight, cell in leaves[name].parts:
            weights.append((weight * above.weights.get(name, 0.0), weight * below.weights.get(name, 0.0)))
            cells.append(cell)
    if not cells:
        return None
    values = (_value(above, leaves), _value(below, leaves)) if below.weights else None
    return NoiseTrees(tuple(weights), tuple(cells), values)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Puts a column in place of each part of an expression that counts as one number."""

    lookup: Lookup
    grouped: bool
    leaves: dict[str, _Leaf]

    def replaced(self, node: exp.Expr) -> exp.Expr | None:
        """Return the expression over such columns; None where it cannot be a ratio of weighted sums."""
        if isinstance(node, exp.Literal):
            return node.copy()
        if self._free(node):
            return self._leaf(node, ())
        if isinstance(node, exp.Window | exp.Sum | exp.Column):
            return self._with_cells(node)
        if isinstance(node, exp.TryCast) and node.args["to"].this == exp.DataType.Type.DOUBLE:
            return self.replaced(node.this)
        kind = exp.Div if isinstance(node, exp.SafeDivide) else type(node)
        if kind not in _ARITHMETIC:
            return None
        parts = {key: self.replaced(node.args[key]) for key in ("this", "expression") if key in node.args}
        return None if None in parts.values() else kind(**parts)

    def _with_cells(self, node: exp.Expr) -> exp.Expr | None:
        """Return what stands for a window, a sum over a group or a column, if its cells are known."""
        if isinstance(node, exp.Window):
            return self._window(node)
        if isinstance(node, exp.Sum):
            return self._summed(node.this, node, lambda function: function) if self.grouped else None
        found = self.lookup(node) if isinstance(node, exp.Column) and not self.grouped else None
        if not isinstance(found, NoiseTrees) or found.ratio is not None:
            return None
        return self._leaf(node, _parts(found))

    def _free(self, node: exp.Expr) -> bool:
        """Whether there is no noise in an expression, whatever it is."""
        if any(node.find_all(exp.Window, exp.AggFunc, exp.Query)):
            return False
        return all(self.lookup(each) is True for each in node.find_all(exp.Column))

    def _leaf(self, node: exp.Expr, parts: Sequence[tuple[float, exp.Expr]]) -> exp.Expr:
        name = f"/{len(self.leaves)}"
        self.leaves[name] = _Leaf(node.copy(), tuple(parts))
        return exp.column(name)

    def _window(self, node: exp.Window) -> exp.Expr | None:
        """Return a window that sums cells, or looks at those of another row."""
        function = node.this

        def over(inner: exp.Expr) -> exp.Expr:
            copied = node.copy()
            copied.set("this", inner)
            return copied

        if isinstance(function, exp.Sum):
            return self._summed(function.this, node, over)
        if not isinstance(function, _LOOKS) or function.args.get("default") is not None:
            return None
        inner = self._sum_of(function.this)
        if inner is None:
            return None
        parts = []
        for (weight, _), cells in zip(inner.weights, inner.cells, strict=True):
            looked = function.copy()
            looked.set("this", cells)
            parts.append((weight, over(looked)))
        return self._leaf(node, parts)

    def _summed(
        self, argument: exp.Expr, node: exp.Expr, over: Callable[[exp.Expr], exp.Expr]
    ) -> exp.Expr | None:
        """Return a sum over rows, which leaves out those where what is summed is NULL."""
        within = _Reader(self.lookup, self.grouped and isinstance(node, exp.Window), {})
        inner = within._sum_of(argument)
        if inner is None:
            return None
        parts = []
        for (weight, _), cells in zip(inner.weights, inner.cells, strict=True):
            known = exp.Not(this=exp.Is(this=_closed(argument), expression=exp.Null()))
            chosen = exp.Case(ifs=[exp.If(this=known, true=cells.copy())])
            listed = over(exp.Anonymous(this="LIST", expressions=[chosen]))
            parts.append((weight, exp.Anonymous(this="FLATTEN", expressions=[listed])))
        return self._leaf(node, parts)

    def _sum_of(self, argument: exp.Expr) -> NoiseTrees | None:
        found = noise_of(argument, self.lookup, grouped=self.grouped)
        return None if found is None or found.ratio is not None else found


def _parts(found: NoiseTrees) -> list[tuple[float, exp.Expr]]:
    return [(weight, cells.copy()) for (weight, _), cells in zip(found.weights, found.cells, strict=True)]


def _closed(tree: exp.Expr) -> exp.Expr:
    return tree.copy() if isinstance(tree, exp.Column) else exp.Paren(this=tree.copy())


def _value(form: LinearForm, leaves: dict[str, _Leaf]) -> exp.Expr:
    """Return a weighted sum as an expression of floats."""
    total = _number(form.constant)
    for name, weight in form.weights.items():
        term = exp.Mul(this=_number(weight), expression=exp.Paren(this=leaves[name].tree.copy()))
        total = exp.Add(this=total, expression=term)
    return total


def _number(value: float) -> exp.Expr:
    written = repr(abs(value))
    literal = exp.Literal.number(written if "e" in written else f"{written}e0")
    return exp.Paren(this=exp.Neg(this=literal)) if value < 0 else literal
