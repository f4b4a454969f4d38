"""What all plots share: names that are written as they stand, and numbers that matplotlib can draw."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.numerics.interval import Interval
from sfumato.privacy.interpretation.plotting import axes, draw_line, draw_map
from tests.drawings import band, line, new_axes, written


def rendered(ax: Any) -> Any:
    """Draw axes to the end: matplotlib reads texts and numbers only then."""
    ax.figure.savefig(io.BytesIO(), format="svg")
    return ax


def test_names_are_written_as_they_stand() -> None:
    names = [r"$\frac$", "_x", "\x1b[2J\n", "\ud800", "y" * 10_000]
    plain = [r"\$\frac\$", " _x", r"\x1b[2J\n", r"\ud800", "y" * 37 + "..."]
    ax = new_axes()
    for name in names:
        draw_line(names, range(5), ax=ax, label=name)
    ax.legend()
    assert [text.get_text() for text in rendered(ax).get_legend().get_texts()] == plain
    assert written(ax) == plain
    ax = rendered(draw_map(np.eye(5), (names, names), ax=new_axes()))
    assert written(ax) == [text.get_text() for text in ax.get_yticklabels()] == plain
    assert len(written(draw_line([str(at) for at in range(999)], range(999), ax=new_axes()))) <= 24


def test_numbers_without_end_are_left_out() -> None:
    y = np.array([1.0, np.inf, 1.7e308, 5e-324])
    ax = rendered(draw_line([0, 1, 2, 3], y, Interval(-y, y), ax=new_axes()))
    np.testing.assert_array_equal(line(ax)[1], [1.0, np.nan, np.nan, 5e-324])
    rendered(draw_map(y[None], (["a"], "bcde"), ax=new_axes()))
    rendered(draw_line(y, y, ax=new_axes()))
    assert band(draw_line([0, 1], y[:2], Interval(-y[:2], np.ones(2)), ax=new_axes())) == [(-1.0, 1.0)]


def test_what_are_no_axes_is_refused() -> None:
    for given in (3, new_axes().figure, np.array([new_axes()])):
        with pytest.raises(ParameterError, match="ax must be matplotlib's axes, got a value of type"):
            axes(given)
