"""Secrets, their pairs, the class of models, and the check of a mechanism against them by enumeration."""
