"""The guarantee of this room, which is no epsilon of differential privacy."""
