"""What a screen takes and gives: a visit, and a page, a way onward or a file."""
