"""What pages say, as data: one TOML file for each language."""
