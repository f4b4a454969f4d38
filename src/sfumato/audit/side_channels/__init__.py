"""Side channels: what a run shows besides its output: time, memory, random state."""
