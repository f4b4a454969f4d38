"""The curator's console: what analysts ask, and what the others see, behind pages and an API."""
