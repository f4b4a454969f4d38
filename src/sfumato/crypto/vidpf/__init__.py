"""Verifiable incremental distributed point functions: two parties check that they share one path only.

>>> from sfumato.crypto.fields.ntt_field import FIELD64
>>> from sfumato.crypto.vidpf.vidpf import Vidpf
>>> Vidpf(bits=10, field=FIELD64, value_length=2).public_share_size
643
"""
