"""PostgreSQL, where tables stay in their database: source, dialect, engine and fingerprint."""
