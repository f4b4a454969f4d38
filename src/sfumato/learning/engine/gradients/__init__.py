"""Per-example gradients in the forms that make their norms and weighted sums cheap.

A use of a parameter leaves dense gradients (`per_example`), factors of outer products (`outer_products`) or
looked-up rows (`gathered_rows`). `collector` gathers them over one forward and backward; `summation` makes
norms and sums of clipped gradients of them.
"""
