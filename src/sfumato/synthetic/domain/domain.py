"""All columns of a table with their cells: the public frame that synthetic tables and marginals live in."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self, final

import numpy as np
import pyarrow as pa

from sfumato import _check
from sfumato._wire import Format, canonical, parse
from sfumato.frames.arrow import as_arrow
from sfumato.synthetic.domain.attributes import Attribute, Codes, attribute_of
from sfumato.synthetic.domain.column_constraints import ColumnConstraint, described_constraint
from sfumato.synthetic.domain.decoding import decoded_column
from sfumato.synthetic.domain.dictionary import described_attribute, listed_attributes, read_dictionary
from sfumato.synthetic.domain.feasibility import consistent_zeros
from sfumato.synthetic.domain.schema_columns import schema_attributes
from sfumato.synthetic.domain.structural_zeros import (
    StructuralZero,
    impossible_rows,
    require_labels,
    structural_zeros,
    zero_labels,
)

__all__ = ["TableDomain"]

_FORMAT: Final = Format("sfumato.domain", 2)
_WITHOUT_ZEROS: Final = Format("sfumato.domain", 1)
_ZEROS: Final = "zeros"
_LISTS: Final = (_ZEROS, "constraints")


@final
class TableDomain(Mapping[str, Attribute]):
    """The columns of a table and the cells of each, declared.

    A domain that is read off the data (its distinct values, its smallest and largest) tells of single rows:
    so it comes from a schema, a questionnaire or a published dictionary of variables.

    Parameters
    ----------
    attributes : mapping of str to Categorical, Ordered or list, optional
        By name of column; a list is of categories.
    **named : Categorical, Ordered or list
        The same as keywords.

    Raises
    ------
    ParameterError
        If there is no column, or one is declared twice.

    Examples
    --------
    >>> from sfumato.synthetic import Ordered
    >>> domain = TableDomain(age=Ordered.integers(17, 90), sex=["f", "m"])
    >>> domain.sizes, domain.cells
    ((74, 2), 148)
    """

    def __init__(self, attributes: Mapping[str, object] | None = None, /, **named: object) -> None:
        given = dict(attributes or {})
        if not all(isinstance(name, str) for name in given):
            _check.refuse_type("attributes", "have texts as names of columns", given, "rename the column")
        twice = given.keys() & named.keys()
        if twice or not (given or named):
            found = f"{sorted(twice)[0]!r} is there twice" if twice else "there is none"
            _check.refuse_state("attributes", "be columns, each of them once", found, "declare each column")
        self._attributes = {name: attribute_of(name, each) for name, each in (given | named).items()}
        self._zeros: tuple[StructuralZero, ...] = ()

    def __getitem__(self, name: str) -> Attribute:
        return self._attributes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._attributes)

    def __len__(self) -> int:
        return len(self._attributes)

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, TableDomain) and list(self.items()) == list(other.items())
        return same and isinstance(other, TableDomain) and self._zeros == other._zeros

    def __hash__(self) -> int:
        return hash((tuple(self.items()), self._zeros))

    def __repr__(self) -> str:
        columns = ", ".join(f"{name}: {each.size}" for name, each in self.items())
        zeros = f", {len(self._zeros)} structural zeros" if self._zeros else ""
        return f"<TableDomain of {len(self)} columns, cells {columns}{zeros}>"

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many cells each column has."""
        return tuple(each.size for each in self.values())

    @property
    def cells(self) -> int:
        """How many cells the table of all columns has."""
        product = 1
        for size in self.sizes:
            product *= size
        return product

    @property
    def structural_zeros(self) -> tuple[StructuralZero, ...]:
        """Combinations of cells that cannot be: numbers of columns, and of each the cells."""
        return self._zeros

    def with_structural_zeros(self, *zeros: Mapping[str, Sequence[Any]]) -> TableDomain:
        """Return the domain with combinations of cells that cannot be, beside those that it has.

        A row in such a cell is not counted, like one with an undeclared value. Like all of a domain, they
        come from what is known without the data: a cell that happens to be empty is none.

        Parameters
        ----------
        *zeros : mapping of str to sequence
            Labels of cells by column: each row that has one of them in every of these columns cannot be.

        Returns
        -------
        TableDomain

        Raises
        ------
        ParameterError
            If a column or label is not declared, or no cell is left.

        Examples
        --------
        >>> domain = TableDomain(age=["child", "adult"], marital=["single", "married", "widowed"])
        >>> domain = domain.with_structural_zeros({"age": ["child"], "marital": ["married", "widowed"]})
        >>> domain.encode(pa.table({"age": ["child", "adult"], "marital": ["married", "married"]})).tolist()
        [[1, 1]]
        """
        return self._with(structural_zeros(self, zeros))

    def with_constraints(self, *constraints: ColumnConstraint) -> TableDomain:
        """Return the domain with the structural zeros that constraints between columns make.

        Parameters
        ----------
        *constraints : Implication or ColumnOrder
            Declared, like all of a domain: a rule that the data happen to follow is none.

        Returns
        -------
        TableDomain

        Raises
        ------
        ParameterError
            If a column or label is not declared, a constraint forbids nothing, or no cell is left.

        Examples
        --------
        >>> from sfumato.synthetic import Implication, Ordered
        >>> domain = TableDomain(work=["no", "yes"], hours=Ordered.integers(0, 60))
        >>> domain.with_constraints(Implication({"hours": "> 0"}, {"work": "yes"}))
        <TableDomain of 2 columns, cells work: 2, hours: 61, 1 structural zeros>
        """
        return self._with([zero for each in constraints for zero in each.zeros(self)])

    def _with(self, zeros: Sequence[StructuralZero]) -> TableDomain:
        require_labels(self, zeros)
        made = TableDomain(self._attributes)
        made._zeros = consistent_zeros(self.sizes, (*self._zeros, *zeros))
        return made

    def index(self, name: str) -> int:
        """Return which column that is, from 0.

        Parameters
        ----------
        name : str

        Returns
        -------
        int

        Raises
        ------
        ParameterError
            If there is none of that name.
        """
        asked: object = name
        if not isinstance(asked, str) or name not in self._attributes:
            _check.refuse("column", f"be one of {list(self)}", name, "declare it in the domain")
        return list(self).index(name)

    def encode(self, table: Any) -> Codes:
        """Return the cells of each row that is counted.

        A row is left out if a column of it has no cell: an undeclared value without ``other``, or NULL
        without ``missing``; or if its combination of cells cannot be. Numbers beyond an ordered column's ends
        are counted at them. Rows are counted or left out one by one, so that no row decides on another.

        Parameters
        ----------
        table : frame
            Of Arrow, pandas, Polars or another library that `sfumato.frames.as_arrow` takes; private. Columns
            that are not declared are not read.

        Returns
        -------
        int64 array of shape (rows, columns)

        Raises
        ------
        ParameterError
            If a declared column is not there once, or is of another type, whatever is in it.
        """
        arrow = as_arrow("table", table)
        codes = np.empty((arrow.num_rows, len(self)), np.int64)
        for place, (name, attribute) in enumerate(self.items()):
            if arrow.schema.names.count(name) != 1:
                rule = "have each declared column once"
                found = f"{name!r} is there {arrow.schema.names.count(name)} times"
                _check.refuse_state("table", rule, found, "rename its columns, or declare others")
            codes[:, place] = attribute.encode(name, pa.chunked_array(arrow[name]))
        codes = codes[(codes >= 0).all(axis=1)]
        return codes[~impossible_rows(codes, self.sizes, self._zeros)] if self._zeros else codes

    def decode(self, codes: Codes, *, rng: np.random.Generator | None = None) -> pa.Table:
        """Return rows of cells as a table of values.

        Parameters
        ----------
        codes : int64 array of shape (rows, columns)
        rng : numpy Generator, optional
            Draws a uniform number or day of each bin of an ordered column; unless given, the value is the
            bin's label.

        Returns
        -------
        pyarrow.Table
        """
        columns = [
            decoded_column(each, codes[:, place], rng) for place, each in enumerate(self._attributes.values())
        ]
        return pa.table(columns, names=list(self))

    def to_json(self) -> str:
        """Return the domain as a document of the format ``sfumato.domain``.

        Returns
        -------
        str
        """
        columns = [{"name": name, **each.described()} for name, each in self.items()]
        if not self._zeros:
            return canonical(_WITHOUT_ZEROS.wrap({"columns": columns}))
        zeros = [zero_labels(self, zero) for zero in self._zeros]
        return canonical(_FORMAT.wrap({"columns": columns, _ZEROS: zeros}))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the domain that `to_json` wrote.

        Parameters
        ----------
        text : str

        Returns
        -------
        TableDomain

        Raises
        ------
        ParameterError
            If it is no such document.
        """
        fields = _FORMAT.unwrap("text", parse("text", text))[1]
        unknown = sorted(fields.keys() - {"columns", _ZEROS})
        if unknown:  # a misspelled field would be zeros that are not there
            _check.refuse("text", f"have columns and {_ZEROS} alone", unknown[0], "correct its name")
        made = cls(listed_attributes(fields.get("columns")))
        made._zeros = structural_zeros(made, fields.get(_ZEROS, []))
        return made

    @classmethod
    def from_toml(cls, path: str | Path) -> TableDomain:
        r"""Return the domain of a TOML file with a table for each column.

        Parameters
        ----------
        path : str or Path
            Each table says ``values``, ``integers``, ``edges``, or ``lower``, ``upper`` and ``bins``, and
            ``missing`` or ``other`` as in `Categorical` and `Ordered`. A list of tables, ``[[zeros]]``, has
            the structural zeros; another one, ``[[constraints]]``, has ``when`` and ``then`` as in
            `Implication`, or ``order`` as in `ColumnOrder`.

        Returns
        -------
        TableDomain

        Raises
        ------
        ParameterError
            If the file cannot be read so.

        Examples
        --------
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "people.toml"
        >>> text = '[age]\nintegers = [17, 90]\n[sex]\nvalues = ["f", "m"]\nmissing = true\n'
        >>> _ = path.write_text(text)
        >>> TableDomain.from_toml(path)
        <TableDomain of 2 columns, cells age: 74, sex: 3>
        """
        try:
            document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            _check.refuse("path", "be a TOML file with a table for each column", str(path), "check the file")
        zeros, constraints = (
            document.pop(name) if isinstance(document.get(name), list) else [] for name in _LISTS
        )
        made = cls({name: described_attribute(name, each) for name, each in document.items()})
        return made.with_structural_zeros(*zeros).with_constraints(*map(described_constraint, constraints))

    @classmethod
    def from_dictionary(cls, path: str | Path, *, texts: Sequence[str] = ()) -> Self:
        r"""Return the domain of a published dictionary of variables.

        Parameters
        ----------
        path : str or Path
            A CSV file with a header, or a JSON file of a list of objects (alone, or as ``variables``). The
            columns of the one, and the keys of the other, are ``name``, and ``value`` for each category, or
            ``lower`` and ``upper`` of a scale with ``bins``, or of whole numbers without. A row with a label
            and no value is that of NULL. ``missing`` and ``other`` are as in `Categorical`; ``label`` and
            further columns are for people. In JSON, ``values`` lists the categories of a variable.
        texts : sequence of str
            Variables of the CSV file whose values are texts, although all of them are whole numbers, or true
            and false.

        Returns
        -------
        TableDomain

        Raises
        ------
        ParameterError
            If the file cannot be read so.

        Examples
        --------
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "variables.csv"
        >>> lines = ["name,value,label,lower,upper", "SEX,1,Male,,", "SEX,2,Female,,", "AGE,,,0,99"]
        >>> _ = path.write_text("\n".join(lines))
        >>> TableDomain.from_dictionary(path)
        <TableDomain of 2 columns, cells SEX: 2, AGE: 100>
        """
        return cls(read_dictionary(Path(path), texts))

    @classmethod
    def from_schema(
        cls,
        schema: pa.Schema,
        declared: Mapping[str, object] | None = None,
        *,
        columns: Sequence[str] | None = None,
    ) -> Self:
        """Return the domain of a table's schema, with declared cells where a type does not say them.

        Parameters
        ----------
        schema : pyarrow.Schema
            A truth value has the cells False and True, and one for NULL where the column may be NULL. The
            type of no other column says its cells: the list of a dictionary type comes with the data.
        declared : mapping of str to Categorical, Ordered or list, optional
            The cells of columns, as of a dictionary of variables; those that the schema lacks are left out.
        columns : sequence of str, optional
            Those that are wanted, in order; all unless given.

        Returns
        -------
        TableDomain

        Raises
        ------
        ParameterError
            If a column is not in the schema once, has no cells, or is declared with cells of another type.

        Examples
        --------
        >>> schema = pa.schema([pa.field("smokes", pa.bool_(), nullable=False), ("age", pa.int16())])
        >>> TableDomain.from_schema(schema, {"age": range(100)})
        <TableDomain of 2 columns, cells smokes: 2, age: 100>
        """
        return cls(schema_attributes(schema, declared, columns))
