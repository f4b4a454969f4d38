"""What all mechanisms share: `Query`, `Mechanism`, `Release`, lattices, sensitivity, calibration.

A query computes an exact answer on whole steps of a lattice and states its sensitivity; a mechanism adds
noise to hide that much; a `Measurement` joins the two, and a release carries the noisy value with its loss.
"""
