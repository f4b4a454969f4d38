"""Strings that many people have, found without a list of candidates."""
