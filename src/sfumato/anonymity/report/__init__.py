"""The report of a table: every measure and risk, computed when it is asked for."""
