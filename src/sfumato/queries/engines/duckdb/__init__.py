"""DuckDB, for files and frames: its dialect, its tables, the engine, and the fingerprint of content."""
