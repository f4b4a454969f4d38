"""The process of a command: how it starts, is interrupted, and says what went wrong."""
