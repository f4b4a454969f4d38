"""Private queries written in Python, which ask the same as SQL."""
