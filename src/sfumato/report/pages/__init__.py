"""Pages: a release in a table with intervals, who is protected, the odds in words, and how to check it."""
