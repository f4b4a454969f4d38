"""Prime fields with number-theoretic transforms, computed on whole arrays in compiled code.

>>> from sfumato.crypto.fields.ntt_field import FIELD64
>>> FIELD64.integers(FIELD64.multiplied(FIELD64.vector([3, 5]), FIELD64.vector([7, -1])))
[21, 18446744069414584316]
"""
