"""All columns of a table with their cells: the public frame that synthetic tables and marginals live in."""

from __future__ import annotations

import datetime as dt
import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Self, final

import numpy as np
import pyarrow as pa

from sfumato import _check
from sfumato._wire import Format, canonical, parse
from sfumato.errors import ParameterError
from sfumato.frames.arrow import as_arrow
from sfumato.synthetic.domain.attributes import Attribute, Categorical, Codes, Ordered, attribute_of

__all__ = ["TableDomain"]

_FORMAT: Final = Format("sfumato.domain", 1)
_KEYS: Final = frozenset({"values", "other", "missing", "integers", "edges", "lower", "upper", "bins"})
_REMEDY: Final = "write values = [...], integers = [0, 9], edges = [...], or lower, upper and bins"


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

    def __getitem__(self, name: str) -> Attribute:
        return self._attributes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._attributes)

    def __len__(self) -> int:
        return len(self._attributes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableDomain) and list(self.items()) == list(other.items())

    def __hash__(self) -> int:
        return hash(tuple(self.items()))

    def __repr__(self) -> str:
        columns = ", ".join(f"{name}: {each.size}" for name, each in self.items())
        return f"<TableDomain of {len(self)} columns, cells {columns}>"

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
        if name not in self._attributes:
            _check.refuse("column", f"be one of {list(self)}", name, "declare it in the domain")
        return list(self).index(name)

    def encode(self, table: Any) -> Codes:
        """Return the cells of each row that is counted.

        A row is left out if a column of it has no cell: an undeclared value without ``other``, or NULL
        without ``missing``. Numbers beyond an ordered column's ends are counted at them. Rows are counted or
        left out one by one, so that no row decides on another.

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
        return codes[(codes >= 0).all(axis=1)]

    def decode(self, codes: Codes) -> pa.Table:
        """Return rows of cells as a table of the cells' labels.

        Parameters
        ----------
        codes : int64 array of shape (rows, columns)

        Returns
        -------
        pyarrow.Table
        """
        columns = [
            pa.array(each.labels).take(pa.array(codes[:, place]))
            for place, each in enumerate(self._attributes.values())
        ]
        return pa.table(columns, names=list(self))

    def to_json(self) -> str:
        """Return the domain as a document of the format ``sfumato.domain``.

        Returns
        -------
        str
        """
        columns = [{"name": name, **each.described()} for name, each in self.items()]
        return canonical(_FORMAT.wrap({"columns": columns}))

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
        columns = _FORMAT.unwrap("text", parse("text", text))[1].get("columns")
        if not isinstance(columns, list) or not all(isinstance(each, dict) for each in columns):
            _check.refuse_type("columns", "be a list of objects", columns, "pass what to_json returned")
        return cls({str(each.pop("name", "")): _attribute("column", each) for each in columns})

    @classmethod
    def from_toml(cls, path: str | Path) -> Self:
        r"""Return the domain of a TOML file with a table for each column.

        Parameters
        ----------
        path : str or Path
            Each table says ``values``, ``integers``, ``edges``, or ``lower``, ``upper`` and ``bins``, and
            ``missing`` or ``other`` as in `Categorical` and `Ordered`.

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
        return cls({name: _attribute(name, each) for name, each in document.items()})


def _attribute(name: str, given: object) -> Attribute:
    """Return what a document's object describes."""
    if not isinstance(given, dict) or not given.keys() <= _KEYS:
        _check.refuse_type(name, f"be an object of {sorted(_KEYS)}", given, _REMEDY)
    said = dict(given)
    try:
        if "values" in said:
            return Categorical(**said)
        if "integers" in said:
            lower, upper = said.pop("integers")
            return Ordered.integers(lower, upper, **said)
        if "edges" in said:
            said["edges"] = [dt.date.fromisoformat(e) if isinstance(e, str) else e for e in said["edges"]]
        return Ordered(**said)
    except ParameterError:
        raise
    except (TypeError, ValueError):
        _check.refuse(name, "describe cells", json.dumps(given, default=str), _REMEDY)
