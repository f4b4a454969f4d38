"""Several randomized questions to each person, and how many of them are true of somebody."""
