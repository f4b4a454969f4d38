"""Leaves: one file per mechanism or declared guarantee, with the views that it proves."""
