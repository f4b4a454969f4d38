"""Validity circuits: what a measurement may be, as equations over a field.

>>> from sfumato.federated.vdaf.circuits.chunked import Histogram
>>> Histogram(4, 2).encode([2])[0, :, 0].tolist()
[0, 0, 1, 0]
"""
