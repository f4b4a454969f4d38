"""Server halves for the same question asked again and again: two losses, and what rounds have in common."""
