"""Who fits the families of a level, and what is shown of it."""
