"""The accountant: numbers on both sides, read off closed views and dominating pairs."""
