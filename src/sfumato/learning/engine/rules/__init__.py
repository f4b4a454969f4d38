"""One rule for each kind of use of a parameter: its forward, its input's gradient, what is stored of it."""
