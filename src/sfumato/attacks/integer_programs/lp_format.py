"""Read linear and integer programs from CPLEX LP files, such as those of census reconstruction."""

from __future__ import annotations

import gzip
import lzma
import math
import os
from array import array
from bisect import bisect_left
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from sfumato import _check
from sfumato.attacks.integer_programs.integer_program import IntegerProgram
from sfumato.attacks.integer_programs.lp_tokens import OPERATORS, Section, refuse_line, sections

__all__ = ["parse_lp", "read_lp"]

_INFINITE = {"inf", "infinity"}
_SIGNS = {"+", "-"}
_DIGITS = "0123456789."
_FLIPPED = {"<=": ">=", ">=": "<=", "=": "="}
_OPENERS = {"gzip": (b"\x1f\x8b", gzip.decompress), "xz": (b"\xfd7zXZ\x00", lzma.decompress)}


def read_lp(path: str | os.PathLike[str]) -> IntegerProgram:
    r"""Read a program from a CPLEX LP file, plain or compressed by gzip or xz.

    Parameters
    ----------
    path : path

    Returns
    -------
    IntegerProgram

    Raises
    ------
    ParameterError
        If the file is no linear or integer program in this format; the message has the line.
    OSError
        If it cannot be read.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "block.lp"
    >>> _ = file.write_text("Minimize x\nSubject To\n total: x + y = 3\nGenerals\n x y\nEnd\n")
    >>> read_lp(file).solve().values
    {'x': 0, 'y': 3}
    """
    content = Path(path).read_bytes()
    for magic, decompress in _OPENERS.values():
        if content.startswith(magic):
            try:
                content = decompress(content)
            except (OSError, EOFError, lzma.LZMAError):
                _check.refuse("LP file", "be whole and undamaged", os.fspath(path), "fetch it again")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        refuse_line(line, "be text in UTF-8", "other bytes")
    return parse_lp(text)


def parse_lp(text: str) -> IntegerProgram:
    r"""Read a program from the text of a CPLEX LP file.

    Parameters
    ----------
    text : str
        An objective, constraints, bounds, generals and binaries, as CPLEX describes them: comments, names
        of up to any length, ranges (``1 <= x + y <= 5``), constants on the left side, expressions that go
        on over lines, free and infinite bounds.

    Returns
    -------
    IntegerProgram

    Raises
    ------
    ParameterError
        If it is malformed, quadratic, or has sections that make it no linear program with integers; the
        message has the line.

    Examples
    --------
    >>> program = parse_lp("Max x + 2 y\nst c: x + y <= 4.5\nBounds\n y <= 3\nIntegers\n x\nEnd")
    >>> found = program.solve()
    >>> found.values, found.objective
    ({'x': 1, 'y': 3}, 7.0)
    """
    reader = _Reader()
    for section in sections(text):
        reader.read(section)
    return reader.program()


class _Reader:
    """What was read so far: columns by name, rows as triples."""

    def __init__(self) -> None:
        self.columns: dict[str, int] = {}
        self.rows: list[str] = []
        self.row_lower, self.row_upper = array("d"), array("d")
        self.ends, self.indices, self.data = array("q", [0]), array("q"), array("d")
        self.lower: dict[int, float] = {}
        self.upper: dict[int, float] = {}
        self.integers: set[int] = set()
        self.objective: tuple[array[int], array[float]] = (array("q"), array("d"))
        self.offset = 0.0
        self.maximize = False
        self.stops: list[int] = []

    def read(self, section: Section) -> None:
        """Read one section."""
        if section.kind in {"minimize", "maximize"}:
            self.maximize = section.kind == "maximize"
            self._objective(section)
        elif section.kind == "constraints":
            self.stops = [place for place, token in enumerate(section.tokens) if token in OPERATORS]
            place = 0
            while place < len(section.tokens):
                place = self._constraint(section, place)
        elif section.kind == "bounds":
            place = 0
            while place < len(section.tokens):
                place = self._bound(section, place)
        else:
            self._integers(section)

    def _label(self, section: Section, place: int) -> tuple[str | None, int]:
        tokens = section.tokens
        if place + 1 < len(tokens) and tokens[place + 1] == ":":
            if not _is_name(tokens[place]):
                section.refuse(place, "have a name before a colon")
            return tokens[place], place + 2
        return None, place

    def _objective(self, section: Section) -> None:
        _, place = self._label(section, 0)
        constant, place = self._expression(section, place, *self.objective)
        self.offset = constant
        if place < len(section.tokens):
            section.refuse(place, "have one linear objective")

    def _constraint(self, section: Section, place: int) -> int:
        """Read ``[name:] [number <=] expression <= number`` and return where it ends."""
        name, place = self._label(section, place)
        tokens = section.tokens
        constant, after = self._expression(section, place, self.indices, self.data)
        lower, upper = -math.inf, math.inf
        if after < len(tokens) and len(self.indices) == self.ends[-1]:
            # a range: the number on the left was read as an expression without variables
            lower, upper = self._limits(section, after, constant, flipped=True)
            constant, after = self._expression(section, after + 1, self.indices, self.data)
            if len(self.indices) == self.ends[-1]:
                section.refuse(place, "have a variable in every constraint")
            lower, upper = lower - constant, upper - constant
            if after >= len(tokens) or tokens[after] not in OPERATORS:
                return self._row(name, lower, upper, after)
        if after >= len(tokens) or tokens[after] not in OPERATORS:
            section.refuse(after, "have <=, >= or = after a linear expression")
        bound, stop = self._number(section, after + 1)
        below, above = self._limits(section, after, bound - constant)
        return self._row(name, max(lower, below), min(upper, above), stop)

    def _row(self, name: str | None, lower: float, upper: float, stop: int) -> int:
        self.rows.append(name or f"R{len(self.rows) + 1}")
        self.row_lower.append(lower)
        self.row_upper.append(upper)
        self.ends.append(len(self.indices))
        return stop

    def _limits(
        self, section: Section, place: int, bound: float, *, flipped: bool = False
    ) -> tuple[float, float]:
        operator = self._operator(section, place)
        operator = _FLIPPED[operator] if flipped else operator
        return (bound if operator != "<=" else -math.inf), (bound if operator != ">=" else math.inf)

    def _expression(
        self, section: Section, place: int, indices: array[int], data: array[float]
    ) -> tuple[float, int]:
        """Append an expression's terms, and return its constant and where it ends."""
        if stop := self._sum(section, place, indices, data):
            return 0.0, stop
        tokens, constant, start = section.tokens, 0.0, place
        while place < len(tokens) and tokens[place] not in OPERATORS:
            sign, place = self._sign(section, place, needed=place > start)
            factor = 1.0
            is_number = place < len(tokens) and tokens[place][0] in _DIGITS
            if is_number:
                factor, place = float(tokens[place]), place + 1
            if place < len(tokens) and _is_name(tokens[place]):
                indices.append(self.columns.setdefault(tokens[place], len(self.columns)))
                data.append(sign * factor)
                place += 1
            elif is_number:
                constant += sign * factor
            else:
                section.refuse(place, "have a number or a name after a sign")
        return constant, place

    def _sign(self, section: Section, place: int, *, needed: bool) -> tuple[float, int]:
        tokens, sign, start = section.tokens, 1.0, place
        if not _is_name(tokens[place]) and tokens[place] not in _SIGNS and tokens[place][0] not in _DIGITS:
            section.refuse(place, "be a linear program: sums of numbers times variables")
        while place < len(tokens) and tokens[place] in _SIGNS:
            sign = -sign if tokens[place] == "-" else sign
            place += 1
        if needed and place == start:
            section.refuse(place, "have + or - between terms")
        return sign, place

    def _sum(self, section: Section, place: int, indices: array[int], data: array[float]) -> int:
        """Append ``x + y + z`` of known names fast, and return where it ends; 0 if it is anything else."""
        following = bisect_left(self.stops, place)
        if following == len(self.stops):
            return 0
        stop = self.stops[following]
        names = section.tokens[place:stop:2]
        if (stop - place) % 2 == 0 or set(section.tokens[place + 1 : stop : 2]) - {"+"}:
            return 0
        try:
            found = [self.columns[name] for name in names]
        except KeyError:
            return 0
        indices.extend(found)
        data.extend([1.0] * len(found))
        return stop

    def _number(self, section: Section, place: int) -> tuple[float, int]:
        tokens, sign = section.tokens, 1.0
        while place < len(tokens) and tokens[place] in _SIGNS:
            sign = -sign if tokens[place] == "-" else sign
            place += 1
        if place >= len(tokens):
            section.refuse(place, "have a number after <=, >= or =")
        if tokens[place].lower() in _INFINITE:
            return sign * math.inf, place + 1
        if tokens[place][0] not in _DIGITS:
            section.refuse(place, "have a number after <=, >= or =")
        return sign * float(tokens[place]), place + 1

    def _bound(self, section: Section, place: int) -> int:
        """Read ``x free``, ``x <= 1``, ``0 <= x`` or ``0 <= x <= 1``, and return where it ends."""
        tokens = section.tokens
        _, place = self._label(section, place)
        given: list[tuple[str, float]] = []
        if place < len(tokens) and (not _is_name(tokens[place]) or tokens[place].lower() in _INFINITE):
            bound, place = self._number(section, place)
            operator, place = self._operator(section, place), place + 1
            given.append((_FLIPPED[operator], bound))
        if place >= len(tokens) or not _is_name(tokens[place]):
            section.refuse(place, "have a variable in every bound")
        column = self.columns.setdefault(tokens[place], len(self.columns))
        place += 1
        if not given and place < len(tokens) and tokens[place].lower() == "free":
            given, place = [(">=", -math.inf), ("<=", math.inf)], place + 1
        elif not given or (place < len(tokens) and tokens[place] in OPERATORS):
            operator = self._operator(section, place)
            bound, place = self._number(section, place + 1)
            given.append((operator, bound))
        for operator, bound in given:
            if operator != "<=":
                self.lower[column] = bound
            if operator != ">=":
                self.upper[column] = bound
        if self.upper.get(column, 0.0) < 0:
            self.lower.setdefault(column, -math.inf)  # CPLEX's rule
        return place

    def _operator(self, section: Section, place: int) -> str:
        if place >= len(section.tokens) or section.tokens[place] not in OPERATORS:
            section.refuse(place, "have <=, >= or = here")
        return OPERATORS[section.tokens[place]]

    def _integers(self, section: Section) -> None:
        for place, name in enumerate(section.tokens):
            if not _is_name(name):
                section.refuse(place, "have names only among its integers")
            column = self.columns.setdefault(name, len(self.columns))
            self.integers.add(column)
            if section.kind == "binaries":
                self.lower[column], self.upper[column] = 0.0, 1.0

    def program(self) -> IntegerProgram:
        """Return what was read."""
        count = len(self.columns)
        lower, upper = np.zeros(count), np.full(count, np.inf)
        lower[list(self.lower)] = list(self.lower.values())
        upper[list(self.upper)] = list(self.upper.values())
        integer = np.zeros(count, dtype=bool)
        integer[list(self.integers)] = True
        objective = np.zeros(count)
        np.add.at(objective, np.asarray(self.objective[0], dtype=np.int64), np.asarray(self.objective[1]))
        matrix = csr_array(
            (np.asarray(self.data), np.asarray(self.indices), np.asarray(self.ends)),
            shape=(len(self.rows), count),
        )
        matrix.sum_duplicates()
        return IntegerProgram(
            objective=objective,
            matrix=matrix,
            row_lower=np.asarray(self.row_lower),
            row_upper=np.asarray(self.row_upper),
            lower=lower,
            upper=upper,
            integer=integer,
            variables=tuple(self.columns),
            rows=tuple(self.rows),
            maximize=self.maximize,
            offset=self.offset,
        )


def _is_name(token: str) -> bool:
    return token[0] not in "0123456789.+-*/^[]:<>=\\"
