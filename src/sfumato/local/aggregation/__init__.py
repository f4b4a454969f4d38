"""Reports in tables: counted in Arrow streams, Parquet files and Spark frames, in pieces that merge."""
