"""Extendable output functions: streams of bytes and field elements from seeds.

>>> from sfumato.crypto.xof.turboshake import turboshake128
>>> turboshake128(b"", 0x1F, 8).hex()
'1e415f1c5983aff2'
"""
