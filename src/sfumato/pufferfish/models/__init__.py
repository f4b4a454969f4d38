"""Data models: what an adversary may believe about how the records were drawn."""
