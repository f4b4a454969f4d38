"""Client halves for a question that is asked again and again: what is drawn for good, and what each time."""
