"""What a lie gains: at most, by theorem from the loss; and exactly, for one game."""
