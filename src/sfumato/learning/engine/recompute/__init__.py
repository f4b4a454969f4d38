"""Clipped gradients from a forward that is run again: with less memory, or where no rule is known.

`chunks` runs the rules for a part of the batch at a time; `microbatches` takes each example's gradient by
vmap or alone.
"""
