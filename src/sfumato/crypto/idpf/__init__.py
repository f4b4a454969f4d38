"""Incremental distributed point functions: two keys that share a path's values at every level of a tree.

>>> from sfumato.crypto.idpf.idpf import Idpf
>>> Idpf(bits=10, value_length=2).public_share_size
371
"""
