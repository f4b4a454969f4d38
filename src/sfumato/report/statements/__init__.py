"""The guarantee of a release for machines: as metadata of Parquet and Arrow, and as JSON-LD."""
