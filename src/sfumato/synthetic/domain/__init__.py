"""What a table may hold, declared and never read off the data."""
