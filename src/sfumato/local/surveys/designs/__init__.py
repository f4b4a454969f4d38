"""Designs of randomized response, one a file: what is asked, and the exact chance of each answer."""
