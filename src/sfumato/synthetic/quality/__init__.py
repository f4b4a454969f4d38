"""How near a synthetic table is to the real one: the curator's report, and a measure that is paid for."""
