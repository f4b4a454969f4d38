"""Dominating pairs of shuffled reports, by the theorem of the clones and by that of the privacy blanket."""
