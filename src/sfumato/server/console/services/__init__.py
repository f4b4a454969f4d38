"""What both a screen and a route of the API do, once: each takes plain values and returns plain facts."""
