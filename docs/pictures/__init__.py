"""The pictures of the documentation, each drawn from the code when the site is built."""
