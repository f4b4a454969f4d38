"""Recipes for accuracy: augmented views, averaged weights, standardised weights, frozen features."""
