"""Configuration files: ``sfumato init`` writes them, with every setting, its meaning and its default."""
