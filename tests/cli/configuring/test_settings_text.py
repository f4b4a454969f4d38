"""Values in TOML: whatever is written is read back."""

from __future__ import annotations

import tomllib

from hypothesis import example, given
from hypothesis import strategies as st

from sfumato.cli.configuring.settings_text import toml_value

SCALARS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
)
NAMES = st.text(st.characters(exclude_categories=["Cs"]))


@example("\x7f")
@example("\U0001f600")
@given(st.one_of(SCALARS, st.lists(SCALARS), st.dictionaries(NAMES, SCALARS)))
def test_a_value_is_read_back(value: object) -> None:
    assert tomllib.loads(f"found = {toml_value(value)}\n")["found"] == value
