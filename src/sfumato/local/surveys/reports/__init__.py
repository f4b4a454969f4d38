"""One survey's report: what was found, how it was asked, what an answer shows, and what is not promised."""
